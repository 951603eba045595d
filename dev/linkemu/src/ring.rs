//! Packets in order of arrival, in one block of memory.
//!
//! slot      room for the largest frame, in one piece; the kernel reads straight into it
//! commit    keeps the first bytes of the slot
//! uncommit  takes the newest one back
//! release   gives back the oldest packet (packets leave in the order they came)
//!
//! When the ring runs empty it starts again from the front, so that a link with a short delay
//! stays within the cache.

/// The largest frame: a 64 KiB packet and its virtio-net header, rounded up.
pub const SLOT: usize = 65_536 + 64;

const ALIGN: usize = 64;

/// A ring of packets.
#[derive(Debug)]
pub struct Ring {
    bytes: Vec<u8>,
    /// Where the oldest packet begins.
    head: usize,
    /// Where the next one will.
    tail: usize,
    packets: usize,
}

impl Ring {
    /// A ring of about `capacity` bytes. Every page is touched now, as a first touch takes the
    /// kernel (and a hypervisor below it) so long that packets would leave late.
    pub fn new(capacity: usize) -> Self {
        let mut bytes = vec![0; capacity.max(4 * SLOT)];
        bytes.iter_mut().step_by(4096).for_each(|byte| *std::hint::black_box(byte) = 1);
        Self { bytes, head: 0, tail: 0, packets: 0 }
    }

    /// Room for one more frame, unless the ring is full.
    pub fn slot(&mut self) -> Option<&mut [u8]> {
        if self.tail >= self.head && self.bytes.len() - self.tail < SLOT {
            if self.head <= SLOT {
                return None;
            }
            self.tail = 0;
        }
        if self.tail < self.head && self.head - self.tail <= SLOT {
            return None;
        }
        self.bytes.get_mut(self.tail..self.tail + SLOT)
    }

    /// Whether `slot` would fail.
    pub fn is_full(&mut self) -> bool {
        self.slot().is_none()
    }

    /// Keeps the first `len` bytes of the slot; returns where the frame is.
    pub fn commit(&mut self, len: usize) -> usize {
        let at = self.tail;
        self.tail += len.next_multiple_of(ALIGN);
        self.packets += 1;
        at
    }

    /// Takes back the newest commit, which returned `at`.
    pub fn uncommit(&mut self, at: usize) {
        self.tail = at;
        self.packets -= 1;
    }

    /// The frame of `len` bytes at `at`.
    pub fn frame(&self, at: usize, len: usize) -> &[u8] {
        &self.bytes[at..at + len]
    }

    /// Gives back the oldest frame, whose place and length were these.
    pub fn release(&mut self, at: usize, len: usize) {
        self.packets -= 1;
        self.head = at + len.next_multiple_of(ALIGN);
        if self.packets == 0 {
            (self.head, self.tail) = (0, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;

    #[test]
    fn frames_come_back_as_they_were_through_many_turns() {
        let mut ring = Ring::new(10 * SLOT);
        let mut queue = VecDeque::new();
        let mut full = 0;
        for i in 0..20_000usize {
            let len = 1 + i * 7919 % (SLOT - 64);
            match ring.slot() {
                Some(slot) => {
                    slot[0] = i as u8;
                    slot[len - 1] = i as u8;
                    queue.push_back((ring.commit(len), len, i as u8));
                }
                None => full += 1,
            }
            if full > 0 && (i % 3 > 0 || ring.is_full()) {
                let (at, len, mark) = queue.pop_front().unwrap();
                let frame = ring.frame(at, len);
                assert_eq!((frame[0], frame[len - 1]), (mark, mark), "packet {i}");
                ring.release(at, len);
            }
        }
        assert!(full > 10);
    }

    #[test]
    fn an_empty_ring_starts_from_the_front() {
        let mut ring = Ring::new(10 * SLOT);
        for _ in 0..100 {
            ring.slot().unwrap();
            let at = ring.commit(5000);
            assert_eq!(at, 0);
            ring.release(at, 5000);
        }
    }
}
