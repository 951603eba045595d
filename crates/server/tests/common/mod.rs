//! A throw-away lhsshd and the system's `ssh` as its client.
#![allow(clippy::unwrap_used, reason = "tests")]
#![allow(dead_code, reason = "every test file uses its own part")]

use stand_ins::free_port;
use std::fs;
use std::io::Read;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The program under test.
pub(crate) const LHSSHD: &str = env!("CARGO_BIN_EXE_lhsshd");

/// How long anything may take; nothing here is measured.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// A directory with a host key and a user key that may log in.
pub(crate) struct Site {
    dir: TempDir,
    pub(crate) port: u16,
}

impl Site {
    pub(crate) fn new() -> Self {
        let dir = tempfile::Builder::new().prefix("lhsshd-test-").tempdir().unwrap();
        let site = Self { dir, port: free_port().unwrap() };
        site.keygen("host_key", "ed25519");
        site.keygen("user_key", "ed25519");
        site.authorize("");
        site
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn text(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    pub(crate) fn keygen(&self, name: &str, kind: &str) {
        let made = Command::new("ssh-keygen")
            .args(["-q", "-t", kind, "-N", "", "-C", "test", "-f"])
            .arg(self.path(name))
            .status()
            .unwrap();
        assert!(made.success());
    }

    /// Lets the user key in, with these options in front.
    pub(crate) fn authorize(&self, options: &str) {
        let line = format!("{options} {}", self.text("user_key.pub"));
        fs::write(self.path("authorized_keys"), line.trim_start()).unwrap();
    }

    /// `lhsshd` with these settings.
    pub(crate) fn lhsshd(&self, settings: &[&str]) -> Command {
        let mut command = Command::new(LHSSHD);
        command.args(["-f", "none"]);
        for setting in settings {
            command.args(["-o", setting]);
        }
        for setting in [
            format!("ListenAddress=127.0.0.1:{}", self.port),
            format!("HostKey={}", self.path("host_key").display()),
            format!("AuthorizedKeysFile={}", self.path("authorized_keys").display()),
            format!("PidFile={}", self.path("pid").display()),
            "StrictModes=no".to_owned(),
            "LogLevel=DEBUG".to_owned(),
        ] {
            command.args(["-o", &setting]);
        }
        command
    }

    /// A listener in the foreground.
    pub(crate) fn serve(self, settings: &[&str]) -> Server {
        let command = self.lhsshd(settings);
        self.start(command)
    }

    /// The same, started by another program.
    pub(crate) fn serve_by(self, mut starter: Command, settings: &[&str]) -> Server {
        let command = self.lhsshd(settings);
        starter.arg(command.get_program()).args(command.get_args());
        self.start(starter)
    }

    pub(crate) fn start(self, mut command: Command) -> Server {
        let log = fs::File::options().append(true).create(true).open(self.path("log")).unwrap();
        let child = command.arg("-D").stdin(Stdio::null()).stderr(log).spawn().unwrap();
        let server = Server { site: self, child };
        server.wait_for_log("Server listening on");
        server
    }

    /// `ssh` with these options, before the host's name.
    pub(crate) fn ssh_to(&self, options: &[&str]) -> Command {
        let mut ssh = Command::new("ssh");
        ssh.args(["-F", "none", "-T", "-i"]).arg(self.path("user_key"));
        for option in options {
            ssh.args(["-o", option]);
        }
        for option in [
            "StrictHostKeyChecking=no",
            "UserKnownHostsFile=/dev/null",
            "GlobalKnownHostsFile=/dev/null",
            "IdentitiesOnly=yes",
            "IdentityAgent=none",
            "BatchMode=yes",
            "LogLevel=ERROR",
        ] {
            ssh.args(["-o", option]);
        }
        ssh.args(["-p", &self.port.to_string(), "127.0.0.1"]);
        ssh.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        ssh
    }
}

/// A running listener.
pub(crate) struct Server {
    pub(crate) site: Site,
    pub(crate) child: Child,
}

impl Server {
    pub(crate) fn start(settings: &[&str]) -> Self {
        Site::new().serve(settings)
    }

    /// A server whose key has these options.
    pub(crate) fn with_key_options(options: &str, settings: &[&str]) -> Self {
        let site = Site::new();
        site.authorize(options);
        site.serve(settings)
    }

    /// Runs a command by ssh.
    pub(crate) fn run(&self, command: &str) -> Output {
        self.ssh(&[], command).output().unwrap()
    }

    /// ssh with options and a command.
    pub(crate) fn ssh(&self, options: &[&str], command: &str) -> Command {
        let mut ssh = self.site.ssh_to(options);
        ssh.arg(command);
        ssh
    }

    pub(crate) fn log(&self) -> String {
        self.site.text("log")
    }

    pub(crate) fn wait_for_log(&self, text: &str) {
        until(&format!("{text:?} in the log:\n"), || self.log().contains(text), || self.log());
    }

    /// A figure of the session's transfer record, once it is in the log.
    pub(crate) fn wait_for_figure(&self, name: &str) -> u64 {
        let start = format!(" {name}=");
        self.wait_for_log(&start);
        let log = self.log();
        let value = log.split(&start).nth(1).and_then(|rest| rest.split_whitespace().next());
        value.unwrap().parse().unwrap()
    }

    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(("127.0.0.1", self.site.port)).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    pub(crate) fn signal(&self, signal: &str) {
        kill(signal, self.child.id());
    }

    /// Process ids of the sessions.
    pub(crate) fn sessions(&self) -> Vec<u32> {
        children(self.child.id())
    }

    /// The listener is alive and serves.
    pub(crate) fn assert_serves(&self) {
        let output = self.run("echo served");
        assert_eq!(stdout(&output), "served\n", "{}\n{}", stderr(&output), self.log());
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn kill(signal: &str, pid: u32) {
    let sent = Command::new("kill").args([&format!("-{signal}"), &pid.to_string()]).status();
    assert!(sent.unwrap().success());
}

/// Living children of a process.
pub(crate) fn children(pid: u32) -> Vec<u32> {
    let path = format!("/proc/{pid}/task/{pid}/children");
    let all = fs::read_to_string(path).unwrap_or_default();
    all.split_whitespace().filter_map(|pid| pid.parse().ok()).filter(|pid| is_alive(*pid)).collect()
}

/// It exists and is no zombie.
pub(crate) fn is_alive(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit(") ").next().and_then(|rest| rest.chars().next());
    state.is_some_and(|state| state != 'Z' && state != 'X')
}

/// Waits for a condition; `report` explains when it never comes.
pub(crate) fn until(what: &str, mut condition: impl FnMut() -> bool, report: impl Fn() -> String) {
    let deadline = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < deadline, "waited in vain for {what}{}", report());
        std::thread::sleep(Duration::from_millis(10));
    }
}

pub(crate) fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

pub(crate) fn user() -> String {
    let output = Command::new("id").arg("-un").output().unwrap();
    stdout(&output).trim().to_owned()
}

/// Everything until the peer closes.
pub(crate) fn read_all(mut from: impl Read) -> Vec<u8> {
    let mut all = Vec::new();
    let _ = from.read_to_end(&mut all);
    all
}

pub(crate) fn write(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
}
