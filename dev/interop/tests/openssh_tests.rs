//! OpenSSH's own regression scripts for sftp and scp (Debian's package openssh-tests) with our
//! programs in place of its own. Each pair runs all scripts, the stock one first of all: where that
//! passes and a pair with ours fails, ours is at fault.
//!
//! What does not apply, and why, stands in [`LEFT_OUT`].

use anyhow::{Context, Result, ensure};
use interop::run::{Input, Output, run};
use interop::{Lab, lab, need};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const REGRESS: &str = "/usr/lib/openssh/regress";
const STOCK_SERVER: &str = "/usr/lib/openssh/sftp-server";

/// Scripts that talk to a server through `-D`.
const SCRIPTS: &[&str] =
    &["sftp", "sftp-cmds", "sftp-badcmds", "sftp-batch", "sftp-glob", "sftp-perm"];

/// Scripts that need an sshd: the stock one, reached through the stock ssh by `-S`.
const OVER_SSH: &[&str] = &["sftp-uri", "sftp-chroot"];

/// Scripts that copy, through `-D` as well. Each runs everything twice, by scp's old protocol (`-O`)
/// and by SFTP; lhscp does not speak the former, so that half is left out of ours.
const COPIES: &[&str] = &["scp", "scp3", "scp-uri"];

/// The line of those scripts that names the protocols, and what we make of it.
const PROTOCOLS: [&str; 2] = ["for mode in scp sftp ; do", "for mode in sftp ; do"];

/// Scripts about files that do not apply to our programs.
const LEFT_OUT: &[(&str, &str)] = &[
    ("ssh-com-sftp", "needs the servers of ssh.com, skips itself without them"),
    ("putty-transfer", "tests PuTTY's psftp; ours are tested by sftp_peers"),
];

/// The longest that one script may take; the slowest takes 20 s of a loaded machine.
const LIMIT: Duration = Duration::from_secs(240);

/// Which programs the scripts are to use.
struct Programs {
    /// In place of sftp, or of scp.
    client: PathBuf,
    server: PathBuf,
}

fn installed() -> bool {
    need::have(Path::new(REGRESS).exists(), "package openssh-tests is not installed")
        && need::require(&["sftp", "scp", "ssh", "sshd", "ssh-keygen"])
}

/// A copy of the scripts, which write beside themselves.
fn copy(to: &Path) -> Result<()> {
    fs::create_dir(to)?;
    for entry in fs::read_dir(REGRESS)? {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            fs::copy(entry.path(), to.join(entry.file_name()))?;
        }
    }
    COPIES.iter().try_for_each(|script| without_old_protocol(&to.join(format!("{script}.sh"))))
}

fn without_old_protocol(script: &Path) -> Result<()> {
    let [both, sftp] = PROTOCOLS;
    let text = fs::read_to_string(script)?;
    ensure!(text.contains(both), "{}: it is not as it was", script.display());
    Ok(fs::write(script, text.replace(both, sftp))?)
}

fn run_scripts(programs: &Programs, scripts: &[&str]) -> Result<()> {
    let lab = Lab::new()?;
    let at = lab.path("regress");
    copy(&at)?;
    let port = stand_ins::free_port()?.to_string();
    for script in scripts {
        let mut command = Command::new("sh");
        command.arg(at.join("test-exec.sh")).arg(&at).arg(at.join(format!("{script}.sh")));
        command.current_dir(&at).env("OBJ", &at).env("BUILDDIR", &at).env("TEST_SHELL", "sh");
        command.env("TEST_SSH_PORT", &port).env("TEST_SSH_UNSAFE_PERMISSIONS", "1");
        let role = if COPIES.contains(script) { "TEST_SSH_SCP" } else { "TEST_SSH_SFTP" };
        command.env(role, &programs.client);
        command.env("TEST_SSH_SFTPSERVER", &programs.server);
        let outcome = run(command, Input::Empty, Output::Keep, LIMIT)
            .with_context(|| (*script).to_owned())?;
        let said = String::from_utf8_lossy(&outcome.stdout);
        ensure!(outcome.status == 0, "{script}: {said}{}", outcome.stderr);
        ensure!(!said.contains("SKIPPED"), "{script}: {said}");
    }
    Ok(())
}

#[test]
fn stock_programs_pass_their_own_scripts() -> Result<()> {
    if !installed() {
        return Ok(());
    }
    let programs = Programs { client: "sftp".into(), server: STOCK_SERVER.into() };
    run_scripts(&programs, SCRIPTS)
}

#[test]
fn our_client_passes_with_the_stock_server() -> Result<()> {
    if !installed() {
        return Ok(());
    }
    run_scripts(&Programs { client: lab::program("lhsftp")?, server: STOCK_SERVER.into() }, SCRIPTS)
}

#[test]
fn our_server_passes_with_the_stock_client() -> Result<()> {
    if !installed() {
        return Ok(());
    }
    run_scripts(
        &Programs { client: "sftp".into(), server: lab::program("lhsftp-server")? },
        SCRIPTS,
    )
}

#[test]
fn our_client_passes_with_our_server() -> Result<()> {
    if !installed() {
        return Ok(());
    }
    run_scripts(
        &Programs { client: lab::program("lhsftp")?, server: lab::program("lhsftp-server")? },
        SCRIPTS,
    )
}

#[test]
fn stock_scp_passes_its_own_scripts() -> Result<()> {
    if !installed() {
        return Ok(());
    }
    run_scripts(&Programs { client: "scp".into(), server: STOCK_SERVER.into() }, COPIES)
}

#[test]
fn our_copy_passes_with_the_stock_server() -> Result<()> {
    if !installed() {
        return Ok(());
    }
    run_scripts(&Programs { client: lab::program("lhscp")?, server: STOCK_SERVER.into() }, COPIES)
}

#[test]
fn our_copy_passes_with_our_server() -> Result<()> {
    if !installed() {
        return Ok(());
    }
    run_scripts(
        &Programs { client: lab::program("lhscp")?, server: lab::program("lhsftp-server")? },
        COPIES,
    )
}

#[test]
fn our_client_passes_through_ssh() -> Result<()> {
    if !installed() || !need::require_root() {
        return Ok(());
    }
    run_scripts(
        &Programs { client: lab::program("lhsftp")?, server: STOCK_SERVER.into() },
        OVER_SSH,
    )
}

#[test]
fn every_script_about_files_is_run_or_left_out_for_a_reason() -> Result<()> {
    if !installed() {
        return Ok(());
    }
    for entry in fs::read_dir(REGRESS)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        let Some(name) = name.strip_suffix(".sh") else { continue };
        let is_about_files =
            (name.contains("sftp") || name.contains("scp") || name.contains("transfer"))
                && name != "transfer"
                && name != "scp-ssh-wrapper";
        let known = SCRIPTS.iter().chain(OVER_SSH).chain(COPIES).any(|known| *known == name)
            || LEFT_OUT.iter().any(|(known, _)| *known == name);
        ensure!(!is_about_files || known, "{name} is neither run nor left out");
    }
    Ok(())
}
