//! Every message in every state of a channel, against what RFC 4254 section 5 says in words.

use super::super::{Half, Step};
use super::*;

/// A state of channel 0, and how to get there.
#[derive(Debug, Clone, Copy, PartialEq)]
enum State {
    Unknown,
    Opening,
    Open(Half, Half),
}

/// What becomes of a message.
#[derive(Debug, PartialEq)]
enum Fate {
    Delivered,
    Dropped,
    Disconnects,
}

fn states() -> Vec<State> {
    let halves = Half::ALL.iter().flat_map(|sent| Half::ALL.map(|got| State::Open(*sent, got)));
    let gone = State::Open(Half::Closed, Half::Closed);
    [State::Unknown, State::Opening].into_iter().chain(halves.filter(|s| *s != gone)).collect()
}

fn side_in(state: State) -> Side {
    let id = LocalId(0);
    let mut side = Side::client();
    let State::Open(sent, received) = state else {
        if state == State::Opening {
            let _ = side.channels.ask_for(Purpose::Session, WINDOW, PACKET, &mut side.draft);
        }
        return side;
    };
    let (mut side, _) = Side::client().with_opened();
    side.channels.request(id, &Request::Shell, true, &mut side.draft);
    match received {
        Half::Open => {}
        Half::Eof => drop(side.gets(&short(msg::CHANNEL_EOF, id)).unwrap()),
        Half::Closed => drop(side.gets(&short(msg::CHANNEL_CLOSE, id)).unwrap()),
    }
    match sent {
        Half::Open => {}
        Half::Eof => side.channels.eof(id, &mut side.draft),
        Half::Closed => side.channels.close(id, &mut side.draft),
    }
    assert_eq!(side.channels.halves(id), Some((sent, received)));
    side
}

fn message(number: u8) -> Vec<u8> {
    let id = LocalId(0);
    match number {
        msg::CHANNEL_OPEN_CONFIRMATION => confirmation(id, PACKET),
        msg::CHANNEL_OPEN_FAILURE => {
            super::super::msg::OpenFailure { recipient: 0, reason: 1, text: String::new() }.write()
        }
        msg::CHANNEL_WINDOW_ADJUST => super::super::msg::adjust(0, 1),
        msg::CHANNEL_DATA => data(id, b"x"),
        msg::CHANNEL_EXTENDED_DATA => extended(id, 1, b"x"),
        msg::CHANNEL_REQUEST => Request::ExitStatus(0).write(0, false),
        number => short(number, id),
    }
}

/// The rules, one by one.
fn expected(state: State, number: u8) -> Fate {
    let answers_open = matches!(number, msg::CHANNEL_OPEN_CONFIRMATION | msg::CHANNEL_OPEN_FAILURE);
    let forgiven =
        matches!(number, msg::CHANNEL_WINDOW_ADJUST | msg::CHANNEL_SUCCESS | msg::CHANNEL_FAILURE);
    let is_data = matches!(number, msg::CHANNEL_DATA | msg::CHANNEL_EXTENDED_DATA);
    match state {
        State::Opening if answers_open => Fate::Delivered,
        _ if answers_open => Fate::Disconnects,
        State::Unknown | State::Opening if forgiven => Fate::Dropped,
        State::Unknown | State::Opening => Fate::Disconnects,
        State::Open(_, Half::Closed) if forgiven => Fate::Dropped,
        State::Open(_, Half::Closed) => Fate::Disconnects,
        State::Open(_, Half::Eof) if is_data => Fate::Disconnects,
        State::Open(_, Half::Eof) if number == msg::CHANNEL_EOF => Fate::Dropped,
        State::Open(Half::Closed, _) if number == msg::CHANNEL_CLOSE => Fate::Delivered,
        State::Open(Half::Closed, _) => Fate::Dropped,
        State::Open(..) => Fate::Delivered,
    }
}

#[test]
fn every_message_in_every_state_of_a_channel() {
    for state in states() {
        for number in msg::CHANNEL_OPEN_CONFIRMATION..=msg::CHANNEL_FAILURE {
            let mut side = side_in(state);
            let fate = match side.gets(&message(number)) {
                Err(_) => Fate::Disconnects,
                Ok(events) if events.is_empty() => Fate::Dropped,
                Ok(_) => Fate::Delivered,
            };
            let name = msg::name(number).unwrap();
            assert_eq!(fate, expected(state, number), "{name} in {state:?}");
        }
    }
}

#[test]
fn every_step_of_one_direction() {
    use Half::{Closed, Eof, Open};
    #[rustfmt::skip]
    let table = [
        //        Data        Talk        Eof        Close
        (Open,   [Some(Open), Some(Open), Some(Eof), Some(Closed)]),
        (Eof,    [None,       Some(Eof),  None,      Some(Closed)]),
        (Closed, [None,       None,       None,      None]),
    ];
    for (half, expect) in table {
        assert_eq!(Step::ALL.map(|step| half.after(step)), expect, "{half:?}");
    }
}

/// A call of ours, and what our half must be for it to send anything.
type Call = (fn(&mut Side), fn(Half) -> bool);

/// Calls of ours in every state: nothing leaves after CLOSE, nothing but requests after EOF.
#[test]
fn our_calls_in_every_state_send_only_what_may_follow() {
    let id = LocalId(0);
    let calls: [Call; 5] = [
        (|s| s.channels.eof(LocalId(0), &mut s.draft), |sent| sent == Half::Open),
        (|s| s.channels.close(LocalId(0), &mut s.draft), |sent| sent != Half::Closed),
        (|s| s.channels.credit(LocalId(0), 1, &mut s.draft), |sent| sent != Half::Closed),
        (
            |s| s.channels.request(LocalId(0), &Request::Shell, true, &mut s.draft),
            |sent| sent != Half::Closed,
        ),
        (|s| s.channels.reply(LocalId(0), true, &mut s.draft), |_| false),
    ];
    for state in states() {
        for (n, (call, may)) in calls.iter().enumerate() {
            let mut side = side_in(state);
            side.sent();
            call(&mut side);
            let expect = matches!(state, State::Open(sent, _) if may(sent));
            assert_eq!(!side.sent().is_empty(), expect, "call {n} in {state:?}");
        }
    }
    let mut side = side_in(State::Open(Half::Open, Half::Closed));
    side.channels.close(id, &mut side.draft);
    assert_eq!(side.channels.len(), 0);
}
