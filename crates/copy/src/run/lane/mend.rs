//! Mend: a file whose content is at the target already gets the attributes that it lacks (`-p`).
//!
//! ```text
//! mend      what differs by what is known; nothing does, and nothing else can: done
//! opened    both ends, where extended attributes can differ; else the target alone
//! told      extended attributes of both
//! owned     the owner, if it is another
//! set       as on a file that was copied: extended attributes, the rest
//! ```
//! Where attributes cannot be set (somebody else's file in a directory of ours) the file is copied.

use super::super::meta::Setting;
use super::super::side::{Answered, Ask, Fault, Told};
use super::super::xattrs::{self, Class, Kept};
use super::{At, FileId, Lane, Stage, What};
use crate::observe::{Act, Outcome};

/// By its owner.
const WRITABLE: u32 = 0o200;

/// How far it is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Step {
    #[default]
    Opening,
    Telling,
    Owning,
    Setting,
}

/// A file whose content is there.
#[derive(Default)]
pub(super) struct Mend {
    step: Step,
    /// Mode, owner or times differ.
    differs: bool,
    /// Extended attributes of source and target, as far as they are kept.
    kept: (Kept, Kept),
}

/// What is asked for here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Asked {
    Open(At),
    Xattrs(At),
    Owner,
    Set,
    SetXattrs(Class),
}

