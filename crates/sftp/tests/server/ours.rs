//! Requests of our own (PROTOCOL.md).

use crate::peer::*;
use sftp::codec::*;
use stand_ins::noise;
use std::fs;
use std::os::unix::fs::{FileExt, MetadataExt};

fn file(path: &str, content: &[u8]) -> PutFile {
    PutFile { path: path.into(), attrs: Attrs::default(), content: content.to_vec() }
}

fn put(peer: &mut Peer, flags: PutFlags, files: Vec<PutFile>) -> Vec<FileStatus> {
    let content = peer.content(Extended::PutFiles { flags, files });
    FileStatus::parse_list(&content).unwrap()
}

#[test]
fn files_are_put_with_their_attributes() {
    for flags in [PutFlags::default(), PutFlags::FSYNC] {
        let mut peer = Peer::new("");
        fs::create_dir(peer.path("dir")).unwrap();
        let mut attrs = Attrs { mode: Some(0o640), times: Some((1, 2)), ..Attrs::default() };
        attrs.set_nanoseconds(3, 4);
        let absolute = peer.path("dir/absolute");
        let files = vec![
            PutFile { attrs, ..file("a", b"first") },
            file("dir/b", &noise(1, 100_000)),
            file(absolute.to_str().unwrap(), b""),
        ];
        let statuses = put(&mut peer, flags | PutFlags::EXACT, files);
        assert!(statuses.iter().all(|status| status.code == Status::Ok), "{statuses:?}");
        let meta = fs::metadata(peer.path("a")).unwrap();
        assert_eq!((mode(&peer.path("a")), meta.mtime(), meta.mtime_nsec()), (0o640, 2, 4));
        assert!(fs::read(peer.path("dir/b")).unwrap() == noise(1, 100_000));
        assert_eq!(names(&peer.path("dir")), ["absolute", "b"]);
    }
}

/// However short its request is, a reply is a packet.
#[test]
fn f6_answers_to_many_files_fit_into_a_packet() {
    let mut peer = Peer::new("");
    let files = |count| Extended::PutFiles {
        flags: PutFlags::default(),
        files: std::iter::repeat_with(|| file("", b"")).take(count).collect(),
    };
    assert!(peer.content(files(2_000)).len() < MAX_PACKET);
    let reply = peer.call(Request::Extended(files(2_001)));
    assert_eq!(code(&reply), Status::Failure);
}

/// Nothing, the old file or the new one: whatever goes wrong with a file, others are put, and
/// nothing is left over.
#[test]
fn r1_a_file_that_cannot_be_put_leaves_the_old_one_and_no_part() {
    let mut peer = Peer::new("");
    fs::create_dir(peer.path("dir")).unwrap();
    fs::write(peer.path("old"), "old").unwrap();
    let files = vec![
        file("dir", b"is a directory"),
        file("old", b"new"),
        file("nowhere/file", b""),
        file("dir/..", b""),
        file("", b""),
        file("last", b"last"),
    ];
    let statuses = put(&mut peer, PutFlags::NO_REPLACE | PutFlags::FSYNC, files);
    let told: Vec<_> =
        statuses.iter().map(|s| String::from_utf8(s.text.clone()).unwrap()).collect();
    let no_name = "Not the name of a file";
    let expected =
        ["File exists", "File exists", "No such file or directory", no_name, no_name, ""];
    assert_eq!(told, expected);
    assert_eq!(statuses[5].code, Status::Ok);
    assert_eq!(names(peer.dir.path()), ["dir", "last", "old"]);
    assert_eq!(fs::read(peer.path("old")).unwrap(), b"old");

    let statuses = put(&mut peer, PutFlags::default(), vec![file("dir", b""), file("old", b"new")]);
    assert_eq!((statuses[0].code, statuses[1].code), (Status::Failure, Status::Ok));
    assert_eq!(fs::read(peer.path("old")).unwrap(), b"new");
    assert_eq!(names(peer.dir.path()), ["dir", "last", "old"]);
}

