//! Rate: lets the queue of the path run empty while somebody types.
//!
//! Congestion control fills the queue in front of the narrowest link: cubic all of it, bbr up to a
//! round trip's worth. A keystroke waits behind that, however short our own queues are. So while
//! keystrokes leave beside bulk, the socket's rate is bounded (SO_MAX_PACING_RATE) by what lately
//! reached the peer: by a little more while round trips are as short as they were ever seen, by
//! less while they are longer, so that the queue is gone within [`DRAIN`].
//!
//! Bulk that does not fill the path yet is not bounded: the bound begins with a queue that lasts for
//! a round trip. What reached the peer before that tells nothing of the path.
//!
//! A queue that stays although less is sent is somebody else's. Giving way to it would starve our
//! bulk and help no keystroke, so the bound is lifted for a while. It goes, too, when nobody types.

use std::time::{Duration, Instant};
use sys::TcpInfo;

/// After the last keystroke.
const TYPING: Duration = Duration::from_secs(10);

/// A keystroke has bulk beside it for so long.
const BESIDE: Duration = Duration::from_secs(1);

/// Queue that nobody feels, and that keeps the link busy.
const QUEUE: Duration = Duration::from_millis(4);

/// Time in which a longer queue should be gone.
const DRAIN: Duration = Duration::from_millis(100);

/// Thousandths of what reached the peer, while there is no queue: the path may carry more now.
const MORE: u64 = 1060;

/// The least of it, and of the most that reached the peer while somebody types: what a bound lets
/// through is what the next one is made of, and must not wear down to nothing.
const LEAST: u64 = 500;

/// A queue that stays this long is not ours ...
const OURS: Duration = Duration::from_secs(3);

/// ... and is not looked for again so soon.
const LIFTED: Duration = Duration::from_secs(30);

/// The bound on a socket's rate.
#[derive(Debug)]
pub(crate) struct Rate {
    limited: bool,
    /// The last keystroke beside bulk.
    typed: Option<Instant>,
    /// The last bulk.
    moved: Option<Instant>,
    /// Most bytes per second that reached the peer since the bound was last lifted.
    most: u64,
    /// Since when the queue is too long.
    queued: Option<Instant>,
    /// Until when there is no bound.
    lifted: Option<Instant>,
}

impl Rate {
    pub(crate) fn new() -> Self {
        Self { limited: false, typed: None, moved: None, most: 0, queued: None, lifted: None }
    }

    pub(crate) fn typed(&mut self, now: Instant) {
        if self.moved.is_some_and(|at| now.saturating_duration_since(at) < BESIDE) {
            self.typed = Some(now);
        }
    }

    pub(crate) fn moved(&mut self, now: Instant) {
        self.moved = Some(now);
    }

    pub(crate) fn is_limited(&self) -> bool {
        self.limited
    }

    /// The new bound in bytes per second, if there is one: `Some(None)` lifts it.
    pub(crate) fn look(&mut self, path: &TcpInfo, now: Instant) -> Option<Option<u64>> {
        let bound = self.bound(path, now);
        let was_limited = std::mem::replace(&mut self.limited, bound.is_some());
        (was_limited || bound.is_some()).then_some(bound)
    }

    fn bound(&mut self, path: &TcpInfo, now: Instant) -> Option<u64> {
        let typing = self.typed.is_some_and(|at| now.saturating_duration_since(at) < TYPING);
        let known = path.delivery_rate > 0 && path.shortest_rtt > Duration::ZERO;
        if !typing || !known || self.lifted.is_some_and(|until| now < until) {
            (self.queued, self.most) = (None, 0);
            return None;
        }
        let queue = path.rtt.saturating_sub(path.shortest_rtt);
        let queued = (queue > QUEUE).then(|| *self.queued.get_or_insert(now));
        self.queued = queued;
        let lasted = queued.map(|since| now.saturating_duration_since(since));
        if lasted.is_some_and(|lasted| lasted > OURS) {
            (self.lifted, self.most) = (Some(now + LIFTED), 0);
            return None;
        }
        if !self.limited && lasted.is_none_or(|lasted| lasted < path.rtt) {
            return None;
        }
        self.most = self.most.max(path.delivery_rate);
        let thousandths = |rate: u64, part: u64| rate.saturating_mul(part) / 1000;
        Some(thousandths(path.delivery_rate, part(queue)).max(thousandths(self.most, LEAST)))
    }
}

