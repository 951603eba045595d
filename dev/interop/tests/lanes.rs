//! The lanes of lhscp where a server is away or slow to let them in: what is said, and how long
//! that takes.
#![allow(clippy::unwrap_used, reason = "tests")]

use interop::{Kind, Lab, Server, lab};
use nix::sys::signal::{SIGKILL, killpg};
use nix::unistd::Pid;
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread::{JoinHandle, spawn};
use std::time::{Duration, Instant};

/// How long anything may take on a busy machine, beside what it waits for by itself.
const PATIENCE: Duration = Duration::from_secs(120);

/// What one lane may wait for altogether before it is given up (R4), half as much again.
const GIVEN_UP: Duration = Duration::from_secs(140);

/// A copy by lhscp that is under way. It is killed when dropped, with what it has started.
struct Copy {
    child: Child,
    /// Lines of `--json`.
    told: Receiver<String>,
    said: Option<JoinHandle<String>>,
}

impl Copy {
    /// Of `source` up to the server.
    fn start(lab: &Lab, server: &Server, args: &[&str]) -> Self {
        let mut command = Command::new(lab::program("lhscp").unwrap());
        command.args(["--json", "-F", "none", "-P", &server.port.to_string(), "-i"]);
        command.arg(lab.key("user_ed25519")).args(["-o", "IdentityAgent=none", "-o"]);
        command.arg(format!("UserKnownHostsFile={}", server.known_hosts.display()));
        command.args(["-o", "GlobalKnownHostsFile=/dev/null"]).args(args).arg("source");
        command.arg(format!("127.0.0.1:{}", lab.path("up").display()));
        command.current_dir(lab.path("")).env("HOME", lab.path("")).process_group(0);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (stdout, mut stderr) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
        let (tell, told) = channel();
        spawn(move || {
            let lines = BufReader::new(stdout).lines();
            lines.map_while(Result::ok).try_for_each(|line| tell.send(line))
        });
        let said = Some(spawn(move || {
            let mut text = String::new();
            let _ = stderr.read_to_string(&mut text);
            text
        }));
        Self { child, told, said }
    }

    /// Waits for so many lines of `--json` with `text`; the last of them.
    fn tells(&self, text: &str, times: usize, patience: Duration) -> String {
        let mut found = 0;
        loop {
            let line = self.told.recv_timeout(patience).expect(text);
            found += usize::from(line.contains(text));
            if found == times {
                return line;
            }
        }
    }

