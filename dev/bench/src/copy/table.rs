//! The table of a case on the screen, and its bars below it.

use super::Series;
use super::cases::{Bar, Case, Load, Measure};
use super::turn::Sample;
use crate::stats::{Spread, spread};

/// Prints the results of one case; returns how many bars were missed or not measured, and how many
/// contenders failed. A bar for somebody who was not asked (`--only`) is left out.
pub(crate) fn print(case: &Case, series: &[Series]) -> usize {
    let unit = Unit::of(case);
    println!("\n{}", case.name);
    println!(
        "  {:14} {:>4} {:>24}   {:>10} client + server   {:>14}",
        "contender",
        "runs",
        unit.title(),
        unit.cpu(),
        "peak MiB"
    );
    for one in series {
        match &one.absent {
            Some(why) => println!("  {:14}    - left out: {why}", one.contender),
            None => println!("{}", line(unit, one)),
        }
        one.refused.iter().for_each(|why| println!("    a run was refused: {why}"));
        one.failed.iter().for_each(|why| println!("    it failed: {why}"));
    }
    let asked = |name| series.iter().any(|one| one.contender == name);
    let bars = case.bars.iter().filter(|bar| bar.contenders().all(asked));
    let failed = series.iter().filter(|one| one.failed.is_some()).count();
    failed + bars.filter(|bar| !judge(bar, case, series)).count()
}

/// Says that a case was not run, and why; returns how many bars that leaves unmeasured.
pub(crate) fn skipped(case: &Case, why: &str) -> usize {
    println!("\nSKIPPED {}: {why}", case.name);
    case.bars.len()
}

/// What a case's figures are shown in.
#[derive(Clone, Copy, PartialEq)]
enum Unit {
    GigabytesPerSecond,
    MegabitPerSecond,
    FilesPerSecond,
    SecondsToFirstByte,
}

impl Unit {
    fn of(case: &Case) -> Self {
        match (case.load, case.path) {
            _ if case.first_byte => Self::SecondsToFirstByte,
            (Load::Tree(_), _) => Self::FilesPerSecond,
            (Load::File(_), Some(_)) => Self::MegabitPerSecond,
            (Load::File(_), None) => Self::GigabytesPerSecond,
        }
    }

    fn title(self) -> &'static str {
        match self {
            Self::GigabytesPerSecond => "GB/s  (min - max)",
            Self::MegabitPerSecond => "Mbit/s  (min - max)",
            Self::FilesPerSecond => "files/s  (min - max)",
            Self::SecondsToFirstByte => "s to first byte",
        }
    }

    fn cpu(self) -> &'static str {
        match self {
            Self::GigabytesPerSecond | Self::MegabitPerSecond => "CPU-s/GB",
            Self::FilesPerSecond => "CPU ms/file",
            Self::SecondsToFirstByte => "CPU s",
        }
    }

    fn figure(self, sample: &Sample) -> f64 {
        match self {
            Self::GigabytesPerSecond => sample.bytes as f64 / sample.seconds / 1e9,
            Self::MegabitPerSecond => sample.bytes as f64 * 8.0 / sample.seconds / 1e6,
            Self::FilesPerSecond => sample.files as f64 / sample.seconds,
            Self::SecondsToFirstByte => sample.first_byte.unwrap_or(f64::NAN),
        }
    }

    /// What CPU seconds are divided by.
    fn per(self, sample: &Sample) -> f64 {
        match self {
            Self::GigabytesPerSecond | Self::MegabitPerSecond => sample.bytes as f64 / 1e9,
            Self::FilesPerSecond => sample.files as f64 / 1e3,
            Self::SecondsToFirstByte => 1.0,
        }
    }

    fn digits(self) -> usize {
        match self {
            Self::GigabytesPerSecond | Self::SecondsToFirstByte => 2,
            Self::MegabitPerSecond | Self::FilesPerSecond => 0,
        }
    }
}

fn line(unit: Unit, series: &Series) -> String {
    let of = |figure: &dyn Fn(&Sample) -> f64| spread(series.samples.iter().map(figure));
    let median = |figure: &dyn Fn(&Sample) -> f64, digits: usize| {
        of(figure).map_or("-".to_owned(), |s| format!("{:.digits$}", s.median))
    };
    let digits = unit.digits();
    let main = of(&|s| unit.figure(s)).map_or("-".into(), |Spread { median, min, max }| {
        format!("{median:.digits$}  ({min:.digits$} - {max:.digits$})")
    });
    format!(
        "  {:14} {:>4} {main:>24}   {:>10} {:>8}          {:>6} {:>7}",
        series.contender,
        series.samples.len(),
        median(&|s| s.client.cpu() / unit.per(s), 2),
        median(&|s| s.server.cpu() / unit.per(s), 2),
        median(&|s| s.client.peak_kib as f64 / 1024.0, 1),
        median(&|s| s.server.peak_kib as f64 / 1024.0, 1),
    )
}

/// Prints one bar's verdict; false when it was missed or not measured.
fn judge(bar: &Bar, case: &Case, series: &[Series]) -> bool {
    let what = match (bar.measure, case.load) {
        (Measure::Rate, Load::File(_)) => "throughput",
        (Measure::Rate, Load::Tree(_)) => "files per second",
        (Measure::Link, _) => "share of the link",
        (Measure::FirstByte, _) => "seconds to the first byte",
        (Measure::Memory, _) => "peak MiB",
    };
    let figure = |name: &str| measure(bar, name, case, series);
    bar.judge(what, bar.measure.more_is_better(), &figure)
}

fn measure(bar: &Bar, contender: &str, case: &Case, series: &[Series]) -> Option<f64> {
    let samples = &series.iter().find(|one| one.contender == contender)?.samples;
    let of = |figure: &dyn Fn(&Sample) -> f64| Some(spread(samples.iter().map(figure))?.median);
    match bar.measure {
        Measure::Rate if matches!(case.load, Load::Tree(_)) => of(&|s| s.files as f64 / s.seconds),
        Measure::Rate => of(&|s| s.bytes as f64 / s.seconds),
        Measure::Link => {
            let link = f64::from(case.path?.mbit) * 1e6;
            of(&|s| s.bytes as f64 * 8.0 / s.seconds / link)
        }
        Measure::FirstByte => of(&|s| s.first_byte.unwrap_or(f64::INFINITY)),
        Measure::Memory => of(&|s| s.client.peak_kib.max(s.server.peak_kib) as f64 / 1024.0),
    }
}
