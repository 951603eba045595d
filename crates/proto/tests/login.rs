//! Both sides whole: key exchange, login, channels, rekey; carried from one to the other flight
//! by flight, without sockets or sealing.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test")]

use keys::{PublicKey, SigAlg};
use proto::auth::server::Rules;
use proto::auth::{Client, Decision, Policy, Server, Step};
use proto::{
    Connection, Effect, Error, Event, Ident, KexConfig, Limits, LocalId, Outbox, Request, Role,
    Transport,
};
use stand_ins::{AnyHost, OneCredential, OneHostKey, key};
use std::sync::Arc;
use wire::{Writer, msg};

struct OneUser(PublicKey);

impl Policy for OneUser {
    type Permissions = &'static str;

    fn public_key(&mut self, user: &str, key: &PublicKey, _: SigAlg) -> Decision<&'static str> {
        if user == "user" && *key == self.0 { Decision::Accept("all") } else { Decision::Refuse }
    }
}

/// One side before and after its login.
enum End {
    Client(Client<OneCredential>),
    Server(Server<OneUser>),
    Connected(Connection),
    Failed(Error),
}

struct Side {
    end: Option<End>,
    out: Outbox,
    /// Messages on their way to the peer, with their sequence numbers.
    wire: Vec<(u32, Vec<u8>)>,
    seq: u32,
    events: Vec<Event>,
}

impl Side {
    fn new(mut end: End) -> Self {
        let mut out = Outbox::new();
        let transport = match &mut end {
            End::Client(client) => client.transport_mut(),
            End::Server(server) => server.transport_mut(),
            _ => unreachable!(),
        };
        transport.start(&mut out).unwrap();
        transport.identified(Ident::ours());
        Self { end: Some(end), out, wire: vec![], seq: 0, events: vec![] }
    }

    fn gets(&mut self, seq: u32, payload: &[u8]) {
        let out = &mut self.out;
        let next = match self.end.take().unwrap() {
            End::Client(client) => match client.handle(seq, payload, out) {
                Ok(Step::Pending(client)) => End::Client(client),
                Ok(Step::Done(login)) => End::Connected(Connection::new(login, Limits::client())),
                Err(error) => End::Failed(error),
            },
            End::Server(server) => match server.handle(seq, payload, out) {
                Ok(Step::Pending(server)) => End::Server(server),
                Ok(Step::Done(login)) => {
                    let (login, permissions) = login.split();
                    assert_eq!((permissions, login.login().user.as_str()), ("all", "user"));
                    End::Connected(Connection::new(login, Limits::server(10)))
                }
                Err(error) => End::Failed(error),
            },
            End::Connected(mut connection) => match connection.handle(seq, payload, out) {
                Ok(()) => End::Connected(connection),
                Err(error) => End::Failed(error),
            },
            failed => failed,
        };
        self.end = Some(next);
    }

    /// Carries out the outbox.
    fn carry_out(&mut self) -> Vec<(u32, Vec<u8>)> {
        self.events.append(&mut self.out.events);
        for effect in self.out.effects.drain(..) {
            match effect {
                Effect::Send(payload) => {
                    self.wire.push((self.seq, payload));
                    self.seq += 1;
                }
                Effect::SealWith(keys) if keys.reset_seq => self.seq = 0,
                _ => {}
            }
        }
        std::mem::take(&mut self.wire)
    }

    fn connection(&mut self) -> (&mut Connection, &mut Outbox) {
        match self.end.as_mut() {
            Some(End::Connected(connection)) => (connection, &mut self.out),
            Some(End::Failed(error)) => panic!("{error}"),
            _ => panic!("not logged in"),
        }
    }

    fn error(&self) -> Option<String> {
        match &self.end {
            Some(End::Failed(error)) => Some(error.to_string()),
            _ => None,
        }
    }

    fn is_connected(&self) -> bool {
        matches!(self.end, Some(End::Connected(_)))
    }
}

struct Pair {
    client: Side,
    server: Side,
}

impl Pair {
    fn new(users: u8) -> Self {
        Self::with_sig_algs(users, SigAlg::ALL)
    }

