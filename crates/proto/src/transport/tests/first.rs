//! The first exchange: every method, every host key, every protection, and what leaves when.

use crate::pair::{Anyone, FENCE, Pair, SEAL, TestKeys, quick};
use crate::{Event, KexConfig, Role};
use crypt::kex::Method;
use crypt::{Cipher, Mac, Protection};
use keys::SigAlg;
use std::sync::Arc;
use wire::Writer;
use wire::msg::{self, Disconnect};

#[test]
fn every_method_gives_both_ends_the_same_keys_and_again_in_a_rekey() {
    for (name, method) in Method::NAMES {
        let cfg = || KexConfig { kex: vec![name], ..KexConfig::default() };
        let mut pair = Pair::session_by(cfg(), cfg());
        assert_eq!(pair.client.t.negotiated().unwrap().method, *method);
        assert_eq!(pair.server.t.negotiated().unwrap().kex, *name);
        let session_id = pair.client.t.session_id().unwrap().to_vec();
        pair.server.rekey();
        pair.run().unwrap();
        assert_eq!((pair.client.exchanges(), pair.server.exchanges()), (2, 2), "{name}");
        assert_eq!(pair.client.t.session_id(), Some(&session_id[..]), "the first hash stays");
    }
}

#[test]
fn every_host_key_algorithm_proves_the_server() {
    for alg in SigAlg::ALL {
        let client = KexConfig { host_key_algs: vec![*alg], ..quick() };
        let mut pair = Pair::new(client, quick(), TestKeys::every());
        pair.start();
        pair.run().unwrap();
        assert_eq!(pair.client.t.negotiated().unwrap().host_key, *alg);
        assert_eq!(pair.client.t.host_key().unwrap().key_type(), alg.key_type());
    }
}

/// B9: every protection that exists can be agreed on, one value per direction.
#[test]
fn every_protection_can_be_negotiated() {
    for protection in Protection::all() {
        let cfg = || KexConfig {
            ciphers: vec![protection.cipher()],
            macs: protection.mac().into_iter().collect(),
            ..quick()
        };
        let pair = Pair::connected_by(cfg(), cfg());
        let got = pair.client.t.negotiated().unwrap();
        assert_eq!((got.c2s, got.s2c), (protection.into(), protection.into()));
    }
}

/// B9: the same machine refuses what has no integrity.
#[test]
fn a_cipher_without_a_mac_ends_in_a_mismatch() {
    let cfg = || KexConfig { ciphers: vec![Cipher::Aes128Ctr], macs: Vec::new(), ..quick() };
    let mut pair =
        Pair::new(cfg(), KexConfig { macs: Mac::ALL.to_vec(), ..cfg() }, TestKeys::ed25519());
    pair.start();
    let text = pair.refused(Role::Client, Disconnect::KeyExchangeFailed);
    assert_eq!(text, "no common MAC: client offers nothing");
}

#[test]
fn a_mismatch_says_what_the_peer_offers() {
    let cfg = |cipher| KexConfig { ciphers: vec![cipher], ..quick() };
    let (client, server) = (cfg(Cipher::Aes128Gcm), cfg(Cipher::ChaCha20Poly1305));
    let mut pair = Pair::new(client, server, TestKeys::ed25519());
    pair.start();
    let text = pair.refused(Role::Server, Disconnect::KeyExchangeFailed);
    assert_eq!(text, "no common cipher: server offers chacha20-poly1305@openssh.com only");
}

/// What leaves in which order, without waiting for anything that is not needed.
#[test]
fn each_side_sends_its_part_in_one_piece() {
    let mut pair = Pair::new(quick(), quick(), TestKeys::ed25519());
    pair.start();
    assert_eq!(pair.client.log, [FENCE, msg::KEXINIT, msg::KEX_INIT]);
    pair.run().unwrap();
    let server = [FENCE, msg::KEXINIT, msg::KEX_REPLY, msg::NEWKEYS, SEAL, msg::EXT_INFO];
    assert_eq!(pair.server.log, server);
    assert_eq!(pair.client.log, [FENCE, msg::KEXINIT, msg::KEX_INIT, msg::NEWKEYS, SEAL]);
}

#[test]
fn a_client_starts_before_it_knows_the_servers_identification() {
    let trust = Arc::new(Anyone::default());
    let mut t = crate::Transport::client(crate::Ident::ours(), quick(), trust);
    let mut out = crate::Outbox::new();
    t.start(&mut out).unwrap();
    assert_eq!(out.effects.len(), 3);
    t.start(&mut out).unwrap();
    assert_eq!(out.effects.len(), 3, "once");
}

/// B2: before our first NEWKEYS nothing of the layers above leaves; then all of it, in order.
#[test]
fn upper_messages_wait_for_the_first_newkeys_in_order() {
    let mut pair = Pair::new(quick(), quick(), TestKeys::ed25519());
    for byte in 0..3 {
        pair.client.send(&[msg::SERVICE_REQUEST, byte]).unwrap();
    }
    assert!(pair.client.log.is_empty() && pair.client.t.held_bytes() > 0);
    pair.start();
    pair.run().unwrap();
    let expected: Vec<Vec<u8>> = (0..3).map(|byte| vec![msg::SERVICE_REQUEST, byte]).collect();
    assert_eq!(pair.server.upper, expected);
    assert_eq!(pair.client.t.held_bytes(), 0);
}

#[test]
fn ext_info_tells_the_client_what_the_server_verifies() {
    let pair = Pair::connected();
    assert_eq!(pair.client.t.server_sig_algs(), Some(SigAlg::ALL));
    assert!(pair.client.t.is_strict() && pair.server.t.is_strict());
}

#[test]
fn pings_are_answered_and_answers_nobody_asked_for_are_dropped() {
    let mut pair = Pair::session();
    pair.client.send(&Writer::message(msg::PING).string("here").take()).unwrap();
    pair.run().unwrap();
    assert_eq!(pair.server.log.last(), Some(&msg::PONG));
    let before = pair.client.events.clone();
    pair.server.send(&Writer::message(msg::PONG).string("unasked").take()).unwrap();
    pair.run().unwrap();
    assert_eq!((pair.client.events, pair.client.upper), (before, Vec::new()));
}

#[test]
fn a_disconnect_ends_both_sides_once() {
    let mut pair = Pair::session();
    pair.client.call(|t, out| t.disconnect(Disconnect::ByApplication, "bye", out));
    pair.client.call(|t, out| t.disconnect(Disconnect::ByApplication, "again", out));
    pair.client.send(&[msg::CHANNEL_DATA]).unwrap();
    assert_eq!(pair.client.out.len(), 1);
    pair.run().unwrap();
    let bye = Event::Disconnected { code: 11, text: "bye".to_owned() };
    assert_eq!(pair.server.events.last(), Some(&bye));
    pair.server.send(&[msg::CHANNEL_DATA]).unwrap();
    pair.server.inject(&[msg::KEXINIT]).unwrap();
    assert!(pair.server.out.is_empty() && pair.server.t.is_closed());
}

#[test]
fn unknown_messages_are_answered_with_their_sequence_number() {
    let mut pair = Pair::session();
    pair.client.send(&[200]).unwrap();
    let seq = pair.client.out[0].seq;
    pair.run().unwrap();
    assert_eq!(pair.client.events.last(), Some(&Event::Unimplemented { seq }));
}
