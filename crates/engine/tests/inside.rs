//! Streams that are made and taken inside the process: what a `Producer` and a `Consumer` may
//! rely on.
#![allow(clippy::unwrap_used, reason = "a test")]

mod ends;

use ends::logged_in;
use engine::{
    Buffers, Consumer, Error, Flow, Link, Plan, Port, Producer, Program, Session, Sink, Source,
    SourceEnd, Stream, Tune,
};
use proto::channel::LocalId;
use proto::window::Rule;
use proto::{Connection, Event, RekeyLimit};
use std::io::{self, IoSlice, IoSliceMut, PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::{JoinHandle, sleep, spawn};
use std::time::{Duration, Instant};

/// The only channel, on both sides.
const ID: LocalId = LocalId(0);

/// How long anything may take; nothing here is measured.
const PATIENCE: Duration = Duration::from_secs(30);

/// Small, so that a byte of credit that gets lost is missed soon.
const WINDOW: u32 = 256 << 10;

/// What a consumer takes for each leave it is given.
const PORTION: usize = 1000;

/// The byte at a place of the stream.
fn pattern(at: usize) -> u8 {
    (at.wrapping_mul(0x9e37_79b9) >> 24) as u8
}

fn stream(length: usize) -> Vec<u8> {
    (0..length).map(pattern).collect()
}

/// Makes the pattern, every other time nothing.
struct Pattern {
    at: usize,
    length: usize,
    now: bool,
    fails: bool,
}

impl Pattern {
    fn of(length: usize) -> Self {
        Self { at: 0, length, now: false, fails: false }
    }

    fn source(self) -> Source {
        Source::Producer(Box::new(self))
    }
}

impl Producer for Pattern {
    fn wait(&mut self) -> bool {
        self.at < self.length || self.fails
    }

    fn fill(&mut self, areas: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        assert!(!areas.is_empty() && areas.iter().all(|area| !area.is_empty()));
        self.now = !self.now;
        if !self.now {
            return Ok(0);
        }
        if self.fails && self.at == self.length {
            return Err(io::Error::other("no more of it"));
        }
        // Neither a whole packet nor a whole batch.
        let most = (self.length - self.at).min(40_001);
        let places = areas.iter_mut().flat_map(|area| area.iter_mut()).take(most);
        let filled = places.enumerate().map(|(n, place)| *place = pattern(self.at + n)).count();
        self.at += filled;
        Ok(filled)
    }
}

/// What a consumer was told.
#[derive(Default)]
struct Seen {
    bytes: Vec<u8>,
    ends: usize,
}

/// Takes a portion for every byte of `room`.
struct Picky {
    seen: Arc<Mutex<Seen>>,
    room: PipeReader,
    may: usize,
    fails_after: usize,
}

/// The test's side of a [`Picky`].
struct Watch {
    seen: Arc<Mutex<Seen>>,
    leave: Option<PipeWriter>,
}

fn picky(fails_after: usize) -> (Sink, Watch) {
    let (room, leave) = io::pipe().unwrap();
    rustix::io::ioctl_fionbio(&room, true).unwrap();
    let seen = Arc::new(Mutex::new(Seen::default()));
    let consumer = Picky { seen: Arc::clone(&seen), room, may: 0, fails_after };
    (Sink::consumer(Box::new(consumer)), Watch { seen, leave: Some(leave) })
}

impl Consumer for Picky {
    fn take(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        let mut seen = self.seen.lock().unwrap();
        assert_eq!(seen.ends, 0, "something came after the end");
        if seen.bytes.len() >= self.fails_after {
            return Err(io::Error::other("seen enough"));
        }
        if self.may == 0 && self.room.read(&mut [0]).is_ok_and(|n| n > 0) {
            self.may = PORTION;
        }
        let taken: Vec<u8> =
            pieces.iter().flat_map(|piece| piece.iter()).take(self.may).copied().collect();
        self.may -= taken.len();
        seen.bytes.extend_from_slice(&taken);
        Ok(taken.len())
    }

    fn room(&self) -> BorrowedFd<'_> {
        self.room.as_fd()
    }

    fn end(&mut self) {
        self.seen.lock().unwrap().ends += 1;
    }
}

impl Watch {
    fn bytes(&self) -> usize {
        self.seen.lock().unwrap().bytes.len()
    }

    fn ends(&self) -> usize {
        self.seen.lock().unwrap().ends
    }

    /// Leave to take `bytes` more.
    fn allow(&mut self, bytes: usize) {
        let leaves = vec![0; bytes.div_ceil(PORTION)];
        self.leave.as_mut().unwrap().write_all(&leaves).unwrap();
    }

