//! Counts what the core tells, and makes rates of it: how much, how fast now, how fast at best, how
//! long still. Written to by every thread of the core, read by the thread that shows it.

use copy::observe::LaneId;
use copy::{Event, Observer};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The counters.
#[derive(Debug, Default)]
pub(crate) struct Meter(Mutex<Counts>);

/// What happened so far.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Files the scan found, and their bytes.
    pub(crate) files_found: u64,
    pub(crate) bytes_found: u64,
    /// The scan is over.
    pub(crate) scanned: bool,
    /// Files in place or given up.
    pub(crate) files: u64,
    /// Bytes that moved, and bytes that need not.
    pub(crate) moved: u64,
    pub(crate) spared: u64,
    /// Lanes that are open.
    pub(crate) lanes: BTreeMap<LaneId, Lane>,
}

/// A lane that is open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Lane {
    pub(crate) host: String,
    pub(crate) connection: u32,
    pub(crate) channel: u32,
    pub(crate) moved: u64,
}

impl Meter {
    pub(crate) fn counts(&self) -> Counts {
        self.locked().clone()
    }

    fn locked(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Observer for Meter {
    fn observe(&self, event: &Event<'_>) {
        self.locked().add(event);
    }
}

impl Counts {
    fn add(&mut self, event: &Event<'_>) {
        match *event {
            Event::Found { files, bytes } => {
                self.files_found = self.files_found.saturating_add(files);
                // Sizes are what a server says.
                self.bytes_found = self.bytes_found.saturating_add(bytes);
            }
            Event::Scanned => self.scanned = true,
            Event::Moved { lane, bytes } => {
                self.moved += bytes;
                self.lanes.entry(lane).and_modify(|lane| lane.moved += bytes);
            }
            Event::Spared { bytes } => self.spared = self.spared.saturating_add(bytes),
            Event::Finished { .. } => self.files += 1,
            Event::LaneOpened { lane, host, connection, channel } => {
                let open = Lane { host: host.to_owned(), connection, channel, moved: 0 };
                self.lanes.insert(lane, open);
            }
            Event::LaneClosed { lane } | Event::LaneFailed { lane, .. } => {
                self.lanes.remove(&lane);
            }
            Event::Started { .. }
            | Event::Failed(_)
            | Event::Warned { .. }
            | Event::Would { .. } => {}
        }
    }

    /// Bytes that are dealt with. What is sent again counts twice in `moved`.
    pub(crate) fn bytes(&self) -> u64 {
        let dealt_with = self.moved.saturating_add(self.spared);
        if self.scanned { dealt_with.min(self.bytes_found) } else { dealt_with }
    }

    /// How long still, at this rate; unknown while the scan finds more or nothing moves.
    pub(crate) fn remaining(&self, rate: f64) -> Option<Duration> {
        let left = self.bytes_found.saturating_sub(self.bytes()) as f64;
        let known = self.scanned && rate > 0.0;
        known.then(|| Duration::try_from_secs_f64(left / rate).ok()).flatten()
    }
}

/// Rates from samples of a growing count.
#[derive(Debug, Default)]
pub(crate) struct Rates {
    /// When and how much, of the last ten seconds, oldest first.
    samples: VecDeque<(Duration, u64)>,
    peak: Option<f64>,
}

/// What the current rate is taken over.
const WINDOW: Duration = Duration::from_secs(1);
/// And the rate from which the remaining time follows, so that it does not jump.
const STEADY: Duration = Duration::from_secs(10);

impl Rates {
    /// Takes a sample; `at` is since the start. Gives bytes per second over the last second.
    pub(crate) fn sample(&mut self, at: Duration, count: u64) -> f64 {
        self.samples.push_back((at, count));
        // The oldest sample is the last one that is a whole time old.
        while self.samples.get(1).is_some_and(|(time, _)| at.saturating_sub(*time) >= STEADY) {
            self.samples.pop_front();
        }
        let (rate, time) = self.over(WINDOW);
        if time >= WINDOW {
            self.peak = Some(self.peak.map_or(rate, |peak| peak.max(rate)));
        }
        rate
    }

    /// The rate over the last seconds.
    pub(crate) fn steady(&self) -> f64 {
        self.over(STEADY).0
    }

    /// The rate over the shortest time that is at least `window`, or all there is, and that time.
    fn over(&self, window: Duration) -> (f64, Duration) {
        let Some(&(now, count)) = self.samples.back() else { return (0.0, Duration::ZERO) };
        let young = |(at, _): &&(Duration, u64)| now.saturating_sub(*at) < window;
        let since = self.samples.iter().rev().find(|sample| !young(sample));
        let (since, before) = since.or(self.samples.front()).copied().unwrap_or_default();
        let time = now.saturating_sub(since);
        (per_second(count.saturating_sub(before), time), time)
    }

    /// The best second; of a copy that took none, its mean.
    pub(crate) fn peak(&self, mean: f64) -> f64 {
        self.peak.unwrap_or(mean).max(mean)
    }
}

fn per_second(bytes: u64, time: Duration) -> f64 {
    if time.is_zero() { 0.0 } else { bytes as f64 / time.as_secs_f64() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use copy::observe::Outcome;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn the_rate_is_that_of_the_last_second_and_the_peak_the_best_one() {
        let mut rates = Rates::default();
        let mut last = 0.0;
        // 100 bytes every 100 ms, ten times as many in the third second.
        let mut count = 0;
        for tick in 0..=50 {
            last = rates.sample(ms(tick * 100), count);
            count += if (20..30).contains(&tick) { 1000 } else { 100 };
        }
        assert!((last - 1000.0).abs() < 1.0, "{last}");
        assert!((rates.peak(0.0) - 10_000.0).abs() < 1.0, "{}", rates.peak(0.0));
    }

    #[test]
    fn a_copy_of_less_than_a_second_peaks_at_its_mean() {
        let mut rates = Rates::default();
        rates.sample(ms(0), 0);
        rates.sample(ms(100), 1_000_000);
        assert!((rates.peak(5.0) - 5.0).abs() < 1e-9);
    }

    #[test]
    fn samples_of_the_past_are_dropped() {
        let mut rates = Rates::default();
        (0..10_000).for_each(|tick| _ = rates.sample(ms(tick * 100), tick));
        assert!(rates.samples.len() <= 102);
    }

    #[test]
    fn events_are_counted() {
        let meter = Meter::default();
        let lane = LaneId(3);
        let events = [
            Event::Found { files: 2, bytes: 100 },
            Event::LaneOpened { lane, host: "h", connection: 0, channel: 1 },
            Event::Moved { lane, bytes: 40 },
            Event::Spared { bytes: 10 },
            Event::Finished { path: b"a", size: 50, outcome: Outcome::Copied, verified: false },
        ];
        events.iter().for_each(|event| meter.observe(event));
        let counts = meter.counts();
        assert_eq!((counts.files, counts.files_found, counts.bytes()), (1, 2, 50));
        assert_eq!(counts.lanes[&lane].moved, 40);
        assert_eq!(counts.remaining(10.0), None);
        meter.observe(&Event::Scanned);
        assert_eq!(meter.counts().remaining(10.0), Some(Duration::from_secs(5)));
        assert_eq!(meter.counts().remaining(0.0), None);
        meter.observe(&Event::LaneClosed { lane });
        assert!(meter.counts().lanes.is_empty());
    }

    #[test]
    fn what_is_sent_again_does_not_pass_the_end() {
        let meter = Meter::default();
        meter.observe(&Event::Found { files: 1, bytes: 100 });
        meter.observe(&Event::Scanned);
        meter.observe(&Event::Moved { lane: LaneId(0), bytes: 150 });
        assert_eq!(meter.counts().bytes(), 100);
        assert_eq!(meter.counts().remaining(1.0), Some(Duration::ZERO));
    }
}
