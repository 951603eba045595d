//! Random messages at random moments: no panic, no unbounded memory, and a dead machine stays
//! dead.

use crate::kexinit::{KexInit, Names, Proposal, Ways};
use crate::pair::{Pair, TestKeys, quick};
use crate::{MAX_BEFORE_LOGIN, MAX_IN_SESSION, Role};
use proptest::prelude::*;

/// What happens next.
#[derive(Debug, Clone)]
enum Act {
    Step(bool),
    Rekey(bool),
    Send(bool, Vec<u8>),
    Inject(bool, Vec<u8>),
}

fn side(client: bool) -> Role {
    if client { Role::Client } else { Role::Server }
}

/// A message of random content whose number is likely to mean something.
fn message() -> impl Strategy<Value = Vec<u8>> {
    let number = prop_oneof![3 => 1..=7u8, 3 => 20..=31u8, 2 => 50..=60u8, 2 => 80..=100u8, 1 => any::<u8>()];
    let body = prop::collection::vec(any::<u8>(), 0..64);
    (number, body).prop_map(|(number, body)| [vec![number], body].concat())
}

/// Names that mean something somewhere, and one that does not.
const NAMES: &[&str] = &[
    "curve25519-sha256",
    "ssh-ed25519",
    "aes128-gcm@openssh.com",
    "none",
    "ext-info-c",
    "kex-strict-c-v00@openssh.com",
    "kex-strict-s-v00@openssh.com",
    "x",
];

/// A KEXINIT that parses, with lists of all kinds.
fn kexinit() -> impl Strategy<Value = Vec<u8>> {
    let names = prop::collection::vec(prop::sample::select(NAMES), 0..6);
    let names = names.prop_map(|names| names.into_iter().collect::<Names>());
    let ways = (names.clone(), names.clone()).prop_map(|(c2s, s2c)| Ways { c2s, s2c });
    (names.clone(), names, ways.clone(), ways.clone(), ways, any::<bool>()).prop_map(
        |(kex, host_key, ciphers, macs, compression, follows)| {
            KexInit::new(Proposal { kex, host_key, ciphers, macs, compression, follows }).payload
        },
    )
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        8 => any::<bool>().prop_map(Act::Step),
        1 => any::<bool>().prop_map(Act::Rekey),
        2 => (any::<bool>(), message()).prop_map(|(side, message)| Act::Send(side, message)),
        1 => (any::<bool>(), message()).prop_map(|(side, message)| Act::Inject(side, message)),
        1 => (any::<bool>(), kexinit()).prop_map(|(side, message)| Act::Inject(side, message)),
        1 => (any::<bool>(), prop::collection::vec(any::<u8>(), 0..256))
            .prop_map(|(side, bytes)| Act::Inject(side, bytes)),
    ]
}

/// Does it; messages that were sealed with other keys are lost, as they would be on the wire.
fn perform(pair: &mut Pair, act: Act) {
    match act {
        Act::Step(client) => {
            if let Some(packet) = pair.end(side(client)).out.pop_front() {
                let _ = pair.end(side(!client)).inject(&packet.payload);
            }
        }
        Act::Rekey(client) => pair.end(side(client)).rekey(),
        Act::Send(client, payload) => {
            let _ = pair.end(side(client)).send(&payload);
        }
        Act::Inject(client, payload) => {
            let end = pair.end(side(client));
            let was_closed = end.t.is_closed();
            let result = end.inject(&payload);
            assert!(!was_closed || result.is_ok(), "a dead machine handles nothing");
            assert!(result.is_ok() || end.t.is_closed(), "an error is the end");
        }
    }
    for end in [&pair.client, &pair.server] {
        assert!(end.t.held_bytes() <= MAX_IN_SESSION);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// B7: whatever comes, in whatever order, from the first byte on.
    #[test]
    fn random_messages_never_panic_and_hold_a_bounded_amount(
        acts in prop::collection::vec(act(), 1..80),
        connected in any::<bool>(),
    ) {
        let mut pair = if connected { Pair::session() } else {
            let mut pair = Pair::new(quick(), quick(), TestKeys::ed25519());
            pair.start();
            pair
        };
        for act in acts {
            perform(&mut pair, act);
        }
    }

    /// B2: at random moments of random rekeys everything arrives once and in order.
    #[test]
    fn messages_survive_rekeys_in_order(
        acts in prop::collection::vec((0..3u8, any::<bool>()), 1..200),
    ) {
        let mut pair = Pair::session();
        let mut sent = [0u8; 2];
        for (what, client) in acts {
            match what {
                0 => { pair.step(side(client)).unwrap(); }
                1 => pair.end(side(client)).rekey(),
                _ => {
                    let count = &mut sent[usize::from(client)];
                    pair.end(side(client)).send(&[wire::msg::CHANNEL_DATA, *count]).unwrap();
                    *count += 1;
                }
            }
        }
        pair.run().unwrap();
        for (receiver, sent) in [(&pair.server, sent[1]), (&pair.client, sent[0])] {
            let got: Vec<u8> = receiver.upper.iter().map(|payload| payload[1]).collect();
            prop_assert_eq!(got, (0..sent).collect::<Vec<u8>>());
        }
    }

    /// Parsers of the exchange on random bytes.
    #[test]
    fn random_bytes_never_panic_a_parser(bytes in prop::collection::vec(any::<u8>(), 0..512)) {
        let _ = KexInit::parse(&bytes);
        let _ = crate::ext_info::ExtInfo::default().merge(&bytes);
        for sender in [Role::Client, Role::Server] {
            let _ = crate::ident::find(sender, &bytes);
        }
    }
}

/// The bounds themselves.
#[test]
fn the_bound_before_login_leaves_room_for_a_kexinit_in_three_forms() {
    const { assert!(MAX_BEFORE_LOGIN + 3 * 32 * 1024 <= 512 * 1024) };
}
