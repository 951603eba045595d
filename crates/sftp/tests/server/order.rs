//! Requests that are sent without waiting: effects in order, replies in any, and never more held
//! than is bounded.

use crate::peer::*;
use sftp::codec::*;
use stand_ins::noise;
use std::fs;
use std::io::{IoSlice, IoSliceMut};

/// What clients rely on: everything of a file may be sent at once.
#[test]
fn a_file_that_is_sent_without_waiting_is_whole_and_in_place() {
    for piece in [32 * 1024, 333] {
        let mut peer = Peer::shaped("", piece, 16);
        let handle = peer.create("part");
        let data = noise(1, 300_000);
        let mut bytes = Vec::new();
        let mode = Attrs { mode: Some(0o600), times: Some((7, 8)), ..Attrs::default() };
        let requests = [
            write(&handle, 0, &data[..100_000]),
            write(&handle, 100_000, &data[100_000..]),
            Request::Fsetstat(handle.clone(), mode),
            Request::Extended(Extended::Fsync(handle.clone())),
            Request::Close(handle.clone()),
            Request::Extended(Extended::PosixRename { from: b"part".into(), to: b"file".into() }),
            Request::Setstat(b"file".to_vec(), Attrs { mode: Some(0o640), ..Attrs::default() }),
        ];
        let ids: Vec<_> = requests.iter().map(|r| peer.encode(r, &mut bytes)).collect();
        let stat = peer.encode(&Request::Stat(b"file".to_vec()), &mut bytes);
        peer.send(&bytes);
        ids.into_iter().for_each(|id| ok(&peer.reply(id)));
        let Reply::Attrs(attrs) = peer.reply(stat) else { panic!() };
        assert_eq!((attrs.size, attrs.mode), (Some(300_000), Some(0o100_640)));
        assert_eq!(attrs.times, Some((7, 8)));
        assert!(fs::read(peer.path("file")).unwrap() == data);
    }
}

#[test]
fn a_write_waits_for_what_came_before_it_on_its_file() {
    let mut peer = Peer::new("");
    let handle = peer.create("file");
    ok(&peer.call(write(&handle, 0, &[b'a'; 100_000])));
    for round in 0..50 {
        let mut bytes = Vec::new();
        let by_handle = Attrs { size: Some(round), ..Attrs::default() };
        let by_path = Attrs { size: Some(100_000), ..Attrs::default() };
        let old = peer.encode(&read(&handle, 0, 100_000), &mut bytes);
        let ids = [
            peer.encode(&write(&handle, 0, &[b'b'; 100_000]), &mut bytes),
            peer.encode(&Request::Fsetstat(handle.clone(), by_handle), &mut bytes),
            peer.encode(&write(&handle, 50_000, b"x"), &mut bytes),
            peer.encode(&Request::Setstat(b"file".to_vec(), by_path), &mut bytes),
            peer.encode(&write(&handle, 0, &[b'a'; 100_000]), &mut bytes),
        ];
        let last = peer.encode(&Request::Fstat(handle.clone()), &mut bytes);
        peer.send(&bytes);
        let Reply::Data(old) = peer.reply(old) else { panic!() };
        assert!(old == [b'a'; 100_000], "round {round}: a READ saw a later WRITE");
        ids.into_iter().for_each(|id| ok(&peer.reply(id)));
        let Reply::Attrs(attrs) = peer.reply(last) else { panic!() };
        assert_eq!(attrs.size, Some(100_000));
    }
}

