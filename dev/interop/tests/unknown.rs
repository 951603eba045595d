//! Hosts that are not known, where nobody can be asked: one line that says what can be done, the
//! same from every program.
#![allow(clippy::unwrap_used, reason = "tests")]

use interop::run::{Input, Outcome, Output, run};
use interop::{Kind, Lab, Server, lab};
use std::process::Command;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(60);

/// A program that knows no host and has no terminal.
fn meets(lab: &Lab, program: &str, args: &[&str]) -> Outcome {
    let mut command = Command::new("setsid");
    command.arg("-w").arg(lab::program(program).unwrap()).args(["-F", "none"]);
    command.args(["-o", "GlobalKnownHostsFile=/dev/null", "-o", "IdentityAgent=none"]);
    command.arg("-o").arg(format!("UserKnownHostsFile={}", lab.path("nobody").display()));
    command.args(args).current_dir(lab.path("")).env("HOME", lab.path(""));
    run(command, Input::Bytes(Vec::new()), Output::Keep, LIMIT).unwrap()
}

#[test]
fn an_unknown_key_without_a_terminal_is_told_with_what_to_do() {
    let lab = Lab::new().unwrap();
    let server = Server::start(&lab, Kind::Ours, &[]).unwrap();
    std::fs::write(lab.path("file"), "x").unwrap();
    let port = server.port.to_string();
    let why = |ask: &str| {
        format!(
            "host key: no ED25519 host key is known for [127.0.0.1]:{port}, and {ask}: it shows {}; \
             if that is the host's, accept it with -o StrictHostKeyChecking=accept-new",
            lab.fingerprint("host_ed25519").unwrap()
        )
    };
    let programs: [(&str, &str, &[&str], &str); 3] = [
        ("lhssh", "-p", &["nobody@127.0.0.1", "true"], "lhssh: 127.0.0.1"),
        ("lhscp", "-P", &["-q", "file", "nobody@127.0.0.1:x"], "lhscp: nobody@127.0.0.1"),
        ("lhsftp", "-P", &["nobody@127.0.0.1"], "lhsftp: 127.0.0.1"),
    ];
    for (program, option, args, name) in programs {
        for (batch, ask) in
            [("no", "there is no terminal to ask on"), ("yes", "BatchMode forbids to ask")]
        {
            let batch = format!("BatchMode={batch}");
            let all = [&["-o", &batch, option, &port], args].concat();
            let outcome = meets(&lab, program, &all);
            assert_eq!(outcome.status, 255, "{program}: {}", outcome.stderr);
            assert_eq!(outcome.stderr, format!("{name}: {}\n", why(ask)));
        }
    }
}

#[test]
fn a_host_that_cannot_be_reached_is_told_without_numbers_of_the_system() {
    let lab = Lab::new().unwrap();
    std::fs::write(lab.path("file"), "x").unwrap();
    for (program, args, name) in [
        ("lhssh", &["nowhere.invalid", "true"][..], "lhssh"),
        ("lhscp", &["-q", "file", "nowhere.invalid:x"], "lhscp: nowhere.invalid"),
        ("lhsftp", &["nowhere.invalid"], "lhsftp"),
    ] {
        let outcome = meets(&lab, program, args);
        let start = format!("{name}: could not resolve hostname nowhere.invalid: ");
        let why =
            outcome.stderr.strip_prefix(&start).unwrap_or_else(|| panic!("{}", outcome.stderr));
        assert!(!why.contains("error") && !why.contains("lookup"), "{why}");
        assert_eq!((outcome.status, outcome.stderr.lines().count()), (255, 1));
    }
    // Port 1 of loopback: nobody listens.
    let outcome = meets(&lab, "lhscp", &["-q", "-P", "1", "file", "127.0.0.1:"]);
    let want = "lhscp: 127.0.0.1: connect to host 127.0.0.1 port 1: Connection refused\n";
    assert_eq!(outcome.stderr, want);
    // The second of two hosts is not the first one's fault.
    let server = Server::start(&lab, Kind::Ours, &["Subsystem sftp internal-sftp"]).unwrap();
    let source = format!("scp://127.0.0.1:{}/{}", server.port, lab.path("file").display());
    let key = lab.key("user_ed25519").display().to_string();
    let args = ["-q", "-i", &key, "-o", "StrictHostKeyChecking=no", &source, "nowhere.invalid:x"];
    let outcome = meets(&lab, "lhscp", &args);
    let line = outcome.stderr.lines().last().unwrap();
    assert!(line.starts_with("lhscp: nowhere.invalid: could not resolve"), "{}", outcome.stderr);
}
