//! Inlet: the way of much data into a pipe.
//!
//! ```text
//! slab  --send-->  socket pair  --splice-->  pipe
//!        (copied)                 (by page)
//! ```
//! write(2) takes the pages of a pipe one by one, 4 KiB each, and gives them back as the reader
//! goes on: 0.43 CPU-s per GB for both ends of a pipe, of which the copies are the smaller part. A
//! socket takes 32 KiB at once, and splice(2) hands such pages on: 0.22. They are the kernel's own,
//! so nobody can change them afterwards, as one could with pages of ours (vmsplice).

use crate::fd::Fd;
use rustix::event::{PollFd, PollFlags};
use rustix::net::sockopt::set_socket_send_buffer_size;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use std::io::{self, IoSlice};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// Size of a pipe at first, unless it is larger.
const PIPE: usize = 256 << 10;

/// Its size where no pair helps: what an ordinary user may have (fs.pipe-max-size). What comes from
/// a connection by page takes a page for each segment.
const LARGEST_PIPE: usize = 1 << 20;

/// Its size with a socket pair: 128 pages, each of 4 to 32 KiB, are up to 2.3 MiB of data. Splice
/// moves at most what so many pages of 4 KiB would hold: a slab in one call.
const LARGE_PIPE: usize = 512 << 10;

/// What a reader must have taken, and how fast, before it is worth the pair: the kernel holds more
/// for it then, and a window follows what is taken.
const PROOF: usize = 4 << 20;
const WITHIN: Duration = Duration::from_millis(250);

/// What the kernel lets wait between send and splice: a slab. It doubles what it is told.
const BETWEEN: usize = 256 << 10;

/// A pipe to write to.
pub(crate) struct Inlet {
    pipe: Fd,
    between: Between,
    /// Bytes taken that are not in the pipe yet.
    inside: usize,
    /// Something came from a connection by page.
    passed: bool,
}

/// The socket pair, made for a reader that is fast.
enum Between {
    /// It took so much since then.
    Unproven {
        since: Instant,
        taken: usize,
    },
    Pair {
        near: Fd,
        far: Fd,
    },
    /// This kernel or sandbox cannot: everything is written.
    Impossible,
}

impl Inlet {
    pub(crate) fn new(pipe: Fd) -> Self {
        pipe.enlarge_pipe(PIPE);
        Self { pipe, between: Between::unproven(), inside: 0, passed: false }
    }

    pub(crate) fn pipe(&self) -> &Fd {
        &self.pipe
    }

    /// Bytes that were taken and are not in the pipe.
    pub(crate) fn inside(&self) -> usize {
        self.inside
    }

    /// What to poll for room.
    pub(crate) fn room(&self) -> PollFd<'_> {
        PollFd::new(&self.pipe, PollFlags::OUT)
    }

    /// Bytes on their way to the reader.
    pub(crate) fn unread(&self) -> usize {
        self.inside + self.pipe.passable()
    }

    /// Moves up to `len` bytes from a connection into the pipe ([`Fd::take_from`]).
    pub(crate) fn take_from(&mut self, connection: &Fd, len: usize) -> io::Result<Option<usize>> {
        if !std::mem::replace(&mut self.passed, true) {
            self.pipe.enlarge_pipe(LARGEST_PIPE);
        }
        self.pipe.take_from(connection, len)
    }

    /// Takes what fits without waiting.
    pub(crate) fn take(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        if !self.flush()? {
            return Ok(0);
        }
        // Little data, too: the kernel takes writes that must not wait (RWF_NOWAIT) from no pipe that
        // was spliced to.
        let Between::Pair { near, .. } = &self.between else { return self.write(pieces) };
        let taken = near.write_now(pieces)?.unwrap_or(0);
        self.inside = taken;
        // It was taken. If the pipe is broken, the next flush says so.
        let _ = self.flush();
        Ok(taken)
    }

    fn write(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        let written = self.pipe.write_now(pieces)?.unwrap_or(0);
        if self.between.is_proven(written) {
            let pair = pair(&self.pipe);
            self.pipe.enlarge_pipe(if pair.is_ok() { LARGE_PIPE } else { LARGEST_PIPE });
            self.between = pair.unwrap_or(Between::Impossible);
        }
        Ok(written)
    }

    /// Moves what is inside into the pipe; whether that was all of it. When this fails, what is
    /// inside is lost.
    pub(crate) fn flush(&mut self) -> io::Result<bool> {
        let Between::Pair { far, .. } = &self.between else { return Ok(true) };
        while self.inside > 0 {
            match self.pipe.take_from(far, self.inside)? {
                Some(moved) if moved > 0 => self.inside = self.inside.saturating_sub(moved),
                _ => return Ok(false),
            }
        }
        Ok(true)
    }
}

