//! Journal: what a copy has done, so that the same command goes on where it stopped (R2).
//!
//! ```text
//! (here)   the open journal: what is known is asked for, what is done is appended
//! known    what earlier runs have left, read from the file's beginning
//! record   a record as bytes
//! owner    whose it is, for the key
//! ```
//! Append-only. The checksum is keyed with the copy's ends and covers the
//! record's place in the file, so that a record that was cut, changed, moved or taken from another
//! journal is none; from the first such record on nothing is believed, and the file is cut there.
//! Written from every lane's thread, one `write` per record: what was written survives a `kill -9`.

mod known;
mod owner;
mod record;
#[cfg(test)]
mod tests;

pub(super) use known::Part;
pub(super) use owner::ourselves;
pub(super) use record::Number;

use super::meta::Identity;
use known::{Known, load};
use record::{
    BEGIN, CLEARED, DONE, FINISHED, MADE, PART, PathHash, READY, done_record, finished_record,
    hash, part_record, record,
};
use rustix::fs::FlockOperation;
use rustix::io::Errno;
use std::collections::HashSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::ops::Range;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};
use wire::Writer;

/// Changes when records do: a journal of another version is from a foreign key.
const VERSION: &[u8] = b"longhaul journal 2";
/// How long to wait for another run of the same copy that has the journal, and may be dying: one
/// that was killed holds it until the kernel is through with it, and a program that another thread
/// is starting holds it between fork and exec.
pub(super) const PATIENCE: Duration = Duration::from_secs(3);
const LOOK: Duration = Duration::from_millis(20);
/// Records that say nothing any more, before the file is written anew.
const WORTH_TIDYING: usize = 4096;

struct Tail {
    file: File,
    end: u64,
    next: u32,
    /// Known parts that this run goes on with, has finished or has cleared.
    taken: HashSet<PathHash>,
    /// Those that are finished or cleared: what is known of them says nothing about a new one.
    ended: HashSet<PathHash>,
    /// What has a part, as the file tells.
    parts: HashSet<PathHash>,
}

/// An open journal; nobody else has it open.
pub(super) struct Journal {
    key: [u8; 32],
    known: Known,
    tail: Mutex<Tail>,
}

impl Journal {
    /// The journal of the copy that `ends` describes; `None` if another run has it for longer than
    /// `patience`. Parts on this host that were written before a crash are not believed, since they
    /// may never have reached the disk: `boot` tells, empty where the target is another host.
    pub(super) fn open(
        directory: &Path,
        ends: &[&[u8]],
        boot: &[u8],
        patience: Duration,
    ) -> io::Result<Option<Self>> {
        let key = key(ends);
        fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
        let path = directory.join(format!("{}.journal", name(&key)));
        let Some(mut file) = locked(&path, patience)? else { return Ok(None) };
        let (mut known, end) = load(&mut file, &key)?;
        if known.boot != boot {
            known.parts.clear();
        }
        file.set_len(end)?;
        let next = known.numbers.keys().max().map_or(0, |last| last.saturating_add(1));
        let mut tail = Tail::new(file, end, next, &known);
        if known.stale() > WORTH_TIDYING {
            tail.rewrite(&key, &path, &known, boot)?;
        } else if end == 0 || known.boot != boot {
            tail.append(&key, BEGIN, boot)?;
        }
        known.numbers.clear();
        Ok(Some(Self { key, known, tail: Mutex::new(tail) }))
    }

    /// Letters and digits that only this copy's part files have.
    pub(super) fn id(&self) -> String {
        name(&self.key).get(..8).unwrap_or_default().to_owned()
    }

    /// What a stopped run has left of `path`, if the source is still the same.
    pub(super) fn part(&self, path: &[u8], source: &Identity) -> Option<&Part> {
        let hash = hash(path);
        let part = self.known.parts.get(&hash).filter(|part| part.source == *source)?;
        (!self.tail().ended.contains(&hash)).then_some(part)
    }

