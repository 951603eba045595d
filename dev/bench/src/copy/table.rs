//! The table of a case on the screen, and its bars below it.

use super::Series;
use super::cases::{Bar, Case, Load, Measure};
use super::turn::Sample;
use crate::cases::Against;
use crate::stats::{Spread, spread};

/// Prints the results of one case; returns how many bars were missed and contenders failed.
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
        println!("{}", line(unit, one));
        one.refused.iter().for_each(|why| println!("    a run was refused: {why}"));
        one.failed.iter().for_each(|why| println!("    it failed: {why}"));
    }
    let failed = series.iter().filter(|one| one.failed.is_some()).count();
    failed + case.bars.iter().filter(|bar| !judge(bar, case, series)).count()
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
    let median = |figure: &dyn Fn(&Sample) -> f64| of(figure).map_or(f64::NAN, |s| s.median);
    let digits = unit.digits();
    let main = of(&|s| unit.figure(s)).map_or("-".into(), |Spread { median, min, max }| {
        format!("{median:.digits$}  ({min:.digits$} - {max:.digits$})")
    });
    format!(
        "  {:14} {:>4} {main:>24}   {:>10.2} {:>8.2}          {:>6.1} {:>7.1}",
        series.contender,
        series.samples.len(),
        median(&|s| s.client.cpu() / unit.per(s)),
        median(&|s| s.server.cpu() / unit.per(s)),
        median(&|s| s.client.peak_kib as f64 / 1024.0),
        median(&|s| s.server.peak_kib as f64 / 1024.0),
    )
}

/// Prints one bar's verdict; false when it was missed. What did not run is not missed.
fn judge(bar: &Bar, case: &Case, series: &[Series]) -> bool {
    let Some((figure, name)) = figure(bar, case, series) else { return true };
    let holds = |limit: f64| match bar.measure.more_is_better() {
        true => figure >= limit,
        false => figure <= limit,
    };
    let verdict = match (holds(bar.goal), holds(bar.bar)) {
        (true, _) => "goal reached",
        (false, true) => "pass",
        (false, false) => "MISS",
    };
    println!("  {name:40} {figure:>7.2}   bar {}  goal {}   {verdict}", bar.bar, bar.goal);
    holds(bar.bar)
}

fn figure(bar: &Bar, case: &Case, series: &[Series]) -> Option<(f64, String)> {
    let own = measure(bar, bar.of, case, series)?;
    let what = match (bar.measure, case.load) {
        (Measure::Rate, Load::File(_)) => "throughput",
        (Measure::Rate, Load::Tree(_)) => "files per second",
        (Measure::Link, _) => "share of the link",
        (Measure::FirstByte, _) => "seconds to the first byte",
        (Measure::Memory, _) => "peak MiB",
    };
    match bar.against {
        Against::Absolute => Some((own, format!("{} {what}", bar.of))),
        Against::Contender(other) => {
            let ratio = own / measure(bar, other, case, series)?;
            Some((ratio, format!("{}/{other} {what}", bar.of)))
        }
    }
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
