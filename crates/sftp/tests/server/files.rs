//! Requests of the draft and of OpenSSH.

use crate::peer::*;
use sftp::codec::*;
use stand_ins::noise;
use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};

#[test]
fn data_arrives_and_leaves_whatever_pieces_it_is_in() {
    let data = noise(1, 700_000);
    for (piece, areas) in [(32 * 1024, 16), (1000, 1), (7, 3), (100_000, 5), (1 << 20, 1)] {
        let mut peer = Peer::shaped("", piece, areas);
        let handle = peer.create("file");
        let mut bytes = Vec::new();
        let ids: Vec<_> = data
            .chunks(255 * 1024)
            .zip(0..)
            .map(|(chunk, n)| peer.encode(&write(&handle, n * 255 * 1024, chunk), &mut bytes))
            .collect();
        peer.send(&bytes);
        ids.into_iter().for_each(|id| ok(&peer.reply(id)));
        assert!(fs::read(peer.path("file")).unwrap() == data, "written in pieces of {piece}");
        assert!(peer.read_all(&handle, 255 * 1024) == data, "read in pieces of {piece}");
        assert!(peer.read_all(&handle, 32 * 1024) == data);
        ok(&peer.call(Request::Close(handle)));
        let output = peer.finish();
        drop(output);
    }
}

#[test]
fn what_the_server_can_do_is_announced() {
    let peer = Peer::new("");
    assert_eq!(peer.version.version, VERSION);
    for (name, version) in [
        (name::POSIX_RENAME, b"1"),
        (name::STATVFS, b"2"),
        (name::LIMITS, b"1"),
        (name::COPY_DATA, b"1"),
        (name::PUT_FILES, b"1"),
        (NANOSECONDS_WANTED, b"1"),
    ] {
        assert_eq!(peer.version.value(name), Some(&version[..]));
    }
}

#[test]
fn limits_are_those_of_openssh() {
    let limits = Limits::parse(&Peer::new("").content(Extended::Limits)).unwrap();
    assert_eq!((limits.packet, limits.read, limits.write), (262_144, 261_120, 261_120));
    assert!(limits.handles > 0);
}

#[test]
fn attributes_are_told_and_set_to_the_nanosecond() {
    let mut peer = Peer::new("");
    fs::write(peer.path("file"), "12345").unwrap();
    let mut attrs = Attrs {
        mode: Some(0o640),
        times: Some((1_000_000_000, 1_234_567_890)),
        ..Attrs::default()
    };
    attrs.set_nanoseconds(1, 987_654_321);
    ok(&peer.call(Request::Setstat(b"file".to_vec(), attrs)));
    let Reply::Attrs(told) = peer.call(Request::Stat(b"file".to_vec())) else { panic!() };
    assert_eq!((told.size, told.times), (Some(5), Some((1_000_000_000, 1_234_567_890))));
    assert_eq!((told.mode, told.nanoseconds()), (Some(0o100_640), Some((1, 987_654_321))));
    let meta = fs::metadata(peer.path("file")).unwrap();
    assert_eq!((meta.mtime(), meta.mtime_nsec()), (1_234_567_890, 987_654_321));
    assert_eq!(told.owner, Some((meta.uid(), meta.gid())));

    let handle = peer.open("file", OpenFlags::READ | OpenFlags::WRITE);
    let size = Attrs { size: Some(2), ..Attrs::default() };
    ok(&peer.call(Request::Fsetstat(handle.clone(), size.clone())));
    let Reply::Attrs(told) = peer.call(Request::Fstat(handle)) else { panic!() };
    assert_eq!(told.size, Some(2));
    let refused = peer.extended(Extended::Lsetstat(b"file".to_vec(), size));
    assert_eq!(code(&refused), Status::BadMessage);
}

