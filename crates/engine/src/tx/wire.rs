//! Wire: what a connection is written to, a descriptor or a test.

use crate::fd::Fd;
use std::io::{self, IoSlice};
use std::time::Instant;

/// What a connection is written to: a descriptor, or a test.
pub(crate) trait Wire {
    /// [`Fd::write`].
    fn write(&self, slices: &[IoSlice<'_>]) -> io::Result<usize>;
    /// [`Fd::write_by`].
    fn write_by(&self, slices: &[IoSlice<'_>], deadline: Instant) -> io::Result<usize>;
    /// [`Fd::write_now`].
    fn write_now(&self, slices: &[IoSlice<'_>]) -> io::Result<Option<usize>>;
    /// [`Fd::write_more`].
    fn write_more(&self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        self.write(slices)
    }
    /// [`Fd::pass`].
    fn pass(&self, from: &Fd, len: usize) -> io::Result<usize>;
    /// [`Fd::shutdown`].
    fn end(&self) {}
}

impl Wire for Fd {
    fn write(&self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        Fd::write(self, slices)
    }

    fn write_by(&self, slices: &[IoSlice<'_>], deadline: Instant) -> io::Result<usize> {
        Fd::write_by(self, slices, deadline)
    }

    fn write_now(&self, slices: &[IoSlice<'_>]) -> io::Result<Option<usize>> {
        Fd::write_now(self, slices)
    }

    fn write_more(&self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        Fd::write_more(self, slices)
    }

    fn pass(&self, from: &Fd, len: usize) -> io::Result<usize> {
        Fd::pass(self, from, len)
    }

    fn end(&self) {
        Fd::shutdown(self);
    }
}
