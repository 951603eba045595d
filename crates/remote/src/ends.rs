//! The ends of channels: the halves of an SFTP client as what the engine sends from and delivers
//! to, and what collects a command's output.

use engine::{Consumer, Producer};
use sftp::client::{Incoming, Outgoing};
use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Requests and file data for a channel.
pub(crate) struct Requests(pub(crate) Outgoing);

impl Producer for Requests {
    fn wait(&mut self) -> bool {
        self.0.wait()
    }

    fn fill(&mut self, areas: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        Ok(self.0.fill(areas))
    }
}

/// What is readable at once, for a consumer that always has room.
pub(crate) fn always() -> io::Result<File> {
    File::open("/dev/null")
}

/// Replies and file data of a channel.
pub(crate) struct Replies {
    incoming: Incoming,
    room: File,
    /// The connection ended, and who ended it will say why.
    over: Arc<AtomicBool>,
}

impl Replies {
    pub(crate) fn new(incoming: Incoming, over: Arc<AtomicBool>) -> io::Result<Self> {
        Ok(Self { incoming, room: always()?, over })
    }
}

impl Consumer for Replies {
    fn take(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        self.incoming.take(pieces).map_err(io::Error::other)
    }

    fn room(&self) -> BorrowedFd<'_> {
        self.room.as_fd()
    }

    fn end(&mut self) {
        if !self.over.load(Ordering::SeqCst) {
            self.incoming.end();
        }
    }
}

/// A command's output, as far as it is kept.
#[derive(Clone, Default)]
pub(crate) struct Output(Arc<Mutex<Vec<u8>>>);

impl Output {
    /// Most that is kept.
    pub(crate) const MOST: usize = 1 << 20;

    pub(crate) fn take(&self) -> Vec<u8> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn collector(&self) -> io::Result<Collector> {
        Ok(Collector { output: self.clone(), room: always()? })
    }
}

/// Fills an [`Output`].
pub(crate) struct Collector {
    output: Output,
    room: File,
}

impl Consumer for Collector {
    fn take(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        let mut kept = self.output.0.lock().unwrap_or_else(PoisonError::into_inner);
        let all: usize = pieces.iter().map(|piece| piece.len()).sum();
        if kept.len() + all > Output::MOST {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        pieces.iter().for_each(|piece| kept.extend_from_slice(piece));
        Ok(all)
    }

    fn room(&self) -> BorrowedFd<'_> {
        self.room.as_fd()
    }

    fn end(&mut self) {}
}
