//! `lhbench copy`: files and trees over loopback and emulated links, lhscp beside scp, sftp, rsync,
//! tar through ssh, and any program given with `--peer`. Both ends are on tmpfs; the target is
//! removed between turns, and what arrived is compared with the source, outside the clock.

mod cases;
mod command;
mod load;
mod peer;
mod table;
mod turn;

use crate::lab::{self, Lab};
use crate::loopback::Loopback;
use crate::quiet;
use crate::size::Size;
use crate::{net, stop, suite};
use anyhow::{Result, ensure};
use cases::{COPY, Case};
use command::Who;
use peer::Peer;
use serde::Serialize;
use std::path::PathBuf;
use turn::{Bench, Sample};

/// What `copy` takes.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Only cases whose name contains this (may be given several times)
    #[arg(long = "case")]
    cases: Vec<String>,
    /// Only contenders whose name contains this
    #[arg(long = "only")]
    contenders: Vec<String>,
    /// One more contender: name=command with {src} {dst} {port} {key} {known_hosts} {config}
    #[arg(long = "peer")]
    peers: Vec<Peer>,
    /// Bytes of the file of file cases [default: each case's own]
    #[arg(long)]
    size: Option<Size>,
    /// Files of tree cases [default: each case's own]
    #[arg(long)]
    files: Option<u64>,
    /// Runs of each contender
    #[arg(long, default_value_t = 3)]
    runs: usize,
    /// Writes every sample to this file
    #[arg(long)]
    json: Option<PathBuf>,
    /// Where sources and targets are put: a tmpfs with room for both
    #[arg(long, default_value = "/dev/shm")]
    data: PathBuf,
    /// Our copier [default: lhscp beside this program]
    #[arg(long)]
    lhscp: Option<PathBuf>,
    /// Our server [default: lhsshd beside this program]
    #[arg(long)]
    lhsshd: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) loopback: Loopback,
    /// Fail when a bar is missed
    #[arg(long)]
    strict: bool,
}

/// All turns of one contender in one case.
#[derive(Debug, Serialize)]
pub(crate) struct Series {
    pub(crate) case: &'static str,
    pub(crate) contender: String,
    pub(crate) samples: Vec<Sample>,
    /// Turns whose figures were thrown away, because the link emulator did not keep up.
    pub(crate) refused: Vec<String>,
    /// Why it did not take part, if it is not installed.
    pub(crate) absent: Option<String>,
    /// Why it ended early, if it did.
    pub(crate) failed: Option<String>,
}

/// Runs the chosen cases, prints a table for each, writes the JSON.
pub(crate) fn main(options: &Options) -> Result<()> {
    for warning in quiet::warnings() {
        eprintln!("lhbench: warning: {warning}");
    }
    let wanted = |case: &&Case| chosen(&options.cases, case.name);
    ensure!(COPY.iter().any(|case| wanted(&case)), "no such case: see lhbench cases");
    let lab = Lab::new(&options.data, None, options.lhsshd.as_deref())?;
    let lhscp = lab::program(options.lhscp.as_deref(), "lhscp", &lab.path(""))?;
    let (mut all, mut missed) = (Vec::new(), 0);
    let linkless = net::lacking();
    for case in COPY.iter().filter(wanted) {
        if let (Some(why), Some(_)) = (&linkless, case.path) {
            missed += table::skipped(case, why);
            continue;
        }
        let bench = Bench::new(&lab, lhscp.as_deref(), options, case)?;
        let series = turns(&bench, options, case)?;
        missed += table::print(case, &series);
        all.extend(series);
        suite::save(options.json.as_deref(), &all)?;
    }
    ensure!(!options.strict || missed == 0, "{missed} bar(s) missed or not measured");
    Ok(())
}

/// `lhbench cases`.
pub(crate) fn list() {
    for case in COPY {
        let names: Vec<_> = case.entrants.iter().map(|entrant| entrant.name).collect();
        println!("copy {:24} {}", case.name, names.join(" "));
    }
}

fn chosen(filters: &[String], name: &str) -> bool {
    filters.is_empty() || filters.iter().any(|part| name.contains(part.as_str()))
}

/// The turns of one case: the contenders alternate, so that a disturbance meets all of them.
fn turns(bench: &Bench<'_>, options: &Options, case: &'static Case) -> Result<Vec<Series>> {
    let ours = case.entrants.iter().filter(|entrant| chosen(&options.contenders, entrant.name));
    let ours = ours.map(|e| (e.name, Who::Program(e.program, e.server), e.divide));
    let peers = options.peers.iter().filter(|_| !case.first_byte);
    let peers = peers.map(|peer| (peer.name.as_str(), Who::Peer(peer), 1));
    let mut all = Vec::new();
    for (name, who, divide) in ours.chain(peers) {
        let absent = bench.missing(&who).map(|what| format!("no {what}"));
        all.push((who, divide, Series { absent, ..Series::new(case, name) }));
    }
    for round in 1..=options.runs {
        for (who, divide, series) in all.iter_mut().filter(|(.., series)| series.goes_on()) {
            let turn = bench.turn(who, *divide, round as u64);
            stop::check()?; // no fault of the contender
            series.take(turn);
        }
    }
    Ok(all.into_iter().map(|(.., series)| series).collect())
}

impl Series {
    fn new(case: &'static Case, name: &str) -> Self {
        Self {
            case: case.name,
            contender: name.to_owned(),
            samples: Vec::new(),
            refused: Vec::new(),
            absent: None,
            failed: None,
        }
    }

    fn goes_on(&self) -> bool {
        self.absent.is_none() && self.failed.is_none()
    }

    fn take(&mut self, turn: Result<(Sample, Option<String>)>) {
        match turn {
            Ok((sample, None)) => self.samples.push(sample),
            Ok((_, Some(why))) => self.refused.push(why),
            Err(why) => {
                eprintln!("lhbench: {}: {}: {why:#}", self.case, self.contender);
                self.failed = Some(format!("{why:#}"));
            }
        }
    }
}
