//! Areas: the data areas of a batch, seen as one piece of memory that is filled from its front.

use std::io::{self, IoSliceMut};

/// Areas given to one system call: a batch's packets.
pub(super) const PIECES: usize = 16;

/// Filled from the front, in any number of steps.
pub(super) struct Areas<'a, 'b> {
    areas: &'a mut [IoSliceMut<'b>],
    filled: usize,
    len: usize,
}

impl<'a, 'b> Areas<'a, 'b> {
    pub(super) fn new(areas: &'a mut [IoSliceMut<'b>]) -> Self {
        let len = areas.iter().map(|area| area.len()).sum();
        Self { areas, filled: 0, len }
    }

    pub(super) fn filled(&self) -> usize {
        self.filled
    }

    pub(super) fn left(&self) -> usize {
        self.len - self.filled
    }

    /// Copies what fits; the bytes copied.
    pub(super) fn copy(&mut self, bytes: &[u8]) -> usize {
        let len = bytes.len().min(self.left());
        let mut from = bytes;
        self.pieces(0, len, |piece| {
            let (now, later) = from.split_at(piece.len());
            piece.copy_from_slice(now);
            from = later;
        });
        self.filled += len;
        len
    }

    /// Leaves room for a head of `head` bytes and lets `read` fill up to `len` bytes behind it, by
    /// pieces as one system call takes them; the bytes read. Nothing counts as filled yet.
    pub(super) fn read(
        &mut self,
        head: usize,
        len: usize,
        mut read: impl FnMut(usize, &mut [IoSliceMut<'_>]) -> io::Result<usize>,
    ) -> io::Result<usize> {
        let mut done = 0;
        while done < len {
            let mut slices: [IoSliceMut<'_>; PIECES] =
                std::array::from_fn(|_| IoSliceMut::new(&mut []));
            let mut places = slices.iter_mut();
            self.pieces(head + done, len - done, |piece| {
                if let Some(place) = places.next() {
                    *place = IoSliceMut::new(piece);
                }
            });
            let count = PIECES - places.len();
            match read(done, slices.get_mut(..count).unwrap_or_default()) {
                Ok(0) => break,
                Ok(n) => done += n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        Ok(done)
    }

    /// Shows `len` bytes behind a head, as they were read.
    pub(super) fn look(&mut self, head: usize, len: usize, mut see: impl FnMut(&[u8])) {
        self.pieces(head, len, |piece| see(piece));
    }

    /// Puts a head in front of `len` bytes that [`Areas::read`] read: both count as filled.
    pub(super) fn finish(&mut self, head: &[u8], len: usize) {
        self.copy(head);
        self.filled += len;
    }

    /// The pieces of memory that make up `len` bytes, `skip` bytes behind what is filled.
    fn pieces<'s>(&'s mut self, skip: usize, len: usize, mut each: impl FnMut(&'s mut [u8])) {
        let mut start = self.filled + skip;
        let mut left = len;
        for area in self.areas.iter_mut() {
            if start >= area.len() {
                start -= area.len();
                continue;
            }
            let end = area.len().min(start.saturating_add(left));
            if let Some(piece) = area.get_mut(start..end).filter(|piece| !piece.is_empty()) {
                left -= piece.len();
                each(piece);
            }
            start = 0;
            if left == 0 {
                break;
            }
        }
    }
}
