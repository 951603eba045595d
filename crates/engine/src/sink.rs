//! Sink: where a channel's data goes. Written straight from the slab it was received into; what
//! the sink would not take waits here, bounded by the channel's window.
//!
//! Only the receiving thread touches a sink.

use crate::fd::Fd;
use crate::inlet::Inlet;
use crate::slab::{Freed, Held, Slab, keeps_slab};
use rustix::event::{PollFd, PollFlags};
use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::ops::Range;
use std::os::fd::BorrowedFd;
use std::time::Duration;

/// Pieces in one gathering write: a slab of 32 KiB packets.
const PIECES: usize = 16;

/// Copies are added to one that is shorter than this, so that packets of one byte each do not cost
/// a hundred each.
const PIECE: usize = 64 * 1024;

/// Takes a stream's data in this process, where it lies. Called on the receiving thread, which
/// everything else on the connection waits for: what may take long is for another thread.
pub trait Consumer: Send {
    /// Takes from the front of `pieces`, in order; the bytes taken. What is left is offered again
    /// when [`Consumer::room`] is readable. An error ends the stream: the rest is dropped.
    fn take(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize>;

    /// Readable while something can be taken, polled only after less than all was taken.
    fn room(&self) -> BorrowedFd<'_>;

    /// Nothing more will come: EOF, or the end of the channel or connection.
    fn end(&mut self);
}

enum Out {
    /// Not known yet: everything waits.
    Pending,
    Fd(Fd),
    Pipe(Inlet),
    Consumer(Box<dyn Consumer>),
    /// Taken and dropped: `discard@longhaul`, or the reader is gone.
    Discard,
}

/// The consumer of one stream of a channel.
pub struct Sink {
    out: Out,
    queue: VecDeque<Held>,
    ended: bool,
    broken: Option<io::Error>,
    /// Bytes that nobody read, since it broke; not asked for yet.
    lost: usize,
    /// It broke: what comes is lost.
    dead: bool,
    /// How long it may take nothing once the connection is over.
    linger: Option<Duration>,
}

impl Sink {
    /// Holds everything until [`Sink::attach`].
    pub(crate) fn pending() -> Self {
        Self {
            out: Out::Pending,
            queue: VecDeque::new(),
            ended: false,
            broken: None,
            lost: 0,
            dead: false,
            linger: None,
        }
    }

    /// Takes and drops everything.
    pub fn discard() -> Self {
        Self { out: Out::Discard, ..Self::pending() }
    }

    /// Writes to `fd`; closes it after the last byte once the peer sent EOF.
    pub fn fd(fd: Fd) -> Self {
        let out = if fd.is_pipe() { Out::Pipe(Inlet::new(fd)) } else { Out::Fd(fd) };
        Self { out, ..Self::pending() }
    }

    /// Hands everything to `consumer`.
    pub fn consumer(consumer: Box<dyn Consumer>) -> Self {
        Self { out: Out::Consumer(consumer), ..Self::pending() }
    }

    /// Once the connection is over, drops what waits when none of it was taken for this long.
    /// Without it the consumer has all the time it wants, as somebody reading a page may.
    #[must_use]
    pub fn lingering(mut self, linger: Duration) -> Self {
        self.linger = Some(linger);
        self
    }

    /// Becomes `other`, which gets what waited here.
    pub(crate) fn attach(&mut self, other: Sink) {
        self.out = other.out;
        self.linger = other.linger;
    }

    /// Writes the `ranges` of `slab` as far as the sink takes them at once: the bytes taken.
    /// What is left must be handed to [`Sink::hold`].
    pub(crate) fn offer(&mut self, slab: &Slab, ranges: &[Range<usize>]) -> usize {
        let all = ranges.iter().map(Range::len).sum();
        match &mut self.out {
            Out::Discard => {
                self.lose(all);
                all
            }
            out @ (Out::Fd(_) | Out::Pipe(_) | Out::Consumer(_)) if self.queue.is_empty() => {
                let mut taken = 0;
                for group in ranges.chunks(PIECES) {
                    let mut slices = [IoSlice::new(&[]); PIECES];
                    for (slice, range) in slices.iter_mut().zip(group) {
                        *slice = IoSlice::new(slab.bytes(range));
                    }
                    let slices = slices.get(..group.len()).unwrap_or_default();
                    let wanted: usize = group.iter().map(Range::len).sum();
                    match out.take(slices) {
                        Ok(n) => {
                            taken += n;
                            if n != wanted {
                                return taken;
                            }
                        }
                        Err(error) => {
                            self.give_up(error);
                            self.lose(all - taken);
                            return all;
                        }
                    }
                }
                taken
            }
            Out::Pending | Out::Fd(_) | Out::Pipe(_) | Out::Consumer(_) => 0,
        }
    }

    /// The pipe that takes what comes next.
    pub(crate) fn pipe(&self) -> Option<&Fd> {
        match &self.out {
            Out::Pipe(inlet) if !self.is_waiting() => Some(inlet.pipe()),
            _ => None,
        }
    }

