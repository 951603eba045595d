//! lhssh: runs a command on another host (ssh(1)).
//!
//! ```text
//! args      the command line
//! run       configuration, login, session, exit code
//! clear     the NONE cipher, for who asks for it
//! command   what happens on the session's channel
//! forward   the same for a connection that the server makes
//! report    the connection's figures for the user
//! explain   measures a path and says what limits it
//! metrics   the same for files, both ends', as it goes on
//! ```

mod args;
mod clear;
mod command;
mod explain;
mod forward;
mod metrics;
mod report;
mod run;

use args::Invocation;
use conf::flags::Refused;
use std::process::ExitCode;

fn main() -> ExitCode {
    sys::hear_of_children();
    match invoke() {
        Ok(code) => code,
        Err(refused) => {
            eprint!("{}", args::report(&refused));
            ExitCode::from(run::FAILED)
        }
    }
}

fn invoke() -> Result<ExitCode, Refused> {
    let supported = login::supported();
    match args::parse(std::env::args_os().skip(1))? {
        Invocation::Version => eprintln!("{}", args::VERSION),
        Invocation::Help(text) => print!("{text}"),
        Invocation::Query(query) => {
            query.answer(&supported).iter().for_each(|name| println!("{name}"));
        }
        Invocation::Connect(args) => return Ok(run::run(&args, &supported)),
    }
    Ok(ExitCode::SUCCESS)
}
