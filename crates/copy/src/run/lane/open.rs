//! Open: a share of a file that another lane has begun.

use super::super::job::{Job, Share, Way};
use super::super::side::{Answered, Ask, Fault, Told};
use super::span::Span;
use super::{At, File, FileId, Lane, Stage, What};
use std::sync::Arc;

impl Lane<'_> {
    /// A share of a file that is open somewhere, perhaps here.
    pub(super) fn join(&mut self, job: &Arc<Job>, share: Share) {
        let same = |file: &File| matches!(&file.stage, Stage::Job(own) if Arc::ptr_eq(own, job));
        let known = self.files.iter().find(|(_, file)| same(file)).map(|(id, _)| *id);
        match known {
            Some(id) => self.add_span(id, share),
            None => self.join_anew(job, share),
        }
        self.pump();
    }

    fn join_anew(&mut self, job: &Arc<Job>, share: Share) {
        let id = self.add(File::new(Stage::Job(Arc::clone(job))));
        self.add_span(id, share);
        let open = match job.way {
            Way::Device => Ask::Feed(job.part.clone()),
            Way::InPlace => Ask::Overwrite(job.part.clone()),
            Way::Compare => Ask::Open(job.part.clone()),
            Way::Part if job.read_only => Ask::Open(job.part.clone()),
            Way::Part => Ask::Reopen(job.part.clone()),
        };
        self.ask_for(At::Source, Ask::Open(job.entry.from.clone()), id, What::SourceOpened);
        self.ask_for(At::Target, open, id, What::TargetOpened);
    }

    /// Both ends are open. Another file may have taken the source's name since the first lane opened
    /// it: nothing of this one counts before it is known to be the same (F9). Data moves meanwhile.
    pub(super) fn joined(&mut self, id: FileId) {
        self.look_at_source(id);
        self.moving.push_back(id);
        self.pump();
    }

    /// Content that is made up has no source to be looked at.
    pub(super) fn look_at_source(&mut self, id: FileId) {
        if self.is_test() {
            return;
        }
        let Some(file) = self.files.get_mut(&id) else { return };
        if let Some(source) = file.source.clone() {
            file.unknown = true;
            self.ask(At::Source, Ask::Fstat(source), id, What::SourceKnown);
        }
    }

    /// The source that this lane has open was looked at.
    pub(super) fn known(&mut self, id: FileId, answer: Answered) {
        let Some(file) = self.files.get_mut(&id) else { return };
        let listed = file.entry().meta.identity();
        match answer {
            Ok(Told::Meta(now)) if now.identity() == listed => {}
            Ok(_) => {
                return self.fail(
                    id,
                    Fault::Changed(At::Source, "the source changed while it was copied"),
                );
            }
            Err(fault) => return self.fail(id, fault),
        }
        file.unknown = false;
        let there = file.spans.iter().filter(|span| span.is_moved() && span.waits == 0);
        for span in there.map(|span| span.id).collect::<Vec<_>>() {
            self.prove(id, span);
        }
        self.moving.push_back(id);
        self.pump();
    }

    fn add_span(&mut self, id: FileId, share: Share) {
        let Some(file) = self.files.get_mut(&id) else { return };
        file.next_span += 1;
        file.spans.push(Span::new(file.next_span, share));
        self.moving.push_back(id);
    }

    /// A share of a file that is open here; false if there is none left.
    pub(super) fn take_share(&mut self, id: FileId) -> bool {
        let Some(File { stage: Stage::Job(job), .. }) = self.files.get(&id) else { return false };
        let Some(share) = job.take(self.copying.lanes()) else { return false };
        self.add_span(id, share);
        true
    }
}
