//! Give back: the channel of a lane is gone, and others do what it could not.

use super::super::job::{After, Job, Stand};
use super::super::meta::Identity;
use super::super::queue::{Entry, Left};
use super::super::ranges::Ranges;
use super::super::side::Fault;
use super::{File, Lane, Stage};

impl Lane<'_> {
    /// The channel is gone: others do what this lane could not.
    pub(super) fn give_everything_back(&mut self) {
        self.copying.report().retries += 1;
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
                let checks = self.proof.is_some_and(|p| p.can_check_later(&self.ends.source));
                for span in &file.spans {
                    let mut rest = span.rest(job.block);
                    if !checks {
                        let sent = if self.sends(Stand::Sent) { rest.sent.total() } else { 0 };
                        self.copying.report().wasted += sent;
                        rest.send_again();
                    }
                    match job.give_back(&rest) {
                        After::Going => self.copying.queue.share(&job),
                        After::Whole => self.back_whole(&job, None),
                        After::Failed => {
                            let fault = job.fault().unwrap_or(Fault::Missing);
                            self.copying.failed(&job.entry, &fault);
                        }
                    }
                }
            }
        }
    }

    /// A file of which every byte is there, for somebody else to put in place.
    fn back_whole(&self, job: &Job, placed: Option<Identity>) {
        let done = Ranges::of(0..job.entry.meta.size);
        let left = Some(Box::new(Left { done, placed }));
        self.copying.queue.back(Entry { left, ..job.entry.clone() });
    }
}
