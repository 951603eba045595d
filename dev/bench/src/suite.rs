//! Suite: the chosen cases of `pipe` or `link`, one after the other; in each of them the contenders
//! take turns. Who fails is out of that case, and the table and the JSON say why; the others and
//! the other cases go on.

use crate::cases::{Case, Entrant};
use crate::lab::Lab;
use crate::run::{Bench, Sample, Turn};
use crate::{Options, chart, net, quiet, stop};
use anyhow::{Context, Result, ensure};
use serde::Serialize;
use std::fs;
use std::path::Path;

/// All turns of one contender in one case.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Series {
    pub(crate) case: &'static str,
    pub(crate) contender: &'static str,
    pub(crate) samples: Vec<Sample>,
    /// Turns whose figures were thrown away, because the link emulator did not keep up.
    pub(crate) refused: Vec<String>,
    /// Why it did not take part, if it is not installed.
    pub(crate) absent: Option<String>,
    /// Why it ended early, if it did.
    pub(crate) failed: Option<String>,
}

/// Runs the chosen cases, prints a table for each, and writes the JSON after each.
pub(crate) fn run(options: &Options, cases: &'static [Case]) -> Result<()> {
    for warning in quiet::warnings() {
        eprintln!("lhbench: warning: {warning}");
    }
    let wanted = |case: &&Case| chosen(&options.cases, case.name);
    ensure!(cases.iter().any(|case| wanted(&case)), "no such case: see lhbench cases");
    let mut lab = Lab::new(&options.data, options.lhssh.as_deref(), options.lhsshd.as_deref())?;
    let linkless = if cases.iter().any(|case| case.path.is_some()) { net::lacking() } else { None };
    let (mut all, mut missed) = (Vec::new(), 0);
    for case in cases.iter().filter(wanted) {
        stop::check()?;
        let series = match (&linkless, case.path) {
            (Some(why), Some(_)) => Err(why.clone()),
            _ => turns(&mut lab, options, case).map_err(|why| format!("{why:#}")),
        };
        stop::check()?;
        match series {
            Err(why) => missed += chart::skipped(case, &why),
            Ok(series) => {
                missed += chart::print(case, &series);
                all.extend(series);
                save(options.json.as_deref(), &all)?;
            }
        }
    }
    ensure!(!options.strict || missed == 0, "{missed} bar(s) missed or not measured");
    Ok(())
}

/// Writes what there is so far, if a file was asked for.
pub(crate) fn save(path: Option<&Path>, all: &impl Serialize) -> Result<()> {
    let Some(path) = path else { return Ok(()) };
    fs::write(path, serde_json::to_vec_pretty(all)?).with_context(|| path.display().to_string())
}

fn chosen(filters: &[String], name: &str) -> bool {
    filters.is_empty() || filters.iter().any(|part| name.contains(part.as_str()))
}

/// The turns of one case: the contenders alternate, so that a disturbance meets all of them.
fn turns(lab: &mut Lab, options: &Options, case: &'static Case) -> Result<Vec<Series>> {
    let bench = Bench::new(lab, options, case)?;
    let entrants = case.entrants.iter().filter(|e| chosen(&options.contenders, e.name));
    let mut all: Vec<_> = entrants.map(|entrant| enter(&bench, case, entrant)).collect();
    for round in 1..=options.runs.unwrap_or(if case.path.is_some() { 3 } else { 5 }) {
        for (entrant, login, series) in all.iter_mut().filter(|(.., series)| series.goes_on()) {
            let turn = bench.turn(entrant, *login, round as u64);
            stop::check()?; // no fault of the contender
            series.take(turn);
        }
    }
    Ok(all.into_iter().map(|(.., series)| series).collect())
}

/// A contender with the seconds of its login, which also shows whether it can take part.
fn enter<'a>(
    bench: &Bench<'_>,
    case: &'static Case,
    entrant: &'a Entrant,
) -> (&'a Entrant, f64, Series) {
    let mut series = Series { case: case.name, contender: entrant.name, ..Series::default() };
    series.absent = bench.missing(entrant).map(|what| format!("no {what}"));
    let login = if series.absent.is_none() { bench.knock(entrant) } else { Ok(0.0) };
    let login = login.map_err(|why| series.fail(&why.context("login"))).unwrap_or_default();
    (entrant, login, series)
}

impl Series {
    fn goes_on(&self) -> bool {
        self.absent.is_none() && self.failed.is_none()
    }

    fn take(&mut self, turn: Result<Turn>) {
        match turn {
            Ok(Turn { sample, refused: None }) => self.samples.push(sample),
            Ok(Turn { refused: Some(why), .. }) => self.refused.push(why),
            Err(why) => self.fail(&why),
        }
    }

    fn fail(&mut self, why: &anyhow::Error) {
        stop::complain(&format!("{}: {}: {why:#}", self.case, self.contender));
        self.failed = Some(format!("{why:#}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::anyhow;

    #[test]
    fn who_fails_is_out_and_says_why_in_the_json() {
        let mut series = Series::default();
        assert!(series.goes_on());
        series.take(Err(anyhow!("connection reset").context("the client failed")));
        assert!(!series.goes_on());
        let json = serde_json::to_value(&series).unwrap();
        assert_eq!(json["failed"], "the client failed: connection reset");
    }
}
