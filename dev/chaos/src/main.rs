//! `chaos SCENARIO --runs N --seed S`: see the library. Exit 0 if nothing was violated.

use anyhow::{Context, Result};
use chaos::tally::HEAD;
use chaos::{Plan, Tally, Whose};
use clap::{Parser, Subcommand};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};
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
    /// Runs at a time.
    #[arg(long, default_value_t = 2)]
    jobs: usize,
    /// Copy with OpenSSH's scp instead, to see that violations are found.
    #[arg(long)]
    scp: bool,
}

impl How {
    fn whose(self) -> Whose {
        if self.scp { Whose::Scp } else { Whose::Ours }
    }
}

#[derive(Subcommand)]
enum Scenario {
    /// Client, server and connections die.
    Kill(How),
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
    /// A server lies.
    Malicious {
        #[command(flatten)]
        how: How,
        /// To this program alone: lhscp or lhsftp.
        #[arg(long)]
        on: Option<String>,
        /// In this way alone.
        #[arg(long)]
        trick: Option<String>,
    },
    /// Such a server, on standard input and output.
    #[command(hide = true)]
    Evil {
        /// What it does.
        trick: String,
        /// A path outside the client's destination.
        guard: String,
    },
}

fn main() -> Result<ExitCode> {
    let scenario = Args::parse().scenario;
    beside()?;
    let (name, how, runs, run): (_, _, _, fn(Plan, Whose) -> Result<Tally>) = match scenario {
        Scenario::Kill(how) => ("kill", how, 8, chaos::kill::run),
        Scenario::Watch(how) => ("watch", how, 100, chaos::watch::run),
        Scenario::Errors(how) => ("errors", how, 100, chaos::errors::run),
        Scenario::Source(how) => ("source", how, 100, chaos::source::run),
        Scenario::Journal(how) => ("journal", how, 100, chaos::journal::run),
        Scenario::Random(how) => ("random", how, 1000, chaos::random::run),
        Scenario::Malicious { how, on, trick } => return lies(how, on, trick),
        Scenario::Evil { trick, guard } => {
            chaos::evil::serve(&trick, &guard)?;
            return Ok(ExitCode::SUCCESS);
        }
    };
    carry_out(name, how, runs, |plan| run(plan, how.whose()))
}

fn lies(how: How, on: Option<String>, trick: Option<String>) -> Result<ExitCode> {
    let mut games = chaos::malicious::games(how.whose());
    games.retain(|(victim, known)| {
        on.as_ref().is_none_or(|on| on == victim.name())
            && trick.as_ref().is_none_or(|trick| trick == known.name)
    });
    carry_out("malicious", how, games.len() as u64, |plan| {
        chaos::malicious::run(plan, &games, chaos::malicious::ENDLESS)
    })
}

fn carry_out(
    name: &str,
    how: How,
    runs: u64,
    run: impl FnOnce(Plan) -> Result<Tally>,
) -> Result<ExitCode> {
    let plan = Plan { runs: how.runs.unwrap_or(runs), seed: how.seed, jobs: how.jobs };
    let start = Instant::now();
    let mut tally = run(plan)?;
    tally.took = start.elapsed();
    print!("{HEAD}{}", tally.rows(name));
    Ok(ExitCode::from(u8::from(!tally.violations.is_empty())))
}

/// Our programs are those beside this one, unless the environment says otherwise: says it, and
/// starts anew.
fn beside() -> Result<()> {
    const DIR: &str = "LONGHAUL_BIN_DIR";
    if std::env::var_os(DIR).is_some() {
        return Ok(());
    }
    let own = std::env::current_exe()?;
    let dir = own.parent().context("where is this program?")?;
    Err(Command::new(&own).args(std::env::args_os().skip(1)).env(DIR, dir).exec().into())
}
