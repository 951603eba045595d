//! Finds, checks and decrypts packets in received bytes, in place (RFC 4253 section 6).
//!
//! peek   the length of the packet at the front, without changing a byte
//! open   verify and decrypt that packet; yields where its payload lies
//!
//! Nothing of a packet is visible before its tag was checked (invariant P5).

use crate::error::Error;
use crate::key::{Key, Kind};
use crate::layout::HEAD;
use crate::stamp::Stamp;
use crypt::CtrKey;
use std::ops::Range;

/// The key one direction is opened under.
pub type OpenKey = Key<Opening>;

/// What an [`OpenKey`] is for.
pub enum Opening {}

/// A packet found at the front of received bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opened {
    /// The packet's numbers.
    pub stamp: Stamp,
    /// Where the payload lies in the bytes.
    pub payload: Range<usize>,
    /// Bytes of the whole packet, tag included.
    pub total: usize,
}

impl OpenKey {
    /// The `packet_length` of the packet at the front, checked against `limit` (invariant B7);
    /// `None` while too few bytes are there to tell.
    pub fn peek(&self, at: Stamp, bytes: &[u8], limit: u32) -> Result<Option<usize>, Error> {
        let Some(length) = self.length(at, bytes) else { return Ok(None) };
        if !self.layout.accepts(length, limit) {
            return Err(self.bad_length(length));
        }
        Ok(usize::try_from(length).ok())
    }

    fn length(&self, at: Stamp, bytes: &[u8]) -> Option<u32> {
        let field = *bytes.first_chunk::<4>()?;
        match &self.kind {
            Kind::ChaCha(key) => Some(key.peek_length(at.seq, &field)),
            Kind::CtrAndMac(ctr, _) => first_block_length(ctr, at, bytes),
            #[cfg(feature = "none")]
            Kind::Mac(_) | Kind::Bare => Some(u32::from_be_bytes(field)),
            Kind::Plain | Kind::Gcm(_) | Kind::CtrThenMac(..) => Some(u32::from_be_bytes(field)),
        }
    }

    /// A wrong length under a cipher that hides lengths is damage like any other.
    fn bad_length(&self, length: u32) -> Error {
        match &self.kind {
            Kind::ChaCha(_) | Kind::CtrAndMac(..) => Error::Integrity,
            _ => Error::Length(length),
        }
    }

    /// Bytes of a packet on the wire, from its `packet_length`.
    pub fn total(&self, packet_length: usize) -> usize {
        4 + packet_length + self.layout.tag
    }

    /// The numbers of the packet after one with this `packet_length`.
    pub fn next(&self, at: Stamp, packet_length: usize) -> Stamp {
        at.after(self.layout.blocks(packet_length))
    }

    /// Checks and decrypts one whole packet in place; where its payload lies.
    pub fn open(&self, at: Stamp, packet: &mut [u8]) -> Result<Range<usize>, Error> {
        let body_len = packet.len().checked_sub(self.layout.tag).ok_or(Error::Padding)?;
        let (body, tag) = packet.split_at_mut_checked(body_len).ok_or(Error::Padding)?;
        self.open_body(at, body, tag)?;
        payload_of(body)
    }

    fn open_body(&self, at: Stamp, body: &mut [u8], tag: &[u8]) -> Result<(), Error> {
        match &self.kind {
            Kind::Plain => {}
            #[cfg(feature = "none")]
            Kind::Bare => {}
            #[cfg(feature = "none")]
            Kind::Mac(mac) => mac.verify(at.seq, &[body], tag)?,
            Kind::Gcm(key) => {
                let (length, data) = body.split_first_chunk_mut::<4>().ok_or(Error::Padding)?;
                key.open(at.packets, length, data, tag.first_chunk().ok_or(Error::Integrity)?)?;
            }
            Kind::ChaCha(key) => {
                key.open(at.seq, body, tag.first_chunk().ok_or(Error::Integrity)?)?;
            }
            Kind::CtrThenMac(ctr, mac) => {
                mac.verify(at.seq, &[body], tag)?;
                ctr.apply(at.blocks, body.get_mut(4..).ok_or(Error::Padding)?)?;
            }
            Kind::CtrAndMac(ctr, mac) => {
                ctr.apply(at.blocks, body)?;
                mac.verify(at.seq, &[body], tag)?;
            }
        }
        Ok(())
    }
}

