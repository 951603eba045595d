//! How a connection ends: whatever came before the end counts, and what became of it is told.
#![allow(clippy::unwrap_used, reason = "a test")]

mod ends;

use ends::logged_in;
use engine::{Buffers, Error, Flow, Link, Plan, Port, Program, Rx, Session, Sink, Stream, Tune};
use proto::channel::LocalId;
use proto::window::Rule;
use proto::{Connection, Effect, Event, Outbox, RekeyLimit};
use std::fs::File;
use std::io::{self, PipeReader, PipeWriter, Write};
use std::os::fd::OwnedFd;
use wire::{Writer, msg};

/// What a program was told, in order.
#[derive(Debug, PartialEq, Eq)]
enum Told {
    Broke(io::ErrorKind),
    Closed,
}

/// More than a pipe holds.
const WINDOW: u32 = 1 << 20;

/// Takes a channel's data, and leaves when it is closed.
#[derive(Default)]
struct Taker {
    sink: Option<Sink>,
    /// Goes away once nothing more is received.
    reader: Option<PipeReader>,
    told: Vec<Told>,
}

impl Program for Taker {
    fn event(&mut self, port: &mut Port<'_>, event: Event) -> Result<Flow, Error> {
        match event {
            Event::Opened { id, .. } => {
                port.attach(id, Stream::Data, self.sink.take().unwrap());
            }
            Event::Closed { .. } => {
                self.told.push(Told::Closed);
                return Ok(Flow::Finish);
            }
            _ => {}
        }
        Ok(Flow::On)
    }

    fn sink_broke(&mut self, _: &mut Port<'_>, _: LocalId, stream: Stream, why: io::Error) -> Flow {
        assert_eq!(stream, Stream::Data);
        self.told.push(Told::Broke(why.kind()));
        Flow::On
    }

    fn over(&mut self) {
        self.reader = None;
    }
}

/// Says all of this at once.
fn say(link: &mut Link, messages: Vec<Vec<u8>>) {
    let mut outbox = Outbox::new();
    outbox.effects.extend(messages.into_iter().map(Effect::Send));
    link.carry_out(&mut outbox, None).unwrap();
}

/// A channel that ends as soon as so many packets of data were sent on it, all in one go.
fn short_channel(packets: usize) -> Vec<Vec<u8>> {
    let opened = Writer::message(msg::CHANNEL_OPEN_CONFIRMATION)
        .u32(0)
        .u32(0)
        .u32(WINDOW)
        .u32(32 << 10)
        .take();
    let data = Writer::message(msg::CHANNEL_DATA).u32(0).string([7; 20_000]).take();
    let data = std::iter::repeat_n(data, packets);
    let end = [msg::CHANNEL_EOF, msg::CHANNEL_CLOSE];
    let end = end.map(|number| Writer::message(number).u32(0).take());
    [opened].into_iter().chain(data).chain(end).collect()
}

fn start(workers: usize, link: Link, connection: Connection, taker: Taker) -> (Session, Rx<Taker>) {
    let plan = Plan { workers, rekey: RekeyLimit::default() };
    let tune = Tune::new(Buffers::default(), Rule::bulk(WINDOW));
    link.into_session(connection, plan, tune, None, taker).unwrap()
}

/// What a program hears of a channel that the peer opens, fills and closes at once.
fn told(workers: usize, packets: usize, sink: OwnedFd, reader: Option<PipeReader>) -> Vec<Told> {
    let (_wires, [(ours, connection), (mut theirs, _)]) = logged_in();
    let taker = Taker { sink: Some(Sink::fd(sink.into())), reader, told: Vec::new() };
    let (session, rx) = start(workers, ours, connection, taker);
    session.open_session(Rule::bulk(WINDOW)).unwrap();
    say(&mut theirs, short_channel(packets));
    let (taker, _, end) = rx.run();
    assert!(end.is_ok(), "{end:?}");
    taker.told
}

#[test]
fn a_write_error_is_told_before_the_close_that_comes_with_the_data() {
    for workers in [0, 1] {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let told = told(workers, 1, full.into(), None);
        assert_eq!(told, [Told::Broke(io::ErrorKind::StorageFull), Told::Closed], "{workers}");
    }
}

