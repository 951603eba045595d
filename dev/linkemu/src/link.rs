//! One direction of the link as a calculation: when each segment arrives, or that it does not.
//!
//! arrive   queue limit -> serialisation at the bottleneck -> loss -> propagation and jitter
//!
//! No clock, no sockets: time comes in as nanoseconds and goes out the same way, randomness is
//! a seeded generator. The queue is virtual: its length is the time until which the bottleneck
//! is busy, so a packet's fate is known the moment it arrives, and nothing is ever reordered.

use std::ops::Range;

use crate::random::Random;
use crate::segment::Shape;

/// Nanoseconds since the link came up.
pub type Nanos = u64;

const SECOND: u64 = 1_000_000_000;

/// What one direction does to packets.
#[derive(Debug, Clone, PartialEq)]
pub struct Path {
    /// Bits per second at the bottleneck, counted on IP packets; `None` is unlimited.
    pub rate: Option<u64>,
    /// One-way propagation delay.
    pub delay: Nanos,
    /// Each piece is late by another 0 to this much, evenly distributed, but never overtakes.
    pub jitter: Nanos,
    /// Bytes that may wait for the bottleneck; what does not fit is dropped at the tail.
    pub queue: u64,
    /// Probability that a segment which has passed the bottleneck is lost.
    pub loss: f64,
    /// A super-packet that takes longer than this to serialise is delivered in pieces of about
    /// this length, as its segments would trickle in.
    pub piece: Nanos,
}

/// A run of segments of one packet that are delivered together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// When they are to leave the emulator.
    pub due: Nanos,
    /// Which segments of the packet.
    pub segments: Range<u32>,
}

/// What became of one packet's segments.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Fate {
    /// Segments refused because the queue was full.
    pub dropped: u32,
    /// Segments lost behind the bottleneck.
    pub lost: u32,
    /// Bytes that waited for the bottleneck when this packet had joined them.
    pub queued: u64,
}

/// The state of one direction.
#[derive(Debug)]
pub struct Schedule {
    path: Path,
    random: Random,
    /// When the bottleneck has sent everything accepted so far.
    busy_until: Nanos,
    /// Bit-nanoseconds that did not make a whole nanosecond yet, so that rates are exact.
    remainder: u64,
    /// Segments to pass before the next one is lost.
    until_loss: u64,
    last_due: Nanos,
}

impl Schedule {
    /// An idle path. The same seed and the same arrivals give the same deliveries.
    pub fn new(path: Path, seed: u64) -> Self {
        let mut random = Random::new(seed);
        let until_loss = random.failures_before_success(path.loss);
        Self { path, random, busy_until: 0, remainder: 0, until_loss, last_due: 0 }
    }

    /// Decides about a packet that arrives `now`; `deliver` gets its surviving pieces in order.
    pub fn arrive(&mut self, now: Nanos, shape: &Shape, mut deliver: impl FnMut(Piece)) -> Fate {
        let accepted = self.accept(now, shape);
        self.busy_until = self.busy_until.max(now);
        let mut fate = Fate { dropped: shape.segments - accepted, ..Fate::default() };
        let step = self.segments_per_piece(shape, accepted);
        let mut start = 0;
        while start < accepted {
            let end = (start + step).min(accepted);
            self.serialise(shape.wire_bytes(&(start..end)));
            let due = self.due();
            fate.lost += self.thin_out(start..end, |segments| deliver(Piece { due, segments }));
            start = end;
        }
        fate.queued = self.backlog(now);
        fate
    }

    /// How many segments, from the first, find room in the queue.
    fn accept(&self, now: Nanos, shape: &Shape) -> u32 {
        if self.path.rate.is_none() {
            return shape.segments;
        }
        let room = self.path.queue.saturating_sub(self.backlog(now));
        if shape.wire_bytes(&(0..shape.segments)) <= room {
            return shape.segments;
        }
        let each = shape.wire_bytes(&(0..1));
        ((room / each) as u32).min(shape.segments - 1)
    }

