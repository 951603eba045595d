//! Retry: how long to wait before a connection is tried again, and when not to (invariant R4).

use std::time::Duration;

/// How a lane that broke is tried again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retries {
    /// Attempts without a byte of progress before it is given up.
    pub attempts: u32,
    /// The first wait, before jitter; each further one is twice as long.
    pub first: Duration,
    /// The longest wait, jitter included.
    pub longest: Duration,
}

/// As every lane is: for about a minute and a half, if attempts take no time.
pub const RETRIES: Retries =
    Retries { attempts: 8, first: Duration::from_millis(500), longest: Duration::from_secs(30) };

const FIRST: Duration = RETRIES.first;
const LONGEST: Duration = RETRIES.longest;
const ATTEMPTS: u32 = RETRIES.attempts;

/// A connection's attempts since it last got something done.
#[derive(Debug, Default)]
pub(super) struct Backoff {
    failed: u32,
}

impl Backoff {
    /// It works: the next trouble starts from the shortest wait.
    pub(super) fn succeeded(&mut self) {
        self.failed = 0;
    }

    /// How long to wait before the next attempt, for `jitter` between 0 and 1; `None` = give up.
    pub(super) fn next(&mut self, jitter: f64) -> Option<Duration> {
        self.failed += 1;
        if self.failed > ATTEMPTS {
            return None;
        }
        let wait = FIRST.saturating_mul(1 << (self.failed - 1)).min(LONGEST);
        // Half fixed, half by chance: lanes that failed together do not come back together.
        Some(wait.mul_f64(0.5 + 0.5 * jitter.clamp(0.0, 1.0)).max(FIRST))
    }
}

/// A number between 0 and 1.
pub(super) fn chance() -> f64 {
    let mut bytes = [0; 4];
    // Without randomness all lanes wait alike, which is slower and no more.
    let _ = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty());
    f64::from(u32::from_le_bytes(bytes)) / f64::from(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r4_waits_double_with_jitter_between_half_a_second_and_thirty() {
        for jitter in [0.0, 0.3, 1.0] {
            let mut backoff = Backoff::default();
            let waits: Vec<_> = std::iter::from_fn(|| backoff.next(jitter)).collect();
            assert_eq!(waits.len(), ATTEMPTS as usize);
            assert!(waits.iter().all(|wait| (FIRST..=LONGEST).contains(wait)), "{waits:?}");
            assert!(waits.is_sorted(), "{waits:?}");
            assert!(waits[7] >= waits[0] * 15, "{waits:?}");
        }
    }

    #[test]
    fn r4_progress_starts_the_waits_again() {
        let mut backoff = Backoff::default();
        let first = backoff.next(1.0);
        (0..5).for_each(|_| assert!(backoff.next(1.0).is_some()));
        backoff.succeeded();
        assert_eq!(backoff.next(1.0), first);
    }

    #[test]
    fn chance_is_between_nothing_and_one() {
        assert!((0..100).map(|_| chance()).all(|chance| (0.0..=1.0).contains(&chance)));
    }
}
