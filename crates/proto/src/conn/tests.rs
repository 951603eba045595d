//! The switch to clear text, rule by rule (docs/invariants.md, N1 to N9): two connections back to
//! back, with what each message would have been sealed under.

use super::{Connection, NoSwitch};
use crate::channel::{Limits, LocalId, NONE_SWITCH, Request, TermSize};
use crate::kexinit::{KexInit, Names, Proposal, Ways};
use crate::pair::{Anyone, End as Transported, Pair, TestKeys, quick};
use crate::{Effect, Error, Event, Ident, KexConfig, Outbox, Role, Transport};
use crypt::{Cipher, Cover, Mac};
use std::collections::VecDeque;
use std::sync::Arc;
use wire::{Writer, msg};

const LONGHAUL: &str = "SSH-2.0-longhaul_x";
const HPN: &str = "SSH-2.0-OpenSSH_10.0_hpn18.8.0";
const STOCK: &str = "SSH-2.0-OpenSSH_10.0";

/// One side, what it sent, and under which cover.
struct End {
    c: Connection,
    out: Outbox,
    wire: VecDeque<Vec<u8>>,
    log: Vec<(Option<Cover>, Vec<u8>)>,
    seal: Option<Cover>,
    events: Vec<Event>,
}

impl End {
    fn new(transport: Transport, limits: Limits) -> Self {
        let c = Connection::over(transport, limits);
        let (wire, log, events) = Default::default();
        Self { c, out: Outbox::new(), wire, log, seal: None, events }
    }

    fn call<T>(&mut self, f: impl FnOnce(&mut Connection, &mut Outbox) -> T) -> T {
        let value = f(&mut self.c, &mut self.out);
        self.events.append(&mut self.out.events);
        for effect in self.out.effects.drain(..) {
            match effect {
                Effect::Send(payload) => {
                    self.log.push((self.seal, payload.clone()));
                    self.wire.push_back(payload);
                }
                Effect::SealWith(new) => self.seal = Some(new.cover),
                Effect::Fence | Effect::OpenWith(_) | Effect::Deflate | Effect::Inflate => {}
            }
        }
        value
    }

    fn gets(&mut self, payload: &[u8]) -> Result<(), Error> {
        self.call(|c, out| c.handle(1, payload, out))
    }

    /// The message ends the connection; why.
    fn refuses(&mut self, payload: &[u8]) -> String {
        let error = self.gets(payload).expect_err("must be refused");
        assert!(self.c.transport().is_closed());
        error.to_string()
    }

    fn kexinits(&self) -> impl Iterator<Item = KexInit> {
        let sent = self.log.iter().filter(|(_, payload)| payload[0] == msg::KEXINIT);
        sent.map(|(_, payload)| KexInit::parse(payload).unwrap())
    }

    fn offers_none(&self) -> bool {
        self.kexinits().any(|k| k.lists.ciphers.c2s.contains("none"))
    }

    fn cover(&self) -> Option<Cover> {
        self.events.iter().find_map(|event| match event {
            Event::Uncovered { cover } => Some(*cover),
            _ => None,
        })
    }

    fn still_sealed(&self) -> bool {
        self.events.iter().any(|event| matches!(event, Event::StillSealed { .. }))
    }
}

struct Both {
    client: End,
    server: End,
}

impl Both {
    /// Logged in, with one session whose command runs.
    fn new() -> Self {
        Self::of(LONGHAUL, LONGHAUL, quick(), quick())
    }

    fn of(client: &str, server: &str, theirs: KexConfig, ours: KexConfig) -> Self {
        let mut both = Self::logged_in(client, server, theirs, ours);
        both.start_command();
        both
    }

    fn logged_in(client: &str, server: &str, theirs: KexConfig, ours: KexConfig) -> Self {
        let ident = |sender, text: &str| Ident::parse(sender, text.as_bytes()).unwrap();
        let (c, s) = (ident(Role::Client, client), ident(Role::Server, server));
        let trust = Arc::new(Anyone::default());
        let mut client = Transport::client(c.clone(), theirs, trust);
        let mut server = Transport::server(s.clone(), ours, Arc::new(TestKeys::ed25519()));
        client.identified(s);
        server.identified(c);
        let (client, server) = (Transported::new(client), Transported::new(server));
        let mut pair = Pair { client, server };
        pair.start();
        pair.run().unwrap();
        pair.log_in();
        let client = End::new(pair.client.t, Limits::client());
        let server = End::new(pair.server.t, Limits::server(10));
        Self { client, server }
    }

