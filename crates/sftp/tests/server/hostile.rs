//! Clients that break the protocol or ask for what they may not have.

use crate::peer::*;
use sftp::codec::*;
use stand_ins::noise;
use std::fs;
use std::io::IoSlice;
use std::os::unix::fs::MetadataExt;

#[test]
fn f6_reads_of_any_length_end() {
    let mut peer = Peer::new("");
    let data = noise(1, 600_000);
    fs::write(peer.path("file"), &data).unwrap();
    let handle = peer.open("file", OpenFlags::READ);
    assert_eq!(peer.call(read(&handle, 0, 0)), Reply::Data(Vec::new()), "as OpenSSH's");
    let Reply::Data(most) = peer.call(read(&handle, 0, u32::MAX)) else { panic!() };
    assert!(most == data[..MAX_DATA as usize]);
    let Reply::Data(last) = peer.call(read(&handle, 599_999, 100)) else { panic!() };
    assert_eq!(last, data[599_999..]);
    for beyond in [600_000, 1 << 40, 1 << 62] {
        assert_eq!(code(&peer.call(read(&handle, beyond, 1))), Status::Eof, "{beyond}");
    }
    assert_eq!(code(&peer.call(read(&handle, u64::MAX, 1))), Status::BadMessage);
}

#[test]
fn f6_lengths_out_of_bounds_end_the_session() {
    for length in [0, MAX_PACKET as u32 + 1, u32::MAX] {
        let mut peer = Peer::new("");
        let id = peer.ask(&Request::Stat(b".".to_vec()));
        assert!(peer.try_send(&length.to_be_bytes()).is_err(), "{length}");
        assert!(matches!(peer.reply(id), Reply::Attrs(_)), "what was right is answered");
        peer.sender_ends();
        assert_eq!(peer.session.exit_status(), 11);
    }
}

#[test]
fn f6_a_request_that_is_none_is_refused_and_the_next_one_served() {
    let mut peer = Peer::new("");
    let send = |peer: &mut Peer, kind: u8, id: u32, body: &[u8]| {
        let length = u32::try_from(5 + body.len()).unwrap();
        let bytes = [&length.to_be_bytes()[..], &[kind], &id.to_be_bytes(), body].concat();
        peer.send(&bytes);
        code(&peer.reply(id))
    };
    let too_long = [&100u32.to_be_bytes()[..], b"short"].concat();
    assert_eq!(send(&mut peer, kind::STAT, 1001, &too_long), Status::BadMessage);
    assert_eq!(send(&mut peer, kind::STAT, 1002, b"\0\0\0\x01.more"), Status::BadMessage);
    assert_eq!(send(&mut peer, 77, 1003, b"anything"), Status::Unsupported);
    assert!(matches!(peer.call(Request::Stat(b".".to_vec())), Reply::Attrs(_)));
    assert_eq!(peer.session.exit_status(), 0);
}

#[test]
fn f6_what_only_a_server_says_ends_the_session() {
    for kind in [kind::INIT, kind::VERSION, kind::DATA, kind::EXTENDED_REPLY] {
        let mut peer = Peer::new("");
        let bytes = [&9u32.to_be_bytes()[..], &[kind], &[0; 8]].concat();
        assert!(peer.try_send(&bytes).is_err(), "{kind}");
        peer.sender_ends();
        assert_eq!(peer.session.exit_status(), 11);
    }
}

#[test]
fn f6_nothing_is_served_before_init() {
    let (dir, mut input, _output, session, _) = open("");
    let mut bytes = Vec::new();
    Request::Mkdir(b"dir".to_vec(), Attrs::default()).encode(1, &mut bytes);
    assert!(input.take(&[IoSlice::new(&bytes)]).is_err());
    assert_eq!(session.exit_status(), 11);
    assert!(names(dir.path()).is_empty());
}

/// The data of a WRITE is inside its packet.
#[test]
fn f6_a_write_that_contradicts_itself_writes_nothing() {
    for (packet, data) in [(100, 101), (100, u32::MAX), (0, 1)] {
        let mut peer = Peer::new("");
        let handle = peer.create("file");
        let mut bytes = Vec::new();
        WriteHead { id: 5, handle, offset: 0, len: data }.encode(&mut bytes);
        let head = u32::try_from(bytes.len()).unwrap() - 4;
        bytes[..4].copy_from_slice(&(head + packet).to_be_bytes());
        bytes.extend([b'x'; 100]);
        assert!(peer.try_send(&bytes).is_err(), "{packet} {data}");
        assert!(fs::read(peer.path("file")).unwrap().is_empty());
    }
}

/// rclone 1.60 says that 4,096 of the 32,768 bytes it sends are the data.
#[test]
fn what_follows_the_data_of_a_write_is_skipped() {
    for step in [1, 7, 1000] {
        let mut peer = Peer::new("");
        let handle = peer.create("file");
        let mut bytes = Vec::new();
        for (offset, data) in [(0, 100), (100, 0), (100, 5)] {
            let (start, handle) = (bytes.len(), handle.clone());
            WriteHead { id: 5, handle, offset, len: data }.encode(&mut bytes);
            let head = u32::try_from(bytes.len() - start).unwrap() - 4;
            bytes[start..start + 4].copy_from_slice(&(head + 150).to_be_bytes());
            bytes.extend((0..150).map(|at| if at < data { b'x' } else { b'-' }));
        }
        for piece in bytes.chunks(step) {
            peer.try_send(piece).unwrap();
        }
        assert_eq!(fs::read(peer.path("file")).unwrap(), [b'x'; 105]);
    }
}

