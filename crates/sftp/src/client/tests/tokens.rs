//! Every token gets one answer, and the right one.

use super::*;
use crate::codec::{Extended, Limits, name};
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

fn write_of(request: &Request) -> (u64, &[u8]) {
    match request {
        Request::Write { offset, data, .. } => (*offset, data),
        other => panic!("{other:?}"),
    }
}

fn file(content: &[u8]) -> Arc<File> {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(content).unwrap();
    Arc::new(file)
}

#[test]
fn the_largest_sizes_are_the_servers_once_it_told_them() {
    let mut wire = Wire::with(&[name::LIMITS]);
    wire.client.get(&handle(), 0, 100_000, Target::Discard, Check::None, 1);
    let sent = wire.sent();
    assert_eq!(sent[0].1, Request::Extended(Extended::Limits));
    assert!(matches!(sent[1].1, Request::Read { len: 32768, .. }), "not known yet");
    let limits = Limits { packet: 262_144, read: 200_000, write: 150_000, handles: 9 };
    wire.reply(sent[0].0, &Reply::Extended(limits.encode())).unwrap();
    let sizes = wire.client.server().unwrap().sizes;
    assert_eq!((sizes.read, sizes.write, sizes.handles), (200_000, 150_000, Some(9)));
    wire.client.get(&handle(), 0, 100_000, Target::Discard, Check::None, 2);
    wire.client.put(&handle(), 0, Data::Zeros(400_000), Check::None, 3);
    let sent = wire.sent();
    assert!(matches!(sent[0].1, Request::Read { len: 100_000, .. }));
    let lens: Vec<usize> = sent[1..].iter().map(|(_, write)| write_of(write).1.len()).collect();
    assert_eq!(lens.iter().sum::<usize>(), 400_000);
    assert!(lens.iter().all(|len| *len <= 150_000), "{lens:?}");
}

#[test]
fn a_server_without_limits_gets_what_every_server_takes() {
    let wire = Wire::new();
    assert_eq!(wire.client.server().unwrap().sizes, Sizes::default());
}

