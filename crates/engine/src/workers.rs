//! Workers: threads that seal batches and open slabs where cores are idle. What they do is what
//! a source or the receiver does itself without them; only the thread differs.

use crate::receiver::Spans;
use crate::slab::Slab;
use crate::tx::{Ticket, Tx};
use crossbeam_channel::{Receiver, Sender, bounded};
use packet::Batch;
use std::io;
use std::sync::Arc;
use std::time::Instant;

/// Jobs that wait for a worker; the pools bound them more tightly.
const QUEUE: usize = 64;

enum Job {
    Seal(Ticket, Batch),
    Open(Spans, Slab, Sender<(Spans, Slab)>),
}

/// The threads and the queue they take from.
pub(crate) struct Workers {
    jobs: Sender<Job>,
}

/// A slab that a worker opens.
pub(crate) struct Opening(Receiver<(Spans, Slab)>);

impl Opening {
    /// Waits for the worker; `None` only if it died.
    pub(crate) fn wait(self) -> Option<(Spans, Slab)> {
        self.0.recv().ok()
    }
}

impl Workers {
    /// Starts `count` threads; they end when this is dropped.
    pub(crate) fn start(count: usize, tx: &Arc<Tx>) -> io::Result<Self> {
        let (jobs, queue) = bounded(QUEUE);
        for _ in 0..count {
            let (queue, tx) = (queue.clone(), Arc::clone(tx));
            std::thread::Builder::new()
                .name("crypto".to_owned())
                .stack_size(256 * 1024)
                .spawn(move || queue.iter().for_each(|job| work(job, &tx)))?;
        }
        Ok(Self { jobs })
    }

    /// Seals on a worker; the tx thread writes.
    pub(crate) fn seal(&self, ticket: Ticket, batch: Batch) {
        // Workers end only after this does.
        let _ = self.jobs.send(Job::Seal(ticket, batch));
    }

    /// Opens on a worker.
    pub(crate) fn open(&self, spans: Spans, slab: Slab) -> Opening {
        let (done, result) = bounded(1);
        let _ = self.jobs.send(Job::Open(spans, slab, done));
        Opening(result)
    }
}

fn work(job: Job, tx: &Tx) {
    let began = Instant::now();
    match job {
        Job::Seal(ticket, batch) => {
            // A failure has shut the connection already.
            let _ = tx.seal(ticket, batch);
            tx.wake();
        }
        Job::Open(mut spans, mut slab, done) => {
            spans.open(&mut slab);
            let _ = done.send((spans, slab));
        }
    }
    let nanos = began.elapsed().as_nanos();
    tx.ledger().worked.add(u64::try_from(nanos).unwrap_or(u64::MAX));
}