#[test]
fn f7_handles_of_one_session_mean_nothing_in_another() {
    let (mut one, mut other) = (Peer::new(""), Peer::new(""));
    fs::write(one.path("file"), "of one").unwrap();
    let handle = one.open("file", OpenFlags::READ);
    assert_eq!(text(&other.call(read(&handle, 0, 10))), "Invalid handle");
    assert_eq!(text(&other.call(Request::Close(handle.clone()))), "Invalid handle");
    assert!(matches!(one.call(read(&handle, 0, 10)), Reply::Data(_)));
}

/// A handle is for what it was opened for.
#[test]
fn f7_handles_of_directories_and_files_are_not_mixed_up() {
    let mut peer = Peer::new("");
    fs::write(peer.path("file"), "x").unwrap();
    let Reply::Handle(dir) = peer.call(Request::Opendir(b".".to_vec())) else { panic!() };
    let (reader, writer) =
        (peer.open("file", OpenFlags::READ), peer.open("file", OpenFlags::WRITE));
    for wrong in [
        read(&dir, 0, 1),
        write(&dir, 0, b"x"),
        read(&writer, 0, 1),
        write(&reader, 0, b"y"),
        Request::Readdir(reader.clone()),
        Request::Extended(Extended::SparseMap { handle: writer, offset: 0 }),
    ] {
        assert_eq!(text(&peer.call(wrong.clone())), "Invalid handle", "{wrong:?}");
    }
    assert_eq!(fs::read(peer.path("file")).unwrap(), b"x");
}

/// A WRITE of which any part failed is not told as done, though later parts went well (F5).
#[test]
fn f5_a_write_that_failed_in_the_middle_failed() {
    let mut peer = Peer::shaped("-d /dev", 1000, 16);
    let full = peer.open("full", OpenFlags::WRITE);
    let reply = peer.call(write(&full, 0, &noise(1, 100_000)));
    assert_eq!((code(&reply), text(&reply).as_str()), (Status::Failure, "No space left on device"));
    let null = peer.open("null", OpenFlags::WRITE);
    ok(&peer.call(write(&null, 1 << 40, &noise(1, 100_000))));
}

/// Everything that could change something, against the disk (F8).
#[test]
fn f8_read_only_changes_nothing() {
    let mut peer = Peer::new("-R");
    fs::write(peer.path("file"), "content").unwrap();
    fs::create_dir(peer.path("dir")).unwrap();
    let before = fs::metadata(peer.path("file")).unwrap();
    let handle = peer.open("file", OpenFlags::READ);
    let file = || b"file".to_vec();
    let attrs = || Attrs { size: Some(0), mode: Some(0), times: Some((1, 1)), ..Attrs::default() };
    let mut requests = vec![
        write(&handle, 0, b"changed"),
        Request::Setstat(file(), attrs()),
        Request::Fsetstat(handle.clone(), attrs()),
        Request::Remove(file()),
        Request::Mkdir(b"new".to_vec(), Attrs::default()),
        Request::Rmdir(b"dir".to_vec()),
        Request::Rename { from: file(), to: b"new".to_vec() },
        Request::Symlink { target: file(), link: b"new".to_vec() },
    ];
    let put = PutFile { path: b"new".to_vec(), attrs: Attrs::default(), content: vec![] };
    requests.extend(
        [
            Extended::PosixRename { from: file(), to: b"new".to_vec() },
            Extended::Hardlink { from: file(), to: b"new".to_vec() },
            Extended::Fsync(handle.clone()),
            Extended::Lsetstat(file(), Attrs { times: Some((1, 1)), ..Attrs::default() }),
            Extended::CopyData {
                from: handle.clone(),
                from_offset: 0,
                len: 1,
                to: handle.clone(),
                to_offset: 1,
            },
            Extended::PutFiles { flags: PutFlags::default(), files: vec![put] },
            Extended::SetXattrs(handle.clone(), vec![(b"user.x".to_vec(), vec![])]),
        ]
        .map(Request::Extended),
    );
    let changing = OpenFlags::WRITE.0 | OpenFlags::CREATE.0 | OpenFlags::TRUNCATE.0;
    let (bad, harmless): (Vec<_>, Vec<_>) =
        (0..64).map(OpenFlags).partition(|flags| flags.0 & changing != 0);
    for flags in harmless {
        let handle = peer.open("file", flags);
        assert_eq!(peer.call(read(&handle, 0, 7)), Reply::Data(b"content".to_vec()));
        assert_eq!(code(&peer.call(write(&handle, 0, b"changed"))), Status::PermissionDenied);
        assert_eq!(code(&peer.call(Request::Close(handle))), Status::Ok);
    }
    for flags in bad {
        for path in [file(), b"new".to_vec()] {
            requests.push(Request::Open { path, flags, attrs: Attrs::default() });
        }
    }
    for request in requests {
        let reply = peer.call(request.clone());
        assert_eq!(code(&reply), Status::PermissionDenied, "{request:?}");
    }
    let after = fs::metadata(peer.path("file")).unwrap();
    assert_eq!(names(peer.dir.path()), ["dir", "file"]);
    assert_eq!((before.ctime(), before.ctime_nsec()), (after.ctime(), after.ctime_nsec()));
    assert!(matches!(peer.call(read(&handle, 0, 7)), Reply::Data(data) if data == b"content"));
}

/// A FIFO without a partner must not hold up the session.
#[test]
fn opening_a_fifo_waits_for_nobody() {
    let mut peer = Peer::new("");
    let made = std::process::Command::new("mkfifo").arg(peer.path("fifo")).status().unwrap();
    assert!(made.success());
    peer.open("fifo", OpenFlags::READ);
    peer.silence();
}
