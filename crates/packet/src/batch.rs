//! A batch: up to sixteen packets in one piece of memory, filled, sealed and written in place.
//!
//! ```text
//! slot  | head room 64 | data 32768 | growth | tail room | next slot ...
//!            ^ packet starts here, grown down from the data; padding and tag grow up from it, and
//!              so does what compression makes longer
//! ```
//! Slots have a fixed stride whatever the cipher, so a batch may be filled before it is known
//! under which key it will leave (a rekey may come between), and data stays cache-line aligned.
//!
//! A batch of heads has everything but the data, which goes from its descriptor to the socket
//! without coming by: for packets that are neither encrypted nor authenticated.

use crate::compress::growth;
use crate::error::Error;
use crate::layout::{DATA, HEAD, Layout, TAILROOM};
use crate::stamp::Stamp;
use crypt::CryptError;
use std::io::{IoSlice, IoSliceMut};
use wire::msg;

/// Packets in a bulk batch: 512 KiB of data. Measured, 16 beats 8 by a quarter and 32 by nothing.
pub const SLOTS: usize = 16;

const HEADROOM: usize = 64;

/// Room for a message in a small batch: window adjusts, replies and requests fit.
const SMALL: usize = 512;

/// `byte` number, `uint32` recipient, `uint32` length (RFC 4254 section 5.2).
const DATA_HEAD: usize = 9;
/// The same with `uint32` data type code.
const EXTENDED_HEAD: usize = 13;

/// One packet of a batch: where its payload lies and, once sealed, where it ends on the wire.
#[derive(Debug, Clone, Copy)]
struct Packet {
    start: usize,
    payload: usize,
    end: usize,
    /// Data bytes between head and padding that are not in this memory: a gap.
    outside: usize,
}

impl Packet {
    fn new(start: usize, payload: usize, outside: usize) -> Self {
        Self { start, payload, end: 0, outside }
    }

    /// What lies in memory in front of the gap and behind it; all in front if there is none.
    fn parts(&self) -> [std::ops::Range<usize>; 2] {
        let gap = match self.outside {
            0 => self.end,
            outside => self.start + self.payload - outside,
        };
        [self.start - HEAD..gap, gap..self.end]
    }
}

/// What a batch gives to one write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    /// Slices that were set.
    pub slices: usize,
    /// Bytes behind them that are not in memory; 0 if the batch ends there.
    pub gap: usize,
}

/// Memory for up to [`SLOTS`] packets.
#[derive(Debug)]
pub struct Batch {
    memory: Box<[u8]>,
    stride: usize,
    packets: Vec<Packet>,
    stamp: Stamp,
    /// Heads and padding only.
    heads: bool,
}

impl Batch {
    /// A batch of bulk: sixteen slots of 32 KiB.
    pub fn bulk() -> Self {
        Self::with(SLOTS, DATA)
    }

    /// A batch of bulk whose data is elsewhere.
    pub fn heads() -> Self {
        Self { heads: true, ..Self::with(SLOTS, 0) }
    }

    /// A batch of one message, with room for a short one at least, so that it can be used again.
    pub fn message(payload: &[u8]) -> Self {
        let mut batch = Self::with(1, payload.len().max(SMALL));
        batch.set_message(payload);
        batch
    }

    /// Makes this a batch of one message; false, and nothing changed, if it does not fit.
    pub fn set_message(&mut self, payload: &[u8]) -> bool {
        let end = HEADROOM + payload.len();
        if end + growth(payload.len()) + TAILROOM > self.stride {
            return false;
        }
        let Some(area) = self.memory.get_mut(HEADROOM..end) else { return false };
        area.copy_from_slice(payload);
        self.packets.clear();
        self.packets.push(Packet::new(HEADROOM, payload.len(), 0));
        true
    }

    /// Bytes that leave as they are: the identification string.
    pub fn raw(bytes: &[u8]) -> Self {
        let mut batch = Self::message(bytes);
        for packet in &mut batch.packets {
            // Neither head nor tag: the bytes themselves are the extent.
            packet.start += HEAD;
            packet.end = HEADROOM + bytes.len();
        }
        batch
    }

    fn with(slots: usize, data: usize) -> Self {
        let stride = (HEADROOM + data + growth(data) + TAILROOM).next_multiple_of(64);
        Self {
            memory: vec![0; slots * stride].into_boxed_slice(),
            stride,
            packets: Vec::with_capacity(slots),
            stamp: Stamp::default(),
            heads: false,
        }
    }

    /// Whether this batch is one of bulk's.
    pub fn is_bulk(&self) -> bool {
        self.packets.capacity() >= SLOTS
    }

    /// Whether this is a batch of heads.
    pub fn is_heads(&self) -> bool {
        self.heads
    }

    /// Bytes of memory behind the batch.
    pub fn memory(&self) -> usize {
        self.memory.len()
    }

    /// Bytes of the sealed batch on the wire.
    pub fn sealed_len(&self) -> usize {
        self.packets.iter().map(|p| p.end - (p.start - HEAD) + p.outside).sum()
    }

