//! What went over a link, how punctual the emulator was, and whether its figures may be used.

use std::fmt;
use std::time::Duration;

use serde::Serialize;

use crate::spec::Spec;

/// Above this share of one core in its busiest second, the emulator itself was the limit.
pub const BUSY_LIMIT: f64 = 0.85;

/// One direction's counters. "Bytes" are IP packets as on the wire, per-segment headers included.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Direction {
    /// Bytes taken from the sending kernel.
    pub bytes_in: u64,
    /// Packets (super-packets count once) taken.
    pub packets_in: u64,
    /// Segments taken.
    pub segments_in: u64,
    /// Bytes handed to the receiving kernel.
    pub bytes_out: u64,
    /// Writes that took.
    pub packets_out: u64,
    /// Segments handed over.
    pub segments_out: u64,
    /// Segments dropped because the queue was full.
    pub dropped_segments: u64,
    /// Segments lost by `--loss`.
    pub lost_segments: u64,
    /// Most bytes that ever waited for the bottleneck.
    pub peak_queue_bytes: u64,
    /// Packets the receiving kernel would not take.
    pub refused_packets: u64,
    /// Packets dropped by the sending device, as the emulator did not read them in time.
    pub unread_packets: u64,
    /// Times the emulator's memory was full; packets waited in the device.
    pub memory_full: u64,
    /// How late packets left against the schedule.
    pub lateness: Lateness,
}

/// A histogram of delays in powers of two of a microsecond.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Lateness {
    counts: [u64; 24],
    sum_ns: u64,
    /// The worst, in nanoseconds.
    pub max_ns: u64,
}

impl Lateness {
    /// Counts one packet.
    pub fn record(&mut self, nanos: u64) {
        let bucket = (64 - (nanos / 1000).leading_zeros() as usize).min(self.counts.len() - 1);
        self.counts[bucket] += 1;
        self.sum_ns += nanos;
        self.max_ns = self.max_ns.max(nanos);
    }

    /// The average.
    pub fn mean(&self) -> Duration {
        let total: u64 = self.counts.iter().sum();
        Duration::from_nanos(self.sum_ns / total.max(1))
    }

    /// A bound that all but one in a hundred packets kept (to a power of two).
    pub fn p99(&self) -> Duration {
        let total: u64 = self.counts.iter().sum();
        let mut above = total / 100;
        for (bucket, &count) in self.counts.iter().enumerate().rev() {
            if count > above {
                return Duration::from_nanos(self.max_ns.min(1000 << bucket));
            }
            above -= count;
        }
        Duration::ZERO
    }
}

/// Everything about a link since it came up.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Stats {
    /// From a to b.
    pub a_to_b: Direction,
    /// From b to a.
    pub b_to_a: Direction,
    /// Seconds the link has been up.
    pub seconds: f64,
    /// CPU time of the emulator's threads, the kernel's work on packets it delivers included:
    /// the receiving TCP runs on them, as it would on a network card's interrupt.
    pub cpu_seconds: f64,
    /// Share of a core the emulator's busiest thread used in its busiest second.
    pub busiest_second: f64,
    /// Share of the machine's CPU time that its hypervisor gave to others meanwhile: the usual
    /// reason for packets that are late though the emulator is not busy.
    pub stolen: f64,
    /// Share that nobody used. With none left, it is the machine that limits, not the link.
    pub idle: f64,
}

/// Whether what was measured over a link is the link's doing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum Verdict {
    /// The emulator kept up throughout.
    Sound,
    /// It did not, for these reasons; no figure may be taken.
    Refused(Vec<String>),
}

impl Stats {
    /// Judges by the limits of `spec`.
    pub fn verdict(&self, spec: &Spec) -> Verdict {
        let mut reasons = Vec::new();
        if self.busiest_second > BUSY_LIMIT {
            reasons.push(format!("busy for {:.0} % of a second", self.busiest_second * 100.0));
        }
        for (name, direction) in [("a to b", &self.a_to_b), ("b to a", &self.b_to_a)] {
            reasons.extend(direction.faults(spec).into_iter().map(|f| format!("{name}: {f}")));
        }
        if reasons.is_empty() { Verdict::Sound } else { Verdict::Refused(reasons) }
    }

