//! Journal: what a copy has done, so that the same command goes on where it stopped (R2).
//!
//! ```text
//! record   uint32 length of payload | uint8 kind | payload | 8 bytes checksum
//! kinds    0 begin: boot    1 part: number, identity, path hash, source's path, path
//!          2 done: number, start, end    3 ready: number
//!          4 finished: path hash, identity of source, identity of target
//!          5 made: the target did not exist, and became a copy of the one source
//!          6 cleared: path hash of a part whose source is gone, and which was removed
//! ```
//! Append-only, numbers little-endian. The checksum is keyed with the copy's ends and covers the
//! record's place in the file, so that a record that was cut, changed, moved or taken from another
//! journal is none; from the first such record on nothing is believed, and the file is cut there.
//! Written from every lane's thread, one `write` per record: what was written survives a `kill -9`.

use super::meta::{Identity, Time};
use super::ranges::Ranges;
use rustix::fs::FlockOperation;
use std::collections::{HashMap, HashSet};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};
use wire::{Malformed, Reader, Writer};

const BEGIN: u8 = 0;
const PART: u8 = 1;
const DONE: u8 = 2;
const READY: u8 = 3;
const FINISHED: u8 = 4;
const MADE: u8 = 5;
const CLEARED: u8 = 6;
/// Changes when records do: a journal of another version is from a foreign key.
const VERSION: &[u8] = b"longhaul journal 2";
const SUM: usize = 8;
/// No record is longer: two paths, a hash and some numbers.
const LONGEST: usize = 10 << 10;
/// How long to wait for another run of the same copy that has the journal, and may be dying: one
/// that was killed holds it until the kernel is through with it, and a program that another thread
/// is starting holds it between fork and exec.
pub(super) const PATIENCE: Duration = Duration::from_secs(3);
const LOOK: Duration = Duration::from_millis(20);
/// Records that say nothing any more, before the file is written anew.
const WORTH_TIDYING: usize = 4096;

/// A file that a stopped run has left.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Part {
    /// Of the source when it was begun.
    pub(super) source: Identity,
    /// What is in the part file.
    pub(super) done: Ranges,
    /// All of it is, and it waits for its name (`--delay-updates`).
    pub(super) ready: bool,
    /// The source's path, and the path below the target.
    pub(super) paths: (Vec<u8>, Vec<u8>),
}

/// What earlier runs have left, by the path below the target.
#[derive(Debug, Default)]
struct Known {
    boot: Vec<u8>,
    parts: HashMap<PathHash, Part>,
    finished: HashMap<PathHash, (Identity, Identity)>,
    /// Which part a number is.
    numbers: HashMap<u32, PathHash>,
    /// The target is a tree that this copy made.
    made: bool,
    records: usize,
}

/// 128 bits of a path's hash: a hundred thousand of them must fit into memory.
type PathHash = [u8; 16];

/// Number of a part within a journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Number(u32);

struct Tail {
    file: File,
    end: u64,
    next: u32,
    /// Known parts that this run goes on with, or has finished.
    taken: HashSet<PathHash>,
}

/// An open journal; nobody else has it open.
pub(super) struct Journal {
    key: [u8; 32],
    known: Known,
    tail: Mutex<Tail>,
}

impl Journal {
    /// The journal of the copy that `ends` describes; `None` if another run has it for longer than
    /// `patience`. Parts on this host that were written before a crash are not believed, since they may never have reached
    /// the disk: `boot` tells, empty where the target is another host.
    pub(super) fn open(
        directory: &Path,
        ends: &[&[u8]],
        boot: &[u8],
        patience: Duration,
    ) -> io::Result<Option<Self>> {
        let key = key(ends);
        fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
        let path = directory.join(format!("{}.journal", name(&key)));
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(0o600);
        let mut file = options.open(&path)?;
        if !locked(&file, patience) {
            return Ok(None);
        }
        let (mut known, end) = load(&mut file, &key)?;
        if known.boot != boot {
            known.parts.clear();
        }
        file.set_len(end)?;
        let next = known.numbers.keys().max().map_or(0, |last| last.saturating_add(1));
        let mut tail = Tail { file, end, next, taken: HashSet::new() };
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
        self.known.parts.get(&hash(path)).filter(|part| part.source == *source)
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
        tail.take(&self.known, &hash);
        tail.append(&self.key, FINISHED, &finished_record(&hash, source, target))
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
        self.append(CLEARED, &hash(path))
    }