    fn start_command(&mut self) {
        self.client.call(|c, out| c.open_session(1 << 20, 1 << 15, out)).unwrap();
        self.run();
        self.server.call(|c, out| c.accept(LocalId(0), 1 << 20, 1 << 15, out)).unwrap();
        self.run();
        let env = Request::Env { name: b"TOKEN".to_vec(), value: b"secret".to_vec() };
        self.client.call(|c, out| c.request(LocalId(0), &env, false, out)).unwrap();
        let exec = Request::Exec(b"zfs recv".to_vec());
        self.client.call(|c, out| c.request(LocalId(0), &exec, true, out)).unwrap();
        self.run();
        self.server.call(|c, out| c.reply(LocalId(0), true, out)).unwrap();
        self.run();
    }

    fn run(&mut self) {
        loop {
            if let Some(payload) = self.client.wire.pop_front() {
                self.server.gets(&payload).unwrap();
            } else if let Some(payload) = self.server.wire.pop_front() {
                self.client.gets(&payload).unwrap();
            } else {
                return;
            }
        }
    }

    fn permit(&mut self, mac: bool) {
        self.server.c.permit_none(mac);
    }

    /// The client's wish, until all is said.
    fn switch(&mut self, mac: bool) -> Result<(), NoSwitch> {
        let tried = self.client.call(|c, out| c.switch_to_none(mac, out)).unwrap();
        self.run();
        tried
    }

    /// After a switch with the NONE MAC, or without.
    fn switched(mac: bool) -> Self {
        let mut both = Self::new();
        both.permit(mac);
        both.switch(mac).unwrap();
        assert!(both.client.cover().is_some(), "no switch");
        both
    }

    fn rekey(&mut self, role: Role) {
        let end = if role == Role::Client { &mut self.client } else { &mut self.server };
        end.call(|c, out| c.rekey(out)).unwrap();
        self.run();
    }

    /// It goes on, sealed, and carries what it carried before.
    fn assert_sealed(&mut self) {
        for role in [Role::Client, Role::Server] {
            self.rekey(role);
        }
        assert!(self.client.seal.is_some_and(|cover| !cover.is_clear()));
        assert!(self.server.seal.is_some_and(|cover| !cover.is_clear()));
        assert_eq!((self.client.cover(), self.server.cover()), (None, None));
        self.client.call(|c, out| c.keepalive(out)).unwrap();
        self.run();
        assert!(matches!(self.client.events.last(), Some(Event::GlobalReply { .. })));
    }
}

fn authenticated() -> Option<Cover> {
    crypt::ClearMac::new(Mac::HmacSha256Etm).map(Cover::Authenticated)
}

fn names(list: &str) -> Names {
    list.split(',').collect()
}

/// A KEXINIT as HPN-SSH's client sends it for the switch: no cipher but `none`.
fn hpn_kexinit(ciphers: &str, macs: &str) -> Vec<u8> {
    let ways = |list: &str| Ways { c2s: names(list), s2c: names(list) };
    let (kex, host_key) = (names("curve25519-sha256"), names("ssh-ed25519"));
    let (ciphers, macs, compression) = (ways(ciphers), ways(macs), ways("none"));
    let follows = false;
    KexInit::new(Proposal { kex, host_key, ciphers, macs, compression, follows }).payload
}

const HPN_MACS: &str = "umac-64-etm@openssh.com,umac-128-etm@openssh.com,\
    hmac-sha2-256-etm@openssh.com,hmac-sha2-512-etm@openssh.com,hmac-sha2-256";

fn channel_request(name: &str) -> Vec<u8> {
    Writer::message(msg::CHANNEL_REQUEST).u32(0).string(name).bool(false).take()
}

fn global_request(name: &str) -> Vec<u8> {
    Writer::message(msg::GLOBAL_REQUEST).string(name).bool(false).take()
}