/// A pipe that takes nothing, and is as large as it may become.
fn full_pipe() -> (PipeReader, PipeWriter) {
    let (reader, writer) = io::pipe().unwrap();
    let size = 1 << 20;
    rustix::pipe::fcntl_setpipe_size(&writer, size).unwrap();
    (&writer).write_all(&vec![0; size]).unwrap();
    (reader, writer)
}

/// More than a pipe holds: the rest is written when nothing more is received.
#[test]
fn a_write_error_after_the_end_is_told() {
    for workers in [0, 1] {
        let (reader, writer) = full_pipe();
        let told = told(workers, 10, writer.into(), Some(reader));
        assert_eq!(told, [Told::Closed, Told::Broke(io::ErrorKind::BrokenPipe)], "{workers}");
    }
}

/// It is there already when the connection's end is seen.
#[test]
fn what_the_peer_says_before_it_leaves_is_heard() {
    for workers in [0, 1] {
        let (_wires, [(ours, connection), (mut theirs, _)]) = logged_in();
        let (session, rx) = start(workers, ours, connection, Taker::default());
        session.open_session(Rule::bulk(WINDOW)).unwrap();
        let disconnect =
            Writer::message(msg::DISCONNECT).u32(11).string("enough").string("").take();
        say(&mut theirs, vec![disconnect]);
        theirs.fd().shutdown();
        let end = rx.run().2;
        assert!(matches!(&end, Err(Error::Disconnected(11, text)) if text == "enough"), "{end:?}");
    }
}

/// A peer that says why it leaves, and leaves what we sent unread.
#[test]
fn what_the_peer_said_is_heard_when_writing_fails() {
    for workers in [0, 1] {
        let (_wires, [(ours, connection), (mut theirs, _)]) = logged_in();
        let (session, rx) = start(workers, ours, connection, Taker::default());
        let disconnect =
            Writer::message(msg::DISCONNECT).u32(11).string("enough").string("").take();
        say(&mut theirs, vec![disconnect]);
        theirs.fd().shutdown();
        assert!(session.open_session(Rule::bulk(WINDOW)).is_err(), "who asks hears of it");
        let end = rx.run().2;
        assert!(matches!(&end, Err(Error::Disconnected(11, text)) if text == "enough"), "{end:?}");
    }
}

/// ... and one that says nothing: the failure itself is the reason.
#[test]
fn a_write_that_fails_is_the_reason_when_nothing_else_comes() {
    let (_wires, [(ours, connection), (theirs, _)]) = logged_in();
    let (session, rx) = start(0, ours, connection, Taker::default());
    theirs.fd().shutdown();
    session.open_session(Rule::bulk(WINDOW)).unwrap_err();
    let end = rx.run().2;
    assert!(matches!(&end, Err(Error::Local("write to the connection", _))), "{end:?}");
}

/// Bytes that are no packet, and data for nobody, in one slab with good data.
#[test]
fn data_before_what_ends_the_connection_is_written() {
    let stray = Writer::message(msg::CHANNEL_DATA).u32(99).string([7; 10]).take();
    for workers in [0, 1] {
        for (message, raw) in [(Some(stray.clone()), &[][..]), (None, &[0xff; 64][..])] {
            let (_wires, [(ours, connection), (mut theirs, _)]) = logged_in();
            let (mut reader, writer) = io::pipe().unwrap();
            let sink = Some(Sink::fd(OwnedFd::from(writer).into()));
            let taker = Taker { sink, ..Taker::default() };
            let (session, rx) = start(workers, ours, connection, taker);
            session.open_session(Rule::bulk(WINDOW)).unwrap();
            let opened_and_data = short_channel(1).into_iter().take(2);
            say(&mut theirs, opened_and_data.chain(message).collect());
            theirs.raw(raw);
            theirs.carry_out(&mut Outbox::new(), None).unwrap();
            let (taker, totals, end) = rx.run();
            assert!(matches!(end, Err(Error::Stray(99) | Error::Packet(_))), "{end:?}");
            assert_eq!(totals.written, 20_000);
            drop(taker);
            assert_eq!(io::copy(&mut reader, &mut io::sink()).unwrap(), 20_000);
        }
    }
}
