//! Give back: the channel of a lane is gone, and others do what it could not.

use super::super::job::{After, Job, Rest, Stand, Way};
use super::super::meta::Identity;
use super::super::queue::{Entry, Left};
use super::super::ranges::Ranges;
use super::super::side::Fault;
use super::span::Span;
use super::{File, Lane, Stage};

impl Lane<'_> {
    /// The channel is gone: others do what this lane could not.
    pub(super) fn give_everything_back(&mut self) {
        for (_, batch) in std::mem::take(&mut self.batches) {
            for entry in batch.into_entries() {
                if self.ends.target.is_remote() {
                    self.copying.late().orphaned.push(entry.to.clone());
                }
                self.copying.queue.back(entry);
            }
        }
        for (_, file) in std::mem::take(&mut self.files) {
            self.give_back(file);
        }
    }

    fn give_back(&self, file: File) {
        if self.ends.target.is_remote() && !self.is_in_place(&file) {
            self.copying.late().orphaned.push(file.entry().to.clone());
        }
        match file.stage {
            Stage::New(entry) => self.copying.queue.back(entry),
            Stage::Job(job) if file.spans.is_empty() => {
                // Whole, and about to be put in place.
                if job.is_over() {
                    let placed = file.seen.1.filter(|_| file.placing).map(|meta| meta.identity());
                    self.back_whole(&job, placed);
                }
            }
            Stage::Job(job) => {
                for span in &file.spans {
                    let rest = self.rest(&job, span, file.unknown);
                    match job.give_back(&rest) {
                        After::Going => self.copying.queue.share(&job),
                        After::Whole => self.back_whole(&job, None),
                        After::Failed => self.back_failed(&job),
                    }
                }
            }
        }
    }

    /// What others have to do about a span. What nobody can compare later is done again: all of it
    /// where it was to be compared, or came from a source that was not yet known.
    fn rest(&self, job: &Job, span: &Span, unknown: bool) -> Rest {
        let mut rest = span.rest(job.block);
        let checks = self.proof.is_some_and(|p| p.can_check_later(&self.ends.source));
        if job.way == Way::Compare || checks && !job.summed {
            return rest;
        }
        let believed = !unknown && (self.proof.is_none() || job.summed);
        let again = rest.sent.total() + if believed { 0 } else { rest.moved.total() };
        self.copying.report().wasted += if self.sends(Stand::Sent) { again } else { 0 };
        rest.send_again(believed);
        rest
    }

    /// A file that failed, and the lane that would have told of it is gone.
    fn back_failed(&self, job: &Job) {
        let entry = job.entry.clone();
        match job.fault().unwrap_or(Fault::Missing) {
            // It is found again by who begins anew.
            Fault::Changed(..) if !entry.reread => self.copying.queue.back(entry),
            Fault::Differs => self.copying.queue.back(Entry { differs: true, ..entry }),
            fault => self.copying.failed(&entry, &fault),
        }
    }

    /// A file of which every byte is there, for somebody else to put in place.
    fn back_whole(&self, job: &Job, placed: Option<Identity>) {
        let done = Ranges::of(0..job.entry.meta.size);
        let left = Box::new(Left { done, placed, ready: placed.is_some() });
        // What it did not tell of is read once more.
        let left = (job.size == job.entry.meta.size).then_some(left);
        self.copying.queue.back(Entry { left, ..job.entry.clone() });
    }
}
