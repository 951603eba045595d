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

use crate::error::Error;
use crate::fd::{PollList, Wait, poll_until};
use crate::figures::{Hand, Role};
use crate::receiver::{Receiver, Spans};
use crate::route::{Routes, Stream, Totals};
use crate::session::{MAX_DATA, Session};
use crate::sink::Sink;
use crate::slab::Slab;
use crate::tune::Tune;
use crate::tx::Flush;
use crate::workers::Opening;
use proto::channel::{Grant, LocalId};
use proto::{Effect, Event, Outbox};
use rustix::event::{PollFd, PollFlags};
use std::collections::VecDeque;
use std::time::{Duration, Instant};
use wire::msg::{self, Disconnect};

/// Slabs that are being opened by workers at one time.
const AHEAD: usize = 3;

/// Longest message that is copied without memory of its own; nearly all are shorter.
const MESSAGE: usize = 1024;

/// How long a sink that is behind keeps us from receiving: messages for others wait as long.
const PATIENCE: Duration = Duration::from_millis(1);

/// How long a key exchange may take, from our KEXINIT to the peer's NEWKEYS. Both sides' KEXINIT
/// queue behind the bulk in front of them: 4 MiB in a socket buffer are 34 s each way at 1 Mbit/s.
/// Bulk of ours waits meanwhile, so a peer that never finishes would hold the connection for ever.
const EXCHANGE: Duration = Duration::from_secs(120);

/// How long the peer may take to read what was said before the end.
const LAST_WORDS: Duration = Duration::from_secs(3);

/// What a program does with a connection: called on the receiving thread, must not wait.
pub trait Program {
    /// An event that the engine does not deal with itself.
    fn event(&mut self, port: &mut Port<'_>, event: Event) -> Result<Flow, Error>;

    /// A channel's sink broke: nobody reads what the peer sends on this stream any more.
    fn sink_broke(
        &mut self,
        port: &mut Port<'_>,
        id: LocalId,
        stream: Stream,
        why: std::io::Error,
    ) -> Flow;

    /// Nothing more will be received. Sinks still get what they hold: what reads from them and
    /// never ends by itself should be told now.
    fn over(&mut self) {}
}

/// Whether the session goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    /// It does.
    On,
    /// Write what sinks still hold, say goodbye, end.
    Finish,
}

/// What a [`Program`] may do while an event is handled.
pub struct Port<'a> {
    session: &'a Session,
    routes: &'a mut Routes,
    outbox: &'a mut Outbox,
}

impl Port<'_> {
    /// The session, for starting sources and for other threads. Its own calls wait for the
    /// socket: use [`Port::call`] here.
    pub fn session(&self) -> &Session {
        self.session
    }

    /// Calls into the connection's state machine.
    pub fn call<T>(
        &mut self,
        f: impl FnOnce(&mut proto::Connection, &mut Outbox) -> Result<T, proto::Error>,
    ) -> Result<T, Error> {
        self.session.stage_call(self.outbox, f)
    }

    /// Accepts a channel the peer asked for (`Event::OpenRequested`). Its data waits, within the
    /// window, for [`Port::attach`].
    pub fn accept(&mut self, id: LocalId, grant: Grant) -> Result<(), Error> {
        let window = self.routes.rule().initial();
        self.call(|connection, out| {
            connection.accept(id, window, MAX_DATA, out)?;
            connection.route(id);
            Ok(())
        })?;
        self.routes.open(id, grant.remote, window);
        self.session.opened(id, grant);
        Ok(())
    }

    /// Where a channel's data goes from now on, what waited included.
    pub fn attach(&mut self, id: LocalId, stream: Stream, sink: Sink) {
        self.routes.attach(id, stream, sink);
    }

    /// What the connection did so far, and what it waited for.
    pub fn figures(&self) -> crate::Figures {
        self.session.figures()
    }

    /// Bytes received on all channels so far.
    pub fn totals(&self) -> Totals {
        self.routes.totals()
    }
}