    fn with_sig_algs(users: u8, sig_algs: &[SigAlg]) -> Self {
        let trust = Arc::new(AnyHost);
        let client = Transport::client(Ident::ours(), KexConfig::default(), trust);
        let host = Arc::new(OneHostKey(key(100)));
        let server = Transport::server(Ident::ours(), KexConfig::default(), host);
        let rules = Rules { sig_algs: sig_algs.to_vec(), max_tries: 6, banner: None };
        let credential = OneCredential::new(key(users));
        let policy = OneUser(key(1).public().clone());
        Self {
            client: Side::new(End::Client(Client::new(client, "user", credential))),
            server: Side::new(End::Server(Server::new(server, policy, rules))),
        }
    }

    /// Both flights of half a round trip cross; whether there was anything to carry.
    fn half_trip(&mut self) -> bool {
        let (up, down) = (self.client.carry_out(), self.server.carry_out());
        let any = !up.is_empty() || !down.is_empty();
        up.iter().for_each(|(seq, message)| self.server.gets(*seq, message));
        down.iter().for_each(|(seq, message)| self.client.gets(*seq, message));
        any
    }

    fn travel(&mut self, half_trips: usize) {
        for _ in 0..half_trips {
            self.half_trip();
        }
    }

    fn settle(&mut self) {
        while self.half_trip() {}
    }

    fn logged_in() -> Self {
        let mut pair = Self::new(1);
        pair.settle();
        assert_eq!((pair.client.error(), pair.server.error()), (None, None));
        assert!(pair.client.is_connected() && pair.server.is_connected());
        pair
    }

    /// An accepted session; the same number on both sides.
    fn with_session() -> (Self, LocalId) {
        let mut pair = Self::logged_in();
        let (connection, out) = pair.client.connection();
        let id = connection.open_session(1000, 1000, out).unwrap();
        pair.settle();
        let (connection, out) = pair.server.connection();
        connection.accept(LocalId(0), 1000, 1000, out).unwrap();
        pair.settle();
        pair.client.events.clear();
        pair.server.events.clear();
        (pair, id)
    }
}

/// Identification, KEXINIT and the guessed packet leave in one flight; service request and signed
/// request in another.
#[test]
fn a_login_takes_two_round_trips_after_tcp() {
    let mut pair = Pair::new(1);
    let mut halves = 0;
    while !pair.client.is_connected() {
        assert!(pair.half_trip(), "{:?} {:?}", pair.client.error(), pair.server.error());
        halves += 1;
    }
    assert_eq!(halves, 4);
}

#[test]
fn a_wrong_key_ends_both_sides_with_one_line() {
    let mut pair = Pair::new(2);
    pair.settle();
    assert_eq!(pair.client.error().unwrap(), "permission denied (publickey)");
    let told = pair.server.events.iter().any(|e| matches!(e, Event::Disconnected { code: 14, .. }));
    assert!(told, "{:?}", pair.server.events);
}

/// A client that believed in more would sign by an algorithm that the server refuses.
#[test]
fn the_server_announces_the_algorithms_that_it_accepts_and_no_others() {
    let accepted = [SigAlg::RsaSha512, SigAlg::Ed25519];
    let mut pair = Pair::with_sig_algs(1, &accepted);
    pair.settle();
    let announced = pair.client.connection().0.transport().server_sig_algs();
    assert_eq!(announced, Some(&accepted[..]));
}

/// Invariants A1 and A2: no message of the connection protocol before login, on either side.
#[test]
fn a2_nothing_of_the_connection_protocol_exists_before_login() {
    for number in 80..=100 {
        for half_trips in 0..3 {
            let mut pair = Pair::new(1);
            pair.travel(half_trips);
            let message = Writer::message(number).u32(0).take();
            if !pair.server.is_connected() {
                pair.server.gets(9, &message);
                assert!(pair.server.error().is_some(), "{number} to the server");
            }
            pair.client.gets(9, &message);
            assert!(pair.client.error().is_some(), "{number} to the client");
        }
    }
}

/// Invariant A1 [CVE-2018-10933]: SUCCESS is the server's to say.
#[test]
fn a1_a_server_never_accepts_userauth_success() {
    for half_trips in 0..4 {
        let mut pair = Pair::new(1);
        pair.travel(half_trips);
        pair.server.gets(9, &[msg::USERAUTH_SUCCESS]);
        assert!(pair.server.error().is_some(), "after {half_trips} half trips");
    }
}

