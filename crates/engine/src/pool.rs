//! The bounded pool of batches: nothing is allocated once a stream runs, and a source that is
//! ahead of the socket waits here.

use crate::sync::{Lock, Signal};
use packet::Batch;

/// Bulk batches a connection may have under way: 10 x 527 KiB, made as they are needed.
const BULK: usize = 10;

/// Small batches kept for the next message.
const SMALL: usize = 16;

/// Most memory of a small batch that is kept: one long answer must not stay for good.
const KEEP_BELOW: usize = 4096;

#[derive(Default)]
struct Free {
    bulk: Vec<Batch>,
    small: Vec<Batch>,
    made: usize,
    /// The one batch of heads, once there is one, and whether it is under way.
    heads: Option<Batch>,
    passing: bool,
    shut: bool,
}

/// Batches that are not in use.
pub(crate) struct Pool {
    free: Lock<Free>,
    returned: Signal,
}

impl Pool {
    pub(crate) fn new() -> Self {
        let free = Free {
            bulk: Vec::with_capacity(BULK),
            small: Vec::with_capacity(SMALL),
            ..Free::default()
        };
        Self { free: Lock::new(free), returned: Signal::new() }
    }

    /// A bulk batch; waits while all are under way. `None` when the connection is over.
    pub(crate) fn bulk(&self) -> Option<Batch> {
        let mut free = self.returned.wait_until(self.free.lock(), |free| {
            !free.bulk.is_empty() || free.made < BULK || free.shut
        });
        if free.shut {
            return None;
        }
        free.bulk.pop().or_else(|| {
            free.made += 1;
            Some(Batch::bulk())
        })
    }

    /// The batch of heads; waits while it is under way, so that whoever has it knows that no data
    /// of an earlier one is still to be taken. `None` when the connection is over.
    pub(crate) fn heads(&self) -> Option<Batch> {
        let free = self.free.lock();
        let mut free = self.returned.wait_until(free, |free| !free.passing || free.shut);
        if free.shut {
            return None;
        }
        free.passing = true;
        Some(free.heads.take().unwrap_or_else(Batch::heads))
    }

    /// A batch of one small message.
    pub(crate) fn small(&self, payload: &[u8]) -> Batch {
        let used = self.free.lock().small.pop();
        used.and_then(|mut batch| batch.set_message(payload).then_some(batch))
            .unwrap_or_else(|| Batch::message(payload))
    }

    /// Takes a written batch back.
    pub(crate) fn put(&self, batch: Batch) {
        let mut free = self.free.lock();
        if batch.is_heads() {
            free.passing = false;
            free.heads = Some(batch);
            drop(free);
            self.returned.notify_all();
        } else if batch.is_bulk() {
            free.bulk.push(batch);
            drop(free);
            self.returned.notify_all();
        } else if free.small.len() < SMALL && batch.memory() <= KEEP_BELOW {
            free.small.push(batch);
        }
    }

    pub(crate) fn shut(&self) {
        self.free.lock().shut = true;
        self.returned.notify_all();
    }
}

#[cfg(test)]
#[cfg(not(feature = "shuttle"))]
mod tests {
    use super::*;

    #[test]
    fn only_batches_of_little_memory_are_kept() {
        let pool = Pool::new();
        pool.put(Batch::message(&[0; 32 << 10]));
        assert!(pool.free.lock().small.is_empty());
        pool.put(Batch::message(&[0; 9]));
        assert_eq!(pool.free.lock().small.len(), 1);
    }
}
