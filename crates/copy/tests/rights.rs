//! Rights that this host, its user or the server's user does not have, and those that a copy must
//! not hand on: read-only files, files of others, owners, set-id bits.

#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use common::{
    Lab, NOBODY, Notes, STOCK, as_nobody, here, is_root, options, our_program, ours, parts, stock,
    there, tree,
};
use copy::options::{Options, Place};
use copy::shard::Shard;
use stand_ins::noise;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::Path;
use std::time::UNIX_EPOCH;

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o7777
}

/// A directory that is not root's.
fn nobodys(lab: &Lab, name: &str) -> Place {
    fs::create_dir(lab.path(name)).unwrap();
    chown(lab.path(name), Some(NOBODY), Some(NOBODY)).unwrap();
    there(&as_nobody(lab, STOCK, &[]), &lab.path(name))
}

#[test]
fn f3_what_is_replaced_keeps_its_mode_without_set_id_bits() {
    type To = fn(&Path) -> Place;
    let targets: [To; 3] = [|to| there(&stock(), to), |to| there(&ours(&[]), to), |to| here(to)];
    for (at, target) in targets.iter().enumerate() {
        for inplace in [false, true] {
            let lab = Lab::new();
            for name in ["source", "target"] {
                fs::create_dir(lab.path(name)).unwrap();
            }
            for (name, size, mode) in [("small", 10, 0o4751), ("large", 2_000_000, 0o2750)] {
                fs::write(lab.path("source").join(name), noise(1, size)).unwrap();
                fs::write(lab.path("target").join(name), "old").unwrap();
                set_mode(&lab.path("target").join(name), mode);
            }
            let to = target(&lab.path("target"));
            lab.good(&Options { inplace, ..options(here(&lab.path("source/.")), to) });
            let modes = ["small", "large"].map(|name| mode(&lab.path("target").join(name)));
            assert_eq!(modes, [0o751, 0o750], "target {at}, in place {inplace}");
        }
    }
}

#[test]
fn read_only_files_that_are_there_are_compared_and_not_sent_again() {
    if !need::have(is_root(), "not root") {
        return;
    }
    let lab = Lab::new();
    let target = nobodys(&lab, "target");
    fs::create_dir(lab.path("source")).unwrap();
    for (name, size) in [("small", 10), ("large", 3_000_000)] {
        let path = lab.path("source").join(name);
        fs::write(&path, noise(1, size)).unwrap();
        chown(&path, Some(NOBODY), Some(NOBODY)).unwrap();
        set_mode(&path, 0o444);
    }
    let options = options(here(&lab.path("source/.")), target);
    let options = Options { preserve: true, verify: true, ..options };
    assert_eq!(lab.good(&options).copied, 2);
    let again = lab.good(&options);
    assert_eq!((again.copied, again.verified, again.bytes), (0, 2, 0), "{again:?}");
}

#[test]
fn a_read_only_part_that_waits_for_its_name_is_not_sent_again() {
    if !need::have(is_root(), "not root") {
        return;
    }
    for verify in [false, true] {
        let lab = Lab::new();
        let target = nobodys(&lab, "target");
        fs::create_dir(lab.path("source")).unwrap();
        for (name, size) in [("large", 12_000_000), ("other", 10)] {
            let path = lab.path("source").join(name);
            fs::write(&path, noise(1, size)).unwrap();
            chown(&path, Some(NOBODY), Some(NOBODY)).unwrap();
            set_mode(&path, 0o444);
        }
        fs::create_dir(lab.path("target/other")).unwrap();
        let options = options(here(&lab.path("source/.")), target);
        let options = Options { preserve: true, delay_updates: true, verify, ..options };
        let report = lab.copy(&options);
        assert_eq!((report.exit_code(), report.failures.len()), (1, 1), "{report:?}");
        assert_eq!(mode(&lab.path("target").join(&parts(&lab.path("target"))[0])), 0o444);
        fs::remove_dir(lab.path("target/other")).unwrap();
        let report = lab.good(&options);
        assert_eq!(report.bytes, 10, "verify {verify}: {report:?}");
        assert_eq!(tree(&lab.path("source")), tree(&lab.path("target")));
    }
}