/// A reader sees the old file or the new one, whole.
#[test]
fn r1_a_file_is_replaced_all_at_once() {
    let mut peer = Peer::new("");
    let (old, new) = (vec![b'o'; 200_000], vec![b'n'; 150_000]);
    fs::write(peer.path("file"), &old).unwrap();
    let path = peer.path("file");
    let reader = std::thread::spawn({
        let (old, new) = (old.clone(), new.clone());
        move || {
            for _ in 0..2000 {
                let seen = fs::read(&path).unwrap();
                assert!(seen == old || seen == new, "{} bytes", seen.len());
            }
        }
    });
    for round in 0..40 {
        let content = if round % 2 == 0 { &new } else { &old };
        let statuses = put(&mut peer, PutFlags::default(), vec![file("file", content)]);
        assert_eq!(statuses[0].code, Status::Ok);
    }
    reader.join().unwrap();
}

#[test]
fn f3_set_id_bits_are_for_those_who_name_the_owner() {
    let mut peer = Peer::new("-u 022");
    let owner = fs::metadata(peer.dir.path()).map(|meta| (meta.uid(), meta.gid())).unwrap();
    let special = |path, owner| PutFile {
        attrs: Attrs { mode: Some(0o106_777), owner, ..Attrs::default() },
        ..file(path, b"")
    };
    put(&mut peer, PutFlags::default(), vec![special("plain", Some(owner))]);
    put(&mut peer, PutFlags::EXACT, vec![special("exact", None), special("owned", Some(owner))]);
    // Nobody: the owner stays as it is (chown(2)).
    put(&mut peer, PutFlags::EXACT, vec![special("nobody", Some((u32::MAX, owner.1)))]);
    let modes = ["plain", "exact", "owned", "nobody"].map(|name| mode(&peer.path(name)));
    assert_eq!(modes, [0o755, 0o777, 0o6777, 0o777]);
}

#[test]
fn files_are_got_whole_or_not_at_all() {
    let mut peer = Peer::new("");
    fs::write(peer.path("a"), "first").unwrap();
    fs::write(peer.path("large"), noise(1, 5000)).unwrap();
    fs::create_dir(peer.path("dir")).unwrap();
    let get = |path: &str, most| GetFile { path: path.into(), most };
    let files = vec![get("a", 5), get("a", 4), get("large", 100_000), get("dir", 9), get("no", 9)];
    let files = FileContent::parse_list(&peer.content(Extended::GetFiles(files))).unwrap();
    let told: Vec<_> =
        files.iter().map(|file| (file.code, file.attrs.size, file.content.len())).collect();
    assert_eq!(told[0], (Status::Ok, Some(5), 5));
    assert_eq!(told[1], (Status::Failure, Some(5), 0));
    assert_eq!(told[2], (Status::Ok, Some(5000), 5000));
    assert_eq!((told[3].0, told[4]), (Status::Failure, (Status::NoSuchFile, None, 0)));
    assert_eq!(files[0].content, b"first");
    assert!(files[0].attrs.nanoseconds().is_some());
}

#[test]
fn a_file_that_a_link_leads_to_is_told_apart_from_one_of_that_name() {
    let mut peer = Peer::new("");
    fs::create_dir(peer.path("dir")).unwrap();
    fs::write(peer.path("dir/file"), "content").unwrap();
    for (target, link) in [("dir/file", "link"), ("dir", "way"), ("nowhere", "dangling")] {
        std::os::unix::fs::symlink(target, peer.path(link)).unwrap();
    }
    let get = |path: &str| GetFile { path: path.into(), most: 9 };
    let files = ["dir/file", "link", "way/file", "dangling"].map(get).to_vec();
    let files = FileContent::parse_list(&peer.content(Extended::GetFiles(files))).unwrap();
    let told: Vec<_> = files.iter().map(|file| (file.code, file.attrs.followed())).collect();
    let (plain, missing) = ((Status::Ok, false), (Status::NoSuchFile, false));
    assert_eq!(told, [plain, (Status::Ok, true), plain, missing]);
    assert_eq!(files[1].content, b"content");
}

