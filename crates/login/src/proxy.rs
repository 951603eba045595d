//! ProxyCommand and ProxyJump: a program whose input and output are the connection.
//!
//! ```text
//! start   the user's shell replaces itself by the command, in a process group of its own
//! jump    lhssh, in our own group: it may have to ask the user (jump)
//! drop    its pipes close -> HUP, as ssh does, to the group if it has one -> a moment -> KILL
//! ```

use crate::jump;
use engine::Fd;
use engine::fd::poll_until;
use rustix::event::{PollFd, PollFlags};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, kill_process_group, pidfd_open};
use std::io;
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// How long a proxy that was hung up may put its own things in order: log out of a gateway,
/// remove what it made.
const MOMENT: Duration = Duration::from_secs(2);

/// How long a jump that has closed the connection may take to end: it waits for nothing then.
const END: Duration = Duration::from_secs(5);

/// A running ProxyCommand or jump, ended when dropped.
#[derive(Debug)]
pub struct Proxy {
    child: Child,
    /// The host that a jump leads through; a ProxyCommand has a process group of its own instead.
    via: Option<String>,
    /// Our end of the connection, to close it whoever else still holds it.
    connection: UnixStream,
}

impl Proxy {
    /// Starts `command`; the descriptor is the connection.
    pub(crate) fn start(command: &str) -> io::Result<(Fd, Self)> {
        let shell = std::env::var_os("SHELL").filter(|s| !s.is_empty()).unwrap_or("/bin/sh".into());
        let mut child = Command::new(shell);
        // Ctrl-C ends the client, which then ends the proxy.
        child.arg("-c").arg(format!("exec {command}")).process_group(0);
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

    fn signal(&self, signal: Signal) {
        // Not reaped yet: the number is still its own.
        let pid = Pid::from_child(&self.child);
        let _ = match self.via {
            Some(_) => kill_process(pid, signal),
            None => kill_process_group(pid, signal),
        };
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
    fn a_proxy_that_ignores_everything_is_killed_with_its_children() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("child");
        let path = file.display();
        let (fd, proxy) =
            start(&format!("trap \"\" HUP; sleep 1000 & echo $! > {path}; echo ready; wait"));
        let child = std::fs::read_to_string(&file).unwrap();
        let began = Instant::now();
        drop(proxy);
        assert!((MOMENT..10 * MOMENT).contains(&began.elapsed()), "{:?}", began.elapsed());
        while is_alive(child.trim()) {
            assert!(began.elapsed() < 10 * MOMENT);
            std::thread::sleep(Duration::from_millis(10));
        }
        drop(fd);
    }
}