/// When the peer must show that it is alive.
#[derive(Debug, Clone, Copy)]
pub struct Alive {
    /// Silence after which it is asked.
    pub interval: Duration,
    /// Questions without an answer after which it is dead.
    pub count: u32,
}

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
    /// Longest key exchange that is waited for.
    exchange: Duration,
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
            exchange: EXCHANGE,
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
        let ledger = std::sync::Arc::clone(self.session.ledger());
        let hand = ledger.enlist(Role::Receiving);
        let end = self.turns(&hand).map_err(|error| match self.session.tx().take_cut() {
            Some(why) => Error::Local("read the input", why),
            None => error,
        });
        self.program.over();
        let drained = hand.sink.time(|| self.drain_sinks());
        // Nothing more happens on the connection: the program alone wants to know.
        while self.tell_of_one() {}
        self.session.ledger().written.set(self.routes.totals().written);
        match &end {
            Ok(()) => self.disconnect(Disconnect::ByApplication, "disconnected by user"),
            Err(error) => self.say_goodbye(error),
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

    /// Enters the channel data of some packets, all under one key, into the ledger.
    fn count(&self, hand: &Hand, now: Instant) {
        let received = self.routes.totals().received;
        let new = received - hand.bytes.get();
        if new == 0 {
            return;
        }
        hand.received(received);
        let counts = &self.session.ledger().received;
        counts.moved(new, now);
        counts.window.raise(self.routes.largest_window().into());
        if self.receiver.is_clear() {
            counts.clear.add(new);
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

    /// Everything that is whole: opened and delivered.
    fn walk(&mut self, hand: &Hand) -> Result<(), Error> {
        while !self.finished {
            let limit = if self.session.is_exchanging() { 1 } else { usize::MAX };
            if limit == 1 || self.session.workers().is_none() {
                self.collect_opened(0, hand)?;
                let Some(mut spans) = self.receiver.frame(limit)? else { break };
                hand.crypto.time(|| spans.open(self.receiver.slab_mut()));
                self.deliver(&spans, None, hand)?;
                self.receiver.recycle(spans);
            } else {
                let spans = match self.receiver.frame(limit) {
                    Ok(Some(spans)) => spans,
                    Ok(None) => break,
                    Err(error) => return self.end_by(error, hand),
                };
                let slab = self.receiver.detach();
                if let Some(workers) = self.session.workers() {
                    self.opening.push_back(workers.open(spans, slab));
                }
                self.collect_opened(AHEAD, hand)?;
            }
        }
        Ok(())
    }

    /// Delivers slabs that workers opened, in order, until at most `leave` are under way.
    fn collect_opened(&mut self, leave: usize, hand: &Hand) -> Result<(), Error> {
        while self.opening.len() > leave {
            let Some(opened) = self.opening.pop_front() else { break };
            let (spans, slab) = hand.crypto.time(|| opened.wait()).ok_or(Error::Closed)?;
            self.deliver(&spans, Some(slab), hand)?;
            self.receiver.recycle(spans);
        }
        Ok(())
    }

    /// Nothing more can be received, for this reason, unless what workers have says otherwise: it
    /// came before.
    fn end_by(&mut self, error: Error, hand: &Hand) -> Result<(), Error> {
        self.collect_opened(0, hand)?;
        if self.finished { Ok(()) } else { Err(error) }
    }

    /// Walks opened packets in order. `slab` is where they are if not in the receiver's own.
    fn deliver(&mut self, spans: &Spans, slab: Option<Slab>, hand: &Hand) -> Result<(), Error> {
        let now = Instant::now();
        for span in spans.list() {
            if self.finished {
                break;
            }
            let bytes = slab.as_ref().unwrap_or(self.receiver.slab()).bytes(&span.at);
            match bytes.first() {
                Some(&(msg::CHANNEL_DATA | msg::CHANNEL_EXTENDED_DATA)) => {
                    self.routes.data(bytes, span.at.start)?;
                }
                _ => {
                    let mut message = std::mem::take(&mut self.message);
                    message.clear();
                    message.extend_from_slice(bytes);
                    if message.first() != Some(&msg::CHANNEL_WINDOW_ADJUST) {
                        let slab = slab.as_ref().unwrap_or(self.receiver.slab());
                        self.routes.write_runs(slab, now);
                    }
                    // Whoever hears of a channel's end knows what became of the data before it.
                    self.tell_broken()?;
                    if self.finished {
                        break;
                    }
                    self.message(span.stamp.seq, &message)?;
                    message.shrink_to(MESSAGE);
                    self.message = message;
                }
            }
        }
        self.finish_slab(slab, now);
        self.count(hand, now);
        spans.check()
    }

    /// Writes the runs of a slab; what sinks leave over keeps the slab alive.
    fn finish_slab(&mut self, slab: Option<Slab>, now: Instant) {
        match slab {
            None => {
                self.routes.offer_runs(self.receiver.slab(), now);
                if self.routes.runs_need_slab() {
                    let slab = self.receiver.detach();
                    self.routes.hold_runs(&slab);
                } else {
                    self.routes.copy_runs(self.receiver.slab());
                }
            }
            Some(slab) => {
                self.routes.offer_runs(&slab, now);
                if self.routes.runs_need_slab() {
                    self.routes.hold_runs(&slab);
                } else {
                    self.routes.copy_runs(&slab);
                    self.receiver.give_back(slab);
                }
            }
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
            if let Effect::OpenWith(new) = effect {
                self.receiver.rekey(&new)?;
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

    /// Waits until there is something to receive or a sink has room, and receives.
    fn wait_and_fill(&mut self, hand: &Hand) -> Result<(), Error> {
        if !self.opening.is_empty() {
            // Workers are busy: take more if it is there, else deliver what they have.
            match self.receiver.fill(Wait::No) {
                Ok(true) => self.hear(),
                Ok(false) => self.collect_opened(0, hand)?,
                Err(error) => return self.end_by(error, hand),
            }
            return Ok(());
        }
        let timeout = self.silence_left();
        let wait = timeout.map_or(Wait::Forever, Wait::For);
        if !self.routes.is_waiting() {
            return if hand.network.time(|| self.receiver.fill(wait))? {
                self.hear();
                Ok(())
            } else {
                self.silence()
            };
        }
        if hand.sink.time(|| self.wait_for_sinks())? {
            return Ok(());
        }
        let readable = hand.sink.time(|| self.poll(timeout))?;
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
    fn wait_for_sinks(&self) -> Result<bool, Error> {
        let mut fds = self.waiting();
        let fds = fds.as_mut_slice();
        if fds.is_empty() {
            return Ok(false);
        }
        poll_until(fds, Some(PATIENCE)).map_err(|e| Error::Local("wait for a sink", e))
    }

    /// Whether the connection is readable, after it or a sink became ready; `None` on time-out.
    fn poll(&self, timeout: Option<Duration>) -> Result<Option<bool>, Error> {
        let mut fds = self.waiting();
        fds.push(PollFd::new(self.session.fd(), PollFlags::IN));
        let fds = fds.as_mut_slice();
        let ready =
            poll_until(fds, timeout).map_err(|e| Error::Local("wait for the connection", e))?;
        let readable = fds.last().is_some_and(|fd| !fd.revents().is_empty());
        Ok(ready.then_some(readable))
    }

    /// The sinks that hold something.
    fn waiting(&self) -> PollList<'_> {
        let mut fds = PollList::new(self.session.fd());
        fds.extend(self.routes.waiting());
        fds
    }

    fn hear(&mut self) {
        self.asked = 0;
        if self.alive.is_some() {
            self.heard = Instant::now();
        }
    }

    /// A peer that neither finishes the key exchange nor leaves.
    fn check_exchange(&self) -> Result<(), Error> {
        match self.exchange_left() {
            Some(Duration::ZERO) => Err(Error::Unfinished(self.exchange)),
            _ => Ok(()),
        }
    }

    /// Until the key exchange that is running takes too long.
    fn exchange_left(&self) -> Option<Duration> {
        Some(self.exchange.saturating_sub(self.session.exchanging_since()?.elapsed()))
    }

    /// Until the peer must be asked whether it is there, its key is too old, or its answer to our
    /// KEXINIT too late.
    fn silence_left(&self) -> Option<Duration> {
        let asks = self.alive.map(|alive| {
            let due = self.heard + alive.interval * (self.asked + 1);
            due.saturating_duration_since(Instant::now())
        });
        let others = self.receiver.rekey_in().into_iter().chain(self.exchange_left());
        let next = asks.into_iter().chain(others).min()?;
        Some(next.max(Duration::from_millis(1)))
    }

    /// Calls the state machine from this thread, which must not wait.
    fn stage(
        &mut self,
        f: impl FnOnce(&mut proto::Connection, &mut Outbox) -> Result<(), proto::Error>,
    ) -> Result<(), Error> {
        self.session.stage_call(&mut self.outbox, f)?;
        self.after_call()
    }

    /// The peer was silent for an interval: ask it, or give it up.
    fn silence(&mut self) -> Result<(), Error> {
        let Some(alive) = self.alive else { return Ok(()) };
        if self.heard + alive.interval * (self.asked + 1) > Instant::now() {
            return Ok(());
        }
        if self.asked >= alive.count {
            return Err(Error::Timeout(alive.interval * self.asked));
        }
        self.asked += 1;
        self.stage(|connection, out| connection.keepalive(out))
    }

    /// At the end: sinks get what was received, however long they take; those that linger only
    /// while something is taken now and then.
    fn drain_sinks(&mut self) -> Result<(), Error> {
        let mut moved = Instant::now();
        loop {
            let before = self.routes.totals().written;
            self.routes.drain(&mut self.receiver, Instant::now());
            if self.routes.totals().written > before {
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
        let _ = self.session.tx().flush(Flush::Now);
    }
}
