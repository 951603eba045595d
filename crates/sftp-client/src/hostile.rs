//! Servers that lie, for tests: a session with a server that is a function of its requests.

use crate::command::Manner;
use crate::files::Files;
use crate::session::{Session, Talk};
use crate::transfer::{Interrupt, Mover, Shape};
use crate::words;
use sftp::client::{Incoming, Outgoing, pair};
use sftp::codec::{
    Attrs, Extended, Groups, Handle, Hello, Name, Reply, Request, Status, VERSION,
    name as extension,
};
use std::io::{IoSlice, IoSliceMut};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;

/// A session with a server that answers as `answer` says; `/` is where it begins.
fn session(answer: impl FnMut(&Request) -> Reply + Send + 'static) -> Session {
    shaped(Shape::default(), Interrupt::default(), answer)
}

fn shaped(
    shape: Shape,
    interrupt: Interrupt,
    answer: impl FnMut(&Request) -> Reply + Send + 'static,
) -> Session {
    let (events_in, events) = channel();
    let (client, outgoing, incoming) = pair(events_in);
    std::thread::spawn(move || serve(outgoing, incoming, answer));
    let mover = Mover::new(client.clone(), events, shape, interrupt);
    let talk = Talk { quiet: true, progress: false };
    Session::begin(Files::new(client), mover, Manner::default(), talk).unwrap()
}

fn serve(
    mut outgoing: Outgoing,
    mut incoming: Incoming,
    mut answer: impl FnMut(&Request) -> Reply,
) {
    let (mut asked, mut memory) = (Vec::new(), vec![0; 64 * 1024]);
    while outgoing.wait() {
        let filled = outgoing.fill(&mut [IoSliceMut::new(&mut memory)]);
        asked.extend_from_slice(&memory[..filled]);
        while let Some(packet) = packet(&mut asked) {
            let mut said = Vec::new();
            match Request::parse(&packet) {
                Ok((id, request)) => answer(&request).encode(id, &mut said),
                Err(_) => {
                    let known = [extension::USERS_GROUPS, extension::COPY_DATA, extension::FSYNC];
                    let extensions = known.map(|name| (name.to_vec(), b"1".to_vec())).to_vec();
                    Hello { version: VERSION, extensions }.encode_version(&mut said)
                }
            }
            if incoming.take(&[IoSlice::new(&said)]).is_err() {
                return;
            }
        }
    }
    incoming.end();
}

fn packet(bytes: &mut Vec<u8>) -> Option<Vec<u8>> {
    let (length, _) = bytes.split_first_chunk::<4>()?;
    let end = 4 + usize::try_from(u32::from_be_bytes(*length)).unwrap();
    (bytes.len() >= end).then(|| bytes.drain(..end).skip(4).collect())
}

fn attrs(mode: u32) -> Attrs {
    Attrs { size: Some(4), mode: Some(mode), ..Attrs::default() }
}

pub(crate) fn name(name: &[u8], mode: u32) -> Name {
    Name { name: name.to_vec(), longname: Vec::new(), attrs: attrs(mode) }
}

const FILE: u32 = 0o100_644;
const DIRECTORY: u32 = 0o040_755;
pub(crate) const LINK: u32 = 0o120_777;

/// A server whose every directory has these names, once, and whose every file says `evil`.
fn with_names(names: Vec<Name>) -> Session {
    with_answers(names, |_| None)
}

/// The same, but for some answers.
pub(crate) fn with_answers(
    names: Vec<Name>,
    mut other: impl FnMut(&Request) -> Option<Reply> + Send + 'static,
) -> Session {
    let mut usual = usual(names);
    session(move |request| other(request).unwrap_or_else(|| usual(request)))
}

