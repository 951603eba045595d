//! Run: one client process with all three streams attended to and a deadline.

use crate::stream;
use anyhow::{Context, Result, bail};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread::{self, JoinHandle, sleep};
use std::time::{Duration, Instant};

/// What the client reads.
pub enum Input {
    /// Nothing: end of file at once.
    Empty,
    /// These bytes, then end of file.
    Bytes(Vec<u8>),
    /// So many bytes of the test stream of a seed.
    Stream(u64, u64),
    /// Nothing, and no end of file until the client ends.
    Held,
}

/// What is done with what the client writes.
#[derive(Clone, Copy)]
pub enum Output {
    /// Kept.
    Keep,
    /// Compared with so many bytes of the test stream of a seed.
    Compare(u64, u64),
}

/// How a client ended.
#[derive(Debug)]
pub struct Outcome {
    /// Its exit status; 128 and the signal's number if a signal ended it.
    pub status: i32,
    /// What it wrote, if it was kept.
    pub stdout: Vec<u8>,
    /// What it wrote to stderr.
    pub stderr: String,
}

/// How long whoever a client leaves behind may hold its output.
const LEFT: Duration = Duration::from_secs(20);

/// Runs `command` to its end, or fails when it takes longer than `limit`; all that it has started, in
/// its process group, ends then.
pub fn run(mut command: Command, input: Input, output: Output, limit: Duration) -> Result<Outcome> {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    let mut child = command.spawn().with_context(|| format!("{command:?}"))?;
    let stdin = child.stdin.take().context("stdin")?;
    let stdout = child.stdout.take().context("stdout")?;
    let mut stderr = child.stderr.take().context("stderr")?;
    let feeding = feed(stdin, input);
    let taking = beside(move || take(stdout, output));
    let complaints = beside(move || {
        let mut text = Vec::new();
        stderr.read_to_end(&mut text).map(|_| String::from_utf8_lossy(&text).into_owned())
    });
    let group = Pid::from_raw(i32::try_from(child.id())?);
    let ended = wait(&mut child, limit);
    if ended.is_err() {
        let _ = killpg(group, Signal::SIGKILL);
    }
    drop(feeding); // a held stdin is let go; a feeder ends with its pipe
    let stderr = complaints.recv_timeout(LEFT);
    let said = || format!("{command:?}: {stderr:?}");
    let status = ended.with_context(said)?;
    let left = "left somebody behind who holds its output";
    let stdout = taking.recv_timeout(LEFT).context(left).with_context(said)?;
    let stderr = stderr.context(left).with_context(|| format!("{command:?}"))??;
    let stdout = stdout.with_context(|| format!("what arrived (status {status}): {stderr}"))?;
    Ok(Outcome { status: code(status), stdout, stderr })
}

/// What `work` comes to, of a thread that may be left to itself.
fn beside<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Receiver<T> {
    let (send, result) = mpsc::channel();
    thread::spawn(move || send.send(work()));
    result
}

/// What keeps the client's stdin open.
enum Feeding {
    Thread(#[expect(dead_code, reason = "kept, not joined")] JoinHandle<()>),
    Held(#[expect(dead_code, reason = "closed when dropped")] Box<dyn Write>),
}

fn feed(mut stdin: impl Write + Send + 'static, input: Input) -> Feeding {
    if let Input::Held = input {
        return Feeding::Held(Box::new(stdin));
    }
    Feeding::Thread(thread::spawn(move || {
        let done = match input {
            Input::Empty | Input::Held => Ok(()),
            Input::Bytes(bytes) => stdin.write_all(&bytes),
            Input::Stream(size, seed) => stream::make(&mut stdin, size, seed),
        };
        // The remote command need not read everything.
        if let Err(why) = done
            && why.kind() != ErrorKind::BrokenPipe
        {
            eprintln!("feeding: {why}");
        }
    }))
}

fn take(mut stdout: impl Read, output: Output) -> std::io::Result<Vec<u8>> {
    let mut kept = Vec::new();
    match output {
        Output::Keep => stdout.read_to_end(&mut kept).map(|_| kept),
        Output::Compare(size, seed) => stream::check(&mut stdout, size, seed).map(|()| kept),
    }
}

/// Waits for a child, and kills it when it is late.
pub fn wait(child: &mut Child, limit: Duration) -> Result<ExitStatus> {
    let deadline = Instant::now() + limit;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        if Instant::now() > deadline {
            child.kill()?;
            child.wait()?;
            bail!("killed after {} s", limit.as_secs());
        }
        sleep(Duration::from_millis(5));
    }
}

fn code(status: ExitStatus) -> i32 {
    status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(-1)
}
