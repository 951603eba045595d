//! Room that runs out at the target: full disks and quotas.

#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use common::{Lab, PLAIN, STOCK, Small, here, host, options, our_program, stock, there, tree};
use copy::options::{Lanes, Options};
use copy::report::What;
use stand_ins::noise;
use std::fs;
use std::num::NonZeroU32;
use std::path::Path;
use std::process::Command;

fn one() -> Lanes {
    Lanes::Fixed(NonZeroU32::MIN)
}

/// A file system of so many MiB, where one can be mounted.
#[track_caller]
fn small(lab: &Lab, mib: u32) -> Option<Small> {
    let small = Small::mount(&lab.path("small"), mib);
    need::have(small.is_some(), "no tmpfs can be mounted").then_some(small).flatten()
}

#[test]
fn r5_no_space_names_the_file_keeps_the_old_one_and_resumes_with_room() {
    for upload in [true, false] {
        let lab = Lab::new();
        let Some(small) = small(&lab, 24) else { return };
        fs::write(lab.path("source"), noise(1, 30_000_000)).unwrap();
        let target = lab.path("small/target");
        fs::write(&target, "old").unwrap();
        let options: Options = match upload {
            true => options(here(&lab.path("source")), there(&stock(), &target)),
            false => options(there(&stock(), &lab.path("source")), here(&target)),
        };
        let report = lab.copy(&options);
        assert_eq!(report.exit_code(), 1, "upload {upload}");
        assert!(matches!(&report.failures[0].what, What::Path(path) if path == b"target"));
        let name = if upload {
            format!("peer:{}", target.display())
        } else {
            target.display().to_string()
        };
        assert_eq!(report.failures[0].name(), name.as_bytes(), "{report:?}");
        assert!(report.failures[0].why.contains("No space left"), "upload {upload}: {report:?}");
        assert_eq!(fs::read(&target).unwrap(), b"old");
        let more = ["-o", "remount,size=64m"];
        std::process::Command::new("mount").args(more).arg(small.path()).status().unwrap();
        let report = lab.good(&options);
        assert_eq!(tree(&lab.path("source")), tree(&target));
        assert!(report.bytes < 20_000_000, "it goes on: {report:?}");
    }
}

/// What waits in the queue when the disk is full is not copied, and what has its name is the old
/// file: no other name is made one of that.
#[test]
fn r1_a_copy_that_stops_links_no_names_to_old_files() {
    let lab = Lab::new();
    let Some(_small) = small(&lab, 24) else { return };
    fs::create_dir(lab.path("tree")).unwrap();
    fs::create_dir(lab.path("small/tree")).unwrap();
    fs::write(lab.path("large"), noise(1, 30_000_000)).unwrap();
    fs::write(lab.path("tree/first"), "new").unwrap();
    fs::hard_link(lab.path("tree/first"), lab.path("tree/second")).unwrap();
    for name in ["first", "second"] {
        fs::write(lab.path("small/tree").join(name), format!("old {name}")).unwrap();
    }
    let mut options = options(here(&lab.path("large")), here(&lab.path("small")));
    options.sources.push(here(&lab.path("tree")));
    let report = lab.copy(&Options { preserve: true, lanes: one(), ..options });
    assert!(report.failures[0].why.contains("No space left"), "{report:?}");
    for name in ["first", "second"] {
        let left = fs::read_to_string(lab.path("small/tree").join(name)).unwrap();
        assert_eq!(left, format!("old {name}"), "{report:?}");
    }
}

/// Where sftp begins: the file's directory has no name then.
#[test]
fn r5_no_space_is_told_also_where_the_server_starts() {
    let lab = Lab::new();
    let Some(_small) = small(&lab, 24) else { return };
    fs::write(lab.path("source"), noise(1, 30_000_000)).unwrap();
    let line = format!("cd {} && exec {STOCK}", lab.path("small").display());
    let server = host("/bin/sh", &["-c", &line]);
    let report = lab.copy(&options(here(&lab.path("source")), there(&server, Path::new("name"))));
    assert!(report.failures[0].why.contains("No space left"), "{report:?}");
}