/// What is asked first is overwritten, not what is asked last.
#[test]
fn a_write_waits_for_what_cuts_or_copies_its_file_by_another_handle() {
    let mut peer = Peer::new("");
    fs::File::create(peer.path("large")).unwrap().set_len(64 << 20).unwrap();
    fs::write(peer.path("old"), noise(1, 100_000)).unwrap();
    let (large, old) = (peer.open("large", OpenFlags::READ), peer.open("old", OpenFlags::READ));
    let slow = Extended::BlockHashes { handle: large, offset: 0, len: 0, block: 1 << 20 };
    for round in 0..3 {
        let (handle, other) = (peer.create("file"), peer.create("file"));
        let before = match round {
            0 => Request::Open {
                path: b"file".to_vec(),
                flags: OpenFlags::WRITE | OpenFlags::TRUNCATE,
                attrs: Attrs::default(),
            },
            1 => Request::Extended(Extended::CopyData {
                from: old.clone(),
                from_offset: 0,
                len: 0,
                to: other,
                to_offset: 0,
            }),
            _ => Request::Fsetstat(other, Attrs { size: Some(0), ..Attrs::default() }),
        };
        let mut bytes = Vec::new();
        let ids = [Request::Extended(slow.clone()), before, write(&handle, 0, b"new")]
            .map(|request| peer.encode(&request, &mut bytes));
        peer.send(&bytes);
        ids.into_iter().for_each(|id| drop(peer.reply(id)));
        assert!(fs::read(peer.path("file")).unwrap().starts_with(b"new"), "round {round}");
    }
}

/// A WRITE after the CLOSE of its handle is refused, whoever got there first.
#[test]
fn a_closed_handle_is_closed_for_all_that_follows() {
    let mut peer = Peer::new("");
    for _ in 0..50 {
        let handle = peer.create("file");
        let mut bytes = Vec::new();
        let close = peer.encode(&Request::Close(handle.clone()), &mut bytes);
        let late = [
            peer.encode(&write(&handle, 0, b"late"), &mut bytes),
            peer.encode(&read(&handle, 0, 1), &mut bytes),
            peer.encode(&Request::Close(handle), &mut bytes),
        ];
        peer.send(&bytes);
        ok(&peer.reply(close));
        for id in late {
            assert_eq!(text(&peer.reply(id)), "Invalid handle");
        }
    }
    assert!(fs::read(peer.path("file")).unwrap().is_empty());
}

/// Names and attributes change in the order they were asked to.
#[test]
fn changes_keep_their_order() {
    let mut peer = Peer::new("");
    let mut bytes = Vec::new();
    let mut ids = Vec::new();
    for n in 0..300 {
        let path = format!("d{n}").into_bytes();
        let to = format!("e{n}").into_bytes();
        let requests = [
            Request::Mkdir(path.clone(), Attrs::default()),
            Request::Lstat(path.clone()),
            Request::Extended(Extended::PosixRename { from: path, to: to.clone() }),
            Request::Lstat(to.clone()),
            Request::Rmdir(to.clone()),
        ];
        ids.extend(requests.iter().map(|request| peer.encode(request, &mut bytes)));
        ids.push(peer.encode(&Request::Lstat(to), &mut bytes));
    }
    peer.send(&bytes);
    for (n, id) in ids.into_iter().enumerate() {
        match (n % 6, peer.reply(id)) {
            (0 | 2 | 4, reply) => ok(&reply),
            (5, reply) => assert_eq!(code(&reply), Status::NoSuchFile),
            (_, reply) => assert!(matches!(reply, Reply::Attrs(_)), "{reply:?}"),
        }
    }
}

#[test]
fn long_work_does_not_hold_up_what_is_short() {
    let mut peer = Peer::new("");
    let file = fs::File::create(peer.path("large")).unwrap();
    file.set_len(64 << 20).unwrap();
    fs::write(peer.path("small"), "x").unwrap();
    let (large, small) = (peer.open("large", OpenFlags::READ), peer.open("small", OpenFlags::READ));
    let hashes = Extended::BlockHashes { handle: large, offset: 0, len: 0, block: 1 << 20 };
    let mut bytes = Vec::new();
    let long = peer.encode(&Request::Extended(hashes), &mut bytes);
    let short = peer.encode(&read(&small, 0, 10), &mut bytes);
    peer.send(&bytes);
    assert_eq!(peer.order(2), [short, long]);
}

