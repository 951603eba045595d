//! Copier: the program under test, the server it talks to, and the command line of one copy.
//!
//! The command line is the part that scp and lhscp share, so that scp can stand in: a check that
//! scp passes where it is known to fail (`tests/teeth.rs`) has no teeth.

use crate::process::{Ended, Running, undisturbed};
use anyhow::{Context, Result};
use interop::lab::program;
use interop::need;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// How long a copy may take before it counts as hanging.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Whose program copies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whose {
    /// lhscp.
    Ours,
    /// OpenSSH's scp, to try the checks.
    Scp,
}

/// Whose program serves, over pipes: no SSH is between, so a run takes little time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Served {
    /// lhsftp-server.
    Ours,
    /// OpenSSH's sftp-server.
    OpenSsh,
}

/// Which way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// To the server.
    Up,
    /// From the server.
    Down,
}

/// A copier in a directory of its own.
#[derive(Debug)]
pub struct Copier {
    /// Whose.
    pub whose: Whose,
    /// Journals, words and wrappers; the copier's home.
    pub scratch: PathBuf,
    /// The program behind `-D`; `None` where the caller's words say how the host is reached.
    pub server: Option<PathBuf>,
    /// What stands before the program, strace for one.
    pub before: Vec<String>,
}

impl Served {
    /// Both.
    pub const BOTH: [Self; 2] = [Self::Ours, Self::OpenSsh];

    /// Where the program is.
    pub fn program(self) -> Result<PathBuf> {
        match self {
            Self::Ours => program("lhsftp-server"),
            Self::OpenSsh => {
                need::find("/usr/lib/openssh/sftp-server").context("no sftp-server is installed")
            }
        }
    }
}

impl Copier {
    /// One that talks to `served`.
    pub fn new(whose: Whose, scratch: &Path, served: Served) -> Result<Self> {
        let copier = Self::with(whose, scratch, Some(served.program()?))?;
        copier.serve_by(&[served.program()?.display().to_string()])?;
        Ok(copier)
    }

    /// One that talks to this program.
    pub fn with(whose: Whose, scratch: &Path, server: Option<PathBuf>) -> Result<Self> {
        fs::create_dir_all(scratch)?;
        Ok(Self { whose, scratch: scratch.to_owned(), server, before: Vec::new() })
    }

    /// From now on these words start the server. They stand behind one name, which is all that the
    /// copier knows: another name would be another host, and what is left of a copy is its own.
    pub fn serve_by(&self, words: &[String]) -> Result<()> {
        wrapper(&self.door(), words).map(drop)
    }

    fn door(&self) -> PathBuf {
        self.scratch.join("server")
    }

    /// The command of a copy, which knows no home but ours.
    pub fn command(&self, way: Way, from: &Path, to: &Path, words: &[&str]) -> Result<Command> {
        let copier = match self.whose {
            Whose::Ours => program("lhscp")?,
            Whose::Scp => need::find("scp").context("scp is not installed")?,
        };
        let mut command = match self.before.split_first() {
            None => Command::new(copier),
            Some((first, rest)) => {
                let mut command = Command::new(first);
                command.args(rest).arg(copier);
                command
            }
        };
        if self.server.is_some() {
            command.arg("-D").arg(self.door());
        }
        command.args(words);
        let far = |path: &Path| format!("far:{}", path.display());
        match way {
            Way::Up => command.arg("--").arg(from).arg(far(to)),
            Way::Down => command.arg("--").arg(far(from)).arg(to),
        };
        command.env("HOME", &self.scratch).env("XDG_STATE_HOME", self.scratch.join("state"));
        command.env_remove("SSH_AUTH_SOCK").env("LC_ALL", "C");
        Ok(command)
    }

    /// Starts a copy.
    pub fn start(&self, way: Way, from: &Path, to: &Path, words: &[&str]) -> Result<Running> {
        Running::start(self.command(way, from, to, words)?, &self.scratch)
    }

    /// Copies to the end.
    pub fn copy(&self, way: Way, from: &Path, to: &Path, words: &[&str]) -> Result<Ended> {
        self.start(way, from, to, words)?.end(PATIENCE)
    }

    /// The journals that copies have left.
    pub fn journals(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.scratch.join("state/longhaul")).into_iter().flatten();
        let paths = entries.flatten().map(|entry| entry.path());
        paths.filter(|path| path.extension().is_some_and(|end| end == "journal")).collect()
    }
}

/// A shell script that becomes `words`; what it is called with counts for nothing.
pub fn wrapper(at: &Path, words: &[String]) -> Result<PathBuf> {
    let quoted: Vec<String> =
        words.iter().map(|word| format!("'{}'", word.replace('\'', r"'\''"))).collect();
    let script = format!("#!/bin/sh\nexec {}\n", quoted.join(" "));
    undisturbed(|| fs::write(at, script))?;
    fs::set_permissions(at, fs::Permissions::from_mode(0o755))?;
    Ok(at.to_owned())
}
