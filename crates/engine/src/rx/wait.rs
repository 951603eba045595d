//! Wait: until there is something to receive, a sink has room, or the peer was silent too long.

use super::{Program, Rx};
use crate::error::Error;
use crate::fd::{PollList, Wait, poll_until};
use crate::figures::Hand;
use rustix::event::{PollFd, PollFlags};
use std::time::{Duration, Instant};

/// How long a sink that is behind is waited for before more is received, ...
pub(super) const PATIENCE: Duration = Duration::from_millis(1);

/// ... and for how long in all while it takes a little now and then: messages for others wait.
const MOST_PATIENCE: Duration = Duration::from_millis(20);

/// How long a key exchange may take, from our KEXINIT to the peer's NEWKEYS. Both sides' KEXINIT
/// queue behind the bulk in front of them: 4 MiB in a socket buffer are 34 s each way at 1 Mbit/s.
/// Bulk of ours waits meanwhile, so a peer that never finishes would hold the connection for ever.
pub(super) const EXCHANGE: Duration = Duration::from_secs(120);

/// How long more may come from a peer that takes nothing any more: its last words are here, or on
/// the way.
const UNHEARD: Duration = Duration::from_secs(3);

/// How long it may take until this thread notices that another one has ended the connection, where
/// that is no socket and so cannot wake it.
const NOTICE: Duration = Duration::from_secs(3);

/// When the peer must show that it is alive.
#[derive(Debug, Clone, Copy)]
pub struct Alive {
    /// Silence after which it is asked.
    pub interval: Duration,
    /// Questions without an answer after which it is dead.
    pub count: u32,
}

impl<P: Program> Rx<P> {
    /// Waits until there is something to receive or a sink has room, and receives.
    pub(super) fn wait_and_fill(&mut self, hand: &Hand) -> Result<(), Error> {
        if !self.opening.is_empty() {
            // Workers are busy: take more if it is there, else deliver what they have.
            match self.receiver.fill(Wait::No) {
                Ok(true) => self.hear(),
                Ok(false) => self.collect_opened(0, hand)?,
                Err(error) => return self.end_by(error, hand),
            }
            return Ok(());
        }
        let timeout = match self.session.tx().unwritable() {
            Some(_) => Some(UNHEARD),
            None if self.session.fd().is_socket() => self.silence_left(),
            None => Some(self.silence_left().map_or(NOTICE, |left| left.min(NOTICE))),
        };
        // A source may start a key exchange meanwhile, which the peer then never finishes.
        let wait = timeout.map_or(Wait::Long(self.exchange), Wait::For);
        if !self.routes.is_waiting() {
            self.patient = None;
            let received = hand.network.time(|| match self.passes() {
                true => self.pass(wait, hand),
                false => self.receiver.fill(wait),
            });
            return if received? {
                self.hear();
                Ok(())
            } else {
                self.silence()
            };
        }
        if hand.sink.time(|| self.wait_for_sinks())? {
            return Ok(());
        }
        self.patient = None;
        let readable = hand.sink.time(|| self.poll(timeout.unwrap_or(self.exchange)))?;
        match readable {
            None => self.silence(),
            Some(false) => Ok(()),
            Some(true) => {
                if self.receiver.fill(Wait::No)? {
                    self.hear();
                }
                Ok(())
            }
        }
    }

    /// A consumer that is only a little behind: what it has not taken is still in the cache, and
    /// so it is waited for before more is received. Whether a sink has room.
    fn wait_for_sinks(&mut self) -> Result<bool, Error> {
        if self.patient.get_or_insert_with(Instant::now).elapsed() > MOST_PATIENCE {
            return Ok(false);
        }
        let mut fds = self.waiting();
        let fds = fds.as_mut_slice();
        if fds.is_empty() {
            return Ok(false);
        }
        poll_until(fds, Some(PATIENCE)).map_err(|e| Error::Local("wait for a sink", e))
    }

    /// Whether the connection is readable, after it or a sink became ready; `None` on time-out.
    fn poll(&self, timeout: Duration) -> Result<Option<bool>, Error> {
        let mut fds = self.waiting();
        fds.push(PollFd::new(self.session.fd(), PollFlags::IN));
        let fds = fds.as_mut_slice();
        let ready = poll_until(fds, Some(timeout))
            .map_err(|e| Error::Local("wait for the connection", e))?;
        let readable = fds.last().is_some_and(|fd| !fd.revents().is_empty());
        Ok(ready.then_some(readable))
    }

    /// The sinks that hold something.
    pub(super) fn waiting(&self) -> PollList<'_> {
        let mut fds = PollList::new(self.session.fd());
        fds.extend(self.routes.waiting());
        fds
    }

    fn hear(&mut self) {
        self.asked = 0;
        if self.alive.is_some() {
            self.heard = Instant::now();
            self.quiet_since = self.heard;
        }
    }

    /// A peer that neither finishes the key exchange nor leaves. It has its time once more if its
    /// answer may be here: this process may have been stopped.
    pub(super) fn check_exchange(&mut self) -> Result<(), Error> {
        let Some(since) = self.session.exchanging_since() else { return Ok(()) };
        if self.exchange_left() != Some(Duration::ZERO) {
            return Ok(());
        }
        let mut fd = [PollFd::new(self.session.fd(), PollFlags::IN)];
        let is_here = poll_until(&mut fd, Some(Duration::ZERO));
        if self.once_more < since && is_here.is_ok_and(|is_here| is_here) {
            self.once_more = Instant::now();
            return Ok(());
        }
        Err(Error::Unfinished(self.exchange))
    }

    /// Until the key exchange that is running takes too long.
    fn exchange_left(&self) -> Option<Duration> {
        let since = self.session.exchanging_since()?.max(self.once_more);
        Some(self.exchange.saturating_sub(since.elapsed()))
    }

    /// Until the peer must be asked whether it is there, its key is too old, or its answer to our
    /// KEXINIT too late.
    fn silence_left(&self) -> Option<Duration> {
        let asks =
            self.alive.map(|alive| alive.interval.saturating_sub(self.quiet_since.elapsed()));
        let others = self.receiver.rekey_in().into_iter().chain(self.exchange_left());
        let next = asks.into_iter().chain(others).min()?;
        Some(next.max(Duration::from_millis(1)))
    }

    /// The peer was silent for an interval: ask it, or give it up. It has an interval from each
    /// question on: this process may have been stopped for many.
    fn silence(&mut self) -> Result<(), Error> {
        if self.session.tx().unwritable().is_some() || self.session.tx().is_shut() {
            return Err(Error::Closed);
        }
        let Some(alive) = self.alive else { return Ok(()) };
        if self.quiet_since.elapsed() < alive.interval {
            return Ok(());
        }
        if self.asked >= alive.count {
            return Err(Error::Timeout(alive.interval * (self.asked + 1)));
        }
        self.asked += 1;
        self.quiet_since = Instant::now();
        self.stage(|connection, out| connection.keepalive(out))
    }
}
