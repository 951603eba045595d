//! Pieces: what was received, in the pieces it lies in, taken from the front.

use std::io::IoSlice;

/// A position in received pieces.
pub(super) struct Pieces<'a, 'b> {
    pieces: &'a [IoSlice<'b>],
    /// Bytes of the first piece that were taken.
    at: usize,
    left: usize,
}

impl<'a, 'b> Pieces<'a, 'b> {
    pub(super) fn new(pieces: &'a [IoSlice<'b>]) -> Self {
        Self { pieces, at: 0, left: pieces.iter().map(|piece| piece.len()).sum() }
    }

    pub(super) fn left(&self) -> usize {
        self.left
    }

    /// Moves bytes to the end of `to` until it holds `whole`; whether it does.
    pub(super) fn gather(&mut self, to: &mut Vec<u8>, whole: usize) -> bool {
        while to.len() < whole && self.left > 0 {
            let mut one = [IoSlice::new(&[])];
            let (_, bytes) = self.front(whole - to.len(), &mut one);
            one.iter().for_each(|slice| to.extend_from_slice(slice));
            self.advance(bytes);
        }
        to.len() >= whole
    }

    /// Shows up to `most` bytes at the front in up to `slices.len()` pieces: the pieces and bytes
    /// that it shows.
    pub(super) fn front(&self, most: usize, slices: &mut [IoSlice<'a>]) -> (usize, usize) {
        let (mut count, mut bytes, mut skip) = (0, 0, self.at);
        let mut places = slices.iter_mut();
        for piece in self.pieces {
            let rest = piece.get(skip..).unwrap_or_default();
            let rest = rest.get(..most - bytes).unwrap_or(rest);
            skip = 0;
            if rest.is_empty() {
                continue;
            }
            let Some(place) = places.next() else { break };
            *place = IoSlice::new(rest);
            count += 1;
            bytes += rest.len();
            if bytes == most {
                break;
            }
        }
        (count, bytes)
    }

    /// So many bytes are taken.
    pub(super) fn advance(&mut self, bytes: usize) {
        self.left = self.left.saturating_sub(bytes);
        self.at += bytes;
        while let Some((first, rest)) = self.pieces.split_first() {
            if self.at < first.len() {
                break;
            }
            self.at -= first.len();
            self.pieces = rest;
        }
    }
}