/// Thousandths of what reached the peer that may be sent with this queue in front.
fn part(queue: Duration) -> u64 {
    let Some(excess) = queue.checked_sub(QUEUE) else { return MORE };
    let less = excess.as_micros() * 1000 / DRAIN.as_micros();
    1000_u64.saturating_sub(u64::try_from(less).unwrap_or(u64::MAX)).max(LEAST)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: u64 = 25_000_000;

    fn path(queue_ms: u64) -> TcpInfo {
        TcpInfo {
            rtt: Duration::from_millis(20 + queue_ms),
            shortest_rtt: Duration::from_millis(20),
            delivery_rate: RATE,
            ..TcpInfo::default()
        }
    }

    const TRIP: Duration = Duration::from_millis(100);

    /// Bound by a queue that lasted for a round trip, since then.
    fn bounded() -> (Rate, Instant) {
        let (mut rate, start) = (Rate::new(), Instant::now());
        rate.moved(start);
        rate.typed(start);
        assert_eq!(rate.look(&path(50), start), None);
        assert!(matches!(rate.look(&path(50), start + TRIP), Some(Some(_))));
        (rate, start + TRIP)
    }

    #[test]
    fn nothing_is_bounded_while_nobody_types() {
        let (mut rate, now) = (Rate::new(), Instant::now());
        rate.moved(now);
        assert_eq!(rate.look(&path(50), now), None);
        assert_eq!(rate.look(&path(50), now + TRIP), None);
        let (mut rate, now) = bounded();
        assert_eq!(rate.look(&path(50), now + TYPING), Some(None));
        assert_eq!(rate.look(&path(50), now + TYPING), None, "once is enough");
    }

    /// A line now and then tells nothing of what the path carries: the next bulk is not to begin at
    /// its rate.
    #[test]
    fn nothing_is_bounded_before_bulk_fills_the_path() {
        let (mut rate, start) = (Rate::new(), Instant::now());
        let trickle = TcpInfo { delivery_rate: 30_000, ..path(0) };
        for second in 0..20 {
            let now = start + Duration::from_secs(second);
            rate.typed(now);
            assert_eq!(rate.look(&path(50), now), None, "there is no bulk");
        }
        let begins = start + Duration::from_secs(20);
        rate.moved(begins);
        rate.typed(begins);
        for look in 0..20 {
            assert_eq!(rate.look(&trickle, begins + look * TRIP / 2), None, "there is no queue");
        }
        assert_eq!(rate.look(&path(50), begins + 10 * TRIP), None, "one late acknowledgement");
        assert_eq!(rate.look(&path(0), begins + 11 * TRIP), None);
    }

    #[test]
    fn the_longer_the_queue_the_less_may_be_sent() {
        let (mut rate, now) = bounded();
        let mut bound = |queue| rate.look(&path(queue), now).flatten().unwrap();
        assert!(bound(0) > RATE, "or the path would never be known to carry more");
        assert!(bound(10) < RATE && bound(30) < bound(10));
        assert_eq!(bound(1000), RATE / 2);
    }

    /// A path whose round trips vary by themselves: what is let through is all that arrives.
    #[test]
    fn bounds_do_not_wear_down_to_nothing() {
        let (mut rate, now) = bounded();
        let mut arrives = RATE;
        for look in 0..1000 {
            let path =
                TcpInfo { delivery_rate: arrives, ..path(if look % 10 == 0 { 0 } else { 60 }) };
            arrives = rate.look(&path, now).flatten().unwrap().min(RATE);
        }
        assert!(arrives >= RATE / 2, "{arrives}");
    }

    #[test]
    fn a_queue_that_stays_is_somebody_elses() {
        let (mut rate, began) = bounded();
        let step = Duration::from_millis(50);
        let mut now = began;
        let key = |rate: &mut Rate, now| {
            rate.moved(now);
            rate.typed(now);
            rate.look(&path(30), now)
        };
        while key(&mut rate, now) != Some(None) {
            now += step;
        }
        // It began a round trip before the bound.
        assert!(now > began + OURS - TRIP && now <= began + OURS - TRIP + step);
        assert_eq!(key(&mut rate, now + step), None);
        let later = now + LIFTED;
        assert_eq!(key(&mut rate, later), None);
        assert!(matches!(key(&mut rate, later + TRIP), Some(Some(_))));
    }

    #[test]
    fn a_path_that_is_not_known_is_not_bounded() {
        let (mut rate, now) = bounded();
        assert_eq!(rate.look(&TcpInfo::default(), now), Some(None));
        assert_eq!(rate.look(&TcpInfo::default(), now), None);
    }
}
