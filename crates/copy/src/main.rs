//! lhscp: copies files and trees over many lanes, verified and resumable (scp(1)).
//!
//! ```text
//! args      the command line: letters (its options), uri (its operands), units (sizes, rates)
//! plan      configuration, places  ->   copy::Options
//! self_copy nothing is copied onto itself
//! watch     looks on: meter counts, progress and json tell, outage what is worth telling of lanes
//! selftest  --self-test
//! ```

#![cfg_attr(not(test), deny(clippy::indexing_slicing))]

mod args;
mod json;
mod letters;
mod meter;
mod out;
mod outage;
mod plan;
mod progress;
mod self_copy;
mod selftest;
mod units;
mod uri;
mod watch;

use anyhow::{Error, Result};
use args::{Args, Invocation};
use copy::{Copies, Options};
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
        Invocation::Version => println!("{}", conf::flags::VERSION),
        Invocation::Help(text) => print!("{text}"),
        Invocation::SelfTest { dir, server } => return selftest::run(&dir, server.as_deref()),
        Invocation::Copy(args) => return run(*args),
    }
    Ok(0)
}

fn run(args: Args) -> Result<u8> {
    self_copy::check(&args.sources, &args.target).map_err(Error::msg)?;
    let (show, both) = (args.show, args.what.test.is_some_and(|test| test.both));
    let Plan { options, mut warnings } = plan::plan(args)?;
    let state = copy::state_directory();
    let mut copies = Copies::new(state.as_deref());
    let mut next = |options: &Options| {
        if show.json {
            json::start(options);
        }
        let watch = Watch::new(show);
        warnings.drain(..).for_each(|warning| watch.warn(&warning));
        watch.over(|observer| copies.run(options, observer)).exit_code()
    };
    let code = next(&options);
    Ok(if both && code == 0 { next(&options.turned()) } else { code })
}
