//! The limit of `--bwlimit` and `-l`: one smooth bucket for all lanes, asked before content moves.
//!
//! The bucket holds 50 ms' worth: after any pause no more than that leaves at once. A lane asks
//! for a [`piece`](Limiter::piece) at a time, sleeps as long as it is told, and sends.

use std::num::NonZeroU64;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// What may leave at once, as time at the full rate.
const BURST: Duration = Duration::from_millis(50);

/// A shared limit.
#[derive(Debug)]
pub struct Limiter {
    rate: NonZeroU64,
    book: Mutex<Book>,
}

#[derive(Debug)]
struct Book {
    /// When everything granted so far would have left at exactly the rate.
    paid: Instant,
    /// Time in which more might have left than anybody asked for.
    idle: Duration,
}

impl Limiter {
    /// A limit of `rate` bytes per second.
    #[must_use]
    pub fn new(rate: NonZeroU64) -> Self {
        Self::starting(rate, Instant::now())
    }

    fn starting(rate: NonZeroU64, now: Instant) -> Self {
        Self { rate, book: Mutex::new(Book { paid: now, idle: Duration::ZERO }) }
    }

    /// The most bytes to ask for at once: half the bucket, so that pieces of several lanes mix, but
    /// never so few that packets become tiny.
    #[must_use]
    pub fn piece(&self) -> usize {
        let half = self.rate.get() as f64 * BURST.as_secs_f64() / 2.0;
        (half as usize).clamp(4 << 10, 1 << 20)
    }

    /// Books `bytes` and says how long to wait before they are sent.
    #[must_use]
    pub fn take(&self, bytes: usize) -> Duration {
        self.take_at(Instant::now(), bytes)
    }

    fn take_at(&self, now: Instant, bytes: usize) -> Duration {
        let cost = Duration::from_secs_f64(bytes as f64 / self.rate.get() as f64);
        let mut book = self.book();
        let idle = now.saturating_duration_since(book.paid);
        book.idle += idle;
        book.paid = book.paid.max(now) + cost;
        book.paid.saturating_duration_since(now).saturating_sub(BURST)
    }

    /// For how long, since the start, more might have left than anybody asked for.
    #[must_use]
    pub fn idle(&self) -> Duration {
        self.idle_at(Instant::now())
    }

    fn idle_at(&self, now: Instant) -> Duration {
        let book = self.book();
        book.idle + now.saturating_duration_since(book.paid)
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: NonZeroU64 = NonZeroU64::new(10_000_000).unwrap();

    /// Lanes that each wait as they are told, on a clock of their own making: (when, bytes) sent.
    fn simulate(
        lanes: usize,
        sends: usize,
        pause: impl Fn(usize) -> Duration,
    ) -> Vec<(Duration, usize)> {
        let start = Instant::now();
        let limiter = Limiter::starting(RATE, start);
        let mut free = vec![start; lanes];
        let mut sent = Vec::new();
        for turn in 0..sends {
            let lane = (0..lanes).min_by_key(|&lane| free[lane]).unwrap();
            let now = free[lane] + pause(turn);
            let at = now + limiter.take_at(now, limiter.piece());
            sent.push((at - start, limiter.piece()));
            free[lane] = at;
        }
        sent
    }

    /// The most that left in any window beyond what the rate allows for it, in bytes.
    fn worst_burst(sent: &[(Duration, usize)]) -> f64 {
        let mut worst = 0f64;
        for (first, (from, _)) in sent.iter().enumerate() {
            let mut sum = 0;
            for (until, bytes) in &sent[first..] {
                sum += bytes;
                let allowed = (*until - *from).as_secs_f64() * RATE.get() as f64;
                worst = worst.max(sum as f64 - allowed);
            }
        }
        worst
    }

    #[test]
    fn no_burst_is_above_50_ms_worth() {
        let bucket = BURST.as_secs_f64() * RATE.get() as f64;
        for lanes in [1, 3, 8] {
            let steady = simulate(lanes, 400, |_| Duration::ZERO);
            assert!(worst_burst(&steady) <= bucket + 1.0, "{lanes} lanes");
            let pauses = |turn| Duration::from_millis(if turn % 50 == 49 { 500 } else { 0 });
            let bursty = simulate(lanes, 400, pauses);
            assert!(worst_burst(&bursty) <= bucket + 1.0, "{lanes} lanes with pauses");
        }
    }

    #[test]
    fn the_rate_is_reached() {
        for lanes in [1, 8] {
            let sent = simulate(lanes, 2000, |_| Duration::ZERO);
            let bytes: usize = sent.iter().map(|(_, bytes)| bytes).sum();
            let seconds = sent.iter().map(|(at, _)| *at).max().unwrap().as_secs_f64();
            let rate = bytes as f64 / seconds;
            assert!((rate / RATE.get() as f64 - 1.0).abs() < 0.02, "{lanes} lanes: {rate}");
        }
    }

    #[test]
    fn time_in_which_too_little_is_asked_for_is_idle() {
        let start = Instant::now();
        let limiter = Limiter::starting(RATE, start);
        let second = Duration::from_secs(1);
        // One second's worth in each of three seconds, then half of it.
        for n in 0..3 {
            let _ = limiter.take_at(start + second * n, 10_000_000);
        }
        assert_eq!(limiter.idle_at(start + second * 2), Duration::ZERO);
        let _ = limiter.take_at(start + second * 3, 5_000_000);
        assert_eq!(limiter.idle_at(start + second * 4), second / 2);
        let _ = limiter.take_at(start + second * 5, 20_000_000);
        assert_eq!(limiter.idle_at(start + second * 6), second * 3 / 2);
    }

    #[test]
    fn a_piece_of_a_slow_limit_waits_its_time_and_none_is_tiny() {
        let now = Instant::now();
        let limiter = Limiter::starting(NonZeroU64::new(1000).unwrap(), now);
        assert_eq!(limiter.piece(), 4096);
        assert_eq!(limiter.take_at(now, 4096), Duration::from_millis(4096 - 50));
        assert_eq!(limiter.take_at(now, 4096), Duration::from_millis(2 * 4096 - 50));
    }
}
