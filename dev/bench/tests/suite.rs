//! `lhbench pipe` as a program: what becomes of a suite in which somebody fails.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on may panic")]

use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};

/// One short case with a client of ours that is none, and netcat.
fn pipe(dir: &Path, more: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lhbench"));
    command.args(["pipe", "--case", "redirect-push", "--only", "ours", "--only", "netcat"]);
    command.args(["--size", "1M", "--runs", "1", "--lhssh", "/bin/false", "--lhsshd", "/bin/true"]);
    command.arg("--data").arg(dir).arg("--json").arg(dir.join("out.json")).args(more);
    command.output().unwrap()
}

#[test]
fn who_fails_leaves_the_others_and_the_json() {
    if !need::require(&["nc", "ssh-keygen"]) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let ran = pipe(dir.path(), &[]);
    let said = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{said}");
    let all: Value =
        serde_json::from_slice(&std::fs::read(dir.path().join("out.json")).unwrap()).unwrap();
    let of = |name: &str| {
        let series = all.as_array().unwrap().iter().find(|one| one["contender"] == name);
        series.unwrap_or_else(|| panic!("{name} is not in {all}")).clone()
    };
    assert!(of("ours")["failed"].as_str().unwrap().contains("the client failed"), "{all}");
    assert_eq!(of("netcat")["samples"].as_array().unwrap().len(), 1, "{all}\n{said}");
    assert!(all.as_array().unwrap().len() == 2, "only who was asked: {all}");
}

#[test]
fn a_bar_that_nobody_measured_is_no_pass() {
    if !need::require(&["nc", "ssh-keygen"]) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let ran = pipe(dir.path(), &["--only", "openssh", "--strict"]);
    assert!(!ran.status.success());
    let shown = String::from_utf8_lossy(&ran.stdout);
    assert!(shown.contains("not measured"), "{shown}");
}
