//! Messages that wait for our NEWKEYS, in order and bounded (B2, B7).

use crate::{Misbehaved, Outbox};
use std::collections::VecDeque;

/// Most bytes held before login, whatever the peer does. Together with its KEXINIT (32 KiB, in
/// three forms at worst) that stays below 512 KiB.
pub const MAX_BEFORE_LOGIN: usize = 384 * 1024;
/// Most bytes held after login. Bulk data never waits here: this is window adjustments, replies
/// and interactive data, while the peer takes its time over a rekey.
pub const MAX_IN_SESSION: usize = 4 * 1024 * 1024;

/// What a held message costs beside its bytes.
const OVERHEAD: usize = 64;

/// The queue.
#[derive(Debug, Default)]
pub(super) struct Held {
    queue: VecDeque<Vec<u8>>,
    bytes: usize,
}

impl Held {
    /// Takes one more, unless that makes more than `most` bytes.
    pub(super) fn push(&mut self, payload: Vec<u8>, most: usize) -> Result<(), Misbehaved> {
        let bytes = self.bytes + payload.len() + OVERHEAD;
        if bytes > most {
            return Err(Misbehaved::TooMuchHeld(most));
        }
        self.bytes = bytes;
        self.queue.push_back(payload);
        Ok(())
    }

    /// Sends all of them.
    pub(super) fn flush(&mut self, out: &mut Outbox) {
        self.queue.drain(..).for_each(|payload| out.send(payload));
        self.bytes = 0;
    }

    /// How much is held.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }
}
