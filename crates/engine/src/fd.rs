//! A descriptor that can be read and written either waiting or at once, whatever it is.
//!
//! Descriptors we inherit (stdin, stdout) share their flags with other processes, so O_NONBLOCK
//! is never set on one: each call says whether it may wait.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, ReadWriteFlags};
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendFlags};
use rustix::pipe::SpliceFlags;
use std::io::{self, IoSlice, IoSliceMut, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

/// Most we write at once to something that cannot be asked not to wait: a pipe that polls writable
/// takes this much (POSIX), and for others it is a guess.
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
    /// A terminal, opened once more: its flags are ours alone, and its calls never wait.
    terminal: Option<OwnedFd>,
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
        let terminal = (kind == Kind::Other).then(|| reopened(&fd)).flatten();
        Self { fd, kind, terminal }
    }
}

/// The terminal behind a descriptor, if that may be opened: it need not be ours after su(1).
fn reopened(fd: &OwnedFd) -> Option<OwnedFd> {
    use rustix::fs::{Mode, OFlags};
    // Whoever opens a pseudo-terminal's other end gets a new pair.
    if !rustix::termios::isatty(fd) || rustix::pty::ptsname(fd, Vec::new()).is_ok() {
        return None;
    }
    let path = format!("/proc/self/fd/{}", fd.as_raw_fd());
    let flags = OFlags::WRONLY | OFlags::NOCTTY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, Mode::empty()).ok()
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

    /// Makes a socket's call that waits for data return after `time` (SO_RCVTIMEO). Where it cannot
    /// be had the call waits until something comes.
    pub(crate) fn give_up_after(&self, time: Duration) {
        if self.kind == Kind::Socket {
            let timeout = rustix::net::sockopt::Timeout::Recv;
            let _ = rustix::net::sockopt::set_socket_timeout(&self.fd, timeout, Some(time));
        }
    }

    /// Acknowledges what came over TCP now, instead of with the next packet of ours or after 40 ms:
    /// a peer with Nagle's algorithm on holds its next message back until then.
    pub(crate) fn acknowledge(&self) {
        if self.kind == Kind::Socket {
            let _ = rustix::net::sockopt::set_tcp_quickack(&self.fd, true);
        }
    }

    /// [`enlarge_pipe`], if this is one.
    pub fn enlarge_pipe(&self, bytes: usize) {
        if self.kind == Kind::Pipe {
            enlarge_pipe(&self.fd, bytes);
        }
    }

    /// Whether a read would return at once, after waiting for that; regular files always do.
    pub fn wait_readable(&self, most: Duration) -> io::Result<bool> {
        Ok(self.kind == Kind::File || self.wait(PollFlags::IN, Some(most))?)
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
        if matches!(wait, Wait::Forever | Wait::Long(_))
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
            if wait == Wait::No || !self.wait_for(wait)? {
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

    /// The same, when more follows at once.
    pub(crate) fn write_more(&self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        if self.kind != Kind::Socket {
            return self.write(slices);
        }
        loop {
            let mut none = SendAncillaryBuffer::default();
            let flags = SendFlags::MORE | SendFlags::NOSIGNAL;
            if let Some(n) = retry(|| rustix::net::sendmsg(&self.fd, slices, &mut none, flags))? {
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

    /// Where the kernel cannot promise not to wait: as little as may be hoped to fit.
    fn write_polled(&self, slices: &[IoSlice<'_>]) -> io::Result<Option<usize>> {
        if let Some(terminal) = &self.terminal {
            return retry(|| rustix::io::writev(terminal, slices));
        }
        if !self.wait(PollFlags::OUT, Some(Duration::ZERO))? {
            return Ok(None);
        }
        let first = slices.iter().find(|s| !s.is_empty()).map(|s| &**s).unwrap_or_default();
        let piece = first.get(..POLLED_WRITE).unwrap_or(first);
        retry(|| rustix::io::write(&self.fd, piece))
    }

    /// Bytes that can be taken now without waiting, where the kernel passes them on by itself: what
    /// is in a pipe, what is left of a regular file. 0 elsewhere.
    pub(crate) fn passable(&self) -> usize {
        let bytes = match self.kind {
            Kind::Pipe => rustix::io::ioctl_fionread(&self.fd).unwrap_or(0),
            Kind::File => self.left_of_file().unwrap_or(0),
            Kind::Socket | Kind::Other => 0,
        };
        usize::try_from(bytes).unwrap_or(usize::MAX)
    }

    /// 0 for devices, which have no size.
    fn left_of_file(&self) -> Result<u64, Errno> {
        let size = u64::try_from(rustix::fs::fstat(&self.fd)?.st_size).unwrap_or(0);
        Ok(size.saturating_sub(rustix::fs::tell(&self.fd)?))
    }

    /// Makes calls on a socket of ours alone return instead of wait: splice holds a pipe's lock while
    /// it waits, and its writer could not even be killed.
    pub(crate) fn never_wait(&self) {
        if let Ok(flags) = rustix::fs::fcntl_getfl(&self.fd) {
            let _ = rustix::fs::fcntl_setfl(&self.fd, flags | rustix::fs::OFlags::NONBLOCK);
        }
    }

    /// Passes up to `len` bytes that are there ([`Fd::passable`]) on to this socket, waiting for
    /// room: within the kernel, without a copy.
    pub(crate) fn pass(&self, from: &Self, len: usize) -> io::Result<usize> {
        let moved = || match from.kind {
            Kind::Pipe => {
                let flags = SpliceFlags::NONBLOCK | SpliceFlags::MORE;
                rustix::pipe::splice(&from.fd, None, &self.fd, None, len, flags)
            }
            _ => rustix::fs::sendfile(&self.fd, &from.fd, None, len),
        };
        loop {
            match retry(moved)? {
                Some(0) => return Err(shorter()),
                Some(bytes) => return Ok(bytes),
                None if !from.wait(PollFlags::IN, Some(Duration::ZERO))? => return Err(shorter()),
                None => self.wait(PollFlags::OUT, None)?,
            };
        }
    }

    /// Whether this is a pipe.
    pub(crate) fn is_pipe(&self) -> bool {
        self.kind == Kind::Pipe
    }

    /// Moves up to `len` bytes from the socket `from`, whose calls never wait, into this pipe within
    /// the kernel; `None` while one of them is not ready, 0 at the socket's end.
    pub(crate) fn take_from(&self, from: &Self, len: usize) -> io::Result<Option<usize>> {
        retry(|| rustix::pipe::splice(&from.fd, None, &self.fd, None, len, SpliceFlags::NONBLOCK))
    }

    /// A descriptor of its own for the same open file.
    pub(crate) fn try_clone(&self) -> io::Result<Self> {
        let terminal = self.terminal.as_ref().map(OwnedFd::try_clone).transpose()?;
        Ok(Self { fd: self.fd.try_clone()?, kind: self.kind, terminal })
    }

    /// Waits until there is something to receive; whether there is.
    pub(crate) fn wait_for(&self, wait: Wait) -> io::Result<bool> {
        let timeout = match wait {
            Wait::No => Some(Duration::ZERO),
            Wait::Forever => None,
            Wait::For(time) | Wait::Long(time) => Some(time),
        };
        self.wait(PollFlags::IN, timeout)
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

/// Asks for a pipe of at least `bytes`; the kernel may refuse, which costs only speed. 1 MiB is what
/// an ordinary user may have (fs.pipe-max-size). One that is larger already stays as it is.
pub fn enlarge_pipe(pipe: impl AsFd, bytes: usize) {
    if rustix::pipe::fcntl_getpipe_size(&pipe).is_ok_and(|has| has < bytes) {
        let _ = rustix::pipe::fcntl_setpipe_size(&pipe, bytes);
    }
}

fn shorter() -> io::Error {
    let what = "the input became shorter while it was sent";
    io::Error::new(io::ErrorKind::UnexpectedEof, what)
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
    /// The same in one call, for a socket that gives up by itself ([`Fd::give_up_after`]); it may
    /// take twice as long.
    Long(Duration),
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::io::{Read, Seek, SeekFrom};
    use std::os::unix::net::UnixStream;

    fn fd(any: impl Into<OwnedFd>) -> Fd {
        Fd::from(any.into())
    }

    /// What comes out of a socket that `len` bytes of `from` are passed to.
    fn passed(from: &Fd, len: usize) -> Vec<u8> {
        let (ours, mut peer) = UnixStream::pair().unwrap();
        let ours = fd(ours);
        let mut left = len;
        while left > 0 {
            left -= ours.pass(from, left).unwrap();
        }
        drop(ours);
        let mut bytes = Vec::new();
        peer.read_to_end(&mut bytes).unwrap();
        bytes
    }

    /// As reading would: whoever shares the descriptor goes on behind it.
    #[test]
    fn a_file_is_passed_from_its_position_on() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"head and the rest of it").unwrap();
        file.seek(SeekFrom::Start(5)).unwrap();
        let from = fd(file.try_clone().unwrap());
        assert_eq!(from.passable(), 18);
        assert_eq!(passed(&from, 12), b"and the rest");
        assert_eq!(file.stream_position().unwrap(), 17);
        assert_eq!(from.passable(), 6);
    }

    #[test]
    fn a_pipe_passes_what_is_in_it_and_a_device_nothing() {
        let (read, mut write) = std::io::pipe().unwrap();
        let from = fd(read);
        assert_eq!(from.passable(), 0);
        write.write_all(b"some").unwrap();
        assert_eq!(from.passable(), 4);
        assert_eq!(passed(&from, 4), b"some");
        assert_eq!(fd(File::open("/dev/zero").unwrap()).passable(), 0);
    }

    /// ^S, or a terminal that nobody reads: whoever must not wait goes on.
    #[test]
    fn a_terminal_that_takes_no_more_makes_nobody_wait() {
        use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&master).and_then(|()| unlockpt(&master)).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        let flags = rustix::fs::OFlags::RDWR | rustix::fs::OFlags::NOCTTY;
        let terminal = rustix::fs::open(name, flags, rustix::fs::Mode::empty()).unwrap();
        assert!(fd(master.try_clone().unwrap()).terminal.is_none());
        let ours = fd(terminal.try_clone().unwrap());
        assert!(ours.terminal.is_some());
        let (told, filled) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let line = [b'x'; 1000];
            let mut taken = 0;
            while let Some(bytes) = ours.write_now(&[IoSlice::new(&line)]).unwrap() {
                taken += bytes;
            }
            told.send(taken)
        });
        let taken = filled.recv_timeout(Duration::from_secs(20)).expect("it waits");
        assert!(taken > 1000, "{taken}");
        let shared = rustix::fs::fcntl_getfl(&terminal).unwrap();
        assert!(!shared.contains(rustix::fs::OFlags::NONBLOCK), "others' flags are left alone");
    }

    #[test]
    fn a_pipe_becomes_larger_and_never_smaller() {
        let (read, _write) = std::io::pipe().unwrap();
        let size = || rustix::pipe::fcntl_getpipe_size(&read).unwrap();
        rustix::pipe::fcntl_setpipe_size(&read, 1).unwrap();
        let least = size();
        enlarge_pipe(&read, 2 * least);
        assert_eq!(size(), 2 * least);
        enlarge_pipe(&read, least);
        assert_eq!(size(), 2 * least);
    }

    /// Its packet has said how much it holds: nothing else may take that place.
    #[test]
    fn what_became_shorter_is_an_error() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(1000).unwrap();
        let (read, _write) = std::io::pipe().unwrap();
        let (ours, _peer) = UnixStream::pair().unwrap();
        let ours = fd(ours);
        let from = fd(file.try_clone().unwrap());
        assert_eq!(from.passable(), 1000);
        file.set_len(0).unwrap();
        for from in [from, fd(read)] {
            let error = ours.pass(&from, 1000).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof, "{error}");
        }
    }
}
