//! `limited by:` at the end of what lhscp and lhsftp say with `-v`: one line for all connections
//! together. What each cause looks like is tested with lhssh (`limits`).
#![allow(clippy::unwrap_used, reason = "tests")]

use interop::run::{Input, Output, run};
use interop::{Kind, Lab, Server, lab};
use std::process::Command;
use std::time::Duration;

/// How long a run may take that moves little.
const LIMIT: Duration = Duration::from_secs(60);

/// What a program says that limited it, each time that it says so.
fn limits(lab: &Lab, server: &Server, program: &str, args: &[&str], input: &str) -> Vec<String> {
    let mut command = Command::new(lab::program(program).unwrap());
    command.args(["-v", "-F", "none", "-P", &server.port.to_string(), "-i"]);
    command.arg(lab.key("user_ed25519")).args(["-o", "IdentityAgent=none"]);
    command.arg("-o").arg(format!("UserKnownHostsFile={}", server.known_hosts.display()));
    command.args(["-o", "GlobalKnownHostsFile=/dev/null"]).args(args);
    command.current_dir(lab.path("")).env("HOME", lab.path(""));
    let input = Input::Bytes(input.as_bytes().to_vec());
    let outcome = run(command, input, Output::Keep, LIMIT).unwrap();
    assert_eq!(outcome.status, 0, "{}", outcome.stderr);
    let said = outcome.stderr.lines().filter(|line| line.contains("limited by: "));
    said.map(str::to_owned).collect()
}

fn far() -> (Lab, Server) {
    let lab = Lab::new().unwrap();
    let server = Server::start(&lab, Kind::Ours, &["Subsystem sftp internal-sftp"]).unwrap();
    std::fs::write(lab.path("source"), vec![7; 12 << 20]).unwrap();
    (lab, server)
}

fn path(lab: &Lab, name: &str) -> String {
    format!("127.0.0.1:{}", lab.path(name).display())
}

#[test]
fn a_copy_says_what_limited_its_connections_together() {
    let (lab, server) = far();
    let source = path(&lab, "source");
    for ends in [["source", &path(&lab, "up")], [&source, "down"]] {
        let said = limits(&lab, &server, "lhscp", &[&["-n", "4"], &ends[..]].concat(), "");
        assert_eq!(said.len(), 1, "{said:?}");
        assert!(said[0].starts_with("lhscp: limited by: ") && said[0].contains(" % of the time; "));
    }
    let slow = ["--bwlimit", "8M", "source", &path(&lab, "slow")];
    let said = limits(&lab, &server, "lhscp", &slow, "");
    assert!(said[0].starts_with("lhscp: limited by: --bwlimit ("), "{said:?}");
}

#[test]
fn a_session_of_lhsftp_says_what_limited_it() {
    let (lab, server) = far();
    let line = "put source up\n";
    let said = limits(&lab, &server, "lhsftp", &["-b", "-", &path(&lab, "")], line);
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(said[0].contains("limited by: ") && said[0].contains(" % of the time; "), "{said:?}");
    let nothing = limits(&lab, &server, "lhsftp", &["-b", "-", &path(&lab, "")], "pwd\n");
    assert!(nothing.is_empty(), "nothing was moved: {nothing:?}");
}
