//! Guessed first packets (RFC 4253 section 7), right and wrong, of both roles (B5).

use crate::kexinit::{KexInit, Names};
use crate::pair::{FENCE, Pair, SEAL, TestKeys, quick};
use crate::{Event, KexConfig, Misbehaved, Role};
use keys::SigAlg;
use wire::msg;

fn kex(names: &[&'static str]) -> KexConfig {
    KexConfig { kex: names.to_vec(), ..KexConfig::default() }
}

const X: &str = "curve25519-sha256";
const P: &str = "ecdh-sha2-nistp256";

/// How many KEX_INITs the client sent in a first exchange between these two.
fn kex_inits(client: KexConfig, server: KexConfig, keys: TestKeys) -> usize {
    let mut pair = Pair::new(client, server, keys);
    pair.start();
    pair.run().unwrap();
    assert_eq!((pair.client.exchanges(), pair.server.exchanges()), (1, 1));
    pair.client.log.iter().filter(|number| **number == msg::KEX_INIT).count()
}

#[test]
fn a_right_guess_is_not_sent_again() {
    assert_eq!(kex_inits(kex(&[X, P]), kex(&[X]), TestKeys::ed25519()), 1);
}

/// B5: a wrong guess is ignored by the server, and the client sends the right packet.
#[test]
fn a_wrong_guess_is_ignored_and_made_good() {
    assert_eq!(kex_inits(kex(&[X, P]), kex(&[P]), TestKeys::ed25519()), 2, "another method");
    assert_eq!(kex_inits(kex(&[X, P]), kex(&[P, X]), TestKeys::ed25519()), 2, "the same method");
    let rsa_first =
        KexConfig { host_key_algs: vec![SigAlg::RsaSha512, SigAlg::Ed25519], ..kex(&[X]) };
    assert_eq!(kex_inits(rsa_first, kex(&[X]), TestKeys::every()), 2, "the same method, other key");
}

/// So that a client can come again without a guess when the server does not cope.
#[test]
fn a_wrong_guess_is_told() {
    for (server, wrong) in [(kex(&[X]), false), (kex(&[P]), true), (kex(&[P, X]), true)] {
        let mut pair = Pair::new(kex(&[X, P]), server, TestKeys::ed25519());
        pair.start();
        pair.run().unwrap();
        assert_eq!(pair.client.events.contains(&Event::GuessedWrong), wrong);
    }
    let shy = KexConfig { first_packet_guess: false, ..kex(&[X]) };
    let mut pair = Pair::new(shy, kex(&[P, X]), TestKeys::ed25519());
    pair.start();
    pair.run().unwrap();
    assert!(!pair.client.events.contains(&Event::GuessedWrong));
}

#[test]
fn a_client_that_does_not_guess_waits_for_the_server() {
    let shy = KexConfig { first_packet_guess: false, ..kex(&[X]) };
    let mut pair = Pair::new(shy, kex(&[X]), TestKeys::ed25519());
    pair.start();
    assert_eq!(pair.client.log, [FENCE, msg::KEXINIT]);
    pair.run().unwrap();
    assert_eq!(pair.client.log[2..], [msg::KEX_INIT, msg::NEWKEYS, SEAL]);
}

/// A pair whose client announced a guess that is wrong, KEXINITs exchanged.
fn wrongly_guessed() -> Pair {
    let mut pair = Pair::new(kex(&[X, P]), kex(&[P]), TestKeys::ed25519());
    pair.start();
    assert_eq!(pair.step(Role::Client), Ok(true));
    pair
}

/// B5: exactly one packet is ignored, whatever of the method's numbers it has.
#[test]
fn a_wrong_guess_ignores_exactly_one_packet() {
    for number in 30..=49 {
        let mut pair = wrongly_guessed();
        pair.server.inject(&[number, 1, 2, 3]).unwrap();
        let error = pair.refuses(Role::Client, &[msg::KEX_INIT, 1, 2, 3]);
        assert_eq!(error, wire::Malformed("KEX_INIT public value").into());
    }
}

/// B5: what does not belong to a method is not what was guessed.
#[test]
fn no_other_message_hides_behind_a_wrong_guess() {
    for number in [2, 3, 4, 5, 7, 20, 21, 22, 50, 80, 90, 94, 192] {
        let error = wrongly_guessed().refuses(Role::Client, &[number]);
        assert!(matches!(error, crate::Error::Peer(Misbehaved::Unexpected { .. })), "{number}");
    }
}

/// A message as the server's KEXINIT, with its flag set and `kex` as its methods.
fn with_guess(payload: &[u8], kex: &[&str]) -> Vec<u8> {
    let mut lists = KexInit::parse(payload).unwrap().lists;
    lists.follows = true;
    lists.kex = kex.iter().copied().collect::<Names>();
    KexInit::new(lists).payload
}

/// B5 in the other role: a server's wrong guess is one message, ignored once.
#[test]
fn a_servers_wrong_guess_is_ignored_once() {
    let mut pair = Pair::new(kex(&[X, P]), kex(&[P]), TestKeys::ed25519());
    pair.start();
    let theirs = pair.server.out.pop_front().unwrap();
    pair.client.inject(&with_guess(&theirs.payload, &[P])).unwrap();
    pair.client.inject(&[msg::KEX_REPLY, 9, 9]).unwrap();
    let error = pair.refuses(Role::Server, &[msg::KEX_REPLY, 9, 9]);
    assert_eq!(error, wire::Malformed("KEX_REPLY host key").into());
}

#[test]
fn a_servers_right_guess_ignores_nothing() {
    let mut pair = Pair::new(kex(&[X]), kex(&[X]), TestKeys::ed25519());
    pair.start();
    let theirs = pair.server.out.pop_front().unwrap();
    pair.client.inject(&with_guess(&theirs.payload, &[X])).unwrap();
    let error = pair.refuses(Role::Server, &[msg::KEX_REPLY, 9, 9]);
    assert_eq!(error, wire::Malformed("KEX_REPLY host key").into());
}

/// In a rekey a client guesses when the last exchange shows that it will be right: the fence
/// stands for one round trip.
#[test]
fn a_rekey_guesses_rightly_or_not_at_all() {
    for (server, inits) in
        [(kex(&[X, P]), [msg::KEXINIT, msg::KEX_INIT]), (kex(&[P, X]), [FENCE, msg::KEXINIT])]
    {
        let mut pair = Pair::session_by(kex(&[X]), server);
        pair.client.rekey();
        assert!(pair.client.log.ends_with(&inits), "{:?}", pair.client.log);
        pair.run().unwrap();
        assert_eq!(pair.client.exchanges(), 2);
    }
}

#[test]
fn a_guessed_rekey_takes_one_round_trip() {
    let mut pair = Pair::session_by(quick(), quick());
    pair.client.rekey();
    pair.half_round().unwrap();
    assert!(pair.client.t.is_fenced());
    pair.half_round().unwrap();
    assert!(!pair.client.t.is_fenced());
    assert!(matches!(pair.client.events.last(), Some(Event::Exchanged { first: false })));
}