/// It was damaged while it waited, and cannot be mended by piece.
#[test]
fn a_read_only_part_that_is_not_what_was_written_is_made_anew() {
    if !need::have(is_root(), "not root") {
        return;
    }
    let lab = Lab::new();
    let target = nobodys(&lab, "target");
    fs::create_dir(lab.path("source")).unwrap();
    fs::write(lab.path("source/large"), noise(1, 12_000_000)).unwrap();
    fs::write(lab.path("source/other"), "").unwrap();
    chown(lab.path("source/large"), Some(NOBODY), Some(NOBODY)).unwrap();
    set_mode(&lab.path("source/large"), 0o444);
    fs::create_dir(lab.path("target/other")).unwrap();
    let options = options(here(&lab.path("source/.")), target);
    let options = Options { delay_updates: true, verify: true, ..options };
    assert_eq!(lab.copy(&options).exit_code(), 1);
    let part = fs::OpenOptions::new()
        .write(true)
        .open(lab.path("target").join(&parts(&lab.path("target"))[0]))
        .unwrap();
    std::os::unix::fs::FileExt::write_all_at(&part, b"damage", 5_000_000).unwrap();
    fs::remove_dir(lab.path("target/other")).unwrap();
    lab.good(&options);
    assert_eq!(tree(&lab.path("source")), tree(&lab.path("target")));
}

#[test]
fn a_file_of_somebody_else_is_written_in_place_if_it_may_be_written() {
    if !need::have(is_root(), "not root") {
        return;
    }
    let lab = Lab::new();
    let target = nobodys(&lab, "target");
    fs::create_dir(lab.path("source")).unwrap();
    fs::write(lab.path("source/x"), noise(1, 100_000)).unwrap();
    fs::write(lab.path("target/x"), noise(2, 200_000)).unwrap();
    set_mode(&lab.path("target/x"), 0o666);
    let options = options(here(&lab.path("source/.")), target);
    lab.good(&Options { inplace: true, ..options });
    assert_eq!(tree(&lab.path("source")), tree(&lab.path("target")));
    assert_eq!(mode(&lab.path("target/x")), 0o666);
}

/// Root here, somebody else there: a warning, and everything else is kept.
#[test]
fn f3_where_owners_cannot_be_set_they_are_lost_with_their_set_id_bits_alone() {
    if !need::have(is_root(), "not root") {
        return;
    }
    for ours in [false, true] {
        let lab = Lab::new();
        let program = lab.path("server");
        fs::copy(if ours { our_program() } else { STOCK.to_owned() }, &program).unwrap();
        let host = as_nobody(&lab, program.to_str().unwrap(), &[]);
        for (name, owner) in [("source", 0), ("target", NOBODY)] {
            fs::create_dir(lab.path(name)).unwrap();
            chown(lab.path(name), Some(owner), Some(owner)).unwrap();
        }
        fs::create_dir(lab.path("source/d")).unwrap();
        let files = [("small", 10), ("d/large", 3_000_000), ("plain", 20)];
        for (name, size) in files {
            let path = lab.path("source").join(name);
            fs::write(&path, noise(1, size)).unwrap();
            chown(&path, Some(1000), Some(1000)).unwrap();
            set_mode(&path, if name == "plain" { 0o640 } else { 0o6755 });
            fs::File::open(&path).unwrap().set_modified(UNIX_EPOCH).unwrap();
        }
        std::os::unix::fs::symlink("small", lab.path("source/link")).unwrap();
        let options = options(here(&lab.path("source/.")), there(&host, &lab.path("target")));
        let options = Options { preserve: true, ..options };
        for again in [false, true] {
            let notes = Notes::default();
            let report = lab.watch(&options, &notes);
            assert_eq!(report.failures, [], "ours {ours}");
            // A link is made again unless it is known by then that it cannot have its owner.
            let copied = if again { 0..=1 } else { 4..=4 };
            assert!(copied.contains(&report.copied), "ours {ours}: {report:?}");
            assert_eq!(report.bytes == 0, again, "ours {ours}: {report:?}");
            let notes = notes.0.lock().unwrap();
            let warned = notes.iter().filter(|note| note.contains("owners")).count();
            assert_eq!(warned, 1, "ours {ours}: {notes:?}");
        }
        for (name, _) in files {
            let meta = fs::metadata(lab.path("target").join(name)).unwrap();
            let mode = if name == "plain" { 0o640 } else { 0o755 };
            let found = (meta.mode() & 0o7777, meta.uid(), meta.mtime());
            assert_eq!(found, (mode, NOBODY, 0), "ours {ours}: {name}");
        }
        assert_eq!(tree(&lab.path("source")), tree(&lab.path("target")));
    }
}

#[test]
fn every_shard_has_a_journal_of_its_own() {
    let lab = Lab::new();
    fs::create_dir(lab.path("source")).unwrap();
    fs::create_dir(lab.path("target")).unwrap();
    fs::write(lab.path("source/x"), "x").unwrap();
    let options = options(here(&lab.path("source/.")), there(&stock(), &lab.path("target")));
    for (shard, journals) in [(None, 1), (Some("1/2"), 2), (Some("2/2"), 3), (Some("1/2"), 3)] {
        let shard = shard.map(|text| Shard::parse(text).unwrap());
        lab.good(&Options { shard, ..options.clone() });
        assert_eq!(fs::read_dir(lab.path("state")).unwrap().count(), journals, "{shard:?}");
    }
}

