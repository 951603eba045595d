//! Answers and refusals for readers that have left.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::io::{PipeWriter, Read};
use std::process::Command;

fn lhssh(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lhssh"));
    command.args(["-F", "none"]).args(args);
    command
}

/// A pipe that nobody reads.
fn unread() -> PipeWriter {
    std::io::pipe().unwrap().1
}

#[test]
fn a_reader_that_had_enough_is_no_error() {
    for args in [&["-Q", "cipher"][..], &["-G", "host"], &["--help"]] {
        let (mut said, stderr) = std::io::pipe().unwrap();
        let status = lhssh(args).stdout(unread()).stderr(stderr).status().unwrap();
        let mut text = String::new();
        said.read_to_string(&mut text).unwrap();
        assert!(status.success() && text.is_empty(), "{args:?}: {status} {text}");
    }
    assert!(lhssh(&["-V"]).stderr(unread()).status().unwrap().success());
}

#[test]
fn an_answer_that_cannot_be_written_is_an_error() {
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let output = lhssh(&["-Q", "cipher"]).stdout(full).output().unwrap();
    assert_eq!(output.status.code(), Some(255));
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.starts_with("lhssh: write to standard output: "), "{text}");
}

#[test]
fn a_refusal_that_nobody_reads_is_one_all_the_same() {
    for args in [&["-Z"][..], &["-o", "Port=x", "host"], &["--", "-host"]] {
        let status = lhssh(args).stderr(unread()).status().unwrap();
        assert_eq!(status.code(), Some(255), "{args:?}");
    }
}
