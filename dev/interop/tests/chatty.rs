//! Servers whose login scripts print something in every session, where SFTP should begin.
#![allow(clippy::unwrap_used, reason = "tests")]

use interop::run::{Input, Output, run};
use interop::{Kind, Lab, Server, lab};
use std::process::Command;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(60);

#[test]
fn text_before_sftp_is_shown_with_what_to_do() {
    let lab = Lab::new().unwrap();
    std::fs::write(lab.path("file"), "x").unwrap();
    let subsystem = "Subsystem sftp echo hello; exec /usr/lib/openssh/sftp-server";
    let why = "the server broke the SFTP protocol: it begins with text, \"hello\"; login scripts \
               there, such as ~/.bashrc, must print nothing in sessions without a terminal";
    for kind in [Kind::OpenSsh, Kind::Ours] {
        if !kind.available() {
            continue;
        }
        let server = Server::start(&lab, kind, &[subsystem]).unwrap();
        for (program, args) in
            [("lhscp", &["-q", "file", "127.0.0.1:x"][..]), ("lhsftp", &["-b", "-", "127.0.0.1"])]
        {
            let mut command = Command::new(lab::program(program).unwrap());
            command.args(["-F", "none", "-P", &server.port.to_string(), "-i"]);
            command.arg(lab.key("user_ed25519")).args(["-o", "IdentityAgent=none"]);
            command.arg("-o").arg(format!("UserKnownHostsFile={}", server.known_hosts.display()));
            command.args(["-o", "GlobalKnownHostsFile=/dev/null"]).args(args);
            command.current_dir(lab.path("")).env("HOME", lab.path(""));
            let input = Input::Bytes(b"pwd\n".to_vec());
            let outcome = run(command, input, Output::Keep, LIMIT).unwrap();
            assert_eq!(outcome.status, 255, "{program}: {}", outcome.stderr);
            assert_eq!(outcome.stderr.matches(why).count(), 1, "{program}: {}", outcome.stderr);
            let first = outcome.stderr.lines().next().unwrap();
            assert!(first.ends_with(why), "{}", outcome.stderr);
        }
    }
}
