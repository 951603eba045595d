//! `lhscp -t`: made-up data to a server and back, through its own subsystems or SFTP, and what is
//! said of it.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use interop::run::{Input, Outcome, Output, run};
use interop::{Kind, Lab, Server, lab};
use std::process::Command;
use std::time::Duration;

/// How long a run may take that moves little.
const LIMIT: Duration = Duration::from_secs(60);

/// A line of the command line, up to the host's name.
fn lhscp(lab: &Lab, server: &Server, args: &[&str]) -> Outcome {
    let mut command = Command::new(lab::program("lhscp").unwrap());
    command.args(["-B", "-F", "none", "-P", &server.port.to_string(), "-i"]);
    command.arg(lab.key("user_ed25519")).args(["-o", "IdentityAgent=none"]);
    command.arg("-o").arg(format!("UserKnownHostsFile={}", server.known_hosts.display()));
    command.args(["-o", "GlobalKnownHostsFile=/dev/null"]).args(args);
    command.current_dir(lab.path("")).env("HOME", lab.path(""));
    run(command, Input::Empty, Output::Keep, LIMIT).unwrap()
}

/// Runs a test of 24 MiB each way; the lines of its report.
fn report(kind: Kind, config: &[&str], args: &[&str]) -> Option<Vec<String>> {
    if !kind.available() {
        return None;
    }
    let lab = Lab::new().unwrap();
    let sftp = ["Subsystem sftp internal-sftp"];
    let server = Server::start(&lab, kind, &[&sftp, config].concat()).unwrap();
    let files = || std::fs::read_dir(lab.path("")).unwrap().count();
    let before = files();
    let outcome = lhscp(&lab, &server, &[&["-t", "--size", "24M"], args].concat());
    assert_eq!(outcome.status, 0, "{}", outcome.stderr);
    assert_eq!(files(), before, "no disk is touched");
    Some(outcome.stderr.lines().map(str::to_owned).collect())
}

/// Both ways in their order, with rates and lanes.
fn tells_of_both(lines: &[String], up: &str, down: &str) {
    let [sent, received] = lines else { panic!("{lines:?}") };
    for (line, way) in [(sent, up), (received, down)] {
        assert!(line.starts_with(&format!("lhscp: {way}: 24.0 MiB in ")), "{line}");
        assert!(line.contains("/s mean, ") && line.contains("/s peak, "), "{line}");
        assert!(line.ends_with(" lanes") || line.ends_with(" lane"), "{line}");
    }
}

#[test]
fn our_server_takes_and_gives_by_itself_where_it_may() {
    let (up, down) = ("sent to discard@longhaul", "received from zeros@longhaul");
    for lanes in [&["-n", "3"][..], &[]] {
        let args = [lanes, &["127.0.0.1:"]].concat();
        if let Some(lines) = report(Kind::Ours, &["TestSubsystems yes"], &args) {
            tells_of_both(&lines, up, down);
            assert!(lanes.is_empty() || lines.iter().all(|line| line.ends_with("3 lanes")));
        }
    }
}

#[test]
fn other_servers_are_tested_over_sftp() {
    let (up, down) = ("sent to /dev/null by SFTP", "received from /dev/zero by SFTP");
    for (kind, config) in [(Kind::Ours, &["TestSubsystems no"][..]), (Kind::OpenSsh, &[])] {
        if let Some(lines) = report(kind, config, &["127.0.0.1:"]) {
            tells_of_both(&lines, up, down);
        }
    }
}

#[test]
fn one_way_is_tested_alone_and_a_limit_holds() {
    let allowed = ["TestSubsystems yes"];
    let one = |args: &[&str]| report(Kind::Ours, &allowed, args).map(|lines| lines.join(" "));
    assert!(one(&[".", "127.0.0.1:"]).unwrap().starts_with("lhscp: sent to discard@longhaul: "));
    assert!(one(&["127.0.0.1:", "."]).unwrap().starts_with("lhscp: received from zeros@longhaul"));
    let limited = one(&["--bwlimit", "20M", ".", "127.0.0.1:"]).unwrap();
    assert!(limited.starts_with("lhscp: sent to /dev/null by SFTP: 24.0 MiB in "), "{limited}");
}

#[test]
fn a_host_that_is_not_there_is_said_once() {
    let lab = Lab::new().unwrap();
    let mut server = Server::start(&lab, Kind::Ours, &[]).unwrap();
    server.port = 1;
    let outcome = lhscp(&lab, &server, &["-q", "-t", "127.0.0.1:"]);
    assert_eq!((outcome.status, outcome.stderr.lines().count()), (255, 1), "{}", outcome.stderr);
}