    fn assert_is_start_of(&self, whole: &[u8]) {
        let seen = self.seen.lock().unwrap();
        assert!(whole.starts_with(&seen.bytes), "{} bytes, not in order", seen.bytes.len());
    }
}

fn until(what: &str, condition: impl Fn() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < deadline, "waited in vain for {what}");
        sleep(Duration::from_millis(1));
    }
}

/// One side: what it sends and takes, and what it was told.
struct Side {
    source: Option<Source>,
    sink: Option<Sink>,
    source_ended: Sender<SourceEnd>,
    sink_broke: Sender<io::Error>,
}

impl Side {
    fn start(&mut self, port: &mut Port<'_>, id: LocalId) -> Result<(), Error> {
        assert_eq!(id, ID);
        if let Some(sink) = self.sink.take() {
            port.attach(id, Stream::Data, sink);
        }
        let Some(source) = self.source.take() else { return Ok(()) };
        let told = self.source_ended.clone();
        port.session().start_source(id, source, None, move |session, end| {
            if let SourceEnd::Eof = end {
                session.call(|connection, out| connection.eof(id, out)).unwrap();
            }
            let _ = told.send(end);
        })
    }
}

impl Program for Side {
    fn event(&mut self, port: &mut Port<'_>, event: Event) -> Result<Flow, Error> {
        match event {
            Event::OpenRequested { id, grant, .. } => {
                port.accept(id, grant)?;
                self.start(port, id)?;
            }
            Event::Opened { id, .. } => self.start(port, id)?,
            _ => {}
        }
        Ok(Flow::On)
    }

    fn sink_broke(
        &mut self,
        _: &mut Port<'_>,
        id: LocalId,
        stream: Stream,
        why: io::Error,
    ) -> Flow {
        assert_eq!((id, stream), (ID, Stream::Data));
        self.sink_broke.send(why).unwrap();
        Flow::On
    }
}

struct Running {
    session: Session,
    thread: JoinHandle<Result<(), Error>>,
    source_ended: Receiver<SourceEnd>,
    sink_broke: Receiver<io::Error>,
}

fn run(link: Link, connection: Connection, source: Option<Source>, sink: Option<Sink>) -> Running {
    let (source_told, source_ended) = channel();
    let (sink_told, sink_broke) = channel();
    let side = Side { source, sink, source_ended: source_told, sink_broke: sink_told };
    let plan = Plan { workers: 0, rekey: RekeyLimit::default() };
    let tune = Tune::new(Buffers::default(), Rule::bulk(WINDOW));
    let (session, rx) = link.into_session(connection, plan, tune, None, side).unwrap();
    let thread = spawn(move || rx.run().2);
    Running { session, thread, source_ended, sink_broke }
}

/// A client that sends, a server that takes.
struct Pair {
    near: Running,
    far: Running,
    wires: [UnixStream; 2],
}

impl Pair {
    fn new(source: Option<Source>, sink: Sink) -> Self {
        let (wires, [(ours, connection), (theirs, served)]) = logged_in();
        let near = run(ours, connection, source, None);
        let far = run(theirs, served, None, Some(sink));
        near.session.open_session(Rule::bulk(WINDOW)).unwrap();
        Self { near, far, wires }
    }

    fn cut(&self) {
        for wire in &self.wires {
            let _ = wire.shutdown(std::net::Shutdown::Both);
        }
    }

    fn end(self) {
        self.cut();
        for side in [self.near, self.far] {
            assert!(side.thread.join().unwrap().is_err(), "the wire was cut");
        }
    }
}

/// Many times the window: credit of empty reads and of short ones comes back.
#[test]
fn what_is_produced_arrives_in_order_however_it_is_made_and_taken() {
    const LENGTH: usize = 3 << 20;
    let (sink, mut watch) = picky(usize::MAX);
    let pair = Pair::new(Some(Pattern::of(LENGTH).source()), sink);
    let mut leave = watch.leave.take().unwrap();
    let feeding = spawn(move || {
        for n in 0..LENGTH.div_ceil(PORTION) {
            leave.write_all(&[0]).unwrap();
            if n % 200 == 0 {
                sleep(Duration::from_millis(2));
            }
        }
        leave
    });
    until("the end", || watch.ends() > 0);
    watch.assert_is_start_of(&stream(LENGTH));
    assert_eq!(watch.bytes(), LENGTH, "all, before the end");
    let ended = pair.near.source_ended.recv_timeout(PATIENCE).unwrap();
    assert!(matches!(ended, SourceEnd::Eof), "{ended:?}");
    drop(feeding.join().unwrap());
    pair.end();
    assert_eq!(watch.ends(), 1, "by EOF, and not again when the connection ended");
}

