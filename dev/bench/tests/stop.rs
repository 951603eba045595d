//! `lhbench` ended half-way: nothing it started runs on, and nothing it made stays.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on may panic")]

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// A client that neither ends by itself nor stays in its group; whoever looks finds it by `mark`.
fn endless_client(dir: &Path, mark: &str) {
    let path = dir.join("client");
    fs::write(&path, format!("#!/bin/sh\nsetsid sleep {mark} & wait\n")).unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
}

fn start(dir: &Path, client: &str) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lhbench"));
    command.args(["pipe", "--case", "redirect-push", "--only", "ours", "--size", "1M"]);
    command.args(["--lhsshd", "/bin/true", "--lhssh", client]).arg("--data").arg(dir.join("data"));
    command.env("TMPDIR", dir.join("tmp")).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().unwrap()
}

/// Whether a process has `word` on its command line.
fn runs(word: &str) -> bool {
    let all = fs::read_dir("/proc").unwrap().flatten();
    let line = |path: &Path| fs::read(path.join("cmdline")).unwrap_or_default();
    let has = |line: Vec<u8>| line.split(|byte| *byte == 0).any(|part| part == word.as_bytes());
    all.into_iter().any(|entry| has(line(&entry.path())))
}

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < Duration::from_secs(60), "waited in vain: {what}");
        sleep(Duration::from_millis(20));
    }
}

fn is_empty(dir: &Path) -> bool {
    fs::read_dir(dir).unwrap().next().is_none()
}

/// Ends a bench in the middle of a turn by `signal`; what it said, and where it had its files.
fn ended_by(signal: Signal) -> (ExitStatus, tempfile::TempDir) {
    let dir = tempfile::tempdir().unwrap();
    let mark = format!("86400.{}{}", std::process::id(), signal as i32);
    for name in ["data", "tmp"] {
        fs::create_dir(dir.path().join(name)).unwrap();
    }
    endless_client(dir.path(), &mark);
    let mut bench = start(dir.path(), dir.path().join("client").to_str().unwrap());
    until("the client starts", || runs(&mark));
    kill(Pid::from_raw(bench.id() as i32), signal).unwrap();
    let status = bench.wait().unwrap();
    until("the client ends", || !runs(&mark));
    (status, dir)
}

#[test]
fn a_signal_ends_every_process_and_removes_every_file() {
    if !need::require(&["ssh-keygen", "setsid"]) {
        return;
    }
    let (status, dir) = ended_by(Signal::SIGTERM);
    assert_eq!(status.code(), Some(128 + Signal::SIGTERM as i32));
    assert!(is_empty(&dir.path().join("data")) && is_empty(&dir.path().join("tmp")));
}

#[test]
fn what_a_killed_bench_left_is_removed_by_the_next() {
    if !need::require(&["ssh-keygen", "setsid"]) {
        return;
    }
    let (status, dir) = ended_by(Signal::SIGKILL);
    assert_eq!(status.signal(), Some(Signal::SIGKILL as i32));
    assert!(!is_empty(&dir.path().join("data")) && !is_empty(&dir.path().join("tmp")));
    assert!(start(dir.path(), "/bin/false").wait().unwrap().success());
    assert!(is_empty(&dir.path().join("data")) && is_empty(&dir.path().join("tmp")));
}
