//! The listener: accepts connections and starts a session process for each. One thread, one poll;
//! signals arrive by a descriptor (signalfd(2)), so no handler ever runs (invariant D1).
//!
//! ```text
//! accept   MaxStartups decides; the program starts itself anew with the connection
//! login    a session's end of its socket pair closes: it counts as a startup no more
//! signals  CHLD reaps; HUP starts the listener anew; TERM and INT end it, sessions go on
//! ```

use crate::args::{Args, LogTo};
use crate::detach::{self, Place};
use crate::log::Log;
use crate::setup::Loaded;
use crate::{handover, program, session, setup, socket, startups};
use anyhow::{Context, Result};
use conf::Server;
use engine::Fd;
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{WaitOptions, wait};
use std::io;
use std::net::{TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

/// How long to let others close their files when there is no descriptor left.
const NO_DESCRIPTORS: Duration = Duration::from_millis(100);

/// What a signal asks for.
enum Wish {
    Restart,
    Stop(Signal),
}

struct Listener {
    /// Where this program is installed.
    program: PathBuf,
    config: Server,
    log: Log,
    sockets: Vec<TcpListener>,
    signals: SignalFd,
    /// Sessions in which nobody has logged in.
    starting: Vec<UnixStream>,
}

/// Listens until a signal ends it.
pub(crate) fn run(args: &Args, loaded: Loaded, place: Place) -> Result<ExitCode> {
    let program = program::path();
    if place == Place::Detached {
        detach::leave();
    }
    // Before anything can start a thread, and kept over SIGHUP's exec.
    let signals = block_signals().context("signals")?;
    let log = Log::open(args, loaded.config.log_level)?;
    let mut config = loaded.log(&log);
    setup::keep_usable_host_keys(&mut config, |why| log.error(format_args!("{why}")))?;
    let sockets = socket::listen(&config, |why| log.error(format_args!("{why}")))?;
    for socket in &sockets {
        if let Ok(address) = socket.local_addr() {
            let (ip, port) = (address.ip(), address.port());
            log.info(format_args!("Server listening on {ip} port {port}."));
        }
    }
    if args.debug > 0 {
        return serve_one(sockets, config, log);
    }
    write_pid_file(&config, &log);
    if place == Place::Detached {
        detach::listening(args.log_to != LogTo::System)?;
    }
    Listener { program, config, log, sockets, signals, starting: Vec::new() }.run()
}

fn block_signals() -> nix::Result<SignalFd> {
    let set: SigSet =
        [Signal::SIGHUP, Signal::SIGTERM, Signal::SIGINT, Signal::SIGCHLD].into_iter().collect();
    set.thread_block()?;
    SignalFd::with_flags(&set, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)
}

/// `-d`: one connection, in this process.
fn serve_one(sockets: Vec<TcpListener>, config: Server, log: Log) -> Result<ExitCode> {
    SigSet::empty().thread_set_mask().context("signals")?;
    loop {
        let mut fds: Vec<_> = sockets.iter().map(|s| PollFd::new(s, PollFlags::IN)).collect();
        match poll(&mut fds, None) {
            Err(Errno::INTR) => continue,
            other => other.context("wait for connections")?,
        };
        for listener in &sockets {
            if let Ok((stream, _)) = listener.accept() {
                socket::accepted(&stream, &config);
                drop(sockets);
                return Ok(session::serve(
                    Fd::from(OwnedFd::from(stream)),
                    None,
                    config,
                    log,
                    None,
                ));
            }
        }
    }
}

impl Listener {
    fn run(mut self) -> Result<ExitCode> {
        loop {
            let (signalled, connecting) = self.wait().context("wait for connections")?;
            if signalled {
                match self.signalled() {
                    None => {}
                    Some(Wish::Restart) => return self.restart(),
                    Some(Wish::Stop(signal)) => return Ok(self.stop(signal)),
                }
            }
            for index in connecting {
                self.accept(index);
            }
        }
    }

    /// Whether there are signals, and which sockets have connections. Forgets the sessions in
    /// which somebody logged in, and those that ended.
    fn wait(&mut self) -> io::Result<(bool, Vec<usize>)> {
        let sockets = self.sockets.len();
        let ready: Vec<bool> = {
            let mut fds = vec![PollFd::new(&self.signals, PollFlags::IN)];
            fds.extend(self.sockets.iter().map(|s| PollFd::new(s, PollFlags::IN)));
            fds.extend(self.starting.iter().map(|s| PollFd::new(s, PollFlags::IN)));
            match poll(&mut fds, None) {
                Err(Errno::INTR) => return Ok((false, Vec::new())),
                other => other?,
            };
            fds.iter().map(|fd| !fd.revents().is_empty()).collect()
        };
        let mut ready = ready.into_iter();
        let signalled = ready.next().unwrap_or(false);
        let connecting: Vec<usize> =
            ready.by_ref().take(sockets).enumerate().filter_map(|(i, r)| r.then_some(i)).collect();
        self.starting.retain(|_| !ready.next().unwrap_or(false));
        Ok((signalled, connecting))
    }

    fn signalled(&mut self) -> Option<Wish> {
        while let Ok(Some(info)) = self.signals.read_signal() {
            let number = i32::try_from(info.ssi_signo).unwrap_or(0);
            match Signal::try_from(number) {
                Ok(Signal::SIGHUP) => return Some(Wish::Restart),
                Ok(Signal::SIGCHLD) => self.reap(),
                Ok(signal) => return Some(Wish::Stop(signal)),
                Err(_) => {}
            }
        }
        None
    }

    /// Several children may stand behind one signal.
    fn reap(&self) {
        while let Ok(Some((pid, status))) = wait(WaitOptions::NOHANG) {
            let Some(number) = status.terminating_signal() else { continue };
            // Those of real time have no names.
            let signal = Signal::try_from(number)
                .map_or_else(|_| format!("signal {number}"), |signal| signal.to_string());
            let pid = pid.as_raw_nonzero();
            self.log.error(format_args!("session {pid} was killed by {signal}"));
        }
    }

    fn accept(&mut self, index: usize) {
        let Some(listener) = self.sockets.get(index) else { return };
        let (stream, peer) = match listener.accept() {
            Ok(accepted) => accepted,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
            Err(error) => {
                self.log.error(format_args!("accept: {error}"));
                if matches!(Errno::from_io_error(&error), Some(Errno::MFILE | Errno::NFILE)) {
                    std::thread::sleep(NO_DESCRIPTORS);
                }
                return;
            }
        };
        socket::accepted(&stream, &self.config);
        let waiting = u32::try_from(self.starting.len()).unwrap_or(u32::MAX);
        let [dice] = crypt::random_array::<1>();
        if startups::is_dropped(self.config.max_startups, waiting, u32::from(dice) * 100 / 256) {
            let (ip, port) = (peer.ip().to_canonical(), peer.port());
            self.log.info(format_args!(
                "drop connection #{waiting} from {ip} port {port} past MaxStartups"
            ));
            return;
        }
        match self.start(stream) {
            Ok(starting) => self.starting.push(starting),
            Err(error) => self.log.error(format_args!("start a session: {error}")),
        }
    }

    /// A session process gets the configuration as it is now, whatever happens to the file.
    fn start(&self, stream: TcpStream) -> io::Result<UnixStream> {
        let (mut ours, theirs) = UnixStream::pair()?;
        let mut command = Command::new(program::RUNNING);
        command
            .arg0("lhsshd")
            .arg(session::ROLE)
            .args(self.log.is_system().then_some(session::TO_SYSTEM))
            .stdin(OwnedFd::from(stream))
            .stdout(OwnedFd::from(theirs))
            .stderr(Stdio::inherit());
        // Not waited for here: SIGCHLD reaps it.
        command.spawn()?;
        handover::give(&mut ours, &self.config)?;
        Ok(ours)
    }

    /// SIGHUP: the same process, the same arguments, the program as it is installed now. Signals
    /// stay blocked over the exec, so none is lost and none kills.
    fn restart(self) -> Result<ExitCode> {
        self.log.info(format_args!("Received SIGHUP; restarting."));
        // Should it fail, the number is nobody's.
        self.remove_pid_file();
        drop(self.sockets);
        Err(program::replace(&self.program, &self.log)).context("restart")
    }

    /// SIGTERM, SIGINT: sessions go on.
    fn stop(self, signal: Signal) -> ExitCode {
        self.log.info(format_args!("Received {signal}; terminating."));
        self.remove_pid_file();
        ExitCode::SUCCESS
    }

    fn remove_pid_file(&self) {
        if let Some(path) = self.config.pid_file() {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// As in sshd, a failure is worth a line and nothing more.
fn write_pid_file(config: &Server, log: &Log) {
    let Some(path) = config.pid_file() else { return };
    if let Err(error) = std::fs::write(path, format!("{}\n", std::process::id())) {
        log.error(format_args!("PidFile {}: {error}", path.display()));
    }
}