    /// Moves up to `len` bytes from the connection into the pipe; `None` while one of them is not
    /// ready, or there is no pipe.
    pub(crate) fn take_from(&mut self, connection: &Fd, len: usize) -> io::Result<Option<usize>> {
        if self.is_waiting() {
            return Ok(None);
        }
        let Out::Pipe(inlet) = &mut self.out else { return Ok(None) };
        match inlet.take_from(connection, len) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                self.give_up(error);
                Ok(None)
            }
            moved => moved,
        }
    }

    /// Keeps what [`Sink::offer`] left over: `ranges` after the first `taken` bytes.
    pub(crate) fn hold(
        &mut self,
        slab: &Slab,
        keep: Keep,
        ranges: &[Range<usize>],
        taken: usize,
        freed: &mut Freed,
    ) {
        let mut skip = taken;
        let left = ranges.iter().filter_map(|range| {
            let passed = skip.min(range.len());
            skip -= passed;
            let left = range.start + passed..range.end;
            (!left.is_empty()).then_some(left)
        });
        let all: usize = ranges.iter().map(Range::len).sum();
        if keep == Keep::InPlace && keeps_slab(all - taken) {
            self.queue.extend(left.map(|left| Held::Slab(slab.share(), left)));
            return;
        }
        let (mut bytes, from) = self.last_copy(freed);
        bytes.reserve(all - taken);
        left.for_each(|left| bytes.extend_from_slice(slab.bytes(&left)));
        if !bytes.is_empty() {
            self.queue.push_back(Held::Bytes(bytes, from));
        }
    }

    /// The copy to add to: the last one if it is short, or an empty one.
    fn last_copy(&mut self, freed: &mut Freed) -> (Vec<u8>, usize) {
        match self.queue.pop_back() {
            Some(Held::Bytes(bytes, from)) if bytes.len() < PIECE => (bytes, from),
            last => {
                self.queue.extend(last);
                (freed.copy(), 0)
            }
        }
    }

    /// Writes what waits; the bytes taken, and memory that nobody needs any more.
    pub(crate) fn drain(&mut self, freed: &mut Freed) -> usize {
        let mut total = 0;
        while !self.queue.is_empty() {
            let taken = match &mut self.out {
                Out::Pending => 0,
                Out::Discard => {
                    let all = self.queue.iter().map(|held| held.bytes().len()).sum();
                    self.lose(all);
                    all
                }
                out @ (Out::Fd(_) | Out::Pipe(_) | Out::Consumer(_)) => {
                    let mut slices = [IoSlice::new(&[]); PIECES];
                    let mut count = 0;
                    for (slice, held) in slices.iter_mut().zip(&self.queue) {
                        *slice = IoSlice::new(held.bytes());
                        count += 1;
                    }
                    match out.take(slices.get(..count).unwrap_or_default()) {
                        Ok(n) => n,
                        Err(error) => {
                            self.give_up(error);
                            continue;
                        }
                    }
                }
            };
            if taken == 0 {
                break;
            }
            total += taken;
            self.advance(taken, freed);
        }
        // Where something waits in front of it, that was tried just now.
        if let Out::Pipe(inlet) = &mut self.out
            && self.queue.is_empty()
            && let Err(error) = inlet.flush()
        {
            self.give_up(error);
        }
        if self.ended && !self.is_waiting() {
            self.close();
        }
        total
    }

    fn advance(&mut self, mut taken: usize, freed: &mut Freed) {
        while let Some(first) = self.queue.front_mut() {
            let len = first.bytes().len();
            if taken < len {
                first.advance(taken);
                return;
            }
            taken -= len;
            if let Some(held) = self.queue.pop_front() {
                freed.put(held);
            }
        }
    }

    /// The reader is gone: what comes from now on is dropped, and credited all the same (C7).
    fn give_up(&mut self, error: io::Error) {
        let inside = self.inside();
        self.out = Out::Discard;
        self.broken = Some(error);
        self.dead = true;
        self.lose(inside);
    }

    /// Bytes that were taken and whose reader cannot see them yet.
    fn inside(&self) -> usize {
        match &self.out {
            Out::Pipe(inlet) => inlet.inside(),
            _ => 0,
        }
    }

    /// How long this one may keep a connection that is over.
    pub(crate) fn lingers(&self) -> Option<Duration> {
        self.linger.filter(|_| self.is_waiting())
    }

    /// Drops what waits, if it has waited for as long as it may.
    pub(crate) fn drop_after(&mut self, waited: Duration) {
        if self.lingers().is_some_and(|linger| linger <= waited) {
            self.queue.clear();
            self.dead = true;
            self.lose(self.inside());
            self.close();
        }
    }

    /// Bytes on their way to a reader.
    pub(crate) fn unread(&self) -> usize {
        let waiting: usize = self.queue.iter().map(|held| held.bytes().len()).sum();
        match &self.out {
            Out::Pipe(inlet) => waiting + inlet.unread(),
            _ => waiting,
        }
    }

    fn lose(&mut self, bytes: usize) {
        if self.dead {
            self.lost += bytes;
        }
    }

    /// Bytes of those taken that nobody read, told once.
    pub(crate) fn take_lost(&mut self) -> usize {
        std::mem::take(&mut self.lost)
    }

    /// Why the sink broke, told once.
    pub(crate) fn take_error(&mut self) -> Option<io::Error> {
        self.broken.take()
    }

    /// No more data will come: the descriptor is closed once all is written.
    pub(crate) fn end(&mut self) {
        self.ended = true;
        if !self.is_waiting() {
            self.close();
        }
    }

    /// Nothing will be attached any more: what waits for it is dropped (invariant C4).
    pub(crate) fn want_no_more(&mut self) {
        if matches!(self.out, Out::Pending) {
            self.out = Out::Discard;
            self.queue.clear();
        }
    }

    fn close(&mut self) {
        if matches!(self.out, Out::Fd(_) | Out::Pipe(_) | Out::Consumer(_)) {
            self.out = Out::Discard;
        }
    }

    /// Memory that is held, and the bytes that wait in it.
    #[cfg(test)]
    pub(crate) fn held(&self) -> (usize, usize) {
        let mut slabs = std::collections::BTreeSet::new();
        let memory = self.queue.iter().map(|held| match held {
            Held::Bytes(bytes, _) => bytes.capacity(),
            Held::Slab(memory, _) if slabs.insert(memory.as_ptr()) => memory.len(),
            Held::Slab(..) => 0,
        });
        let memory = memory.sum();
        (memory, self.queue.iter().map(|held| held.bytes().len()).sum())
    }

    /// Whether data waits.
    pub(crate) fn is_waiting(&self) -> bool {
        !self.queue.is_empty() || self.inside() > 0
    }

    /// Whether data waits, or somebody has yet to hear that it broke.
    pub(crate) fn is_needed(&self) -> bool {
        self.is_waiting() || self.broken.is_some()
    }

    /// What to poll for room.
    pub(crate) fn waits_for(&self) -> Option<PollFd<'_>> {
        if !self.is_waiting() {
            return None;
        }
        match &self.out {
            Out::Fd(fd) => Some(PollFd::new(fd, PollFlags::OUT)),
            Out::Pipe(inlet) => Some(inlet.room()),
            Out::Consumer(consumer) => {
                Some(PollFd::from_borrowed_fd(consumer.room(), PollFlags::IN))
            }
            Out::Pending | Out::Discard => None,
        }
    }
}

