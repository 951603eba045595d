//! Rx: the receiving thread of a session (RFC 4254).
//!
//! ```text
//! fill -> frame -> open        receiver, or a worker that owns the slab meanwhile
//! walk                         CHANNEL_DATA -> its route's run; the rest -> the state machine
//! settle                       runs -> sinks, one gathering write each; credit on consumption
//! ```
//! The thread never waits for anything but "something to receive or a sink has room": what it has
//! to send and the socket does not take is left to the tx thread, so two peers that both send at
//! full speed cannot wait for each other.

mod pass;
mod wait;
mod walk;

pub use wait::Alive;

use crate::error::Error;
use crate::fd::poll_until;
use crate::figures::{Hand, Role};
use crate::program::{Flow, Port, Program};
use crate::receiver::Receiver;
use crate::route::{Routes, Totals};
use crate::session::Session;
use crate::tune::Tune;
use crate::tx::Flush;
use crate::workers::Opening;
use proto::{Effect, Event, Outbox};
use std::collections::VecDeque;
use std::time::{Duration, Instant};
use wait::EXCHANGE;
use walk::{AHEAD, MESSAGE};
use wire::msg::{self, Disconnect};

/// How long the peer may take to read what was said before the end.
const LAST_WORDS: Duration = Duration::from_secs(3);

/// How long it may take until why we leave is on its way, behind what is being sent.
const GOODBYE: Duration = Duration::from_millis(500);

/// The receiving thread's state.
pub struct Rx<P> {
    session: Session,
    receiver: Receiver,
    opening: VecDeque<Opening>,
    routes: Routes,
    program: P,
    outbox: Outbox,
    /// A message that is not bulk, while it is handled.
    message: Vec<u8>,
    tune: Tune,
    alive: Option<Alive>,
    asked: u32,
    heard: Instant,
    /// When the peer was asked last, or heard since.
    quiet_since: Instant,
    /// Since when sinks that are behind keep us from receiving.
    patient: Option<Instant>,
    /// Longest key exchange that is waited for.
    exchange: Duration,
    /// When one was given that time again.
    once_more: Instant,
    finished: bool,
}

impl<P: Program> Rx<P> {
    pub(crate) fn new(
        session: Session,
        receiver: Receiver,
        routes: Routes,
        tune: Tune,
        alive: Option<Alive>,
        program: P,
    ) -> Self {
        session.ledger().received.window_cap.set(routes.rule().most().into());
        Self {
            session,
            receiver,
            opening: VecDeque::with_capacity(AHEAD),
            routes,
            program,
            outbox: Outbox::new(),
            message: Vec::with_capacity(MESSAGE),
            tune,
            alive,
            asked: 0,
            heard: Instant::now(),
            quiet_since: Instant::now(),
            patient: None,
            exchange: EXCHANGE,
            once_more: Instant::now(),
            finished: false,
        }
    }

    /// Gives a key exchange this long instead of two minutes.
    #[must_use]
    pub fn exchange_within(mut self, limit: Duration) -> Self {
        self.exchange = limit;
        self
    }

    /// Runs the session to its end. What was received before a failure is still written out.
    pub fn run(mut self) -> (P, Totals, Result<(), Error>) {
        self.session.fd().give_up_after(self.exchange);
        let ledger = std::sync::Arc::clone(self.session.ledger());
        let hand = ledger.enlist(Role::Receiving);
        let end = self.turns(&hand).map_err(|error| self.cause_of(error));
        // Before the program ends its commands: their last words would be taken for the end.
        if let Err(error) = &end {
            self.say_goodbye(error);
        }
        self.program.over();
        let drained = hand.sink.time(|| self.drain_sinks());
        // Nothing more happens on the connection: the program alone wants to know.
        while self.tell_of_one() {}
        self.session.ledger().written.set(self.routes.totals().written);
        if end.is_ok() {
            self.disconnect(Disconnect::ByApplication, "disconnected by user");
        }
        self.session.shut();
        (self.program, self.routes.totals(), end.and(drained))
    }

    fn turns(&mut self, hand: &Hand) -> Result<(), Error> {
        loop {
            self.walk(hand)?;
            self.settle()?;
            self.session.ledger().written.set(self.routes.totals().written);
            if self.finished {
                return self.last_words();
            }
            self.wait_and_fill(hand)?;
        }
    }

    /// What ended the connection, where `error` is only how this thread noticed.
    fn cause_of(&self, error: Error) -> Error {
        if let Some(why) = self.session.tx().take_cut() {
            return Error::Local("read the input", why);
        }
        match error {
            Error::Closed | Error::Local(..) => {
                let tx = self.session.tx();
                tx.take_fault().or_else(|| tx.unwritable()).unwrap_or(error)
            }
            said => said,
        }
    }

    /// What was said before the end. Nobody waits for it on our side, so a peer that does not read
    /// it does not keep us.
    fn last_words(&self) -> Result<(), Error> {
        match self.session.tx().flush(Flush::Until(Instant::now() + LAST_WORDS)) {
            Err(Error::Local(_, e)) if e.kind() == std::io::ErrorKind::TimedOut => Ok(()),
            done => done,
        }
    }

    /// A message that is not bulk: the state machine's.
    fn message(&mut self, seq: u32, payload: &[u8]) -> Result<(), Error> {
        self.session
            .stage_call(&mut self.outbox, |connection, out| connection.handle(seq, payload, out))?;
        self.after_call()
    }

