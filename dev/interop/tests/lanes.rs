//! The lanes of lhscp where a server is away or slow to let them in: what is said, and how long
//! that takes.
#![allow(clippy::unwrap_used, reason = "tests")]

use interop::{Kind, Lab, Server, lab};
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread::{JoinHandle, spawn};
use std::time::Duration;

/// How long anything may take on a busy machine, beside what it waits for by itself.
const PATIENCE: Duration = Duration::from_secs(120);

/// What one lane may wait for altogether before it is given up (R4), half as much again.
const GIVEN_UP: Duration = Duration::from_secs(140);

/// A copy by lhscp that is under way. It is killed when dropped.
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
        let _ = self.child.kill();
        let _ = self.child.wait();
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