#[test]
fn a_copy_without_a_journal_says_so() {
    let lab = Lab::new();
    fs::write(lab.path("source"), "x").unwrap();
    fs::write(lab.path("state"), "no directory").unwrap();
    let notes = Notes::default();
    let options = options(here(&lab.path("source")), there(&stock(), &lab.path("target")));
    assert_eq!(lab.watch(&options, &notes).exit_code(), 0);
    let notes = notes.0.lock().unwrap();
    assert!(notes.iter().any(|note| note.contains("no journal")), "{notes:?}");
}

/// Our server, run by somebody who is not root, in a lab that he may enter.
fn our_nobody(lab: &Lab) -> std::sync::Arc<copy::options::Host> {
    let program = lab.path("server");
    fs::copy(our_program(), &program).unwrap();
    as_nobody(lab, program.to_str().unwrap(), &[])
}

/// A directory that may be written to and not read.
fn drop_box(lab: &Lab) {
    fs::create_dir(lab.path("drop")).unwrap();
    set_mode(&lab.path("drop"), 0o1733);
}

#[test]
fn files_of_any_size_go_into_a_drop_box() {
    if !need::have(is_root(), "not root") {
        return;
    }
    let lab = Lab::new();
    let host = our_nobody(&lab);
    for (name, size) in [("small", 10), ("large", 3_000_000)] {
        drop_box(&lab);
        fs::write(lab.path(name), noise(1, size)).unwrap();
        let to = there(&host, &lab.path("drop").join(name));
        for fsync in [true, false] {
            lab.good(&Options { fsync, ..options(here(&lab.path(name)), to.clone()) });
            assert_eq!(fs::read(lab.path("drop").join(name)).unwrap(), noise(1, size));
        }
        fs::remove_dir_all(lab.path("drop")).unwrap();
    }
}

#[test]
fn files_of_this_host_go_into_a_drop_box() {
    if !need::have(is_root(), "not root") {
        return;
    }
    let lab = Lab::new();
    our_nobody(&lab);
    drop_box(&lab);
    let program = lab.path("lhscp");
    fs::copy(env!("CARGO_BIN_EXE_lhscp"), &program).unwrap();
    for (name, size) in [("small", 10), ("large", 3_000_000)] {
        fs::write(lab.path(name), noise(1, size)).unwrap();
        let mut copier = std::process::Command::new("setpriv");
        copier.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(&program);
        copier.arg("-q").args([lab.path(name), lab.path("drop")]).env("HOME", "/nonexistent");
        let output = copier.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(fs::read(lab.path("drop").join(name)).unwrap(), noise(1, size));
    }
}

/// One that may be searched and not read, the other way round.
#[test]
fn a_directory_that_may_not_be_read_is_told_as_such() {
    if !need::have(is_root(), "not root") {
        return;
    }
    let lab = Lab::new();
    let host = our_nobody(&lab);
    fs::create_dir(lab.path("source")).unwrap();
    fs::write(lab.path("source/x"), "x").unwrap();
    set_mode(&lab.path("source"), 0o711);
    let report = lab.copy(&options(there(&host, &lab.path("source")), here(&lab.path("target"))));
    let why: Vec<_> = report.failures.iter().map(|failure| failure.why.as_str()).collect();
    assert_eq!(why, ["Permission denied"]);
}

/// What a small file replaces is looked at without being read.
#[test]
fn f3_a_file_that_may_not_be_read_keeps_its_mode_too() {
    if !need::have(is_root(), "not root") {
        return;
    }
    let lab = Lab::new();
    let host = our_nobody(&lab);
    for name in ["source", "target"] {
        fs::create_dir(lab.path(name)).unwrap();
        set_mode(&lab.path(name), 0o777);
    }
    for name in ["a", "b", "c"] {
        fs::write(lab.path("source").join(name), name).unwrap();
        fs::write(lab.path("target").join(name), "old").unwrap();
        set_mode(&lab.path("target").join(name), 0o600);
    }
    lab.good(&options(here(&lab.path("source/.")), there(&host, &lab.path("target"))));
    assert_eq!(["a", "b", "c"].map(|name| mode(&lab.path("target").join(name))), [0o600; 3]);
    assert_eq!(tree(&lab.path("source")), tree(&lab.path("target")));
}
