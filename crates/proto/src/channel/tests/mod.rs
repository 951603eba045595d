//! Two channel tables back to back, without a transport between them.

mod ahead;
mod invariants;
mod random;
mod table;

use super::{Channels, Grant, Limits, LocalId, OpenReason, Purpose, Request};
use crate::draft::Draft;
use crate::{Error, Event, Role};
use wire::{Writer, msg};

const WINDOW: u32 = 1 << 20;
const PACKET: u32 = 32 << 10;

/// One side and what it drafted.
struct Side {
    channels: Channels,
    draft: Draft,
}

impl Side {
    fn new(role: Role, limits: Limits) -> Self {
        Self { channels: Channels::new(role, limits), draft: Draft::default() }
    }

    fn client() -> Self {
        Self::new(Role::Client, Limits::client())
    }

    fn server() -> Self {
        Self::new(Role::Server, Limits::server(10))
    }

    /// One message of the peer; what it led to.
    fn gets(&mut self, payload: &[u8]) -> Result<Vec<Event>, Error> {
        self.channels.handle(payload, &mut self.draft)?;
        Ok(std::mem::take(&mut self.draft.events))
    }

    /// What it sent since the last call.
    fn sent(&mut self) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.draft.messages)
    }

    /// The numbers of what it sent.
    fn sent_numbers(&mut self) -> Vec<u8> {
        self.sent().iter().map(|message| message[0]).collect()
    }

    /// A server with one open session, whose remote number is 70.
    fn with_session(mut self) -> (Self, LocalId) {
        self.gets(&open("session", 70, WINDOW, PACKET)).unwrap();
        let id = LocalId(0);
        self.channels.accept(id, WINDOW, PACKET, &mut self.draft);
        self.sent();
        (self, id)
    }

    /// A client with one open session, whose remote number is 70.
    fn with_opened(mut self) -> (Self, LocalId) {
        let id = self.channels.ask_for(Purpose::Session, WINDOW, PACKET, &mut self.draft).unwrap();
        self.gets(&confirmation(id, PACKET)).unwrap();
        self.sent();
        (self, id)
    }
}

fn open(kind: &str, sender: u32, window: u32, max_packet: u32) -> Vec<u8> {
    super::msg::Open { kind, sender, window, max_packet }.write()
}

fn confirmation(id: LocalId, max_packet: u32) -> Vec<u8> {
    super::msg::Confirmation { recipient: id.0, sender: 70, window: WINDOW, max_packet }.write()
}

fn data(id: LocalId, body: &[u8]) -> Vec<u8> {
    Writer::message(msg::CHANNEL_DATA).u32(id.0).string(body).take()
}

fn extended(id: LocalId, code: u32, body: &[u8]) -> Vec<u8> {
    Writer::message(msg::CHANNEL_EXTENDED_DATA).u32(id.0).u32(code).string(body).take()
}

fn short(number: u8, id: LocalId) -> Vec<u8> {
    super::msg::short(number, id.0)
}

/// Passes messages both ways until neither side says anything.
fn settle(a: &mut Side, b: &mut Side) -> (Vec<Event>, Vec<Event>) {
    let (mut to_a, mut to_b) = (Vec::new(), Vec::new());
    loop {
        let (from_a, from_b) = (a.sent(), b.sent());
        if from_a.is_empty() && from_b.is_empty() {
            return (to_a, to_b);
        }
        for message in from_a {
            to_b.extend(b.gets(&message).unwrap());
        }
        for message in from_b {
            to_a.extend(a.gets(&message).unwrap());
        }
    }
}

#[test]
fn a_session_runs_from_open_to_close_and_leaves_nothing() {
    let (mut c, mut s) = (Side::client(), Side::server());
    let id = c.channels.ask_for(Purpose::Session, WINDOW, PACKET, &mut c.draft).unwrap();
    let (_, events) = settle(&mut c, &mut s);
    let grant = Grant { remote: id.0, max_packet: PACKET, window: WINDOW };
    let peer = LocalId(0);
    let asked = Event::OpenRequested { id: peer, kind: "session".into(), grant };
    assert_eq!(events, [asked]);

    s.channels.accept(peer, WINDOW / 2, PACKET / 2, &mut s.draft);
    let grant = Grant { remote: 0, max_packet: PACKET / 2, window: WINDOW / 2 };
    assert_eq!(settle(&mut c, &mut s).0, [Event::Opened { id, grant }]);

    let request = Request::Exec(b"true".to_vec());
    c.channels.request(id, &request, true, &mut c.draft);
    let (_, events) = settle(&mut c, &mut s);
    assert_eq!(events, [Event::Request { id: peer, request, want_reply: true }]);
    s.channels.reply(peer, true, &mut s.draft);
    s.channels.request(peer, &Request::ExitStatus(3), false, &mut s.draft);
    s.channels.eof(peer, &mut s.draft);
    s.channels.close(peer, &mut s.draft);
    let (events, _) = settle(&mut c, &mut s);
    assert_eq!(
        events,
        [
            Event::Reply { id, ok: true },
            Event::ExitStatus { id, status: 3 },
            Event::Eof { id },
            Event::Closed { id },
        ]
    );
    c.channels.close(id, &mut c.draft);
    assert_eq!(settle(&mut c, &mut s).1, [Event::Closed { id: peer }]);
    assert_eq!((c.channels.len(), s.channels.len()), (0, 0));
}

