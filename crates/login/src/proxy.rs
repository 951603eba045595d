//! ProxyCommand: a program of the user's whose input and output are the connection.
//!
//! ```text
//! start   the user's shell replaces itself by the command, in a process group of its own
//! drop    its pipes close -> HUP to the group, as ssh does -> a moment -> KILL
//! ```

use engine::Fd;
use engine::fd::poll_until;
use rustix::event::{PollFd, PollFlags};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};
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

/// A running ProxyCommand, ended when dropped.
#[derive(Debug)]
pub struct Proxy {
    child: Child,
    /// Our end of the connection, to close it whoever else still holds it.
    connection: UnixStream,
}

impl Proxy {
    /// Starts `command`; the descriptor is the connection.
    pub(crate) fn start(command: &str) -> io::Result<(Fd, Self)> {
        let (ours, theirs) = UnixStream::pair()?;
        let connection = ours.try_clone()?;
        let shell = std::env::var_os("SHELL").filter(|s| !s.is_empty()).unwrap_or("/bin/sh".into());
        let child = Command::new(shell)
            .arg("-c")
            .arg(format!("exec {command}"))
            .stdin(Stdio::from(OwnedFd::from(theirs.try_clone()?)))
            .stdout(Stdio::from(OwnedFd::from(theirs)))
            // Ctrl-C ends the client, which then ends the proxy.
            .process_group(0)
            .spawn()?;
        Ok((Fd::from(OwnedFd::from(ours)), Self { child, connection }))
    }

    fn signal(&self, signal: Signal) {
        // Not reaped yet: the group's number is still its own.
        let _ = kill_process_group(Pid::from_child(&self.child), signal);
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

    /// A proxy that says when it is ready.
    fn start(script: &str) -> (Fd, Proxy) {
        let (fd, proxy) = Proxy::start(&format!("sh -c '{script}'")).unwrap();
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
