//! Part files of small files: a run that was killed wrote them one by one, and the next one, given
//! other options, puts many files in one request.

#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use common::{Lab, our_program, parts, tree};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How long something may take that takes no time.
const PATIENCE: Duration = Duration::from_secs(60);
/// Slower than any test waits for.
const SLOWLY: [&str; 2] = ["--bwlimit", "1K"];

/// A server of ours that leaves a file when it has ended.
fn server(lab: &Lab) -> String {
    let path = lab.path("server");
    let ended = lab.path("ended");
    let script = format!("#!/bin/sh\n{} \"$@\"\n: >{}\n", our_program(), ended.display());
    fs::write(&path, script).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path.to_str().unwrap().to_owned()
}

fn lhscp(lab: &Lab, options: &[&str]) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lhscp"));
    command.args(["-F", "none", "-D", &server(lab), "-n", "1", "-qr", "--no-fsync"]).args(options);
    command.arg("source/.").arg(format!("host:{}", lab.path("target").display()));
    command.current_dir(lab.directory.path()).env("HOME", lab.directory.path());
    command.env_remove("XDG_STATE_HOME").stderr(Stdio::null()).spawn().unwrap()
}

#[track_caller]
fn wait_until(what: impl Fn() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !what() {
        assert!(Instant::now() < end, "it takes too long");
        sleep(Duration::from_millis(5));
    }
}

/// A run that was killed when it had part files, and its server has ended.
fn break_off(lab: &Lab, options: &[&str]) {
    for number in 0..100 {
        fs::create_dir_all(lab.path("source")).unwrap();
        fs::write(lab.path(&format!("source/{number}")), [number; 2000]).unwrap();
    }
    fs::create_dir(lab.path("target")).unwrap();
    let mut child = lhscp(lab, options);
    wait_until(|| !parts(&lab.path("target")).is_empty());
    child.kill().unwrap();
    child.wait().unwrap();
    wait_until(|| lab.path("ended").exists());
    assert!(!parts(&lab.path("target")).is_empty());
}

#[test]
fn part_files_of_small_files_do_not_outlive_the_next_run() {
    let verified = [&SLOWLY[..], &["--verify"]].concat();
    for before in [&SLOWLY[..], &verified] {
        for after in [&[][..], &["-p"]] {
            let lab = Lab::new();
            break_off(&lab, before);
            assert!(lhscp(&lab, after).wait().unwrap().success());
            let (source, target) = (tree(&lab.path("source")), tree(&lab.path("target")));
            assert!(source.keys().eq(target.keys()), "{before:?} {after:?}: {target:?}");
        }
    }
}

/// Whatever has put the files in place meanwhile, or taken the sources away.
#[test]
fn part_files_of_what_needs_no_copy_any_more_are_removed() {
    for gone in [false, true] {
        let lab = Lab::new();
        break_off(&lab, &SLOWLY);
        let all = fs::read_dir(lab.path("source")).unwrap().map(|name| name.unwrap().path());
        for path in all {
            let target = lab.path("target").join(path.file_name().unwrap());
            match gone {
                true => fs::remove_file(&path).unwrap(),
                false => {
                    fs::copy(&path, &target).unwrap();
                    let time = fs::metadata(&path).unwrap().modified().unwrap();
                    fs::File::open(&target).unwrap().set_modified(time).unwrap();
                }
            }
        }
        assert!(lhscp(&lab, &["-p"]).wait().unwrap().success());
        assert!(parts(&lab.path("target")).is_empty(), "{:?}", tree(&lab.path("target")));
    }
}

/// Only what this very command has left is known to be nobody's.
#[test]
fn part_files_of_others_stay() {
    let lab = Lab::new();
    break_off(&lab, &SLOWLY);
    let others = [".1.01234567.part", ".1.part", ".1.409d-5c.part"];
    for name in others {
        fs::write(lab.path("target").join(name), "another's").unwrap();
    }
    assert!(lhscp(&lab, &[]).wait().unwrap().success());
    let left = parts(&lab.path("target"));
    assert_eq!(left.len(), others.len(), "{left:?}");
}
