//! Invariants C1 to C7, by name.

use super::*;
use crate::window::{Overflow, Send};

/// Invariant C1: data beyond the window ends the connection.
#[test]
fn c1_window_overrun_by_one_byte_disconnects() {
    let (mut s, id) = Side::server().with_session();
    let all = vec![0; WINDOW as usize];
    s.gets(&data(id, &all)).unwrap();
    let error = s.gets(&data(id, b"x")).unwrap_err();
    assert_eq!(error.to_string(), "peer sent 1 bytes more than a channel's window allows");
    assert_eq!(error.disconnect_code(), msg::Disconnect::ProtocolError);
}

/// Invariant C1: extended data counts like plain data.
#[test]
fn c1_extended_data_shares_the_window() {
    let (mut c, id) = Side::client().with_opened();
    c.gets(&extended(id, 1, &vec![0; WINDOW as usize])).unwrap();
    assert!(c.gets(&data(id, b"x")).is_err());
}

/// Invariant C1: a grant beyond 2^32 - 1 ends the connection.
#[test]
fn c1_window_adjust_overflow_disconnects() {
    let (mut c, id) = Side::client().with_opened();
    let mut send = Send::new(WINDOW);
    let adjust = Writer::message(msg::CHANNEL_WINDOW_ADJUST).u32(id.0).u32(u32::MAX).take();
    let events = c.gets(&adjust).unwrap();
    let [Event::Adjusted { credit, .. }] = events[..] else { panic!("{events:?}") };
    assert_eq!(send.add(credit), Err(Overflow));
    assert_eq!(Error::from(Overflow).disconnect_code(), msg::Disconnect::ProtocolError);
}

/// Invariant C1: credit given is credit had, no more.
#[test]
fn c1_credited_bytes_may_be_sent_again_and_no_others() {
    let (mut s, id) = Side::server().with_session();
    s.gets(&data(id, &vec![0; WINDOW as usize])).unwrap();
    s.channels.credit(id, 10, &mut s.draft);
    assert_eq!(s.sent_numbers(), [msg::CHANNEL_WINDOW_ADJUST]);
    s.gets(&data(id, &[0; 10])).unwrap();
    assert!(s.gets(&data(id, &[0; 1])).is_err());
}

/// Invariant C2, both ways.
#[test]
fn c2_a_maximum_packet_of_zero_is_rejected() {
    let mut s = Side::server();
    assert!(s.gets(&open("session", 1, WINDOW, 0)).unwrap().is_empty());
    assert_eq!(s.sent_numbers(), [msg::CHANNEL_OPEN_FAILURE]);
    assert_eq!(s.channels.len(), 0);
    let mut c = Side::client();
    let id = c.channels.ask_for(Purpose::Session, WINDOW, PACKET, &mut c.draft).unwrap();
    assert!(c.gets(&confirmation(id, 0)).is_err());
}

/// Invariant C3: unknown, and known to one side only.
#[test]
fn c3_nothing_is_delivered_to_unknown_or_half_open_channels() {
    let mut s = Side::server();
    assert!(s.gets(&data(LocalId(0), b"x")).is_err());
    let mut s = Side::server();
    s.gets(&open("session", 1, WINDOW, PACKET)).unwrap();
    assert!(s.gets(&data(LocalId(0), b"")).is_err(), "the server has not accepted");
    let mut c = Side::client();
    let id = c.channels.ask_for(Purpose::Session, WINDOW, PACKET, &mut c.draft).unwrap();
    assert!(c.gets(&data(id, b"x")).is_err(), "the peer has not confirmed");
}

/// Invariant C3: after the peer's EOF or CLOSE, and after ours.
#[test]
fn c3_nothing_is_delivered_to_closed_channels() {
    let (mut s, id) = Side::server().with_session();
    s.gets(&short(msg::CHANNEL_EOF, id)).unwrap();
    assert!(s.gets(&data(id, b"x")).is_err(), "data after EOF");
    let (mut s, id) = Side::server().with_session();
    s.gets(&short(msg::CHANNEL_CLOSE, id)).unwrap();
    assert!(s.gets(&short(msg::CHANNEL_CLOSE, id)).is_err(), "CLOSE after CLOSE");
    let (mut s, id) = Side::server().with_session();
    s.channels.close(id, &mut s.draft);
    for late in [data(id, b"x"), Request::Shell.write(id.0, true), short(msg::CHANNEL_EOF, id)] {
        assert!(s.gets(&late).unwrap().is_empty(), "on its way when we closed: legal, dropped");
    }
    assert_eq!(s.sent_numbers(), [msg::CHANNEL_CLOSE], "nothing follows our CLOSE");
}

