//! Stream: a channel of made-up data for measuring, to `discard@longhaul` or from `zeros@longhaul`
//! (PROTOCOL.md). No file, no SFTP: the connection's own threads make the bytes or drop them.

use crate::Error;
use crate::channels::News;
use crate::ends::always;
use engine::{Consumer, Producer, Session};
use proto::channel::LocalId;
use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::Duration;

/// Takes all that comes until EOF.
pub(crate) const DISCARD: &str = "discard@longhaul";
/// Sends until nobody wants more.
pub(crate) const ZEROS: &str = "zeros@longhaul";

/// Says how many of so many bytes are to leave next; none is the end. On the sending thread.
pub type Next = Box<dyn FnMut(usize) -> usize + Send>;

/// Hears that so many bytes came, and says whether more are wanted. On the receiving thread.
pub type Came = Box<dyn FnMut(usize) -> bool + Send>;

/// A stream that is open. It closes when it is dropped.
pub struct Stream {
    session: Session,
    id: LocalId,
    heard: Receiver<News>,
}

/// What became of a stream.
#[derive(Debug)]
pub enum StreamEnd {
    /// As much came as was wanted.
    Enough,
    /// The server closed it: of what was sent, it has taken all.
    Closed,
    /// It broke.
    Broke(Error),
}

impl Stream {
    pub(crate) fn new(session: Session, id: LocalId, heard: Receiver<News>) -> Self {
        Self { session, id, heard }
    }

    pub(crate) fn heard(&self) -> &Receiver<News> {
        &self.heard
    }

    /// Waits so long for its end; `None` while it goes on.
    #[must_use]
    pub fn ended_within(&self, wait: Duration) -> Option<StreamEnd> {
        match self.heard.recv_timeout(wait) {
            Ok(News::Enough) => Some(StreamEnd::Enough),
            Ok(News::Closed(_)) => Some(StreamEnd::Closed),
            Ok(News::Failed(error)) => Some(StreamEnd::Broke(error)),
            Ok(News::Opened | News::Granted) | Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => {
                Some(StreamEnd::Broke(Error::Lost("the connection ended".to_owned())))
            }
        }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.session.stop_sources(self.id);
        // A connection that is over has closed it, too.
        let _ = self.session.call(|connection, out| connection.close(self.id, out));
    }
}

/// Zeros, as many as `next` says.
pub(crate) struct Zeros {
    next: Next,
    over: bool,
}

impl Zeros {
    pub(crate) fn new(next: Next) -> Self {
        Self { next, over: false }
    }
}

impl Producer for Zeros {
    fn wait(&mut self) -> bool {
        !self.over
    }

    fn fill(&mut self, areas: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        let room = areas.iter().map(|area| area.len()).sum();
        let wanted = (self.next)(room).min(room);
        self.over = wanted == 0;
        let mut left = wanted;
        for area in areas {
            let part = left.min(area.len());
            area.get_mut(..part).unwrap_or_default().fill(0);
            left -= part;
        }
        Ok(wanted)
    }
}

/// Counts what comes, and drops it.
pub(crate) struct Drain {
    came: Came,
    news: Option<Sender<News>>,
    room: File,
}

impl Drain {
    pub(crate) fn new(came: Came, news: Sender<News>) -> io::Result<Self> {
        Ok(Self { came, news: Some(news), room: always()? })
    }
}

impl Consumer for Drain {
    fn take(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        let all = pieces.iter().map(|piece| piece.len()).sum();
        if !(self.came)(all)
            && let Some(news) = self.news.take()
        {
            // Whoever waited may have left.
            let _ = news.send(News::Enough);
        }
        Ok(all)
    }

    fn room(&self) -> BorrowedFd<'_> {
        self.room.as_fd()
    }

    fn end(&mut self) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeros_leave_as_they_are_asked_for_until_none_are() {
        let mut wanted = vec![0, 5, 9].into_iter();
        let mut zeros = Zeros::new(Box::new(move |_| wanted.next_back().unwrap_or(0)));
        let (mut one, mut other) = ([7; 4], [7; 4]);
        let mut fill = |zeros: &mut Zeros| {
            zeros.fill(&mut [IoSliceMut::new(&mut one), IoSliceMut::new(&mut other)]).unwrap()
        };
        assert_eq!(
            (fill(&mut zeros), zeros.wait()),
            (8, true),
            "never more than there is room for"
        );
        assert_eq!((fill(&mut zeros), zeros.wait()), (5, true));
        assert_eq!((fill(&mut zeros), zeros.wait()), (0, false));
        assert_eq!((one, other), ([0; 4], [0; 4]));
    }

    #[test]
    fn what_comes_is_counted_and_enough_is_told_once() {
        let (news, heard) = std::sync::mpsc::channel();
        let mut left = 5i32;
        let came = move |bytes: usize| {
            left -= bytes as i32;
            left > 0
        };
        let mut drain = Drain::new(Box::new(came), news).unwrap();
        for _ in 0..3 {
            assert_eq!(drain.take(&[IoSlice::new(b"abc"), IoSlice::new(b"")]).unwrap(), 3);
        }
        assert!(matches!(heard.try_recv(), Ok(News::Enough)));
        assert!(heard.try_recv().is_err());
    }
}
