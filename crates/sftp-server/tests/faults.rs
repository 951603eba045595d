//! The program under strace, which makes system calls fail as file systems do that are not here:
//! a quota that NFS reports at close(2), a file system without hard links. Without strace, skipped
//! by name; under `LONGHAUL_CI`, failed.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

use sftp::codec::{Attrs, Extended, FileStatus, Handle, Hello, OpenFlags, PutFile, PutFlags};
use sftp::codec::{Reply, Request, Status, VERSION, packet_length};
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

const SERVER: &str = env!("CARGO_BIN_EXE_lhsftp-server");

/// Whether strace is here.
fn strace() -> bool {
    need::require(&["strace"])
}

/// The replies to requests that are sent at once, by a server in `dir` with calls that fail as
/// `faults` says: words of strace(1), in which a shell knows the server's process as `$$`.
fn ask(dir: &Path, options: &str, faults: &str, requests: &[Request]) -> Vec<Reply> {
    let mut bytes = Vec::new();
    Hello { version: VERSION, extensions: Vec::new() }.encode_init(&mut bytes);
    for (id, request) in (1..).zip(requests) {
        request.encode(id, &mut bytes);
    }
    let dir = dir.display();
    let strace = format!("strace -D -f -qq -o /dev/null {faults} {SERVER} -e -d {dir} {options}");
    let mut child = Command::new("sh")
        .args(["-c", &format!("exec {strace}")])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(&bytes).unwrap();
    let output = child.wait_with_output().unwrap().stdout;
    let mut replies: Vec<_> =
        packets(&output).skip(1).map(|packet| Reply::parse(packet).unwrap()).collect();
    replies.sort_by_key(|(id, _)| *id);
    replies.into_iter().map(|(_, reply)| reply).collect()
}

fn packets(mut bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let (length, rest) = bytes.split_first_chunk()?;
        let (packet, rest) = rest.split_at(packet_length(*length).unwrap());
        bytes = rest;
        Some(packet)
    })
}

fn told(reply: &Reply) -> (Status, String) {
    match reply {
        Reply::Status { code, text } => (*code, String::from_utf8(text.clone()).unwrap()),
        other => panic!("{other:?}"),
    }
}

const QUOTA: &str = "Disk quota exceeded";

/// The first handle that a server gives.
fn first_handle() -> Handle {
    Handle::new([0; 8]).unwrap()
}

#[test]
fn f5_an_error_that_close_reports_fails_the_close() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    fs::write(&file, "old").unwrap();
    for (flags, code) in [(OpenFlags::WRITE, Status::Failure), (OpenFlags::READ, Status::Ok)] {
        let open = Request::Open { path: b"file".to_vec(), flags, attrs: Attrs::default() };
        let requests = [open, Request::Close(first_handle())];
        if strace() {
            let faults = format!("-P {} -e inject=close:error=EDQUOT", file.display());
            let closed = told(&ask(dir.path(), "", &faults, &requests)[1]);
            assert_eq!((closed.0, closed.1 == QUOTA), (code, code != Status::Ok), "{closed:?}");
        }
    }
}

#[test]
fn f3_a_umask_needs_no_call_that_may_be_forbidden() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    let flags = OpenFlags::WRITE | OpenFlags::CREATE;
    let open = Request::Open { path: b"file".to_vec(), flags, attrs: Attrs::default() };
    if strace() {
        ask(dir.path(), "-u 077", "-e inject=unshare:error=EPERM", &[open]);
        let mode = fs::metadata(dir.path().join("file")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}

#[test]
fn a_rename_replaces_nothing_on_file_systems_of_any_kind() {
    for link in ["EPERM", "EOPNOTSUPP", "ENOSYS", "EXDEV", "EEXIST"] {
        let dir = tempfile::tempdir().unwrap();
        for name in ["old", "there"] {
            fs::write(dir.path().join(name), name).unwrap();
        }
        let rename = |to: &str| Request::Rename { from: b"old".to_vec(), to: to.into() };
        let faults = format!("-e inject=renameat2:error=EINVAL -e inject=linkat:error={link}");
        if strace() {
            let replies = ask(dir.path(), "", &faults, &[rename("there"), rename("new")]);
            let codes: Vec<_> = replies.iter().map(|reply| told(reply).0).collect();
            let moved = if link == "EEXIST" { Status::Failure } else { Status::Ok };
            assert_eq!(codes, [Status::Failure, moved], "{link}");
            assert_eq!(fs::read(dir.path().join("there")).unwrap(), b"there");
            assert_eq!(dir.path().join("new").exists(), moved == Status::Ok);
        }
    }
}

#[test]
fn r1_a_put_file_that_cannot_be_closed_replaces_nothing() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("file"), "old").unwrap();
    let file =
        PutFile { path: b"file".to_vec(), attrs: Attrs::default(), content: b"new".to_vec() };
    let put = Extended::PutFiles { flags: PutFlags::default(), files: vec![file] };
    if strace() {
        let part = format!("{}/.file.$(printf %x $$)-0.part", dir.path().display());
        let faults = format!("-P {part} -e inject=close:error=EDQUOT");
        let replies = ask(dir.path(), "", &faults, &[Request::Extended(put)]);
        let Reply::Extended(content) = &replies[0] else { panic!("{replies:?}") };
        let statuses = FileStatus::parse_list(content).unwrap();
        assert_eq!(
            (statuses[0].code, statuses[0].text.as_slice()),
            (Status::Failure, QUOTA.as_bytes())
        );
        assert_eq!(fs::read(dir.path().join("file")).unwrap(), b"old");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }
}
