//! Random messages and calls: never a panic, never more channels than allowed, never a message
//! of ours after CLOSE.

use super::*;
use proptest::prelude::*;
use std::collections::HashSet;

const CAP: usize = 4;

/// A message that parses, more often than not for a channel that is there.
fn message() -> impl Strategy<Value = Vec<u8>> {
    let id = (0u32..6).prop_map(LocalId);
    prop_oneof![
        (0u32..6, 0u32..3).prop_map(|(sender, max)| open("session", sender, 9, max * 1000)),
        (id.clone(), 0u32..3).prop_map(|(id, max)| confirmation(id, max * 1000)),
        (id.clone(), 0usize..12).prop_map(|(id, n)| data(id, &vec![0; n])),
        (id.clone(), 0u32..3, 0usize..12).prop_map(|(id, code, n)| extended(id, code, &vec![0; n])),
        (id.clone(), 96u8..101).prop_map(|(id, number)| short(number, id)),
        (id.clone(), any::<bool>()).prop_map(|(id, reply)| Request::Shell.write(id.0, reply)),
        (id, any::<bool>()).prop_map(|(id, reply)| Request::ExitStatus(1).write(id.0, reply)),
        any::<bool>().prop_map(|reply| global("x@y", reply)),
    ]
}

#[derive(Debug, Clone)]
enum Deed {
    Gets(Vec<u8>),
    Does(u8, u32),
}

fn deed() -> impl Strategy<Value = Deed> {
    prop_oneof![
        4 => message().prop_map(Deed::Gets),
        1 => (80u8..101, prop::collection::vec(any::<u8>(), 0..40))
            .prop_map(|(number, rest)| Deed::Gets([&[number][..], &rest].concat())),
        4 => (0u8..10, 0u32..6).prop_map(|(what, id)| Deed::Does(what, id)),
    ]
}

fn act(side: &mut Side, what: u8, id: LocalId) {
    let (channels, draft) = (&mut side.channels, &mut side.draft);
    match what {
        0 => _ = channels.ask_for(Purpose::Session, 9, 1000, draft),
        1 => channels.accept(id, 9, 1000, draft),
        2 => channels.reject(id, OpenReason::ConnectFailed, "", draft),
        3 => channels.request(id, &Request::Keepalive, true, draft),
        4 => channels.reply(id, true, draft),
        5 => channels.credit(id, 9, draft),
        6 => drop(channels.route(id)),
        7 => channels.eof(id, draft),
        8 => channels.answer_globally((id.0 > 0).then_some(b"z"), draft),
        _ => channels.close(id, draft),
    }
}

/// Recipient numbers are the peer's, chosen by it, so several of ours may share one: only
/// channels that the peer numbered alone are watched.
fn after_close(closed: &mut HashSet<u32>, sent: &[Vec<u8>]) -> bool {
    sent.iter().any(|message| {
        let recipient = message.get(1..5).map(|b| u32::from_be_bytes(b.try_into().unwrap()));
        match (message[0], recipient) {
            (msg::CHANNEL_CLOSE, Some(to)) => !closed.insert(to),
            (93..=100, Some(to)) => closed.contains(&to),
            _ => false,
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn no_sequence_of_messages_and_calls_panics_or_exceeds_the_cap(
        server in any::<bool>(), deeds in prop::collection::vec(deed(), 0..60),
    ) {
        let role = if server { Role::Server } else { Role::Client };
        let limits = Limits { channels: CAP, accepts: &["session"], answers: &["x@y"] };
        let mut side = Side::new(role, limits);
        let mut closed = HashSet::new();
        let mut numbered = HashSet::new();
        let mut unique = true;
        for deed in deeds {
            match deed {
                Deed::Does(what, id) => act(&mut side, what, LocalId(id)),
                Deed::Gets(payload) => match side.gets(&payload) {
                    Err(_) => return Ok(()),
                    Ok(events) => {
                        for event in events {
                            if let Event::Opened { grant, .. } | Event::OpenRequested { grant, .. } = event {
                                unique &= numbered.insert(grant.remote);
                            }
                        }
                    }
                },
            }
            prop_assert!(side.channels.len() <= CAP);
            let sent = side.sent();
            prop_assert!(!unique || !after_close(&mut closed, &sent), "{sent:?}");
        }
    }
}