/// RFC 4254 section 7.2, byte by byte; refused by a server that offers sessions alone.
#[test]
fn a_forward_names_where_to_and_from_where() {
    let (mut c, mut s) = (Side::client(), Side::server());
    let purpose = Purpose::DirectTcpip { host: "inside", port: 22 };
    let id = c.channels.ask_for(purpose, WINDOW, PACKET, &mut c.draft).unwrap();
    let mut expected = Writer::message(msg::CHANNEL_OPEN);
    expected.string("direct-tcpip").u32(id.0).u32(WINDOW).u32(PACKET);
    expected.string("inside").u32(22).string("127.0.0.1").u32(0);
    assert_eq!(c.draft.messages, [expected.finish()]);
    let (events, _) = settle(&mut c, &mut s);
    assert!(matches!(events[..], [Event::OpenFailed { reason: 3, .. }]), "{events:?}");
    assert_eq!((c.channels.len(), s.channels.len()), (0, 0));
}

#[test]
fn a_rejected_channel_leaves_nothing() {
    let (mut c, mut s) = (Side::client(), Side::server());
    let id = c.channels.ask_for(Purpose::Session, WINDOW, PACKET, &mut c.draft).unwrap();
    settle(&mut c, &mut s);
    let reason = OpenReason::AdministrativelyProhibited;
    s.channels.reject(LocalId(0), reason, "no", &mut s.draft);
    let (events, _) = settle(&mut c, &mut s);
    assert_eq!(events, [Event::OpenFailed { id, reason: 1, text: "no".into() }]);
    assert_eq!((c.channels.len(), s.channels.len()), (0, 0));
}

#[test]
fn replies_come_in_the_order_of_the_requests() {
    let (mut s, id) = Side::server().with_session();
    let exec = Request::Exec(b"a".to_vec()).write(id.0, true);
    let unknown = Writer::message(msg::CHANNEL_REQUEST).u32(id.0).string("x@y").bool(true).take();
    for message in [&exec, &unknown, &unknown, &exec] {
        s.gets(message).unwrap();
    }
    assert!(s.sent().is_empty(), "the refusals wait for the first answer");
    s.channels.reply(id, true, &mut s.draft);
    assert_eq!(
        s.sent_numbers(),
        [msg::CHANNEL_SUCCESS, msg::CHANNEL_FAILURE, msg::CHANNEL_FAILURE]
    );
    s.channels.reply(id, false, &mut s.draft);
    s.channels.reply(id, false, &mut s.draft);
    assert_eq!(s.sent_numbers(), [msg::CHANNEL_FAILURE], "one reply per request");
}

#[test]
fn requests_without_end_and_without_replies_are_refused() {
    let (mut s, id) = Side::server().with_session();
    let exec = Request::Shell.write(id.0, true);
    let refused = (0..1000).find_map(|_| s.gets(&exec).err());
    assert!(refused.unwrap().to_string().contains("too many requests"));
}

#[test]
fn keepalives_are_answered_as_openssh_answers_them() {
    let (mut s, id) = Side::server().with_session();
    let (mut c, _) = Side::client().with_opened();
    for side in [&mut s, &mut c] {
        side.gets(&Request::Keepalive.write(id.0, true)).unwrap();
        assert_eq!(side.sent_numbers(), [msg::CHANNEL_FAILURE]);
        for name in ["keepalive@openssh.com", "unheard@of"] {
            side.gets(&global(name, true)).unwrap();
            assert_eq!(side.sent_numbers(), [msg::REQUEST_FAILURE], "{name}");
            side.gets(&global(name, false)).unwrap();
            assert!(side.sent().is_empty(), "{name}");
        }
    }
}