/// chown(2) takes a number of all ones for "leave it".
#[test]
fn an_owner_that_nobody_is_leaves_the_owner() {
    let mut peer = Peer::new("");
    fs::write(peer.path("file"), "").unwrap();
    let before = fs::metadata(peer.path("file")).unwrap();
    let attrs = Attrs { owner: Some((u32::MAX, u32::MAX)), ..Attrs::default() };
    ok(&peer.call(Request::Setstat(b"file".to_vec(), attrs.clone())));
    let handle = peer.create("file");
    ok(&peer.call(Request::Fsetstat(handle, attrs.clone())));
    let file = PutFile { path: b"put".to_vec(), attrs, content: Vec::new() };
    let put = Extended::PutFiles { flags: PutFlags::EXACT, files: vec![file] };
    assert_eq!(FileStatus::parse_list(&peer.content(put)).unwrap()[0].code, Status::Ok);
    for name in ["file", "put"] {
        let after = fs::metadata(peer.path(name)).unwrap();
        assert_eq!((after.uid(), after.gid()), (before.uid(), before.gid()));
    }
}

#[test]
fn links_are_made_read_and_not_followed_where_asked() {
    let mut peer = Peer::new("");
    fs::write(peer.path("file"), "").unwrap();
    let (target, link) = (b"file".to_vec(), b"link".to_vec());
    ok(&peer.call(Request::Symlink { target, link: link.clone() }));
    assert_eq!(fs::read_link(peer.path("link")).unwrap().to_str(), Some("file"));
    let Reply::Names(names) = peer.call(Request::Readlink(link.clone())) else { panic!() };
    assert_eq!(names[0].name, b"file");
    let kind = |reply| match reply {
        Reply::Attrs(attrs) => attrs.mode.unwrap() >> 12,
        other => panic!("{other:?}"),
    };
    assert_eq!(kind(peer.call(Request::Stat(link.clone()))), 0o10);
    assert_eq!(kind(peer.call(Request::Lstat(link.clone()))), 0o12);
    let times = Attrs { times: Some((5, 6)), ..Attrs::default() };
    ok(&peer.extended(Extended::Lsetstat(link, times)));
    assert_eq!(fs::symlink_metadata(peer.path("link")).unwrap().mtime(), 6);
    assert_ne!(fs::metadata(peer.path("file")).unwrap().mtime(), 6);
    ok(&peer.extended(Extended::Hardlink { from: b"file".to_vec(), to: b"hard".to_vec() }));
    assert_eq!(fs::metadata(peer.path("hard")).unwrap().nlink(), 2);
}

#[test]
fn rename_never_replaces_and_posix_rename_does() {
    let mut peer = Peer::new("");
    let (from, to) = (b"from".to_vec(), b"to".to_vec());
    fs::write(peer.path("from"), "new").unwrap();
    fs::write(peer.path("to"), "old").unwrap();
    let refused = peer.call(Request::Rename { from: from.clone(), to: to.clone() });
    assert_eq!((code(&refused), text(&refused).as_str()), (Status::Failure, "File exists"));
    assert_eq!(fs::read(peer.path("to")).unwrap(), b"old");
    ok(&peer.extended(Extended::PosixRename { from: from.clone(), to: to.clone() }));
    assert_eq!(fs::read(peer.path("to")).unwrap(), b"new");
    ok(&peer.call(Request::Rename { from: to, to: from }));
    assert_eq!(names(peer.dir.path()), ["from"]);
}

#[test]
fn directories_are_listed_whole_in_bounded_replies() {
    let mut peer = Peer::new("");
    ok(&peer.call(Request::Mkdir(b"dir".to_vec(), Attrs::default())));
    let mut expected: Vec<String> = (0..3000).map(|n| format!("a name of a file {n:05}")).collect();
    for name in &expected {
        fs::write(peer.path("dir").join(name), "x").unwrap();
    }
    symlink("nowhere", peer.path("dir").join("link")).unwrap();
    expected.extend([".", "..", "link"].map(str::to_owned));
    expected.sort();
    let Reply::Handle(handle) = peer.call(Request::Opendir(b"dir".to_vec())) else { panic!() };
    let (mut found, mut replies) = (Vec::new(), 0);
    loop {
        match peer.call(Request::Readdir(handle.clone())) {
            Reply::Names(names) => found.extend(names),
            end => break assert_eq!(code(&end), Status::Eof),
        }
        replies += 1;
    }
    assert!(replies > 1, "all in one reply");
    for name in &found {
        assert!(name.longname.ends_with(&name.name) && name.attrs.mode.is_some());
    }
    let mut names: Vec<_> =
        found.iter().map(|name| String::from_utf8(name.name.clone()).unwrap()).collect();
    names.sort();
    assert_eq!(names, expected);
    let link = found.iter().find(|name| name.name == b"link").unwrap();
    assert!(link.longname.starts_with(b"lrwxrwxrwx"), "{:?}", link.longname);
    ok(&peer.call(Request::Close(handle)));
    let full = peer.call(Request::Rmdir(b"dir".to_vec()));
    assert_eq!(text(&full), "Directory not empty");
}