/// Invariant A3: no login before the first NEWKEYS.
#[test]
fn a3_no_login_before_keys() {
    let mut pair = Pair::new(1);
    pair.server.gets(0, &Writer::message(msg::SERVICE_REQUEST).string("ssh-userauth").take());
    assert!(pair.server.error().is_some());
}

/// RFC 4252 section 5.1: "SHOULD be silently ignored".
#[test]
fn login_requests_after_success_are_ignored() {
    let mut pair = Pair::logged_in();
    let none = Writer::message(msg::USERAUTH_REQUEST).string("root").string("x").take();
    pair.server.gets(9, &none);
    assert!(pair.server.is_connected());
    assert!(pair.server.carry_out().is_empty());
}

#[test]
fn requests_and_replies_pass_while_keys_change() {
    let (mut pair, id) = Pair::with_session();
    let request = Request::Exec(b"true".to_vec());
    let (connection, out) = pair.client.connection();
    connection.rekey(out).unwrap();
    connection.request(id, &request, true, out).unwrap();
    let (connection, out) = pair.server.connection();
    connection.keepalive(out).unwrap();
    pair.settle();
    let (connection, out) = pair.server.connection();
    connection.rekey(out).unwrap();
    connection.reply(LocalId(0), true, out).unwrap();
    connection.request(LocalId(0), &Request::ExitStatus(7), false, out).unwrap();
    connection.eof(LocalId(0), out).unwrap();
    connection.close(LocalId(0), out).unwrap();
    pair.settle();
    let (connection, out) = pair.client.connection();
    connection.close(id, out).unwrap();
    pair.settle();

    let interesting = |events: &[Event]| {
        let kept = events.iter().filter(|e| !matches!(e, Event::Exchanged { .. }));
        kept.cloned().collect::<Vec<_>>()
    };
    assert_eq!(
        interesting(&pair.client.events),
        [
            Event::Reply { id, ok: true },
            Event::ExitStatus { id, status: 7 },
            Event::Eof { id },
            Event::Closed { id },
        ]
    );
    let peer = LocalId(0);
    let server = interesting(&pair.server.events);
    assert!(server.contains(&Event::Request { id: peer, request, want_reply: true }));
    assert!(server.contains(&Event::Closed { id: peer }));
    let name = "keepalive@openssh.com".to_owned();
    assert!(server.contains(&Event::GlobalReply { name, ok: false, data: vec![] }));
    let left = [pair.client.connection().0.channels(), pair.server.connection().0.channels()];
    assert_eq!(left, [0, 0]);
}

#[test]
fn a_routed_channel_is_counted_by_its_route() {
    let (mut pair, id) = Pair::with_session();
    let data = Writer::message(msg::CHANNEL_DATA).u32(0).string([0; 600]).take();
    pair.server.gets(9, &data);
    assert_eq!(pair.server.connection().0.route(LocalId(0)), Some(400));
    assert_eq!(pair.server.connection().0.route(LocalId(0)), None);
    let (connection, out) = pair.server.connection();
    connection.credit(LocalId(0), u32::MAX, out).unwrap();
    connection.credit(LocalId(0), u32::MAX, out).unwrap();
    pair.settle();
    let credit = u32::MAX;
    let adjusted = vec![Event::Adjusted { id, credit }; 2];
    assert_eq!(pair.client.events, adjusted, "checked by window::Send, not here");
}

/// A violation tells the peer why, once.
#[test]
fn a_violation_leaves_a_disconnect_in_the_outbox() {
    let (mut pair, _) = Pair::with_session();
    let role = pair.server.connection().0.transport().role();
    assert_eq!(role, Role::Server);
    pair.server.gets(9, &Writer::message(msg::CHANNEL_EOF).u32(99).take());
    let sent = pair.server.carry_out();
    assert_eq!(sent.iter().map(|(_, m)| m[0]).collect::<Vec<_>>(), [msg::DISCONNECT]);
    assert_eq!(pair.server.error().unwrap(), "peer spoke on channel 99, which is not open");
}