fn direct_tcpip(c: &mut Connection, out: &mut Outbox) -> Result<LocalId, Error> {
    c.open_direct_tcpip("inside", 22, 1 << 20, 1 << 15, out)
}

fn open(kind: &str) -> Vec<u8> {
    Writer::message(msg::CHANNEL_OPEN).string(kind).u32(7).u32(1 << 20).u32(1 << 15).take()
}

#[test]
fn n1_none_stands_in_no_kexinit_before_login_whatever_is_wanted() {
    let cfg = KexConfig::default();
    let trust = Arc::new(Anyone::default());
    let ident = Ident::parse(Role::Client, LONGHAUL.as_bytes()).unwrap();
    let mut client = Transported::new(Transport::client(ident, cfg, trust));
    client.t.offer_clear(Some(crate::transport::ClearOffer { mac: true }));
    client.t.set_channels(true, true);
    client.call(|t, out| t.start(out)).unwrap();
    let first = KexInit::parse(&client.out[0].payload).unwrap();
    for list in [&first.lists.ciphers.c2s, &first.lists.ciphers.s2c, &first.lists.macs.c2s] {
        assert!(!list.contains("none"));
    }
}

#[test]
fn n1_a_server_lists_none_only_if_policy_allows_and_then_only_when_asked() {
    for (client, permitted, asks, listed) in [
        (LONGHAUL, false, false, false),
        (LONGHAUL, true, false, false),
        (LONGHAUL, false, true, false),
        (LONGHAUL, true, true, true),
        (STOCK, true, false, false),
        (HPN, false, false, false),
        (HPN, true, false, true), // HPN-SSH's clients do not ask
    ] {
        let mut both = Both::of(client, LONGHAUL, quick(), quick());
        if permitted {
            both.permit(true);
        }
        if asks {
            both.switch(true).unwrap();
        }
        both.server.call(|c, out| c.rekey(out)).unwrap();
        assert_eq!(both.server.offers_none(), listed, "{client} {permitted} {asks}");
    }
}

#[test]
fn n1_a_client_that_was_not_told_to_switch_never_lists_none() {
    for server in [LONGHAUL, HPN] {
        let mut both = Both::of(LONGHAUL, server, quick(), quick());
        both.permit(true);
        both.assert_sealed();
        assert!(!both.client.offers_none());
    }
}

#[test]
fn n2_without_strict_key_exchange_nobody_switches() {
    let mut both = Both::new();
    both.client.c.transport_mut().forget_strict();
    both.permit(true);
    assert_eq!(both.switch(false), Err(NoSwitch::NotStrict));
    both.client.gets(&[msg::IGNORE, 0, 0, 0, 0]).unwrap();

    let mut both = Both::new();
    both.server.c.transport_mut().forget_strict();
    both.permit(true);
    both.switch(false).unwrap();
    assert!(both.client.still_sealed());
}

#[test]
fn n2_the_cipher_alone_needs_a_mac_that_may_stand_alone() {
    let with = |macs: &[Mac]| KexConfig { macs: macs.to_vec(), ..quick() };
    let both = |client: &[Mac], server: &[Mac]| {
        let mut both = Both::of(LONGHAUL, LONGHAUL, with(client), with(server));
        both.permit(false);
        let tried = both.switch(false);
        (both, tried)
    };
    let (mut plain, tried) = both(&[Mac::HmacSha256], Mac::ALL);
    assert_eq!(tried, Err(NoSwitch::NoMac));
    plain.assert_sealed();
    // Only one side has one, or each has another one: known before anything is tried.
    for (client, server) in [
        (Mac::ALL, &[Mac::HmacSha512][..]),
        (&[Mac::HmacSha256, Mac::HmacSha256Etm], &[Mac::HmacSha256, Mac::HmacSha512Etm]),
    ] {
        let (mut plain, tried) = both(client, server);
        assert_eq!(tried, Err(NoSwitch::NoMac));
        plain.assert_sealed();
    }
    let (done, _) = both(&[Mac::HmacSha512, Mac::HmacSha256Etm], Mac::ALL);
    assert_eq!((done.client.cover(), done.server.cover()), (authenticated(), authenticated()));
}

