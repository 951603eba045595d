//! Copying: what all threads of a copy share.

use super::journal::Journal;
use super::lane::At;
use super::meta::{Identity, Kind, Meta, Setting};
use super::naming::Naming;
use super::queue::{Entry, Queue};
use super::side::{Answered, Fault, Side, Told};
use super::sums::Sums;
use super::xattrs::{self, Class, Kept};
use crate::Options;
use crate::bwlimit::Limiter;
use crate::observe::{Act, Event, LaneId, Observer, Outcome};
use crate::options::Amount;
use crate::report::{Failure, Report, What};
use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;

/// A copy under way.
pub(super) struct Copying<'a> {
    pub(super) options: &'a Options,
    pub(super) observer: &'a dyn Observer,
    pub(super) naming: Naming,
    pub(super) started: Instant,
    /// When the first lane was open.
    pub(super) opened: OnceLock<Instant>,
    pub(super) queue: Queue,
    pub(super) journal: Option<Journal>,
    /// In the names of this copy's part files.
    pub(super) id: String,
    pub(super) limiter: Option<Limiter>,
    pub(super) umask: u32,
    /// Owners can be set, as far as is known.
    pub(super) owners: AtomicBool,
    /// Lanes that are there.
    pub(super) lanes: AtomicUsize,
    /// Bytes moved, and files finished, as far as the rate is concerned.
    pub(super) pace: AtomicU64,
    pub(super) report: Mutex<Report>,
    pub(super) late: Mutex<Late>,
    /// Compares whole files where the target's server has no hashes of ours (`--verify`).
    pub(super) sums: Option<Sums>,
    /// Warnings that are given once.
    pub(super) warned: Mutex<HashSet<String>>,
}

/// What is done at the end, when all files are there.
#[derive(Debug, Default)]
pub(super) struct Late {
    /// Directories whose attributes are set when nothing in them changes any more.
    pub(super) directories: Vec<(Vec<u8>, Meta)>,
    /// Directories that were there and let nobody work in them, with the modes that they had.
    pub(super) unlocked: Vec<(Vec<u8>, u32)>,
    /// Extended attributes of directories.
    pub(super) xattrs: Vec<(Vec<u8>, Kept)>,
    /// Further names of a file that is copied once: (first, further).
    pub(super) links: Vec<(Vec<u8>, Vec<u8>)>,
    /// Files that wait for their names (`--delay-updates`).
    pub(super) delayed: Vec<Delayed>,
    /// Files that were under way at a server when its connection broke: their part files may still
    /// be there, or come to be.
    pub(super) orphaned: Vec<Vec<u8>>,
    /// Files that are there though an earlier run has left part files of them.
    pub(super) outlived: HashSet<Vec<u8>>,
}

impl Late {
    pub(super) fn is_empty(&self) -> bool {
        self.directories.is_empty()
            && self.unlocked.is_empty()
            && self.links.is_empty()
            && self.delayed.is_empty()
            && self.orphaned.is_empty()
    }
}

/// A file that waits for its name.
#[derive(Debug)]
pub(super) struct Delayed {
    pub(super) part: Vec<u8>,
    pub(super) entry: Entry,
    pub(super) target: Identity,
    pub(super) verified: bool,
}

/// A finished file weighs this many bytes in the rate that `-n auto` judges by, beside its own:
/// with 4 KiB files the work is in the files.
const FILE: u64 = 32 << 10;

