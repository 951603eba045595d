//! The receiver's window rule: how far ahead of its consumer a peer may send.
//!
//! ```text
//! debit     data arrived                 credit -> held
//! consumed  the consumer took it         held -> free; ends a running loop measurement
//! adjust    is half of the target free?  resize the target, then free -> credit
//! ```
//!
//! `credit + held` is all the memory the peer can make us use; the target bounds it. Once per
//! loop the target grows, while the consumer keeps up *and* the window is what limits, or soon
//! would be; it halves while the consumer is what limits. So the window runs ahead of the sender's
//! slow start where bytes are taken (simulated: 96 % of the first 20 round trips of an unlimited
//! window) and stays at the floor where they are not.
//!
//! **What limits** is seen without help of the kernel or the peer. The first byte beyond a grant
//! comes `max(round trip, what was left of the window / rate)` after the grant: one loop. Close to
//! a round trip means that the sender waits for us, so the target grows fourfold; within two
//! round trips, that it would wait after the next doubling of its rate, so the target doubles.
//! Loops shorter than [`NOISE`] say nothing and count as waiting.

use crate::Peer;
use std::time::{Duration, Instant};

/// Below this a loop is scheduling and batching, not the path: on loopback (50 us) one batch of
/// 512 KiB takes 150-500 us from `recv` to the consumer.
const NOISE: Duration = Duration::from_millis(4);

/// What a consumer may take at any speed and prove nothing by it: the pipe in front of it.
const SWALLOWED: u64 = 1 << 20;

/// A window grows to so many times what its consumer has taken beyond that. TCP's slow start sends
/// in a round trip as much as in all before it, and a grant takes another one to arrive (simulated:
/// 96 % of an unlimited window's first 20 round trips; with 2 it is 93 %).
const TRUST: u64 = 4;

const KIB: u32 = 1 << 10;
const MIB: u32 = 1 << 20;

/// The peer sent more than it was allowed to: invariant C1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("peer sent {0} bytes more than a channel's window allows")]
pub struct Overrun(pub u32);

/// Bounds of a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rule {
    floor: u32,
    cap: u32,
    /// The window is adjusted when `target / parts` of it are free.
    parts: u32,
}

impl Rule {
    /// OpenSSH from 8.9 on collects what it may send in a buffer that collapses at 16 MiB.
    pub const OPENSSH_CAP: u32 = 15 * MIB;

    /// Bulk data: from 2 MiB up to `cap`.
    pub fn bulk(cap: u32) -> Self {
        Self { floor: cap.min(2 * MIB), cap, parts: 2 }
    }

    /// Bulk data from `peer`: up to `most`, or less where the peer could not stand as much.
    pub fn towards(peer: Option<&Peer>, most: u32) -> Self {
        Self::bulk(peer.and_then(Peer::max_window).map_or(most, |theirs| theirs.min(most)))
    }

    /// A terminal: small, so that an interrupt overtakes little, and adjusted often.
    pub fn interactive() -> Self {
        Self { floor: 128 * KIB, cap: 128 * KIB, parts: 4 }
    }

    /// The window to open a channel with.
    pub fn initial(&self) -> u32 {
        self.floor
    }

    /// The largest that a window may become.
    pub fn most(&self) -> u32 {
        self.cap
    }
}

/// A grant on its way: from its WINDOW_ADJUST until the first byte that needed it.
#[derive(Debug, Clone, Copy)]
struct Loop {
    since: Instant,
    beyond: u64,
}

/// One channel's receiving window.
#[derive(Debug, Clone)]
pub struct Recv {
    rule: Rule,
    target: u32,
    /// What the peer may still send.
    credit: u32,
    /// What arrived and is not consumed.
    held: u32,
    /// All that ever arrived.
    arrived: u64,
    /// All that the consumer ever took.
    taken: u64,
    running: Option<Loop>,
    /// How many times over the target should grow, by the last loop: 1 when TCP is the limit.
    growth: u32,
    shortest: Option<Duration>,
    noted: Duration,
    rcvbuf: u32,
    resized: Option<Instant>,
}