    /// The table for a terminal.
    pub fn report(&self, spec: &Spec) -> String {
        let mut text = format!(
            "{:8}{:>12}{:>10}{:>10}{:>9}{:>9}{:>11}{:>14}{:>9}{:>9}\n",
            "",
            "MB",
            "packets",
            "segments",
            "dropped",
            "lost",
            "queue MB",
            "mean late us",
            "p99",
            "max"
        );
        text += &self.a_to_b.row("a to b");
        text += &self.b_to_a.row("b to a");
        let moved = (self.a_to_b.bytes_out + self.b_to_a.bytes_out) as f64 / 1e9;
        text += &format!(
            "{:.1} s up, emulator {:.2} CPU-s ({:.2} per GB), busiest second {:.0} %; machine: {:.0} % idle, {:.1} % stolen\n",
            self.seconds,
            self.cpu_seconds,
            if moved > 0.0 { self.cpu_seconds / moved } else { 0.0 },
            self.busiest_second * 100.0,
            self.idle * 100.0,
            self.stolen * 100.0
        );
        text + &self.verdict(spec).to_string()
    }
}

impl Direction {
    fn faults(&self, spec: &Spec) -> Vec<String> {
        let (mean, p99) = (self.lateness.mean(), self.lateness.p99());
        let mut faults = Vec::new();
        if spec.is_timed() && mean > spec.mean_lateness_limit() {
            faults.push(format!("packets were late by {mean:?} on average"));
        }
        if spec.is_timed() && p99 > spec.lateness_limit() {
            faults.push(format!("1 % of packets were late by about {p99:?} or more"));
        }
        for (count, what) in [
            (self.unread_packets, "packets were dropped before the emulator read them"),
            (self.refused_packets, "packets were not taken by the receiving kernel"),
            (self.memory_full, "times the emulator's memory was full"),
        ] {
            if count > 0 {
                faults.push(format!("{count} {what}"));
            }
        }
        faults
    }

    fn row(&self, name: &str) -> String {
        format!(
            "{:8}{:>12.1}{:>10}{:>10}{:>9}{:>9}{:>11.2}{:>14}{:>9}{:>9}\n",
            name,
            self.bytes_out as f64 / 1e6,
            self.packets_out,
            self.segments_out,
            self.dropped_segments,
            self.lost_segments,
            self.peak_queue_bytes as f64 / 1e6,
            self.lateness.mean().as_micros(),
            self.lateness.p99().as_micros(),
            self.lateness.max_ns / 1000
        )
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sound => f.write_str("the emulator was not the bottleneck"),
            Self::Refused(why) => {
                write!(f, "REFUSED, the emulator did not keep up: {}", why.join("; "))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec() -> Spec {
        Spec { rtt: Duration::from_millis(100), ..Spec::default() }
    }

    #[test]
    fn the_99th_percentile_ignores_one_in_a_hundred() {
        let mut lateness = Lateness::default();
        (0..990).for_each(|_| lateness.record(3_000));
        (0..10).for_each(|_| lateness.record(50_000_000));
        assert_eq!(lateness.p99(), Duration::from_micros(4));
        lateness.record(50_000_000);
        assert!(lateness.p99() >= Duration::from_millis(50));
    }

    #[test]
    fn a_punctual_idle_emulator_is_sound() {
        assert_eq!(Stats::default().verdict(&spec()), Verdict::Sound);
    }

    #[test]
    fn each_sign_of_a_slow_emulator_refuses_the_figure() {
        let mut late = Stats::default();
        (0..10).for_each(|_| late.b_to_a.lateness.record(60_000_000));
        let mut late_on_average = Stats::default();
        (0..10).for_each(|_| late_on_average.b_to_a.lateness.record(3_500_000));
        let direction = |a_to_b| Stats { a_to_b, ..Stats::default() };
        for stats in [
            late,
            late_on_average,
            Stats { busiest_second: 0.97, ..Stats::default() },
            direction(Direction { unread_packets: 1, ..Direction::default() }),
            direction(Direction { refused_packets: 1, ..Direction::default() }),
            direction(Direction { memory_full: 1, ..Direction::default() }),
        ] {
            assert!(stats.verdict(&spec()).to_string().starts_with("REFUSED"), "{stats:?}");
        }
    }
}
