//! Peers that owe an answer and never give it.
#![allow(clippy::unwrap_used, reason = "a test")]

mod ends;

use ends::logged_in;
use engine::{Alive, Buffers, Error, Flow, Link, Plan, Port, Program, Stream, Tune};
use proto::channel::LocalId;
use proto::window::Rule;
use proto::{Connection, Effect, Event, Outbox, RekeyLimit};
use std::time::{Duration, Instant};
use wire::msg;

/// Long enough for both sides to run, short enough for a test.
const LIMIT: Duration = Duration::from_millis(300);

struct Idle;

impl Program for Idle {
    fn event(&mut self, _: &mut Port<'_>, _: Event) -> Result<Flow, Error> {
        Ok(Flow::On)
    }

    fn sink_broke(&mut self, _: &mut Port<'_>, _: LocalId, _: Stream, _: std::io::Error) -> Flow {
        Flow::On
    }
}

/// Has much to say when the peer says anything, and leaves.
struct LastWords;

impl Program for LastWords {
    fn event(&mut self, port: &mut Port<'_>, _: Event) -> Result<Flow, Error> {
        let words = [0; 32 << 10];
        for _ in 0..100 {
            port.call(|connection, out| connection.global_request("x@y", &words, false, out))?;
        }
        Ok(Flow::Finish)
    }

    fn sink_broke(&mut self, _: &mut Port<'_>, _: LocalId, _: Stream, _: std::io::Error) -> Flow {
        Flow::On
    }
}

/// Asks for new keys; how the session ends, and after how long.
fn rekey(link: Link, connection: Connection) -> (Result<(), Error>, Duration) {
    let plan = Plan { workers: 0, rekey: RekeyLimit::default() };
    let tune = Tune::new(Buffers::default(), Rule::bulk(1 << 20));
    let (session, rx) = link.into_session(connection, plan, tune, None, Idle).unwrap();
    let began = Instant::now();
    session.call(|connection, out| connection.rekey(out)).unwrap();
    let (_, _, end) = rx.exchange_within(LIMIT).run();
    (end, began.elapsed())
}

/// What the peer reads last: the reason code of DISCONNECT.
fn goodbye(link: &mut Link) -> u8 {
    let deadline = Some(Instant::now() + Duration::from_secs(10));
    loop {
        let (_, message) = link.message(deadline).unwrap();
        if let [msg::DISCONNECT, _, _, _, code, ..] = message[..] {
            return code;
        }
    }
}

#[test]
fn a_peer_that_never_answers_our_kexinit_is_left() {
    let (_wires, [(ours, connection), (mut theirs, _)]) = logged_in();
    let (end, took) = rekey(ours, connection);
    assert!(matches!(end, Err(Error::Unfinished(LIMIT))), "{end:?}");
    assert!(took >= LIMIT, "{took:?}");
    assert_eq!(goodbye(&mut theirs), 3, "SSH_DISCONNECT_KEY_EXCHANGE_FAILED");
}

/// Its data is legal until its own KEXINIT (B2), and shows that it is alive: that is no answer.
#[test]
fn a_peer_that_talks_on_and_never_answers_our_kexinit_is_left() {
    let (_wires, [(ours, connection), (mut theirs, _)]) = logged_in();
    let talking = std::thread::spawn(move || {
        let mut outbox = Outbox::new();
        let ignore = [msg::IGNORE, 0, 0, 0, 0];
        loop {
            outbox.effects.push(Effect::Send(ignore.to_vec()));
            if theirs.carry_out(&mut outbox, None).is_err() {
                return;
            }
            std::thread::sleep(LIMIT / 50);
        }
    });
    let (end, _) = rekey(ours, connection);
    assert!(matches!(end, Err(Error::Unfinished(LIMIT))), "{end:?}");
    talking.join().unwrap();
}

/// The receiving thread waits already when a source wants new keys.
#[test]
fn a_peer_that_never_answers_a_kexinit_of_another_thread_is_left() {
    let (_wires, [(ours, connection), _theirs]) = logged_in();
    let plan = Plan { workers: 0, rekey: RekeyLimit::default() };
    let tune = Tune::new(Buffers::default(), Rule::bulk(1 << 20));
    let (session, rx) = ours.into_session(connection, plan, tune, None, Idle).unwrap();
    let (told, ended) = std::sync::mpsc::channel();
    std::thread::spawn(move || told.send(rx.exchange_within(LIMIT).run().2));
    std::thread::sleep(LIMIT / 3);
    session.call(|connection, out| connection.rekey(out)).unwrap();
    let end = ended.recv_timeout(Duration::from_secs(30)).expect("it still waits");
    assert!(matches!(end, Err(Error::Unfinished(LIMIT))), "{end:?}");
}

