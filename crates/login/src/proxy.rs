//! ProxyCommand and ProxyJump: a program whose input and output are the connection.
//!
//! ```text
//! start   the user's shell replaces itself by the command
//! jump    lhssh (jump)
//! drop    its pipes close -> HUP, as ssh does -> a moment -> KILL
//! ```
//! Both stay in our process group: they may have to ask the user, and what is not in the terminal's
//! foreground is stopped when it tries to.

use crate::jump;
use engine::Fd;
use engine::fd::poll_until;
use rustix::event::{PollFd, PollFlags};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};
use std::io;
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How long a proxy that was hung up may put its own things in order: log out of a gateway,
/// remove what it made.
const MOMENT: Duration = Duration::from_secs(2);

/// How long a jump that has closed the connection may take to end: it waits for nothing then.
const END: Duration = Duration::from_secs(5);

/// Whether Ctrl-C is this program's alone.
static INTERRUPTS_ARE_OURS: AtomicBool = AtomicBool::new(false);

/// Says the same to the jumps on our way, whose ProxyCommands are on it, too.
pub(crate) const KEEP_INTERRUPTS: &str = "LONGHAUL_KEEP_INTERRUPTS";

/// From now on ProxyCommands are started deaf to SIGINT, which the terminal sends to them as well:
/// for a program that goes on after one.
pub fn keep_interrupts() {
    INTERRUPTS_ARE_OURS.store(true, Ordering::Relaxed);
}

pub(crate) fn interrupts_are_ours() -> bool {
    INTERRUPTS_ARE_OURS.load(Ordering::Relaxed) || std::env::var_os(KEEP_INTERRUPTS).is_some()
}

/// A running ProxyCommand or jump, ended when dropped.
#[derive(Debug)]
pub struct Proxy {
    child: Child,
    /// The host that a jump leads through.
    via: Option<String>,
    /// Our end of the connection, to close it whoever else still holds it.
    connection: UnixStream,
}

impl Proxy {
    /// Starts `command`; the descriptor is the connection.
    pub(crate) fn start(command: &str) -> io::Result<(Fd, Self)> {
        let shell = std::env::var_os("SHELL").filter(|s| !s.is_empty()).unwrap_or("/bin/sh".into());
        let mut child = if interrupts_are_ours() {
            let mut deaf = Command::new("/bin/sh");
            deaf.args(["-c", "trap '' INT; exec \"$@\"", "sh"]).arg(shell);
            deaf
        } else {
            Command::new(shell)
        };
        child.arg("-c").arg(format!("exec {command}"));
        Self::spawn(child, None)
    }

    /// Starts `call`, a program with its arguments that leads through `via`.
    pub(crate) fn jump(call: Command, via: String) -> io::Result<(Fd, Self)> {
        Self::spawn(call, Some(via))
    }

    fn spawn(mut command: Command, via: Option<String>) -> io::Result<(Fd, Self)> {
        let (ours, theirs) = UnixStream::pair()?;
        let connection = ours.try_clone()?;
        command.stdin(Stdio::from(OwnedFd::from(theirs.try_clone()?)));
        command.stdout(Stdio::from(OwnedFd::from(theirs)));
        let child = command.spawn()?;
        Ok((Fd::from(OwnedFd::from(ours)), Self { child, via, connection }))
    }

    /// Through which host there is no connection, if this is a jump that ended because of that.
    /// To be asked when the connection has ended.
    pub(crate) fn failed_via(&mut self) -> Option<String> {
        let via = self.via.clone()?;
        self.ends_within(END);
        let status = self.child.try_wait().ok().flatten()?;
        (status.code() == Some(jump::FAILED)).then_some(via)
    }

    /// Tells it that the connection is over, as ssh(1) does before a signal ends it.
    pub fn hang_up(&self) {
        self.signal(Signal::HUP);
    }

    fn signal(&self, signal: Signal) {
        // Not reaped while this is there, unless it ended: the number is still its own.
        let _ = kill_process(Pid::from_child(&self.child), signal);
    }