    /// Waits until each lane has broken, and so many lines of it more.
    fn breaks(&self, more: usize) {
        let mut whole: BTreeSet<usize> = (0..LANES).collect();
        while !whole.is_empty() {
            let line = self.tells(RETRY, 1, PATIENCE);
            whole.retain(|lane| !line.contains(&format!(r#""lane":{lane},"#)));
        }
        self.tells(RETRY, more, PATIENCE);
    }

    /// Its exit code, and what it said beside how the copy stands.
    fn ends(&mut self) -> (i32, Vec<String>) {
        let status = self.child.wait().unwrap();
        let said = self.said.take().unwrap().join().unwrap();
        let standing = |line: &&str| !line.contains(" files, ") && !line.contains(" mean, ");
        let lines = said.lines().filter(standing).map(str::to_owned).collect();
        (status.code().unwrap_or(-1), lines)
    }
}

impl Drop for Copy {
    fn drop(&mut self) {
        if let Ok(None) = self.child.try_wait() {
            let group = Pid::from_raw(i32::try_from(self.child.id()).unwrap());
            let _ = killpg(group, SIGKILL);
            let _ = self.child.wait();
        }
    }
}

fn far(kind: Kind, size: usize) -> Option<(Lab, Server)> {
    if !kind.available() {
        return None;
    }
    let lab = Lab::new().unwrap();
    let server = Server::start(&lab, kind, &["Subsystem sftp internal-sftp"]).unwrap();
    std::fs::write(lab.path("source"), vec![7; size]).unwrap();
    Some((lab, server))
}

fn is_there(lab: &Lab, size: usize) -> bool {
    std::fs::read(lab.path("up")).is_ok_and(|content| content == vec![7; size])
}

/// How long a login may hang in a test: `ConnectTimeout`, and longer than anybody has patience.
const HANG: &str = "ConnectTimeout=600";

/// More lanes than one connection takes, and time for all of them to try.
const MANY: [&str; 6] = ["-n", "9", "--bwlimit", "1M", "-o", HANG];

/// What is copied must be there, and the copy over soon after, without a word.
fn ends_without_the_others(lab: &Lab, mut copy: Copy, size: usize) {
    copy.tells(r#""event":"file""#, 1, PATIENCE);
    let done = Instant::now();
    while !copy.tells("event", 1, PATIENCE).contains(r#""report""#) {
        assert!(done.elapsed() < PATIENCE, "it waits for lanes that nobody needs");
    }
    let (code, lines) = copy.ends();
    assert!(code == 0 && is_there(lab, size), "{lines:#?}");
    assert_eq!(lines, [""; 0]);
}

#[test]
fn a_copy_that_is_done_waits_for_no_proxy() {
    let size = 5 << 20;
    let Some((lab, server)) = far(Kind::Ours, size) else { return };
    // The first to come meets a server, whoever comes later meets nobody.
    let script = "mkdir first 2>/dev/null && exec \"$1\" -i -f \"$2\" 2>/dev/null; echo $$ >>mute; exec sleep 900";
    std::fs::write(lab.path("proxy"), script).unwrap();
    let (program, port) = (lab::program("lhsshd").unwrap(), server.port);
    let config = lab.path(&format!("sshd_config.{port}"));
    let proxy = format!("ProxyCommand=sh proxy {} {}", program.display(), config.display());
    let copy = Copy::start(&lab, &server, &[&MANY[..], &["-o", &proxy]].concat());
    ends_without_the_others(&lab, copy, size);
    let mute = std::fs::read_to_string(lab.path("mute")).unwrap();
    for pid in mute.split_whitespace() {
        assert!(!Path::new("/proc").join(pid).exists(), "{pid} was left behind");
    }
}

#[test]
fn a_copy_that_is_done_waits_for_no_server_that_says_nothing() {
    let size = 5 << 20;
    let Some((lab, mut server)) = far(Kind::OpenSsh, size) else { return };
    let (real, listener) = (server.port, TcpListener::bind("127.0.0.1:0").unwrap());
    server.port = listener.local_addr().unwrap().port();
    server.known_hosts = lab.know_host(server.port).unwrap();
    let (met, mute) = channel();
    spawn(move || {
        let mut clients = listener.incoming().flatten();
        let first = clients.next().unwrap();
        let far = TcpStream::connect(("127.0.0.1", real)).unwrap();
        let (from, to) = (first.try_clone().unwrap(), far.try_clone().unwrap());
        spawn(move || carry(from, to));
        spawn(move || carry(far, first));
        clients.try_for_each(|client| met.send(client))
    });
    let copy = Copy::start(&lab, &server, &MANY);
    let mut waits = mute.recv_timeout(PATIENCE).expect("a second connection");
    ends_without_the_others(&lab, copy, size);
    // What it had said until then, and its end.
    waits.read_to_end(&mut Vec::new()).unwrap();
}

fn carry(mut from: TcpStream, mut to: TcpStream) {
    let _ = std::io::copy(&mut from, &mut to);
    let _ = to.shutdown(Shutdown::Write);
}

const LANES: usize = 6;
const RETRY: &str = r#""event":"retry""#;
const SLOW: [&str; 4] = ["-n", "6", "--bwlimit", "1M"];

#[test]
fn a_server_that_is_away_for_a_while_is_told_in_two_lines() {
    for kind in [Kind::OpenSsh, Kind::Ours] {
        let size = 12 << 20;
        let Some((lab, mut server)) = far(kind, size) else { return };
        let mut copy = Copy::start(&lab, &server, &SLOW);
        copy.tells(r#""state":"opened""#, LANES, PATIENCE);
        server.crash().unwrap();
        copy.breaks(LANES);
        server.start_again().unwrap();
        copy.tells(r#""event":"report""#, 1, PATIENCE);
        let (code, lines) = copy.ends();
        assert!(code == 0 && is_there(&lab, size), "{kind:?}: {lines:#?}");
        assert_eq!(lines.len(), 2, "{kind:?}: {lines:#?}");
        assert!(lines[0].starts_with("lhscp: 127.0.0.1: "), "{lines:#?}");
        assert!(lines[0].contains("; trying again up to 8 times, 0.5 s to 30.0 s apart"));
        assert!(lines[1].starts_with("lhscp: 127.0.0.1: going on after "), "{lines:#?}");
    }
}

#[test]
fn a_server_that_stays_away_is_told_twice_and_each_lane_with_v() {
    for verbose in [false, true] {
        let Some((lab, mut server)) = far(Kind::OpenSsh, 50 << 20) else { return };
        let args = if verbose { [&SLOW[..], &["-v"]].concat() } else { SLOW.to_vec() };
        let mut copy = Copy::start(&lab, &server, &args);
        copy.tells(r#""state":"opened""#, LANES, PATIENCE);
        server.crash().unwrap();
        if verbose {
            copy.breaks(LANES);
            copy.child.kill().unwrap();
            let (_, lines) = copy.ends();
            let lanes = |line: &&String| line.starts_with("lhscp: lane ") && line.contains("again");
            assert!(lines.iter().filter(lanes).count() >= 2 * LANES, "{lines:#?}");
            continue;
        }
        copy.tells(r#""event":"report""#, 1, GIVEN_UP);
        let (code, lines) = copy.ends();
        assert_eq!((code, lines.len()), (255, 2), "{lines:#?}");
        assert!(lines[0].contains("; trying again up to 8 times"), "{lines:#?}");
        assert!(lines[1].starts_with("lhscp: 127.0.0.1: "), "{lines:#?}");
    }
}