impl Recv {
    /// A channel that was opened with `window` bytes, usually [`Rule::initial`].
    pub fn new(rule: Rule, window: u32) -> Self {
        Self {
            rule,
            target: window.clamp(rule.floor, rule.cap),
            credit: window,
            held: 0,
            arrived: 0,
            taken: 0,
            running: None,
            growth: 1,
            shortest: None,
            noted: Duration::ZERO,
            rcvbuf: 0,
            resized: None,
        }
    }

    /// `n` bytes arrived. Invariant C1: beyond the window is an error, and nothing is counted.
    #[inline]
    pub fn debit(&mut self, n: u32) -> Result<(), Overrun> {
        self.credit = self.credit.checked_sub(n).ok_or(Overrun(n.saturating_sub(self.credit)))?;
        self.held = self.held.saturating_add(n);
        self.arrived = self.arrived.saturating_add(u64::from(n));
        Ok(())
    }

    /// The consumer took `n` bytes, or they were discarded (invariant C7: those count too).
    #[inline]
    pub fn consumed(&mut self, n: u32, now: Instant) {
        self.held = self.held.saturating_sub(n);
        self.taken = self.taken.saturating_add(u64::from(n));
        if let Some(run) = self.running.filter(|run| self.arrived > run.beyond) {
            self.running = None;
            self.looped(now.saturating_duration_since(run.since));
        }
    }

    /// The kernel's estimate of the round trip, where there is one.
    pub fn note_rtt(&mut self, rtt: Duration) {
        self.noted = rtt;
    }

    /// The size of the socket's receive buffer. While the consumer keeps up, the target grows to
    /// at least as much, so that the kernel sees a reason to go on growing it.
    pub fn note_rcvbuf(&mut self, bytes: u32) {
        self.rcvbuf = bytes;
    }

    /// Another rule from now on, as when a session asks for a terminal.
    pub fn set_rule(&mut self, rule: Rule) {
        self.rule = rule;
        self.target = self.target.clamp(rule.floor, rule.cap);
    }

    /// What to grant now, if anything; it counts as granted. To be asked after `consumed`.
    pub fn adjust(&mut self, now: Instant) -> Option<u32> {
        if !self.is_due() {
            return None;
        }
        self.resize(now);
        if !self.is_due() {
            return None;
        }
        let free = self.free();
        let beyond = self.arrived.saturating_add(u64::from(self.credit));
        self.running.get_or_insert(Loop { since: now, beyond });
        self.credit = self.credit.saturating_add(free);
        Some(free)
    }

    /// What the peer may send and what waits for the consumer.
    pub fn exposure(&self) -> u32 {
        self.credit.saturating_add(self.held)
    }

    /// What arrived and is not consumed.
    pub fn held(&self) -> u32 {
        self.held
    }

    /// What the peer may still send.
    pub fn credit(&self) -> u32 {
        self.credit
    }

    /// The window aimed at.
    pub fn target(&self) -> u32 {
        self.target
    }

    fn free(&self) -> u32 {
        self.target.saturating_sub(self.exposure())
    }

    /// Half of the target; an eighth where the cap is what limits. There every byte that waits
    /// for its WINDOW_ADJUST is lost: over 1 Gbit/s x 100 ms (simulated) halves of 15 MiB carry
    /// 0.63 of the rate, eighths all of it. An eighth at the start, too: in slow start the half
    /// would arrive when the sender has just sent the last byte of it, and a grant that is late by
    /// half a round trip would stop the stream (0.56 of what 8 round trips could carry).
    fn is_due(&self) -> bool {
        let at_cap = self.growth > 1 && self.target == self.rule.cap;
        let starts = self.shortest.is_none() && self.rule.cap > self.rule.floor;
        let parts = if at_cap || starts { self.rule.parts.max(8) } else { self.rule.parts };
        let free = self.free();
        free > 0 && free >= self.target.checked_div(parts).unwrap_or(free)
    }

    fn looped(&mut self, took: Duration) {
        self.shortest = Some(self.shortest.map_or(took, |s| s.min(took)));
        let trip = self.round_trip();
        self.growth = match took {
            waits if waits <= trip.saturating_mul(5) / 4 => 4,
            soon if soon <= trip.saturating_mul(2) => 2,
            _ => 1,
        };
    }

    /// The larger of what the kernel says and the shortest loop seen: the peer's own delays count.
    fn round_trip(&self) -> Duration {
        self.noted.max(self.shortest.unwrap_or_default()).max(NOISE)
    }