impl Out {
    /// Writes `pieces` as far as they are taken at once.
    fn take(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Self::Fd(fd) => fd.write_now(pieces).map(Option::unwrap_or_default),
            Self::Pipe(inlet) => inlet.take(pieces),
            Self::Consumer(consumer) => consumer.take(pieces),
            Self::Pending | Self::Discard => Ok(0),
        }
    }
}

/// However a stream ends, its consumer is told once.
impl Drop for Out {
    fn drop(&mut self) {
        if let Self::Consumer(consumer) = self {
            consumer.end();
        }
    }
}

/// How leftovers of a slab may be kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keep {
    /// In place if they are much: the slab is given up.
    InPlace,
    /// Copied: more of the slab is to come.
    Copied,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_pieces_that_wait_are_kept_in_one() {
        let mut slab = Slab::new();
        slab.room()[..6].copy_from_slice(b"abcdef");
        let mut sink = Sink::pending();
        sink.hold(&slab, Keep::Copied, &[0..2, 2..3, 4..4, 5..6], 1, &mut Freed::default());
        assert_eq!(sink.queue.len(), 1);
        assert_eq!(sink.queue[0].bytes(), b"bcf");
        sink.queue[0].advance(1);
        sink.hold(&slab, Keep::Copied, &[3..4, 4..5], 0, &mut Freed::default());
        assert_eq!(sink.queue.len(), 1);
        assert_eq!(sink.queue[0].bytes(), b"cfde");
    }

    /// What was taken for a reader that left is told as lost, once.
    #[test]
    fn what_a_pipe_did_not_get_any_more_is_lost() {
        let (reader, writer) = std::io::pipe().unwrap();
        let inlet = Inlet::proven(std::os::fd::OwnedFd::from(writer).into());
        let mut sink = Sink { out: Out::Pipe(inlet), ..Sink::pending() };
        let slab = Slab::new();
        let one = [0..100 << 10, 100 << 10..256 << 10];
        let all = std::iter::repeat_with(|| sink.offer(&slab, &one));
        let taken: usize = all.take_while(|taken| *taken > 0).sum();
        let inside = sink.inside();
        assert!(sink.is_waiting() && inside > 0 && inside < taken);
        drop(reader);
        assert_eq!(sink.drain(&mut Freed::default()), 0);
        assert_eq!(sink.take_error().unwrap().kind(), io::ErrorKind::BrokenPipe);
        assert_eq!((sink.take_lost(), sink.take_lost()), (inside, 0));
        assert!(!sink.is_waiting());
    }
}
