//! A peer that sends what it likes, at every state (A1, A2, A3, B1, B6).

use crate::kexinit::KexInit;
use crate::pair::{Pair, TestKeys, quick};
use crate::table::{Phase, Verdict, verdict};
use crate::{Error, KexConfig, Misbehaved, Role};
use crypt::kex::Method;
use wire::msg::{self, Disconnect};
use wire::{Malformed, Writer};

const ROLES: [Role; 2] = [Role::Client, Role::Server];

/// A pair in which `role` receives in `phase`; strict key exchange as both offer it.
fn in_phase(role: Role, phase: Phase) -> Pair {
    let (x, p) = ("curve25519-sha256", "ecdh-sha2-nistp256");
    let cfg = |kex: &[&'static str]| KexConfig { kex: kex.to_vec(), ..KexConfig::default() };
    let mut pair = match phase {
        Phase::FirstGuess | Phase::RekeyGuess => {
            Pair::new(cfg(&[x, p]), cfg(&[p]), TestKeys::ed25519())
        }
        _ => Pair::new(cfg(&[x]), cfg(&[x]), TestKeys::ed25519()),
    };
    pair.start();
    if matches!(
        phase,
        Phase::Login
            | Phase::Session
            | Phase::RekeyGuess
            | Phase::RekeyMethod
            | Phase::RekeyNewKeys
    ) {
        pair.run().unwrap();
        if phase != Phase::Login {
            pair.log_in();
        }
        if !matches!(phase, Phase::Login | Phase::Session) {
            pair.client.rekey();
            pair.server.rekey();
        }
    }
    match phase {
        Phase::FirstKexInit | Phase::Login | Phase::Session => {}
        Phase::FirstGuess | Phase::RekeyGuess => {
            let packet = pair.end(role.peer()).out.pop_front().unwrap();
            let mut lists = KexInit::parse(&packet.payload).unwrap().lists;
            lists.follows = true;
            lists.kex = [
                "x",
                "ecdh-sha2-nistp256",
                "kex-strict-c-v00@openssh.com",
                "kex-strict-s-v00@openssh.com",
            ]
            .into_iter()
            .collect();
            pair.end(role).inject(&KexInit::new(lists).payload).unwrap();
        }
        Phase::FirstMethod | Phase::RekeyMethod => assert_eq!(pair.step(role.peer()), Ok(true)),
        Phase::FirstNewKeys | Phase::RekeyNewKeys => {
            while pair.end(role).t.is_fenced() {
                pair.step(role).unwrap();
                if pair.end(role).t.is_fenced() {
                    pair.step(role.peer()).unwrap();
                }
            }
        }
    }
    pair
}

/// A1: the machine does what the table says, for every number in every phase of both roles.
#[test]
fn every_message_in_every_state_meets_the_tables_verdict() {
    for (role, phase) in ROLES.into_iter().flat_map(|role| Phase::ALL.map(|phase| (role, phase))) {
        for number in 0..=255u8 {
            let strict = phase != Phase::FirstKexInit;
            let mut pair = in_phase(role, phase);
            let (sent, upper) = (pair.end(role).log.len(), pair.end(role).upper.len());
            let got = pair.end(role).inject(&[number]);
            let end = pair.end(role);
            let case = format!("{role} {phase:?} {number}: {got:?}");
            match verdict(role, phase, strict, number) {
                Verdict::Forbidden => {
                    assert_eq!(got, Err(Misbehaved::Unexpected { number, phase }.into()), "{case}");
                }
                Verdict::Unknown => assert_eq!(end.log[sent..], [msg::UNIMPLEMENTED], "{case}"),
                Verdict::Upper => assert_eq!(end.upper.len(), upper + 1, "{case}"),
                Verdict::Drop | Verdict::WrongGuess => {
                    assert!(got.is_ok() && end.log.len() == sent, "{case}");
                }
                Verdict::Generic | Verdict::Kex => {
                    let fine = matches!(
                        got,
                        Ok(()) | Err(Error::Malformed(_) | Error::Peer(Misbehaved::ExtInfo))
                    );
                    assert!(fine && end.upper.len() == upper, "{case}");
                }
            }
        }
    }
}

/// A3: nothing but the exchange before the first NEWKEYS, from either side.
#[test]
fn nothing_but_the_exchange_is_processed_before_the_first_newkeys() {
    let first = [Phase::FirstKexInit, Phase::FirstGuess, Phase::FirstMethod, Phase::FirstNewKeys];
    for (role, phase) in ROLES.into_iter().flat_map(|role| first.map(|phase| (role, phase))) {
        for number in (5..=7).chain(50..=255) {
            let error = in_phase(role, phase).refuses(role.peer(), &[number, 0, 0, 0, 0]);
            assert_eq!(error, Misbehaved::Unexpected { number, phase }.into());
        }
    }
}

/// A3: EXT_INFO only right after NEWKEYS; a client gets no second one out of place.
#[test]
fn ext_info_out_of_place_disconnects() {
    let ext_info = Writer::message(msg::EXT_INFO).u32(0).take();
    let mut pair = Pair::connected();
    pair.client.inject(&ext_info).unwrap();
    let error = pair.refuses(Role::Server, &[msg::SERVICE_ACCEPT]);
    assert_eq!(error, Misbehaved::ExtInfo.into());
    let mut pair = Pair::connected();
    pair.server.inject(&[msg::SERVICE_REQUEST]).unwrap();
    assert_eq!(pair.refuses(Role::Client, &ext_info), Misbehaved::ExtInfo.into());
    let error = Pair::session().refuses(Role::Server, &ext_info);
    assert!(matches!(error, Error::Peer(Misbehaved::Unexpected { .. })));
}

/// B1: IGNORE, DEBUG and UNIMPLEMENTED end a strict first exchange at every point.
#[test]
fn strict_kex_allows_nothing_between_kexinit_and_newkeys() {
    let ignore = Writer::message(msg::IGNORE).string("").take();
    let debug = Writer::message(msg::DEBUG).bool(false).string("").string("").take();
    let unimplemented = Writer::message(msg::UNIMPLEMENTED).u32(0).take();
    for role in ROLES {
        for phase in [Phase::FirstGuess, Phase::FirstMethod, Phase::FirstNewKeys] {
            for payload in [&ignore, &debug, &unimplemented] {
                let error = in_phase(role, phase).refuses(role.peer(), payload);
                assert_eq!(error.disconnect_code(), Disconnect::ProtocolError);
            }
        }
    }
}

/// B1: with strict key exchange KEXINIT is the first packet.
#[test]
fn strict_kex_wants_kexinit_as_the_first_packet() {
    for role in ROLES {
        let mut pair = in_phase(role, Phase::FirstKexInit);
        let kexinit = pair.end(role.peer()).out.pop_front().unwrap();
        pair.end(role).inject(&Writer::message(msg::IGNORE).string("").take()).unwrap();
        let error = pair.refuses(role.peer(), &kexinit.payload);
        assert_eq!(error, Misbehaved::KexInitNotFirst.into());
    }
}

/// The same is fine for a peer that does not offer it, and nothing is reset then.
#[test]
fn without_strict_kex_ignore_is_legal_everywhere() {
    for role in ROLES {
        let mut pair = in_phase(role, Phase::FirstKexInit);
        let packet = pair.end(role.peer()).out.pop_front().unwrap();
        let mut lists = KexInit::parse(&packet.payload).unwrap().lists;
        lists.kex = ["curve25519-sha256"].into_iter().collect();
        let ignore = Writer::message(msg::IGNORE).string("").take();
        let end = pair.end(role);
        end.inject(&ignore).unwrap();
        end.inject(&KexInit::new(lists).payload).unwrap();
        end.inject(&ignore).unwrap();
        assert!(!end.t.is_strict());
    }
}

/// B1: a sequence number that comes round before the first NEWKEYS.
#[test]
fn a_wrapped_sequence_number_before_newkeys_disconnects() {
    let mut pair = in_phase(Role::Server, Phase::FirstKexInit);
    let ignore = Writer::message(msg::IGNORE).string("").take();
    assert!(pair.server.call(|t, out| t.handle(u32::MAX, &ignore, out)).is_ok());
    let error = pair.server.call(|t, out| t.handle(0, &ignore, out)).unwrap_err();
    assert_eq!(error, Misbehaved::SequenceWrapped.into());
}

/// B6: public values of the wrong length or worth, both roles, every method.
#[test]
fn bad_public_values_end_the_exchange() {
    for (name, method) in Method::NAMES {
        // For Diffie-Hellman the last is a number like any other.
        let bad = [&[][..], &[0; 32], &[1], &[4; 2000], &[0xff; 65]];
        for bad in bad.into_iter().take(if method.is_dh() { 4 } else { 5 }) {
            let cfg = || KexConfig { kex: vec![name], first_packet_guess: false, ..quick() };
            let mut pair = Pair::new(cfg(), cfg(), TestKeys::ed25519());
            pair.start();
            pair.step(Role::Client).unwrap();
            let mut w = Writer::message(msg::KEX_INIT);
            if method.is_dh() {
                w.positive_mpint(bad)
            } else {
                w.string(bad)
            };
            let error = pair.refuses(Role::Client, &w.take());
            assert!(matches!(error, Error::Malformed(_) | Error::Peer(_)), "{name} {bad:?}");
        }
    }
}

#[test]
fn messages_of_the_exchange_with_trailing_bytes_are_malformed() {
    for (role, number) in [
        (Role::Server, msg::KEXINIT),
        (Role::Server, msg::KEX_INIT),
        (Role::Client, msg::KEX_REPLY),
        (Role::Client, msg::NEWKEYS),
    ] {
        let mut pair = in_phase(role, Phase::FirstKexInit);
        loop {
            pair.step(role).unwrap();
            let mut packet = pair.end(role.peer()).out.pop_front().unwrap();
            if packet.payload[0] == number {
                packet.payload.push(0);
                let error = pair.end(role).receive(packet).unwrap_err();
                assert!(matches!(error, Error::Malformed(_)), "{error}");
                break;
            }
            pair.end(role).receive(packet).unwrap();
        }
    }
}

#[test]
fn an_empty_message_is_malformed() {
    let error = Pair::session().refuses(Role::Client, &[]);
    assert_eq!(error, Malformed("message: empty").into());
}

/// B7: no KEXINIT is kept that is longer than any could be.
#[test]
fn a_huge_kexinit_is_refused() {
    let mut pair = in_phase(Role::Server, Phase::FirstKexInit);
    let names = vec!["x"; 20_000].join(",");
    let mut w = Writer::message(msg::KEXINIT);
    w.raw(&[0; 16]).string(names);
    assert!(matches!(pair.refuses(Role::Client, &w.take()), Error::Malformed(_)));
}
