//! Slabs: memory that bytes are received into, opened in, and written out from.
//!
//! A slab usually never leaves the receiver: what a sink takes at once needs no owner. Of what a
//! sink would not take, little is copied; much keeps its slab alive until it is written.

use std::ops::Range;
use std::sync::Arc;

/// Bytes of a slab: holds the largest packet, and two receives of what a batch sends. Larger
/// ones leave the second-level cache.
pub(crate) const SLAB: usize = 512 * 1024;

/// What one sink holds on to keeps its slab from half a slab on, and is copied below that: a
/// consumer that trickles costs at most twice the bytes it has not taken. The copy, which only
/// happens behind a consumer that lags, is 5 us per 256 KiB.
const KEEP_FROM: usize = SLAB / 2;

/// What a sink holds ranges of. Counted from the start, so that holding allocates nothing.
pub(crate) type Memory = Arc<[u8]>;

/// Received bytes: `start..end` of the memory is not yet taken.
#[derive(Debug)]
pub(crate) struct Slab {
    /// Shared only while a sink holds some of it; then it is not in the receiver.
    memory: Memory,
    start: usize,
    end: usize,
}

impl Slab {
    pub(crate) fn new() -> Self {
        Self::of(SLAB)
    }

    /// A slab of `size` bytes: nothing larger can be received into it.
    pub(crate) fn of(size: usize) -> Self {
        Self { memory: std::iter::repeat_n(0, size).collect(), start: 0, end: 0 }
    }

    /// A slab of memory that was held; `None` while somebody else still holds it.
    pub(crate) fn reclaim(mut memory: Memory) -> Option<Self> {
        Arc::get_mut(&mut memory)?;
        Some(Self { memory, start: 0, end: 0 })
    }

    /// The memory, to hold ranges of it: from now on nothing can be received into it, until
    /// [`Slab::reclaim`].
    pub(crate) fn share(&self) -> Memory {
        Arc::clone(&self.memory)
    }

    fn memory_mut(&mut self) -> &mut [u8] {
        Arc::get_mut(&mut self.memory).unwrap_or_default()
    }

    /// The bytes from `skip` after the first one not yet taken.
    pub(crate) fn left_after(&self, skip: usize) -> &[u8] {
        self.memory.get(self.start + skip..self.end).unwrap_or_default()
    }

    /// A range of the memory.
    pub(crate) fn bytes(&self, range: &Range<usize>) -> &[u8] {
        self.memory.get(range.clone()).unwrap_or_default()
    }

    /// The same, to be opened in place.
    pub(crate) fn bytes_mut(&mut self, range: &Range<usize>) -> &mut [u8] {
        self.memory_mut().get_mut(range.clone()).unwrap_or_default()
    }

    /// The same memory with nothing in it.
    pub(crate) fn emptied(mut self) -> Self {
        (self.start, self.end) = (0, 0);
        self
    }

    /// Where the received bytes end.
    pub(crate) fn end(&self) -> usize {
        self.end
    }

    /// Where the bytes not yet taken begin.
    pub(crate) fn position(&self) -> usize {
        self.start
    }

    /// Passes over `n` bytes.
    pub(crate) fn take(&mut self, n: usize) {
        self.start = (self.start + n).min(self.end);
    }

    /// The room to receive into, after moving a rest of an unfinished packet to the front.
    pub(crate) fn room(&mut self) -> &mut [u8] {
        if self.start > 0 {
            let rest = self.start..self.end;
            self.memory_mut().copy_within(rest, 0);
            self.end -= self.start;
            self.start = 0;
        }
        let end = self.end;
        self.memory_mut().get_mut(end..).unwrap_or_default()
    }

    /// `n` bytes were received into the room.
    pub(crate) fn filled(&mut self, n: usize) {
        self.end = (self.end + n).min(self.memory.len());
    }

    /// A cleared slab that begins with the bytes `other` has not yet taken.
    pub(crate) fn carry_from(&mut self, other: &mut Slab) {
        let rest = other.left_after(0);
        self.start = 0;
        self.end = rest.len();
        if let Some(front) = self.memory_mut().get_mut(..rest.len()) {
            front.copy_from_slice(rest);
        }
        other.end = other.start;
    }
}

/// Data a sink has not taken yet.
#[derive(Debug)]
pub(crate) enum Held {
    /// A range of a slab; the same sink may hold others of it.
    Slab(Memory, Range<usize>),
    /// A copy of a little data.
    Bytes(Vec<u8>, usize),
}

impl Held {
    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Self::Slab(memory, range) => memory.get(range.clone()).unwrap_or_default(),
            Self::Bytes(bytes, from) => bytes.get(*from..).unwrap_or_default(),
        }
    }

    /// Passes over `n` bytes.
    pub(crate) fn advance(&mut self, n: usize) {
        match self {
            Self::Slab(_, range) => range.start = (range.start + n).min(range.end),
            Self::Bytes(_, from) => *from += n,
        }
    }
}

/// Copies that are kept for the next ones: those of a whole floor of a window.
const COPIES: usize = 8;

/// Memory of held data that was taken.
#[derive(Debug, Default)]
pub(crate) struct Freed {
    /// For the receiver.
    pub(crate) slabs: Vec<Slab>,
    copies: Vec<Vec<u8>>,
}

impl Freed {
    /// Takes back what a sink does not hold any more.
    pub(crate) fn put(&mut self, held: Held) {
        match held {
            Held::Slab(memory, _) => self.slabs.extend(Slab::reclaim(memory)),
            Held::Bytes(bytes, _) => {
                if self.copies.len() < COPIES && bytes.capacity() <= SLAB {
                    self.copies.push(bytes);
                }
            }
        }
    }

    /// An empty buffer to copy into.
    pub(crate) fn copy(&mut self) -> Vec<u8> {
        let mut bytes = self.copies.pop().unwrap_or_default();
        bytes.clear();
        bytes
    }
}

/// Whether a sink that left over `bytes` keeps the slab, instead of a copy.
pub(crate) fn keeps_slab(bytes: usize) -> bool {
    bytes >= KEEP_FROM
}
