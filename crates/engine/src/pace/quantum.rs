//! Quantum: how long a batch may be, for what is in front of the socket.
//!
//! A path that carries 200 Mbit/s takes 21 ms for a batch of 512 KiB and 160 ms for what is unsent
//! in 4 MiB of send buffer. So batches hold what the path carries in [`TAKES`], and the socket's
//! queue of unsent bytes twice as much (TCP_NOTSENT_LOWAT), so that it does not run dry before a
//! source wakes up. On a fast path that is a whole batch, and nothing is limited.

use crate::line::BATCH;
use packet::layout::DATA;
use std::time::Duration;

/// How long a batch may keep the path busy.
const TAKES: Duration = Duration::from_millis(2);

/// Least bytes of a batch: 2.6 ms at 100 Mbit/s.
const LEAST: usize = DATA;

/// Bytes of a batch on a path of `rate` bytes per second, in whole packets; a whole batch where
/// the rate is not known.
pub(crate) fn of(rate: u64) -> usize {
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

    #[test]
    fn a_batch_takes_the_path_two_milliseconds_at_most_or_is_one_packet() {
        const MBIT: u64 = 125_000;
        assert_eq!(of(200 * MBIT), DATA);
        assert_eq!(of(MBIT), DATA);
        assert_eq!(of(1000 * MBIT), 7 * DATA);
        assert_eq!(of(10_000 * MBIT), BATCH);
        assert_eq!(of(u64::MAX), BATCH);
        assert_eq!(of(0), BATCH, "no TCP, or nothing was sent yet");
    }
}
