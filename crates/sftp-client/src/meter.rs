//! The progress meter: one line that is written over once a second, for a terminal.
//!
//! It looks like that of sftp(1); at the end it also tells the peak, the best second.

use crate::escape::shown;
use crate::listing::scaled;
use std::io::Write;
use std::time::{Duration, Instant};

/// How often the line is drawn.
const PERIOD: Duration = Duration::from_secs(1);

/// Share of the latest second in the rate that is shown: sftp(1)'s.
const FRESH: f64 = 0.1;

/// The progress of one file.
pub(crate) struct Meter {
    name: String,
    /// Where it began, not 0 when a transfer is resumed.
    start: u64,
    at: u64,
    size: u64,
    begun: Instant,
    drawn: Instant,
    drawn_at: u64,
    /// Bytes per second, smoothed.
    rate: f64,
    /// Bytes per second of the best whole second.
    peak: f64,
    /// Columns of the terminal; none when nothing is shown.
    columns: Option<usize>,
}

impl Meter {
    /// Of a file of `size` bytes, `start` of which are there; shown on a terminal only.
    pub(crate) fn new(name: &[u8], start: u64, size: u64, columns: Option<usize>) -> Self {
        let now = Instant::now();
        let meter = Self {
            name: shown(name),
            start,
            at: start,
            size,
            begun: now,
            drawn: now,
            drawn_at: start,
            rate: 0.0,
            peak: 0.0,
            columns,
        };
        meter.draw(&meter.line(now));
        meter
    }

    /// It began then.
    pub(crate) fn since(mut self, begun: Instant) -> Self {
        self.begun = begun;
        self
    }

    /// All up to here is through, and nothing is drawn.
    pub(crate) fn jump(&mut self, at: u64) {
        self.at = at;
    }

    /// So many bytes more are through.
    pub(crate) fn add(&mut self, bytes: u64) {
        self.at += bytes;
        self.tick(Instant::now());
    }

    /// Draws if it is time to.
    pub(crate) fn tick(&mut self, now: Instant) {
        let past = now.saturating_duration_since(self.drawn);
        if self.columns.is_none() || past < PERIOD {
            return;
        }
        let latest = (self.at - self.drawn_at) as f64 / past.as_secs_f64();
        self.peak = self.peak.max(latest);
        let first = self.drawn == self.begun;
        self.rate = if first { latest } else { latest * FRESH + self.rate * (1.0 - FRESH) };
        (self.drawn, self.drawn_at) = (now, self.at);
        self.draw(&self.line(now));
    }

    /// The last line, with the mean rate, the time it took and the peak.
    pub(crate) fn finish(self) {
        let took = self.begun.elapsed();
        let mean = (self.at - self.start) as f64 / took.as_secs_f64().max(1e-6);
        let rates = format!("{}   {}", rate(mean), clock(took));
        let peak = format!("  peak {}", rate(self.peak.max(mean)));
        self.draw(&(self.fit(&format!("{rates}{peak}")) + "\n"));
    }

    fn line(&self, now: Instant) -> String {
        let left = self.size.saturating_sub(self.at);
        let stalled = now.saturating_duration_since(self.drawn) > 5 * PERIOD;
        let eta = match self.rate {
            _ if stalled => "- stalled -".to_owned(),
            rate if rate >= 1.0 => {
                format!("{} ETA", clock(Duration::from_secs_f64((left as f64 / rate).min(1e9))))
            }
            _ => "  --:-- ETA".to_owned(),
        };
        self.fit(&format!("{}   {eta}", rate(self.rate)))
    }

    /// The name, cut or padded to what the rest leaves of the line, and the rest.
    fn fit(&self, right: &str) -> String {
        let percent = match self.size {
            0 => 100,
            size => u128::from(self.at.min(size)) * 100 / u128::from(size),
        };
        let right = format!(" {percent:3}% {:>6} {right}", scaled(self.at));
        let space = self.columns.unwrap_or(80).saturating_sub(right.len() + 1).max(8);
        let name: String = self.name.chars().take(space).collect();
        format!("\r{name:<space$}{right}")
    }

    fn draw(&self, line: &str) {
        if self.columns.is_some() {
            let mut out = std::io::stdout().lock();
            // A terminal that is gone is no reason to stop.
            _ = out.write_all(line.as_bytes()).and_then(|()| out.flush());
        }
    }
}

fn rate(bytes: f64) -> String {
    format!("{:>6}B/s", scaled(bytes as u64).replace('B', ""))
}

fn clock(time: Duration) -> String {
    let seconds = time.as_secs();
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    if hours > 0 {
        format!("{hours}:{minutes:02}:{seconds:02}")
    } else {
        format!("  {minutes:02}:{seconds:02}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_fits_and_tells_rate_and_rest() {
        let mut meter = Meter::new(b"a/very/long/name\x1b", 0, 100 << 20, None);
        meter.columns = Some(60);
        meter.at = 25 << 20;
        meter.rate = (5 << 20) as f64;
        let line = meter.line(meter.begun);
        assert_eq!(line.trim_start_matches('\r').len(), 59, "{line}");
        assert!(line.starts_with("\ra/very/long/name\\033"), "{line}");
        assert!(line.ends_with(" 25%  25.0M   5.0MB/s     00:15 ETA"), "{line}");
    }

    #[test]
    fn an_empty_file_is_complete() {
        let meter = Meter::new(b"x", 0, 0, None);
        assert!(meter.fit("").contains("100%"));
    }
}
