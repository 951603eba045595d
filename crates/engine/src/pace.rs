//! Pace: keeps what is in front of the socket short while channels share a connection, so that a
//! keystroke under bulk load waits little more than a round trip.
//!
//! Sources ask after each batch. A path that carries 200 Mbit/s takes 21 ms for a batch of 512 KiB
//! and 160 ms for what is unsent in 4 MiB of send buffer. So batches hold what the path carries in
//! [`TAKES`], and the socket's queue of unsent bytes twice as much (TCP_NOTSENT_LOWAT), so that it
//! does not run dry before a source wakes up. On a fast path that is a whole batch, and nothing is
//! limited; alone on its connection a stream never is, nor are the lanes of a copy.

use crate::fd::Fd;
use crate::line::BATCH;
use packet::layout::DATA;
use std::time::{Duration, Instant};

/// How often the kernel is asked.
const EVERY: Duration = Duration::from_millis(50);

/// How long a batch may keep the path busy.
const TAKES: Duration = Duration::from_millis(2);

/// Least bytes of a batch: 2.6 ms at 100 Mbit/s.
const LEAST: usize = DATA;

/// What is known of the path's pace.
#[derive(Debug)]
pub(crate) struct Pace {
    quantum: usize,
    looked: Option<Instant>,
}

impl Pace {
    pub(crate) fn new() -> Self {
        Self { quantum: BATCH, looked: None }
    }

    /// Asks the kernel if it is time to; `company` is whether there is more than one channel. The
    /// new number of bytes for a batch, if it is another one.
    pub(crate) fn look(&mut self, fd: &Fd, company: bool) -> Option<usize> {
        let now = Instant::now();
        let soon = self.looked.is_some_and(|at| now.saturating_duration_since(at) < EVERY);
        if (!company && self.quantum == BATCH) || (company && soon) {
            return None;
        }
        self.looked = company.then_some(now);
        let rate = sys::tcp_info(fd).map_or(0, |path| path.delivery_rate);
        let quantum = if company { quantum(rate) } else { BATCH };
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

/// Bytes of a batch on a path of `rate` bytes per second, in whole packets; a whole batch where
/// the rate is not known.
fn quantum(rate: u64) -> usize {
    if rate == 0 {
        return BATCH;
    }
    let takes = u64::try_from(TAKES.as_micros()).unwrap_or(u64::MAX);
    let bytes = usize::try_from(rate.saturating_mul(takes) / 1_000_000).unwrap_or(BATCH);
    (bytes / DATA * DATA).clamp(LEAST, BATCH)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::OwnedFd;

    #[test]
    fn a_batch_takes_the_path_two_milliseconds_at_most_or_is_one_packet() {
        const MBIT: u64 = 125_000;
        assert_eq!(quantum(200 * MBIT), DATA);
        assert_eq!(quantum(MBIT), DATA);
        assert_eq!(quantum(1000 * MBIT), 7 * DATA);
        assert_eq!(quantum(10_000 * MBIT), BATCH);
        assert_eq!(quantum(u64::MAX), BATCH);
        assert_eq!(quantum(0), BATCH, "no TCP, or nothing was sent yet");
    }

    #[test]
    fn a_stream_that_is_alone_is_never_limited() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let fd = Fd::from(OwnedFd::from(stream));
        let mut pace = Pace::new();
        assert_eq!(pace.look(&fd, false), None);
        pace.quantum = LEAST;
        assert_eq!(pace.look(&fd, false), Some(BATCH), "when the others have gone");
        assert_eq!(pace.look(&fd, false), None);
    }
}
