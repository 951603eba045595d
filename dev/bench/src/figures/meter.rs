//! Meter: what stands at the receiving end of a turn. Counts bytes in steps of time from the
//! first one on, for a while or to the end, and writes down what it saw. When it ends, the pipe
//! before it breaks, and with it the transfer.

use crate::size::Size;
use anyhow::Result;
use serde::{Deserialize, Serialize};
use std::io::Read;
use std::path::PathBuf;
use std::thread::sleep;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The command line of `lhbench meter`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Where the report goes
    #[arg(long)]
    report: PathBuf,
    /// Ends so many seconds after the first byte
    #[arg(long, default_value_t = 1e6)]
    seconds: f64,
    /// Takes no more than so many bytes per second
    #[arg(long)]
    rate: Option<Size>,
}

/// Length of a step.
pub(crate) const STEP: f64 = 0.05;
/// A pipe's usual largest size: one read takes all there is.
const BUFFER: usize = 1 << 20;

/// What arrived.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Report {
    /// When the first byte came, in seconds since 1970.
    pub(crate) first: f64,
    /// From the first byte to the last.
    pub(crate) seconds: f64,
    /// Bytes of each step since the first.
    pub(crate) steps: Vec<u64>,
}

impl Report {
    pub(crate) fn bytes(&self) -> u64 {
        self.steps.iter().sum()
    }

    /// Bytes per second from `from` seconds after the first byte on; from the start, if all was
    /// over by then.
    pub(crate) fn rate(&self, from: f64) -> f64 {
        let skip = (from / STEP).round() as usize;
        let (skip, from) = if self.seconds > from + 0.5 { (skip, from) } else { (0, 0.0) };
        let bytes: u64 = self.steps.iter().skip(skip).sum();
        bytes as f64 / (self.seconds - from).max(STEP)
    }
}

/// Reads standard input and reports.
pub(crate) fn main(options: &Options) -> Result<()> {
    let report = count(&mut std::io::stdin().lock(), options)?;
    Ok(std::fs::write(&options.report, serde_json::to_vec(&report)?)?)
}

fn count(input: &mut dyn Read, options: &Options) -> Result<Report> {
    let mut report = Report::default();
    let mut buffer = vec![0; options.rate.map_or(BUFFER, |rate| rate.0 as usize / 20).max(1)];
    let mut got = input.read(&mut buffer)?;
    let start = Instant::now();
    report.first = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs_f64();
    let mut taken = 0;
    while got > 0 && report.seconds < options.seconds {
        report.seconds = start.elapsed().as_secs_f64();
        let step = (report.seconds / STEP) as usize;
        report.steps.resize(report.steps.len().max(step + 1), 0);
        if let Some(bytes) = report.steps.get_mut(step) {
            *bytes += got as u64;
        }
        taken += got;
        if let Some(rate) = options.rate {
            let due = Duration::from_secs_f64(taken as f64 / rate.0 as f64);
            sleep(due.saturating_sub(start.elapsed()));
        }
        got = input.read(&mut buffer)?;
    }
    Ok(report)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_is_counted_and_the_rate_leaves_out_the_ramp() {
        let options = Options { report: PathBuf::new(), seconds: 1e6, rate: None };
        let report = count(&mut vec![7; 3 << 20].as_slice(), &options).unwrap();
        assert_eq!(report.bytes(), 3 << 20);

        let steps = [vec![0; 20], vec![100; 20]].concat();
        let report = Report { first: 0.0, seconds: 2.0, steps };
        assert_eq!(report.rate(0.0), 1000.0);
        assert_eq!(report.rate(1.0), 2000.0);
        assert_eq!(report.rate(1.9), 1000.0, "nothing would be left");
    }

    #[test]
    fn nothing_at_all_is_a_report_too() {
        let options = Options { report: PathBuf::new(), seconds: 1.0, rate: None };
        let report = count(&mut std::io::empty(), &options).unwrap();
        assert_eq!((report.bytes(), report.rate(0.0)), (0, 0.0));
    }
}
