//! Compression of payloads (RFC 4253 section 6.2), in the one form that is offered:
//! `zlib@openssh.com`, which begins after login.
//!
//! ```text
//! Deflate   a batch's payloads, in place, before it gets its numbers
//! Inflate   one payload, into other memory, after its packet was opened
//! ```
//! Each payload is flushed, so that the peer sees all of it, and what was said before helps with
//! what comes: the one part of the record layer that has a history, and so cannot be shared among
//! threads. A key exchange begins it anew.

use crate::batch::Batch;
use crate::error::Error;
use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};

/// OpenSSH's level.
const LEVEL: u32 = 6;

/// What a payload of `len` bytes may grow by: 5 bytes per 16 KiB of what does not compress, the
/// end of the block before it, and the flush (zlib's `deflateBound`, rounded up).
pub(crate) const fn growth(len: usize) -> usize {
    64 + len / 512
}

/// One direction's sending half.
pub struct Deflate {
    stream: Compress,
    /// A compressed payload on its way back into its packet.
    aside: Vec<u8>,
}

impl Default for Deflate {
    fn default() -> Self {
        let stream = Compress::new(Compression::new(LEVEL), true);
        Self { stream, aside: Vec::new() }
    }
}

impl Deflate {
    /// Compresses the payloads of a batch that has no numbers yet. After an error nothing can
    /// follow.
    pub fn squeeze(&mut self, batch: &mut Batch) -> Result<(), Error> {
        batch.replace_each(|payload, room| {
            self.aside.resize(payload + growth(payload), 0);
            let packed = self.pack(room.get(..payload).unwrap_or_default())?;
            let packed = self.aside.get(..packed).ok_or(Error::Compression)?;
            room.get_mut(..packed.len()).ok_or(Error::Compression)?.copy_from_slice(packed);
            Ok(packed.len())
        })
    }

    fn pack(&mut self, payload: &[u8]) -> Result<usize, Error> {
        let before = self.stream.total_out();
        let status = self.stream.compress(payload, &mut self.aside, FlushCompress::Partial);
        let packed = usize::try_from(self.stream.total_out() - before).unwrap_or(usize::MAX);
        // A full buffer may have left something behind.
        if !matches!(status, Ok(Status::Ok)) || packed >= self.aside.len() {
            return Err(Error::Compression);
        }
        Ok(packed)
    }
}

/// One direction's receiving half.
pub struct Inflate {
    stream: Decompress,
}

impl Default for Inflate {
    fn default() -> Self {
        Self { stream: Decompress::new(true) }
    }
}

