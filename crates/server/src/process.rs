//! One command of a channel, from its start to the CLOSE of its channel.
//!
//! ```text
//! waiter                             exit status at once; EOF and CLOSE when both have ended
//! source (stdout), source (stderr)   the last one to end sends EOF if the command goes on
//! receiving thread                   signals, and the hang-up when the client is gone
//! ```
//! A background process that keeps stdout open keeps the channel open, as in sshd.
//!
//! The status goes before EOF: a client that has sent its own EOF may close the channel at ours
//! and would end without the status, as dbclient does.

use crate::job::Ready;
use crate::log::Log;
use anyhow::{Context, Result};
use engine::{Fd, Port, Session, Sink, Source, Stream};
use nix::sys::wait::{Id, WaitPidFlag, waitid};
use proto::channel::{LocalId, Request};
use rustix::process::{Pid, Signal, kill_process_group};
use std::io::Write;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// What an ordinary user may have (fs.pipe-max-size).
const PIPE: usize = 1 << 20;

/// How long after its outputs a command may end and still have its status told before EOF. The
/// kernel closes the files of a process a little before anybody can wait for it.
const GRACE: Duration = Duration::from_millis(100);

/// How long a command that the hang-up did not end may read nothing before the rest of its input
/// is dropped and the session ends. sshd drops it at once.
const LINGER: Duration = Duration::from_secs(5);

/// Signals by their names in RFC 4254 section 6.10, those that sshd knows.
const SIGNALS: &[(&str, Signal)] = &[
    ("ABRT", Signal::ABORT),
    ("ALRM", Signal::ALARM),
    ("FPE", Signal::FPE),
    ("HUP", Signal::HUP),
    ("ILL", Signal::ILL),
    ("INT", Signal::INT),
    ("KILL", Signal::KILL),
    ("PIPE", Signal::PIPE),
    ("QUIT", Signal::QUIT),
    ("SEGV", Signal::SEGV),
    ("TERM", Signal::TERM),
    ("USR1", Signal::USR1),
    ("USR2", Signal::USR2),
];

struct State {
    /// Streams that still run.
    outputs: u8,
    /// Not waited for yet: its process id is its own.
    alive: bool,
}

/// A command that was started.
pub(crate) struct Process {
    id: LocalId,
    pid: Pid,
    state: Mutex<State>,
    ended: Condvar,
}

impl Process {
    /// Starts a command with channel `id` as its three streams.
    pub(crate) fn start(
        Ready { mut command, notice }: Ready,
        id: LocalId,
        port: &mut Port<'_>,
        log: &Arc<Log>,
    ) -> Result<Arc<Self>> {
        let stderr = notice.map(|text| begin_stderr(&mut command, &text)).transpose()?;
        let mut child = Unwatched::start(&mut command)
            .with_context(|| format!("cannot run {}", command.get_program().display()))?;
        // Or its end of the pipe stays open.
        drop(command);
        let pid = Pid::from_child(&child.0);
        let state = Mutex::new(State { outputs: 2, alive: true });
        let process = Arc::new(Self { id, pid, state, ended: Condvar::new() });
        if let Some(stdin) = child.0.stdin.take() {
            port.attach(id, Stream::Data, Sink::fd(OwnedFd::from(stdin).into()).lingering(LINGER));
        }
        port.attach(id, Stream::Stderr, Sink::discard());
        process.send_output(port, child.0.stdout.take().map(OwnedFd::from), None, log)?;
        let stderr = stderr.or_else(|| child.0.stderr.take().map(OwnedFd::from));
        process.send_output(port, stderr, Some(proto::data::STDERR), log)?;
        let (waiter, session, log) =
            (Arc::clone(&process), port.session().clone(), Arc::clone(log));
        std::thread::Builder::new()
            .name("waiter".to_owned())
            .stack_size(128 << 10)
            .spawn(move || waiter.wait(child, &session, &log))
            .context("start a thread")?;
        Ok(process)
    }