#[test]
fn n2_the_none_mac_needs_both_sides_and_the_none_cipher() {
    for (wanted, permitted, want) in [
        (true, true, Some(Cover::Bare)),
        (true, false, authenticated()),
        (false, true, authenticated()),
    ] {
        let mut both = Both::new();
        both.permit(permitted);
        both.switch(wanted).unwrap();
        assert_eq!((both.client.cover(), both.server.cover()), (want, want));
    }
    // Before any switch, and in the middle of one.
    let mut both = Both::of(HPN, LONGHAUL, quick(), quick());
    both.permit(true);
    let why = both.server.refuses(&hpn_kexinit("aes128-ctr", "none,hmac-sha2-256"));
    assert!(why.contains("no common MAC"), "{why}");
}

fn pty() -> Request {
    Request::Pty { term: "vt100".into(), size: TermSize::default(), modes: vec![] }
}

#[test]
fn n3_a_terminal_or_a_second_channel_before_refuses_the_switch_on_either_side() {
    let spoil: [fn(&mut Both); 4] = [
        |both| both.client.call(|c, out| c.request(LocalId(0), &pty(), false, out)).unwrap(),
        |both| both.client.call(|c, out| c.open_session(1, 1, out)).map(drop).unwrap(),
        |both| both.client.call(direct_tcpip).map(drop).unwrap(),
        |both| {
            both.client.call(|c, out| c.request(LocalId(0), &Request::Shell, false, out)).unwrap()
        },
    ];
    for spoil in spoil {
        let mut both = Both::new();
        both.permit(true);
        spoil(&mut both);
        assert_eq!(both.switch(true), Err(NoSwitch::NotQuiet));
    }
    for spoiled in
        [open("direct-tcpip"), global_request("tcpip-forward"), channel_request("x11-req")]
    {
        let mut both = Both::new();
        both.permit(true);
        both.server.gets(&spoiled).unwrap();
        both.server.wire.clear();
        both.switch(true).unwrap();
        assert!(both.client.still_sealed());
        both.assert_sealed();
    }
}

#[test]
fn n3_afterwards_whatever_is_more_than_the_command_ends_the_connection() {
    for message in [
        open("session"),
        open("direct-tcpip"),
        channel_request("pty-req"),
        channel_request("shell"),
        channel_request("x11-req"),
        channel_request("auth-agent-req@openssh.com"),
        global_request("tcpip-forward"),
        global_request("streamlocal-forward@openssh.com"),
    ] {
        for mac in [false, true] {
            let why = Both::switched(mac).server.refuses(&message);
            assert!(why.ends_with("on a connection without encryption"), "{why}");
        }
    }
    for kind in ["session", "x11", "auth-agent@openssh.com", "forwarded-tcpip"] {
        let why = Both::switched(false).client.refuses(&open(kind));
        assert!(why.contains("another channel"), "{why}");
    }
}

/// Also where it is the only channel.
#[test]
fn n3_who_forwards_does_not_switch() {
    let mut both = Both::logged_in(LONGHAUL, LONGHAUL, quick(), quick());
    both.permit(true);
    both.client.call(direct_tcpip).unwrap();
    assert_eq!(both.switch(true), Err(NoSwitch::NotQuiet));
    assert!(!both.server.c.transport().is_closed());
}

/// The client's side holds itself to it, too; a mux master's next session among it.
#[test]
fn n3_our_own_side_asks_for_nothing_more() {
    let mut both = Both::switched(false);
    assert!(both.client.call(|c, out| c.open_session(1, 1, out)).is_err());
    assert!(both.client.call(direct_tcpip).is_err());
    for request in [pty(), Request::Shell] {
        both.client.call(|c, out| c.request(LocalId(0), &request, false, out)).unwrap();
    }
    assert!(both.client.wire.is_empty());
}

/// From the confirmation on, not only from the switch.
#[test]
fn n3_a_client_that_announced_the_switch_is_bound() {
    let mut both = Both::new();
    both.permit(false);
    let ask = Writer::message(msg::GLOBAL_REQUEST).string(NONE_SWITCH).bool(true).raw(&[0]).take();
    both.server.gets(&ask).unwrap();
    both.server.refuses(&channel_request("pty-req"));
}