impl Inflate {
    /// The payload behind a compressed one, at the front of `room`; its length. One that is longer
    /// than that is refused, however little of it came (invariant B9).
    pub fn expand(&mut self, payload: &[u8], room: &mut [u8]) -> Result<usize, Error> {
        let (taken, given) = (self.stream.total_in(), self.stream.total_out());
        let status = self.stream.decompress(payload, room, FlushDecompress::Sync);
        let taken = usize::try_from(self.stream.total_in() - taken).unwrap_or(usize::MAX);
        let given = usize::try_from(self.stream.total_out() - given).unwrap_or(usize::MAX);
        match status {
            Ok(Status::Ok) if taken == payload.len() && (1..room.len()).contains(&given) => {
                Ok(given)
            }
            _ => Err(Error::Compression),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::SLOTS;
    use crate::layout::{DATA, HEAD, Layout, MAX_PACKET};
    use std::io::IoSliceMut;

    const ROOM: usize = MAX_PACKET as usize + 1;

    /// What the packets of a batch hold.
    fn payloads(batch: &mut Batch) -> Vec<Vec<u8>> {
        let mut seen = Vec::new();
        let layout = Layout::PLAIN;
        batch
            .seal_each(layout, |_, padding, _, bytes| {
                seen.push(bytes[HEAD..bytes.len() - padding].to_vec());
                Ok(())
            })
            .unwrap();
        seen
    }

    fn message(deflate: &mut Deflate, payload: &[u8]) -> Vec<u8> {
        let mut batch = Batch::message(payload);
        deflate.squeeze(&mut batch).unwrap();
        payloads(&mut batch).concat()
    }

    fn noise(length: usize) -> Vec<u8> {
        let mut state = 1u32;
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as u8
        };
        (0..length).map(|_| next()).collect()
    }

    fn text(length: usize) -> Vec<u8> {
        (0..).flat_map(|n: u32| n.to_string().into_bytes()).take(length).collect()
    }

    /// RFC 4253 section 6.2: the peer sees all of a payload with its packet.
    #[test]
    fn each_payload_comes_back_with_its_own_packet() {
        let (mut deflate, mut inflate) = (Deflate::default(), Inflate::default());
        let mut room = vec![0; ROOM];
        for length in [1, 2, 9, 100, 511, 512, 513, 4096, 32777, 100_000, ROOM - 1] {
            for payload in [noise(length), text(length), vec![7; length], noise(length)] {
                let packed = message(&mut deflate, &payload);
                assert!(packed.len() <= length + growth(length), "{length}");
                let n = inflate.expand(&packed, &mut room).unwrap();
                assert!(room[..n] == payload, "{length}");
            }
        }
    }

    /// Every packet of a full batch, of what grows and of what shrinks, under any room for it.
    #[test]
    fn a_batch_is_compressed_in_place() {
        for data in [noise(SLOTS * DATA), text(SLOTS * DATA)] {
            let (mut deflate, mut inflate) = (Deflate::default(), Inflate::default());
            let mut room = vec![0; ROOM];
            for _ in 0..3 {
                let mut batch = Batch::bulk();
                let mut areas: [_; SLOTS] = std::array::from_fn(|_| IoSliceMut::new(&mut []));
                assert_eq!(batch.areas(data.len(), DATA, &mut areas), SLOTS);
                areas.iter_mut().zip(data.chunks(DATA)).for_each(|(a, d)| a.copy_from_slice(d));
                batch.finish(data.len(), DATA, 5, Some(1));
                let plain = payloads(&mut batch);
                deflate.squeeze(&mut batch).unwrap();
                for (packed, plain) in payloads(&mut batch).iter().zip(&plain) {
                    let n = inflate.expand(packed, &mut room).unwrap();
                    assert!(room[..n] == *plain);
                }
            }
        }
    }

    /// B9: a kilobyte that would become a megabyte.
    #[test]
    fn b9_what_expands_beyond_a_packet_is_refused() {
        let mut room = vec![0; ROOM];
        for (length, fits) in [(ROOM - 1, true), (ROOM, false), (1 << 20, false)] {
            let bomb = message(&mut Deflate::default(), &vec![0; length]);
            assert!(bomb.len() < 2000);
            let expanded = Inflate::default().expand(&bomb, &mut room);
            let want = if fits { Ok(length) } else { Err(Error::Compression) };
            assert_eq!(expanded, want);
        }
    }

    #[test]
    fn damage_is_refused_and_never_more_than_an_error() {
        let packed = message(&mut Deflate::default(), &text(3000));
        let mut room = vec![0; ROOM];
        for at in 0..packed.len() {
            for bit in 0..8 {
                let mut damaged = packed.clone();
                damaged[at] ^= 1 << bit;
                let _ = Inflate::default().expand(&damaged, &mut room);
            }
        }
        for nothing in [&b""[..], b"\x78", b"not zlib at all"] {
            let expanded = Inflate::default().expand(nothing, &mut room);
            assert_eq!(expanded, Err(Error::Compression), "{nothing:?}");
        }
    }

    #[test]
    fn data_that_does_not_come_by_cannot_be_compressed() {
        let mut batch = Batch::heads();
        batch.finish(100_000, 128 << 10, 5, None);
        assert_eq!(Deflate::default().squeeze(&mut batch), Err(Error::Compression));
    }
}
