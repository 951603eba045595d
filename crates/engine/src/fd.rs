//! A descriptor that can be read and written either waiting or at once, whatever it is.
//!
//! Descriptors we inherit (stdin, stdout) share their flags with other processes, so O_NONBLOCK
//! is never set on one: each call says whether it may wait.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, ReadWriteFlags};
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendFlags};
use std::io::{self, IoSlice, IoSliceMut, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

/// Most we write at once to something that can neither say how much room it has nor be asked
/// not to wait: POSIX lets a pipe that polls writable take this much.
const POLLED_WRITE: usize = 4096;

/// The offset that means "the file's own position" to preadv2 and pwritev2.
const CURRENT: u64 = u64::MAX;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Socket,
    /// Pipes and FIFOs, whose kernel may know RWF_NOWAIT.
    Pipe,
    /// Regular files and plain devices never make a writer wait for a reader.
    File,
    /// Terminals, and whatever else there is.
    Other,
}

/// An owned descriptor and what it is.
#[derive(Debug)]
pub struct Fd {
    fd: OwnedFd,
    kind: Kind,
}

impl From<OwnedFd> for Fd {
    fn from(fd: OwnedFd) -> Self {
        use rustix::fs::FileType;
        let kind = match rustix::fs::fstat(&fd).map(|s| FileType::from_raw_mode(s.st_mode)) {
            Ok(FileType::Socket) => Kind::Socket,
            Ok(FileType::Fifo) => Kind::Pipe,
            Ok(FileType::RegularFile | FileType::BlockDevice) => Kind::File,
            // /dev/null and the like: only a terminal makes a writer wait.
            Ok(FileType::CharacterDevice) if !rustix::termios::isatty(&fd) => Kind::File,
            _ => Kind::Other,
        };
        Self { fd, kind }
    }
}

impl AsFd for Fd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Interrupted calls are made again; a call that would wait is `None`.
fn retry<T>(mut call: impl FnMut() -> Result<T, Errno>) -> io::Result<Option<T>> {
    loop {
        match call() {
            Ok(value) => return Ok(Some(value)),
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => return Ok(None),
            Err(errno) => return Err(errno.into()),
        }
    }
}

impl Fd {
    /// Whether this is a socket.
    pub fn is_socket(&self) -> bool {
        self.kind == Kind::Socket
    }

    /// Asks for a pipe of `bytes`; the kernel may refuse, which costs only speed. 1 MiB is what
    /// an ordinary user may have (fs.pipe-max-size).
    pub fn enlarge_pipe(&self, bytes: usize) {
        if self.kind == Kind::Pipe {
            let _ = rustix::pipe::fcntl_setpipe_size(&self.fd, bytes);
        }
    }

    /// Waits until a read would return at once; regular files always do.
    pub fn wait_readable(&self) -> io::Result<()> {
        if self.kind != Kind::File {
            self.wait(PollFlags::IN, None)?;
        }
        Ok(())
    }

    /// Reads into `areas`, waiting for the first byte; 0 is the end.
    pub fn read(&self, areas: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        loop {
            if let Some(n) = retry(|| rustix::io::readv(&self.fd, areas))? {
                return Ok(n);
            }
            self.wait(PollFlags::IN, None)?;
        }
    }

    /// Receives into `area`; waits for the first byte up to `timeout` if there is one, and
    /// without end if `None`. `Ok(None)` means the time is over; 0 is the end.
    pub fn receive(&self, area: &mut [u8], wait: Wait) -> io::Result<Option<usize>> {
        if wait == Wait::Forever
            && self.kind == Kind::Socket
            && let Some((_, n)) =
                retry(|| rustix::net::recv(&self.fd, &mut *area, RecvFlags::empty()))?
        {
            return Ok(Some(n));
        }
        loop {
            if let Some(n) = self.read_now(area)? {
                return Ok(Some(n));
            }
            let timeout = match wait {
                Wait::No => return Ok(None),
                Wait::Forever => None,
                Wait::For(time) => Some(time),
            };
            if !self.wait(PollFlags::IN, timeout)? {
                return Ok(None);
            }
        }
    }

    fn read_now(&self, area: &mut [u8]) -> io::Result<Option<usize>> {
        match self.kind {
            Kind::Socket => {
                let got = retry(|| rustix::net::recv(&self.fd, &mut *area, RecvFlags::DONTWAIT))?;
                Ok(got.map(|(_, n)| n))
            }
            _ if !self.wait(PollFlags::IN, Some(Duration::ZERO))? => Ok(None),
            _ => retry(|| rustix::io::read(&self.fd, &mut *area)),
        }
    }

