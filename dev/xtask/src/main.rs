//! `cargo xtask CHECK`: what the compiler and clippy do not check about this repository; and
//! `cargo xtask test`, which runs its tests.
//!
//! layers       a crate depends only on crates of a lower floor        [`layers`]
//! invariants   docs/invariants.md names tests that exist              [`invariants`]
//! lints        house rules on source files                            [`lints`]
//! all          the three of them
//! test         every test, two programs at a time; options for cargo may follow    [`tests`]
//!
//! Every check prints all its findings, one a line as `file: what`, and fails when there is one.

mod invariants;
mod layers;
mod lints;
mod tests;
mod tree;

use anyhow::Result;
use std::path::Path;
use std::process::ExitCode;

/// What one check found.
#[derive(Default)]
struct Report {
    errors: Vec<String>,
    warnings: Vec<String>,
    /// One line on what was looked at, so that an empty check is noticed.
    summary: String,
}

type Check = fn(&Path) -> Result<Report>;
const CHECKS: &[(&str, Check)] =
    &[("layers", layers::check), ("invariants", invariants::check), ("lints", lints::check)];

fn main() -> ExitCode {
    let wanted = std::env::args().nth(1).unwrap_or_default();
    if wanted == "test" {
        let options: Vec<String> = std::env::args().skip(2).collect();
        return code(tree::root().and_then(|root| tests::run(&root, &options)).unwrap_or_else(
            |e| {
                eprintln!("xtask test: {e:#}");
                false
            },
        ));
    }
    let chosen = || CHECKS.iter().filter(|(name, _)| wanted == *name || wanted == "all");
    if chosen().next().is_none() {
        eprintln!("usage: cargo xtask layers|invariants|lints|all, or test [CARGO-OPTION...]");
        return ExitCode::from(2);
    }
    code(chosen().fold(true, |all, (name, check)| passes(name, *check) && all))
}

fn code(passed: bool) -> ExitCode {
    if passed { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn passes(name: &str, check: Check) -> bool {
    match tree::root().and_then(|root| check(&root)) {
        Ok(report) => print(name, &report),
        Err(error) => {
            eprintln!("xtask {name}: {error:#}");
            false
        }
    }
}

fn print(name: &str, report: &Report) -> bool {
    for line in &report.warnings {
        println!("warning: {line}");
    }
    for line in &report.errors {
        println!("error: {line}");
    }
    println!("xtask {name}: {}, {} error(s)", report.summary, report.errors.len());
    report.errors.is_empty()
}
