//! Measured: a process that runs one command and writes down what the command cost.
//!
//! lhbench starts itself as `lhbench measured ... -- COMMAND` once per side and run. Being the
//! reaper of everything below it, it can read exact figures from RUSAGE_CHILDREN afterwards: CPU
//! time of the whole tree, and the largest resident set of any one process in it. With `--accept`
//! it takes one connection first and makes it the command's stdin and stdout, as inetd does; so a
//! server's figures hold exactly one session, the remote command included. A signal, or the end of
//! the bench, ends it with everything below it.

use crate::stop;
use anyhow::{Context, Result};
use nix::errno::Errno;
use nix::sys::prctl::set_child_subreaper;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::signal::{Signal, killpg};
use nix::sys::time::TimeVal;
use nix::sys::wait::wait;
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};
use std::net::{SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// The command line of `lhbench measured`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Ends with this process, its parent
    #[arg(long)]
    owner: i32,
    /// Where the report goes
    #[arg(long)]
    report: PathBuf,
    /// Accept one connection here and give it to the command
    #[arg(long)]
    accept: Option<SocketAddr>,
    /// End the command after so many seconds, which then counts as success
    #[arg(long)]
    seconds: Option<f64>,
    /// End the command when standard input ends, which then counts as success
    #[arg(long)]
    until_eof: bool,
    /// Join this control group first
    #[arg(long)]
    cgroup: Option<PathBuf>,
    /// The command
    #[arg(last = true, required = true)]
    command: Vec<String>,
}

/// What one side of one run cost.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Report {
    /// From the start of the command (or the accepted connection) to its end.
    pub(crate) wall: f64,
    /// CPU seconds in user mode, the whole process tree.
    pub(crate) user: f64,
    /// CPU seconds in the kernel, the whole process tree.
    pub(crate) system: f64,
    /// The largest resident set of one process of the tree, in KiB.
    pub(crate) peak_kib: i64,
    /// Whether the command succeeded.
    pub(crate) ok: bool,
}

impl Report {
    /// CPU seconds.
    pub(crate) fn cpu(&self) -> f64 {
        self.user + self.system
    }
}

/// The words that start `measured` below this process; the report goes to `report`.
pub(crate) fn command(lhbench: &Path, report: &Path) -> Command {
    let mut command = Command::new(lhbench);
    command.arg("measured").arg("--owner").arg(std::process::id().to_string());
    command.arg("--report").arg(report);
    command
}

/// Runs the command of `options` and writes its report.
pub(crate) fn main(options: &Options) -> Result<()> {
    set_child_subreaper(true)?;
    stop::with_family(options.owner)?;
    if let Some(group) = &options.cgroup {
        let procs = group.join("cgroup.procs");
        std::fs::write(&procs, std::process::id().to_string())
            .with_context(|| procs.display().to_string())?;
    }
    let mut command = build(options)?;
    let start = Instant::now();
    let mut child = spawn(&mut command).with_context(|| options.command.join(" "))?;
    drop(command); // the connection's descriptors
    let ok = match options.until_eof {
        true => finish_at_eof(&mut child)?,
        false => finish(&mut child, options.seconds)?,
    };
    let wall = start.elapsed().as_secs_f64();
    reap_all();
    std::fs::write(&options.report, serde_json::to_vec(&cost(wall, ok)?)?)?;
    Ok(())
}

fn spawn(command: &mut Command) -> Result<Child> {
    let _permit = stop::permit()?;
    Ok(command.spawn()?)
}

fn build(options: &Options) -> Result<Command> {
    let (program, args) = options.command.split_first().context("no command")?;
    let mut command = Command::new(program);
    command.args(args);
    if options.seconds.is_some() || options.until_eof {
        command.process_group(0);
    }
    if options.until_eof {
        command.stdin(Stdio::null());
    }
    if let Some(address) = options.accept {
        let (socket, _) = TcpListener::bind(address)?.accept()?;
        let socket = OwnedFd::from(socket);
        command.stdin(Stdio::from(socket.try_clone()?)).stdout(Stdio::from(socket));
    }
    Ok(command)
}

fn finish(child: &mut Child, seconds: Option<f64>) -> Result<bool> {
    let Some(seconds) = seconds else { return Ok(child.wait()?.success()) };
    let deadline = Instant::now() + Duration::from_secs_f64(seconds);
    while Instant::now() < deadline {
        if let Some(status) = child.try_wait()? {
            return Ok(ExitStatus::success(&status));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    stop(child)
}

/// For a server that listens for ever, and for a client that is looked at only so long.
fn finish_at_eof(child: &mut Child) -> Result<bool> {
    let (end, ended) = mpsc::channel();
    std::thread::spawn(move || {
        _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
        drop::<mpsc::Sender<()>>(end);
    });
    while ended.recv_timeout(Duration::from_millis(2)) == Err(mpsc::RecvTimeoutError::Timeout) {
        if let Some(status) = child.try_wait()? {
            return Ok(status.success());
        }
    }
    stop(child)
}

fn stop(child: &mut Child) -> Result<bool> {
    killpg(Pid::from_raw(i32::try_from(child.id())?), Signal::SIGTERM)?;
    child.wait()?;
    Ok(true)
}

/// Waits for whatever the command left behind: it belongs to the bill.
fn reap_all() {
    while !matches!(wait(), Err(Errno::ECHILD)) {}
}

fn cost(wall: f64, ok: bool) -> Result<Report> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    let seconds = |time: TimeVal| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6;
    Ok(Report {
        wall,
        user: seconds(usage.user_time()),
        system: seconds(usage.system_time()),
        peak_kib: usage.max_rss(),
        ok,
    })
}
