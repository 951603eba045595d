//! lhsftp-server: the SFTP server on standard input and output, for any sshd
//! (`Subsystem sftp /usr/lib/longhaul/lhsftp-server`).
//!
//! ```text
//! input thread   reads standard input, hands what it read to the server
//! main thread    lets the server fill a buffer, writes it to standard output
//! ```
#![cfg_attr(not(test), deny(clippy::indexing_slicing))]

mod log;
mod pipes;

use anyhow::{Context, Result};
use log::Log;
use nix::unistd::{Uid, User};
use sftp::codec::LinkOrder;
use sftp::server::{Account, Action, Options, Setup, USAGE};
use std::process::ExitCode;
use std::sync::Arc;

/// What sftp-server(8) ends with when it is called wrongly.
const WRONG_CALL: u8 = 1;
/// And when it fails.
const FAILED: u8 = 255;

fn main() -> ExitCode {
    match Options::parse(std::env::args_os().skip(1)) {
        Ok(Action::Serve(options)) => serve(*options).unwrap_or_else(|error| {
            eprintln!("lhsftp-server: {error:#}");
            ExitCode::from(FAILED)
        }),
        Ok(Action::ListRequests) => {
            sftp::server::requests().for_each(|name| println!("{name}"));
            ExitCode::SUCCESS
        }
        Ok(Action::Help) => {
            eprintln!("{USAGE}");
            ExitCode::from(WRONG_CALL)
        }
        Err(wrong) => {
            eprintln!("lhsftp-server: {wrong}\n{USAGE}");
            ExitCode::from(WRONG_CALL)
        }
    }
}

fn serve(mut options: Options) -> Result<ExitCode> {
    let uid = Uid::current();
    let user = User::from_uid(uid).context("look up the user")?;
    let user = user.with_context(|| format!("No user found for uid {uid}"))?;
    let log = Log::open(&options);
    raise_descriptor_limit();
    options.set_umask();
    let setup = Setup {
        options,
        account: Account { name: user.name.into_bytes(), home: user.dir },
        start: std::env::current_dir().unwrap_or_else(|_| "/".into()),
        peer: peer(),
        links: links(),
        log: Arc::new(log),
    };
    let (input, output, session) = sftp::server::start(setup).context("start")?;
    pipes::start_input(input).context("start a thread")?;
    pipes::send(output);
    Ok(ExitCode::from(session.exit_status()))
}

/// By the client's identification, which lhsshd tells. Behind another sshd clients send OpenSSH's
/// order, or what that one's identification makes them send.
fn links() -> LinkOrder {
    let client = std::env::var(sftp::server::CLIENT).unwrap_or_default();
    LinkOrder::of_client(&client)
}

/// The client's address, as sshd tells it.
fn peer() -> String {
    let connection = std::env::var("SSH_CONNECTION").unwrap_or_default();
    connection.split_whitespace().next().unwrap_or("UNKNOWN").to_owned()
}

/// A handle is a descriptor. The limit above the usual one is there for those who know what they
/// do; no other program inherits it from here.
fn raise_descriptor_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
}