fn usual(names: Vec<Name>) -> impl FnMut(&Request) -> Reply + Send {
    let mut listed = false;
    move |request: &Request| match request {
        Request::Realpath(path) if path == b"." => Reply::Names(vec![name(b"/", DIRECTORY)]),
        Request::Realpath(path) => Reply::Names(vec![name(path, DIRECTORY)]),
        Request::Stat(path) | Request::Lstat(path) => match path.ends_with(b"dir") {
            true => Reply::Attrs(attrs(DIRECTORY)),
            false => Reply::Attrs(attrs(FILE)),
        },
        Request::Opendir(_) => {
            listed = false;
            Reply::Handle(Handle::new(b"d").unwrap())
        }
        Request::Readdir(_) if listed => Reply::status(Status::Eof),
        Request::Readdir(_) => {
            listed = true;
            Reply::Names(names.clone())
        }
        Request::Open { .. } => Reply::Handle(Handle::new(b"f").unwrap()),
        Request::Read { offset: 0, .. } => Reply::Data(b"evil".to_vec()),
        Request::Read { .. } => Reply::status(Status::Eof),
        Request::Close(_) => Reply::status(Status::Ok),
        _ => Reply::status(Status::Unsupported),
    }
}

/// The names in `top`, deeper ones by their path.
fn found(top: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut open = vec![top.to_owned()];
    while let Some(directory) = open.pop() {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            found.push(path.strip_prefix(top).unwrap().to_string_lossy().into_owned());
            open.extend(path.is_dir().then_some(path));
        }
    }
    found.sort();
    found
}

const RECURSIVE: Manner = Manner { resume: false, sync: false, preserve: false, recursive: true };

fn get(session: &mut Session, source: &str, to: &Path) -> crate::failure::Result<()> {
    let words = words::split(source.as_bytes()).unwrap();
    let to = to.as_os_str().as_encoded_bytes();
    session.get(RECURSIVE, &words[0], Some(to))
}

#[test]
fn f1_names_that_lead_elsewhere_are_not_taken() {
    let suspects: [&[u8]; 8] =
        [b"..", b".", b"", b"../out", b"/tmp/out", b"a/b", b"nul\0", b"..\0"];
    for kind in [FILE, DIRECTORY] {
        let dir = tempfile::tempdir().unwrap();
        let mut names: Vec<Name> = suspects.iter().map(|suspect| name(suspect, kind)).collect();
        names.push(name(b"good", FILE));
        let mut session = with_names(names);
        get(&mut session, "dir", &dir.path().join("in")).unwrap();
        assert_eq!(found(dir.path()), ["in", "in/good"]);
        assert_eq!(std::fs::read(dir.path().join("in/good")).unwrap(), b"evil");
    }
}

#[test]
fn f1_only_names_that_were_asked_for_are_taken() {
    let dir = tempfile::tempdir().unwrap();
    let names = [&b"wanted.c"[..], b".bashrc", b"other", b"../x.c", b"..c", b"b.c\0"];
    let mut session = with_names(names.iter().map(|bytes| name(bytes, FILE)).collect());
    get(&mut session, "*.c", dir.path()).unwrap();
    assert_eq!(found(dir.path()), ["wanted.c"]);
}

#[test]
fn f1_a_tree_without_end_is_left() {
    let dir = tempfile::tempdir().unwrap();
    let mut session = with_names(vec![name(b"dir", DIRECTORY)]);
    assert!(get(&mut session, "dir", &dir.path().join("in")).is_err());
    assert_eq!(found(dir.path()).len(), crate::get::DEEPEST + 1);
}

/// At a byte a second the first 4 KiB take more than an hour.
#[test]
fn an_interrupt_ends_the_wait_that_a_rate_demands() {
    let dir = tempfile::tempdir().unwrap();
    let (interrupt, reads) = (Interrupt::default(), Arc::new(AtomicUsize::new(0)));
    let (interrupted, seen) = (Arc::clone(&interrupt), Arc::clone(&reads));
    let shape = Shape { rate: Some(1), ..Shape::default() };
    let mut session = shaped(shape, interrupt, move |request| match request {
        Request::Realpath(_) => Reply::Names(vec![name(b"/", DIRECTORY)]),
        Request::Lstat(_) | Request::Fstat(_) => {
            Reply::Attrs(Attrs { size: Some(1 << 20), ..attrs(FILE) })
        }
        Request::Open { .. } => Reply::Handle(Handle::new(b"f").unwrap()),
        Request::Read { len, .. } => {
            seen.fetch_add(1, Ordering::Relaxed);
            interrupted.store(true, Ordering::Relaxed);
            Reply::Data(vec![7; usize::try_from(*len).unwrap()])
        }
        _ => Reply::status(Status::Ok),
    });
    assert!(get(&mut session, "x", &dir.path().join("x")).is_err());
    assert_eq!(reads.load(Ordering::Relaxed), 1);
    assert_eq!(dir.path().join("x").metadata().unwrap().len(), 4096);
}

