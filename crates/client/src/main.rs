//! lhssh: so far its command line and configuration.

#[allow(dead_code, reason = "read once there are sessions")]
mod args;

use args::{Invocation, Refused};
use std::process::ExitCode;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(refused) => {
            eprint!("{}", refused.report());
            ExitCode::from(255)
        }
    }
}

fn run() -> Result<(), Refused> {
    let supported = conf::Supported::default();
    match args::parse(std::env::args_os().skip(1))? {
        Invocation::Version => eprintln!("{}", args::VERSION),
        Invocation::Help(text) => print!("{text}"),
        Invocation::Query(query) => {
            query.answer(&supported).iter().for_each(|name| println!("{name}"));
        }
        Invocation::Connect(args) => _ = args,
    }
    Ok(())
}