#[test]
fn a_peer_that_does_not_read_our_last_words_does_not_keep_us() {
    let (_wires, [(ours, connection), (mut theirs, _)]) = logged_in();
    let debug = wire::Writer::message(msg::DEBUG).bool(false).string("").string("").take();
    let mut outbox = Outbox::new();
    outbox.effects.push(Effect::Send(debug));
    theirs.carry_out(&mut outbox, None).unwrap();
    let plan = Plan { workers: 0, rekey: RekeyLimit::default() };
    let tune = Tune::new(Buffers::default(), Rule::bulk(1 << 20));
    let (_session, rx) = ours.into_session(connection, plan, tune, None, LastWords).unwrap();
    let (told, ended) = std::sync::mpsc::channel();
    std::thread::spawn(move || told.send(rx.run().2));
    let end = ended.recv_timeout(Duration::from_secs(30)).expect("it still waits");
    assert!(end.is_ok(), "{end:?}");
}

/// A process that was stopped, or whose machine slept: many intervals are over when it goes on, and
/// the peer has been asked nothing yet.
#[test]
fn a_peer_has_an_interval_to_answer_each_question() {
    let ([_, wire], [(ours, connection), (mut theirs, _)]) = logged_in();
    let alive = Alive { interval: LIMIT, count: 2 };
    let plan = Plan { workers: 0, rekey: RekeyLimit::default() };
    let tune = Tune::new(Buffers::default(), Rule::bulk(1 << 20));
    let (_session, rx) = ours.into_session(connection, plan, tune, Some(alive), Idle).unwrap();
    let answering = std::thread::spawn(move || {
        for _ in 0..3 {
            let (_, question) = theirs.message(None).unwrap();
            assert_eq!(question.first(), Some(&msg::GLOBAL_REQUEST));
            std::thread::sleep(LIMIT / 10);
            let mut outbox = Outbox::new();
            outbox.effects.push(Effect::Send(vec![msg::REQUEST_FAILURE]));
            theirs.carry_out(&mut outbox, None).unwrap();
        }
        wire.shutdown(std::net::Shutdown::Both).unwrap();
    });
    std::thread::sleep(LIMIT * 4);
    let end = rx.run().2;
    // It is left when it has left, and not before.
    assert!(matches!(end, Err(Error::Closed | Error::Local(..))), "{end:?}");
    answering.join().unwrap();
}

/// The same in the middle of a key exchange: the peer's answer is here.
#[test]
fn a_peer_that_answered_our_kexinit_while_we_were_stopped_is_not_left() {
    let ([_, wire], [(ours, connection), (theirs, peer)]) = logged_in();
    let plan = || Plan { workers: 0, rekey: RekeyLimit::default() };
    let tune = || Tune::new(Buffers::default(), Rule::bulk(1 << 20));
    let (_peer, rx) = theirs.into_session(peer, plan(), tune(), None, Idle).unwrap();
    let answering = std::thread::spawn(move || rx.run().2);
    let (session, rx) = ours.into_session(connection, plan(), tune(), None, Idle).unwrap();
    session.call(|connection, out| connection.rekey(out)).unwrap();
    std::thread::sleep(LIMIT * 2);
    let ours = std::thread::spawn(move || rx.exchange_within(LIMIT).run().2);
    std::thread::sleep(LIMIT * 2);
    wire.shutdown(std::net::Shutdown::Both).unwrap();
    let end = ours.join().unwrap();
    assert!(matches!(end, Err(Error::Closed | Error::Local(..))), "{end:?}");
    answering.join().unwrap().unwrap_err();
}

/// B2, where data of routed channels is taken: it is legal until its sender's KEXINIT.
#[test]
fn b2_data_behind_the_peers_kexinit_ends_the_session() {
    let data = wire::Writer::message(msg::CHANNEL_DATA).u32(0).string("late").take();
    for (early, want) in [(true, "which is not open"), (false, "94")] {
        let (_wires, [(ours, connection), (mut theirs, mut peer)]) = logged_in();
        let plan = Plan { workers: 0, rekey: RekeyLimit::default() };
        let tune = Tune::new(Buffers::default(), Rule::bulk(1 << 20));
        let (_session, rx) = ours.into_session(connection, plan, tune, None, Idle).unwrap();
        let mut outbox = Outbox::new();
        peer.rekey(&mut outbox).unwrap();
        let at = if early { 0 } else { outbox.effects.len() };
        outbox.effects.insert(at, Effect::Send(data.clone()));
        theirs.carry_out(&mut outbox, None).unwrap();
        let error = rx.run().2.unwrap_err().to_string();
        assert!(error.contains(want), "{early}: {error}");
    }
}