    /// Writes all of `slices` or as much as one call takes, waiting for room.
    pub fn write(&self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        loop {
            if let Some(n) = retry(|| rustix::io::writev(&self.fd, slices))? {
                return Ok(n);
            }
            self.wait(PollFlags::OUT, None)?;
        }
    }

    /// Writes all of `slices` or as much as one call takes, waiting for room until the deadline.
    pub fn write_by(&self, slices: &[IoSlice<'_>], deadline: Instant) -> io::Result<usize> {
        loop {
            if let Some(n) = self.write_now(slices)? {
                return Ok(n);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if !self.wait(PollFlags::OUT, Some(left))? {
                return Err(io::ErrorKind::TimedOut.into());
            }
        }
    }

    /// Writes what fits without waiting; `None` when nothing does.
    pub fn write_now(&self, slices: &[IoSlice<'_>]) -> io::Result<Option<usize>> {
        match self.kind {
            Kind::File => retry(|| rustix::io::writev(&self.fd, slices)),
            Kind::Socket => retry(|| {
                let mut none = SendAncillaryBuffer::default();
                let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
                rustix::net::sendmsg(&self.fd, slices, &mut none, flags)
            }),
            Kind::Pipe => {
                match retry(|| {
                    rustix::io::pwritev2(&self.fd, slices, CURRENT, ReadWriteFlags::NOWAIT)
                }) {
                    Err(e) if e.raw_os_error() == Some(Errno::OPNOTSUPP.raw_os_error()) => {
                        self.write_polled(slices)
                    }
                    done => done,
                }
            }
            Kind::Other => self.write_polled(slices),
        }
    }

    /// Where the kernel cannot promise not to wait: as little as surely fits.
    fn write_polled(&self, slices: &[IoSlice<'_>]) -> io::Result<Option<usize>> {
        if !self.wait(PollFlags::OUT, Some(Duration::ZERO))? {
            return Ok(None);
        }
        let first = slices.iter().find(|s| !s.is_empty()).map(|s| &**s).unwrap_or_default();
        let piece = first.get(..POLLED_WRITE).unwrap_or(first);
        retry(|| rustix::io::write(&self.fd, piece))
    }

    /// Waits until ready or the time is over; whether it is ready.
    pub fn wait(&self, flags: PollFlags, timeout: Option<Duration>) -> io::Result<bool> {
        poll_until(&mut [PollFd::new(&self.fd, flags)], timeout)
    }

    /// Ends both directions, so that threads blocked on the socket return.
    pub fn shutdown(&self) {
        if self.kind == Kind::Socket {
            let _ = rustix::net::shutdown(&self.fd, rustix::net::Shutdown::Both);
        }
    }
}

/// How long a receive may wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// Only what is there.
    No,
    /// Until something comes.
    Forever,
    /// Until something comes or the time is over.
    For(Duration),
}

/// Descriptors polled at once without memory for the list: the connection and two channels.
const FEW: usize = 5;

/// A list of descriptors to poll.
pub(crate) struct PollList<'a> {
    few: [PollFd<'a>; FEW],
    count: usize,
    /// All of them, once they are more than a few.
    many: Vec<PollFd<'a>>,
}

impl<'a> PollList<'a> {
    /// An empty one; `any` descriptor fills the places that are not used.
    pub(crate) fn new(any: &'a Fd) -> Self {
        let few = std::array::from_fn(|_| PollFd::new(any, PollFlags::empty()));
        Self { few, count: 0, many: Vec::new() }
    }

    /// One more.
    pub(crate) fn push(&mut self, fd: PollFd<'a>) {
        match self.few.get_mut(self.count) {
            Some(place) => {
                *place = fd;
                self.count += 1;
            }
            None => {
                if self.many.is_empty() {
                    self.many.extend_from_slice(&self.few);
                }
                self.many.push(fd);
            }
        }
    }

    /// The list.
    pub(crate) fn as_mut_slice(&mut self) -> &mut [PollFd<'a>] {
        if self.many.is_empty() {
            self.few.get_mut(..self.count).unwrap_or_default()
        } else {
            &mut self.many
        }
    }
}

impl<'a> Extend<PollFd<'a>> for PollList<'a> {
    fn extend<T: IntoIterator<Item = PollFd<'a>>>(&mut self, fds: T) {
        fds.into_iter().for_each(|fd| self.push(fd));
    }
}

/// `poll`, repeated when interrupted; whether any descriptor is ready.
pub fn poll_until(fds: &mut [PollFd<'_>], timeout: Option<Duration>) -> io::Result<bool> {
    let timeout = timeout.and_then(|t| Timespec::try_from(t).ok());
    loop {
        match poll(fds, timeout.as_ref()) {
            Ok(ready) => return Ok(ready > 0),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
}

impl Write for Fd {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Fd::write(self, &[IoSlice::new(bytes)])
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
