//! What stands at the target when something is to take its name: files and links in the way of
//! directories and files, what a killed run has left, and what was done already without an answer.

#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use common::{
    Lab, Notes, STOCK, here, host, options, our_program, ours, ours_that_dies_after, parts, stock,
    there, tree,
};
use copy::list::List;
use copy::options::{Options, Place};
use copy::report::What;
use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

const NONE: [PathBuf; 0] = [];

/// A source with the files `names`, of which each says its own.
fn plant(lab: &Lab, names: &[&str]) {
    for name in names {
        let path = lab.path("source").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, name).unwrap();
    }
}

/// The id in the names of the part files of the one command that was given in this lab.
fn id(lab: &Lab) -> String {
    let journal = fs::read_dir(lab.path("state")).unwrap().next().unwrap().unwrap().file_name();
    journal.to_str().unwrap()[..8].to_owned()
}

/// Every target of uploads: a stock server, one of ours, this host.
fn targets(path: &Path) -> [(&'static str, Place); 3] {
    [("stock", there(&stock(), path)), ("ours", there(&ours(&[]), path)), ("home", here(path))]
}

#[test]
fn r6_a_listed_directory_that_cannot_be_is_an_error() {
    for at in 0..3 {
        let lab = Lab::new();
        let (name, target) = targets(&lab.path("target"))[at].clone();
        plant(&lab, &["a/x", "b/x", "b/c/x", "d/x"]);
        fs::create_dir_all(lab.path("target/a")).unwrap();
        fs::create_dir(lab.path("elsewhere")).unwrap();
        fs::write(lab.path("target/b"), "in the way").unwrap();
        symlink(lab.path("elsewhere"), lab.path("target/d")).unwrap();
        for (list, recursive, failed) in [
            ("a/x\nb/x\nb/c/x\nd/x\n", false, &["b", "b/x", "b/c/x", "d", "d/x"][..]),
            ("a\nd\nb\n", true, &["d", "b"]),
            ("a\nd\nb\n", false, &["d", "b"]),
        ] {
            fs::write(lab.path("list"), list).unwrap();
            let list = Some(List { file: Some(lab.path("list")), nul: false });
            let root = here(&lab.path("source"));
            let report = lab.copy(&Options { list, recursive, ..options(root, target.clone()) });
            let paths: Vec<_> = report.failures.iter().map(|failure| &failure.what).collect();
            let expected: Vec<_> =
                failed.iter().map(|path| What::Path(path.as_bytes().into())).collect();
            assert_eq!(paths, expected.iter().collect::<Vec<_>>(), "{name}: {report:?}");
            assert_eq!(report.exit_code(), 1, "{name}");
            assert_eq!(fs::read_dir(lab.path("elsewhere")).unwrap().count(), 0, "{name}: F2");
        }
        assert_eq!(fs::read_to_string(lab.path("target/a/x")).unwrap(), "a/x", "{name}");
        assert_eq!(fs::read_to_string(lab.path("target/b")).unwrap(), "in the way", "{name}");
    }
}

/// What an earlier run of the same command has not made is a directory to copy into.
#[test]
fn a_target_that_nothing_was_copied_to_is_not_ours() {
    for at in 0..3 {
        let lab = Lab::new();
        let (name, target) = targets(&lab.path("target"))[at].clone();
        let options = options(here(&lab.path("source")), target);
        // There is nothing to copy; then it is a directory, and -r is missing.
        for recursive in [true, false] {
            let report = lab.copy(&Options { recursive, ..options.clone() });
            assert_eq!(report.exit_code(), 1, "{name}: {report:?}");
            assert!(!lab.path("target").exists(), "{name}");
            plant(&lab, &["x"]);
        }
        fs::create_dir(lab.path("target")).unwrap();
        lab.good(&options);
        assert_eq!(fs::read_to_string(lab.path("target/source/x")).unwrap(), "x", "{name}");
    }
}

#[test]
fn a_file_goes_into_a_directory_that_was_made_after_it_was_missing() {
    for at in 0..3 {
        let lab = Lab::new();
        let (name, target) = targets(&lab.path("target"))[at].clone();
        let options = options(here(&lab.path("source/x")), target);
        assert_eq!(lab.copy(&options).exit_code(), 1, "{name}");
        plant(&lab, &["x"]);
        fs::create_dir(lab.path("target")).unwrap();
        lab.good(&options);
        assert_eq!(fs::read_to_string(lab.path("target/x")).unwrap(), "x", "{name}");
    }
}

#[test]
fn r1_two_sources_of_one_name_are_refused_before_anything_is_copied() {
    for at in 0..3 {
        let lab = Lab::new();
        fs::create_dir_all(lab.path("target")).unwrap();
        let (name, target) = targets(&lab.path("target"))[at].clone();
        plant(&lab, &["a/x", "b/x", "c"]);
        let sources = ["a/x", "c", "b/x"].map(|name| here(&lab.path("source").join(name))).to_vec();
        let report = lab.copy(&Options { sources, ..options(here(Path::new("")), target.clone()) });
        assert_eq!((report.exit_code(), report.failures.len()), (1, 1), "{name}: {report:?}");
        let why = &report.failures[0].why;
        assert!(why.contains("/a/x and ") && why.ends_with("/b/x"), "{name}: {why}");
        assert_eq!(fs::read_dir(lab.path("target")).unwrap().count(), 0, "{name}");
        // Once more the same is no other.
        let sources = ["a/x", "a/x"].map(|name| here(&lab.path("source").join(name))).to_vec();
        let report = lab.good(&Options { sources, ..options(here(Path::new("")), target) });
        assert_eq!(report.copied, 1, "{name}: {report:?}");
    }
}

#[test]
fn r1_files_that_overlap_are_copied_once_and_told_of() {
    for sources in [["a/.", "b/."], ["a/d", "b/d"], ["a/.", "b/d"]] {
        let lab = Lab::new();
        fs::create_dir_all(lab.path("target")).unwrap();
        plant(&lab, &["a/d/x", "a/d/y", "b/d/x", "b/d/z"]);
        let sources =
            sources.map(|name| here(&lab.directory.path().join("source").join(name))).to_vec();
        let target = there(&stock(), &lab.path("target"));
        let report = lab.copy(&Options { sources, ..options(here(Path::new("")), target) });
        assert_eq!((report.exit_code(), report.failures.len()), (1, 1), "{report:?}");
        let failure = &report.failures[0];
        assert!(matches!(&failure.what, What::Path(path) if path.ends_with(b"/x")), "{failure:?}");
        assert!(failure.why.contains("/source/a/"), "{failure:?}");
        let found = tree(&lab.path("target")).into_keys().collect::<Vec<_>>();
        let expected = ["", "d", "d/x", "d/y", "d/z"].map(PathBuf::from);
        assert_eq!(found, expected);
        assert_eq!(fs::read_to_string(lab.path("target/d/x")).unwrap(), "a/d/x");
    }
}

#[test]
fn r1_sources_of_one_name_on_several_hosts_are_no_exception() {
    let (one, other) = (stock(), stock());
    let from = |lab: &Lab, at: usize, name: &str| {
        let path = lab.path("source").join(name);
        [there(&one, &path), there(&other, &path), here(&path)][at].clone()
    };
    for (at, [first, second]) in [[0, 1], [2, 0], [0, 2]].into_iter().enumerate() {
        let lab = Lab::new();
        fs::create_dir_all(lab.path("target")).unwrap();
        let (name, target) = targets(&lab.path("target"))[at].clone();
        plant(&lab, &["a/x", "b/x", "c", "d/t/x", "d/t/y", "e/t/x", "e/t/z"]);
        let all = |names: [&str; 3]| {
            vec![
                from(&lab, first, names[0]),
                from(&lab, first, names[1]),
                from(&lab, second, names[2]),
            ]
        };
        let options =
            |names| Options { sources: all(names), ..options(here(Path::new("")), target.clone()) };
        let flat = Options { recursive: false, ..options(["c", "a/x", "b/x"]) };
        let report = lab.copy(&flat);
        assert_eq!((report.exit_code(), report.failures.len()), (1, 1), "{name}: {report:?}");
        let why = &report.failures[0].why;
        assert!(why.contains("/a/x and ") && why.ends_with("/b/x"), "{name}: {why}");
        assert_eq!(fs::read_dir(lab.path("target")).unwrap().count(), 0, "{name}");
        // Directories go together: what they are is known when they are looked at.
        for (names, copied, to) in [(["c", "a/x", "b/x"], 2, "x"), (["c", "d/t", "e/t"], 4, "t/x")]
        {
            let report = lab.copy(&options(names));
            assert_eq!((report.exit_code(), report.failures.len()), (1, 1), "{name}: {report:?}");
            let failure = &report.failures[0];
            assert!(failure.why.contains(names[1]), "{name}: {failure:?}");
            assert_eq!(report.copied, copied, "{name}: {report:?}");
            let content = fs::read_to_string(lab.path("target").join(to)).unwrap();
            assert!(names[1].starts_with(&content[..1]), "{name}: {content}");
        }
    }
}

#[test]
fn r1_names_that_a_list_has_twice_are_copied_once() {
    let lab = Lab::new();
    plant(&lab, &["d/f", "d/g", "e"]);
    fs::write(lab.path("list"), "d\nd/f\ne\ne\nd\n").unwrap();
    let list = Some(List { file: Some(lab.path("list")), nul: false });
    let target = there(&stock(), &lab.path("target"));
    let report = lab.good(&Options { list, ..options(here(&lab.path("source")), target) });
    assert_eq!(report.copied, 3, "{report:?}");
    assert_eq!(tree(&lab.path("source")), tree(&lab.path("target")));
}

/// The source of links below: three names of one file, and another.
fn link_three(lab: &Lab) {
    plant(lab, &["one", "other"]);
    for name in ["two", "three"] {
        fs::hard_link(lab.path("source/one"), lab.path("source").join(name)).unwrap();
    }
}

/// A finished copy of them to one of the targets, and what that target is.
fn linked_copy(at: usize) -> (Lab, &'static str, Options) {
    let lab = Lab::new();
    let (name, target) = targets(&lab.path("target"))[at].clone();
    link_three(&lab);
    let options = Options { preserve: true, ..options(here(&lab.path("source")), target) };
    lab.good(&options);
    (lab, name, options)
}

fn assert_linked(lab: &Lab, name: &str) {
    let target = lab.path("target");
    assert_eq!(tree(&lab.path("source")), tree(&target), "{name}");
    assert_eq!(fs::metadata(target.join("one")).unwrap().nlink(), 3, "{name}");
    assert_eq!(parts(&target), NONE, "{name}");
}

#[test]
fn r4_a_part_of_a_link_that_a_killed_run_left_is_no_obstacle() {
    for at in 0..3 {
        let (lab, name, options) = linked_copy(at);
        // Killed before a name was taken, and before what is left of one that had it was removed.
        let part = |name: &str| lab.path(&format!("target/.{name}.{}.part", id(&lab)));
        fs::rename(lab.path("target/two"), part("two")).unwrap();
        fs::hard_link(lab.path("target/one"), part("three")).unwrap();
        lab.good(&options);
        assert_linked(&lab, name);
    }
}

#[test]
fn r4_links_that_were_made_when_the_connection_broke_are_no_error() {
    for word in ["hardlink@openssh.com", "posix-rename@openssh.com"] {
        let lab = Lab::new();
        link_three(&lab);
        let host = ours_that_dies_after(word, &lab.path("fuse"));
        let target = there(&host, &lab.path("target"));
        lab.good(&Options { preserve: true, ..options(here(&lab.path("source")), target) });
        assert_linked(&lab, word);
        assert_eq!(fs::read(lab.path("fuse")).unwrap(), b"", "it broke: {word}");
    }
}

#[test]
fn r4_names_that_were_taken_when_the_connection_broke_are_no_error() {
    let lab = Lab::new();
    plant(&lab, &["a", "b", "c/d"]);
    let host = ours_that_dies_after("posix-rename@openssh.com", &lab.path("fuse"));
    let target = there(&host, &lab.path("target"));
    let options = Options { delay_updates: true, ..options(here(&lab.path("source")), target) };
    let report = lab.good(&options);
    assert_eq!((report.copied, report.exit_code()), (3, 0), "{report:?}");
    assert_eq!(tree(&lab.path("source")), tree(&lab.path("target")));
    assert_eq!(fs::read(lab.path("fuse")).unwrap(), b"", "it broke");
}

#[test]
fn a_dry_run_misses_no_further_name_that_is_not_there() {
    for at in 0..3 {
        let (lab, name, options) = linked_copy(at);
        for gone in ["one", "two", "three"] {
            fs::remove_file(lab.path("target").join(gone)).unwrap();
        }
        let notes = Notes::default();
        let report = lab.watch(&Options { dry_run: true, ..options }, &notes);
        assert_eq!(report.failures, [], "{name}");
        let notes = notes.0.lock().unwrap();
        let created = notes.iter().filter(|note| note.contains("Would { act: Create")).count();
        assert_eq!(created, 3, "{name}: {notes:?}");
    }
}

#[test]
fn a_dry_run_follows_a_link_just_where_the_copy_would() {
    for at in 0..3 {
        let lab = Lab::new();
        fs::create_dir_all(lab.path("elsewhere")).unwrap();
        fs::create_dir_all(lab.path("target")).unwrap();
        symlink(lab.path("elsewhere"), lab.path("target/source")).unwrap();
        let (name, target) = targets(&lab.path("target"))[at].clone();
        plant(&lab, &["x"]);
        let options = options(here(&lab.path("source")), target);
        let failures =
            [true, false].map(|dry_run| lab.copy(&Options { dry_run, ..options.clone() }).failures);
        assert_eq!(failures[0], failures[1], "{name}");
        let copied = fs::read_to_string(lab.path("elsewhere/x")).is_ok();
        assert_eq!(copied, failures[1].is_empty(), "{name}");
    }
}

/// One source that cannot be copied, and nothing of the others shows: neither files nor links.
#[test]
fn updates_that_are_delayed_come_together_or_not_at_all() {
    for at in 0..3 {
        let lab = Lab::new();
        let (name, target) = targets(&lab.path("target"))[at].clone();
        link_three(&lab);
        symlink("one", lab.path("source/link")).unwrap();
        let source = here(&lab.path("source"));
        let options = Options { preserve: true, delay_updates: true, ..options(source, target) };
        lab.good(&options);
        let before = tree(&lab.path("target"));
        fs::write(lab.path("source/one"), "changed since").unwrap();
        fs::hard_link(lab.path("source/one"), lab.path("source/four")).unwrap();
        fs::remove_file(lab.path("source/link")).unwrap();
        symlink("other", lab.path("source/link")).unwrap();
        symlink("other", lab.path("source/new link")).unwrap();
        let special = UnixListener::bind(lab.path("source/socket")).unwrap();
        let report = lab.copy(&options);
        assert_eq!((report.exit_code(), report.failures.len()), (1, 1), "{name}: {report:?}");
        let mut after = tree(&lab.path("target"));
        // What the next run goes on with.
        after.retain(|path, what| {
            !(path.to_string_lossy().contains(".part") && what.contains("13 bytes"))
        });
        assert_eq!(after, before, "{name}");
        drop(special);
        fs::remove_file(lab.path("source/socket")).unwrap();
        let report = lab.good(&options);
        assert_eq!(tree(&lab.path("source")), tree(&lab.path("target")), "{name}: {report:?}");
        assert_eq!(fs::metadata(lab.path("target/one")).unwrap().nlink(), 4, "{name}");
    }
}

/// Without a journal the next run has other names for its part files: nobody would come back.
#[test]
fn updates_that_no_run_can_go_on_with_leave_nothing() {
    for at in 0..3 {
        let lab = Lab::new();
        let (name, target) = targets(&lab.path("target"))[at].clone();
        plant(&lab, &["a", "b/c"]);
        fs::write(lab.path("source/large"), vec![b'x'; 3_000_000]).unwrap();
        let _special = UnixListener::bind(lab.path("source/socket")).unwrap();
        let options = options(here(&lab.path("source")), target);
        let notes = Notes::default();
        let report =
            copy::run_with_state(&Options { delay_updates: true, ..options }, &notes, None);
        assert_eq!((report.exit_code(), report.failures.len()), (1, 1), "{name}: {report:?}");
        assert_eq!(parts(&lab.path("target")), NONE, "{name}");
        let notes = notes.0.lock().unwrap().concat();
        assert!(notes.contains("3 names stay as they were, as some failed"), "{name}: {notes}");
    }
}

#[test]
fn a_further_name_of_a_file_that_failed_is_not_linked_to_what_is_there() {
    let lab = Lab::new();
    link_three(&lab);
    let target = there(&stock(), &lab.path("target"));
    // Which of the three is the first is the directory's to say: none can be replaced.
    for name in ["one", "two", "three"] {
        fs::create_dir_all(lab.path("target").join(name)).unwrap();
    }
    let options = Options { preserve: true, ..options(here(&lab.path("source/.")), target) };
    let report = lab.copy(&options);
    assert_eq!((report.copied, report.failures.len()), (1, 3), "{report:?}");
    let linked = |failure: &&copy::report::Failure| failure.why.contains("another name of");
    assert_eq!(report.failures.iter().filter(linked).count(), 2, "{report:?}");
}

#[test]
fn files_and_links_are_replaced_without_posix_rename() {
    for (server, delay_updates) in [(STOCK, false), (STOCK, true), (&*our_program(), true)] {
        let lab = Lab::new();
        link_three(&lab);
        let target = there(&host(server, &["-P", "posix-rename"]), &lab.path("target"));
        let source = here(&lab.path("source"));
        let options = Options { preserve: true, delay_updates, ..options(source, target) };
        lab.good(&options);
        // Other files have two of the names now, and one is longer.
        fs::write(lab.path("source/other"), "changed since").unwrap();
        fs::remove_file(lab.path("target/one")).unwrap();
        fs::write(lab.path("target/one"), "somebody else's").unwrap();
        fs::remove_file(lab.path("target/two")).unwrap();
        fs::write(lab.path("target/two"), "somebody else's, too").unwrap();
        lab.good(&options);
        assert_linked(&lab, server);
    }
}

#[test]
fn a_link_to_what_looks_like_the_source_is_replaced() {
    for at in 0..3 {
        let lab = Lab::new();
        let (name, target) = targets(&lab.path("target"))[at].clone();
        // Many, so that some go together to a server of ours.
        let names: Vec<String> = (0..40).map(|number| number.to_string()).collect();
        plant(&lab, &names.iter().map(String::as_str).collect::<Vec<_>>());
        let options = Options { preserve: true, ..options(here(&lab.path("source")), target) };
        lab.good(&options);
        fs::create_dir(lab.path("elsewhere")).unwrap();
        for linked in names.iter().take(39) {
            let (inside, outside) =
                (lab.path("target").join(linked), lab.path("elsewhere").join(linked));
            fs::rename(&inside, &outside).unwrap();
            symlink(&outside, &inside).unwrap();
        }
        let before = tree(&lab.path("elsewhere"));
        let report = lab.good(&options);
        assert_eq!((report.copied, report.skipped), (39, 1), "{name}: {report:?}");
        assert_eq!(tree(&lab.path("source")), tree(&lab.path("target")), "{name}");
        assert_eq!(tree(&lab.path("elsewhere")), before, "{name}");
    }
}