#[test]
fn host_keys_that_the_server_shows_are_ignored() {
    let mut c = Side::client();
    assert!(c.gets(&global("hostkeys-00@openssh.com", false)).unwrap().is_empty());
    assert!(c.sent().is_empty());
}

#[test]
fn after_no_more_sessions_another_session_disconnects() {
    let (mut s, _) = Side::server().with_session();
    s.gets(&global("no-more-sessions@openssh.com", false)).unwrap();
    assert!(s.gets(&open("session", 1, WINDOW, PACKET)).is_err());
}

#[test]
fn a_global_reply_names_what_was_asked() {
    let (mut c, mut s) = (Side::client(), Side::server());
    c.channels.ask_globally("a@b", &[1], true, &mut c.draft);
    c.channels.ask_globally("no-more-sessions@openssh.com", &[], true, &mut c.draft);
    let (events, _) = settle(&mut c, &mut s);
    let names: Vec<_> = events
        .iter()
        .map(|event| match event {
            Event::GlobalReply { name, ok, .. } => (name.as_str(), *ok),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(names, [("a@b", false), ("no-more-sessions@openssh.com", true)]);
}

/// Asked by a side of `role`; the other one knows how to answer.
fn asked_and_answered(role: Role) {
    const NAMES: &[&str] = &["sum@test"];
    let mut asks = Side::new(role, Limits::client());
    let mut knows = Side::new(role.peer(), Limits::server(1).answering(NAMES));
    asks.channels.ask_globally("sum@test", &[1, 2], true, &mut asks.draft);
    asks.channels.ask_globally("sum@test", &[9], false, &mut asks.draft);
    asks.channels.ask_globally("unheard@of", &[], true, &mut asks.draft);
    asks.channels.ask_globally("sum@test", &[3], true, &mut asks.draft);
    let (events, wanted) = settle(&mut asks, &mut knows);
    assert!(events.is_empty(), "the refusal waits for the answer before it: {events:?}");
    let request = |data: &[u8], want_reply| {
        let (name, data) = ("sum@test".to_owned(), data.to_vec());
        Event::GlobalRequest { name, data, want_reply }
    };
    assert_eq!(wanted, [request(&[1, 2], true), request(&[9], false), request(&[3], true)]);

    let reply = |name: &str, ok, data: &[u8]| Event::GlobalReply {
        name: name.into(),
        ok,
        data: data.to_vec(),
    };
    knows.channels.answer_globally(Some(&[3]), &mut knows.draft);
    let (events, _) = settle(&mut asks, &mut knows);
    assert_eq!(events, [reply("sum@test", true, &[3]), reply("unheard@of", false, &[])]);
    knows.channels.answer_globally(None, &mut knows.draft);
    knows.channels.answer_globally(None, &mut knows.draft);
    assert_eq!(knows.sent_numbers(), [msg::REQUEST_FAILURE], "one reply per request");
}

#[test]
fn a_known_global_request_is_answered_by_the_caller_in_order() {
    asked_and_answered(Role::Client);
    asked_and_answered(Role::Server);
}

#[test]
fn global_requests_without_end_that_nobody_answers_are_refused() {
    let mut s = Side::new(Role::Server, Limits::server(1).answering(&["slow@test"]));
    let refused = (0..1000).find_map(|_| s.gets(&global("slow@test", true)).err());
    assert!(refused.unwrap().to_string().contains("too many global requests"));
    let mut s = Side::new(Role::Server, Limits::server(1).answering(&["slow@test"]));
    assert!((0..1000).all(|_| s.gets(&global("slow@test", false)).is_ok()), "none waits");
}

/// A mute peer costs no memory, however often our caller asks.
#[test]
fn only_so_many_global_requests_of_ours_wait_for_a_mute_peer() {
    let mut c = Side::new(Role::Client, Limits::client());
    let mut ask = |want_reply| c.channels.ask_globally("a@b", &[], want_reply, &mut c.draft);
    let left = (0..1000).filter(|_| ask(true)).count();
    assert_eq!(left, 64);
    assert!(ask(false), "nobody answers that");
    assert_eq!(c.draft.messages.len(), left + 1);
    c.gets(&[msg::REQUEST_SUCCESS]).unwrap();
    assert!(c.channels.ask_globally("a@b", &[], true, &mut c.draft), "one was answered");
}

fn global(name: &str, want_reply: bool) -> Vec<u8> {
    Writer::message(msg::GLOBAL_REQUEST).string(name).bool(want_reply).take()
}