/// What does not fit into one reply is for the next request; the first is always answered.
#[test]
fn files_that_do_not_fit_one_reply_are_left_for_the_next() {
    let mut peer = Peer::new("");
    fs::write(peer.path("file"), noise(1, 100_000)).unwrap();
    fs::write(peer.path("huge"), noise(1, 300_000)).unwrap();
    let get = |path: &str| GetFile { path: path.into(), most: u32::MAX };
    let ask = |peer: &mut Peer, paths: &[&str]| {
        let files = paths.iter().copied().map(get).collect();
        let content = peer.content(Extended::GetFiles(files));
        assert!(content.len() < MAX_PACKET);
        let files = FileContent::parse_list(&content).unwrap();
        files.iter().map(|file| (file.code, file.content.len())).collect::<Vec<_>>()
    };
    let whole = (Status::Ok, 100_000);
    assert_eq!(ask(&mut peer, &["file"; 5]), [whole; 2]);
    assert_eq!(ask(&mut peer, &["huge", "file"]), [(Status::Failure, 0), whole]);
    assert_eq!(ask(&mut peer, &["file", "huge", "file"]), [whole]);
}

#[test]
fn blocks_are_hashed_to_the_end() {
    let mut peer = Peer::new("");
    let data = noise(1, 1_000_000);
    fs::write(peer.path("file"), &data).unwrap();
    let handle = peer.open("file", OpenFlags::READ);
    let mut hashes = |offset, len, block| {
        let request = Extended::BlockHashes { handle: handle.clone(), offset, len, block };
        match peer.extended(request) {
            Reply::Extended(content) => BlockHashes::parse(&content).unwrap(),
            refused => panic!("{refused:?}"),
        }
    };
    let expected = |from: usize, to: usize, block: usize| BlockHashes {
        hashed: (to - from) as u64,
        hashes: data[from..to].chunks(block).map(|b| *blake3::hash(b).as_bytes()).collect(),
    };
    assert!(hashes(0, 0, 65_536) == expected(0, 1_000_000, 65_536));
    assert!(hashes(0, 0, 300_000) == expected(0, 1_000_000, 300_000));
    assert!(hashes(100, 200_000, 65_536) == expected(100, 200_100, 65_536));
    assert!(hashes(999_000, 5000, 65_536) == expected(999_000, 1_000_000, 65_536));
    assert_eq!(hashes(1_000_000, 1, 65_536), BlockHashes::default());
    for block in [65_535, (1 << 30) + 1] {
        let wrong = Extended::BlockHashes { handle: handle.clone(), offset: 0, len: 0, block };
        assert_eq!(code(&peer.extended(wrong)), Status::BadMessage);
    }
}

#[test]
fn holes_are_told() {
    let mut peer = Peer::new("");
    let sparse = fs::File::create(peer.path("sparse")).unwrap();
    sparse.set_len(10 << 20).unwrap();
    sparse.write_all_at(&[1; 4096], 1 << 20).unwrap();
    sparse.write_all_at(&[1; 4096], 5 << 20).unwrap();
    let handle = peer.open("sparse", OpenFlags::READ);
    let mut map = |offset| {
        let content = peer.content(Extended::SparseMap { handle: handle.clone(), offset });
        SparseMap::parse(&content).unwrap()
    };
    let whole = map(0);
    assert_eq!(whole.size, 10 << 20);
    let data: u64 = whole.data.iter().map(|(_, len)| len).sum();
    assert!(whole.data.iter().any(|(start, len)| (*start..start + len).contains(&(5 << 20))));
    // A file system without holes says that all is data.
    if data < 10 << 20 {
        assert_eq!(whole.data.iter().map(|(at, _)| at >> 20).collect::<Vec<_>>(), [1, 5]);
        assert_eq!(map(4 << 20).data.len(), 1);
        assert!(map(8 << 20).data.is_empty());
    }
}

#[test]
fn extended_attributes_of_users_are_carried() {
    let mut peer = Peer::new("");
    let handle = peer.create("file");
    let pairs = vec![(b"user.name".to_vec(), b"\0value".to_vec()), (b"user.x".to_vec(), vec![])];
    let set = peer.extended(Extended::SetXattrs(handle.clone(), pairs.clone()));
    let kept = !text(&set).contains("not supported");
    if !need::have(kept, "extended attributes cannot be set here") {
        return;
    }
    ok(&set);
    let Xattrs(mut told) = Xattrs::parse(&peer.content(Extended::GetXattrs(handle))).unwrap();
    told.retain(|(name, _)| name.starts_with(b"user."));
    told.sort();
    assert_eq!(told, pairs);
}
