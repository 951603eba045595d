//! lhssh: runs a command on another host (ssh(1)).
//!
//! ```text
//! args      the command line
//! query     lists of what there is
//! run       configuration, login, session, exit code
//! clear     the NONE cipher, for who asks for it
//! command   what happens on the session's channel
//! forward   the same for a connection that the server makes
//! input     what the end of standard input means for both
//! report    the connection's figures for the user
//! explain   measures a path and says what limits it
//! metrics   the same for files, both ends', as it goes on
//! print     answers and refusals where there is no log
//! ```
#![cfg_attr(not(test), deny(clippy::indexing_slicing))]

mod args;
mod clear;
mod command;
mod explain;
mod forward;
mod input;
mod metrics;
mod print;
mod query;
mod report;
mod run;

use args::Invocation;
use conf::flags::Refused;
use std::process::ExitCode;

fn main() -> ExitCode {
    sys::hear_of_children();
    invoke().unwrap_or_else(|refused| print::refusal(&args::report(&refused)))
}

fn invoke() -> Result<ExitCode, Refused> {
    let supported = login::supported();
    Ok(match args::parse(std::env::args_os().skip(1))? {
        Invocation::Version => {
            print::note(&format!("{}\n", conf::flags::VERSION));
            ExitCode::SUCCESS
        }
        Invocation::Help(text) => print::answer(&text),
        Invocation::Query(query) => {
            let names = query.answer(&supported).into_iter();
            print::answer(&names.map(|name| format!("{name}\n")).collect::<String>())
        }
        Invocation::Connect(args) => run::run(&args, &supported),
    })
}
