//! Leaving the foreground: the program starts itself anew in a session of its own, and the
//! starter ends once the new listener listens, so that its failures still reach the terminal.

use crate::program;
use anyhow::{Context, Result};
use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io::{ErrorKind, Read};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

/// First argument of a detached listener.
pub(crate) const ROLE: &str = "--detached";

/// Whose terminal a listener is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// Its starter's.
    Started,
    /// None; standard output is a pipe to the starter.
    Detached,
}

/// Starts the listener; returns when it listens or has failed.
pub(crate) fn detach(given: &[OsString]) -> Result<ExitCode> {
    let path = program::path();
    let start = |program: &Path| {
        Command::new(program)
            // By which it starts itself anew on SIGHUP.
            .arg0(&path)
            .arg(ROLE)
            .args(given)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
    };
    let mut child = match start(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound => start(Path::new(program::RUNNING)),
        started => started,
    }
    .context("start the listener")?;
    let mut ready = Vec::new();
    if let Some(pipe) = child.stdout.take() {
        pipe.take(1).read_to_end(&mut ready).context("wait for the listener")?;
    }
    if !ready.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    let code = child.wait().context("wait for the listener")?.code();
    Ok(ExitCode::from(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(crate::FAILED)))
}

/// In the detached listener, first of all. Fails after a SIGHUP, when it is done already.
pub(crate) fn leave() {
    let _ = rustix::process::setsid();
}

/// In the detached listener, once it listens: lets the starter end and the terminal go.
/// Standard error stays if it is the log.
pub(crate) fn listening(keep_stderr: bool) -> Result<()> {
    let _ = rustix::io::write(rustix::stdio::stdout(), b"\n");
    let null = OpenOptions::new().read(true).write(true).open("/dev/null").context("/dev/null")?;
    rustix::stdio::dup2_stdout(&null).context("standard output")?;
    if !keep_stderr {
        rustix::stdio::dup2_stderr(&null).context("standard error")?;
    }
    Ok(())
}