/// Invariant C4: the cap holds for every kind and state.
#[test]
fn c4_the_cap_counts_channels_that_are_only_asked_for_or_half_closed() {
    let mut s = Side::new(Role::Server, Limits::server(3));
    for sender in 0..3 {
        s.gets(&open("session", sender, WINDOW, PACKET)).unwrap();
    }
    s.channels.accept(LocalId(0), WINDOW, PACKET, &mut s.draft);
    s.channels.accept(LocalId(1), WINDOW, PACKET, &mut s.draft);
    s.channels.close(LocalId(1), &mut s.draft);
    s.sent();
    assert!(s.gets(&open("session", 3, WINDOW, PACKET)).unwrap().is_empty());
    assert_eq!(s.sent_numbers(), [msg::CHANNEL_OPEN_FAILURE]);
    s.gets(&short(msg::CHANNEL_CLOSE, LocalId(1))).unwrap();
    assert_eq!(s.gets(&open("session", 4, WINDOW, PACKET)).unwrap().len(), 1);
}

/// Invariant C4: ten thousand channels come and go.
#[test]
fn c4_rejected_and_closed_channels_leave_no_memory() {
    let mut s = Side::server();
    for n in 0..10_000 {
        s.gets(&open("session", n, WINDOW, PACKET)).unwrap();
        let id = LocalId(n);
        if n % 2 == 0 {
            s.channels.reject(id, OpenReason::ConnectFailed, "", &mut s.draft);
        } else {
            s.channels.accept(id, WINDOW, PACKET, &mut s.draft);
            s.gets(&short(msg::CHANNEL_CLOSE, id)).unwrap();
            s.channels.close(id, &mut s.draft);
        }
        s.sent();
        assert_eq!(s.channels.len(), 0, "{n}");
    }
}

/// Invariant C5: and a server only what it offers.
#[test]
fn c5_a_client_accepts_only_channel_types_it_asked_for() {
    const KINDS: &[&str] =
        &["session", "x11", "forwarded-tcpip", "auth-agent@openssh.com", "direct-tcpip", ""];
    for kind in KINDS {
        let mut c = Side::client();
        assert!(c.gets(&open(kind, 1, WINDOW, PACKET)).unwrap().is_empty(), "{kind}");
        assert_eq!(c.sent_numbers(), [msg::CHANNEL_OPEN_FAILURE], "{kind}");
        assert_eq!(c.channels.len(), 0);
        let mut s = Side::server();
        let events = s.gets(&open(kind, 1, WINDOW, PACKET)).unwrap();
        assert_eq!(events.len(), usize::from(*kind == "session"), "{kind}");
    }
}

/// Invariant C5: a server does not run commands on a client.
#[test]
fn c5_a_client_refuses_requests_for_a_server() {
    let (mut c, id) = Side::client().with_opened();
    let size = super::super::TermSize::default();
    for request in [Request::Shell, Request::Exec(vec![]), Request::WindowChange(size)] {
        assert!(c.gets(&request.write(id.0, true)).unwrap().is_empty());
        assert_eq!(c.sent_numbers(), [msg::CHANNEL_FAILURE], "{}", request.name());
    }
}

/// Invariant C6: of channels, of the connection, of channels that are not there.
#[test]
fn c6_unsolicited_replies_are_dropped() {
    let (mut c, id) = Side::client().with_opened();
    for number in [msg::CHANNEL_SUCCESS, msg::CHANNEL_FAILURE] {
        assert!(c.gets(&short(number, id)).unwrap().is_empty());
        assert!(c.gets(&short(number, LocalId(99))).unwrap().is_empty());
    }
    assert!(c.gets(&[msg::REQUEST_SUCCESS, 1, 2, 3]).unwrap().is_empty());
    assert!(c.gets(&[msg::REQUEST_FAILURE]).unwrap().is_empty());
    c.channels.request(id, &Request::Shell, true, &mut c.draft);
    let reply = short(msg::CHANNEL_SUCCESS, id);
    assert_eq!(c.gets(&reply).unwrap(), [Event::Reply { id, ok: true }]);
    assert!(c.gets(&reply).unwrap().is_empty(), "one reply per request");
}

/// Invariant C7: or the peer, which counts it, would stop for good.
#[test]
fn c7_discarded_extended_data_is_credited() {
    let (mut c, id) = Side::client().with_opened();
    let (mut s, _) = Side::server().with_session();
    for (side, code) in [(&mut c, 2), (&mut s, 1)] {
        for _ in 0..100 {
            assert!(side.gets(&extended(id, code, &vec![0; 32 << 10])).unwrap().is_empty());
            let adjust = Writer::message(msg::CHANNEL_WINDOW_ADJUST).u32(70).u32(32 << 10).take();
            assert_eq!(side.sent(), [adjust]);
        }
    }
}
