//! Looks on while a copy runs: counts events, tells the ones worth a line, and shows how it stands
//! ten times a second from a thread of its own.

use crate::args::Show;
use crate::json;
use crate::meter::{Meter, Rates};
use crate::out;
use crate::progress::{Now, Progress, summary};
use copy::{Event, Observer, Report, shown};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

const TICK: Duration = Duration::from_millis(100);
/// Ticks between two `progress` lines of `--json`.
const TICKS_PER_JSON: u32 = 10;

/// Everyone who looks on.
pub(crate) struct Watch {
    meter: Meter,
    progress: Progress,
    show: Show,
}

impl Watch {
    pub(crate) fn new(show: Show) -> Self {
        Self { meter: Meter::default(), progress: Progress::new(show), show }
    }

    /// A warning from before the copy.
    pub(crate) fn warn(&self, text: &str) {
        self.observe(&Event::Warned { path: None, name: None, text });
    }

    /// Runs the copy, then tells what became of it.
    pub(crate) fn over(&self, copy: impl FnOnce(&dyn Observer) -> Report) -> Report {
        let (end, ended) = mpsc::channel();
        let (mut report, rates) = std::thread::scope(|scope| {
            let ticking = scope.spawn(|| self.tick_until(ended));
            let report = copy(self);
            drop::<mpsc::Sender<()>>(end);
            (report, ticking.join().unwrap_or_default())
        });
        self.progress.end();
        if let Some(failure) = out::failure() {
            self.progress.tell(&Event::Failed(&failure));
            report.failures.push(failure);
        }
        let peak = rates.peak(report.mean());
        if self.show.json {
            json::report(&report, peak);
        }
        if !self.show.quiet {
            self.progress.say(&summary(&report, peak));
        }
        if let Some(limit) = report.limited_by.as_ref().filter(|_| self.show.verbose > 0) {
            self.progress.say(&format!("lhscp: limited by: {limit}"));
        }
        report
    }

    fn tick_until(&self, ended: Receiver<()>) -> Rates {
        let start = Instant::now();
        let mut rates = Rates::default();
        for tick in 0u32.. {
            let counts = self.meter.counts();
            let elapsed = start.elapsed();
            let rate = rates.sample(elapsed, counts.moved);
            let remaining = counts.remaining(rates.steady());
            let now = Now { counts: &counts, elapsed, rate, remaining };
            self.progress.tick(&now);
            if self.show.json && tick > 0 && tick % TICKS_PER_JSON == 0 {
                json::progress(&now);
            }
            if ended.recv_timeout(TICK) != Err(RecvTimeoutError::Timeout) {
                break;
            }
        }
        rates
    }
}

impl Observer for Watch {
    fn observe(&self, event: &Event<'_>) {
        self.meter.observe(event);
        self.progress.tell(event);
        match *event {
            _ if self.show.json => json::tell(event),
            Event::Would { act, path, .. } => would(act.name(), path),
            _ => {}
        }
    }
}

/// A line of `--dry-run`.
fn would(act: &str, path: &[u8]) {
    out::line(&format!("{act:<8}{}", shown(path)));
}
