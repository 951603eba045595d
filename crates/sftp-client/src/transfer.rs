//! Moves the bytes of one file, with many requests under way.
//!
//! ```text
//! fetch    READs, as many as the path holds; answers may come in any order
//! send     WRITEs, as many as the queue takes; answers count, not departures (F5)
//! ```
//! Both end only when nothing is under way any more, and tell how far the file is whole from its
//! start: what comes after a gap is of no use to `reget` and `reput`.

use crate::failure::Failure;
use crate::meter::Meter;
use sftp::client::{Answer, Check, Client, Data, Error, Event, Flight, Target};
use sftp::codec::{Attrs, Handle, Reply, Request};
use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

/// What is queued to be sent at most. The client tells of room below half a MiB of at least one.
const QUEUE: u64 = 2 << 20;

/// How often to look whether the user lost patience.
const TICK: Duration = Duration::from_millis(100);

/// What the command line says about requests.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Shape {
    /// Requests under way at most (`-R`); by itself it is what the path holds.
    pub(crate) requests: Option<usize>,
    /// Bytes of a request (`-B`); by itself what the server takes.
    pub(crate) buffer: Option<u32>,
    /// Bytes per second (`-l`).
    pub(crate) rate: Option<u64>,
}

/// Set by SIGINT, cleared before each command.
pub(crate) type Interrupt = Arc<AtomicBool>;

/// Where the bytes at this end are, and where to begin.
pub(crate) struct Span<'a> {
    /// The file here.
    pub(crate) local: &'a Arc<File>,
    /// The file there, open.
    pub(crate) remote: &'a Handle,
    /// The first byte that is to move.
    pub(crate) from: u64,
    /// The size as it was when the file was opened.
    pub(crate) size: u64,
}

/// What became of a file.
#[derive(Debug)]
pub(crate) struct Moved {
    /// The target is whole up to here.
    pub(crate) end: u64,
    /// Why it is not whole altogether.
    pub(crate) failed: Option<Wrong>,
}

/// What went wrong with a file.
#[derive(Debug)]
pub(crate) enum Wrong {
    Interrupted,
    Failed(Error),
    /// The source here could not be read.
    Unreadable(std::io::Error),
}

impl Wrong {
    /// The source here had less than it said.
    pub(crate) fn is_shrunk(&self) -> bool {
        matches!(self, Self::Failed(Error::Shrunk { .. }))
    }

    /// It is this host's file that could not be read or written.
    pub(crate) fn is_here(&self) -> bool {
        matches!(self, Self::Failed(Error::Local(..)))
    }

    /// As a command's failure; `what` says what was being done.
    pub(crate) fn failure(self, what: impl FnOnce() -> String) -> Failure {
        match self {
            Self::Interrupted => Failure::Because("Interrupted".to_owned()),
            Self::Failed(error) => Failure::asked(what(), &error),
            Self::Unreadable(error) => Failure::local(what(), &error),
        }
    }
}

/// Moves files over one channel, one after the other.
pub(crate) struct Mover {
    client: Client,
    events: Receiver<Event>,
    shape: Shape,
    interrupt: Interrupt,
    /// Learned from one file for the next.
    flight: Flight,
    next_token: u64,
    pace: Pace,
    /// Looks at open files that were asked for, and what was seen.
    looks: HashMap<u64, Option<Attrs>>,
}

/// A look at an open file, asked for together with other things.
pub(crate) struct Look(u64);

/// The requests of one file that are under way.
struct Run<'a> {
    meter: &'a mut Meter,
    under_way: HashMap<u64, (u64, u64)>,
    /// The next byte to ask for.
    next: u64,
    /// Nothing is to be asked for any more.
    over: bool,
    /// Where the source ended, as it turned out.
    end: Option<u64>,
    /// First byte that is missing, and why.
    gap: Option<(u64, Wrong)>,
}

impl Run<'_> {
    fn fail(&mut self, at: u64, wrong: Wrong) {
        self.over = true;
        if self.gap.as_ref().is_none_or(|(gap, _)| at < *gap) {
            self.gap = Some((at, wrong));
        }
    }

    fn moved(self) -> Moved {
        let whole = self.end.map_or(self.next, |end| end.min(self.next));
        match self.gap {
            Some((at, wrong)) => Moved { end: at.min(whole), failed: Some(wrong) },
            None => Moved { end: whole, failed: None },
        }
    }
}