#[test]
fn an_interrupted_or_strict_command_stops_and_has_failed() {
    use crate::command::{Change, Command};
    let dir: Vec<Name> = ["a", "b", "c"].map(|n| name(n.as_bytes(), FILE)).into();
    let words = words::split(b"*").unwrap();
    let commands = || {
        [
            Command::Remove(words[0].clone()),
            Command::Change { what: Change::Mode(0o600), follow: true, files: words[0].clone() },
        ]
    };
    for (interrupts, strict, steps) in [(true, false, 1), (false, true, 1), (false, false, 3)] {
        for command in commands() {
            let (interrupt, count) = (Interrupt::default(), Arc::new(AtomicUsize::new(0)));
            let (interrupted, seen) = (Arc::clone(&interrupt), Arc::clone(&count));
            let mut usual = usual(dir.clone());
            let answer = move |request: &Request| match request {
                Request::Remove(_) | Request::Setstat(..) => {
                    seen.fetch_add(1, Ordering::Relaxed);
                    interrupted.store(interrupts, Ordering::Relaxed);
                    Reply::status(if interrupts { Status::Ok } else { Status::Failure })
                }
                request => usual(request),
            };
            let mut session = shaped(Shape::default(), interrupt, answer);
            session.strict = strict;
            assert!(session.run(command).is_err());
            assert_eq!(count.load(Ordering::Relaxed), steps, "{interrupts} {strict}");
        }
    }
}

#[test]
fn f6_extended_attributes_that_nobody_asked_for_are_not_kept() {
    let extended = vec![(b"x@y".to_vec(), vec![7; 1000])];
    let file = Attrs { extended, ..attrs(FILE) };
    let names = vec![Name { attrs: file.clone(), ..name(b"a", FILE) }];
    let session = with_answers(names, move |request| match request {
        Request::Stat(_) | Request::Lstat(_) => Some(Reply::Attrs(file.clone())),
        _ => None,
    });
    let listed = session.files.list(b"/dir").unwrap();
    let seen =
        [&listed[0].attrs, &session.files.stat(b"a").unwrap(), &session.files.lstat(b"a").unwrap()]
            .map(|attrs| attrs.extended.len());
    assert_eq!((listed.len(), seen), (1, [0; 3]));
}

#[test]
fn names_of_many_owners_are_asked_for_in_parts() {
    let session = with_answers(Vec::new(), |request| match request {
        Request::Extended(Extended::UsersGroupsById { users, groups }) => {
            assert!(users.len() <= 400 && groups.len() <= 400);
            let names = |ids: &[u32]| ids.iter().map(|id| id.to_string().into_bytes()).collect();
            let groups = Groups { users: names(users), groups: names(groups) };
            Some(Reply::Extended(groups.encode()))
        }
        _ => None,
    });
    let owned = |id| Attrs { owner: Some((id, id / 2)), ..Attrs::default() };
    let files: Vec<Attrs> = (0..1001).map(owned).collect();
    let names = session.files.names(files.iter()).unwrap().unwrap();
    assert_eq!((names.users.len(), names.groups.len()), (1001, 501));
    assert_eq!(
        (names.users[&1000].as_slice(), names.groups[&500].as_slice()),
        (&b"1000"[..], &b"500"[..])
    );
}

