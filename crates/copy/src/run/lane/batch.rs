//! Batch: small files between this host and a server of ours, many in one request
//! (`put-files@longhaul`, `get-files@longhaul`). The server writes each as we would (R1).
//!
//! ```text
//! put   look at what is there, unless this run made the directory -> read all -> put -> see
//! get   get all -> write each
//! ```
//! Whatever is not plain about one of them, it is copied by itself instead.

use super::super::copying::Copying;
use super::super::local;
use super::super::meta::{Kind, Meta, Setting};
use super::super::names;
use super::super::queue::{Entry, Together};
use super::super::side::{Answered, Ask, Fault, Side, Told};
use super::super::xattrs::{self, Kept};
use super::At;
use super::{FileId, Lane, What};
use crate::observe::{Event, Outcome};
use sftp::codec::{FileContent, FileStatus, GetFile, PutFile, PutFlags, Status};
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::FileExt;
use std::time::Instant;

/// Files up to this size, in bytes, go with others.
const SMALL: u64 = 64 << 10;
/// Requests under way: while one is written at the other end, the next ones come.
const BATCHES: usize = 4;
/// What a file costs in a request beside path and content, in bytes: lengths and attributes.
const HEAD: u64 = 96;

/// Files that go together.
pub(super) struct Batch {
    entries: Vec<Entry>,
    /// What stands at the target, where that is known.
    old: Vec<Option<Meta>>,
    bytes: u64,
    /// They may be sent with their owners, which the server may refuse.
    owners: bool,
    /// They are: what the targets became is asked for the journal.
    in_place: bool,
}

impl Batch {
    /// What is to be copied yet: not what is in place and counted, and only looked at.
    pub(super) fn into_entries(self) -> impl Iterator<Item = Entry> {
        self.entries.into_iter().filter(move |_| !self.in_place)
    }
}

/// Whether a batch was begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Begun {
    Yes,
    /// There will be one.
    Later,
    /// What comes next goes by itself.
    Unfit,
}

/// Which way batches go.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    Put,
    Get,
}