#[test]
fn a_consumer_without_room_stops_the_producer() {
    let (sink, mut watch) = picky(usize::MAX);
    let pair = Pair::new(Some(Pattern::of(usize::MAX).source()), sink);
    until("a full window", || pair.near.session.sent() >= u64::from(WINDOW));
    assert_eq!(watch.bytes(), 0);
    sleep(Duration::from_millis(50));
    assert_eq!(pair.near.session.sent(), u64::from(WINDOW), "beyond the window");
    watch.allow(PORTION);
    until("one portion", || watch.bytes() == PORTION);
    watch.allow(2 * WINDOW as usize);
    until("two windows", || watch.bytes() >= 2 * WINDOW as usize);
    pair.cut();
    // What had arrived is still handed over; the connection ends after it.
    watch.allow(2 * WINDOW as usize);
    pair.end();
    watch.assert_is_start_of(&stream(5 * WINDOW as usize));
}

#[test]
fn a_consumer_is_told_of_a_close_once_after_the_last_byte() {
    let (sink, mut watch) = picky(usize::MAX);
    let pair = Pair::new(Some(Pattern::of(100_000).source()), sink);
    until("all to be sent", || pair.near.session.sent() == 100_000);
    pair.near.source_ended.recv_timeout(PATIENCE).unwrap();
    pair.near.session.call(|connection, out| connection.close(ID, out)).unwrap();
    sleep(Duration::from_millis(50));
    assert_eq!(watch.ends(), 0, "what arrived before the close is still to be taken");
    watch.allow(100_000);
    until("the end", || watch.ends() > 0);
    assert_eq!(watch.bytes(), 100_000);
    pair.end();
    assert_eq!(watch.ends(), 1);
}

/// What a command has left behind may hold its output for ever, and the connection goes on.
#[test]
fn a_source_without_input_ends_with_its_channel() {
    let (silent, mut held) = io::pipe().unwrap();
    held.write_all(b"x").unwrap();
    let (sink, mut watch) = picky(usize::MAX);
    watch.allow(PORTION);
    let pair = Pair::new(Some(Source::Fd(OwnedFd::from(silent).into())), sink);
    until("it to run", || pair.near.session.sent() == 1);
    pair.near.session.call(|connection, out| connection.close(ID, out)).unwrap();
    let end = pair.near.source_ended.recv_timeout(PATIENCE).unwrap();
    assert!(matches!(end, SourceEnd::Unwanted), "{end:?}");
    pair.end();
}

#[test]
fn a_consumer_is_told_of_a_lost_connection_once_after_the_last_byte() {
    let (sink, mut watch) = picky(usize::MAX);
    let pair = Pair::new(Some(Pattern::of(usize::MAX).source()), sink);
    until("a full window", || pair.near.session.sent() >= u64::from(WINDOW));
    // Sent is not arrived: what crossed is what the far side reports.
    sleep(Duration::from_millis(50));
    pair.cut();
    sleep(Duration::from_millis(50));
    assert_eq!((watch.bytes(), watch.ends()), (0, 0));
    watch.allow(WINDOW as usize);
    assert!(pair.far.thread.join().unwrap().is_err());
    assert_eq!((watch.bytes(), watch.ends()), (WINDOW as usize, 1));
    watch.assert_is_start_of(&stream(WINDOW as usize));
    let ended = pair.near.source_ended.recv_timeout(PATIENCE).unwrap();
    assert!(matches!(ended, SourceEnd::Unwanted | SourceEnd::Lost(_)), "{ended:?}");
}

/// A command that ignores the hang-up and reads nothing must not keep its session for ever.
#[test]
fn a_consumer_that_takes_nothing_is_dropped_after_its_time_once_the_connection_is_over() {
    const LINGER: Duration = Duration::from_secs(2);
    let (sink, mut watch) = picky(usize::MAX);
    let pair = Pair::new(Some(Pattern::of(usize::MAX).source()), sink.lingering(LINGER));
    until("a full window", || pair.near.session.sent() >= u64::from(WINDOW));
    sleep(LINGER + LINGER / 4);
    watch.allow(PORTION);
    until("that it is not dropped before", || watch.bytes() == PORTION);
    pair.cut();
    // It lingers while something is taken.
    for portion in 2..5 {
        // Longer than that in all.
        sleep(LINGER * 2 / 5);
        watch.allow(PORTION);
        until("one more portion", || watch.bytes() == portion * PORTION);
    }
    assert_eq!(watch.ends(), 0);
    assert!(pair.far.thread.join().unwrap().is_err());
    assert_eq!((watch.bytes(), watch.ends()), (4 * PORTION, 1));
}