    /// Whether it ends by itself in time; where that cannot be waited for, it does not.
    fn ends_within(&self, time: Duration) -> bool {
        pidfd_open(Pid::from_child(&self.child), PidfdFlags::empty()).is_ok_and(|process| {
            poll_until(&mut [PollFd::new(&process, PollFlags::IN)], Some(time)).unwrap_or(false)
        })
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let _ = self.connection.shutdown(Shutdown::Both);
        if let Ok(None) = self.child.try_wait() {
            self.signal(Signal::HUP);
            if !self.ends_within(MOMENT) {
                self.signal(Signal::KILL);
            }
            let _ = self.child.wait();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::IoSliceMut;
    use std::time::Instant;

    /// A proxy that says when it is ready. Who runs the tests may have been told to ignore HUP,
    /// and a shell cannot trap what was ignored when it began.
    fn start(script: &str) -> (Fd, Proxy) {
        let command = format!("env --default-signal=HUP sh -c '{script}'");
        let (fd, proxy) = Proxy::start(&command).unwrap();
        let mut ready = [0; 6];
        fd.read(&mut [IoSliceMut::new(&mut ready)]).unwrap();
        assert_eq!(&ready, b"ready\n");
        (fd, proxy)
    }

    #[test]
    fn a_proxy_that_is_hung_up_puts_its_things_in_order() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("done");
        let path = file.display();
        let (_fd, proxy) = start(&format!(
            "trap \"sleep 0.2; echo bye > {path}; exit\" HUP; echo ready; while :; do sleep 0.05; done"
        ));
        drop(proxy);
        assert_eq!(std::fs::read_to_string(file).unwrap(), "bye\n");
    }

    /// Also where another thread still holds the connection.
    #[test]
    fn a_proxy_that_reads_to_the_end_sees_it() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("done");
        let path = file.display();
        let (fd, proxy) =
            start(&format!("trap \"\" HUP; echo ready; cat > {path}; echo end >> {path}"));
        fd.write(&[io::IoSlice::new(b"last words, ")]).unwrap();
        drop(proxy);
        assert_eq!(std::fs::read_to_string(file).unwrap(), "last words, end\n");
        drop(fd);
    }

    /// Only a jump that ended as lhssh does when it has said why.
    #[test]
    fn a_jump_tells_whether_it_failed() {
        let sh = |script: &str| {
            let mut command = Command::new("sh");
            command.args(["-c", script]);
            command
        };
        let jump = |script| Proxy::jump(sh(script), "gate".to_owned()).unwrap().1;
        assert_eq!(jump("exit 255").failed_via().as_deref(), Some("gate"));
        for other in ["exit 0", "exit 127", "kill -9 $$"] {
            assert_eq!(jump(other).failed_via(), None, "{other}");
        }
        assert_eq!(Proxy::start("sh -c 'exit 255'").unwrap().1.failed_via(), None);
    }

    /// It exists and is no zombie.
    fn is_alive(pid: &str) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit(") ").next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with('Z'))
    }

    #[test]
    fn a_proxy_that_ignores_everything_is_killed() {
        let (_fd, proxy) = start("trap \"\" HUP; echo ready; while :; do sleep 0.05; done");
        let pid = proxy.child.id().to_string();
        let began = Instant::now();
        drop(proxy);
        assert!((MOMENT..10 * MOMENT).contains(&began.elapsed()), "{:?}", began.elapsed());
        assert!(!is_alive(&pid));
    }

    /// What is not in the foreground group cannot ask for a passphrase; what Ctrl-C is not for
    /// does not hear it.
    #[test]
    fn a_proxy_is_in_our_group_and_deaf_to_interrupts_that_are_ours() {
        let field = |pid: &str, name: &str| {
            let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
            let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap().to_owned();
            line.trim().to_owned()
        };
        let ignores_interrupts = |proxy: &Proxy| {
            let mask = field(&proxy.child.id().to_string(), "SigIgn:");
            u64::from_str_radix(&mask, 16).unwrap() & (1 << (2 - 1)) > 0
        };
        let (_fd, heard) = start("echo ready; exec sleep 1000");
        let group = rustix::process::getpgid(Some(Pid::from_child(&heard.child))).unwrap();
        assert_eq!(group, rustix::process::getpgrp());
        let before = ignores_interrupts(&heard);
        keep_interrupts();
        let (_other, deaf) = start("echo ready; exec sleep 1000");
        INTERRUPTS_ARE_OURS.store(false, Ordering::Relaxed);
        // Who runs the tests may ignore them, too.
        assert!(ignores_interrupts(&deaf) && (before || !ignores_interrupts(&heard)));
    }
}