impl Lane<'_> {
    fn direction(&self) -> Option<Direction> {
        let options = self.copying.options;
        let special = options.verify || options.delay_updates || options.inplace || options.dry_run;
        match (&self.ends.source, &self.ends.target) {
            _ if special || self.is_test() || self.copying.limiter.is_some() => None,
            (Side::Here, Side::There(there)) if there.has().put_files => Some(Direction::Put),
            (Side::There(there), Side::Below(_)) if there.has().get_files => Some(Direction::Get),
            _ => None,
        }
    }

    /// A part file of an earlier run, which was given other options: who comes by it copies the file
    /// by itself.
    fn has_part(&self, entry: &Entry) -> bool {
        self.copying.journal.as_ref().is_some_and(|journal| journal.has_part(&entry.to))
    }

    /// Whether runs with other options would send the file among others: the server then names its
    /// part files itself, and nobody comes by one of ours.
    pub(super) fn is_for_batches(&self, entry: &Entry) -> bool {
        let puts = match (&self.ends.source, &self.ends.target) {
            (Side::Here, Side::There(there)) => there.has().put_files,
            _ => false,
        };
        puts && entry.meta.kind == Kind::File && entry.meta.size <= SMALL
    }

    /// Takes a batch from the queue if it begins with small files; a full one, unless the lane has
    /// nothing else to do.
    pub(super) fn begin_batch(&mut self) -> Begun {
        let Some(direction) = self.direction() else { return Begun::Unfit };
        if self.batches.len() >= BATCHES {
            return Begun::Later;
        }
        let packet = match (&self.ends.source, &self.ends.target) {
            (Side::There(there), _) | (_, Side::There(there)) => there.client.sizes().packet,
            _ => return Begun::Unfit,
        };
        let mut room = u64::from(packet).saturating_sub(1 << 10);
        let mut bytes = 0;
        let together = self.copying.queue.batch(!self.is_idle(), |entry| {
            let size = entry.meta.size;
            let cost = size + HEAD + entry.to.len().max(entry.from.len()) as u64 + 256;
            let fits = entry.meta.kind == Kind::File
                && size <= SMALL
                && entry.left.is_none()
                && !entry.reread
                && !entry.alone
                && !self.has_part(entry)
                && cost <= room;
            if fits {
                room -= cost;
                bytes += size;
            }
            fits
        });
        let entries = match together {
            Together::Entries(entries) => entries,
            Together::Later => return Begun::Later,
            Together::Unfit => return Begun::Unfit,
        };
        let (old, owners) = (vec![None; entries.len()], self.copying.privileged());
        let batch = Batch { old, entries, bytes, owners, in_place: false };
        self.next_file += 1;
        let id = self.next_file;
        self.flight.sent(bytes, Instant::now());
        match direction {
            Direction::Put => self.look(id, batch),
            Direction::Get => self.get(id, batch),
        }
        Begun::Yes
    }

    pub(super) fn batch_answered(&mut self, id: FileId, what: &What, answer: Answered) {
        let Some(batch) = self.batches.remove(&id) else { return };
        let bytes = match answer {
            Ok(Told::Extended(bytes)) => bytes,
            // They are in place, and counted.
            _ if *what == What::BatchSeen => return,
            _ => return self.one_by_one(batch),
        };
        match what {
            What::BatchLooked => self.looked_at_all(id, batch, &bytes),
            What::BatchPut => self.have_put(id, batch, &bytes),
            What::BatchSeen => self.seen(&batch, &bytes),
            _ => self.got(batch, &bytes),
        }
    }

    /// What cannot be done together.
    fn one_by_one(&mut self, batch: Batch) {
        self.flight.spared(batch.bytes);
        batch.into_entries().for_each(|entry| self.start(entry));
    }

    fn look(&mut self, id: FileId, batch: Batch) {
        if batch.entries.iter().all(|entry| entry.fresh) {
            return self.put(id, batch);
        }
        let ask = self.stat_all(&batch);
        self.batches.insert(id, batch);
        self.ask(At::Target, ask, id, What::BatchLooked);
    }

    /// Attributes of all targets: what is larger than nothing is not sent.
    fn stat_all(&self, batch: &Batch) -> Ask {
        let Side::There(there) = &self.ends.target else { return Ask::GetFiles(Vec::new()) };
        let one = |entry: &Entry| GetFile { path: there.at(&entry.to), most: 0 };
        Ask::GetFiles(batch.entries.iter().map(one).collect())
    }

    fn looked_at_all(&mut self, id: FileId, mut batch: Batch, bytes: &[u8]) {
        let found = match FileContent::parse_list(bytes) {
            Ok(found) if found.len() == batch.entries.len() => found,
            _ => return self.one_by_one(batch),
        };
        let mut left = Vec::new();
        for (entry, found) in batch.entries.drain(..).zip(found) {
            match meta_of(&found) {
                // It is there, and may not be read: by itself, it is looked at without that.
                None if found.code != Status::NoSuchFile => self.start(entry),
                Some(old) if old.kind != Kind::File => self.start(entry),
                Some(old) if self.copying.has_content(&entry, &old) => {
                    let lacks = self.compares_xattrs() && {
                        let source = self.kept_here(local::open(&entry.from));
                        !xattrs::includes(&self.kept_there(&found), &source)
                    };
                    self.there_already(entry, &old, lacks);
                }
                old => left.push((entry, old)),
            }
        }
        (batch.entries, batch.old) = left.into_iter().unzip();
        match batch.entries.is_empty() {
            true => self.flight.spared(batch.bytes),
            false => self.put(id, batch),
        }
    }

    /// Of a file whose content is there: done, or by itself if it lacks attributes (`-p`).
    fn there_already(&mut self, entry: Entry, old: &Meta, lacks: bool) {
        let copying = self.copying;
        let same = !copying.options.preserve || copying.has_attributes(&entry, old);
        match same && !lacks {
            true => copying.finished(&entry, Outcome::Skipped, false),
            false => self.start(entry),
        }
    }

    /// Extended attributes of a file of this host, as far as they are kept and can be told.
    fn kept_here(&self, file: io::Result<File>) -> Kept {
        let pairs = file.and_then(|file| xattrs::of(&file));
        xattrs::kept(pairs.unwrap_or_default(), self.copying.privileged())
    }

    /// Of one that the server told of.
    fn kept_there(&self, found: &FileContent) -> Kept {
        xattrs::kept(found.attrs.xattrs().unwrap_or_default(), self.copying.privileged())
    }

    /// Reads them all and sends them.
    fn put(&mut self, id: FileId, mut batch: Batch) {
        let Side::There(there) = &self.ends.target else { return };
        let options = self.copying.options;
        let (mut files, mut odd, mut left) = (Vec::new(), Vec::new(), Vec::new());
        for (entry, old) in batch.entries.drain(..).zip(batch.old.drain(..)) {
            let Some(content) = content_of(&entry, self.copying) else {
                odd.push(entry);
                continue;
            };
            let (path, size) = (entry.to.as_slice(), entry.meta.size);
            self.copying.observer.observe(&Event::Started { path, size });
            let setting = self.setting(&entry, old);
            let attrs = setting.attrs(there.has().nanoseconds);
            files.push(PutFile { path: there.at(&entry.to), attrs, content });
            left.push((entry, old));
        }
        (batch.entries, batch.old) = left.into_iter().unzip();
        odd.into_iter().for_each(|entry| self.start(entry));
        if files.is_empty() {
            return self.flight.spared(batch.bytes);
        }
        let fsync = if options.fsync { PutFlags::FSYNC } else { PutFlags::default() };
        // The mode that was chosen here is what it is to be.
        let flags = fsync | PutFlags::EXACT;
        self.batches.insert(id, batch);
        self.ask(At::Target, Ask::PutFiles(flags, files), id, What::BatchPut);
    }

    fn setting(&self, entry: &Entry, old: Option<Meta>) -> Setting {
        let copying = self.copying;
        let preserve = copying.options.preserve;
        let all = Setting::of(&entry.meta, preserve, copying.privileged(), copying.umask);
        let mode = if preserve { all.mode } else { old.map(|old| old.plain_mode()).or(all.mode) };
        Setting { mode, ..all }
    }

    fn have_put(&mut self, id: FileId, mut batch: Batch, bytes: &[u8]) {
        let told = match FileStatus::parse_list(bytes) {
            Ok(told) if told.len() == batch.entries.len() => told,
            _ => return self.one_by_one(batch),
        };
        self.flight.done(batch.bytes, Instant::now());
        self.worked = true;
        let mut good = Vec::new();
        for (entry, told) in batch.entries.drain(..).zip(told) {
            match told.code {
                Status::Ok => good.push(entry),
                // Perhaps the owner alone.
                Status::PermissionDenied if batch.owners => {
                    self.copying.queue.back(Entry { alone: true, ..entry });
                }
                _ => self.copying.failed(&entry, &fault_of(told.code, &told.text)),
            }
        }
        for entry in &good {
            self.copying.moved(self.id, entry.meta.size);
            self.copying.finished(entry, Outcome::Copied, false);
        }
        // With -p the target's own time tells next time; without, what it is now must be known.
        if self.copying.options.preserve || self.copying.journal.is_none() || good.is_empty() {
            return;
        }
        (batch.entries, batch.in_place) = (good, true);
        let ask = self.stat_all(&batch);
        self.batches.insert(id, batch);
        self.ask(At::Target, ask, id, What::BatchSeen);
    }

    /// Notes what the targets became.
    fn seen(&self, batch: &Batch, bytes: &[u8]) {
        let found = FileContent::parse_list(bytes).unwrap_or_default();
        for (entry, found) in batch.entries.iter().zip(found) {
            if let Some(meta) = meta_of(&found) {
                let ends = (entry.meta.identity(), meta.identity());
                self.copying.note(|journal| journal.finish(&entry.to, &ends.0, &ends.1));
            }
        }
    }

    fn get(&mut self, id: FileId, mut batch: Batch) {
        let Side::Below(below) = &mut self.ends.target else { return };
        let mut left = Vec::new();
        for entry in batch.entries.drain(..) {
            let old = if entry.fresh { None } else { below.lstat(&entry.to).ok() };
            left.push((entry, old));
        }
        let mut wanted = Vec::new();
        // Of what is there extended attributes can only be told by the server.
        let asks = self.compares_xattrs();
        for (entry, old) in left {
            match old {
                Some(old) if old.kind != Kind::File => self.start(entry),
                Some(old) if !asks && self.copying.has_content(&entry, &old) => {
                    self.there_already(entry, &old, false);
                }
                old => wanted.push((entry, old)),
            }
        }
        (batch.entries, batch.old) = wanted.into_iter().unzip();
        if batch.entries.is_empty() {
            return self.flight.spared(batch.bytes);
        }
        let one = |(entry, old): (&Entry, &Option<Meta>)| {
            let there = old.is_some_and(|old| self.copying.has_content(entry, &old));
            let most = if there { 0 } else { u32::try_from(entry.meta.size).unwrap_or(u32::MAX) };
            GetFile { path: entry.from.clone(), most }
        };
        let ask = Ask::GetFiles(batch.entries.iter().zip(&batch.old).map(one).collect());
        self.batches.insert(id, batch);
        self.ask(At::Source, ask, id, What::BatchGot);
    }

    fn got(&mut self, batch: Batch, bytes: &[u8]) {
        let Ok(found) = FileContent::parse_list(bytes) else { return self.one_by_one(batch) };
        self.flight.done(batch.bytes, Instant::now());
        self.worked = true;
        let mut found = found.into_iter();
        for (entry, old) in batch.entries.into_iter().zip(batch.old) {
            let content = found.next();
            if let Some(old) = old.filter(|old| self.copying.has_content(&entry, old)) {
                let lacks = content.is_none_or(|found| self.lacks_here(&entry, &found));
                self.there_already(entry, &old, lacks);
                continue;
            }
            let content = content.filter(|found| is_what_was_listed(&entry, found));
            let Some(content) = content else {
                self.start(entry);
                continue;
            };
            let (path, size) = (entry.to.as_slice(), entry.meta.size);
            self.copying.observer.observe(&Event::Started { path, size });
            match self.write(&entry, old, &content) {
                Ok(target) => {
                    let ends = (entry.meta.identity(), target.identity());
                    self.copying.note(|journal| journal.finish(&entry.to, &ends.0, &ends.1));
                    self.copying.moved(self.id, size);
                    self.copying.finished(&entry, Outcome::Copied, false);
                }
                Err(fault) => self.copying.failed(&entry, &fault),
            }
        }
    }

    /// Whether a file of this host lacks extended attributes that its source was found to have.
    fn lacks_here(&mut self, entry: &Entry, found: &FileContent) -> bool {
        let Side::Below(below) = &mut self.ends.target else { return false };
        let target = below.read(&entry.to);
        !xattrs::includes(&self.kept_here(target), &self.kept_there(found))
    }

    /// R1, for a file that is in memory.
    fn write(
        &mut self,
        entry: &Entry,
        old: Option<Meta>,
        found: &FileContent,
    ) -> Result<Meta, Fault> {
        let setting = self.setting(entry, old);
        let copying = self.copying;
        let pairs = found.attrs.xattrs().filter(|_| copying.options.preserve).unwrap_or_default();
        let part = names::part_beside(&entry.to, &self.copying.id);
        let fsync = self.copying.options.fsync;
        let Side::Below(below) = &mut self.ends.target else {
            return Err(Fault::other("not a target of this host"));
        };
        let file = below.create(&part).or_else(|why| match why.kind() {
            // What a run that broke off has left.
            ErrorKind::AlreadyExists => {
                below.remove(&part)?;
                below.create(&part)
            }
            _ => Err(why),
        })?;
        let written = (|| {
            file.write_all_at(&found.content, 0)?;
            let (owner, mut rest) = setting.apart();
            if let Err(error) = local::set(&file, &owner) {
                let fault = Fault::from(error);
                if !copying.goes_without_owner(&entry.to, &fault) {
                    return Err(fault);
                }
                rest = rest.without_owner();
            }
            for (class, pairs) in &xattrs::kept(pairs, copying.privileged()) {
                if let Err(error) = xattrs::set(&file, pairs) {
                    copying.not_kept(&entry.to, *class, &Fault::from(error));
                }
            }
            local::set(&file, &rest)?;
            if fsync {
                file.sync_all()?;
            }
            sftp::flush(&file).map_err(io::Error::from)?;
            let meta = local::fstat(&file)?;
            below.rename(&part, &entry.to)?;
            Ok(meta)
        })();
        written.inspect_err(|_| drop(below.remove(&part)))
    }
}