    /// New opening keys and events of a call.
    fn after_call(&mut self) -> Result<(), Error> {
        for effect in self.outbox.effects.drain(..) {
            match effect {
                Effect::OpenWith(new) => self.receiver.rekey(&new)?,
                Effect::Inflate => self.receiver.inflate(),
                _ => {}
            }
        }
        // Dealing with one may bring more, behind those that are there. They are few.
        while !self.outbox.events.is_empty() {
            let event = self.outbox.events.remove(0);
            self.event(event)?;
        }
        Ok(())
    }

    fn event(&mut self, event: Event) -> Result<(), Error> {
        match &event {
            Event::Opened { id, grant } => {
                let window = self.session.route(*id);
                self.routes.open(*id, grant.remote, window);
                self.session.opened(*id, *grant);
            }
            Event::Adjusted { id, credit } => {
                if let Some(sender) = self.session.sender(*id) {
                    let now = sender.add(*credit).map_err(proto::Error::from)?;
                    self.session.ledger().sent.window.raise(now.into());
                }
                return Ok(());
            }
            Event::Eof { id } => self.routes.end(*id),
            Event::Closed { id } => self.session.closed(*id),
            Event::Disconnected { code, text } => {
                return Err(Error::Disconnected(*code, text.clone()));
            }
            _ => {}
        }
        let closed = if let Event::Closed { id } = &event { Some(*id) } else { None };
        let mut port =
            Port { session: &self.session, routes: &mut self.routes, outbox: &mut self.outbox };
        if self.program.event(&mut port, event)? == Flow::Finish {
            self.finished = true;
        }
        if let Some(id) = closed {
            self.routes.close(id);
        }
        Ok(())
    }

    /// After a walk: late events, waiting sinks, credit, and whatever that made to be sent.
    fn settle(&mut self) -> Result<(), Error> {
        let late = std::mem::take(&mut *self.session.0.late.lock());
        for event in late {
            self.event(event)?;
        }
        self.routes.drain(&mut self.receiver, Instant::now());
        self.tell_broken()?;
        self.credit()?;
        self.check_exchange()?;
        if self.receiver.rekey_due() {
            self.stage(|connection, out| connection.rekey(out))?;
        }
        self.session.tx().flush(Flush::Now)
    }

    /// Tells the program of the sinks that broke.
    fn tell_broken(&mut self) -> Result<(), Error> {
        while self.tell_of_one() {
            self.after_call()?;
        }
        Ok(())
    }

    /// Tells the program of a sink that broke; false if there is none.
    fn tell_of_one(&mut self) -> bool {
        let Some((id, stream, why)) = self.routes.take_broken() else { return false };
        let mut port =
            Port { session: &self.session, routes: &mut self.routes, outbox: &mut self.outbox };
        if self.program.sink_broke(&mut port, id, stream, why) == Flow::Finish {
            self.finished = true;
        }
        true
    }

    /// Gives the peer the credit that the consumers' progress allows.
    fn credit(&mut self) -> Result<(), Error> {
        let now = Instant::now();
        self.tune.look(self.session.fd(), &mut self.routes, now);
        while let Some((id, remote, bytes)) = self.routes.next_adjust(now) {
            let mut message = [0u8; 9];
            let (number, fields) = message.split_at_mut(1);
            number.fill(msg::CHANNEL_WINDOW_ADJUST);
            for (place, field) in fields.chunks_exact_mut(4).zip([remote, bytes]) {
                place.copy_from_slice(&field.to_be_bytes());
            }
            let Some(sender) = self.session.sender(id) else { continue };
            if !self.session.tx().message_unless_fenced(&message, || !sender.is_over())? {
                // During a key exchange the state machine keeps it until it may leave.
                self.session.stage_call(&mut self.outbox, |connection, out| {
                    connection.credit(id, bytes, out)
                })?;
                self.after_call()?;
            }
        }
        Ok(())
    }

    /// Calls the state machine from this thread, which must not wait.
    fn stage(
        &mut self,
        f: impl FnOnce(&mut proto::Connection, &mut Outbox) -> Result<(), proto::Error>,
    ) -> Result<(), Error> {
        self.session.stage_call(&mut self.outbox, f)?;
        self.after_call()
    }

    /// At the end: sinks get what was received, however long they take; those that linger only
    /// while something is read now and then.
    fn drain_sinks(&mut self) -> Result<(), Error> {
        let (mut moved, mut unread) = (Instant::now(), usize::MAX);
        loop {
            self.routes.drain(&mut self.receiver, Instant::now());
            let before = std::mem::replace(&mut unread, self.routes.unread());
            if unread < before {
                moved = Instant::now();
            }
            self.routes.drop_after(moved.elapsed());
            let left = self.routes.lingers().map(|most| most.saturating_sub(moved.elapsed()));
            let mut fds = self.waiting();
            let fds = fds.as_mut_slice();
            if fds.is_empty() {
                return Ok(());
            }
            poll_until(fds, left).map_err(|e| Error::Local("wait for the consumer", e))?;
        }
    }

    /// Tells the peer why, as far as it can still hear.
    fn say_goodbye(&mut self, error: &Error) {
        if let Some(code) = error.disconnect_code() {
            self.disconnect(code, &error.for_peer());
        }
    }

    fn disconnect(&mut self, code: Disconnect, text: &str) {
        let _ = self.session.stage_call(&mut self.outbox, |connection, out| {
            connection.disconnect(code, text, out);
            Ok(())
        });
        let _ = self.session.tx().flush(Flush::Until(Instant::now() + GOODBYE));
    }
}
