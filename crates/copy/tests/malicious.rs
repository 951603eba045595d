//! Malicious servers: whatever they say, nothing is written outside of the target, nothing that was
//! not asked for, and no copy of theirs is called good.

#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use common::{Lab, Notes, here, host, options, there, tree};
use copy::options::Options;
use copy::{Observer, Report};
use std::fs;
use std::path::{Path, PathBuf};

/// The server of `examples/adversary.rs`, which cargo builds for tests.
fn adversary() -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    tests.parent().unwrap().parent().unwrap().join("examples/adversary")
}

/// Downloads the adversary's tree while it tells `lie`.
fn download(lab: &Lab, lie: &str, preserve: bool) -> Report {
    watched(lab, lie, preserve, &())
}

fn watched(lab: &Lab, lie: &str, preserve: bool, observer: &dyn Observer) -> Report {
    let host = host(adversary().to_str().unwrap(), &[lie]);
    fs::create_dir_all(lab.path("target")).unwrap();
    let target = here(&lab.path("target"));
    let options = options(there(&host, Path::new("tree")), target);
    lab.watch(&Options { preserve, ..options }, observer)
}

/// What there is in the lab, beside the target and our own journal.
fn escaped(lab: &Lab) -> Vec<PathBuf> {
    let expected = |path: &PathBuf| path.starts_with("target") || path.starts_with("state");
    tree(lab.directory.path()).into_keys().filter(|p| !expected(p) && p != Path::new("")).collect()
}

#[test]
fn an_honest_server_is_believed() {
    let lab = Lab::new();
    assert_eq!(download(&lab, "", false).failures, []);
    assert_eq!(fs::read(lab.path("target/tree/good")).unwrap(), b"from the adversary");
}

#[test]
fn f1_names_that_are_paths_or_come_twice_are_refused() {
    for lie in ["dotdot", "slash", "absolute", "empty", "nul", "twice"] {
        let lab = Lab::new();
        let report = download(&lab, lie, false);
        assert_eq!(report.exit_code(), 1, "{lie}: {report:?}");
        assert_eq!(escaped(&lab), Vec::<PathBuf>::new(), "{lie}");
        assert!(!Path::new("/tmp/lhscp-escaped").exists(), "{lie}");
        let found = tree(&lab.path("target"));
        let known = ["", "tree", "tree/good"];
        assert!(
            found.keys().all(|path| known.contains(&path.to_str().unwrap())),
            "{lie}: {found:?}"
        );
    }
}

#[test]
fn f1_patterns_take_only_names_of_the_directory() {
    for lie in ["dotdot", "slash", "absolute", "twice"] {
        let lab = Lab::new();
        let host = host(adversary().to_str().unwrap(), &[lie]);
        fs::create_dir_all(lab.path("target")).unwrap();
        let source = there(&host, Path::new("tree/*"));
        let report = lab.copy(&options(source, here(&lab.path("target"))));
        assert_eq!(report.exit_code(), 1, "{lie}: {report:?}");
        assert_eq!(escaped(&lab), Vec::<PathBuf>::new(), "{lie}");
    }
}

#[test]
fn f1_a_tree_from_one_server_to_another_has_the_same_rules() {
    for lie in ["dotdot", "slash", "absolute", "twice"] {
        let lab = Lab::new();
        let host = host(adversary().to_str().unwrap(), &[lie]);
        fs::create_dir_all(lab.path("target")).unwrap();
        let target = there(&common::stock(), &lab.path("target"));
        let report = lab.copy(&options(there(&host, Path::new("tree")), target));
        assert_eq!(report.exit_code(), 1, "{lie}: {report:?}");
        assert_eq!(escaped(&lab), Vec::<PathBuf>::new(), "{lie}");
    }
}

#[test]
fn f2_a_link_that_a_server_sent_is_not_followed_by_what_it_sends_next() {
    let lab = Lab::new();
    assert_eq!(download(&lab, "link", true).failures, []);
    let link = lab.path("target/tree/link");
    assert_eq!(fs::read_link(&link).unwrap(), Path::new("/etc"));
    // The same server again, which now says that the link is a directory with a file in it.
    let before = fs::read_dir("/etc").unwrap().count();
    fs::rename(&link, lab.path("target/tree/dir")).unwrap();
    let report = download(&lab, "deep", true);
    assert_eq!(report.exit_code(), 1, "{report:?}");
    assert_eq!(fs::read_dir("/etc").unwrap().count(), before);
}

#[test]
fn f6_replies_that_do_not_fit_their_question_cannot_loop_or_pass() {
    for lie in ["oversized", "zero", "strangers", "size"] {
        let lab = Lab::new();
        let report = download(&lab, lie, false);
        assert_ne!(report.exit_code(), 0, "{lie}: {report:?}");
        assert!(!lab.path("target/tree/good").exists(), "{lie}");
        assert_eq!(escaped(&lab), Vec::<PathBuf>::new(), "{lie}");
    }
    let lab = Lab::new();
    assert_eq!(download(&lab, "short", false).failures, [], "a byte at a time is slow, not wrong");
}

#[test]
fn the_end_of_a_lane_whose_server_breaks_the_protocol_is_told() {
    let (lab, notes) = (Lab::new(), Notes::default());
    watched(&lab, "oversized", false, &notes);
    let notes = notes.0.lock().unwrap();
    let count = |words: &[&str]| {
        notes.iter().filter(|note| words.iter().any(|word| note.starts_with(word))).count()
    };
    assert!(notes.iter().any(|note| note.contains("broke the SFTP protocol")), "{notes:?}");
    assert_eq!(count(&["LaneOpened"]), count(&["LaneClosed", "LaneFailed"]), "{notes:?}");
}

#[test]
fn f6_a_listing_without_names_and_without_an_end_ends() {
    for (path, code) in [("tree", 0), ("tree/*", 1)] {
        let lab = Lab::new();
        let host = host(adversary().to_str().unwrap(), &["hollow"]);
        fs::create_dir_all(lab.path("target")).unwrap();
        let report = lab.copy(&options(there(&host, Path::new(path)), here(&lab.path("target"))));
        assert_eq!((report.exit_code(), report.copied), (code, 0), "{path}: {report:?}");
    }
}

#[test]
fn f6_directories_inside_each_other_end_somewhere() {
    let report = download(&Lab::new(), "deep", false);
    assert_eq!(report.exit_code(), 1);
    assert!(report.failures.iter().any(|f| f.why.contains("too deep")), "{report:?}");
}
