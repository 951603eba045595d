//! `--self-test DIR`: every kind of transfer over loopback, with this very program and a server of
//! its own, keys and configuration included; nothing outside DIR is read or written.
//!
//! ```text
//! server   throw-away keys, a server on a free port of 127.0.0.1
//! bench    a directory per case, runs of lhscp in it
//! trees    made-up files of every kind, and what is different between two trees
//! cases    the table of cases: a row more is a test more
//! ```

mod bench;
mod cases;
mod server;
mod trees;

use anyhow::{Context, Result};
use bench::Bench;
use cases::{CASES, Case};
use server::Server;
use std::fs;
use std::path::Path;
use std::time::Instant;

/// Runs all cases; the exit code.
pub(crate) fn run(below: &Path, server: Option<&Path>) -> Result<u8> {
    let below = below.canonicalize().with_context(|| below.display().to_string())?;
    let dir = below.join(format!("lhscp-self-test.{}", std::process::id()));
    fs::create_dir(&dir).with_context(|| dir.display().to_string())?;
    let failed = in_dir(&dir, server);
    match &failed {
        Ok(failed) if failed.is_empty() => {
            fs::remove_dir_all(&dir).with_context(|| dir.display().to_string())?;
            println!("ALL TESTS PASSED");
        }
        Ok(failed) => {
            println!("{} of {} FAILED: {}", failed.len(), CASES.len(), failed.join(", "));
            println!("what they left is in {}", dir.display());
        }
        Err(_) => _ = fs::remove_dir_all(&dir),
    }
    Ok(u8::from(!failed?.is_empty()))
}

/// The names of the cases that failed.
fn in_dir(dir: &Path, server: Option<&Path>) -> Result<Vec<&'static str>> {
    let server = Server::start(dir, server)?;
    println!("{} cases with {}", CASES.len(), server.program().display());
    let failed = CASES.iter().filter(|case| !passes(case, dir, &server));
    Ok(failed.map(|case| case.name).collect())
}

fn passes(case: &Case, dir: &Path, server: &Server) -> bool {
    let started = Instant::now();
    let outcome = Bench::new(dir, case.name, server).and_then(|bench| (case.run)(&bench));
    let seconds = started.elapsed().as_secs_f64();
    match &outcome {
        Ok(()) => println!("ok      {} ({seconds:.1} s)", case.name),
        Err(error) => println!("FAILED  {} ({seconds:.1} s): {error:#}", case.name),
    }
    outcome.is_ok()
}