    fn tail(&self) -> MutexGuard<'_, Tail> {
        self.tail.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn append(&self, kind: u8, payload: &[u8]) -> io::Result<()> {
        self.tail().append(&self.key, kind, payload)
    }
}

impl Tail {
    /// This run comes by a part.
    fn take(&mut self, known: &Known, part: &PathHash) {
        if known.parts.contains_key(part) {
            self.taken.insert(*part);
        }
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
        let mut tail = Self { file, end: 0, next: self.next, taken: HashSet::new() };
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

impl Known {
    /// Records that say nothing any more.
    fn stale(&self) -> usize {
        let ranges: usize = self.parts.values().map(|part| 1 + part.done.iter().count()).sum();
        self.records
            .saturating_sub(ranges + self.finished.len())
            .saturating_sub(self.finished.len())
    }

    fn learn(&mut self, kind: u8, payload: &[u8]) -> Result<(), Malformed> {
        let mut r = Reader::new(payload);
        match kind {
            BEGIN => {
                // A crash came between: what was written before it may be lost.
                let boot = r.rest().to_vec();
                if std::mem::replace(&mut self.boot, boot.clone()) != boot {
                    self.parts.clear();
                }
            }
            PART => self.learn_part(&mut r)?,
            DONE => {
                let number = r.u32("number")?;
                let range = r.u64("start")?..r.u64("end")?;
                if let Some(part) = self.numbered(number) {
                    part.done.add(range);
                }
            }
            READY => {
                if let Some(part) = self.numbered(r.u32("number")?) {
                    part.ready = true;
                }
            }
            FINISHED => {
                let hash = *r.array("hash")?;
                let ends = (read_identity(&mut r)?, read_identity(&mut r)?);
                self.finished.insert(hash, ends);
                self.parts.remove(&hash);
            }
            MADE => self.made = true,
            CLEARED => drop(self.parts.remove(r.array::<16>("hash")?)),
            _ => return Err(Malformed("kind")),
        }
        self.records += 1;
        Ok(())
    }

    fn learn_part(&mut self, r: &mut Reader<'_>) -> Result<(), Malformed> {
        let number = r.u32("number")?;
        let source = read_identity(r)?;
        let hash = *r.array("hash")?;
        let paths = (r.string("source's path")?.to_vec(), r.string("path")?.to_vec());
        self.numbers.insert(number, hash);
        self.parts.insert(hash, Part { source, paths, ..Part::default() });
        Ok(())
    }

    fn numbered(&mut self, number: u32) -> Option<&mut Part> {
        self.parts.get_mut(self.numbers.get(&number)?)
    }
}

/// Whether the lock could be had.
fn locked(file: &File, patience: Duration) -> bool {
    let end = Instant::now() + patience;
    loop {
        if rustix::fs::flock(file, FlockOperation::NonBlockingLockExclusive).is_ok() {
            return true;
        }
        if Instant::now() >= end {
            return false;
        }
        sleep(LOOK);
    }
}

/// Everything up to the first record that is none, and where that is.
fn load(file: &mut File, key: &[u8; 32]) -> io::Result<(Known, u64)> {
    let mut input = io::BufReader::new(file);
    let (mut known, mut end) = (Known::default(), 0);
    while let Some((kind, payload, len)) = next(&mut input, key, end)? {
        if known.learn(kind, &payload).is_err() {
            break;
        }
        end += len;
    }
    Ok((known, end))
}

/// The next record; `None` where there is none or a damaged one.
fn next(input: &mut impl Read, key: &[u8; 32], at: u64) -> io::Result<Option<(u8, Vec<u8>, u64)>> {
    let mut head = [0; 5];
    if !filled(input, &mut head)? {
        return Ok(None);
    }
    let [a, b, c, d, kind] = head;
    let len = u32::from_le_bytes([a, b, c, d]) as usize;
    if len > LONGEST {
        return Ok(None);
    }
    let mut payload = vec![0; len];
    let mut sum = [0; SUM];
    if !filled(input, &mut payload)? || !filled(input, &mut sum)? {
        return Ok(None);
    }
    let good = sum == checksum(key, at, kind, &payload);
    Ok(good.then_some((kind, payload, (head.len() + len + SUM) as u64)))
}

fn filled(input: &mut impl Read, bytes: &mut [u8]) -> io::Result<bool> {
    match input.read_exact(bytes) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

fn record(key: &[u8; 32], at: u64, kind: u8, payload: &[u8]) -> Vec<u8> {
    let len = u32::try_from(payload.len()).unwrap_or(u32::MAX).to_le_bytes();
    [&len, &[kind][..], payload, &checksum(key, at, kind, payload)].concat()
}

fn checksum(key: &[u8; 32], at: u64, kind: u8, payload: &[u8]) -> [u8; SUM] {
    let mut hasher = blake3::Hasher::new_keyed(key);
    hasher.update(&at.to_le_bytes()).update(&[kind]).update(payload);
    let mut sum = [0; SUM];
    hasher.finalize_xof().fill(&mut sum);
    sum
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

fn hash(path: &[u8]) -> PathHash {
    let mut hash = PathHash::default();
    blake3::Hasher::new().update(path).finalize_xof().fill(&mut hash);
    hash
}

fn part_record(number: Number, hash: &PathHash, part: &Part) -> Vec<u8> {
    let mut w = Writer::new();
    write_identity(w.u32(number.0), &part.source);
    w.raw(hash).string(&part.paths.0).string(&part.paths.1).take()
}

fn done_record(number: Number, range: &Range<u64>) -> Vec<u8> {
    Writer::new().u32(number.0).u64(range.start).u64(range.end).take()
}

fn finished_record(hash: &PathHash, source: &Identity, target: &Identity) -> Vec<u8> {
    let mut w = Writer::new();
    write_identity(w.raw(hash), source);
    write_identity(&mut w, target);
    w.take()
}

fn write_identity(w: &mut Writer, identity: &Identity) {
    let Time { seconds, nanos } = identity.modified;
    w.u64(identity.size).u64(seconds.cast_unsigned()).u32(nanos).u64(identity.inode);
}

fn read_identity(r: &mut Reader<'_>) -> Result<Identity, Malformed> {
    let size = r.u64("size")?;
    let modified = Time { seconds: r.u64("seconds")?.cast_signed(), nanos: r.u32("nanoseconds")? };
    Ok(Identity { size, modified, inode: r.u64("inode")? })
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

#[cfg(test)]
mod tests {
    use super::*;

    const ENDS: &[&[u8]] = &[b"/a", b"host:/b"];

    fn identity(size: u64) -> Identity {
        Identity { size, modified: Time { seconds: -5, nanos: 7 }, inode: 9 }
    }

    fn open(directory: &Path) -> Journal {
        Journal::open(directory, ENDS, b"boot", PATIENCE).unwrap().unwrap()
    }

    fn file(directory: &Path) -> PathBuf {
        directory.join(format!("{}.journal", name(&key(ENDS))))
    }

    fn part(path: &[u8], size: u64) -> Part {
        let paths = ([b"/from/", path].concat(), path.to_vec());
        Part { source: identity(size), paths, ..Part::default() }
    }

    /// A finished file, a part with 30 bytes done in three records, and a part that is ready.
    fn written(directory: &Path) {
        let journal = open(directory);
        journal.finish(b"done", &identity(1), &identity(1)).unwrap();
        let begun = journal.begin(&part(b"part", 99)).unwrap();
        for start in [0, 10, 50] {
            journal.done(begun, &(start..start + 10)).unwrap();
        }
        let ready = journal.begin(&part(b"ready", 3)).unwrap();
        journal.ready(ready).unwrap();
    }

    #[test]
    fn r2_the_next_run_knows_what_the_last_one_did() {
        let directory = tempfile::tempdir().unwrap();
        written(directory.path());
        let journal = open(directory.path());
        assert_eq!(journal.finished(b"done"), Some((identity(1), identity(1))));
        assert_eq!(journal.finished(b"part"), None);
        let part = journal.part(b"part", &identity(99)).unwrap();
        assert_eq!(part.done, [0..20, 50..60].into_iter().collect());
        assert!(!part.ready);
        assert!(journal.part(b"ready", &identity(3)).unwrap().ready);
    }

    #[test]
    fn r2_a_source_that_changed_has_no_part() {
        let directory = tempfile::tempdir().unwrap();
        written(directory.path());
        let journal = open(directory.path());
        assert_eq!(journal.part(b"part", &identity(98)), None);
        let moved = Identity { inode: 10, ..identity(99) };
        assert_eq!(journal.part(b"part", &moved), None);
        let touched = Time { seconds: -5, nanos: 8 };
        assert_eq!(journal.part(b"part", &Identity { modified: touched, ..identity(99) }), None);
    }

    #[test]
    fn r2_a_part_that_became_a_file_is_no_part_any_more() {
        let directory = tempfile::tempdir().unwrap();
        written(directory.path());
        open(directory.path()).finish(b"part", &identity(99), &identity(99)).unwrap();
        let journal = open(directory.path());
        assert_eq!(journal.part(b"part", &identity(99)), None);
        assert!(journal.finished(b"part").is_some());
    }

    #[test]
    fn r2_a_cut_journal_ends_at_its_last_whole_record() {
        let directory = tempfile::tempdir().unwrap();
        written(directory.path());
        let path = file(directory.path());
        let whole = fs::read(&path).unwrap();
        let mut most = 0;
        for len in 0..whole.len() {
            fs::write(&path, &whole[..len]).unwrap();
            let journal = open(directory.path());
            let done = journal.part(b"part", &identity(99)).map_or(0, |part| part.done.total());
            assert!(done >= most && done.is_multiple_of(10) && done <= 30, "{len}: {done}");
            most = done;
            drop(journal);
            assert!(fs::metadata(&path).unwrap().len() <= len.max(64) as u64);
        }
        assert_eq!(most, 30);
    }

    #[test]
    fn r2_from_a_flipped_bit_on_nothing_is_believed() {
        let directory = tempfile::tempdir().unwrap();
        written(directory.path());
        let path = file(directory.path());
        let whole = fs::read(&path).unwrap();
        for bit in (0..whole.len() * 8).step_by(7) {
            let mut bytes = whole.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            fs::write(&path, &bytes).unwrap();
            let journal = open(directory.path());
            // The last record says that `ready` is: one of the records up to it is damaged.
            assert!(journal.part(b"ready", &identity(3)).is_none_or(|part| !part.ready), "{bit}");
            let done = journal.part(b"part", &identity(99)).map_or(0, |part| part.done.total());
            assert!(done.is_multiple_of(10) && done <= 30);
        }
    }

    #[test]
    fn r2_records_of_a_foreign_journal_or_another_place_are_none() {
        let directory = tempfile::tempdir().unwrap();
        written(directory.path());
        let whole = fs::read(file(directory.path())).unwrap();
        let other = Journal::open(directory.path(), &[b"/a", b"host:/c"], b"boot", Duration::ZERO)
            .unwrap()
            .unwrap();
        let path = directory.path().join(format!("{}.journal", name(&other.key)));
        drop(other);
        fs::write(&path, &whole).unwrap();
        let other = Journal::open(directory.path(), &[b"/a", b"host:/c"], b"boot", Duration::ZERO)
            .unwrap()
            .unwrap();
        assert_eq!(other.finished(b"done"), None);
        // The first record, repeated at the end: it is not at its place.
        let first = 5 + 4 + SUM;
        let mut known = Known::default();
        let twice = [&whole[..first], &whole[..first]].concat();
        let mut input = &twice[..];
        let (kind, payload, len) = next(&mut input, &key(ENDS), 0).unwrap().unwrap();
        known.learn(kind, &payload).unwrap();
        assert_eq!(len, first as u64);
        assert!(next(&mut input, &key(ENDS), len).unwrap().is_none());
    }

    #[test]
    fn a_crash_of_this_host_takes_its_part_files_but_not_what_was_finished() {
        let directory = tempfile::tempdir().unwrap();
        written(directory.path());
        let journal = Journal::open(directory.path(), ENDS, b"next", PATIENCE).unwrap().unwrap();
        assert_eq!(journal.part(b"part", &identity(99)), None);
        assert!(journal.finished(b"done").is_some());
        drop(journal);
        let journal = Journal::open(directory.path(), ENDS, b"next", PATIENCE).unwrap().unwrap();
        assert_eq!(journal.part(b"part", &identity(99)), None);
    }

    #[test]
    fn a_part_that_nobody_came_by_is_known_until_it_is_cleared() {
        let directory = tempfile::tempdir().unwrap();
        written(directory.path());
        let journal = open(directory.path());
        assert!(journal.has_abandoned());
        journal.begin(&part(b"part", 99)).unwrap();
        assert_eq!(journal.abandoned(), [(b"/from/ready".to_vec(), b"ready".to_vec())]);
        journal.clear(b"ready").unwrap();
        drop(journal);
        let journal = open(directory.path());
        assert_eq!(journal.part(b"ready", &identity(3)), None);
        journal.finish(b"part", &identity(99), &identity(99)).unwrap();
        assert!(!journal.has_abandoned());
    }

    #[test]
    fn a_journal_of_a_run_that_is_dying_is_waited_for() {
        let directory = tempfile::tempdir().unwrap();
        let dying = open(directory.path());
        std::thread::scope(|scope| {
            scope.spawn(move || {
                sleep(Duration::from_millis(100));
                drop(dying);
            });
            let next = Journal::open(directory.path(), ENDS, b"boot", Duration::from_secs(60));
            assert!(next.unwrap().is_some());
        });
    }

    #[test]
    fn a_journal_in_use_is_left_alone() {
        let directory = tempfile::tempdir().unwrap();
        let first = open(directory.path());
        assert!(Journal::open(directory.path(), ENDS, b"boot", Duration::ZERO).unwrap().is_none());
        drop(first);
        open(directory.path());
    }

    #[test]
    fn a_journal_that_says_little_in_many_records_is_written_anew() {
        let directory = tempfile::tempdir().unwrap();
        let journal = open(directory.path());
        for round in 0..2 * WORTH_TIDYING as u64 {
            journal.finish(b"same", &identity(round), &identity(round)).unwrap();
        }
        drop(journal);
        let before = fs::metadata(file(directory.path())).unwrap().len();
        let journal = open(directory.path());
        assert!(fs::metadata(file(directory.path())).unwrap().len() < before / 1000);
        let last = identity(2 * WORTH_TIDYING as u64 - 1);
        assert_eq!(journal.finished(b"same"), Some((last, last)));
        drop(journal);
        assert_eq!(open(directory.path()).finished(b"same"), Some((last, last)));
    }
}