#[test]
fn n4_after_a_none_mac_there_is_no_further_key_exchange() {
    let mut both = Both::switched(true);
    for role in [Role::Client, Role::Server] {
        both.rekey(role);
    }
    let exchanges = both.client.kexinits().count();
    assert_eq!(exchanges, 1, "the switch itself, and none after it");
    for ciphers in ["none", "aes128-gcm@openssh.com"] {
        let kexinit = hpn_kexinit(ciphers, "none");
        let why = Both::switched(true).server.refuses(&kexinit);
        assert!(why.contains("nothing is authenticated"), "{why}");
        Both::switched(true).client.refuses(&kexinit);
    }
}

#[test]
fn n5_command_and_environment_leave_sealed_and_no_login_follows() {
    for mac in [false, true] {
        let mut both = Both::switched(mac);
        let clear = both.client.log.iter().filter(|(cover, _)| cover.is_some_and(Cover::is_clear));
        assert_eq!(clear.count(), 0, "nothing but data is left to say");
        let login = Writer::message(msg::USERAUTH_REQUEST).string("user").take();
        let why = both.server.refuses(&login);
        assert!(why.contains("login"), "{why}");
    }
    // Without clear text RFC 4252 section 5.1 has it ignored.
    let login = Writer::message(msg::USERAUTH_REQUEST).string("user").take();
    Both::new().server.gets(&login).unwrap();
}

/// The warning is out before the first byte that travels in clear.
#[test]
fn n6_the_switch_is_told_with_our_own_newkeys() {
    let mut both = Both::new();
    both.permit(false);
    both.client.call(|c, out| c.switch_to_none(false, out)).unwrap().unwrap();
    while both.client.seal != authenticated() {
        assert_eq!(both.client.cover(), None);
        if let Some(payload) = both.client.wire.pop_front() {
            both.server.gets(&payload).unwrap();
        }
        if let Some(payload) = both.server.wire.pop_front() {
            both.client.gets(&payload).unwrap();
        }
    }
    assert_eq!(both.client.cover(), authenticated());
}

#[test]
fn n7_what_is_refused_leaves_the_connection_sealed_and_says_so() {
    for (server, why) in [(LONGHAUL, "refuses"), (HPN, "has not chosen")] {
        let mut both = Both::of(LONGHAUL, server, quick(), quick());
        both.switch(true).unwrap();
        let said = both.client.events.iter().find_map(|event| match event {
            Event::StillSealed { why } => Some(*why),
            _ => None,
        });
        assert!(said.is_some_and(|said| said.contains(why)), "{said:?}");
        both.assert_sealed();
        // And nothing is forbidden any more.
        both.client.call(|c, out| c.open_session(1, 1, out)).unwrap();
    }
    let mut both = Both::of(LONGHAUL, STOCK, quick(), quick());
    assert_eq!(both.switch(true), Err(NoSwitch::Unknown));
    both.assert_sealed();
}

/// The fallback is in the proposal itself: no second exchange, and an AEAD.
#[test]
fn n7_the_fallback_is_the_first_cipher_of_the_list() {
    let ciphers = vec![Cipher::Aes256Gcm, Cipher::Aes128Ctr];
    let cfg = KexConfig { ciphers, ..quick() };
    let mut both = Both::of(LONGHAUL, HPN, cfg, quick());
    both.switch(true).unwrap();
    assert_eq!(both.client.seal.map(Cover::cipher_name), Some("aes256-gcm@openssh.com"));
}

#[test]
fn n8_after_the_switch_a_rekey_keeps_the_cover_and_no_other_is_taken() {
    let mut both = Both::switched(false);
    for role in [Role::Client, Role::Server] {
        both.rekey(role);
        assert_eq!((both.client.seal, both.server.seal), (authenticated(), authenticated()));
    }
    let mut both = Both::switched(false);
    let why = both.server.refuses(&hpn_kexinit("aes128-gcm@openssh.com", "hmac-sha2-256"));
    assert!(why.contains("another cover"), "{why}");
}

