//! `lhscp --self-test`: every kind of transfer that it knows, with our server and with the stock one.

use anyhow::{Result, ensure};
use interop::run::{Input, Output, run};
use interop::{Kind, Lab, lab, need};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// The longest that all cases may take; they take 20 s of an idle machine with two cores.
const LIMIT: Duration = Duration::from_secs(400);

fn passes(server: &Path) -> Result<()> {
    let lab = Lab::new()?;
    let below = lab.path("below");
    std::fs::create_dir(&below)?;
    let mut command = Command::new(lab::program("lhscp")?);
    command.arg("--self-test").arg(&below).arg("--server").arg(server);
    let outcome = run(command, Input::Empty, Output::Keep, LIMIT)?;
    let said = String::from_utf8_lossy(&outcome.stdout);
    let all = format!("{said}{}", outcome.stderr);
    ensure!(outcome.status == 0 && said.ends_with("ALL TESTS PASSED\n"), "{all}");
    ensure!(std::fs::read_dir(&below)?.next().is_none(), "something was left behind");
    Ok(())
}

#[test]
fn every_case_passes_with_our_server() -> Result<()> {
    passes(&lab::program("lhsshd")?)
}

#[test]
fn every_case_passes_with_the_stock_server() -> Result<()> {
    match need::find("sshd").filter(|_| Kind::OpenSsh.available()) {
        Some(sshd) => passes(&sshd),
        None => Ok(()),
    }
}

#[test]
fn a_server_that_is_none_is_an_error() -> Result<()> {
    let lab = Lab::new()?;
    let mut command = Command::new(lab::program("lhscp")?);
    command.arg("--self-test").arg(lab.path("")).args(["--server", "/bin/false"]);
    let outcome = run(command, Input::Empty, Output::Keep, LIMIT)?;
    ensure!(outcome.status == 1, "{}", outcome.status);
    ensure!(outcome.stderr.contains("/bin/false"), "{}", outcome.stderr);
    Ok(())
}