    fn resize(&mut self, now: Instant) {
        let took = self.resized.replace(now).map(|last| now.saturating_duration_since(last));
        let slow = took.is_some_and(|t| t > self.round_trip().saturating_mul(2));
        let queued = self.held >= self.target / 4;
        if slow && queued {
            self.target = (self.target / 2).max(self.rule.floor);
        } else if self.running.is_none() && !queued {
            let starved = if self.target < self.rcvbuf { 2 } else { 1 };
            let wanted = self.target.saturating_mul(self.growth.max(starved));
            self.target = wanted.min(self.trusted()).min(self.rule.cap).max(self.target);
        }
    }

    /// The largest window that what the consumer took so far vouches for.
    fn trusted(&self) -> u32 {
        u32::try_from(self.taken.saturating_sub(SWALLOWED).saturating_mul(TRUST))
            .unwrap_or(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bulk() -> Recv {
        let rule = Rule::bulk(64 * MIB);
        Recv::new(rule, rule.initial())
    }

    /// Invariant C1.
    #[test]
    fn c1_window_overrun_by_one_byte_is_refused() {
        let mut recv = bulk();
        assert_eq!(recv.debit(2 * MIB), Ok(()));
        assert_eq!(recv.debit(1), Err(Overrun(1)));
        assert_eq!(recv.held(), 2 * MIB);
        assert_eq!(recv.debit(0), Ok(()));
    }

    #[test]
    fn a_bulk_window_is_adjusted_by_eighths_at_first_and_then_by_halves() {
        let (mut recv, now) = (bulk(), Instant::now());
        let mut adjusted_after = |part: u32| {
            recv.debit(part).unwrap();
            assert_eq!(recv.adjust(now), None, "arrived is not consumed");
            recv.consumed(part - 1, now);
            assert_eq!(recv.adjust(now), None);
            recv.consumed(1, now);
            recv.adjust(now)
        };
        // Until the first byte arrives that needed the first grant.
        for _ in 0..8 {
            assert_eq!(adjusted_after(MIB / 4), Some(MIB / 4));
        }
        assert!(adjusted_after(MIB).unwrap() >= MIB);
    }

    /// However fast the first megabytes go: they may have gone into a pipe.
    #[test]
    fn a_window_is_no_larger_than_its_consumer_vouches_for() {
        let (mut recv, mut now, mut taken) = (bulk(), Instant::now(), 0);
        while recv.target() < 64 * MIB {
            for _ in 0..4 {
                let part = recv.credit() / 4;
                recv.debit(part).unwrap();
                recv.consumed(part, now);
                taken += u64::from(part);
                let _ = recv.adjust(now);
                let vouched = (4 * taken.saturating_sub(1 << 20)).max(2 << 20);
                assert!(u64::from(recv.target()) <= vouched, "{} after {taken}", recv.target());
                now += Duration::from_millis(25);
            }
        }
    }

    #[test]
    fn an_interactive_window_stays_small_and_is_adjusted_often() {
        let (rule, now) = (Rule::interactive(), Instant::now());
        let mut recv = Recv::new(rule, rule.initial());
        for _ in 0..1000 {
            recv.debit(32 * KIB).unwrap();
            recv.consumed(32 * KIB, now);
            assert_eq!(recv.adjust(now), Some(32 * KIB));
        }
        assert_eq!(recv.target(), 128 * KIB);
    }

    #[test]
    fn a_terminal_shrinks_the_window_of_its_channel() {
        let (mut recv, now) = (bulk(), Instant::now());
        recv.set_rule(Rule::interactive());
        recv.debit(2 * MIB - 100 * KIB).unwrap();
        recv.consumed(2 * MIB - 100 * KIB, now);
        assert_eq!(recv.adjust(now), None);
        recv.debit(68 * KIB).unwrap();
        recv.consumed(68 * KIB, now);
        assert_eq!(recv.adjust(now), Some(96 * KIB));
    }

    #[test]
    fn the_largest_window_neither_overflows_nor_divides_by_zero() {
        let now = Instant::now();
        for cap in [0, 1, u32::MAX] {
            let mut recv = Recv::new(Rule::bulk(cap), cap);
            let _ = recv.debit(cap);
            recv.consumed(cap, now);
            let _ = recv.adjust(now);
            assert!(recv.exposure() <= cap);
        }
    }
}