    /// Whether earlier runs have begun a part file of `path` that this one has not come by.
    pub(super) fn has_part(&self, path: &[u8]) -> bool {
        // Mostly there are none, and many files ask.
        let hash = (!self.known.parts.is_empty()).then(|| hash(path));
        let part = hash.and_then(|hash| Some((hash, self.known.parts.get(&hash)?)));
        part.is_some_and(|(hash, part)| !part.in_place && !self.tail().taken.contains(&hash))
    }

    /// What source and target were when `path` was finished.
    pub(super) fn finished(&self, path: &[u8]) -> Option<(Identity, Identity)> {
        self.known.finished.get(&hash(path)).copied()
    }

    /// Whether the target was made by an earlier run of this copy: then the same command means the
    /// same tree, not one inside of it.
    pub(super) fn made_target(&self) -> bool {
        self.known.made
    }

    /// The target does not exist yet.
    pub(super) fn note_made_target(&self) -> io::Result<()> {
        self.append(MADE, &[])
    }

    /// A part file was begun, or is gone on with.
    pub(super) fn begin(&self, part: &Part) -> io::Result<Number> {
        let hash = hash(&part.paths.1);
        let mut tail = self.tail();
        let number = Number(tail.next);
        tail.next = tail.next.wrapping_add(1);
        tail.take(&self.known, &hash);
        tail.append(&self.key, PART, &part_record(number, &hash, part))?;
        tail.parts.insert(hash);
        for range in part.done.iter() {
            tail.append(&self.key, DONE, &done_record(number, range))?;
        }
        Ok(number)
    }

    /// `range` is in the part file.
    pub(super) fn done(&self, part: Number, range: &Range<u64>) -> io::Result<()> {
        self.append(DONE, &done_record(part, range))
    }

    /// All of the part file is there.
    pub(super) fn ready(&self, part: Number) -> io::Result<()> {
        self.append(READY, &part.0.to_be_bytes())
    }

    /// `path` is in place.
    pub(super) fn finish(
        &self,
        path: &[u8],
        source: &Identity,
        target: &Identity,
    ) -> io::Result<()> {
        let (hash, mut tail) = (hash(path), self.tail());
        tail.end_part(&self.known, &hash);
        tail.append(&self.key, FINISHED, &finished_record(&hash, source, target))?;
        tail.parts.remove(&hash);
        Ok(())
    }

    /// Parts of earlier runs that this one did not come by: the source's path, and the path.
    pub(super) fn abandoned(&self) -> Vec<(Vec<u8>, Vec<u8>)> {
        let tail = self.tail();
        let left = self.known.parts.iter().filter(|(hash, _)| !tail.taken.contains(*hash));
        left.map(|(_, part)| part.paths.clone()).collect()
    }

    pub(super) fn has_abandoned(&self) -> bool {
        self.tail().taken.len() < self.known.parts.len()
    }

    /// The part of `path` was removed.
    pub(super) fn clear(&self, path: &[u8]) -> io::Result<()> {
        self.tail().clear(self, &hash(path)).map(drop)
    }

    /// The part of `path` is about to be made anew. That must not be forgotten, not even by a crash
    /// of this host: the next run would take the new part's holes for what the old one had.
    pub(super) fn begin_anew(&self, path: &[u8]) -> io::Result<()> {
        let mut tail = self.tail();
        match tail.clear(self, &hash(path))? {
            true => tail.file.sync_data(),
            false => Ok(()),
        }
    }

    fn tail(&self) -> MutexGuard<'_, Tail> {
        self.tail.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn append(&self, kind: u8, payload: &[u8]) -> io::Result<()> {
        self.tail().append(&self.key, kind, payload)
    }
}

impl Tail {
    fn new(file: File, end: u64, next: u32, known: &Known) -> Self {
        let parts = known.parts.keys().copied().collect();
        Self { file, end, next, taken: HashSet::new(), ended: HashSet::new(), parts }
    }

    /// This run comes by a part.
    fn take(&mut self, known: &Known, part: &PathHash) {
        if known.parts.contains_key(part) {
            self.taken.insert(*part);
        }
    }

