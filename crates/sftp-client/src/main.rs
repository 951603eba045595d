//! lhsftp: the SFTP client, interactive and in batches (sftp(1)).
//!
//! ```text
//! args          the command line
//! connect       a login, or a server's pipes
//! run           lines in, exit code out; interactive reads them from a terminal
//! interrupt     what SIGINT does
//! command       a line's words (words) -> a command
//! session       what commands do: ls, get, put and the small ones
//! files         the server's files, question by question
//! names         the names in a directory of the server, bounded
//! glob          patterns, on either side (pattern, local)
//! transfer      a file's bytes, many requests under way (meter shows how far)
//! convoy        small files of a tree in company (download, upload: one of them)
//! directory     a local tree that is written into, never past a link
//! listing       what ls and df print; escape makes it fit for a terminal
//! ```

#![cfg_attr(not(test), deny(clippy::indexing_slicing))]

mod args;
mod command;
mod connect;
mod convoy;
mod directory;
mod download;
mod escape;
mod failure;
mod files;
mod get;
mod glob;
#[cfg(test)]
mod hostile;
mod interactive;
mod interrupt;
mod listing;
mod local;
mod ls;
mod meter;
mod names;
mod paths;
mod pattern;
mod put;
mod run;
mod session;
mod transfer;
mod upload;
mod words;

use args::Invocation;
use std::process::ExitCode;

fn main() -> ExitCode {
    sys::hear_of_children();
    match args::parse(std::env::args_os().skip(1)) {
        Ok(Invocation::Session(args)) => return run::run(&args),
        Ok(Invocation::Version) => eprintln!("{}", conf::flags::VERSION),
        Ok(Invocation::Help(text)) => print!("{text}"),
        Err(refused) => {
            eprint!("{}", args::report(&refused));
            return ExitCode::from(args::exit_code(&refused));
        }
    }
    ExitCode::SUCCESS
}
