//! A server that breaks the protocol ends its channel and does nothing else (F6).

use super::*;
use crate::codec::{Attrs, MAX_PACKET, Name, OpenFlags};
use proptest::prelude::*;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

fn open() -> Request {
    Request::Open { path: b"f".to_vec(), flags: OpenFlags::READ, attrs: Attrs::default() }
}

/// The channel is over, by the server's fault, and everything was answered once.
fn must_have_ended(wire: &Wire, said: Result<usize, Error>, tokens: &[u64]) {
    assert!(matches!(said, Err(Error::Server(_))), "{said:?}");
    let events = wire.events();
    assert!(matches!(events.last(), Some(Event::Ended(Error::Server(_)))), "{events:?}");
    let answers = answers(events);
    let mut answered: Vec<u64> = answers.iter().map(|(token, _)| *token).collect();
    answered.sort_unstable();
    assert_eq!(answered, tokens);
    assert!(answers.iter().all(|(_, answer)| matches!(answer, Err(Error::Server(_)))));
    assert!(wire.client.call(&open()).is_err());
}

#[test]
fn f6_an_answer_that_nothing_was_asked_for_ends_the_channel() {
    for id in [0, 2, 7, u32::MAX] {
        let mut wire = Wire::new();
        wire.client.request(&open(), 1);
        assert_eq!(wire.one().0, 1);
        let said = wire.status(id, Status::Failure);
        must_have_ended(&wire, said, &[1]);
    }
}

#[test]
fn f6_an_answer_to_what_has_not_left_yet_ends_the_channel() {
    let mut wire = Wire::new();
    wire.client.request(&open(), 1);
    let said = wire.status(1, Status::Failure);
    must_have_ended(&wire, said, &[1]);
}

#[test]
fn f6_a_second_answer_ends_the_channel() {
    let mut wire = Wire::new();
    let id = wire.get(4, Target::Bytes);
    wire.reply(id, &Reply::Data(b"abcd".to_vec())).unwrap();
    assert!(matches!(wire.events()[..], [Event::Answer { token: 7, answer: Ok(_) }]));
    let said = wire.reply(id, &Reply::Data(b"abcd".to_vec()));
    must_have_ended(&wire, said, &[]);
}

#[test]
fn f6_data_of_no_length_or_too_much_ends_the_channel() {
    for len in [0, 5, 1000] {
        let mut wire = Wire::new();
        let file = Arc::new(tempfile::tempfile().unwrap());
        let id = wire.get(4, Target::File { file: Arc::clone(&file), offset: 0 });
        let said = wire.reply(id, &Reply::Data(vec![1; len]));
        must_have_ended(&wire, said, &[7]);
        assert_eq!(file.metadata().unwrap().len(), 0);
    }
}

#[test]
fn f6_an_answer_of_the_wrong_kind_ends_the_channel() {
    let replies = [
        Reply::status(Status::Ok),
        Reply::Handle(handle()),
        Reply::Names(vec![Name::default()]),
        Reply::Attrs(Attrs::default()),
        Reply::Data(vec![1]),
        Reply::Extended(vec![1]),
    ];
    let asked = |wire: &Wire, what: usize| match what {
        0 => wire.client.put(&handle(), 0, Data::Zeros(10), Check::None, 1),
        1 => wire.client.request(&open(), 1),
        2 => wire.client.request(&Request::Readdir(handle()), 1),
        3 => wire.client.request(&Request::Stat(b"f".to_vec()), 1),
        4 => wire.client.get(&handle(), 0, 1, Target::Discard, Check::None, 1),
        _ => wire.client.request(&Request::Extended(crate::codec::Extended::Limits), 1),
    };
    for what in 0..6 {
        for (kind, reply) in replies.iter().enumerate() {
            let mut wire = Wire::new();
            asked(&wire, what);
            let (id, _) = wire.one();
            let said = wire.reply(id, reply);
            if what == kind {
                said.unwrap();
                assert!(matches!(wire.events()[..], [Event::Answer { answer: Ok(_), .. }]));
            } else {
                must_have_ended(&wire, said, &[1]);
            }
        }
    }
}

#[test]
fn f6_crumbs_end_the_channel() {
    let mut wire = Wire::new();
    let mut id = wire.get(1000, Target::Bytes);
    for _ in 0..64 {
        wire.reply(id, &Reply::Data(vec![1])).unwrap();
        id = wire.one().0;
    }
    let said = wire.reply(id, &Reply::Data(vec![1]));
    must_have_ended(&wire, said, &[7]);
}

/// `/proc/cpuinfo` of a large machine comes a page at a time, whatever is asked for.
#[test]
fn pages_of_a_file_are_no_crumbs() {
    let mut wire = Wire::new();
    let mut id = wire.get(255 * 1024, Target::Bytes);
    for _ in 0..80 {
        wire.reply(id, &Reply::Data(vec![1; 3000])).unwrap();
        id = wire.one().0;
    }
    wire.status(id, Status::Eof).unwrap();
    let answers = answers(wire.events());
    let [(7, Ok(Answer::Got(got)))] = &answers[..] else { panic!("{answers:?}") };
    assert!(got.eof && got.bytes == vec![1; 80 * 3000]);
}

#[test]
fn f6_a_length_that_no_packet_has_ends_the_channel_at_once() {
    for len in [0, MAX_PACKET as u32 + 1, u32::MAX] {
        let mut wire = Wire::new();
        wire.client.request(&open(), 1);
        wire.sent();
        let said = wire.say(&[&len.to_be_bytes()[..], &[101]].concat());
        must_have_ended(&wire, said, &[1]);
    }
}