impl Lane<'_> {
    /// The content is there: what else is to be done?
    pub(super) fn mend(&mut self, id: FileId) {
        let Some(file) = self.files.get(&id) else { return };
        let entry = file.entry().clone();
        let differs = file.old.is_some_and(|old| !self.copying.has_attributes(&entry, &old));
        if self.copying.options.dry_run {
            return self.would_mend(id, differs);
        }
        let compares = self.compares_xattrs();
        if !differs && !compares {
            return self.mended(id, false);
        }
        let (source, target) = (file.source.is_none() && compares, file.target.is_none());
        if let Some(file) = self.files.get_mut(&id) {
            file.mend = Mend { differs, ..Mend::default() };
            // Nobody else works on it any more.
            file.stage = Stage::New(entry.clone());
            file.waits += 1;
        }
        if source {
            self.ask_for(
                At::Source,
                Ask::Open(entry.from),
                id,
                What::Mend(Asked::Open(At::Source)),
            );
        }
        if target {
            self.ask_for(At::Target, Ask::Open(entry.to), id, What::Mend(Asked::Open(At::Target)));
        }
        self.mend_stepped(id);
    }

    fn would_mend(&mut self, id: FileId, differs: bool) {
        if let Some(file) = self.leave(id) {
            self.copying.would(file.entry(), if differs { Act::Set } else { Act::Skip });
        }
    }

    /// Whether both ends tell of extended attributes, and the target's can be set.
    pub(super) fn compares_xattrs(&self) -> bool {
        let (source, target) = (self.ends.source.has(), self.ends.target.has());
        let told = source.get_xattrs && target.get_xattrs;
        self.copying.options.preserve && told && target.set_xattrs
    }

    /// An answer to something that was asked here.
    pub(super) fn mending(&mut self, id: FileId, asked: Asked, answer: Answered) {
        let Some(file) = self.files.get_mut(&id) else { return };
        let path = file.entry().to.clone();
        match (asked, answer) {
            (Asked::Open(At::Source), Ok(Told::Open(open))) => file.source = Some(open),
            (Asked::Open(At::Target), Ok(Told::Open(open))) => file.target = Some(open),
            // Who may not look is not told.
            (Asked::Open(_), _) => {}
            (Asked::Xattrs(at), answer) => {
                let kept = self.copying.kept(&path, answer);
                match at {
                    At::Source => file.mend.kept.0 = kept,
                    At::Target => file.mend.kept.1 = kept,
                }
            }
            (Asked::SetXattrs(class), Err(why)) => self.copying.not_kept(&path, class, &why),
            (Asked::Owner, Err(why)) if self.copying.goes_without_owner(&path, &why) => {}
            (Asked::Owner | Asked::Set, Err(fault)) => drop(file.fault.get_or_insert(fault)),
            (Asked::Owner | Asked::Set | Asked::SetXattrs(_), Ok(_)) => {}
        }
        if file.waits == 0 {
            self.mend_on(id);
        }
    }

    /// The step's own wait is over.
    fn mend_stepped(&mut self, id: FileId) {
        if let Some(file) = self.files.get_mut(&id) {
            file.waits -= 1;
            if file.waits == 0 {
                self.mend_on(id);
            }
        }
    }

    /// All that a step asked for has come.
    fn mend_on(&mut self, id: FileId) {
        let Some(file) = self.files.get_mut(&id) else { return };
        let step = file.mend.step;
        match (step, file.target.is_some()) {
            (Step::Opening, true) => self.ask_for_both(id),
            (Step::Opening, false) if file.mend.differs => self.failed(id, Fault::Differs),
            (Step::Opening, false) => self.mended(id, false),
            (Step::Owning | Step::Setting, _) if file.fault.is_some() => {
                self.failed(id, Fault::Differs)
            }
            (Step::Telling, _) => self.set_owner(id),
            (Step::Owning, _) => self.set_what_lacks(id),
            (Step::Setting, _) => self.mended(id, true),
        }
    }

    fn ask_for_both(&mut self, id: FileId) {
        let compares = self.compares_xattrs();
        let Some(file) = self.files.get_mut(&id) else { return };
        file.mend.step = Step::Telling;
        file.waits += 1;
        let opens = [(At::Source, file.source.clone()), (At::Target, file.target.clone())];
        for (at, open) in opens {
            if let Some(open) = open.filter(|_| compares) {
                self.ask_for(at, Ask::GetXattrs(open), id, What::Mend(Asked::Xattrs(at)));
            }
        }
        self.mend_stepped(id);
    }

    /// First and alone, if it is another: what lends the owner's rights comes later (F3).
    fn set_owner(&mut self, id: FileId) {
        let Some(file) = self.files.get_mut(&id) else { return };
        let copying = self.copying;
        let all = Setting::of(&file.entry().meta, true, copying.privileged(), copying.umask);
        let (owner, _) = all.apart();
        let same = file.old.is_some_and(|old| old.owner == owner.owner);
        match file.target.clone().filter(|_| !owner.is_empty() && !same) {
            Some(target) => {
                file.mend.step = Step::Owning;
                let set = What::Mend(Asked::Owner);
                self.ask_for(At::Target, Ask::Set(target, owner), id, set);
            }
            None => self.set_what_lacks(id),
        }
    }

    fn set_what_lacks(&mut self, id: FileId) {
        let copying = self.copying;
        let Some(file) = self.files.get_mut(&id) else { return };
        // Without owners, what goes with them is not lacking.
        file.mend.kept.0.retain(|(class, _)| class.is_kept(copying.privileged()));
        let differs = file.old.is_some_and(|old| !copying.has_attributes(file.entry(), &old));
        file.mend.differs &= differs;
        let lacks = !xattrs::includes(&file.mend.kept.1, &file.mend.kept.0);
        if !file.mend.differs && !lacks {
            return self.mended(id, false);
        }
        let Some(target) = file.target.clone() else { return };
        file.mend.step = Step::Setting;
        file.waits += 1;
        let kept = std::mem::take(&mut file.mend.kept.0);
        let all = Setting::of(&file.entry().meta, true, copying.privileged(), copying.umask);
        let (_, rest) = all.apart();
        let set = What::Mend(Asked::Set);
        let read_only = file.old.filter(|old| old.mode & WRITABLE == 0 && !kept.is_empty());
        // A file that is read-only takes no extended attributes; its mode comes later.
        if let Some(mode) = read_only.map(|old| old.mode | WRITABLE) {
            let setting = Setting { mode: Some(mode), ..Setting::default() };
            self.ask_for(At::Target, Ask::Set(target.clone(), setting), id, set.clone());
        }
        for (class, pairs) in kept {
            let ask = Ask::SetXattrs(target.clone(), pairs);
            self.ask_for(At::Target, ask, id, What::Mend(Asked::SetXattrs(class)));
        }
        self.ask_for(At::Target, Ask::Set(target.clone(), rest), id, set.clone());
        if copying.options.fsync {
            self.ask_for(At::Target, Ask::Sync(target), id, set);
        }
        self.mend_stepped(id);
    }

    fn mended(&mut self, id: FileId, changed: bool) {
        let Some(file) = self.leave(id) else { return };
        self.worked = true;
        self.copying.report().attributes += u64::from(changed);
        self.copying.finished(file.entry(), Outcome::Skipped, file.verified);
    }
}