#[cfg(test)]
impl Inlet {
    /// One whose reader was fast.
    pub(crate) fn proven(pipe: Fd) -> Self {
        let between = pair(&pipe).unwrap();
        Self { between, ..Self::new(pipe) }
    }
}

impl Between {
    fn unproven() -> Self {
        Self::Unproven { since: Instant::now(), taken: 0 }
    }

    /// The reader took so many bytes more: whether that is the proof.
    fn is_proven(&mut self, more: usize) -> bool {
        let Self::Unproven { since, taken } = self else { return false };
        *taken += more;
        if *taken < PROOF {
            return false;
        }
        let in_time = since.elapsed() <= WITHIN;
        *self = Self::unproven();
        in_time
    }
}

/// A socket pair whose data splice moves: tried with one byte and another pipe, as ours may be full,
/// and with ours and nothing, as it may be none of the kernel's (gVisor).
fn pair(pipe: &Fd) -> io::Result<Between> {
    let flags = SocketFlags::CLOEXEC;
    let (near, far) = socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    set_socket_send_buffer_size(&near, BETWEEN)?;
    let (near, far) = (Fd::from(near), Fd::from(far));
    let (_reader, writer) = io::pipe()?;
    near.write_now(&[IoSlice::new(b"?")])?;
    let moved = Fd::from(OwnedFd::from(writer)).take_from(&far, 1)?;
    match (moved, pipe.take_from(&far, 1)?) {
        (Some(1), None) => Ok(Between::Pair { near, far }),
        _ => Err(io::ErrorKind::Unsupported.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{PipeReader, Read};

    /// Bytes in an order that shows what is missing, doubled or moved.
    fn bytes(len: usize) -> Vec<u8> {
        (0..len).map(|i| u8::try_from((i ^ (i >> 8) ^ (i >> 16)) & 0xff).unwrap()).collect()
    }

    fn inlet() -> (PipeReader, Inlet) {
        let (reader, writer) = io::pipe().unwrap();
        (reader, Inlet::new(Fd::from(OwnedFd::from(writer))))
    }

    /// One whose reader was fast.
    fn proven() -> (PipeReader, Inlet) {
        let (reader, writer) = io::pipe().unwrap();
        (reader, Inlet::proven(OwnedFd::from(writer).into()))
    }

    fn pieces(bytes: &[u8]) -> Vec<IoSlice<'_>> {
        bytes.chunks(30_000).take(16).map(IoSlice::new).collect()
    }

    /// Takes from `reader` in its own rhythm, to the end.
    fn collect(mut reader: PipeReader) -> std::thread::JoinHandle<Vec<u8>> {
        std::thread::spawn(move || {
            let mut got = Vec::new();
            for at_once in [1, 100, 5_000, 40_000, 300_000].into_iter().cycle() {
                match (&mut reader).take(at_once).read_to_end(&mut got).unwrap() {
                    0 => return got,
                    _ => continue,
                }
            }
            unreachable!()
        })
    }

    #[test]
    fn everything_arrives_once_and_in_order() {
        let (reader, mut inlet) = proven();
        let reader = collect(reader);
        let all = bytes(20_000_000);
        let mut left = &all[..];
        let mut size = 1;
        while !left.is_empty() || inlet.inside() > 0 {
            size = size * 7 % 700_001;
            let now = &left[..size.min(left.len())];
            let taken = inlet.take(&pieces(now)).unwrap();
            left = &left[taken..];
            if taken == 0 {
                let _ = rustix::event::poll(&mut [inlet.room()], None);
            }
        }
        drop(inlet);
        assert!(reader.join().unwrap() == all);
    }

    #[test]
    fn what_nobody_reads_is_bounded() {
        let (_reader, mut inlet) = proven();
        let data = bytes(480_000);
        let mut taken = 0;
        while let more @ 1.. = inlet.take(&pieces(&data)).unwrap() {
            taken += more;
        }
        assert!(taken < 3 << 20, "{taken}");
        assert!(inlet.inside() > 0);
    }

    #[test]
    fn a_reader_that_leaves_is_told_of_and_what_it_did_not_get_counted() {
        let (reader, mut inlet) = proven();
        let data = bytes(480_000);
        while inlet.take(&pieces(&data)).unwrap() > 0 {}
        let inside = inlet.inside();
        drop(reader);
        assert_eq!(inlet.flush().unwrap_err().kind(), io::ErrorKind::BrokenPipe);
        assert_eq!(inlet.inside(), inside);
    }

    #[test]
    fn a_reader_that_was_not_fast_gets_no_more_than_a_pipe() {
        let (mut reader, mut inlet) = inlet();
        let data = bytes(480_000);
        let mut read = vec![0; PIPE];
        for _ in 0..PROOF / PIPE {
            if let Between::Unproven { since, .. } = &mut inlet.between {
                *since -= 2 * WITHIN;
            }
            assert_eq!(inlet.take(&pieces(&data)).unwrap(), PIPE);
            reader.read_exact(&mut read).unwrap();
        }
        assert!(matches!(inlet.between, Between::Unproven { taken: 0, .. }));
        assert_eq!(inlet.take(&pieces(&data)).unwrap(), PIPE);
    }

    #[test]
    fn a_reader_that_is_fast_gets_a_pair_and_one_that_is_not_may_become_so() {
        let mut between = Between::Unproven { since: Instant::now() - 2 * WITHIN, taken: 0 };
        assert!(!between.is_proven(PROOF));
        assert!(!between.is_proven(PROOF - 1));
        assert!(between.is_proven(1));
        assert!(!Between::Impossible.is_proven(PROOF));
    }

    #[test]
    fn little_is_in_the_pipe_at_once() {
        let (mut reader, mut inlet) = proven();
        assert_eq!(inlet.take(&[IoSlice::new(b"a line\n")]).unwrap(), 7);
        assert_eq!(inlet.inside(), 0);
        let mut line = [0; 7];
        reader.read_exact(&mut line).unwrap();
        assert_eq!(&line, b"a line\n");
    }

    #[test]
    fn where_splice_is_impossible_everything_is_written() {
        let (mut reader, mut inlet) = inlet();
        inlet.between = Between::Impossible;
        let data = bytes(200_000);
        assert_eq!(inlet.take(&pieces(&data)).unwrap(), data.len());
        let mut got = vec![0; data.len()];
        reader.read_exact(&mut got).unwrap();
        assert!(got == data);
    }

    /// The kernel's pages alone are handed on: what was taken does not change with its slab.
    #[test]
    fn what_was_taken_stays_as_it_was() {
        let (mut reader, mut inlet) = proven();
        let mut data = bytes(100_000);
        let as_it_was = data.clone();
        assert_eq!(inlet.take(&pieces(&data)).unwrap(), data.len());
        data.fill(0);
        let mut got = vec![0; data.len()];
        reader.read_exact(&mut got).unwrap();
        assert!(got == as_it_was);
    }
}