/// The content of a small source, if it is still what was found and has no extended attributes:
/// put-files carries none.
fn content_of(entry: &Entry, copying: &Copying<'_>) -> Option<Vec<u8>> {
    let mut file = local::open(&entry.from).ok()?;
    if copying.options.preserve
        && !xattrs::kept(xattrs::of(&file).ok()?, copying.privileged()).is_empty()
    {
        return None;
    }
    let size = usize::try_from(entry.meta.size).ok()?;
    let mut content = Vec::with_capacity(size + 1);
    Read::by_ref(&mut file)
        .take(entry.meta.size.saturating_add(1))
        .read_to_end(&mut content)
        .ok()?;
    let same = local::fstat(&file).ok()?.identity() == entry.meta.identity();
    (same && content.len() == size).then_some(content)
}

/// F1, F9: what came is what was listed, whole.
fn is_what_was_listed(entry: &Entry, found: &FileContent) -> bool {
    found.code == Status::Ok
        && found.content.len() as u64 == entry.meta.size
        && Meta::remote(&found.attrs).identity() == entry.meta.identity()
}

/// Of the name itself: a link is not the file that it leads to, whatever that is.
fn meta_of(found: &FileContent) -> Option<Meta> {
    let meta = found.attrs.mode.map(|_| Meta::remote(&found.attrs))?;
    let kind = if found.attrs.followed() { Kind::Symlink } else { meta.kind };
    Some(Meta { kind, ..meta })
}

fn fault_of(code: Status, text: &[u8]) -> Fault {
    let text = String::from_utf8_lossy(text).into_owned();
    Fault::from(sftp::client::Error::Status { code, text })
}