    /// What earlier runs have left of a part is no more.
    fn end_part(&mut self, known: &Known, part: &PathHash) {
        self.take(known, part);
        if known.parts.contains_key(part) {
            self.ended.insert(*part);
        }
    }

    /// Nothing that was noted of a part holds any more; whether anything was.
    fn clear(&mut self, journal: &Journal, part: &PathHash) -> io::Result<bool> {
        self.end_part(&journal.known, part);
        if !self.parts.contains(part) {
            return Ok(false);
        }
        self.append(&journal.key, CLEARED, part)?;
        Ok(self.parts.remove(part))
    }

    fn append(&mut self, key: &[u8; 32], kind: u8, payload: &[u8]) -> io::Result<()> {
        let record = record(key, self.end, kind, payload);
        self.file.seek(SeekFrom::Start(self.end))?;
        self.file.write_all(&record)?;
        self.end += record.len() as u64;
        Ok(())
    }

    /// A new file with what still says something, in place of the old one.
    fn rewrite(
        &mut self,
        key: &[u8; 32],
        path: &Path,
        known: &Known,
        boot: &[u8],
    ) -> io::Result<()> {
        let fresh = path.with_extension("new");
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(true).mode(0o600);
        let file = options.open(&fresh)?;
        rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive)?;
        let mut tail = Self::new(file, 0, self.next, known);
        tail.append(key, BEGIN, boot)?;
        if known.made {
            tail.append(key, MADE, &[])?;
        }
        for (number, (hash, part)) in (tail.next..).zip(&known.parts) {
            let number = Number(number);
            tail.next = number.0.saturating_add(1);
            tail.append(key, PART, &part_record(number, hash, part))?;
            for range in part.done.iter() {
                tail.append(key, DONE, &done_record(number, range))?;
            }
        }
        for (hash, (source, target)) in &known.finished {
            tail.append(key, FINISHED, &finished_record(hash, source, target))?;
        }
        fs::rename(&fresh, path)?;
        *self = tail;
        Ok(())
    }
}

/// The file at `path`, locked; `None` if somebody else has it for longer than `patience`.
fn locked(path: &Path, patience: Duration) -> io::Result<Option<File>> {
    let end = Instant::now() + patience;
    loop {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(0o600);
        let file = options.open(path)?;
        let is_locked = match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => true,
            Err(Errno::WOULDBLOCK | Errno::INTR) => false,
            // Some file systems have no locks.
            Err(errno) => return Err(errno.into()),
        };
        // Whoever had it may have put another file in its place, and have locked that one.
        if is_locked && is_at(&file, path)? {
            return Ok(Some(file));
        }
        if Instant::now() >= end {
            return Ok(None);
        }
        sleep(LOOK);
    }
}

/// Whether the file is still what stands under `path`.
fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    let inode = |meta: fs::Metadata| (meta.dev(), meta.ino());
    match fs::metadata(path) {
        Ok(meta) => Ok(inode(meta) == inode(file.metadata()?)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Where the copy is from and where it goes to, as one number.
fn key(ends: &[&[u8]]) -> [u8; 32] {
    let mut writer = Writer::new();
    writer.string(VERSION);
    for end in ends {
        writer.string(end);
    }
    *blake3::hash(writer.as_slice()).as_bytes()
}

fn name(key: &[u8; 32]) -> String {
    blake3::Hash::from_bytes(*key).to_hex().get(..32).unwrap_or_default().to_owned()
}

/// `$XDG_STATE_HOME/longhaul`, or `~/.local/state/longhaul`.
pub(super) fn directory() -> Option<PathBuf> {
    let absolute = |name| std::env::var_os(name).map(PathBuf::from).filter(|p| p.is_absolute());
    let state = absolute("XDG_STATE_HOME")
        .or_else(|| Some(absolute("HOME")?.join(".local").join("state")))?;
    Some(state.join("longhaul"))
}

/// Names this boot of this host.
pub(super) fn boot() -> Vec<u8> {
    fs::read("/proc/sys/kernel/random/boot_id").unwrap_or_default()
}