/// Little room is left, and that is not why a file fails.
#[test]
fn r5_another_cause_is_told_on_a_disk_that_is_almost_full() {
    let lab = Lab::new();
    let Some(_small) = small(&lab, 1) else { return };
    fs::create_dir(lab.path("source")).unwrap();
    fs::write(lab.path("taken"), "x").unwrap();
    fs::create_dir(lab.path("small/taken")).unwrap();
    fs::write(lab.path("small/other"), noise(1, 100_000)).unwrap();
    for name in 0..600 {
        fs::write(lab.path(&format!("source/{name}")), "").unwrap();
    }
    let mut options = options(here(&lab.path("taken")), there(&stock(), &lab.path("small")));
    options.sources.push(here(&lab.path("source")));
    let report = lab.copy(&Options { lanes: one(), ..options });
    assert_eq!((report.copied, report.failures.len()), (600, 1), "{report:?}");
    assert!(report.failures[0].why.contains("there is a directory"), "{report:?}");
}

/// `lhscp` in a lab: its home is there.
fn lhscp(lab: &Lab, before: &[&str], args: &[&str]) -> std::process::Output {
    let words = [before, &[env!("CARGO_BIN_EXE_lhscp")], args].concat();
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).current_dir(lab.directory.path());
    command.env("HOME", lab.directory.path()).env_remove("XDG_STATE_HOME").output().unwrap()
}

/// What NFS reports only at close(2), by strace: the old file stays.
#[test]
fn f5_an_error_that_close_reports_fails_the_file() {
    if !need::require(&["strace", STOCK]) {
        return;
    }
    let ours = our_program();
    // By itself on this host and from a stock server, and among others from ours.
    for server in [None, Some(STOCK), Some(ours.as_str())] {
        let lab = Lab::new();
        fs::write(lab.path("source"), "new").unwrap();
        let from = lab.path("source");
        let from = match server {
            Some(_) => format!("host:{}", from.display()),
            None => "source".to_owned(),
        };
        let mut args = vec!["--no-fsync", "-n", "1"];
        args.extend(server.iter().flat_map(|server| ["-D", server]));
        args.extend([from.as_str(), "target"]);
        // The same command has the same name for its part file.
        let first = lhscp(&lab, &[], &args);
        assert!(first.status.success(), "{first:?}");
        let state = lab.path(".local/state/longhaul");
        let journal = fs::read_dir(&state).unwrap().next().unwrap().unwrap().file_name();
        let part = format!(".target.{}.part", &journal.to_str().unwrap()[..8]);
        let part = lab.directory.path().canonicalize().unwrap().join(part);
        fs::remove_dir_all(&state).unwrap();
        fs::write(lab.path("target"), "old").unwrap();
        let strace = ["strace", "-f", "-qq", "-o", "/dev/null", "-P", part.to_str().unwrap()];
        let fault = ["-e", "inject=close:error=EDQUOT"];
        let second = lhscp(&lab, &[&strace[..], &fault].concat(), &args);
        let told = String::from_utf8_lossy(&second.stderr);
        assert_eq!(second.status.code(), Some(1), "{server:?}: {told}");
        assert!(told.contains("quota exceeded"), "{server:?}: {told}");
        assert_eq!(fs::read_to_string(lab.path("target")).unwrap(), "old", "{server:?}");
    }
}

/// As said by a server of ours, whose words for it are not this host's.
#[test]
fn r5_a_spent_quota_at_the_server_ends_the_copy() {
    if !need::require(&["strace"]) {
        return;
    }
    let lab = Lab::new();
    for name in 0..1000 {
        fs::create_dir_all(lab.path("source")).unwrap();
        fs::write(lab.path(&format!("source/{name}")), "x").unwrap();
    }
    let strace = ["-f", "-qq", "-o", "/dev/null", "-e", "inject=fsync:error=EDQUOT"];
    let ours = our_program();
    let server = host("strace", &[&strace[..], &[&ours, "-P", PLAIN]].concat());
    let options = options(here(&lab.path("source")), there(&server, &lab.path("target")));
    let report = lab.copy(&Options { lanes: one(), fsync: true, ..options });
    assert!(report.failures[0].why.contains("uota exceeded"), "{report:?}");
    assert!(report.failures.len() < 900, "{} failures", report.failures.len());
}
