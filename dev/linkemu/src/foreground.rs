//! `linkemu run`: a link for the time of one command.
//!
//! link up -> peer started and listening -> command runs -> peer ended -> link down -> report

use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use std::{fs, io};

use anyhow::Context;
use linkemu::{Link, Side, Spec};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::exfiltrator::WithOrigin;
use signal_hook::iterator::{Handle, SignalsInfo};
use signal_hook::low_level::siginfo::Cause;

/// Signals, and who sent them.
type Signals = SignalsInfo<WithOrigin>;

/// How long a peer has to listen on a port before the command starts anyway.
const PEER_START: Duration = Duration::from_secs(2);
/// How long it has to end before it is killed.
const PEER_END: Duration = Duration::from_millis(500);

pub(crate) fn run(
    spec: Spec,
    peer: Option<&str>,
    json: Option<&Path>,
    command: &[String],
) -> anyhow::Result<u8> {
    // From here on these no longer end the process, and so the link is always taken down.
    let signals = Signals::new([SIGHUP, SIGINT, SIGTERM])?;
    let link = Link::up(spec)?;
    let peer = peer.map(|peer| Peer::start(&link, peer)).transpose()?;
    let status = run_command(&link, command, signals)?;
    drop(peer);
    let spec = link.spec().clone();
    let sound = crate::report(&spec, &link.down(), json)?;
    Ok(match exit_code(status) {
        0 => sound,
        code => code,
    })
}

fn run_command(link: &Link, command: &[String], signals: Signals) -> anyhow::Result<ExitStatus> {
    let [program, arguments @ ..] = command else { anyhow::bail!("no command") };
    let mut child = link
        .exec_in_a(Command::new(program).args(arguments))
        .with_context(|| format!("cannot run {program}"))?;
    let forwarding = forward(signals, Pid::from_child(&child));
    let status = child.wait();
    forwarding.close();
    Ok(status?)
}

/// Passes signals on to the command, which SIGINT and SIGTERM end at once in most cases. A
/// terminal's interrupt comes from the kernel and reaches the command without our help.
fn forward(mut signals: Signals, child: Pid) -> Handle {
    let handle = signals.handle();
    thread::spawn(move || {
        for origin in signals.forever() {
            let sent = match (origin.signal, origin.cause) {
                (SIGINT, Cause::Kernel) => continue,
                (SIGINT, _) => Signal::INT,
                _ => Signal::TERM,
            };
            let _ = kill_process(child, sent);
        }
    });
    handle
}

fn exit_code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}

/// A server at the far end, in a process group of its own.
struct Peer(Child);

impl Peer {
    fn start(link: &Link, command: &str) -> anyhow::Result<Self> {
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", command]).process_group(0).stdin(Stdio::null()).stdout(Stdio::null());
        let mut peer = Self(link.exec_in_b(&mut shell).context("cannot start the peer")?);
        let deadline = Instant::now() + PEER_START;
        while Instant::now() < deadline && !listens(link)? {
            if let Some(status) = peer.0.try_wait()? {
                anyhow::bail!("the peer ended at once: {status}");
            }
            thread::sleep(Duration::from_millis(10));
        }
        Ok(peer)
    }

    fn ends_in_time(&mut self) -> bool {
        let deadline = Instant::now() + PEER_END;
        while Instant::now() < deadline {
            if !matches!(self.0.try_wait(), Ok(None)) {
                return true;
            }
            thread::sleep(Duration::from_millis(5));
        }
        false
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let group = Pid::from_child(&self.0);
        let _ = kill_process_group(group, Signal::TERM);
        if !self.ends_in_time() {
            let _ = kill_process_group(group, Signal::KILL);
            let _ = self.0.wait();
        }
    }
}

/// Whether anything listens on a TCP port at the far end.
fn listens(link: &Link) -> io::Result<bool> {
    const LISTEN: &str = "0A";
    link.run_in(Side::B, || {
        let tables = ["/proc/thread-self/net/tcp", "/proc/thread-self/net/tcp6"];
        let text: String = tables.iter().filter_map(|file| fs::read_to_string(file).ok()).collect();
        Ok(text.lines().any(|line| line.split_whitespace().nth(3) == Some(LISTEN)))
    })
}
