//! Start: a file from the queue. Is something there already, then open both ends, then share.

use super::super::job::{Job, Rest, Way};
use super::super::journal::{Number, Part};
use super::super::local;
use super::super::meta::{Kind, Meta};
use super::super::names;
use super::super::plan::absolute;
use super::super::queue::{Entry, Left};
use super::super::ranges::Ranges;
use super::super::side::{Answered, Ask, Fault, Open, Side, Told};
use super::proof::Proof;
use super::{At, File, FileId, Lane, Stage, What};
use crate::observe::{Act, Event, Outcome};
use sftp::client::Flight;
use sftp::codec::SparseMap;
use std::sync::Arc;

impl Lane<'_> {
    pub(super) fn start(&mut self, entry: Entry) {
        let to = entry.to.clone();
        let unknown = entry.fresh && !entry.has_been_placed();
        let id = self.add(File::new(Stage::New(entry)));
        if unknown || self.is_test() {
            return self.looked(id, Err(Fault::Missing));
        }
        self.ask_for(At::Target, Ask::Lstat(to), id, What::Looked);
    }

    /// What stands under the target's name decides.
    pub(super) fn looked(&mut self, id: FileId, answer: Answered) {
        let old = match answer {
            Ok(Told::Meta(meta)) => Some(meta),
            Err(Fault::Missing) => None,
            Err(fault) => return self.fail(id, fault),
            Ok(_) => return self.fail(id, Fault::unfit()),
        };
        if let Some(file) = self.files.get_mut(&id) {
            file.old = old;
        }
        let Some(file) = self.files.get(&id) else { return };
        let entry = file.entry();
        if old.is_some_and(|old| old.kind == Kind::Directory) {
            return self.fail(id, Fault::other("there is a directory of that name"));
        }
        if old.is_some_and(|old| is_placed(entry, &old)) {
            // Or the file before looks the same: then the part is still there.
            let part = names::part_beside(&entry.to, &self.copying.id);
            return self.ask_for(At::Target, Ask::Lstat(part), id, What::PartLooked);
        }
        if old.is_some_and(|old| self.is_to_be_believed(entry, &old)) {
            return self.there(id);
        }
        if self.copying.options.dry_run {
            return self.would(id);
        }
        let compare = old.is_some_and(|old| self.is_to_be_compared(entry, &old));
        if let Some(file) = self.files.get_mut(&id) {
            file.compare = compare;
        }
        let Some(file) = self.files.get(&id) else { return };
        let entry = file.entry();
        match entry.meta.kind {
            Kind::Symlink => self.read_link(id),
            _ => self.open_both(id),
        }
    }

    /// Whether what stands there has the content that is to be there, by its looks.
    fn is_to_be_believed(&self, entry: &Entry, old: &Meta) -> bool {
        let same = old.kind == entry.meta.kind && !entry.differs;
        same && !self.copying.options.verify && self.copying.has_content(entry, old)
    }

    /// With `--verify` content counts: what has the right size is compared, not believed and not
    /// copied again.
    fn is_to_be_compared(&self, entry: &Entry, old: &Meta) -> bool {
        let plain = entry.meta.kind == Kind::File && old.kind == Kind::File;
        let same = old.size == entry.meta.size && !entry.differs;
        self.copying.options.verify && plain && same
    }

    /// The content is there already: nothing is left to be done but, with `-p`, its attributes.
    pub(super) fn there(&mut self, id: FileId) {
        self.note_outlived(id);
        let is_file = |file: &File| file.entry().meta.kind == Kind::File;
        if self.copying.options.preserve && self.files.get(&id).is_some_and(is_file) {
            return self.mend(id);
        }
        let Some(file) = self.leave(id) else { return };
        match self.copying.options.dry_run {
            true => self.copying.would(file.entry(), Act::Skip),
            false => self.copying.finished(file.entry(), Outcome::Skipped, file.verified),
        }
    }

    /// What an earlier run has begun of it is of no use any more.
    fn note_outlived(&self, id: FileId) {
        let Some(journal) = &self.copying.journal else { return };
        let Some(file) = self.files.get(&id) else { return };
        if journal.has_part(&file.entry().to) {
            self.copying.late().outlived.insert(file.entry().to.clone());
        }
    }

    /// A lane that broke has put it in place and had no answer, if the part is gone.
    pub(super) fn placed_before(&mut self, id: FileId, answer: Answered) {
        match answer {
            Err(Fault::Missing) => {
                if let Some(file) = self.leave(id) {
                    self.copying.finished(file.entry(), Outcome::Copied, false);
                }
            }
            Err(fault) => self.fail(id, fault),
            Ok(_) => {
                let Some(file) = self.files.get_mut(&id) else { return };
                if let Stage::New(Entry { left: Some(left), .. }) = &mut file.stage {
                    left.placed = None;
                }
                let old = file.old.ok_or(Fault::Missing);
                self.looked(id, old.map(Told::Meta));
            }
        }
    }

    fn would(&mut self, id: FileId) {
        let Some(file) = self.files.remove(&id) else { return };
        let entry = file.entry();
        let resumed = self.left(&file);
        let act = match (entry.meta.kind, &file.old) {
            (Kind::Symlink, _) => Act::Link,
            _ if resumed.is_some() => Act::Resume,
            (_, Some(_)) => Act::Replace,
            (_, None) => Act::Create,
        };
        self.copying.would(entry, act);
    }

    fn way(&self, file: &File) -> Way {
        match &file.stage {
            Stage::Job(job) => job.way,
            Stage::New(_) if self.is_test() => Way::Device,
            Stage::New(_) if file.old.is_some_and(|old| old.kind == Kind::Special) => Way::Device,
            Stage::New(_) if file.compare => Way::Compare,
            // A link is replaced: it may lead out of the target (F2).
            Stage::New(_) if file.old.is_some_and(|old| old.kind == Kind::Symlink) => Way::Part,
            Stage::New(_) if self.copying.options.inplace => Way::InPlace,
            Stage::New(_) => Way::Part,
        }
    }

    pub(super) fn is_device(&self, file: &File) -> bool {
        self.way(file) == Way::Device
    }

    pub(super) fn is_in_place(&self, file: &File) -> bool {
        self.way(file).is_in_place()
    }

    /// Under what name the file is written.
    fn writes_to(&self, file: &File) -> Vec<u8> {
        match self.is_in_place(file) {
            true => file.entry().to.clone(),
            false => names::part_beside(&file.entry().to, &self.copying.id),
        }
    }

    /// The part file, if there is one that may be removed.
    pub(super) fn part_of(&self, file: &File) -> Option<Vec<u8>> {
        (!self.is_in_place(file)).then(|| self.writes_to(file))
    }

    /// What an earlier attempt has left of it.
    pub(super) fn left(&self, file: &File) -> Option<Left> {
        let entry = file.entry();
        let way = self.way(file);
        if !way.is_resumable() {
            return None;
        }
        if let Some(left) = &entry.left {
            return Some(Left::clone(left));
        }
        // Somebody else may have written under a final name since: what is there must be compared.
        let sure = self.proof.is_some_and(|proof| proof.can_check_later(&self.ends.source));
        if entry.reread || way == Way::InPlace && !(sure && file.old.is_some()) {
            return None;
        }
        let part = self.copying.journal.as_ref()?.part(&entry.to, &entry.meta.identity())?;
        if part.done.is_empty() && !part.ready {
            return None;
        }
        // What was written under the one name says nothing about what is under the other.
        let same = part.in_place == (way == Way::InPlace);
        let all = || Ranges::of(0..entry.meta.size);
        let done = if part.ready { all() } else { part.done.clone() };
        same.then_some(Left { done, ready: part.ready, placed: None })
    }

    /// Whether nothing of a part file is to be written any more, not even its size. It may have its
    /// mode already, and be read-only.
    fn is_whole(&self, left: &Left) -> bool {
        let checks = |proof: Proof| proof.can_check_later(&self.ends.source);
        left.ready && self.proof.is_none_or(checks)
    }

    fn open_both(&mut self, id: FileId) {
        let Some(file) = self.files.get(&id) else { return };
        let (from, to) = (file.entry().from.clone(), self.writes_to(file));
        let (path, size) = (file.entry().to.as_slice(), file.entry().meta.size);
        self.copying.observer.observe(&Event::Started { path, size });
        let open = match self.way(file) {
            Way::Device => Ask::Feed(to),
            Way::InPlace if self.left(file).is_none() => Ask::Overwrite(to),
            Way::InPlace => Ask::Reopen(to),
            Way::Compare => Ask::Open(to),
            Way::Part => match self.left(file) {
                Some(left) if self.is_whole(&left) => Ask::Open(to),
                Some(_) => Ask::Reopen(to),
                None => Ask::Create(to),
            },
        };
        if let Some(file) = self.files.get_mut(&id) {
            file.read_only = matches!(open, Ask::Open(_));
        }
        if matches!(open, Ask::Create(_)) {
            if let Err(fault) = self.forget_part(id) {
                return self.fail(id, fault);
            }
            self.note_ahead(id);
        }
        self.ask_for(At::Source, Ask::Open(from), id, What::SourceOpened);
        self.ask_for(At::Target, open, id, What::TargetOpened);
    }

    pub(super) fn opened(&mut self, id: FileId, what: &What, answer: Answered) {
        let Some(file) = self.files.get_mut(&id) else { return };
        match (what, answer) {
            (What::SourceOpened, Ok(Told::Open(open))) => file.source = Some(open),
            (What::TargetOpened, Ok(Told::Open(open))) => file.target = Some(open),
            (What::SourceOpened | What::TargetOpened, Ok(Told::Done)) => {}
            (What::TargetOpened, Err(fault)) => return self.part_in_the_way(id, fault),
            (What::Cleared, _) => {
                let to = self.files.get(&id).map(|file| self.writes_to(file)).unwrap_or_default();
                if let Some(file) = self.files.get_mut(&id) {
                    file.read_only = false;
                }
                self.note_ahead(id);
                return self.ask_for(At::Target, Ask::Create(to), id, What::TargetOpened);
            }
            // A map that cannot be is none: all of the file counts.
            (What::Mapped, Ok(Told::Extended(map))) => {
                file.data = mapped(&map).or_else(|| file.data.take());
            }
            (What::Mapped, _) => {}
            (_, Err(fault)) => drop(file.fault.get_or_insert(fault)),
            (_, Ok(_)) => drop(file.fault.get_or_insert(Fault::unfit())),
        }
        self.opened_one(id);
    }

    fn opened_one(&mut self, id: FileId) {
        let Some(file) = self.files.get_mut(&id) else { return };
        if file.waits > 0 {
            return;
        }
        if let Some(fault) = file.fault.take() {
            return self.fail(id, fault);
        }
        if matches!(file.stage, Stage::Job(_)) {
            return self.joined(id);
        }
        if !self.asks_for_holes(id) && !self.reads_untold(id) {
            self.share(id);
        }
    }

    /// A part file that cannot be made, or gone on with: a run that broke off may have left one,
    /// or somebody has removed it. Once, it is made anew.
    fn part_in_the_way(&mut self, id: FileId, fault: Fault) {
        let Some(file) = self.files.get_mut(&id) else { return };
        if file.compare {
            // It cannot be read: then it is replaced.
            file.fault = Some(Fault::Differs);
            return self.opened_one(id);
        }
        let Some(file) = self.files.get(&id) else { return };
        let again = !file.cleared
            && !self.is_in_place(file)
            && matches!((&file.stage, &fault), (Stage::New(_), Fault::Missing | Fault::Other(_)));
        let part = self.writes_to(file);
        let Some(file) = self.files.get_mut(&id) else { return };
        if !again {
            file.fault.get_or_insert(fault);
            return self.opened_one(id);
        }
        file.cleared = true;
        if let Err(fault) = self.forget_part(id) {
            if let Some(file) = self.files.get_mut(&id) {
                file.fault.get_or_insert(fault);
            }
            return self.opened_one(id);
        }
        self.ask_for(At::Target, Ask::Remove(part), id, What::Cleared);
    }

    /// Before a part file is made anew: what earlier attempts have moved is not in it. Without a
    /// word of that in the journal none is made.
    fn forget_part(&mut self, id: FileId) -> Result<(), Fault> {
        let Some(file) = self.files.get_mut(&id) else { return Ok(()) };
        if let Stage::New(entry) = &mut file.stage {
            entry.left = None;
        }
        let Some(journal) = &self.copying.journal else { return Ok(()) };
        let noted = journal.begin_anew(&file.entry().to);
        noted.map_err(|error| Fault::other(format!("the journal cannot be written: {error}")))
    }

    /// Where a source that may have holes has data: known at once here, asked for elsewhere.
    fn asks_for_holes(&mut self, id: FileId) -> bool {
        let Some(file) = self.files.get(&id) else { return false };
        // What stands in place of a hole would stay there.
        let written = file.old.is_some_and(|old| old.size > 0) || file.entry().reread;
        if written && self.is_in_place(file) {
            return false;
        }
        let Some(file) = self.files.get_mut(&id) else { return false };
        let size = file.entry().meta.size;
        if file.data.is_some() || size <= self.block || self.copying.options.test.is_some() {
            return false;
        }
        match (&self.ends.source, &file.source) {
            (Side::Here, Some(Open::Local(source))) if file.entry().meta.sparse => {
                file.data = local::data(source, size).ok().map(|data| data.into_iter().collect());
                false
            }
            (Side::There(there), Some(open)) if there.has().sparse_map => {
                file.data = Some(Ranges::of(0..size));
                let ask = Ask::SparseMap { open: open.clone(), offset: 0 };
                self.ask_for(At::Source, ask, id, What::Mapped);
                true
            }
            _ => false,
        }
    }

    /// Both ends are open: the file is for all lanes, this one begins.
    pub(super) fn share(&mut self, id: FileId) {
        let Some(file) = self.files.get(&id) else { return };
        let Stage::New(entry) = &file.stage else { return };
        let left = self.left(file).unwrap_or_default();
        let size = entry.meta.size;
        let all = Ranges::of(0..size);
        // Of a file that is compared, holes count too: they may be none at the other end.
        let data = file.data.clone().filter(|_| !file.compare).unwrap_or_else(|| all.clone());
        // What another attempt has moved or spared was counted then.
        let first = entry.left.is_none() && !entry.reread;
        if first {
            self.copying.spared(all.without(&data).total());
        }
        let done = data.both(&left.done);
        let summed = self.is_summed(file);
        let rest = match summed {
            true if file.compare => Rest::default(),
            true => Rest { unmoved: data.without(&done), ..Rest::default() },
            false => self.apart(data, &done, file.compare),
        };
        if first && rest.found.is_empty() && !file.compare {
            self.copying.spared(done.total().saturating_sub(rest.unmoved.both(&done).total()));
        }
        let number = self.noted(file, size, &done);
        let old = file.old.filter(|old| old.kind == Kind::File);
        let read_only = file.read_only;
        let (part, way) = (self.writes_to(file), self.way(file));
        let mut job = Job::new(entry.clone(), self.block, rest);
        (job.part, job.way, job.old, job.number) = (part, way, old, number);
        (job.summed, job.read_only) = (summed, read_only);
        job.size = size + file.untold;
        let is_empty = job.size == 0;
        let job = Arc::new(job);
        if let Some(file) = self.files.get_mut(&id) {
            file.stage = Stage::Job(Arc::clone(&job));
        }
        if self.ends.source.is_remote() {
            self.ask_for_xattrs(id, &job);
        }
        if job.is_whole() {
            if let Some(file) = self.files.get_mut(&id) {
                // Of nothing both ends have the same.
                file.verified = is_empty && self.proof.is_some();
            }
            return self.finish(id);
        }
        self.take_share(id);
        if job.has_any() {
            self.look_at_source(id);
            self.copying.queue.share(&job);
        }
        self.pump();
    }

    /// What is moved and what is only compared, of `data` of which `done` was moved before.
    fn apart(&self, data: Ranges, done: &Ranges, compare: bool) -> Rest {
        match &self.proof {
            Some(_) if compare => Rest { moved: data, ..Rest::default() },
            None => Rest { unmoved: data.without(done), ..Rest::default() },
            Some(proof) if proof.can_check_later(&self.ends.source) => {
                let found = data.both(&with_what_was_under_way(done));
                Rest { unmoved: data.without(&found), found, ..Rest::default() }
            }
            Some(_) => Rest { unmoved: data, ..Rest::default() },
        }
    }

    /// Large files, and those that wait for their names, are noted when they begin.
    fn noted(&self, file: &File, size: u64, done: &Ranges) -> Option<Number> {
        let worth = size > self.block || self.copying.options.delay_updates;
        if !worth || file.untold > 0 || !self.way(file).is_resumable() {
            return None;
        }
        self.copying.journal.as_ref()?.begin(&self.part(file, done.clone())).ok()
    }

    /// A small file is noted before it has a part file: only so the next run comes by that, if it
    /// sends small files together.
    fn note_ahead(&self, id: FileId) {
        let Some(file) = self.files.get(&id) else { return };
        if self.way(file) == Way::Part && self.is_for_batches(file.entry()) {
            let part = self.part(file, Ranges::default());
            self.copying.note(|journal| journal.begin(&part).map(drop));
        }
    }

    /// A file for the journal, of which `done` is there.
    fn part(&self, file: &File, done: Ranges) -> Part {
        let entry = file.entry();
        let from = match self.ends.source {
            Side::Here => absolute(&entry.from),
            _ => entry.from.clone(),
        };
        let paths = (from, entry.to.clone());
        let (source, in_place) = (entry.meta.identity(), self.is_in_place(file));
        Part { source, in_place, done, ready: false, paths }
    }
}

/// Whether what stands there is the part file that a lane which broke asked to be put in place.
fn is_placed(entry: &Entry, old: &Meta) -> bool {
    let placed = entry.left.as_ref().and_then(|left| left.placed);
    placed.is_some_and(|placed| placed == old.identity())
}

/// What a run that was killed has moved, and what it had under way behind that: it may have arrived,
/// too.
fn with_what_was_under_way(done: &Ranges) -> Ranges {
    done.iter().map(|range| range.start..range.end.saturating_add(Flight::TOGETHER)).collect()
}

/// Parts with data, as the server told. If there may be more than it told, all of it counts.
fn mapped(map: &[u8]) -> Option<Ranges> {
    let map = SparseMap::parse(map).ok()?;
    if map.data.len() >= SparseMap::MOST {
        return None;
    }
    let ranges = map.data.iter().map(|&(start, len)| Some(start..start.checked_add(len)?));
    let data: Ranges = ranges.collect::<Option<Vec<_>>>()?.into_iter().collect();
    Some(data.both(&Ranges::of(0..map.size)))
}

impl Entry {
    fn has_been_placed(&self) -> bool {
        self.left.as_ref().is_some_and(|left| left.placed.is_some())
    }
}