#[test]
fn n8_clear_text_in_one_direction_only_is_refused() {
    let mut both = Both::of(HPN, LONGHAUL, quick(), quick());
    both.permit(true);
    let mut kexinit = KexInit::parse(&hpn_kexinit("none", HPN_MACS)).unwrap().lists;
    kexinit.ciphers.s2c = names("aes128-gcm@openssh.com");
    let why = both.server.refuses(&KexInit::new(kexinit).payload);
    assert!(why.contains("one direction only"), "{why}");
}

/// HPN-SSH's client asks right after login, before there is a channel, by the KEXINIT alone.
#[test]
fn n9_a_client_of_hpn_ssh_switches_by_its_kexinit_under_the_same_rules() {
    let hpn = || {
        let mut both = Both::logged_in(HPN, LONGHAUL, quick(), quick());
        both.permit(true);
        both
    };
    let mut both = hpn();
    both.server.gets(&hpn_kexinit("none", HPN_MACS)).unwrap();
    assert_eq!(both.server.c.transport().cleartext(), authenticated());
    // Whole, and then the one session.
    let mut both = hpn();
    both.client.c.transport_mut().offer_clear(Some(crate::transport::ClearOffer { mac: false }));
    both.rekey(Role::Client);
    assert_eq!(both.server.cover(), authenticated());
    both.start_command();
    both.server.refuses(&open("session"));
    // The rules: policy, channels, strictness, MAC.
    for (spoil, ciphers, macs) in [
        (channel_request("x11-req"), "none", HPN_MACS),
        (open("session"), "none", HPN_MACS),
        (vec![], "none", "hmac-sha2-256"),
    ] {
        let mut both = Both::of(HPN, LONGHAUL, quick(), quick());
        both.permit(true);
        if !spoil.is_empty() {
            both.server.gets(&spoil).unwrap();
        }
        both.server.refuses(&hpn_kexinit(ciphers, macs));
    }
    let mut both = Both::logged_in(HPN, LONGHAUL, quick(), quick());
    both.server.c.transport_mut().forget_strict();
    both.permit(true);
    both.server.refuses(&hpn_kexinit("none", HPN_MACS));
    let mut both = Both::logged_in(HPN, LONGHAUL, quick(), quick());
    both.server.refuses(&hpn_kexinit("none", HPN_MACS));
}

/// Without a MAC whoever is on the way would choose the command, or the next one.
#[test]
fn n5_the_none_mac_comes_after_the_command_and_no_other_follows() {
    let bare = hpn_kexinit("none", "none");
    let mut early = Both::logged_in(HPN, LONGHAUL, quick(), quick());
    early.permit(true);
    let why = early.server.refuses(&bare);
    assert!(why.contains("no common MAC"), "{why}");

    for name in ["exec", "subsystem", "env"] {
        let mut both = Both::of(HPN, LONGHAUL, quick(), quick());
        both.permit(true);
        let asks = Some(crate::transport::ClearOffer { mac: true });
        both.client.c.transport_mut().offer_clear(asks);
        both.rekey(Role::Client);
        assert_eq!(both.server.cover(), Some(Cover::Bare));
        let why = both.server.refuses(&channel_request(name));
        assert!(why.contains(name) && why.ends_with("without encryption"), "{why}");
    }
    let mut ours = Both::switched(true);
    let exec = Request::Exec(b"another".to_vec());
    ours.client.call(|c, out| c.request(LocalId(0), &exec, false, out)).unwrap();
    assert!(ours.client.wire.is_empty(), "our own side holds to it");
}

/// HPN-SSH's server lists `none` after login and takes what the client's KEXINIT has first.
#[test]
fn n9_a_server_of_hpn_ssh_is_asked_by_a_plain_rekey() {
    let mut both = Both::of(LONGHAUL, HPN, quick(), quick());
    both.server.c.transport_mut().offer_clear(Some(crate::transport::ClearOffer { mac: true }));
    both.switch(true).unwrap();
    assert_eq!((both.client.cover(), both.server.cover()), (Some(Cover::Bare), Some(Cover::Bare)));
    let asked = both.client.log.iter().any(|(_, p)| p[0] == msg::GLOBAL_REQUEST);
    assert!(!asked, "an announcement means nothing to it");
}
