//! Finish: a file of which every byte is there gets its attributes by descriptor, reaches the disk
//! and takes its name (R1), if its source is still what was copied (F9).

use super::super::copying::Delayed;
use super::super::job::{Job, Way};
use super::super::meta::{self, Setting};
use super::super::queue::Entry;
use super::super::side::{Answered, Ask, Fault, Open, Told};
use super::{At, FileId, Lane, Stage, What};
use crate::observe::Outcome;
use std::sync::Arc;

impl Lane<'_> {
    pub(super) fn finish(&mut self, id: FileId) {
        let Some(file) = self.files.get_mut(&id) else { return };
        let Stage::Job(job) = &file.stage else { return };
        let job = Arc::clone(job);
        if self.needs_size(id, &job) || self.needs_sum(id, &job) {
            return;
        }
        if job.way == Way::Compare {
            return self.compared(id);
        }
        if self.needs_xattrs(id, &job) || self.needs_owner(id, &job) {
            return;
        }
        let Some(file) = self.files.get_mut(&id) else { return };
        let (source, target) = (file.source.take(), file.target.take());
        file.waits += 1;
        if let Some(source) = source {
            if !self.is_test() {
                self.ask_for(At::Source, Ask::Fstat(source.clone()), id, What::SourceSeen);
            }
            self.ask(At::Source, Ask::Close(source), id, What::Whatever);
        }
        if let Some(target) = target {
            let device = job.way == Way::Device;
            if !device {
                self.set_all(id, &job, &target);
                self.ask_for(At::Target, Ask::Fstat(target.clone()), id, What::TargetSeen);
            }
            if self.copying.options.fsync && !device {
                self.ask_for(At::Target, Ask::Sync(target.clone()), id, What::Set);
            }
            self.ask_for(At::Target, Ask::Close(target), id, What::Closed);
        }
        self.stepped_down(id);
    }

    /// A sum is over all bytes: a hole at the end has to be there before.
    fn needs_size(&mut self, id: FileId, job: &Job) -> bool {
        let size = self.settings(job).1.size;
        let summed = job.summed && job.sum.get().is_none() && job.way != Way::Compare;
        let Some(file) = self.files.get(&id).filter(|file| summed && !file.sized) else {
            return false;
        };
        let (Some(target), Some(_)) = (file.target.clone(), size) else { return false };
        let setting = Setting { size, ..Setting::default() };
        self.ask_for(At::Target, Ask::Set(target, setting), id, What::Sized);
        true
    }

    pub(super) fn sized(&mut self, id: FileId, answer: Answered) {
        let Some(file) = self.files.get_mut(&id) else { return };
        file.sized = true;
        match answer {
            Err(fault) => self.fail(id, fault),
            Ok(_) => self.finish(id),
        }
    }

    /// What was there already was what the source is (`--verify`): is that still the same?
    fn compared(&mut self, id: FileId) {
        let Some(file) = self.files.get(&id) else { return };
        match file.source.clone() {
            Some(source) => self.ask_for(At::Source, Ask::Fstat(source), id, What::SourceSeen),
            None => self.finished_all(id),
        }
    }

    /// What was there already is what it is to be.
    fn same(&mut self, id: FileId) {
        if let Some(file) = self.files.get_mut(&id) {
            file.verified = true;
            self.there(id);
        }
    }

    /// The step's own wait is over.
    fn stepped_down(&mut self, id: FileId) {
        if let Some(file) = self.files.get_mut(&id) {
            file.waits -= 1;
            if file.waits == 0 {
                self.finished_all(id);
            }
        }
    }

    /// In this order: a change of the owner takes set-id bits and capabilities away, a file that is
    /// read-only takes no attributes, and times come last.
    fn set_all(&mut self, id: FileId, job: &Job, target: &Open) {
        let (owner, rest) = self.settings(job);
        if !owner.is_empty() && !self.files.get(&id).is_some_and(|file| file.owned) {
            self.ask_for(At::Target, Ask::Set(target.clone(), owner), id, What::Owner);
        }
        let with_owner = self.copying.privileged();
        let xattrs = job.xattrs.get().into_iter().flatten();
        for (class, pairs) in xattrs.filter(|(class, _)| class.is_kept(with_owner)) {
            match self.ends.target.has().set_xattrs {
                true => {
                    let ask = Ask::SetXattrs(target.clone(), pairs.clone());
                    self.ask_for(At::Target, ask, id, What::XattrsSet(*class));
                }
                false => self.copying.not_kept(&job.entry.to, *class, &Fault::Unsupported),
            }
        }
        if !rest.is_empty() {
            self.ask_for(At::Target, Ask::Set(target.clone(), rest), id, What::Set);
        }
    }

    /// Asks for the owner alone, if the file is to lend its rights: nobody else's may be lent (F3).
    fn needs_owner(&mut self, id: FileId, job: &Job) -> bool {
        let (owner, rest) = self.settings(job);
        let mut xattrs = job.xattrs.get().into_iter().flatten();
        let lends = rest.mode.is_some_and(meta::is_set_id)
            || xattrs.any(|(class, _)| !class.is_kept(false));
        let Some(file) = self.files.get(&id) else { return false };
        let Some(target) = file.target.clone() else { return false };
        if owner.is_empty() || !lends || file.owned || job.way == Way::Device {
            return false;
        }
        self.ask_for(At::Target, Ask::Set(target, owner), id, What::OwnerFirst);
        true
    }

    pub(super) fn owned(&mut self, id: FileId, answer: Answered) {
        let Some(file) = self.files.get_mut(&id) else { return };
        file.owned = true;
        match answer {
            Err(fault) if !self.copying.goes_without_owner(&file.entry().to, &fault) => {
                self.fail(id, fault);
            }
            _ => self.finish(id),
        }
    }

    /// Asks for the source's extended attributes, if they are kept and nobody has.
    fn needs_xattrs(&mut self, id: FileId, job: &Job) -> bool {
        let open = self.files.get(&id).and_then(|file| file.source.clone());
        let Some(open) = open.filter(|_| self.wants_xattrs(job)) else { return false };
        self.ask_for(At::Source, Ask::GetXattrs(open), id, What::XattrsNeeded);
        true
    }

    /// The same ahead of time: the answer comes while data moves.
    pub(super) fn ask_for_xattrs(&mut self, id: FileId, job: &Job) {
        let open = self.files.get(&id).and_then(|file| file.source.clone());
        if let Some(open) = open.filter(|_| self.wants_xattrs(job)) {
            self.ask(At::Source, Ask::GetXattrs(open), id, What::XattrsTold);
        }
    }

    fn wants_xattrs(&self, job: &Job) -> bool {
        self.copying.options.preserve
            && self.ends.source.has().get_xattrs
            && !matches!(job.way, Way::Device | Way::Compare)
            && job.xattrs.get().is_none()
    }

    pub(super) fn note_xattrs(&self, id: FileId, answer: Answered) {
        let Some(Stage::Job(job)) = self.files.get(&id).map(|file| &file.stage) else { return };
        let _ = job.xattrs.set(self.copying.kept(&job.entry.to, answer));
    }

    fn settings(&self, job: &Job) -> (Setting, Setting) {
        let source = &job.entry.meta;
        let options = self.copying.options;
        let all =
            Setting::of(source, options.preserve, self.copying.privileged(), self.copying.umask);
        let whole = source.size > job.block || job.way == Way::InPlace;
        let whole = whole && !job.read_only;
        let mode = match job.old.filter(|_| !options.preserve) {
            // It has its mode, and may be somebody else's, who alone can set it.
            Some(old) if job.way == Way::InPlace && !meta::is_set_id(old.mode) => None,
            Some(old) => Some(old.plain_mode()),
            None => all.mode,
        };
        Setting { size: whole.then_some(job.size), mode, ..all }.apart()
    }

    pub(super) fn finishing(&mut self, id: FileId, what: &What, answer: Answered) {
        let Some(file) = self.files.get_mut(&id) else { return };
        match (what, answer) {
            (What::SourceSeen, Ok(Told::Meta(meta))) => file.seen.0 = Some(meta),
            (What::TargetSeen, Ok(Told::Meta(meta))) => file.seen.1 = Some(meta),
            (What::XattrsSet(class), Err(why)) => {
                self.copying.not_kept(&file.entry().to, *class, &why);
            }
            (What::Owner, Err(why)) if self.copying.goes_without_owner(&file.entry().to, &why) => {}
            (_, Err(fault)) => drop(file.fault.get_or_insert(fault)),
            (_, Ok(_)) => {}
        }
        if file.waits == 0 {
            self.finished_all(id);
        }
    }

    /// Attributes are set, content is on the disk.
    fn finished_all(&mut self, id: FileId) {
        let Some(file) = self.files.get_mut(&id) else { return };
        let Stage::Job(job) = &file.stage else { return };
        let job = Arc::clone(job);
        let same = file.seen.0.is_none_or(|now| now.identity() == job.entry.meta.identity());
        let whole = file.seen.1.is_none_or(|part| part.size == job.size);
        let fault = match file.fault.take() {
            Some(fault) => Some(fault),
            None if !same => {
                Some(Fault::Changed(At::Source, "the source changed while it was copied"))
            }
            None if !whole => {
                Some(Fault::other("the target has another size than what was written"))
            }
            None => None,
        };
        match fault {
            Some(fault) => self.failed(id, fault),
            None if job.way == Way::Compare => self.same(id),
            None if job.way.is_in_place() => self.in_place(id),
            None if self.copying.options.delay_updates => self.delay(id, &job),
            None => self.place(id, &job.part, &job.entry),
        }
    }

    /// Takes its name, in place of what has it.
    pub(super) fn place(&mut self, id: FileId, part: &[u8], entry: &Entry) {
        let (from, to) = (part.to_vec(), entry.to.clone());
        if !self.ends.target.has().replaces {
            // Without waiting for the answer. If the channel breaks, the file is looked for under
            // both names.
            self.ask(At::Target, Ask::Remove(to.clone()), id, What::Whatever);
        }
        if let Some(file) = self.files.get_mut(&id) {
            file.placing = true;
        }
        self.ask_for(At::Target, Ask::Rename { from, to }, id, What::Placed);
    }

    pub(super) fn placed(&mut self, id: FileId, answer: Answered) {
        match answer {
            Ok(_) => self.in_place(id),
            Err(fault) => self.failed(id, fault),
        }
    }

    fn in_place(&mut self, id: FileId) {
        let Some(file) = self.files.remove(&id) else { return };
        let entry = file.entry();
        if let Some(target) = file.seen.1 {
            let ends = (entry.meta.identity(), target.identity());
            self.copying.note(|journal| journal.finish(&entry.to, &ends.0, &ends.1));
        }
        self.worked = true;
        self.copying.finished(entry, Outcome::Copied, file.verified);
    }

    /// Waits for its name until all others have come.
    fn delay(&mut self, id: FileId, job: &Job) {
        let Some(file) = self.files.remove(&id) else { return };
        if let Some(number) = job.number {
            self.copying.note(|journal| journal.ready(number));
        }
        let target = file.seen.1.map(|meta| meta.identity()).unwrap_or_default();
        let (part, entry) = (job.part.clone(), job.entry.clone());
        let delayed = Delayed { part, entry, target, verified: file.verified };
        self.copying.late().delayed.push(delayed);
        self.copying.queue.done();
    }

    /// What a source that changed is now: it is read once more (F9).
    pub(super) fn restated(&mut self, id: FileId, answer: Answered) {
        let Some(file) = self.files.remove(&id) else { return };
        let Stage::New(entry) = file.stage else { return };
        match answer {
            Ok(Told::Meta(meta)) if meta.kind != entry.meta.kind => {
                let fault = Fault::other("the source became something else").at(At::Source);
                self.copying.failed(&entry, &fault);
            }
            Ok(Told::Meta(meta)) => {
                let again = Entry { meta, reread: true, left: None, fresh: false, ..entry };
                self.copying.report().retries += 1;
                self.copying.queue.back(again);
            }
            Ok(_) => self.copying.failed(&entry, &Fault::Missing.at(At::Source)),
            Err(fault) => self.copying.failed(&entry, &fault),
        }
    }
}