impl Copying<'_> {
    pub(super) fn report(&self) -> MutexGuard<'_, Report> {
        self.report.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn late(&self) -> MutexGuard<'_, Late> {
        self.late.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// When a test that takes its time ends (`-t`).
    pub(super) fn until(&self) -> Option<Instant> {
        match self.options.test {
            Some(Amount::Time(time)) => Some(*self.opened.get()? + time),
            _ => None,
        }
    }

    /// Whether that is past.
    pub(super) fn is_late(&self) -> bool {
        self.until().is_some_and(|until| Instant::now() >= until)
    }

    pub(super) fn lanes(&self) -> usize {
        self.lanes.load(Ordering::Relaxed)
    }

    /// `bytes` were moved and are at the target.
    pub(super) fn moved(&self, lane: LaneId, bytes: u64) {
        self.pace.fetch_add(bytes, Ordering::Relaxed);
        self.report().bytes += bytes;
        self.observer.observe(&Event::Moved { lane, bytes });
    }

    /// `bytes` need not be moved.
    pub(super) fn spared(&self, bytes: u64) {
        if bytes > 0 {
            self.report().spared += bytes;
            self.observer.observe(&Event::Spared { bytes });
        }
    }

    /// A warning, perhaps about a path below the target.
    pub(super) fn warn(&self, path: Option<&[u8]>, text: &str) {
        let name = path.map(|path| self.naming.name(At::Target, path));
        self.observer.observe(&Event::Warned { path, name: name.as_deref(), text });
    }

    /// A warning that others of its kind would follow.
    pub(super) fn warn_once(&self, path: Option<&[u8]>, text: String) {
        let new = self.warned.lock().unwrap_or_else(PoisonError::into_inner).insert(text.clone());
        if new {
            self.warn(path, &text);
        }
    }

    /// Extended attributes of a source, as far as they are kept; an answer to [`Ask::GetXattrs`].
    pub(super) fn kept(&self, path: &[u8], answer: Answered) -> Kept {
        let pairs = match answer {
            Ok(Told::Extended(bytes)) => xattrs::told(&bytes).map_err(Fault::from),
            Ok(_) => Err(Fault::unfit()),
            Err(fault) => Err(fault),
        };
        let unread =
            |fault| self.warn_once(Some(path), format!("extended attributes are lost: {fault}"));
        xattrs::kept(pairs.map_err(unread).unwrap_or_default(), self.privileged())
    }

    /// Whether owners are kept, and what goes with them: set-id bits, capabilities, `trusted.*`.
    pub(super) fn privileged(&self) -> bool {
        self.owners.load(Ordering::Relaxed)
    }

    /// An owner could not be set. Where that is because we may not there (root here, somebody else
    /// at the server), no owner is from then on, and the file is good all the same.
    pub(super) fn goes_without_owner(&self, path: &[u8], why: &Fault) -> bool {
        let refused = why.is_refusal();
        if refused {
            self.owners.store(false, Ordering::Relaxed);
            self.warn_once(Some(path), format!("owners and set-id bits are lost: {why}"));
        }
        refused
    }

    /// Attributes of a class were not set.
    pub(super) fn not_kept(&self, path: &[u8], class: Class, why: &Fault) {
        self.warn_once(Some(path), format!("{class} are lost: {why}"));
    }

    /// A file is in place, or was there already.
    pub(super) fn finished(&self, entry: &Entry, outcome: Outcome, verified: bool) {
        self.pace.fetch_add(FILE, Ordering::Relaxed);
        {
            let mut report = self.report();
            match outcome {
                Outcome::Copied => report.copied += 1,
                Outcome::Skipped => report.skipped += 1,
            }
            report.verified += u64::from(verified);
        }
        if outcome == Outcome::Skipped {
            self.observer.observe(&Event::Spared { bytes: entry.meta.size });
        }
        let (path, size) = (&entry.to, entry.meta.size);
        self.observer.observe(&Event::Finished { path, size, outcome, verified });
        self.queue.done();
    }

    /// What a dry run does for a file.
    pub(super) fn would(&self, entry: &Entry, act: Act) {
        self.observer.observe(&Event::Would { act, path: &entry.to, size: entry.meta.size });
        self.queue.done();
    }

    /// A file that cannot be copied.
    pub(super) fn failed(&self, entry: &Entry, fault: &Fault) {
        let place = match fault.end() {
            At::Source => (At::Source, entry.from.as_slice()),
            At::Target => (At::Target, entry.to.as_slice()),
        };
        self.fault_about(&entry.to, place, fault);
        self.observer.observe(&Event::Spared { bytes: entry.meta.size });
        if let Fault::Full(_) = fault {
            // Nothing else will fit either.
            self.queue.stop();
        }
        self.queue.done();
    }

    /// A path at one end that cannot be copied, or not all of it.
    pub(super) fn fault(&self, at: At, path: &[u8], fault: &Fault) {
        self.fault_about(path, (at, path), fault);
    }

    /// The same of a path that is called otherwise in events.
    pub(super) fn fault_about(&self, path: &[u8], (at, place): (At, &[u8]), fault: &Fault) {
        let name = Some(self.naming.name(at, place));
        self.tell(Failure { what: What::Path(path.to_vec()), name, why: fault.to_string() });
    }

    /// What this host changed in directories is on its disk, or it is told which is not.
    pub(super) fn sync(&self, target: &mut Side) {
        let Side::Below(below) = target else { return };
        for (directory, error) in below.sync() {
            self.fault(At::Target, &directory, &Fault::from(error));
        }
    }

    pub(super) fn tell(&self, failure: Failure) {
        self.observer.observe(&Event::Failed(&failure));
        self.report().failures.push(failure);
    }

    /// A host that was lost for good, which is told once by whoever finds it first.
    pub(super) fn lost(&self, host: &str, why: String) {
        let known = |failure: &Failure| matches!(&failure.what, What::Host(name) if name == host);
        if !self.report().failures.iter().any(known) {
            self.tell(Failure::of_host(&[host], why));
        }
    }

    /// Notes what was done. A copy goes on if that fails, and says why once: the next record takes
    /// the place of the one that was not written, and may succeed.
    pub(super) fn note(&self, write: impl FnOnce(&Journal) -> std::io::Result<()>) {
        if let Some(Err(error)) = self.journal.as_ref().map(write) {
            self.warn_once(None, format!("the journal cannot be written: {error}"));
        }
    }

    /// Whether the target's content is what an earlier run made of this very source, or, where
    /// times are kept, looks like the source's. A link is there only with its owner. A source that
    /// has content and tells no size is never believed to be there.
    pub(super) fn has_content(&self, entry: &Entry, target: &Meta) -> bool {
        if self.options.preserve {
            let plain = target.kind == Kind::File;
            return target.looks_like(&entry.meta) && (plain || self.has_attributes(entry, target));
        }
        let known = self.journal.as_ref().and_then(|journal| journal.finished(&entry.to));
        let same = |known| known == (entry.meta.identity(), target.identity());
        known.is_some_and(same) && target.size == entry.meta.size
    }

    /// Whether the target has the times, mode and owner that are kept, as far as they can be told
    /// and set.
    pub(super) fn has_attributes(&self, entry: &Entry, target: &Meta) -> bool {
        let to_be = Setting::of(&entry.meta, self.options.preserve, self.privileged(), self.umask);
        let mode = target.kind != Kind::File || to_be.mode == Some(target.mode);
        let owner = to_be.owner.is_none() || to_be.owner == target.owner;
        mode && owner && target.looks_like(&entry.meta)
    }
}