impl Mover {
    pub(crate) fn new(
        client: Client,
        events: Receiver<Event>,
        shape: Shape,
        interrupt: Interrupt,
    ) -> Self {
        let ours = client.server().is_ok_and(|server| server.has(sftp::codec::name::BLOCK_HASHES));
        let most = if ours { Flight::MOST } else { Flight::MOST_FROM_STOCK };
        let flight = Flight::within(most, Instant::now());
        let pace = Pace::new(shape.rate);
        Self {
            client,
            events,
            shape,
            interrupt,
            flight,
            next_token: 0,
            pace,
            looks: HashMap::new(),
        }
    }

    /// Whether nobody said how many requests there may be, or how large: then files may go in
    /// company.
    pub(crate) fn is_free(&self) -> bool {
        self.shape.requests.is_none() && self.shape.buffer.is_none()
    }

    /// Asks for something, without waiting for it.
    pub(crate) fn request(&mut self, request: &Request) -> u64 {
        self.next_token += 1;
        self.client.request(request, self.next_token);
        self.next_token
    }

    /// Asks for as much of a file as the server gives at once, at most `most` bytes; how many were
    /// asked for.
    pub(crate) fn read(
        &mut self,
        remote: &Handle,
        local: &Arc<File>,
        offset: u64,
        most: u64,
    ) -> (u64, u32) {
        let chunk = self.client.sizes().read.max(1);
        let len = u32::try_from(most).map_or(chunk, |most| most.min(chunk));
        self.next_token += 1;
        let target = Target::File { file: Arc::clone(local), offset };
        self.client.get(remote, offset, len, target, Check::None, self.next_token);
        (self.next_token, len)
    }

    /// Sends bytes into a file.
    pub(crate) fn write(&mut self, remote: &Handle, offset: u64, data: Data) -> u64 {
        self.next_token += 1;
        self.client.put(remote, offset, data, Check::None, self.next_token);
        self.next_token
    }

    /// Most bytes that may leave at once at the rate asked for.
    pub(crate) fn burst(&self) -> u64 {
        self.pace.chunk()
    }

    /// How long the rate asked for holds up what is next; not at all, if the user interrupted that.
    pub(crate) fn pause(&self) -> Option<Duration> {
        self.pace.pause(Instant::now()).filter(|_| !self.is_interrupted())
    }

    /// These bytes leave now.
    pub(crate) fn charge(&mut self, bytes: u64) {
        self.pace.charge(bytes, Instant::now());
    }

    /// Waits for an answer, but not long.
    pub(crate) fn event_within(&self, patience: Duration) -> Option<Event> {
        match self.events.recv_timeout(patience.min(TICK)) {
            Ok(event) => Some(event),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => {
                Some(Event::Ended(Error::ended("Connection closed")))
            }
        }
    }

    /// Waits for an answer.
    pub(crate) fn event(&self) -> Event {
        self.events.recv().unwrap_or_else(|_| Event::Ended(Error::ended("Connection closed")))
    }

    /// Whether the user interrupted the command.
    pub(crate) fn is_interrupted(&self) -> bool {
        self.interrupt.load(Ordering::Relaxed)
    }

    /// Asks for the attributes of an open file, without waiting for them.
    pub(crate) fn look(&mut self, remote: &Handle) -> Look {
        self.next_token += 1;
        self.client.request(&Request::Fstat(remote.clone()), self.next_token);
        Look(self.next_token)
    }

    /// What a look showed; nothing, if the server does not tell.
    pub(crate) fn seen(&mut self, look: &Look) -> Option<Attrs> {
        loop {
            if let Some(seen) = self.looks.remove(&look.0) {
                return seen;
            }
            match self.events.recv().ok()? {
                Event::Answer { token, answer } => self.note_look(token, answer),
                Event::Room | Event::Unsent { .. } => {}
                Event::Ended(_) => return None,
            }
        }
    }