#[test]
fn paths_are_bytes() {
    let mut peer = Peer::new("");
    let path = b"\xff\xfe new\nline".to_vec();
    let flags = OpenFlags::WRITE | OpenFlags::CREATE;
    let open = Request::Open { path: path.clone(), flags, attrs: Attrs::default() };
    assert!(matches!(peer.call(open), Reply::Handle(_)));
    let Reply::Names(real) = peer.call(Request::Realpath(path.clone())) else { panic!() };
    assert!(real[0].name.ends_with(&path));
    ok(&peer.call(Request::Remove(path)));
    assert!(names(peer.dir.path()).is_empty());
}

#[test]
fn copies_are_made_inside_the_server() {
    let mut peer = Peer::new("");
    let data = noise(1, 1_000_000);
    fs::write(peer.path("from"), &data).unwrap();
    let (from, to) = (peer.open("from", OpenFlags::READ), peer.create("to"));
    let copy = |from: &Handle, from_offset, len, to: &Handle, to_offset| Extended::CopyData {
        from: from.clone(),
        from_offset,
        len,
        to: to.clone(),
        to_offset,
    };
    ok(&peer.extended(copy(&from, 0, 0, &to, 0)));
    assert!(fs::read(peer.path("to")).unwrap() == data);
    ok(&peer.extended(copy(&from, 10, 100, &to, 5)));
    assert!(fs::read(peer.path("to")).unwrap()[5..105] == data[10..110]);
    assert_eq!(code(&peer.extended(copy(&from, 999_999, 2, &to, 0))), Status::Eof);
    assert_eq!(code(&peer.extended(copy(&from, 0, 1, &from, 9))), Status::Failure);
}

/// By whatever name: nothing is overwritten by itself, and a copy to the end has an end.
#[test]
fn copies_within_one_file_do_not_overlap_and_end() {
    let mut peer = Peer::new("");
    let data = noise(1, 1000);
    fs::write(peer.path("one"), &data).unwrap();
    fs::hard_link(peer.path("one"), peer.path("two")).unwrap();
    let (from, to) = (peer.open("one", OpenFlags::READ), peer.open("two", OpenFlags::WRITE));
    let copy = |from_offset, len, to_offset| Extended::CopyData {
        from: from.clone(),
        from_offset,
        len,
        to: to.clone(),
        to_offset,
    };
    for (from_offset, len, to_offset) in [(0, 0, 0), (0, 0, 999), (0, 101, 100), (100, 101, 0)] {
        let refused = peer.extended(copy(from_offset, len, to_offset));
        assert_eq!(text(&refused), "Cannot copy a file onto itself", "{from_offset} {len}");
    }
    assert!(fs::read(peer.path("one")).unwrap() == data);
    ok(&peer.extended(copy(0, 0, 1000)));
    ok(&peer.extended(copy(0, 100, 100)));
    let copied = fs::read(peer.path("one")).unwrap();
    assert!(copied.len() == 2000 && copied[1000..] == data && copied[100..200] == data[..100]);
}

