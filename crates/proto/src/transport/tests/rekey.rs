//! Rekeys of either side, of both at once, and what may travel meanwhile (B1, B2).

use crate::kexinit::{KexInit, Markers};
use crate::pair::{FENCE, Pair, SEAL, quick};
use crate::{Error, Misbehaved, Role};
use crate::{MAX_BEFORE_LOGIN, MAX_IN_SESSION};
use wire::Writer;
use wire::msg;

const DATA: u8 = msg::CHANNEL_DATA;

#[test]
fn either_side_may_rekey_and_both_at_once() {
    for sides in [&[Role::Client][..], &[Role::Server], &[Role::Client, Role::Server]] {
        let mut pair = Pair::session();
        for round in 2..6 {
            sides.iter().for_each(|side| pair.end(*side).rekey());
            pair.run().unwrap();
            assert_eq!(pair.client.exchanges(), round, "{sides:?}");
            assert_eq!(pair.server.exchanges(), round, "{sides:?}");
        }
    }
}

/// Crossing KEXINITs at every point of an exchange: one exchange, or two in a row, never a mess.
#[test]
fn rekeys_may_cross_at_any_message() {
    for first in [Role::Client, Role::Server] {
        for steps in 0..12 {
            let mut pair = Pair::session();
            pair.end(first).rekey();
            for step in 0..steps {
                let sender = if step % 2 == 0 { first } else { first.peer() };
                pair.step(sender).unwrap();
            }
            pair.end(first.peer()).rekey();
            pair.run().unwrap();
            assert_eq!(pair.client.exchanges(), pair.server.exchanges());
            assert!((2..=3).contains(&pair.client.exchanges()));
            assert!(!pair.client.t.is_fenced() && !pair.server.t.is_fenced());
        }
    }
}

#[test]
fn a_rekey_while_one_is_running_does_nothing() {
    let mut pair = Pair::session();
    pair.client.rekey();
    let sent = pair.client.log.len();
    pair.client.rekey();
    assert_eq!(pair.client.log.len(), sent);
}

/// B2: between our KEXINIT and our NEWKEYS only the exchange leaves, and messages 1 to 4.
#[test]
fn nothing_but_the_exchange_leaves_while_fenced() {
    for role in [Role::Client, Role::Server] {
        let mut pair = Pair::session();
        pair.end(role).rekey();
        let from = pair.end(role).log.len();
        for number in 0..=255 {
            pair.end(role).send(&[number, 0]).unwrap();
        }
        assert_eq!(pair.end(role).log[from..], [1, 2, 3, 4], "{role}");
    }
}

/// B2: what waited leaves directly after our NEWKEYS, in order.
#[test]
fn held_messages_leave_after_newkeys_in_order() {
    for role in [Role::Client, Role::Server] {
        let mut pair = Pair::session();
        pair.end(role).rekey();
        let data: Vec<[u8; 2]> = (0..100).map(|count| [DATA, count]).collect();
        data.iter().for_each(|payload| pair.end(role).send(payload).unwrap());
        pair.run().unwrap();
        assert_eq!(pair.end(role.peer()).upper, data);
        let log = &pair.end(role).log;
        let after = log.iter().rposition(|number| *number == SEAL).unwrap() + 1;
        assert_eq!(log[after..], [DATA; 100]);
    }
}

/// B2: the peer's data is legal until its KEXINIT, and goes up; ours waits.
#[test]
fn the_peers_data_is_legal_until_its_kexinit() {
    let mut pair = Pair::session();
    pair.server.send(&[DATA, 1]).unwrap();
    pair.client.rekey();
    pair.client.send(&[DATA, 2]).unwrap();
    pair.step(Role::Server).unwrap();
    assert_eq!(pair.client.upper, [[DATA, 1]]);
    pair.run().unwrap();
    assert_eq!(pair.server.upper, [[DATA, 2]]);
    let log = &pair.client.log;
    let end = &log[log.len() - 6..];
    assert_eq!(end, [FENCE, msg::KEXINIT, msg::KEX_INIT, msg::NEWKEYS, SEAL, DATA]);
}

/// B2: and not after it.
#[test]
fn data_after_the_peers_kexinit_disconnects() {
    for sender in [Role::Client, Role::Server] {
        for number in [DATA, msg::CHANNEL_OPEN, msg::GLOBAL_REQUEST, msg::PING, msg::EXT_INFO] {
            let mut pair = Pair::session();
            pair.end(sender).rekey();
            pair.step(sender).unwrap();
            let error = pair.refuses(sender, &[number, 0]);
            assert!(matches!(error, Error::Peer(Misbehaved::Unexpected { .. })), "{error}");
        }
    }
}

/// B2: one exchange at a time.
#[test]
fn a_second_kexinit_disconnects() {
    for sender in [Role::Client, Role::Server] {
        let mut pair = Pair::session();
        pair.end(sender).rekey();
        let again = pair.end(sender).out[0].payload.clone();
        pair.step(sender).unwrap();
        let error = pair.refuses(sender, &again);
        assert_eq!(error.to_string(), "peer sent KEXINIT (20) during a rekey");
    }
}