    fn send_output(
        self: &Arc<Self>,
        port: &Port<'_>,
        fd: Option<OwnedFd>,
        code: Option<u32>,
        log: &Arc<Log>,
    ) -> Result<()> {
        let Some(fd) = fd else { return Ok(()) };
        let (process, log) = (Arc::clone(self), Arc::clone(log));
        port.session().start_source(self.id, Source::Fd(pipe(fd)), code, move |session, end| {
            if let engine::SourceEnd::Failed(error) = end {
                log.error(format_args!("read from a command: {error}"));
            }
            process.output_ended(session);
        })?;
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// On a source's thread. The lock is never held over a call: that may wait for the socket.
    fn output_ended(&self, session: &Session) {
        let mut state = self.lock();
        state.outputs = state.outputs.saturating_sub(1);
        self.ended.notify_all();
        if state.outputs > 0 {
            return;
        }
        let waited = self.ended.wait_timeout_while(state, GRACE, |state| state.alive);
        let goes_on = waited.unwrap_or_else(PoisonError::into_inner).0.alive;
        if goes_on {
            // The connection is gone if it fails, and the receiving thread says so.
            let _ = session.call(|connection, out| connection.eof(self.id, out));
        }
    }

    /// The waiter's whole life.
    fn wait(&self, mut child: Unwatched, session: &Session, log: &Log) {
        let pid = nix::unistd::Pid::from_raw(self.pid.as_raw_nonzero().get());
        // Not reaped yet, so that nobody else can get its number while it may be signalled.
        let _ = waitid(Id::Pid(pid), WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT);
        let mut state = self.lock();
        state.alive = false;
        self.ended.notify_all();
        let status = match child.0.wait() {
            Ok(status) => how_it_ended(status),
            Err(error) => {
                log.error(format_args!("wait for a command: {error}"));
                Request::ExitStatus(255)
            }
        };
        let ended = state.outputs == 0;
        drop(state);
        log.debug(format_args!("channel {}: {status:?}", self.id.0));
        if !ended {
            let told = session.call(|c, out| c.request(self.id, &status, false, out));
            if told.is_err() {
                return;
            }
        }
        let mut state = self.lock();
        while state.outputs > 0 {
            state = self.ended.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        drop(state);
        let _ = session.call(|c, out| {
            if ended {
                c.request(self.id, &status, false, out)?;
            }
            c.eof(self.id, out)?;
            c.close(self.id, out)
        });
    }

    /// The client's `signal` request (RFC 4254 section 6.9): to the whole process group. Whether
    /// we know the signal.
    pub(crate) fn signal(&self, name: &str) -> bool {
        let Some((_, signal)) = SIGNALS.iter().find(|(known, _)| *known == name) else {
            return false;
        };
        self.kill(*signal);
        true
    }

    /// The client is gone.
    pub(crate) fn hang_up(&self) {
        self.kill(Signal::HUP);
    }

    fn kill(&self, signal: Signal) {
        if self.lock().alive {
            let _ = kill_process_group(self.pid, signal);
        }
    }
}

/// A child until it was waited for. Whatever fails before somebody could, a thread that does not
/// start among it, leaves neither a process that runs nor one that nobody reaps.
struct Unwatched(Child);

impl Unwatched {
    /// Starts a command that has a process group of its own.
    fn start(command: &mut Command) -> std::io::Result<Self> {
        command.spawn().map(Self)
    }
}

impl Drop for Unwatched {
    fn drop(&mut self) {
        if let Ok(None) = self.0.try_wait() {
            let _ = kill_process_group(Pid::from_child(&self.0), Signal::KILL);
            let _ = self.0.wait();
        }
    }
}

/// A pipe for a command's standard error that has a text in it already; its end to read from.
fn begin_stderr(command: &mut Command, text: &str) -> Result<OwnedFd> {
    let (ours, mut theirs) = std::io::pipe().context("make a pipe")?;
    theirs.write_all(text.as_bytes()).context("write to a pipe")?;
    command.stderr(theirs);
    Ok(ours.into())
}

fn pipe(fd: OwnedFd) -> Fd {
    let fd = Fd::from(fd);
    fd.enlarge_pipe(PIPE);
    fd
}

/// RFC 4254 section 6.10: `exit-status`, or `exit-signal`.
pub(crate) fn how_it_ended(status: ExitStatus) -> Request {
    match (status.code(), status.signal()) {
        (Some(code), _) => Request::ExitStatus(u32::try_from(code).unwrap_or(255)),
        (None, signal) => {
            let signal = signal.unwrap_or(0);
            let known = SIGNALS.iter().find(|(_, known)| known.as_raw() == signal);
            let name = known.map_or("SIG@openssh.com", |(name, _)| name).to_owned();
            Request::ExitSignal { name, core: status.core_dumped(), text: String::new() }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader};
    use std::os::unix::process::CommandExt;
    use std::process::Stdio;

    /// The whole group: both would keep the pipe open for a thousand seconds.
    #[test]
    fn a_command_that_nobody_can_wait_for_is_killed_and_reaped() {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", "sleep 1000 & echo ready; sleep 1000"]).process_group(0);
        let mut child = Unwatched::start(command.stdout(Stdio::piped())).unwrap();
        let pid = nix::unistd::Pid::from_raw(child.0.id().cast_signed());
        let mut output = BufReader::new(child.0.stdout.take().unwrap());
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        // As it is dropped with the closure of a thread that does not start.
        let waiter = move || child.0.wait();
        drop(waiter);
        assert_eq!(output.read_line(&mut line).unwrap(), 0, "nobody holds the pipe any more");
        let waited = waitid(Id::Pid(pid), WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG);
        assert_eq!(waited, Err(nix::errno::Errno::ECHILD));
    }

    #[test]
    fn what_stands_in_standard_error_already_comes_first() {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", "echo two >&2"]);
        let stderr = begin_stderr(&mut command, "one\n").unwrap();
        assert!(command.status().unwrap().success());
        drop(command);
        let text = std::io::read_to_string(std::fs::File::from(stderr)).unwrap();
        assert_eq!(text, "one\ntwo\n");
    }

    #[test]
    fn ends_are_told_as_they_were() {
        // Whoever runs the tests may ignore some of the signals.
        let shell = |text: &str| {
            let mut env = Command::new("env");
            env.args(["--default-signal", "/bin/sh", "-c", text]).status().unwrap()
        };
        for code in [0, 1, 127, 255] {
            let status = how_it_ended(shell(&format!("exit {code}")));
            assert_eq!(status, Request::ExitStatus(code));
        }
        for (name, _) in SIGNALS.iter().filter(|(name, _)| *name != "ABRT") {
            let status = how_it_ended(shell(&format!("ulimit -c 0; kill -{name} $$")));
            let Request::ExitSignal { name: told, .. } = status else { panic!("{status:?}") };
            assert_eq!(told, *name);
        }
        let status = how_it_ended(shell("kill -BUS $$"));
        assert!(matches!(status, Request::ExitSignal { name, .. } if name == "SIG@openssh.com"));
    }
}
