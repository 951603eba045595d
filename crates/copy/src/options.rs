//! What is to be copied and how: the command line, resolved. Made by the program's `args`, read by
//! the core on every thread; nothing in it changes while a copy runs.

use crate::filter::Filter;
use crate::list::List;
use crate::shard::Shard;
use std::ffi::OsString;
use std::num::{NonZeroU32, NonZeroU64};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// A copy to carry out.
#[derive(Debug, Clone)]
pub struct Options {
    /// What is copied; at least one.
    pub sources: Vec<Place>,
    /// Where it goes: a directory, or the new name of a single source.
    pub target: Place,
    /// `-r`: directories too; symbolic links among the sources are followed only as scp does.
    pub recursive: bool,
    /// `-p`: modes, times, owner when privileged, hard links, extended attributes.
    pub preserve: bool,
    /// `-n`: how many lanes.
    pub lanes: Lanes,
    /// `--verify`: content counts, not size and time, and what arrived is compared.
    pub verify: bool,
    /// `--inplace`: write under the final name, without a part file.
    pub inplace: bool,
    /// Not `--no-fsync`: a finished file is on the disk before it has its name.
    pub fsync: bool,
    /// `--delay-updates`: no file gets its name before all are there.
    pub delay_updates: bool,
    /// `--dry-run`: tell what would be done, touch nothing.
    pub dry_run: bool,
    /// `--bwlimit`, `-l`: bytes per second, all lanes together.
    pub bwlimit: Option<NonZeroU64>,
    /// `--include`, `--exclude`: which names below a source are copied.
    pub filter: Filter,
    /// `--files-from`: names below the one source, instead of everything below it.
    pub list: Option<List>,
    /// `--shard`: which part of the files is this host's.
    pub shard: Option<Shard>,
    /// `-t`: so much made-up data, no disk at either end; paths count for nothing.
    pub test: Option<Amount>,
}

impl Options {
    /// A copy that is asked for with no option.
    #[must_use]
    pub fn new(sources: Vec<Place>, target: Place) -> Self {
        Self {
            sources,
            target,
            recursive: false,
            preserve: false,
            lanes: Lanes::Auto,
            verify: false,
            inplace: false,
            fsync: true,
            delay_updates: false,
            dry_run: false,
            bwlimit: None,
            filter: Filter::default(),
            list: None,
            shard: None,
            test: None,
        }
    }

    /// The same the other way: of several sources the last one is the target.
    #[must_use]
    pub fn turned(mut self) -> Self {
        if let Some(source) = self.sources.last_mut() {
            std::mem::swap(source, &mut self.target);
        }
        self
    }
}

/// How much made-up data is moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Amount {
    /// So many bytes.
    Bytes(NonZeroU64),
    /// As much as goes in this time, from the first lane's opening on.
    Time(Duration),
}

/// How many lanes are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lanes {
    /// Few at first, more while that makes it faster.
    Auto,
    /// Exactly so many, from the start.
    Fixed(NonZeroU32),
}

/// One end of a copy.
#[derive(Debug, Clone)]
pub enum Place {
    /// A path of this host.
    Local(PathBuf),
    /// A path of another host.
    Remote(Remote),
}

impl Place {
    /// The host, if it is another one.
    #[must_use]
    pub fn host(&self) -> Option<&Arc<Host>> {
        match self {
            Self::Local(_) => None,
            Self::Remote(remote) => Some(&remote.host),
        }
    }
}

/// A path of another host.
#[derive(Debug, Clone)]
pub struct Remote {
    /// The host; places on the same host share it, so `Arc::ptr_eq` tells.
    pub host: Arc<Host>,
    /// The path as it was given: any bytes, relative to where the server starts, empty for that
    /// directory itself. A leading `~` is the user's home, as with scp.
    pub path: Vec<u8>,
}

/// How another host's files are reached.
#[derive(Debug)]
pub struct Host {
    /// `user@host` as it is called in messages: checked, without a port.
    pub name: String,
    /// What is connected to.
    pub way: Way,
}

/// A way to an SFTP server.
#[derive(Debug)]
pub enum Way {
    /// Our own SSH.
    Ssh(Box<conf::Client>),
    /// A program that speaks SFTP on its standard input and output, started once per lane: a
    /// server (`-D`), or another SSH client with its arguments (`-S`).
    Program {
        /// Looked up in PATH if it has no slash.
        program: PathBuf,
        /// Its arguments.
        args: Vec<OsString>,
    },
}
