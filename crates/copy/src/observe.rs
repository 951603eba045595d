//! What happens during a copy, told to whoever shows it: the progress display, `--json`, a test.
//!
//! Events come from every thread of the core at any time; an observer returns at once.

use crate::report::Failure;
use std::time::Duration;

/// Looks on.
pub trait Observer: Send + Sync {
    /// Something happened.
    fn observe(&self, event: &Event<'_>);
}

/// Nobody looks on.
impl Observer for () {
    fn observe(&self, _: &Event<'_>) {}
}

/// A lane by its number, counted from zero, never used again within a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LaneId(pub u32);

/// Something that happened. Paths are those below the target, any bytes: whoever prints one
/// escapes it (invariant E2).
#[derive(Debug, Clone, Copy)]
pub enum Event<'a> {
    /// The scan found more: so many files (links included, directories not) with so many bytes.
    Found {
        /// Files.
        files: u64,
        /// Their bytes.
        bytes: u64,
    },
    /// The scan is over: what was found is all there is.
    Scanned,
    /// A file's first byte is about to move.
    Started {
        /// Its path.
        path: &'a [u8],
        /// Its size in bytes.
        size: u64,
    },
    /// Content arrived (download) or was handed to the connection (upload).
    Moved {
        /// On this lane.
        lane: LaneId,
        /// So many bytes.
        bytes: u64,
    },
    /// Content need not move, or will not: it is there already, is a hole, or its file failed.
    Spared {
        /// So many of the bytes that were [`Found`](Self::Found).
        bytes: u64,
    },
    /// A file is in place.
    Finished {
        /// Its path.
        path: &'a [u8],
        /// Its size in bytes.
        size: u64,
        /// What was needed.
        outcome: Outcome,
        /// Its content was compared at both ends.
        verified: bool,
    },
    /// A file, or all of a host, could not be copied. Also in the report.
    Failed(&'a Failure),
    /// Something to know that is no failure.
    Warned {
        /// The path it is about, if it is about one.
        path: Option<&'a [u8]>,
        /// The same as the user would write it, with its host and directory.
        name: Option<&'a [u8]>,
        /// One line without newline; escaped by whoever prints it.
        text: &'a str,
    },
    /// What would be done (`--dry-run`).
    Would {
        /// Do this,
        act: Act,
        /// to this path.
        path: &'a [u8],
        /// Its size in bytes.
        size: u64,
    },
    /// A lane is ready for work.
    LaneOpened {
        /// The lane.
        lane: LaneId,
        /// Its host.
        host: &'a str,
        /// Number of its connection, counted from zero.
        connection: u32,
        /// Number of its channel on that connection, counted from zero.
        channel: u32,
    },
    /// A lane is not needed any more.
    LaneClosed {
        /// The lane.
        lane: LaneId,
    },
    /// A lane broke; others take over its ranges.
    LaneFailed {
        /// The lane.
        lane: LaneId,
        /// Its host.
        host: &'a str,
        /// One line; escaped by whoever prints it.
        why: &'a str,
        /// When a new one is tried in its place; `None` if none is.
        retry_in: Option<Duration>,
    },
}

/// What a finished file needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Its content was copied, or what a stopped run had left to do.
    Copied,
    /// It was there already and identical.
    Skipped,
}

impl Outcome {
    /// A word for it, for `--json`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Copied => "copied",
            Self::Skipped => "skipped",
        }
    }
}

/// What a dry run would do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Act {
    /// Copy a file that is not there.
    Create,
    /// Replace a file that differs.
    Replace,
    /// Go on with a file that a stopped run has left.
    Resume,
    /// Nothing: it is there and identical.
    Skip,
    /// Its content is there; set attributes that it lacks.
    Set,
    /// Make a directory.
    MakeDirectory,
    /// Make a symbolic link.
    Link,
}

impl Act {
    /// A word for it, for people and for `--json`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Replace => "replace",
            Self::Resume => "resume",
            Self::Skip => "skip",
            Self::Set => "set",
            Self::MakeDirectory => "mkdir",
            Self::Link => "link",
        }
    }
}
