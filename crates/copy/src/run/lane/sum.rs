//! Sum: a file that is whole is compared with its source by the server's sums (`--verify`), before
//! it gets its attributes and its name.

use super::super::job::{Job, Way};
use super::super::queue::{Entry, Left};
use super::super::ranges::Ranges;
use super::super::side::{Fault, Open, Side};
use super::super::sums::{Question, Verdict};
use super::{At, File, FileId, Lane, What};
use std::sync::Arc;

impl Lane<'_> {
    /// Whether a file that is begun will be compared that way, and not piece by piece.
    pub(super) fn is_summed(&self, file: &File) -> bool {
        let Side::There(there) = &self.ends.target else { return false };
        let local = matches!(file.source, Some(Open::Local(_)));
        let entry = file.entry();
        let special = entry.unsummed || self.is_device(file) || entry.meta.size == 0;
        self.copying.sums.is_some() && local && !special && !there.has().hashes
    }

    /// Waits for the verdict, or acts on it: true if the file is not to be finished now.
    pub(super) fn needs_sum(&mut self, id: FileId, job: &Arc<Job>) -> bool {
        match job.sum.get() {
            _ if !job.summed => false,
            None => self.ask_for_sum(id, job),
            Some(Verdict::Same) => {
                if let Some(file) = self.files.get_mut(&id) {
                    file.verified = true;
                }
                false
            }
            Some(Verdict::Differs) if job.way == Way::Compare => {
                self.failed(id, Fault::Differs);
                true
            }
            Some(Verdict::Differs) => {
                let why = "the target's content differs from the source's";
                self.failed(id, Fault::Changed(At::Target, why));
                true
            }
            Some(Verdict::Unknown) => {
                self.read_back_instead(id, job);
                true
            }
        }
    }

    fn ask_for_sum(&mut self, id: FileId, job: &Arc<Job>) -> bool {
        let (Some(sums), Side::There(there)) = (&self.copying.sums, &self.ends.target) else {
            return false;
        };
        let path = there.at(&job.part);
        let Some(file) = self.files.get_mut(&id) else { return true };
        let Some(Open::Local(source)) = &file.source else { return false };
        let (source, tell, job) = (Arc::clone(source), self.ends.tell.clone(), Arc::clone(job));
        file.waits += 1;
        let token = self.token(id, What::Summed);
        sums.ask(Question { path, file: source, job, tell, token });
        true
    }

    /// Once more from the queue: every byte is there, and is compared by reading.
    fn read_back_instead(&mut self, id: FileId, job: &Job) {
        if self.leave(id).is_none() {
            return;
        }
        let done = Ranges::of(0..job.entry.meta.size);
        let left = (job.way != Way::Compare).then(|| Box::new(Left { done, ..Left::default() }));
        self.copying.queue.back(Entry { unsummed: true, left, ..job.entry.clone() });
    }
}