/// One that was fast before, so that much is on its way to it in the kernel, and reads a little now
/// and then: it gets everything.
#[test]
fn a_slow_reader_of_a_pipe_is_not_dropped_while_it_reads() {
    const LINGER: Duration = Duration::from_secs(1);
    const FAST: usize = 32 << 20;
    let (mut reader, writer) = io::pipe().unwrap();
    let sink = Sink::fd(OwnedFd::from(writer).into()).lingering(LINGER);
    let pair = Pair::new(Some(Pattern::of(usize::MAX).source()), sink);
    let mut area = vec![0; FAST];
    reader.read_exact(&mut area).unwrap();
    let moved = || {
        let before = pair.near.session.sent();
        sleep(Duration::from_millis(300));
        pair.near.session.sent() > before
    };
    until("that nothing moves", || !moved());
    let sent = pair.near.session.sent();
    pair.cut();
    for _ in 0..6 {
        sleep(LINGER / 2);
        reader.read_exact(&mut area[..1000]).unwrap();
    }
    area.clear();
    reader.read_to_end(&mut area).unwrap();
    assert_eq!((FAST + 6000 + area.len()) as u64, sent);
    assert!(pair.far.thread.join().unwrap().is_err());
}

/// C7: what nobody takes any more is credited all the same.
#[test]
fn a_consumer_that_fails_is_told_of_its_end_once_and_the_peer_goes_on() {
    let (sink, mut watch) = picky(PORTION);
    watch.allow(PORTION);
    let pair = Pair::new(Some(Pattern::of(usize::MAX).source()), sink);
    let why = pair.far.sink_broke.recv_timeout(PATIENCE).unwrap();
    assert_eq!(why.to_string(), "seen enough");
    until("the rest to be dropped", || pair.near.session.sent() > 4 * u64::from(WINDOW));
    assert_eq!((watch.bytes(), watch.ends()), (PORTION, 1));
    let again = pair.far.sink_broke.try_recv();
    assert!(again.is_err(), "told once: {again:?}");
    pair.end();
    assert_eq!(watch.ends(), 1);
}

/// The channel stays open: its program decides what a failure means.
#[test]
fn a_producer_that_fails_ends_its_source_with_its_own_words() {
    let (sink, mut watch) = picky(usize::MAX);
    watch.allow(10_000);
    let source = Pattern { fails: true, ..Pattern::of(10_000) }.source();
    let pair = Pair::new(Some(source), sink);
    let ended = pair.near.source_ended.recv_timeout(PATIENCE).unwrap();
    assert!(
        matches!(&ended, SourceEnd::Failed(why) if why.to_string() == "no more of it"),
        "{ended:?}"
    );
    until("what was made before", || watch.bytes() == 10_000);
    assert_eq!(watch.ends(), 0, "no EOF was sent");
    pair.near.session.call(|connection, out| connection.keepalive(out)).unwrap();
    pair.end();
    assert_eq!(watch.ends(), 1);
}

/// A producer that has nothing yet: no credit is held while it waits.
#[test]
fn a_producer_that_waits_holds_no_credit() {
    struct Gate(Receiver<()>, bool);
    impl Producer for Gate {
        fn wait(&mut self) -> bool {
            self.1 = self.0.recv().is_ok();
            self.1
        }

        fn fill(&mut self, areas: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
            areas[0][0] = 1;
            Ok(1)
        }
    }
    let (open, gate) = channel();
    let (sink, mut watch) = picky(usize::MAX);
    watch.allow(4 * WINDOW as usize);
    let pair = Pair::new(Some(Source::Producer(Box::new(Gate(gate, false)))), sink);
    open.send(()).unwrap();
    until("the first byte", || watch.bytes() == 1);
    // Another stream of the channel gets the whole window meanwhile.
    let (told, ended) = channel();
    let other = Pattern::of(2 * WINDOW as usize).source();
    let session = pair.near.session.clone();
    session.start_source(ID, other, None, move |_, end| told.send(end).unwrap()).unwrap();
    let end = ended.recv_timeout(PATIENCE).unwrap();
    assert!(matches!(end, SourceEnd::Eof), "{end:?}");
    drop(open);
    let end = pair.near.source_ended.recv_timeout(PATIENCE).unwrap();
    assert!(matches!(end, SourceEnd::Eof), "{end:?}");
    until("all of both", || watch.bytes() == 2 * WINDOW as usize + 1);
    pair.end();
}
