//! lhscp: copies files and trees over many lanes, verified and resumable (scp(1)).
//!
//! ```text
//! args      the command line: letters (its options), uri (its operands), units (sizes, rates)
//! plan      configuration, places  ->   copy::Options
//! near      nothing is copied onto itself
//! watch     looks on: meter counts, progress and json tell
//! selftest  --self-test
//! ```

#![cfg_attr(not(test), deny(clippy::indexing_slicing))]

mod args;
mod json;
mod letters;
mod meter;
mod near;
mod plan;
mod progress;
mod selftest;
mod units;
mod uri;
mod watch;

use anyhow::{Error, Result};
use args::{Args, Invocation};
use plan::Plan;
use std::process::ExitCode;
use watch::Watch;

fn main() -> ExitCode {
    match invoke() {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            eprintln!("lhscp: {error:#}");
            plan::hint(&error).iter().for_each(|hint| eprintln!("hint: {hint}"));
            ExitCode::FAILURE
        }
    }
}

fn invoke() -> Result<u8> {
    match args::parse(std::env::args_os().skip(1)).map_err(Error::msg)? {
        Invocation::Version => println!("{}", args::VERSION),
        Invocation::Help(text) => print!("{text}"),
        Invocation::SelfTest { dir, server } => return selftest::run(&dir, server.as_deref()),
        Invocation::Copy(args) => return run(*args),
    }
    Ok(0)
}

fn run(args: Args) -> Result<u8> {
    near::check(&args.sources, &args.target).map_err(Error::msg)?;
    let show = args.show;
    let Plan { options, warnings } = plan::plan(args)?;
    if show.json {
        json::start(&options);
    }
    let watch = Watch::new(show);
    warnings.iter().for_each(|warning| watch.warn(warning));
    let report = watch.over(|observer| copy::run(&options, observer));
    Ok(report.exit_code())
}