    /// Bytes that still wait for the bottleneck.
    fn backlog(&self, now: Nanos) -> u64 {
        let wait = u128::from(self.busy_until.saturating_sub(now));
        let rate = u128::from(self.path.rate.unwrap_or(0));
        (wait * rate / u128::from(8 * SECOND)) as u64
    }

    fn segments_per_piece(&self, shape: &Shape, accepted: u32) -> u32 {
        let Some(rate) = self.path.rate.filter(|_| self.path.piece > 0) else { return accepted };
        let time = shape.wire_bytes(&(0..accepted)) * 8 * SECOND / rate;
        let pieces = (time + self.path.piece / 2) / self.path.piece;
        accepted.div_ceil((pieces as u32).max(1)).max(1)
    }

    fn serialise(&mut self, bytes: u64) {
        let Some(rate) = self.path.rate else { return };
        let work = bytes * 8 * SECOND + self.remainder;
        self.busy_until += work / rate;
        self.remainder = work % rate;
    }

    fn due(&mut self) -> Nanos {
        let jitter = self.random.up_to(self.path.jitter);
        self.last_due = self.last_due.max(self.busy_until + self.path.delay + jitter);
        self.last_due
    }

    /// Hands on the runs between lost segments; returns how many were lost.
    fn thin_out(&mut self, segments: Range<u32>, mut keep: impl FnMut(Range<u32>)) -> u32 {
        let mut start = segments.start;
        let mut lost = 0;
        while u64::from(segments.end - start) > self.until_loss {
            let victim = start + self.until_loss as u32;
            if start < victim {
                keep(start..victim);
            }
            lost += 1;
            start = victim + 1;
            self.until_loss = self.random.failures_before_success(self.path.loss);
        }
        if start < segments.end {
            keep(start..segments.end);
        }
        self.until_loss -= u64::from(segments.end - start);
        lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sys::tun::VNET_HDR;

    const MS: Nanos = 1_000_000;

    fn path() -> Path {
        let rate = Some(1_000_000_000);
        Path { rate, delay: 50 * MS, jitter: 0, queue: 1 << 20, loss: 0.0, piece: MS / 2 }
    }

    /// A plain packet of `len` bytes on the wire.
    fn packet(len: usize) -> Shape {
        Shape::of(&vec![0; VNET_HDR + len])
    }

    /// A super-packet of `segments` full segments of 1500 bytes on the wire.
    fn burst(segments: usize) -> Shape {
        let mut frame = vec![0; VNET_HDR + 40 + segments * 1460];
        frame[..10].copy_from_slice(&[1, 1, 40, 0, 0xb4, 5, 20, 0, 16, 0]);
        frame[VNET_HDR + 32] = 0x50;
        let shape = Shape::of(&frame);
        assert_eq!(shape.segments as usize, segments);
        shape
    }

    fn arrive(schedule: &mut Schedule, now: Nanos, shape: &Shape) -> (Fate, Vec<Piece>) {
        let mut pieces = Vec::new();
        let fate = schedule.arrive(now, shape, |piece| pieces.push(piece));
        (fate, pieces)
    }

    #[test]
    fn a_lone_packet_takes_its_serialisation_and_the_delay() {
        let mut schedule = Schedule::new(path(), 1);
        let (_, pieces) = arrive(&mut schedule, 7 * MS, &packet(1250));
        assert_eq!(pieces, [Piece { due: 57 * MS + 10_000, segments: 0..1 }]);
    }

    #[test]
    fn packets_leave_at_the_rate_whatever_the_rounding() {
        let mut schedule = Schedule::new(Path { rate: Some(7_000_000_000), ..path() }, 1);
        let mut last = 0;
        for _ in 0..7_000 {
            last = arrive(&mut schedule, 0, &packet(100)).1[0].due;
        }
        assert_eq!(last - 50 * MS, 7_000 * 100 * 8 / 7);
    }

    #[test]
    fn the_queue_takes_what_fits_and_drops_the_tail_by_segments() {
        let mut schedule = Schedule::new(Path { queue: 30_000, ..path() }, 1);
        let (fate, pieces) = arrive(&mut schedule, 0, &burst(30));
        assert_eq!((fate.dropped, fate.queued), (10, 30_000));
        assert_eq!(pieces.last().unwrap().segments.end, 20);
        assert_eq!(arrive(&mut schedule, 0, &packet(40)).0.dropped, 1);
        assert_eq!(arrive(&mut schedule, 12_000, &burst(2)).0.dropped, 1, "1500 bytes are gone");
    }

    #[test]
    fn a_long_burst_trickles_and_a_short_one_stays_whole() {
        let mut schedule = Schedule::new(path(), 1);
        assert_eq!(arrive(&mut schedule, 0, &burst(44)).1.len(), 1, "0.5 ms at 1 Gbit/s");
        let slow = Path { rate: Some(100_000_000), ..path() };
        let (_, pieces) = arrive(&mut Schedule::new(slow, 1), 0, &burst(44));
        assert_eq!(pieces.len(), 11);
        assert_eq!(pieces[0], Piece { due: 50 * MS + 480_000, segments: 0..4 });
        assert_eq!(pieces[10].due, 50 * MS + 44 * 120_000);
    }

    #[test]
    fn losses_come_at_the_given_rate_and_cut_bursts_around_them() {
        let mut schedule = Schedule::new(Path { rate: None, loss: 0.01, ..path() }, 42);
        let (mut lost, mut kept) = (0, 0);
        for _ in 0..10_000 {
            let (fate, pieces) = arrive(&mut schedule, 0, &burst(44));
            lost += fate.lost;
            kept += pieces.iter().map(|p| p.segments.end - p.segments.start).sum::<u32>();
            assert!(pieces.windows(2).all(|w| w[0].segments.end < w[1].segments.start));
        }
        assert_eq!(lost + kept, 440_000);
        assert!((4_200..4_600).contains(&lost), "{lost} of 440000");
    }

    #[test]
    fn certain_loss_loses_everything_and_none_nothing() {
        let mut all = Schedule::new(Path { loss: 1.0, ..path() }, 1);
        assert_eq!(
            arrive(&mut all, 0, &burst(10)),
            (Fate { lost: 10, dropped: 0, queued: 15_000 }, vec![])
        );
        let mut none = Schedule::new(path(), 1);
        assert_eq!(arrive(&mut none, 0, &burst(10)).0.lost, 0);
    }

    #[test]
    fn the_same_seed_repeats_and_another_does_not() {
        let run = |seed| {
            let mut schedule = Schedule::new(Path { loss: 0.05, jitter: MS, ..path() }, seed);
            (0..200).flat_map(|i| arrive(&mut schedule, i * MS, &burst(20)).1).collect::<Vec<_>>()
        };
        assert_eq!(run(3), run(3));
        assert_ne!(run(3), run(4));
    }

    #[test]
    fn jitter_delays_within_its_bound_and_never_reorders() {
        let mut schedule = Schedule::new(Path { rate: None, jitter: 5 * MS, ..path() }, 9);
        let mut last = 0;
        let mut spread = 0;
        for i in 0..1000 {
            let due = arrive(&mut schedule, i * 100_000, &packet(100)).1[0].due;
            let extra = due - i * 100_000 - 50 * MS;
            assert!(due >= last && extra <= 5 * MS);
            spread = spread.max(extra);
            last = due;
        }
        assert!(spread > 4 * MS);
    }

    #[test]
    fn without_a_rate_there_is_no_queue() {
        let mut schedule = Schedule::new(Path { rate: None, queue: 0, ..path() }, 1);
        let (fate, pieces) = arrive(&mut schedule, 3, &burst(44));
        assert_eq!(fate, Fate::default());
        assert_eq!(pieces, [Piece { due: 50 * MS + 3, segments: 0..44 }]);
    }
}
