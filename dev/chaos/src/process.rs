//! Process: one program under way, that may be looked at, killed, and waited for with a deadline.
//! What it says goes to files, so that nobody has to read along.

use anyhow::{Context, Result, ensure};
use nix::sys::signal::Signal;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

const STEP: Duration = Duration::from_millis(2);

/// Held while a script is written and while a program is started: a program that is started just
/// then would hold the script open for writing, and nobody could run it.
static DOORWAY: Mutex<()> = Mutex::new(());

/// Does something that no start of a program may come between.
pub fn undisturbed<T>(work: impl FnOnce() -> T) -> T {
    let _held = DOORWAY.lock().unwrap_or_else(PoisonError::into_inner);
    work()
}

/// Runs a helper to its end, which must be good.
pub fn call(program: &str, words: &[&OsStr]) -> Result<()> {
    let mut command = Command::new(program);
    command.args(words).stdin(Stdio::null()).stdout(Stdio::null());
    let mut child = undisturbed(|| command.spawn()).with_context(|| program.to_owned())?;
    ensure!(child.wait()?.success(), "{command:?} failed");
    Ok(())
}

/// A program under way; killed when dropped.
#[derive(Debug)]
pub struct Running {
    child: Child,
    said: [PathBuf; 2],
    peak_kib: u64,
    killed: bool,
}

/// How a program ended.
#[derive(Debug, Clone)]
pub struct Ended {
    /// Its exit status; `None` if a signal ended it.
    pub code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// It was sent SIGKILL from here.
    pub killed: bool,
    /// It had to be killed: the deadline passed.
    pub late: bool,
    /// What it wrote to standard output.
    pub stdout: String,
    /// What it wrote to standard error.
    pub stderr: String,
    /// Its most memory, in KiB, as last seen.
    pub peak_kib: u64,
}

impl Running {
    /// Starts `command`; what it says is kept in files below `scratch`.
    pub fn start(mut command: Command, scratch: &Path) -> Result<Self> {
        let said = ["stdout", "stderr"].map(|name| scratch.join(format!("said.{name}")));
        let [stdout, stderr] = &said;
        command.stdin(Stdio::null()).stdout(File::create(stdout)?).stderr(File::create(stderr)?);
        let child = undisturbed(|| command.spawn()).with_context(|| format!("{command:?}"))?;
        Ok(Self { child, said, peak_kib: 0, killed: false })
    }

    /// Its process.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Whether it still runs.
    pub fn runs(&mut self) -> Result<bool> {
        if let Some(peak) = peak(self.pid()) {
            self.peak_kib = self.peak_kib.max(peak);
        }
        Ok(self.child.try_wait()?.is_none())
    }

    /// Lets time pass, less if it ends; whether it still runs.
    pub fn pass(&mut self, time: Duration) -> Result<bool> {
        self.pass_below(u64::MAX, time)
    }

    /// The same, less also if it takes more memory, in KiB.
    pub fn pass_below(&mut self, most_kib: u64, time: Duration) -> Result<bool> {
        let deadline = Instant::now() + time;
        while Instant::now() < deadline && self.peak_kib <= most_kib {
            if !self.runs()? {
                return Ok(false);
            }
            sleep(STEP.min(deadline.saturating_duration_since(Instant::now())));
        }
        self.runs()
    }

    /// `kill -9`, of it and whoever it has started; they are gone afterwards, with all they held.
    pub fn kill(&mut self) -> Result<()> {
        let below = descendants(self.pid());
        self.killed = true;
        self.child.kill()?;
        below.iter().copied().for_each(kill);
        let deadline = Instant::now() + Duration::from_secs(2);
        while below.iter().any(|pid| lives(*pid)) && Instant::now() < deadline {
            sleep(STEP);
        }
        Ok(())
    }

    /// Waits for its end; kills it at the deadline.
    pub fn end(mut self, within: Duration) -> Result<Ended> {
        let late = self.pass(within)?;
        if late {
            self.kill()?;
        }
        let status = self.child.wait()?;
        let (code, signal, killed) = (status.code(), status.signal(), self.killed);
        debug_assert!(code.is_some() || signal.is_some());
        let [stdout, stderr] = self
            .said
            .each_ref()
            .map(|path| fs::read(path).map(|text| String::from_utf8_lossy(&text).into_owned()));
        let (stdout, stderr) = (stdout?, stderr?);
        Ok(Ended { code, signal, killed, late, stdout, stderr, peak_kib: self.peak_kib })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.kill();
        let _ = self.child.wait();
    }
}