#[test]
fn the_rest_of_openssh_is_there() {
    let mut peer = Peer::new("");
    let statvfs = Statvfs::parse(&peer.content(Extended::Statvfs(b".".to_vec()))).unwrap();
    assert!(statvfs.blocks > 0 && statvfs.namemax >= 255);
    let handle = peer.create("file");
    let same = Statvfs::parse(&peer.content(Extended::Fstatvfs(handle.clone()))).unwrap();
    assert_eq!((same.fsid, same.blocks), (statvfs.fsid, statvfs.blocks));
    ok(&peer.extended(Extended::Fsync(handle)));
    let ids = Extended::UsersGroupsById { users: vec![0, 4_000_000_000], groups: vec![0] };
    let groups = Groups::parse(&peer.content(ids)).unwrap();
    assert_eq!(groups.users, [b"root".to_vec(), vec![]]);
    assert_eq!(groups.groups, [b"root".to_vec()]);
    let many = Extended::UsersGroupsById { users: vec![0; 40_000], groups: vec![] };
    assert_eq!(text(&peer.extended(many)), "Too many names for one reply");
    let mut name = |request| match peer.extended(request) {
        Reply::Names(names) => String::from_utf8(names[0].name.clone()).unwrap(),
        other => panic!("{other:?}"),
    };
    assert_eq!(name(Extended::HomeDirectory(vec![])), "/home/somebody");
    assert_eq!(name(Extended::HomeDirectory(b"root".to_vec())), "/root");
    assert_eq!(name(Extended::ExpandPath(b"~root/../etc".to_vec())), "/etc");
    let unknown = Extended::Unknown { name: b"x@y".to_vec(), data: b"z".to_vec() };
    assert_eq!(code(&peer.extended(unknown)), Status::Unsupported);
}

/// Effect of `-u`: for this session, not for the process.
#[test]
fn a_umask_of_the_sessions_own_is_nobody_elses() {
    let mut peer = Peer::new("-u 077");
    fs::write(peer.path("before"), "").unwrap();
    peer.create("file");
    ok(&peer.call(Request::Mkdir(b"dir".to_vec(), Attrs::default())));
    assert_eq!((mode(&peer.path("file")), mode(&peer.path("dir"))), (0o600, 0o700));
    fs::write(peer.path("mine"), "").unwrap();
    let mut other = Peer::new("-u 0");
    other.create("file");
    assert_eq!(mode(&other.path("file")), 0o666);
    let (mine, before) = (mode(&peer.path("mine")), mode(&peer.path("before")));
    assert_eq!(mine, before, "the process's umask changed");
}

/// Effects of `-d`, `-P` and `-p`.
#[test]
fn a_session_starts_where_it_is_told_and_does_what_it_may() {
    let mut peer = Peer::new("-d /usr/%%/../bin/.. -P stat,remove");
    let Reply::Names(names) = peer.call(Request::Realpath(vec![])) else { panic!() };
    let here = fs::canonicalize(peer.dir.path()).unwrap();
    let why = "a directory that is not there: the one without -d";
    assert_eq!(names[0].name, here.as_os_str().as_encoded_bytes(), "{why}");
    assert_eq!(code(&peer.call(Request::Stat(b"/".to_vec()))), Status::PermissionDenied);
    assert!(matches!(peer.call(Request::Lstat(b"/".to_vec())), Reply::Attrs(_)));
    let mut peer = Peer::new("-d /usr/../etc -p realpath,lstat");
    let Reply::Names(names) = peer.call(Request::Realpath(b".".to_vec())) else { panic!() };
    assert_eq!(names[0].name, b"/etc");
    assert!(matches!(peer.call(Request::Lstat(b"passwd".to_vec())), Reply::Attrs(_)));
    assert_eq!(code(&peer.extended(Extended::Limits)), Status::PermissionDenied);
}

#[test]
fn the_log_says_what_sftp_server_says() {
    let mut peer = Peer::new("");
    let lines = peer.log.clone();
    let mode = Attrs { mode: Some(0o600), ..Attrs::default() };
    let handle = peer.open_with("f", OpenFlags::WRITE | OpenFlags::CREATE, mode);
    ok(&peer.call(write(&handle, 0, b"12345")));
    ok(&peer.call(Request::Close(handle)));
    peer.open("f", OpenFlags::READ);
    peer.call(Request::Remove(b"nothing".to_vec()));
    drop(peer.finish());
    let expected = [
        "session opened for local user somebody from [192.0.2.7]",
        "open \"f\" flags WRITE,CREATE mode 0600",
        "close \"f\" bytes read 0 written 5",
        "open \"f\" flags READ mode 0666",
        "remove name \"nothing\"",
        "sent status No such file: No such file or directory",
        "forced close \"f\" bytes read 0 written 0",
        "session closed for local user somebody from [192.0.2.7]",
    ];
    assert_eq!(lines.all(), expected);
}