#[test]
fn f9_times_are_those_of_what_was_read_and_not_of_what_was_listed() {
    let dir = tempfile::tempdir().unwrap();
    let manner = Manner { preserve: true, ..RECURSIVE };
    let aged = |time| Attrs { times: Some((time, time)), ..attrs(FILE) };
    for source in ["dir", "x"] {
        let names = vec![Name { attrs: aged(1), ..name(b"x", FILE) }];
        let mut session = with_answers(names, move |request| match request {
            Request::Lstat(path) if path.ends_with(b"x") => Some(Reply::Attrs(aged(1))),
            Request::Fstat(_) => Some(Reply::Attrs(aged(2))),
            _ => None,
        });
        let to = dir.path().join(source);
        let words = words::split(source.as_bytes()).unwrap();
        session.get(manner, &words[0], Some(to.as_os_str().as_encoded_bytes())).unwrap();
        let file = if source == "dir" { to.join("x") } else { to };
        let time = file.metadata().unwrap().modified().unwrap();
        assert_eq!(time, std::time::UNIX_EPOCH + std::time::Duration::from_secs(2), "{source}");
    }
}

#[test]
fn a_directory_that_keeps_its_attributes_does_not_fail_the_put() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("x"), "content").unwrap();
    let mut session = with_answers(Vec::new(), |request| match request {
        Request::Setstat(..) => Some(Reply::status(Status::PermissionDenied)),
        Request::Mkdir(..) => Some(Reply::status(Status::Failure)),
        Request::Stat(_) => Some(Reply::Attrs(attrs(DIRECTORY))),
        Request::Write { .. } => Some(Reply::status(Status::Ok)),
        _ => None,
    });
    let words = words::split(dir.path().as_os_str().as_encoded_bytes()).unwrap();
    session.put(RECURSIVE, &words[0], Some(b"/dir")).unwrap();
}

/// As sftp(1): the content is there.
#[test]
fn attributes_that_cannot_be_kept_do_not_fail_a_transfer() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("x"), "content").unwrap();
    let preserving = Manner { preserve: true, ..RECURSIVE };
    // In company, and alone.
    for source in [dir.path().to_owned(), dir.path().join("x")] {
        let mut session = with_answers(Vec::new(), |request| match request {
            Request::Fsetstat(..) => Some(Reply::status(Status::PermissionDenied)),
            Request::Mkdir(..) | Request::Setstat(..) | Request::Write { .. } => {
                Some(Reply::status(Status::Ok))
            }
            Request::Stat(_) => Some(Reply::status(Status::NoSuchFile)),
            _ => None,
        });
        let words = words::split(source.as_os_str().as_encoded_bytes()).unwrap();
        session.put(preserving, &words[0], Some(b"/x")).unwrap();
    }
    // A file whose mode nobody can change, and which is not written to either.
    let mut empty = with_answers(Vec::new(), |request| match request {
        Request::Read { .. } => Some(Reply::status(Status::Eof)),
        _ => None,
    });
    let words = words::split(b"x").unwrap();
    empty.get(preserving, &words[0], Some(b"/proc/self/comm")).unwrap();
}

#[test]
fn a_sync_that_fails_fails_the_put() {
    let dir = tempfile::tempdir().unwrap();
    let source = dir.path().join("x");
    std::fs::write(&source, "content").unwrap();
    let mut session = with_answers(Vec::new(), |request| match request {
        Request::Extended(Extended::Fsync(_)) => Some(Reply::status(Status::Failure)),
        Request::Write { .. } => Some(Reply::status(Status::Ok)),
        _ => None,
    });
    let words = words::split(source.as_os_str().as_encoded_bytes()).unwrap();
    let synced = Manner { sync: true, ..RECURSIVE };
    assert!(session.put(synced, &words[0], Some(b"/x")).is_err());
}

/// Descriptors of ours that are open below a directory.
fn held(top: &Path) -> usize {
    let held = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
    held.filter(|fd| std::fs::read_link(fd.path()).is_ok_and(|to| to.starts_with(top))).count()
}

