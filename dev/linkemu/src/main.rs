//! linkemu: run commands at the ends of an emulated link.

mod background;
mod capacity;
mod foreground;
mod options;

use std::path::Path;
use std::process::ExitCode;
use std::{fs, io::Write};

use clap::Parser;
use linkemu::{Error, Side, Spec, Stats, Verdict};

use options::{Action, EndName, Options};

/// The link could not be made here; test runners take it as "skipped".
const EXIT_SKIP: u8 = 77;
/// The command succeeded, but its figures must not be used.
const EXIT_REFUSED: u8 = 3;

fn main() -> ExitCode {
    match act(Options::parse().action) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            eprintln!("linkemu: {error:#}");
            match error.downcast_ref() {
                Some(Error::NotPermitted | Error::NoTun) => ExitCode::from(EXIT_SKIP),
                _ => ExitCode::FAILURE,
            }
        }
    }
}

fn act(action: Action) -> anyhow::Result<u8> {
    match action {
        Action::Run { link, peer, json, command } => {
            foreground::run(link.spec(), peer.as_deref(), json.as_deref(), &command)
        }
        Action::Up { name, .. } => background::up(&name),
        Action::Hold { name, link } => background::hold(&name, link.spec()),
        Action::Down { name, json } => background::down(&name, json.as_deref()),
        Action::Exec { name, end, command } => {
            let side = match end {
                EndName::A => Side::A,
                EndName::B => Side::B,
            };
            background::exec(&name, side, &command)
        }
        Action::Capacity { seconds, rtt } => capacity::measure(seconds, rtt),
    }
}

/// Counters, what they were taken on, and what they are worth.
#[derive(serde::Serialize)]
struct Report<'a> {
    link: &'a Spec,
    stats: &'a Stats,
    verdict: Verdict,
}

/// Prints the table, writes the JSON; the exit code says whether figures may be used.
fn report(spec: &Spec, stats: &Stats, json: Option<&Path>) -> anyhow::Result<u8> {
    let verdict = stats.verdict(spec);
    eprintln!("{}", stats.report(spec));
    if let Some(path) = json {
        let text =
            serde_json::to_string_pretty(&Report { link: spec, stats, verdict: verdict.clone() })?;
        match path.to_str() {
            Some("-") => writeln!(std::io::stdout(), "{text}")?,
            _ => fs::write(path, text + "\n")?,
        }
    }
    Ok(if verdict == Verdict::Sound { 0 } else { EXIT_REFUSED })
}