/// B1: in later exchanges IGNORE and DEBUG are legal at every point, strict or not.
#[test]
fn ignore_and_debug_are_legal_inside_a_rekey() {
    let mut pair = Pair::session();
    pair.client.rekey();
    let debug = Writer::message(msg::DEBUG).bool(true).string("x").string("").take();
    let mut rounds = 0;
    while pair.client.t.is_exchanging() || pair.server.t.is_exchanging() {
        for role in [Role::Client, Role::Server] {
            // Behind an exchange's last message the layers above have the key already.
            pair.end(role).send(&Writer::message(msg::IGNORE).string("x").take()).unwrap();
            pair.end(role).send(&debug).unwrap();
            pair.step(role).unwrap();
        }
        rounds += 1;
        assert!(rounds < 100);
    }
    pair.run().unwrap();
    assert_eq!(pair.client.exchanges(), 2);
}

/// B1: flags of later KEXINITs are ignored, in both directions.
#[test]
fn flags_of_later_kexinits_change_nothing() {
    for sender in [Role::Client, Role::Server] {
        let mut pair = Pair::session();
        pair.end(sender).rekey();
        let kexinit = KexInit::parse(&pair.end(sender).out[0].payload).unwrap();
        assert!(!kexinit.lists.kex.contains(Markers::of(sender).strict));
        assert!(!kexinit.lists.kex.contains(Markers::of(sender).ext_info));
        pair.run().unwrap();
        assert!(pair.client.t.is_strict() && pair.server.t.is_strict());
        let ext_infos = pair.server.log.iter().filter(|number| **number == msg::EXT_INFO).count();
        assert_eq!(ext_infos, 1, "after the first NEWKEYS only");
    }
}

/// B1: sequence numbers start again at every NEWKEYS of both directions, for the whole
/// connection; `Pair` compares them at every message.
#[test]
fn sequence_numbers_start_again_at_every_newkeys() {
    let mut pair = Pair::session();
    for _ in 0..3 {
        pair.client.send(&[DATA]).unwrap();
        pair.server.send(&[DATA]).unwrap();
        pair.client.rekey();
        pair.run().unwrap();
        pair.client.send(&[DATA]).unwrap();
        assert_eq!(pair.client.out.back().unwrap().seq, 0);
        pair.run().unwrap();
    }
}

/// B7: a peer that never answers our KEXINIT cannot make us hold more than the bound.
#[test]
fn a_peer_that_stalls_a_rekey_makes_us_hold_a_bounded_amount() {
    let ping = Writer::message(msg::PING).string(vec![0; 1000]).take();
    let mut pair = Pair::session();
    pair.server.rekey();
    let mut sent = 0;
    let error = loop {
        match pair.server.inject(&ping) {
            Ok(()) => sent += ping.len(),
            Err(error) => break error,
        }
        assert!(pair.server.t.held_bytes() <= MAX_IN_SESSION && sent <= MAX_IN_SESSION);
    };
    assert_eq!(error, Misbehaved::TooMuchHeld(MAX_IN_SESSION).into());
    assert!(pair.server.t.is_closed());
}

/// B7: before login we start no rekey, and while a peer's is running it may send nothing that
/// needs an answer: what it sends is never held.
#[test]
fn before_login_a_peer_cannot_make_us_hold_anything() {
    let mut pair = Pair::connected();
    let ping = Writer::message(msg::PING).string(vec![0; 1000]).take();
    pair.server.rekey();
    assert!(!pair.server.t.is_exchanging());
    pair.client.send(&ping).unwrap();
    pair.client.call(|t, out| t.offer(false, out)).unwrap();
    pair.step(Role::Client).unwrap();
    pair.step(Role::Client).unwrap();
    assert_eq!((pair.server.t.is_fenced(), pair.server.t.held_bytes()), (true, 0));
    pair.refuses(Role::Client, &ping);
}

/// B11: group operations and a signature each are more than a stranger may ask for again and again.
#[test]
fn a_client_may_rekey_once_before_login() {
    let mut pair = Pair::connected();
    let offer = |pair: &mut Pair| pair.client.call(|t, out| t.offer(false, out)).unwrap();
    offer(&mut pair);
    pair.run().unwrap();
    assert_eq!(pair.server.exchanges(), 2);
    offer(&mut pair);
    assert_eq!(pair.step(Role::Client), Err(Misbehaved::TooManyExchanges.into()));
}

/// And as often as it likes afterwards.
#[test]
fn rekeys_before_login_do_not_count_after_it() {
    let mut pair = Pair::connected();
    pair.client.call(|t, out| t.offer(false, out)).unwrap();
    pair.run().unwrap();
    pair.log_in();
    for _ in 0..3 {
        pair.client.rekey();
        pair.run().unwrap();
    }
    assert_eq!(pair.server.exchanges(), 5);
}

/// B7: and what the layers above send before the first NEWKEYS is bounded too.
#[test]
fn a_layer_above_that_sends_too_much_while_fenced_fails() {
    let mut pair = Pair::new(quick(), quick(), crate::pair::TestKeys::ed25519());
    pair.start();
    pair.client.send(&[msg::SERVICE_REQUEST]).unwrap();
    assert!(pair.client.send(&vec![DATA; MAX_BEFORE_LOGIN]).is_err());
    assert!(pair.client.t.is_closed());
}