#[test]
fn a_tree_of_empty_directories_holds_few_descriptors() {
    let dir = tempfile::tempdir().unwrap();
    let (top, most) = (dir.path().to_owned(), Arc::new(AtomicUsize::new(0)));
    // The file in front is waited for before anything behind it is complete.
    let mut names = vec![name(b"a", FILE)];
    names.extend((0..600).map(|n| name(format!("d{n}").as_bytes(), DIRECTORY)));
    let (mut asked, seen) = (0, Arc::clone(&most));
    let mut session = with_answers(names, move |request| match request {
        Request::Opendir(path) if path.last().is_some_and(u8::is_ascii_digit) => {
            asked += 1;
            if asked % 50 == 0 {
                seen.fetch_max(held(&top), Ordering::Relaxed);
            }
            Some(Reply::Handle(Handle::new(b"e").unwrap()))
        }
        Request::Readdir(handle) if handle.as_bytes() == b"e" => Some(Reply::status(Status::Eof)),
        _ => None,
    });
    get(&mut session, "dir", &dir.path().join("in")).unwrap();
    assert_eq!(found(dir.path()).len(), 1 + 1 + 600);
    let most = most.load(Ordering::Relaxed);
    assert!((1..200).contains(&most), "{most} descriptors");
}

#[test]
fn f6_a_directory_that_says_nothing_for_ever_ends() {
    let mut asked = 0;
    let mut session = session(move |request| match request {
        Request::Opendir(_) => Reply::Handle(Handle::new(b"d").unwrap()),
        Request::Readdir(_) => {
            asked += 1;
            assert!(asked < 3, "asked for ever");
            Reply::Names(Vec::new())
        }
        Request::Realpath(_) => Reply::Names(vec![name(b"/", DIRECTORY)]),
        _ => Reply::status(Status::Ok),
    });
    session.ls(Default::default(), None).unwrap();
}

#[test]
fn f6_a_pattern_that_could_not_be_looked_up_is_an_error() {
    use crate::command::Command;
    for (status, is_error) in [
        (Status::Failure, true),
        (Status::ConnectionLost, true),
        (Status::NoSuchFile, false),
        (Status::PermissionDenied, false),
    ] {
        let mut session = with_answers(vec![name(b"x.c", FILE)], move |request| match request {
            Request::Opendir(_) => Some(Reply::status(status)),
            Request::Remove(_) => Some(Reply::status(Status::Ok)),
            _ => None,
        });
        // A pattern without a match stands for itself.
        let words = words::split(b"*.c").unwrap();
        let removed = session.run(Command::Remove(words[0].clone()));
        assert_eq!(removed.is_err(), is_error, "{status:?}");
    }
}

#[test]
fn f9_a_file_that_changes_while_it_is_read_is_an_error() {
    for (source, below) in [("x", false), ("dir", false), ("x", true), ("dir", true)] {
        let dir = tempfile::tempdir().unwrap();
        let mut looks = 0;
        let mut session = with_answers(vec![name(b"x", FILE)], move |request| {
            let Request::Fstat(_) = request else { return None };
            looks += 1;
            let (second, nanosecond) = if below { (1, looks) } else { (looks, 0) };
            let mut attrs = Attrs { times: Some((1, second)), ..attrs(FILE) };
            attrs.set_nanoseconds(0, nanosecond);
            Some(Reply::Attrs(attrs))
        });
        let got = get(&mut session, source, &dir.path().join("to"));
        assert!(got.is_err(), "{source}, within the second: {below}");
    }
}

/// A server with one file that says `evil`, and that has everything in good order.
fn with_file(mode: u32) -> Session {
    session(move |request| match request {
        Request::Realpath(_) => Reply::Names(vec![name(b"/", DIRECTORY)]),
        Request::Lstat(_) | Request::Stat(_) | Request::Fstat(_) => Reply::Attrs(attrs(mode)),
        Request::Open { .. } => Reply::Handle(Handle::new(b"f").unwrap()),
        Request::Read { offset: 0, .. } => Reply::Data(b"evil".to_vec()),
        Request::Read { .. } => Reply::status(Status::Eof),
        _ => Reply::status(Status::Ok),
    })
}

