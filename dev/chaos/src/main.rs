//! `chaos SCENARIO --runs N --seed S`: see the library. Exit 0 if nothing was violated.

use anyhow::Result;
use chaos::tally::HEAD;
use chaos::{Plan, Tally, Whose};
use clap::{Parser, Subcommand};
use std::process::ExitCode;
use std::time::Instant;

/// Breaks copies on purpose, and looks at what is left.
#[derive(Parser)]
struct Args {
    #[command(subcommand)]
    scenario: Scenario,
}

#[derive(clap::Args, Clone, Copy)]
struct How {
    /// How many runs; each scenario has its own number of them by default.
    #[arg(long)]
    runs: Option<u64>,
    /// The seed: the same one does the same, as far as the machine's timing allows.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Copy with OpenSSH's scp instead, to see that violations are found.
    #[arg(long)]
    scp: bool,
}

#[derive(Subcommand, Clone, Copy)]
enum Scenario {
    /// A reader looks at the target's names meanwhile.
    Watch(How),
    /// System calls fail; disks are full.
    Errors(How),
    /// The source changes meanwhile.
    Source(How),
    /// The journal of a stopped copy is damaged.
    Journal(How),
    /// All of these, on random trees.
    Random(How),
}

fn main() -> Result<ExitCode> {
    let scenario = Args::parse().scenario;
    let (name, how, runs, run): (_, _, _, fn(Plan, Whose) -> Result<Tally>) = match scenario {
        Scenario::Watch(how) => ("watch", how, 100, chaos::watch::run),
        Scenario::Errors(how) => ("errors", how, 100, chaos::errors::run),
        Scenario::Source(how) => ("source", how, 100, chaos::source::run),
        Scenario::Journal(how) => ("journal", how, 100, chaos::journal::run),
        Scenario::Random(how) => ("random", how, 1000, chaos::random::run),
    };
    let plan = Plan { runs: how.runs.unwrap_or(runs), seed: how.seed };
    let start = Instant::now();
    let mut tally = run(plan, if how.scp { Whose::Scp } else { Whose::Ours })?;
    tally.took = start.elapsed();
    print!("{HEAD}{}", tally.rows(name));
    Ok(ExitCode::from(u8::from(!tally.violations.is_empty())))
}