#[test]
fn the_rest_of_a_short_answer_is_asked_for_again() {
    let mut wire = Wire::new();
    let content = [3; 1000];
    let file = file(&[]);
    let target = Target::File { file: Arc::clone(&file), offset: 50 };
    wire.client.get(&handle(), 400, 1000, target, Check::Blake3, 7);
    let (id, _) = wire.one();
    wire.reply(id, &Reply::Data(content[..300].to_vec())).unwrap();
    let (id, rest) = wire.one();
    assert_eq!(rest, Request::Read { handle: handle(), offset: 700, len: 700 });
    wire.reply(id, &Reply::Data(content[300..].to_vec())).unwrap();
    match &answers(wire.events())[..] {
        [(7, Ok(Answer::Got(got)))] => {
            assert_eq!((got.len, got.eof), (1000, false));
            assert_eq!(got.hash, Some(*blake3::hash(&content).as_bytes()));
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(file.metadata().unwrap().len(), 1050);
}

#[test]
fn a_file_that_ends_early_is_told_with_what_there_was() {
    let mut wire = Wire::new();
    let id = wire.get(1000, Target::Bytes);
    wire.reply(id, &Reply::Data(b"abc".to_vec())).unwrap();
    let (id, _) = wire.one();
    wire.status(id, Status::Eof).unwrap();
    match &answers(wire.events())[..] {
        [(7, Ok(Answer::Got(got)))] => assert_eq!((got.eof, &got.bytes[..]), (true, &b"abc"[..])),
        other => panic!("{other:?}"),
    }
}

#[test]
fn f5_one_failed_write_fails_the_put_even_if_later_ones_succeed() {
    let mut wire = Wire::new();
    wire.client.put(&handle(), 0, Data::Zeros(100_000), Check::None, 1);
    let writes = wire.sent();
    assert_eq!(writes.len(), 4);
    wire.status(writes[0].0, Status::Ok).unwrap();
    wire.status(writes[1].0, Status::Failure).unwrap();
    wire.status(writes[2].0, Status::Ok).unwrap();
    assert_eq!(wire.events().len(), 0, "one is still under way");
    wire.status(writes[3].0, Status::Ok).unwrap();
    let answers = answers(wire.events());
    let [(1, Err(why))] = &answers[..] else { panic!("{answers:?}") };
    assert_eq!(why.status(), Some(Status::Failure));
}

/// What is not sent yet of a put that failed need not be.
#[test]
fn f5_a_put_that_failed_sends_nothing_more() {
    let mut wire = Wire::new();
    wire.client.put(&handle(), 0, Data::Zeros(1 << 20), Check::None, 1);
    let mut memory = vec![0; 70_000];
    let filled = wire.outgoing.fill(&mut [IoSliceMut::new(&mut memory)]);
    let sent = parsed(&memory[..filled]);
    for (id, _) in &sent {
        wire.status(*id, Status::PermissionDenied).unwrap();
    }
    assert_eq!(wire.sent(), []);
    assert!(matches!(answers(wire.events())[..], [(1, Err(Error::Status { .. }))]));
    assert_eq!(wire.client.unsent(), 0);
}

/// The disk is full here: that file fails with the reason, others go on.
#[test]
fn f5_a_local_write_that_fails_fails_its_get_alone() {
    let mut wire = Wire::new();
    let full = Arc::new(File::options().write(true).open("/dev/full").unwrap());
    let id = wire.get(1000, Target::File { file: full, offset: 0 });
    wire.client.get(&handle(), 0, 3, Target::Bytes, Check::None, 8);
    let (other, _) = wire.one();
    wire.reply(id, &Reply::Data(vec![1; 1000])).unwrap();
    wire.reply(other, &Reply::Data(b"abc".to_vec())).unwrap();
    let answers = answers(wire.events());
    let [(7, Err(Error::Local(_, why))), (8, Ok(Answer::Got(_)))] = &answers[..] else {
        panic!("{answers:?}")
    };
    assert_eq!(why.kind(), std::io::ErrorKind::StorageFull);
}

#[test]
fn f9_a_source_that_got_shorter_is_an_error_and_nothing_is_made_up() {
    let mut wire = Wire::new();
    let file = file(&[5; 50_000]);
    let data = Data::File { file: Arc::clone(&file), offset: 1000, len: 100_000 };
    wire.client.put(&handle(), 0, data, Check::None, 1);
    wire.client.request(&Request::Close(handle()), 2);
    let sent = wire.sent();
    let (offset, data) = write_of(&sent[0].1);
    assert_eq!((offset, data), (0, &[5; 32768][..]));
    assert_eq!(sent[1].1, Request::Close(handle()), "what follows is not held up");
    assert_eq!(sent.len(), 2);
    wire.status(sent[0].0, Status::Ok).unwrap();
    let answers = answers(wire.events());
    assert!(matches!(answers[..], [(1, Err(Error::Shrunk { at: 50_000 }))]), "{answers:?}");
}

/// A put of a file cut at any sizes arrives as one.
#[test]
fn narrow_batches_neither_lose_nor_reorder_a_byte() {
    for area in [1, 7, 30, 100, 5000, 40_000] {
        let mut wire = Wire::new();
        let content: Vec<u8> = (0..100_003u32).map(|i| (i % 249) as u8).collect();
        let data = Data::File { file: file(&content), offset: 3, len: 100_000 };
        wire.client.put(&handle(), 0, data, Check::Blake3, 1);
        let (mut bytes, mut memory) = (Vec::new(), vec![0; area]);
        loop {
            let mut areas: Vec<_> = memory.chunks_mut(16).map(IoSliceMut::new).collect();
            match wire.outgoing.fill(&mut areas) {
                0 => break,
                n => bytes.extend_from_slice(&memory[..n]),
            }
        }
        let mut arrived = vec![0; 100_000];
        for (id, write) in parsed(&bytes) {
            let (offset, data) = write_of(&write);
            let at = usize::try_from(offset).unwrap();
            arrived[at..at + data.len()].copy_from_slice(data);
            wire.status(id, Status::Ok).unwrap();
        }
        assert!(arrived == content[3..], "{area}");
        let hash = Some(*blake3::hash(&arrived).as_bytes());
        let answers = answers(wire.events());
        assert!(
            matches!(answers[..], [(1, Ok(Answer::Sent(Sent { len: 100_000, hash: h })))] if h == hash)
        );
    }
}

#[test]
fn nothing_of_no_length_is_sent_and_it_is_answered_all_the_same() {
    let mut wire = Wire::new();
    wire.client.put(&handle(), 0, Data::Bytes(Arc::new([])), Check::None, 1);
    wire.client.get(&handle(), 0, 0, Target::Bytes, Check::None, 2);
    assert_eq!(wire.sent(), []);
    assert!(matches!(answers(wire.events())[..], [(1, Ok(_)), (2, Ok(_))]));
}

#[test]
fn room_is_told_once_little_is_left_of_much() {
    let mut wire = Wire::new();
    wire.client.put(&handle(), 0, Data::Zeros(4 << 20), Check::None, 1);
    assert_eq!(wire.client.unsent(), 4 << 20);
    let mut memory = vec![0; 512 * 1024];
    let mut told = 0;
    while wire.outgoing.fill(&mut [IoSliceMut::new(&mut memory)]) > 0 {
        let room = wire.events().iter().filter(|event| matches!(event, Event::Room)).count();
        assert!(room == 0 || wire.client.unsent() < 512 * 1024);
        told += room;
    }
    assert_eq!((told, wire.client.unsent()), (1, 0));
}

#[test]
fn the_end_answers_everything_once_wherever_it_is() {
    let mut wire = Wire::new();
    let read = wire.get(10, Target::Bytes);
    wire.client.put(&handle(), 0, Data::Zeros(1 << 20), Check::None, 8);
    let mut memory = vec![0; 100_000];
    assert!(wire.outgoing.fill(&mut [IoSliceMut::new(&mut memory)]) > 0);
    wire.client.request(&Request::Fstat(handle()), 9);
    // In the middle of the answer to the READ.
    wire.say(&[0, 0, 0, 19, 103, 0, 0, 0, u8::try_from(read).unwrap(), 0, 0, 0, 10, 1, 2]).unwrap();
    let caller = wire.client.clone();
    let calling = std::thread::spawn(move || caller.call(&Request::Fstat(handle())));
    std::thread::sleep(std::time::Duration::from_millis(20));
    wire.client.ender().end(Error::ended("cut off"));
    assert!(matches!(calling.join().unwrap(), Err(Error::Ended(_))));
    wire.client.request(&Request::Fstat(handle()), 10);
    assert!(!wire.outgoing.wait());
    assert_eq!(wire.outgoing.fill(&mut [IoSliceMut::new(&mut memory)]), 0);
    wire.say(&[3; 8]).unwrap();
    wire.incoming.end();
    let events = wire.events();
    let ends = events.iter().filter(|event| matches!(event, Event::Ended(_))).count();
    assert_eq!(ends, 1);
    let mut tokens: Vec<u64> = answers(events).iter().map(|(token, _)| *token).collect();
    tokens.sort_unstable();
    assert_eq!(tokens, [7, 8, 9, 10]);
}

#[test]
fn the_sending_half_ends_after_the_last_client_and_the_last_answer() {
    let mut wire = Wire::new();
    let Wire { client, outgoing, incoming, .. } = &mut wire;
    client.request(&Request::Fstat(handle()), 1);
    let mut memory = vec![0; 1000];
    assert!(outgoing.wait());
    assert!(outgoing.fill(&mut [IoSliceMut::new(&mut memory)]) > 0);
    let (spare, _, _) = pair(channel().0);
    drop(std::mem::replace(client, spare));
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| outgoing.wait());
        std::thread::sleep(std::time::Duration::from_millis(20));
        assert!(!waiting.is_finished(), "an answer is still owed");
        let mut bytes = Vec::new();
        Reply::status(Status::NoSuchFile).encode(1, &mut bytes);
        incoming.take(&[IoSlice::new(&bytes)]).unwrap();
        assert!(!waiting.join().unwrap());
    });
}

/// A target beyond what was asked for stays as it is, whatever comes in however many pieces.
#[test]
fn payload_in_small_pieces_lands_in_its_place() {
    let mut wire = Wire::new();
    let file = file(&[9; 3000]);
    let id = wire.get(1000, Target::File { file: Arc::clone(&file), offset: 1000 });
    let mut bytes = Vec::new();
    Reply::Data((0..1000u32).map(|i| i as u8).collect()).encode(id, &mut bytes);
    let pieces: Vec<_> = bytes.chunks(3).map(IoSlice::new).collect();
    for some in pieces.chunks(50) {
        wire.incoming.take(some).unwrap();
    }
    let mut content = vec![0; 3000];
    file.read_exact_at(&mut content, 0).unwrap();
    assert!(content[..1000].iter().chain(&content[2000..]).all(|byte| *byte == 9));
    assert!(content[1000..2000].iter().zip(0..).all(|(byte, i): (_, u32)| *byte == i as u8));
}