    fn note_look(&mut self, token: u64, answer: Result<Answer, Error>) {
        let seen = match answer {
            Ok(Answer::Reply(Reply::Attrs(attrs))) => Some(attrs),
            _ => None,
        };
        self.looks.insert(token, seen);
    }

    /// Brings a file here. It is read to its end, wherever that is: the size that the server told
    /// only says how far reads may run ahead.
    pub(crate) fn fetch(&mut self, span: &Span<'_>, meter: &mut Meter) -> Moved {
        let mut run = Self::run(span.from, meter);
        let chunk = self.chunk(self.client.sizes().read);
        // The one read beyond the size, which finds the end.
        let mut feeler = None;
        while !run.over || !run.under_way.is_empty() {
            while !run.over && self.may_ask(&run, chunk) {
                let left = span.size.saturating_sub(run.next);
                let beyond = left == 0;
                if beyond && feeler.is_some_and(|token| run.under_way.contains_key(&token)) {
                    break;
                }
                let len = if beyond {
                    chunk
                } else {
                    u32::try_from(left).map_or(chunk, |l| l.min(chunk))
                };
                let token = self.ask(&mut run, len.into());
                self.flight.sent(len.into(), Instant::now());
                let (file, offset) = (Arc::clone(span.local), run.next - u64::from(len));
                let target = Target::File { file, offset };
                self.client.get(span.remote, offset, len, target, Check::None, token);
                feeler = if beyond { Some(token) } else { feeler };
            }
            self.await_event(&mut run);
        }
        run.moved()
    }

    /// Takes a file there.
    pub(crate) fn send(&mut self, span: &Span<'_>, meter: &mut Meter) -> Moved {
        let mut run = Self::run(span.from, meter);
        let chunk = u64::from(self.chunk(self.client.sizes().write));
        while !run.over || !run.under_way.is_empty() {
            while !run.over && self.may_send(&run) {
                let left = span.size.saturating_sub(run.next);
                let Some(data) = self.next_data(span, &mut run, left.min(chunk)) else { break };
                let token = self.ask(&mut run, data.len());
                let offset = run.next - data.len();
                self.client.put(span.remote, offset, data, Check::None, token);
            }
            self.await_event(&mut run);
        }
        run.moved()
    }

    /// The next piece of the source: a range of the file, or what lies beyond the size it had, read
    /// here because nobody knows how much there is (/proc has sizes of 0).
    fn next_data(&self, span: &Span<'_>, run: &mut Run<'_>, len: u64) -> Option<Data> {
        if len > 0 {
            let file = Arc::clone(span.local);
            return Some(Data::File { file, offset: run.next, len });
        }
        let mut bytes = vec![0; 32 * 1024];
        match span.local.read_at(&mut bytes, run.next) {
            Ok(0) => run.over = true,
            Ok(count) => {
                bytes.truncate(count);
                return Some(Data::Bytes(bytes.into()));
            }
            Err(error) => run.fail(run.next, Wrong::Unreadable(error)),
        }
        None
    }