#[test]
fn f3_set_id_bits_of_a_server_are_not_taken_over() {
    let dir = tempfile::tempdir().unwrap();
    let mode = |name: &str| dir.path().join(name).metadata().unwrap().permissions().mode();
    let preserving = Manner { preserve: true, ..RECURSIVE };
    for (name, manner) in [("plain", RECURSIVE), ("preserved", preserving)] {
        let to = dir.path().join(name);
        let words = words::split(b"x").unwrap();
        let to = to.as_os_str().as_encoded_bytes();
        with_file(0o106_755).get(manner, &words[0], Some(to)).unwrap();
        assert_eq!(mode(name) & 0o7000, 0, "{name}");
    }
}

#[test]
fn f9_a_file_that_changes_while_it_is_sent_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    // In company, and alone.
    for (number, size) in [(1, 100), (2, 1 << 20)] {
        let tree = dir.path().join(format!("tree{number}"));
        std::fs::create_dir(&tree).unwrap();
        let source = tree.join("x");
        std::fs::write(&source, vec![7; size]).unwrap();
        let changing = source.clone();
        let mut session = session(move |request| match request {
            Request::Realpath(path) => Reply::Names(vec![name(path, DIRECTORY)]),
            Request::Open { .. } => {
                std::fs::write(&changing, vec![8; size]).unwrap();
                Reply::Handle(Handle::new(b"f").unwrap())
            }
            Request::Stat(_) => Reply::status(Status::NoSuchFile),
            _ => Reply::status(Status::Ok),
        });
        let words = words::split(tree.as_os_str().as_encoded_bytes()).unwrap();
        assert!(session.put(RECURSIVE, &words[0], Some(b"/x")).is_err(), "{size} bytes");
    }
}

/// The target was not emptied first: it could have been the source by another name.
#[test]
fn f9_a_copy_whose_source_shrinks_is_no_success() {
    for (left, is_error) in [(2, true), (4, false), (6, false)] {
        let mut looks = 0;
        let mut session = with_answers(Vec::new(), move |request| match request {
            Request::Fstat(_) => {
                looks += 1;
                let size = if looks > 2 { left } else { 4 };
                Some(Reply::Attrs(Attrs { size: Some(size), ..attrs(FILE) }))
            }
            Request::Extended(Extended::CopyData { .. }) => Some(Reply::status(Status::Ok)),
            _ => None,
        });
        let copy = crate::command::Command::Copy { from: b"/a".to_vec(), to: b"/b".to_vec() };
        assert_eq!(session.run(copy).is_err(), is_error, "{left} bytes left");
    }
}

#[test]
fn f5_one_file_of_many_that_fails_is_told_and_the_others_arrive() {
    let dir = tempfile::tempdir().unwrap();
    let names = (0..200).map(|number| name(format!("f{number:03}").as_bytes(), FILE)).collect();
    let mut session = with_answers(names, |request| match request {
        Request::Open { path, .. } if path.ends_with(b"f100") => {
            Some(Reply::status(Status::PermissionDenied))
        }
        _ => None,
    });
    assert!(get(&mut session, "dir", &dir.path().join("in")).is_err());
    let found = found(dir.path());
    assert_eq!(found.len(), 1 + 199);
    assert!(!found.contains(&"in/f100".to_owned()));
}

#[test]
fn f5_a_write_that_fails_fails_the_file_though_later_ones_succeed() {
    let dir = tempfile::tempdir().unwrap();
    let source = dir.path().join("x");
    std::fs::write(&source, vec![7; 200_000]).unwrap();
    let mut writes = 0;
    let mut session = session(move |request| match request {
        Request::Realpath(_) => Reply::Names(vec![name(b"/", DIRECTORY)]),
        Request::Open { .. } => Reply::Handle(Handle::new(b"f").unwrap()),
        Request::Write { .. } => {
            writes += 1;
            Reply::status(if writes == 2 { Status::Failure } else { Status::Ok })
        }
        Request::Stat(_) => Reply::status(Status::NoSuchFile),
        _ => Reply::status(Status::Ok),
    });
    let words = words::split(source.as_os_str().as_encoded_bytes()).unwrap();
    assert!(session.put(Manner::default(), &words[0], Some(b"/x")).is_err());
}
