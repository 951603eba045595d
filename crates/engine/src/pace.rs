//! Pace: keeps what is in front of a keystroke short while channels share a connection, so that it
//! waits little more than a round trip under bulk load.
//!
//! ```text
//! quantum   what waits in front of the socket   batches and TCP_NOTSENT_LOWAT, 2 ms of the path each
//! rate      what waits in the path              SO_MAX_PACING_RATE, only while somebody types
//! ```
//! Sources ask after each batch. Alone on its connection a stream is never limited, nor are the
//! lanes of a copy.

mod quantum;
mod rate;

use crate::fd::Fd;
use crate::line::BATCH;
use rate::Rate;
use std::time::{Duration, Instant};

/// How often the kernel is asked.
const EVERY: Duration = Duration::from_millis(50);

/// What is known of the path's pace.
#[derive(Debug)]
pub(crate) struct Pace {
    quantum: usize,
    rate: Rate,
    looked: Option<Instant>,
}

impl Pace {
    pub(crate) fn new() -> Self {
        Self { quantum: BATCH, rate: Rate::new(), looked: None }
    }

    /// A batch leaves while there is company: `bulk`, or a keystroke or its echo.
    pub(crate) fn sent(&mut self, bulk: bool) {
        let now = Instant::now();
        if bulk { self.rate.moved(now) } else { self.rate.typed(now) }
    }

    /// Asks the kernel if it is time to; `company` is whether there is more than one channel. The
    /// new number of bytes for a batch, if it is another one.
    pub(crate) fn look(&mut self, fd: &Fd, company: bool) -> Option<usize> {
        let now = Instant::now();
        let soon = self.looked.is_some_and(|at| now.saturating_duration_since(at) < EVERY);
        let limited = self.quantum != BATCH || self.rate.is_limited();
        if (!company && !limited) || (company && soon) {
            return None;
        }
        self.looked = company.then_some(now);
        let path = sys::tcp_info(fd).filter(|_| company).unwrap_or_default();
        if let Some(limit) = self.rate.look(&path, now) {
            // Where it cannot be had, keystrokes wait behind what is on the way.
            let _ = sys::limit_rate(fd, limit);
        }
        let quantum = quantum::of(path.delivery_rate);
        if quantum == self.quantum {
            return None;
        }
        self.quantum = quantum;
        let unsent = (quantum < BATCH).then(|| u32::try_from(2 * quantum).unwrap_or(u32::MAX));
        // Where it cannot be had, keystrokes wait behind what is unsent.
        let _ = sys::limit_unsent(fd, unsent);
        Some(quantum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::OwnedFd;

    #[test]
    fn a_stream_that_is_alone_is_never_limited() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let fd = Fd::from(OwnedFd::from(stream));
        let mut pace = Pace::new();
        assert_eq!(pace.look(&fd, false), None);
        pace.quantum = BATCH / 2;
        assert_eq!(pace.look(&fd, false), Some(BATCH), "when the others have gone");
        assert_eq!(pace.look(&fd, false), None);
    }
}