    /// The data areas for up to `total` bytes in packets of at most `max` bytes each, to be read
    /// into by one system call; returns how many of `areas` were set.
    pub fn areas<'a>(
        &'a mut self,
        total: usize,
        max: usize,
        areas: &mut [IoSliceMut<'a>; SLOTS],
    ) -> usize {
        let max = max.clamp(1, DATA);
        let mut left = total;
        let mut count = 0;
        for (slot, area) in self.memory.chunks_exact_mut(self.stride).zip(areas.iter_mut()) {
            let len = left.min(max);
            let Some(data) = slot.get_mut(HEADROOM..HEADROOM + len) else { break };
            if len == 0 {
                break;
            }
            *area = IoSliceMut::new(data);
            left -= len;
            count += 1;
        }
        count
    }

    /// Turns the first `filled` bytes of the areas asked for with `max`, or so many bytes elsewhere,
    /// into channel data for the peer's channel `recipient`; `code` makes it extended data (RFC
    /// 4254 section 5.2).
    pub fn finish(&mut self, filled: usize, max: usize, recipient: u32, code: Option<u32>) {
        // What stays outside of this memory may be as much as the peer takes.
        let max = if self.heads { max.max(1) } else { max.clamp(1, DATA) };
        self.packets.clear();
        let mut left = filled;
        for (index, slot) in self.memory.chunks_exact_mut(self.stride).enumerate() {
            let data = left.min(max);
            if data == 0 {
                break;
            }
            let head = write_head(slot, data, recipient, code);
            let start = index * self.stride + HEADROOM - head;
            let outside = if self.heads { data } else { 0 };
            self.packets.push(Packet::new(start, head + data, outside));
            left -= data;
        }
    }

    /// Payload bytes of all packets.
    pub fn payload(&self) -> u64 {
        self.packets.iter().map(|p| p.payload as u64).sum()
    }

    /// How many packets are in the batch.
    pub fn len(&self) -> usize {
        self.packets.len()
    }

    /// Whether there is no packet in the batch.
    pub fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    /// Puts another payload in the place of each one: `f` gets its length and all the room there is
    /// from its first byte on, and says how long the new one is.
    pub(crate) fn replace_each(
        &mut self,
        mut f: impl FnMut(usize, &mut [u8]) -> Result<usize, Error>,
    ) -> Result<(), Error> {
        for packet in &mut self.packets {
            let slot_end = (packet.start / self.stride + 1) * self.stride;
            let room = self.memory.get_mut(packet.start..slot_end - TAILROOM);
            let room = room.filter(|_| packet.outside == 0).ok_or(Error::Compression)?;
            packet.payload = f(packet.payload, room)?;
        }
        Ok(())
    }

    /// Gives the batch its numbers; returns the numbers of the packet after it.
    pub fn stamp(&mut self, first: Stamp, layout: Layout) -> Stamp {
        self.stamp = first;
        self.packets.iter().fold(first, |at, packet| {
            at.after(layout.blocks(1 + packet.payload + layout.padding(packet.payload)))
        })
    }

    /// Each packet's numbers and its bytes from `packet_length` to the end of the tag, to be
    /// sealed: `f(stamp, padding length, bytes that are not in memory, bytes)`.
    pub(crate) fn seal_each(
        &mut self,
        layout: Layout,
        mut f: impl FnMut(Stamp, usize, usize, &mut [u8]) -> Result<(), CryptError>,
    ) -> Result<(), CryptError> {
        let mut at = self.stamp;
        for packet in &mut self.packets {
            let padding = layout.padding(packet.payload);
            let start = packet.start - HEAD;
            packet.end = start + layout.packet(packet.payload) - packet.outside;
            if let Some(bytes) = self.memory.get_mut(start..packet.end) {
                f(at, padding, packet.outside, bytes)?;
            }
            at = at.after(layout.blocks(1 + packet.payload + padding));
        }
        Ok(())
    }

    /// The sealed packets from byte `skip` on, for one gathering write that ends at the first gap.
    pub fn sealed<'a>(&'a self, skip: usize, slices: &mut [IoSlice<'a>]) -> Piece {
        let mut skip = skip;
        let mut count = 0;
        for packet in &self.packets {
            let [front, back] = packet.parts();
            for (range, gap) in [(front, packet.outside), (back, 0)] {
                let bytes = self.memory.get(range).unwrap_or_default();
                let left = bytes.get(skip..).unwrap_or_default();
                if let Some(slice) = slices.get_mut(count).filter(|_| !left.is_empty()) {
                    *slice = IoSlice::new(left);
                    count += 1;
                }
                skip = skip.saturating_sub(bytes.len());
                if gap > skip {
                    return Piece { slices: count, gap: gap - skip };
                }
                skip -= gap;
            }
        }
        Piece { slices: count, gap: 0 }
    }
}

/// Writes the channel-data head right before the data area; returns its length.
fn write_head(slot: &mut [u8], data: usize, recipient: u32, code: Option<u32>) -> usize {
    let (number, head) = match code {
        None => (msg::CHANNEL_DATA, DATA_HEAD),
        Some(_) => (msg::CHANNEL_EXTENDED_DATA, EXTENDED_HEAD),
    };
    let mut bytes = [0u8; EXTENDED_HEAD];
    let fields = [Some(recipient), code, u32::try_from(data).ok()];
    if let Some((first, rest)) = bytes.split_first_mut() {
        *first = number;
        for (place, field) in rest.chunks_exact_mut(4).zip(fields.into_iter().flatten()) {
            place.copy_from_slice(&field.to_be_bytes());
        }
    }
    if let (Some(place), Some(bytes)) = (slot.get_mut(HEADROOM - head..HEADROOM), bytes.get(..head))
    {
        place.copy_from_slice(bytes);
    }
    head
}
