//! Meter: what one key has done, and when it is time for another (RFC 4253 section 9).

use crypt::Cover;
use proto::RekeyLimit;
use proto::rekey::Used;
use std::time::{Duration, Instant};

/// Counts one direction's traffic under one key.
#[derive(Debug)]
pub(crate) struct Meter {
    limit: RekeyLimit,
    cover: Option<Cover>,
    used: Used,
    since: Instant,
    /// A rekey was asked for; not again before it is over.
    asked: bool,
}

impl Meter {
    pub(crate) fn new() -> Self {
        Self {
            limit: RekeyLimit::default(),
            cover: None,
            used: Used::default(),
            since: Instant::now(),
            asked: false,
        }
    }

    /// What the user set.
    pub(crate) fn set_limit(&mut self, limit: RekeyLimit) {
        self.limit = limit;
    }

    /// A new key begins.
    pub(crate) fn renew(&mut self, cover: Cover) {
        *self = Self { limit: self.limit, cover: Some(cover), ..Self::new() };
    }

    /// Counts traffic.
    pub(crate) fn count(&mut self, bytes: u64, packets: u64) {
        self.used.bytes += bytes;
        self.used.packets += packets;
    }

    /// True once when a rekey is due.
    pub(crate) fn is_due(&mut self) -> bool {
        // Where nothing is authenticated there is no further key exchange (N4).
        let cover = self.cover.filter(|cover| cover.is_authenticated() && !self.asked);
        let Some(cover) = cover else { return false };
        self.used.age = self.since.elapsed();
        self.asked = self.limit.is_due(cover, self.used);
        self.asked
    }

    /// Nobody could start the rekey that was asked for: another one was running.
    pub(crate) fn ask_again(&mut self) {
        self.asked = false;
    }

    /// How long until the key is too old.
    pub(crate) fn time_left(&self) -> Option<Duration> {
        let bare = self.cover.is_some_and(|cover| !cover.is_authenticated());
        let most = self.limit.time.filter(|_| !self.asked && !bare)?;
        Some(most.saturating_sub(self.since.elapsed()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crypt::{Cipher, Protection};

    /// A key may be used up before the peer's NEWKEYS of the exchange that brought it is in; the
    /// rekey cannot start then, and must not be forgotten.
    #[test]
    fn a_rekey_that_became_due_during_another_is_asked_for_again() {
        let mut meter = Meter::new();
        meter.set_limit(RekeyLimit { bytes: Some(100), time: None });
        meter.renew(Protection::new(Cipher::Aes128Gcm, None).unwrap().into());
        meter.count(100, 1);
        assert!(meter.is_due());
        assert!(!meter.is_due(), "once is enough while it runs");
        meter.ask_again();
        assert!(meter.is_due());
    }
}
