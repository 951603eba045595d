//! Chart: the table on the screen, one block per case, bars below it.

use crate::cases::{Bar, Case, LINK, Measure, PIPE, Work};
use crate::loopback;
use crate::run::Sample;
use crate::stats::{Spread, spread};
use crate::suite::Series;

/// `lhbench cases`.
pub(crate) fn list() {
    for (kind, cases) in [("pipe", PIPE), ("link", LINK)] {
        for case in cases {
            let names: Vec<_> = case.entrants.iter().map(|entrant| entrant.name).collect();
            println!("{kind} {:24} {}", case.name, names.join(" "));
        }
    }
}

/// Prints the results of one case; returns how many bars were missed or not measured, and how many
/// contenders failed. A bar for somebody who was not asked (`--only`) is left out.
pub(crate) fn print(case: &Case, series: &[Series]) -> usize {
    let congestion = case.path.map_or_else(loopback::current, |path| path.congestion.to_owned());
    println!("\n{} ({}, {congestion})", case.name, case.cipher);
    println!("{}", heading(case));
    for one in series {
        match &one.absent {
            Some(why) => println!("  {:15}    - left out: {why}", one.contender),
            None => println!("{}", line(case, one)),
        }
        for why in &one.refused {
            println!("    a run was refused, the emulator did not keep up: {why}");
        }
        one.failed.iter().for_each(|why| println!("    it failed: {why}"));
    }
    let asked = |name| series.iter().any(|one| one.contender == name);
    let bars = case.bars.iter().filter(|bar| bar.contenders().all(asked));
    let failed = series.iter().filter(|one| one.failed.is_some()).count();
    failed + bars.filter(|bar| !judge(bar, series)).count()
}

/// Says that a case was not run, and why; returns how many bars that leaves unmeasured.
pub(crate) fn skipped(case: &Case, why: &str) -> usize {
    println!("\nSKIPPED {}: {why}", case.name);
    case.bars.len()
}

fn heading(case: &Case) -> String {
    let work = case.work;
    let figure = match work {
        work if work.is_fair() => "slower / faster",
        work if work == Work::Login || work.is_typing() => "ms  (min - max)",
        work if work.is_slow() => "MiB over idle",
        _ if case.path.is_some() => "Mbit/s  (min - max)",
        _ => "GB/s  (min - max)",
    };
    let cpu = match work {
        Work::Login => "CPU ms",
        work if work.is_slow() || work.is_typing() => "CPU s",
        _ => "CPU-s/GB",
    };
    format!(
        "  {:15} {:>4} {figure:>22}   {cpu:>9} client + server   {:>14}",
        "contender", "runs", "peak MiB"
    )
}

fn line(case: &Case, series: &Series) -> String {
    let work = case.work;
    let of = |figure: &dyn Fn(&Sample) -> f64| spread(series.samples.iter().map(figure));
    let main = match work {
        work if work.is_fair() => show(of(&|s| s.share.unwrap_or_default()), 2),
        work if work == Work::Login || work.is_typing() => show(of(&|s| s.seconds * 1e3), 1),
        work if work.is_slow() => show(of(&|s| s.over_idle_mib.unwrap_or_default()), 1),
        _ if case.path.is_some() => show(of(&|s| s.bytes as f64 * 8.0 / s.seconds / 1e6), 0),
        _ => show(of(&|s| s.bytes as f64 / s.seconds / 1e9), 2),
    };
    let per = |s: &Sample| match work {
        Work::Login => 1e-3,
        work if work.is_slow() || work.is_typing() => 1.0,
        _ => s.bytes as f64 / 1e9,
    };
    let client = median(of(&|s| s.client.cpu() / per(s)), 2);
    let server = median(of(&|s| s.server.cpu() / per(s)), 2);
    let mib = |kib: i64| kib as f64 / 1024.0;
    let (here, there) = (of(&|s| mib(s.client.peak_kib)), of(&|s| mib(s.server.peak_kib)));
    format!(
        "  {:15} {:>4} {main:>22}   {client:>9} {server:>8}          {:>6} {:>7}",
        series.contender,
        series.samples.len(),
        median(here, 1),
        median(there, 1),
    )
}

fn show(spread: Option<Spread>, digits: usize) -> String {
    spread.map_or("-".into(), |Spread { median, min, max }| {
        format!("{median:.digits$}  ({min:.digits$} - {max:.digits$})")
    })
}

fn median(spread: Option<Spread>, digits: usize) -> String {
    spread.map_or("-".into(), |Spread { median, .. }| format!("{median:.digits$}"))
}

/// Prints one bar's verdict; false when it was missed or not measured.
fn judge(bar: &Bar, series: &[Series]) -> bool {
    let what = match bar.measure {
        Measure::Rate => "throughput",
        Measure::Cpu => "CPU per byte",
        Measure::Wall => "time",
        Measure::Memory => "memory over idle",
        Measure::Share => "slower / faster channel",
    };
    let figure = |name: &str| measure(bar.measure, name, series);
    bar.judge(what, bar.measure.more_is_better(), &figure)
}

fn measure(measure: Measure, contender: &str, series: &[Series]) -> Option<f64> {
    let samples = &series.iter().find(|one| one.contender == contender)?.samples;
    let of = |figure: &dyn Fn(&Sample) -> f64| Some(spread(samples.iter().map(figure))?.median);
    match measure {
        Measure::Rate => of(&|s| s.bytes as f64 / s.seconds),
        Measure::Cpu => of(&|s| (s.client.cpu() + s.server.cpu()) / s.bytes as f64),
        Measure::Wall => of(&|s| s.seconds),
        Measure::Memory => of(&|s| s.over_idle_mib.unwrap_or(f64::INFINITY)),
        Measure::Share => of(&|s| s.share.unwrap_or_default()),
    }
}