impl Ended {
    /// It ended with 0.
    #[must_use]
    pub fn well(&self) -> bool {
        self.code == Some(0)
    }

    /// What no fault excuses: a panic, its own or its server's, or a signal not sent from here.
    #[must_use]
    pub fn crash(&self) -> Option<String> {
        let ours = self.killed && self.signal == Some(Signal::SIGKILL as i32);
        match self.signal {
            _ if self.stderr.contains("panicked at") => Some(format!("a panic: {}", self.words())),
            Some(signal) if !ours => Some(format!("died of signal {signal}: {}", self.words())),
            _ => None,
        }
    }

    /// In a few words.
    #[must_use]
    pub fn words(&self) -> String {
        let status = match (self.late, self.code) {
            (true, _) => "did not end".to_owned(),
            (false, Some(code)) => format!("exit {code}"),
            (false, None) => "killed".to_owned(),
        };
        format!("{status}: {}", self.stderr.trim().replace('\n', " | "))
    }
}

/// `kill -9` of one process, which may be gone.
pub fn kill(pid: u32) {
    let pid = nix::unistd::Pid::from_raw(i32::try_from(pid).unwrap_or(0));
    if pid.as_raw() > 1 {
        let _ = nix::sys::signal::kill(pid, Signal::SIGKILL);
    }
}

/// All processes below `pid`, by the kernel's table.
#[must_use]
pub fn descendants(pid: u32) -> Vec<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let parents: Vec<(u32, u32)> = pids.filter_map(|pid| Some((pid, parent(pid)?))).collect();
    let mut found = vec![pid];
    let mut next = 0;
    while let Some(&of) = found.get(next) {
        found.extend(parents.iter().filter(|(_, parent)| *parent == of).map(|(pid, _)| pid));
        next += 1;
    }
    found.split_off(1)
}

/// Whether a process is there and not only waited for.
fn lives(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
    state.is_some_and(|state| !matches!(state, 'Z' | 'X'))
}

/// The word after the state in `/proc/PID/stat`, behind the last parenthesis.
fn parent(pid: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

/// The most memory that a process had, in KiB.
fn peak(pid: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix(" kB")?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_ended_with_their_children() {
        let dir = tempfile::tempdir().unwrap();
        let mut shell = Command::new("sh");
        shell.args(["-c", "sleep 100 & sleep 100"]);
        let mut running = Running::start(shell, dir.path()).unwrap();
        let deadline = Instant::now() + Duration::from_secs(20);
        let mut below = Vec::new();
        while below.is_empty() && running.pass(STEP).unwrap() && Instant::now() < deadline {
            below = descendants(running.pid());
        }
        assert!(!below.is_empty());
        let ended = running.end(Duration::from_millis(1)).unwrap();
        assert!(ended.late && ended.code.is_none() && ended.peak_kib > 0);
        assert!(!below.iter().any(|pid| lives(*pid)));
    }

    #[test]
    fn the_status_and_the_words_of_a_program_are_kept() {
        let dir = tempfile::tempdir().unwrap();
        let mut shell = Command::new("sh");
        shell.args(["-c", "echo out; echo err >&2; exit 3"]);
        let ended = Running::start(shell, dir.path()).unwrap().end(Duration::from_secs(5)).unwrap();
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(3), "out\n"));
        assert_eq!(ended.words(), "exit 3: err");
    }

    #[test]
    fn panics_and_signals_of_others_are_crashes_and_our_own_kill_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let start = |script: &str| {
            let mut shell = Command::new("sh");
            shell.args(["-c", script]);
            Running::start(shell, dir.path()).unwrap()
        };
        let crash = |script: &str| start(script).end(Duration::from_secs(20)).unwrap().crash();
        assert_eq!(crash("echo no such file >&2; exit 1"), None);
        assert!(crash("echo \"thread 'main' panicked at x.rs:1\" >&2; exit 101").is_some());
        assert!(crash("kill -SEGV $$").unwrap().contains("signal 11"));
        assert!(crash("kill -KILL $$").unwrap().contains("signal 9"));
        let mut sleeper = start("sleep 100");
        sleeper.kill().unwrap();
        assert_eq!(sleeper.end(Duration::from_secs(20)).unwrap().crash(), None);
    }
}
