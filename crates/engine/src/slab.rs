//! Slabs: memory that bytes are received into, opened in, and written out from.
//!
//! A slab usually never leaves the receiver: what a sink takes at once needs no owner. Only what
//! a sink would not take keeps its slab alive, shared, until it is written.

use std::ops::Range;
use std::sync::Arc;

/// Bytes of a slab: holds the largest packet, and two receives of what a batch sends. Larger
/// ones leave the second-level cache.
pub(crate) const SLAB: usize = 512 * 1024;

/// What a sink holds on to is copied out of its slab when it is less than this, so that a few
/// bytes never keep half a megabyte.
const COPY_BELOW: usize = 64 * 1024;

/// What sinks hold ranges of. Counted from the start, so that holding allocates nothing.
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

    /// The memory, to hold ranges of it.
    pub(crate) fn into_memory(self) -> Memory {
        self.memory
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
    /// Ranges of a slab that others may hold ranges of, too.
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

/// Whether `bytes` of leftover are better copied than kept in place.
pub(crate) fn worth_copying(bytes: usize) -> bool {
    bytes < COPY_BELOW
}