#[test]
fn f6_whoever_does_not_introduce_itself_is_no_server() {
    for bytes in [&b"Welcome to this host!\n"[..], b"\0\0\0\x05\x02\0\0\0\x02", b"\0\0\0\x01\x02"] {
        let mut wire = Wire::silent();
        let said = wire.say(bytes);
        must_have_ended(&wire, said, &[]);
        assert!(matches!(wire.client.server(), Err(Error::Server(_))));
    }
    let mut wire = Wire::new();
    let said = wire.say(b"\0\0\0\x05\x02\0\0\0\x03");
    must_have_ended(&wire, said, &[]);
}

/// What a random server says.
#[derive(Debug, Clone)]
enum Says {
    Data { ask: usize, len: usize },
    Status { ask: usize, code: u32 },
    Reply(u32, Reply),
    Raw(Vec<u8>),
}

fn says() -> impl Strategy<Value = Says> {
    let reply = prop_oneof![
        Just(Reply::Handle(handle())),
        Just(Reply::Attrs(Attrs::default())),
        Just(Reply::Names(Vec::new())),
        proptest::collection::vec(any::<u8>(), 0..2000).prop_map(Reply::Data),
    ];
    prop_oneof![
        8 => (0..4usize, 0..3000usize).prop_map(|(ask, len)| Says::Data { ask, len }),
        2 => (0..4usize, 0..9u32).prop_map(|(ask, code)| Says::Status { ask, code }),
        1 => (0..12u32, reply).prop_map(|(id, reply)| Says::Reply(id, reply)),
        1 => proptest::collection::vec(any::<u8>(), 0..64).prop_map(Says::Raw),
    ]
}

/// Three gets into one file, with margins around each that nobody asked for.
const LEN: u32 = 2000;
const STEP: u64 = 5000;

fn margins_are_whole(file: &File) {
    let mut content = vec![0; 4 * STEP as usize];
    let len = file.read_at(&mut content, 0).unwrap();
    assert_eq!(len as u64, 3 * STEP);
    for (at, byte) in content[..len].iter().enumerate() {
        let asked = at as u64 % STEP >= 1000 && at as u64 % STEP < 1000 + u64::from(LEN);
        assert!(asked || *byte == 0xaa, "byte {at}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Nothing is written outside of what was asked for, nothing panics, and every token has
    /// exactly one answer in the end.
    #[test]
    fn a_random_server_writes_only_where_it_was_asked_to(
        script in proptest::collection::vec((says(), 1..4000usize), 0..40),
    ) {
        let mut wire = Wire::new();
        let file = Arc::new(tempfile::tempfile().unwrap());
        file.write_all_at(&vec![0xaa; 3 * STEP as usize], 0).unwrap();
        for lane in 0..3 {
            let target = Target::File { file: Arc::clone(&file), offset: lane * STEP + 1000 };
            wire.client.get(&handle(), 0, LEN, target, Check::Blake3, lane);
        }
        wire.client.put(&handle(), 0, Data::Zeros(100_000), Check::None, 3);
        let mut asked: Vec<u32> = Vec::new();
        for (says, chunk) in script {
            asked.extend(wire.sent().iter().map(|(id, _)| *id));
            let mut bytes = Vec::new();
            let id = |ask: usize| asked.get(ask % asked.len().max(1)).copied().unwrap_or(0);
            match says {
                Says::Data { ask, len } => Reply::Data(vec![1; len]).encode(id(ask), &mut bytes),
                Says::Status { ask, code } => {
                    Reply::status(Status::of(code)).encode(id(ask), &mut bytes);
                }
                Says::Reply(id, reply) => reply.encode(id, &mut bytes),
                Says::Raw(raw) => bytes = raw,
            }
            for piece in bytes.chunks(chunk) {
                if wire.say(piece).is_err() {
                    break;
                }
            }
        }
        margins_are_whole(&file);
        wire.incoming.end();
        let mut tokens: Vec<u64> = answers(wire.events()).iter().map(|(token, _)| *token).collect();
        tokens.sort_unstable();
        prop_assert_eq!(tokens, [0, 1, 2, 3]);
    }
}

/// What a login script prints comes before the server's own first word.
#[test]
fn text_in_place_of_an_introduction_is_told_with_what_to_do() {
    for (bytes, told) in [
        (&b"hello\n\0\0\0\x05\x02\0\0\0\x03"[..], "\"hello\""),
        (b"a\n\0\0\0\x05\x02\0\0\0\x03", "\"a\""),
        (b"\n\n \xc3\xbcber \r\nmore\n", "\"\u{fc}ber\""),
        (b"\x1b[1mred\n", "\"\\u{1b}[1mred\""),
        (b"\n\0\0\0\x05\x02\0\0\0\x03", "\"\""),
    ] {
        let mut wire = Wire::silent();
        let why = wire.say(bytes).unwrap_err().to_string();
        assert!(why.contains(told) && why.contains("~/.bashrc"), "{why}");
    }
    for bytes in [&b"\xff\xff\xff\xff\xff"[..], b"\0\0\0\0\0", b"\x01\x02\x03\x04\x05"] {
        let mut wire = Wire::silent();
        let why = wire.say(bytes).unwrap_err().to_string();
        assert!(why.contains("malformed packet length"), "{why}");
    }
    let mut wire = Wire::silent();
    let long = [b'x'; 5000];
    let why = wire.say(&long).unwrap_err().to_string();
    assert!(why.len() < 400, "{why}");
}
