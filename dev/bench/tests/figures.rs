//! `lhbench figures` as a program: what it says to mistakes, and one short run with real programs.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on may panic")]

use std::fs;
use std::process::{Command, Output};

fn figures(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_lhbench")).arg("figures").args(args).output().unwrap()
}

fn refused(args: &[&str]) -> String {
    let out = figures(args);
    assert!(!out.status.success(), "{args:?}");
    String::from_utf8(out.stderr).unwrap()
}

#[test]
fn a_figure_that_does_not_exist_is_one_line() {
    let dir = tempfile::tempdir().unwrap();
    let said = refused(&["--out", dir.path().to_str().unwrap(), "--only", "speed"]);
    assert!(said.starts_with("lhbench: no figure 'speed': there are ciphers, cpu,"), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
}

#[test]
fn nothing_to_draw_again_is_one_line() {
    let dir = tempfile::tempdir().unwrap();
    let said = refused(&["--out", dir.path().to_str().unwrap(), "--redraw"]);
    assert!(said.contains("samples.csv") && said.lines().count() == 1, "{said}");
}

#[test]
fn a_peer_that_is_no_pair_of_commands_is_refused() {
    let said = refused(&["--out", "x", "--peer", "hpn=hpnssh {prot} {command}"]);
    let line = said.lines().find(|line| line.contains("{prot} is none of"));
    assert!(line.is_some(), "{said}");
}

/// netcat in both directions and, where there is an sshd, ssh as a peer from the command line.
#[test]
fn a_quick_run_measures_draws_and_draws_again() {
    if !need::require(&["nc", "ssh-keygen"]) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let (out, data) = (dir.path().join("out"), dir.path().to_str().unwrap());
    let text = |name: &str| fs::read_to_string(out.join(name)).unwrap();
    let ran = figures(&[
        "--out",
        out.to_str().unwrap(),
        "--data",
        data,
        "--quick",
        "--size",
        "16M",
        "--seconds",
        "0.3",
        "--only",
        "ciphers",
        "--program",
        "netcat",
        "--program",
        "own",
        "--peer",
        "own=ssh -F {config} {host} {command};/usr/sbin/sshd -D -e -f {sshd_config} -p {port}",
    ]);
    let said = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{said}");
    let samples = text("samples.csv");
    let netcat = samples.lines().filter(|line| line.contains(",netcat,no encryption,0,1,bytes/s,"));
    assert_eq!(netcat.count(), 2, "{samples}\n{said}");
    assert!(samples.contains("# program,ciphers,own,own "), "the version of ssh: {samples}");
    if need::require(&["/usr/sbin/sshd"]) {
        assert!(
            samples.contains("send,own,cipher of its own choice,0,1,bytes/s,"),
            "{samples}\n{said}"
        );
    }
    let drawn = text("ciphers.svg");
    assert!(text("index.html").contains("ciphers.svg") && text("ciphers.csv").contains("netcat"));
    assert!(fs::read(out.join("ciphers.png")).unwrap().starts_with(b"\x89PNG"));

    fs::remove_file(out.join("ciphers.svg")).unwrap();
    let again = figures(&["--out", out.to_str().unwrap(), "--redraw", "--only", "ciphers"]);
    assert!(again.status.success());
    assert_eq!(text("ciphers.svg"), drawn);
}
