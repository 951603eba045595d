//! Fail: a file that cannot be copied. It is told of, or tried once more; what is left of it goes.

use super::super::job::After;
use super::super::names;
use super::super::queue::Entry;
use super::super::side::{Answered, Ask, Fault, Told};
use super::{At, File, FileId, Lane, Stage, What};
use sftp::codec::{Status, Statvfs};
use std::sync::Arc;

/// Less room than this, in bytes, is none: what was written last did not fit.
const FULL: u64 = 1 << 20;

impl Lane<'_> {
    /// The file cannot be copied: the only one who works on it tells.
    pub(super) fn fail(&mut self, id: FileId, fault: Fault) {
        let Some(file) = self.files.get(&id) else { return };
        match &file.stage {
            Stage::New(_) => self.failed(id, fault),
            // Whole already: it is this lane's alone.
            Stage::Job(_) if file.spans.is_empty() => self.failed(id, fault),
            Stage::Job(job) => {
                let job = Arc::clone(job);
                let ends = file.spans.iter().map(|_| job.fail(fault.clone()));
                match ends.filter(|after| *after == After::Failed).count() {
                    0 => drop(self.leave(id)),
                    _ => self.failed(id, job.fault().unwrap_or(fault)),
                }
            }
        }
    }

    /// Closes what the lane has open of a file and forgets it.
    pub(super) fn leave(&mut self, id: FileId) -> Option<File> {
        let mut file = self.files.remove(&id)?;
        for (at, open) in [(At::Source, file.source.take()), (At::Target, file.target.take())] {
            if let Some(open) = open {
                self.ask(at, Ask::Close(open), id, What::Whatever);
            }
        }
        Some(file)
    }

    /// The file has failed, and nobody else works on it. One that changed is read once more (F9).
    pub(super) fn failed(&mut self, id: FileId, fault: Fault) {
        let Some(file) = self.leave(id) else { return };
        let entry = file.entry();
        let part = self.part_of(&file);
        if let Fault::Differs = fault {
            let again = Entry { differs: true, ..entry.clone() };
            return self.copying.queue.back(again);
        }
        if let (Fault::Changed(..), false) = (&fault, entry.reread) {
            let mut again = File::new(Stage::New(entry.clone()));
            again.old = file.old;
            let id = self.add(again);
            return match part {
                Some(part) => self.ask_for(At::Target, Ask::Remove(part), id, What::PartRemoved),
                None => self.restate(id),
            };
        }
        let changed = matches!(fault, Fault::Changed(..));
        if self.may_be_full(&fault) {
            let mut full = File::new(Stage::New(entry.clone()));
            full.fault = Some(fault);
            let directory = names::split(&entry.to).0.to_vec();
            let id = self.add(full);
            self.ask_for(At::Target, Ask::Statvfs(directory), id, What::Measured);
        } else {
            self.copying.failed(entry, &fault);
        }
        // Large parts are kept: once the cause is gone, the next run goes on with them.
        let kept = match &file.stage {
            Stage::Job(job) => job.number.is_some(),
            Stage::New(_) => self.left(&file).is_some(),
        };
        if !kept || changed {
            self.remove_part(id, part);
        }
    }

    /// What is the source that changed now?
    pub(super) fn restate(&mut self, id: FileId) {
        let Some(file) = self.files.get(&id) else { return };
        let path = file.entry().from.clone();
        self.ask_for(At::Source, Ask::Stat(path), id, What::Restated);
    }

    /// Servers that say no more than "Failure" are asked whether there is room.
    fn may_be_full(&self, fault: &Fault) -> bool {
        let bare = matches!(fault, Fault::Other(why) if why == Status::Failure.text());
        bare && self.ends.target.has().statvfs
    }

    /// How much room there is where a file failed.
    pub(super) fn measured(&mut self, id: FileId, answer: Answered) {
        let Some(file) = self.files.remove(&id) else { return };
        let fault = file.fault.clone().unwrap_or(Fault::Missing);
        let room = match answer {
            Ok(Told::Extended(bytes)) => Statvfs::parse(&bytes).ok(),
            _ => None,
        };
        let full = room.is_some_and(|room| room.bavail.saturating_mul(room.frsize) < FULL);
        let fault = if full { Fault::Full("No space left on device".to_owned()) } else { fault };
        self.copying.failed(file.entry(), &fault);
    }

    fn remove_part(&mut self, id: FileId, part: Option<Vec<u8>>) {
        if let Some(part) = part {
            self.ask(At::Target, Ask::Remove(part), id, What::Whatever);
        }
    }
}
