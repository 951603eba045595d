//! Programs that start ssh themselves, with lhssh in its place.

use anyhow::{Result, ensure};
use interop::checks::tree;
use interop::run::{Input, Output, run};
use interop::{Client, Kind, Pair, need};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

const SOON: Duration = Duration::from_secs(60);

/// Both servers, if the tools are there.
fn pairs(tools: &[&str]) -> Vec<Pair> {
    if !need::require(tools) {
        return Vec::new();
    }
    [Kind::Ours, Kind::OpenSsh]
        .into_iter()
        .filter_map(|server| {
            Pair::with(Client::Ours, server, &[], &["Subsystem sftp /usr/lib/openssh/sftp-server"])
        })
        .collect()
}

/// A program that is lhssh with all options for this pair: what such tools call as `ssh`.
fn wrapper(pair: &Pair) -> Result<String> {
    use std::os::unix::fs::PermissionsExt;
    let command = pair.command("")?;
    // Without the last words: -l USER HOST COMMAND.
    let mut words: Vec<String> = vec![command.get_program().display().to_string()];
    words.extend(command.get_args().map(|word| word.display().to_string()));
    words.truncate(words.len() - 4);
    let path = pair.lab.path("ssh");
    fs::write(&path, format!("#!/bin/sh\nexec {} \"$@\"\n", words.join(" ")))?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
    Ok(path.display().to_string())
}

fn must(program: &str, args: &[&str], env: (&str, &str)) -> Result<()> {
    let mut command = Command::new(program);
    command.args(args).env(env.0, env.1);
    let outcome = run(command, Input::Empty, Output::Keep, SOON)?;
    ensure!(outcome.status == 0, "{program} {args:?}: {} {}", outcome.status, outcome.stderr);
    Ok(())
}

/// A directory with some files: empty, small, larger than a window, in a subdirectory.
fn plant(at: &Path) -> Result<()> {
    fs::create_dir_all(at.join("sub dir"))?;
    fs::write(at.join("empty"), "")?;
    fs::write(at.join("sub dir/small"), "small\n")?;
    let mut large = fs::File::create(at.join("large"))?;
    interop::stream::make(&mut large, 8 << 20, 9)?;
    Ok(())
}

fn same(left: &Path, right: &Path) -> Result<()> {
    ensure!(tree(left)? == tree(right)?, "{} and {} differ", left.display(), right.display());
    Ok(())
}

/// What all tests here do: plant, copy there, copy back, compare.
fn there_and_back(tools: &[&str], copy: impl Fn(&Pair, &str, [&str; 3]) -> Result<()>) {
    for pair in pairs(tools) {
        pair.must(|pair| {
            let [here, there, back] = ["here", "there", "back"].map(|name| pair.lab.path(name));
            plant(&here)?;
            let names = [&here, &there, &back].map(|path| path.display().to_string());
            copy(pair, &wrapper(pair)?, [&names[0], &names[1], &names[2]])?;
            same(&here, &there)?;
            same(&here, &back)
        });
    }
}

#[test]
fn rsync_copies_both_ways_and_takes_up_a_partial_file() {
    there_and_back(&["rsync"], |pair, ssh, [here, there, back]| {
        // A file that another run left behind.
        let part = pair.lab.path("there");
        fs::create_dir_all(&part)?;
        let whole = fs::read(pair.lab.path("here/large"))?;
        fs::write(part.join("large"), &whole[..3 << 20])?;
        let options = ["-a", "--partial", "--inplace", "-e", ssh];
        let copy = |from: &str, to: &str| {
            must("rsync", &[&options[..], &[from, to]].concat(), ("LC_ALL", "C"))
        };
        copy(&format!("{here}/"), &format!("127.0.0.1:{there}/"))?;
        copy(&format!("127.0.0.1:{there}/"), &format!("{back}/"))
    });
}

#[test]
fn tar_streams_both_ways() {
    there_and_back(&["tar"], |_, ssh, [here, there, back]| {
        let both = format!(
            "set -e; mkdir {there} {back}
             tar -C {here} -cf - . | {ssh} 127.0.0.1 'tar -C {there} -xf -'
             {ssh} 127.0.0.1 'tar -C {there} -cf - .' | tar -C {back} -xf -"
        );
        must("sh", &["-c", &both], ("LC_ALL", "C"))
    });
}

#[test]
fn git_clones_and_pushes() {
    there_and_back(&["git"], |_, ssh, [here, there, back]| {
        let git = format!(
            "set -e; cd {here}; git init -q -b main .; git add .
             git -c user.name=n -c user.email=e commit -q -m 'all'; cd ..
             git clone -q 127.0.0.1:{here} {there}
             git -C {there} checkout -q -b more
             git -C {there} push -q origin more
             git clone -q -b more 127.0.0.1:{here} {back}
             rm -rf {here}/.git {there}/.git {back}/.git"
        );
        must("sh", &["-c", &git], ("GIT_SSH_COMMAND", ssh))
    });
}

#[test]
fn scp_copies_both_ways_by_either_protocol() {
    for protocol in ["-s", "-O"] {
        there_and_back(&["scp"], |_, ssh, [here, there, back]| {
            let copy = |from: &str, to: &str| {
                must("scp", &["-q", "-r", protocol, "-S", ssh, from, to], ("LC_ALL", "C"))
            };
            copy(here, &format!("127.0.0.1:{there}"))?;
            copy(&format!("127.0.0.1:{there}"), back)
        });
    }
}

#[test]
fn sftp_copies_both_ways() {
    there_and_back(&["sftp"], |pair, ssh, [here, there, back]| {
        let batch = pair.lab.path("batch");
        fs::write(
            &batch,
            format!("mkdir {there}\nput -r {here}/* {there}/\nget -r {there} {back}\n"),
        )?;
        let batch = batch.display().to_string();
        must("sftp", &["-q", "-S", ssh, "-b", &batch, "127.0.0.1"], ("LC_ALL", "C"))
    });
}