    fn run(from: u64, meter: &mut Meter) -> Run<'_> {
        Run { meter, under_way: HashMap::new(), next: from, over: false, end: None, gap: None }
    }

    /// Bytes of a request, by the command line, the rate, or else what the server takes.
    fn chunk(&self, taken: u32) -> u32 {
        let chunk = self.shape.buffer.unwrap_or(taken).max(1);
        u32::try_from(self.pace.chunk()).map_or(chunk, |burst| burst.min(chunk))
    }

    /// Whether the rate or the user wants nothing more to leave now.
    fn is_held_up(&self) -> bool {
        self.pause().is_some() || self.is_interrupted()
    }

    fn may_ask(&self, run: &Run<'_>, chunk: u32) -> bool {
        if self.is_held_up() {
            return false;
        }
        let count = run.under_way.len();
        match self.shape.requests {
            Some(most) => count < most,
            None => count == 0 || self.flight.room() >= u64::from(chunk),
        }
    }

    fn may_send(&self, run: &Run<'_>) -> bool {
        let few = self.shape.requests.is_none_or(|most| run.under_way.len() < most);
        few && self.client.unsent() < QUEUE && !self.is_held_up()
    }

    /// Notes the next `len` bytes as under way.
    fn ask(&mut self, run: &mut Run<'_>, len: u64) -> u64 {
        self.charge(len);
        self.next_token += 1;
        run.under_way.insert(self.next_token, (run.next, len));
        run.next += len;
        self.next_token
    }

    fn await_event(&mut self, run: &mut Run<'_>) {
        if !run.over && self.is_interrupted() {
            run.fail(run.next, Wrong::Interrupted);
        }
        let pause = self.pause().filter(|_| !run.over);
        if run.under_way.is_empty() && pause.is_none() {
            return;
        }
        match self.event_within(pause.unwrap_or(TICK)) {
            Some(Event::Answer { token, answer }) => self.answered(run, token, answer),
            Some(Event::Room | Event::Unsent { .. }) => {}
            Some(Event::Ended(error)) => self.lost(run, error),
            None => run.meter.tick(Instant::now()),
        }
    }

    fn answered(&mut self, run: &mut Run<'_>, token: u64, answer: Result<Answer, Error>) {
        let Some((offset, len)) = run.under_way.remove(&token) else {
            return self.note_look(token, answer);
        };
        if !matches!(answer, Ok(Answer::Sent(_))) {
            self.flight.done(len, Instant::now());
        }
        match answer {
            Ok(Answer::Got(got)) => {
                run.meter.add(got.len.into());
                if got.eof {
                    let end = offset + u64::from(got.len);
                    run.end = Some(run.end.map_or(end, |known| known.min(end)));
                    run.over = true;
                }
            }
            Ok(Answer::Sent(sent)) => run.meter.add(sent.len),
            Ok(Answer::Reply(_)) => run.fail(offset, Wrong::Failed(Error::ended("wrong answer"))),
            Err(error) => run.fail(offset, Wrong::Failed(error)),
        }
    }

    /// Nothing will be answered any more.
    fn lost(&mut self, run: &mut Run<'_>, error: Error) {
        let first = run.under_way.drain().map(|(_, (offset, _))| offset).min();
        run.fail(first.unwrap_or(run.next), Wrong::Failed(error));
    }
}

/// Keeps requests at least as far apart as a rate demands. Nobody sleeps for it: who asks waits for
/// answers, the user's patience and the clock alike.
struct Pace {
    rate: Option<u64>,
    next: Instant,
}

impl Pace {
    /// What may leave at once after a pause.
    const BURST: Duration = Duration::from_millis(50);
    /// Requests a second, at least: what a burst holds.
    const REQUESTS: u64 = 20;
    /// Smaller requests would be mostly heads.
    const SMALLEST: u64 = 4096;

    fn new(rate: Option<u64>) -> Self {
        Self { rate, next: Instant::now() }
    }

    /// Most bytes of a request.
    fn chunk(&self) -> u64 {
        self.rate.map_or(u64::MAX, |rate| (rate / Self::REQUESTS).max(Self::SMALLEST))
    }

    /// How long the next request has to wait, if it has to.
    fn pause(&self, now: Instant) -> Option<Duration> {
        let left = self.next.saturating_duration_since(now);
        (self.rate.is_some() && !left.is_zero()).then_some(left)
    }

    /// These bytes leave now.
    fn charge(&mut self, bytes: u64, now: Instant) {
        let Some(rate) = self.rate else { return };
        let earliest = now.checked_sub(Self::BURST).unwrap_or(now);
        self.next = self.next.max(earliest) + Duration::from_secs_f64(bytes as f64 / rate as f64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_kept_in_small_steps() {
        let now = Instant::now();
        let mut pace = Pace::new(Some(1_000_000));
        assert_eq!(pace.chunk(), 50_000);
        let (mut at, mut sent) = (now, 0);
        while at < now + Duration::from_secs(2) {
            match pace.pause(at) {
                Some(pause) => at += pause,
                None => {
                    pace.charge(pace.chunk(), at);
                    sent += pace.chunk();
                }
            }
        }
        assert!((2_000_000..=2_150_000).contains(&sent), "{sent} bytes in 2 s");
        assert_eq!(Pace::new(Some(1)).chunk(), Pace::SMALLEST);
        let mut free = Pace::new(None);
        free.charge(u64::MAX, now);
        assert_eq!((free.pause(now), free.chunk()), (None, u64::MAX));
    }
}
