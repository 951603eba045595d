//! Standard input to the server, and the server to standard output.

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::stdio::{stdin, stdout};
use sftp::server::{Input, Output};
use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::BorrowedFd;

/// Bytes read or written at once: two replies of the largest size.
const BUFFER: usize = 512 * 1024;

/// What an ordinary user may have of a pipe (fs.pipe-max-size).
const PIPE: usize = 1 << 20;

/// Reads standard input to its end on a thread of its own.
pub(crate) fn start_input(mut input: Input) -> io::Result<()> {
    enlarge(stdin());
    let receive = move || {
        // A client that breaks the protocol ends the session from inside.
        let _ = receive(&mut input);
        input.end();
    };
    std::thread::Builder::new().name("input".to_owned()).spawn(receive).map(drop)
}

/// The kernel may refuse, which costs only speed. Whoever made a larger pipe keeps it.
fn enlarge(pipe: BorrowedFd<'_>) {
    if rustix::pipe::fcntl_getpipe_size(pipe).is_ok_and(|has| has < PIPE) {
        let _ = rustix::pipe::fcntl_setpipe_size(pipe, PIPE);
    }
}

fn receive(input: &mut Input) -> io::Result<()> {
    let mut buffer = vec![0; BUFFER];
    loop {
        let mut bytes =
            match retry(stdin(), PollFlags::IN, || rustix::io::read(stdin(), &mut *buffer))? {
                0 => return Ok(()),
                read => buffer.get(..read).unwrap_or_default(),
            };
        while !bytes.is_empty() {
            let taken = input.take(&[IoSlice::new(bytes)])?;
            bytes = bytes.get(taken..).unwrap_or_default();
            if !bytes.is_empty() {
                wait(input.room(), PollFlags::IN)?;
            }
        }
    }
}

/// Writes until the session ends or nobody reads.
pub(crate) fn send(mut output: Output) {
    enlarge(stdout());
    let mut buffer = vec![0; BUFFER];
    while output.wait() {
        let filled = output.fill(&mut [IoSliceMut::new(&mut buffer)]);
        if write_all(buffer.get(..filled).unwrap_or_default()).is_err() {
            return;
        }
    }
}

fn write_all(mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        let written = retry(stdout(), PollFlags::OUT, || rustix::io::write(stdout(), bytes))?;
        bytes = bytes.get(written..).unwrap_or_default();
    }
    Ok(())
}

/// Interrupted calls are made again; descriptors that somebody else made non-blocking are waited
/// for.
fn retry<T>(
    fd: BorrowedFd<'_>,
    ready: PollFlags,
    mut call: impl FnMut() -> Result<T, Errno>,
) -> io::Result<T> {
    loop {
        match call() {
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => wait(fd, ready)?,
            done => return Ok(done?),
        }
    }
}

fn wait(fd: BorrowedFd<'_>, ready: PollFlags) -> io::Result<()> {
    match poll(&mut [PollFd::from_borrowed_fd(fd, ready)], None) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}