/// Where plain CTR encrypts the length too, the first block is decrypted aside to see it.
fn first_block_length(ctr: &CtrKey, at: Stamp, bytes: &[u8]) -> Option<u32> {
    let mut block = *bytes.first_chunk::<16>()?;
    ctr.apply(at.blocks, &mut block).ok()?;
    block.first_chunk().map(|field| u32::from_be_bytes(*field))
}

/// The payload between head and padding; the padding must leave at least one byte of it.
fn payload_of(body: &[u8]) -> Result<Range<usize>, Error> {
    let padding = usize::from(*body.get(HEAD - 1).ok_or(Error::Padding)?);
    let end = body.len().checked_sub(padding).ok_or(Error::Padding)?;
    if padding < 4 || end <= HEAD { Err(Error::Padding) } else { Ok(HEAD..end) }
}

/// One direction's receiving state, for opening serially: the key and the next packet's numbers.
pub struct Inbound {
    key: std::sync::Arc<OpenKey>,
    at: Stamp,
    limit: u32,
}

impl Inbound {
    /// At the start of a connection; packets longer than `limit` are refused.
    pub fn new(limit: u32) -> Self {
        Self { key: std::sync::Arc::new(OpenKey::plain()), at: Stamp::default(), limit }
    }

    /// Raises or lowers the limit on `packet_length`.
    pub fn set_limit(&mut self, limit: u32) {
        self.limit = limit;
    }

    /// The peer's NEWKEYS was handled: everything after it is opened with `key`.
    pub fn rekey(&mut self, key: OpenKey, reset_seq: bool) {
        self.key = std::sync::Arc::new(key);
        self.at = self.at.rekeyed(reset_seq);
    }

    /// Numbers of the next packet.
    pub fn stamp(&self) -> Stamp {
        self.at
    }

    /// The key in use.
    pub fn key(&self) -> &std::sync::Arc<OpenKey> {
        &self.key
    }

    /// The extent of the next packet at the front of `bytes`, whole or not yet: its bytes on the
    /// wire; `None` when even that cannot be told yet.
    pub fn extent(&self, bytes: &[u8]) -> Result<Option<usize>, Error> {
        let length = self.key.peek(self.at, bytes, self.limit)?;
        Ok(length.map(|length| self.key.total(length)))
    }

    /// Opens the packet at the front of `bytes`; `None` while it is not whole.
    pub fn open(&mut self, bytes: &mut [u8]) -> Result<Option<Opened>, Error> {
        let Some(length) = self.key.peek(self.at, bytes, self.limit)? else { return Ok(None) };
        let total = self.key.total(length);
        let Some(packet) = bytes.get_mut(..total) else { return Ok(None) };
        let payload = self.key.open(self.at, packet)?;
        let stamp = self.at;
        self.at = self.key.next(stamp, length);
        Ok(Some(Opened { stamp, payload, total }))
    }

    /// Passes over a packet of which only the front is there: for one whose data goes past memory,
    /// which only packets without cipher and MAC may (N8). Yields its extent; `None` for others.
    pub fn pass(&mut self, bytes: &[u8]) -> Result<Option<usize>, Error> {
        if !self.key.is_bare() {
            return Ok(None);
        }
        let Some(length) = self.key.peek(self.at, bytes, self.limit)? else { return Ok(None) };
        self.at = self.key.next(self.at, length);
        Ok(Some(self.key.total(length)))
    }

    /// Passes over the packet at the front without opening it: for one that a worker opens.
    /// Yields its numbers and extent; `None` while it is not whole.
    pub fn frame(&mut self, bytes: &[u8]) -> Result<Option<(Stamp, usize)>, Error> {
        let Some(length) = self.key.peek(self.at, bytes, self.limit)? else { return Ok(None) };
        let total = self.key.total(length);
        if bytes.len() < total {
            return Ok(None);
        }
        let stamp = self.at;
        self.at = self.key.next(stamp, length);
        Ok(Some((stamp, total)))
    }
}