/// A client that does not fetch its replies is not listened to for ever (F7).
#[test]
fn f7_requests_that_wait_are_bounded() {
    let (dir, mut input, mut output, session, _) = open("");
    fs::write(dir.path().join("file"), "x").unwrap();
    let mut bytes = Vec::new();
    Hello { version: VERSION, extensions: Vec::new() }.encode_init(&mut bytes);
    input.take(&[IoSlice::new(&bytes)]).unwrap();
    let count = 100_000;
    let mut bytes = Vec::new();
    for id in 0..count {
        Request::Stat(b"file".to_vec()).encode(id, &mut bytes);
    }
    let one = bytes.len() / 100_000;
    let taken = input.take(&[IoSlice::new(&bytes)]).unwrap();
    assert!((1..5000).contains(&(taken / one)), "{} requests taken", taken / one);
    assert_eq!(input.take(&[IoSlice::new(&bytes[taken..])]).unwrap(), 0);
    // As soon as some are answered, more are taken; in the end all were.
    let mut left = &bytes[taken..];
    let mut memory = vec![0; 100_000];
    let mut received = 0;
    while !left.is_empty() {
        assert!(output.wait());
        received += output.fill(&mut [IoSliceMut::new(&mut memory)]);
        let taken = input.take(&[IoSlice::new(left)]).unwrap();
        left = &left[taken..];
    }
    input.end();
    while output.wait() {
        received += output.fill(&mut [IoSliceMut::new(&mut memory)]);
    }
    assert!(received > 100_000 * 13);
    assert_eq!(session.exit_status(), 0);
}

/// Nor do the hands go on working for it: what they have done is held in memory.
#[test]
fn f7_replies_that_nobody_fetches_are_bounded() {
    let (dir, mut input, mut output, _session, log) = open("");
    fs::write(dir.path().join("file"), noise(1, 200_000)).unwrap();
    let mut bytes = Vec::new();
    Hello { version: VERSION, extensions: Vec::new() }.encode_init(&mut bytes);
    let count = 200;
    for id in 0..count {
        let files = vec![GetFile { path: b"file".to_vec(), most: u32::MAX }];
        Request::Extended(Extended::GetFiles(files)).encode(id, &mut bytes);
    }
    assert_eq!(input.take(&[IoSlice::new(&bytes)]).unwrap(), bytes.len());
    input.end();
    // Long enough for hands that nothing stops to read most of it.
    std::thread::sleep(std::time::Duration::from_millis(100));
    let got = log.all().iter().filter(|line| line.starts_with("get ")).count();
    assert!(got < 10, "{got} replies of 200 KB are held");
    let mut memory = vec![0; 1 << 20];
    let mut received = 0;
    while output.wait() {
        received += output.fill(&mut [IoSliceMut::new(&mut memory)]);
    }
    assert!(received > 200 * 200_000);
}

/// After the client's EOF all that it asked for is answered; then, and only then, it is over.
#[test]
fn what_was_asked_before_the_end_is_answered() {
    let mut peer = Peer::new("");
    fs::write(peer.path("file"), noise(1, 1_000_000)).unwrap();
    let handle = peer.open("file", OpenFlags::READ);
    let mut bytes = Vec::new();
    let ids: Vec<_> =
        (0..100).map(|n| peer.encode(&read(&handle, n * 10_000, 10_000), &mut bytes)).collect();
    peer.send(&bytes);
    peer.input.end();
    for id in ids {
        assert!(matches!(peer.reply(id), Reply::Data(data) if data.len() == 10_000));
    }
    peer.sender_ends();
    assert_eq!(peer.session.exit_status(), 0);
}

#[test]
fn a_client_that_is_gone_leaves_nobody_waiting() {
    let mut peer = Peer::new("");
    let file = fs::File::create(peer.path("large")).unwrap();
    file.set_len(1 << 40).unwrap();
    let (from, to) = (peer.open("large", OpenFlags::READ), peer.create("copy"));
    let copy = Extended::CopyData { from: from.clone(), from_offset: 0, len: 0, to, to_offset: 0 };
    peer.ask(&Request::Extended(copy));
    peer.ask(&read(&from, 0, 1));
    peer.session.hang_up();
    peer.sender_ends();
    // What still comes is dropped: nobody would ever make room for it.
    let mut bytes = Vec::new();
    for _ in 0..10_000 {
        peer.encode(&Request::Mkdir(b"late".to_vec(), Attrs::default()), &mut bytes);
    }
    peer.send(&bytes);
    assert!(!peer.path("late").exists());
}
