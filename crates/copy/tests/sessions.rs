//! A server that opens one session on each connection (`MaxSessions 1`), which scp(1) needs no more
//! of: the scan's channel takes it, and lanes need connections of their own.

#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use common::{Lab, tree};
use std::fs;
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long a server may take to listen.
const PATIENCE: Duration = Duration::from_secs(30);

/// OpenSSH's server, ended with the value.
struct Server {
    child: Child,
    port: u16,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Starts it with keys in the lab and one session on each connection.
fn start(lab: &Lab, sshd: PathBuf) -> Server {
    for name in ["host", "user"] {
        let mut keygen = Command::new("ssh-keygen");
        keygen.args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(lab.path(name));
        assert!(keygen.status().unwrap().success());
    }
    let port = stand_ins::free_port().unwrap();
    let public = fs::read_to_string(lab.path("host.pub")).unwrap();
    fs::write(lab.path("known_hosts"), format!("[127.0.0.1]:{port} {public}")).unwrap();
    let dir = lab.directory.path().display();
    let configuration = format!(
        "ListenAddress 127.0.0.1\nPort {port}\nPidFile none\nHostKey {dir}/host\n\
         AuthorizedKeysFile {dir}/user.pub\nStrictModes no\nUsePAM no\nPermitRootLogin yes\n\
         Subsystem sftp internal-sftp\nMaxSessions 1\n"
    );
    fs::write(lab.path("sshd_config"), configuration).unwrap();
    let mut command = Command::new(sshd);
    command.args(["-D", "-e", "-f"]).arg(lab.path("sshd_config")).stderr(Stdio::null());
    let mut server = Server { child: command.spawn().unwrap(), port };
    let deadline = Instant::now() + PATIENCE;
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert_eq!(server.child.try_wait().unwrap(), None, "sshd has ended");
        assert!(Instant::now() < deadline, "sshd does not listen");
        std::thread::sleep(Duration::from_millis(20));
    }
    server
}

#[test]
fn a_server_that_opens_one_session_on_each_connection_is_enough() {
    if !need::require(&["sshd", "ssh-keygen"]) {
        return;
    }
    let lab = Lab::new();
    let server = start(&lab, need::find("sshd").unwrap());
    common::plant(&lab.path("source"));
    for lanes in ["auto", "1", "3"] {
        let target = lab.path(lanes);
        let mut lhscp = Command::new(env!("CARGO_BIN_EXE_lhscp"));
        lhscp.env("HOME", lab.directory.path()).env_remove("XDG_STATE_HOME");
        lhscp.args(["-r", "-B", "-F", "none", "-n", lanes, "--no-fsync"]);
        lhscp.args(["-P", &server.port.to_string(), "-i"]).arg(lab.path("user"));
        let known = format!("UserKnownHostsFile={}", lab.path("known_hosts").display());
        lhscp.args(["-o", &known, "-o", "IdentityAgent=none"]);
        lhscp.arg(lab.path("source")).arg(format!("127.0.0.1:{}", target.display()));
        let out = lhscp.output().unwrap();
        let said = String::from_utf8_lossy(&out.stderr);
        assert_eq!(out.status.code(), Some(0), "-n {lanes}: {said}");
        assert_eq!(tree(&lab.path("source")), tree(&target), "-n {lanes}");
    }
}
