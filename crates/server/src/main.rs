//! lhsshd: so far its command line.

#[allow(dead_code, reason = "read once there are sessions")]
mod args;

use args::Invocation;
use std::process::ExitCode;

fn main() -> ExitCode {
    match args::parse(std::env::args_os().skip(1)) {
        Ok(Invocation::Version) => eprintln!("{}", args::VERSION),
        Ok(Invocation::Help(text)) => print!("{text}"),
        Ok(Invocation::Serve(args)) => _ = args,
        Err(refused) => {
            eprint!("{}", refused.report());
            return ExitCode::from(1);
        }
    }
    ExitCode::SUCCESS
}
