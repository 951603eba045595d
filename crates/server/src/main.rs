//! lhsshd: the SSH server. One program in three roles, each a process of its own:
//!
//! ```text
//! listener   accepts, holds MaxStartups, starts a session process per connection   (listener)
//! session    one connection: key exchange, login, commands                         (session)
//! detached   a listener that left its starter's terminal                           (detach)
//! ```
//! A role is entered by executing the program anew, never by a bare fork: a session shares no
//! memory with the listener, and whatever happens to it stays its own (invariant D5).
#![cfg_attr(not(test), deny(clippy::indexing_slicing))]

mod account;
mod args;
mod authorize;
mod channels;
mod detach;
mod endpoint;
mod environment;
mod handover;
mod hostkeys;
mod hostname;
mod job;
mod listener;
mod log;
mod modes;
mod process;
mod program;
mod refusal;
mod requests;
mod session;
mod setup;
mod sftp;
mod socket;
mod startups;
mod syslog;
mod transfer;

use anyhow::Result;
use args::{Args, Invocation, Mode};
use std::ffi::OsString;
use std::process::ExitCode;

/// What a failure before or instead of serving ends with, as in sshd.
const FAILED: u8 = 255;
/// What a wrong command line ends with.
const MISUSED: u8 = 1;

fn main() -> ExitCode {
    sys::forget_ignored_signals();
    session::keep_stderr_from_client();
    // On a kernel that is too old for it, what the starter left open is the starter's affair.
    let _ = sys::keep_descriptors_to_ourselves();
    // Or a session were called "exe", as what it is started from.
    let _ = nix::sys::prctl::set_name(c"lhsshd");
    let given: Vec<OsString> = std::env::args_os().skip(1).collect();
    match given.split_first() {
        Some((role, rest)) if role == session::ROLE => report(session::run(rest)),
        Some((role, rest)) if role == detach::ROLE => serve(rest, detach::Place::Detached),
        _ => serve(&given, detach::Place::Started),
    }
}

fn serve(given: &[OsString], place: detach::Place) -> ExitCode {
    match args::parse(given.iter().cloned()) {
        Ok(Invocation::Version) => {
            eprintln!("{}", conf::flags::VERSION);
            ExitCode::SUCCESS
        }
        Ok(Invocation::Help(text)) => {
            print!("{text}");
            ExitCode::SUCCESS
        }
        Ok(Invocation::Serve(args)) => {
            let done = carry_out(&args, given, place);
            if let (Err(error), detach::Place::Detached) = (&done, place) {
                log::last_words(&args, error);
            }
            report(done)
        }
        Err(refused) => {
            eprint!("{}", args::report(&refused));
            ExitCode::from(MISUSED)
        }
    }
}

fn carry_out(args: &Args, given: &[OsString], place: detach::Place) -> Result<ExitCode> {
    let loaded = setup::load(args)?;
    match args.mode {
        Mode::Dump => {
            let visitor = args.visitor.clone().unwrap_or_default();
            print!("{}", setup::matched(&loaded.say(), account::in_groups(visitor))?.dump());
            Ok(ExitCode::SUCCESS)
        }
        Mode::Test => setup::test(loaded.say()),
        Mode::Inetd => session::inetd(args, loaded),
        Mode::Listen => match place {
            detach::Place::Started if !args.foreground => {
                setup::test(loaded.say())?;
                detach::detach(given)
            }
            place => listener::run(args, loaded, place),
        },
    }
}

fn report(result: Result<ExitCode>) -> ExitCode {
    result.unwrap_or_else(|error| {
        eprintln!("lhsshd: {error:#}");
        ExitCode::from(FAILED)
    })
}
