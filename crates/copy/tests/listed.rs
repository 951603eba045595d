//! `--files-from`: what a list names is copied by the same rules as what the scan finds.

#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use common::{Lab, Notes, here, options, stock, there, tree};
use copy::filter::{Filter, Pattern};
use copy::list::List;
use copy::options::{Options, Place};
use copy::report::What;
use std::fs;
use std::path::Path;

/// A lab with the files `names` below `source`, and a copy of what `list` has.
fn listing(names: &[&str], list: &str) -> (Lab, Options) {
    let lab = Lab::new();
    for name in names {
        let path = lab.path("source").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, name).unwrap();
    }
    fs::write(lab.path("list"), list).unwrap();
    let list = Some(List { file: Some(lab.path("list")), nul: false });
    let options = options(here(&lab.path("source")), here(&lab.path("target")));
    (lab, Options { list, ..options })
}

/// Every kind of copy that there is a list for.
fn ways(lab: &Lab) -> [(Place, Place); 3] {
    let (from, to) = (lab.path("source"), lab.path("target"));
    [
        (here(&from), here(&to)),
        (here(&from), there(&stock(), &to)),
        (there(&stock(), &from), here(&to)),
    ]
}

/// Paths below `root`, but for the root itself.
fn paths(root: &Path) -> Vec<String> {
    let paths = tree(root).into_keys().map(|path| path.to_str().unwrap().to_owned());
    paths.filter(|path| !path.is_empty()).collect()
}

#[test]
fn names_that_the_user_excludes_are_left_out_of_a_list() {
    let names = ["a.c", "a.o", "keep/b.c", "cache/x.c", "d/cache/y.c", "tmp"];
    let exclude =
        ["*.o", "cache/", "tmp/"].map(|text| Pattern { include: false, text: text.to_owned() });
    for at in 0..3 {
        let (lab, options) =
            listing(&names, "a.c\na.o\nkeep/b.c\ncache/x.c\nd/cache/y.c\ncache\ntmp\n");
        let (source, target) = ways(&lab)[at].clone();
        let filter = Filter::new(&exclude).unwrap();
        let report = lab.good(&Options { filter, sources: vec![source], target, ..options });
        assert_eq!(report.copied, 3, "{at}: {report:?}");
        let found = paths(&lab.path("target"));
        assert_eq!(found, ["a.c", "d", "keep", "keep/b.c", "tmp"], "{at}");
    }
}

#[test]
fn a_source_that_is_no_directory_has_no_names_to_list() {
    for at in 0..3 {
        let (lab, options) = listing(&["file"], "x\n");
        fs::rename(lab.path("source/file"), lab.path("file")).unwrap();
        fs::remove_dir(lab.path("source")).unwrap();
        fs::rename(lab.path("file"), lab.path("source")).unwrap();
        let (source, target) = ways(&lab)[at].clone();
        let report = lab.copy(&Options { sources: vec![source], target, ..options });
        assert_eq!((report.exit_code(), report.failures.len()), (1, 1), "{at}: {report:?}");
        assert!(report.failures[0].why.contains("--files-from"), "{at}: {report:?}");
        assert!(!lab.path("target").exists(), "{at}");
    }
}

#[test]
fn a_name_that_is_refused_is_told_and_others_are_copied() {
    for at in 0..3 {
        let (lab, options) = listing(&["a", "b"], "a\n../x\nno\0b\nb\n");
        let (source, target) = ways(&lab)[at].clone();
        let report = lab.copy(&Options { sources: vec![source], target, ..options });
        assert_eq!((report.exit_code(), report.copied), (1, 2), "{at}: {report:?}");
        let told: Vec<_> = report.failures.iter().map(|failure| &failure.what).collect();
        let expected = ["../x", "no"].map(|path| What::Path(path.into()));
        assert_eq!(told, expected.iter().collect::<Vec<_>>(), "{at}: {report:?}");
        assert_eq!(paths(&lab.path("target")), ["a", "b"], "{at}");
    }
}

#[test]
fn a_list_that_cannot_be_read_is_told_by_its_name() {
    for at in 0..3 {
        let (lab, options) = listing(&["a"], "a\n");
        let (source, target) = ways(&lab)[at].clone();
        for unreadable in ["nowhere", "source"] {
            let path = lab.path(unreadable);
            let list = Some(List { file: Some(path.clone()), nul: false });
            let (sources, target) = (vec![source.clone()], target.clone());
            let report = lab.copy(&Options { list, sources, target, ..options.clone() });
            assert_eq!((report.exit_code(), report.failures.len()), (1, 1), "{at}: {report:?}");
            let path = path.into_os_string().into_encoded_bytes();
            assert_eq!(report.failures[0].what, What::Path(path), "{at}");
        }
    }
}

#[test]
fn a_dry_run_of_a_list_tells_the_directories_that_it_would_make() {
    for at in 0..3 {
        let (lab, options) = listing(&["a/b/x", "c/y"], "a/b/x\nc/y\n");
        fs::create_dir_all(lab.path("target/c")).unwrap();
        let (source, target) = ways(&lab)[at].clone();
        let notes = Notes::default();
        let options = Options { dry_run: true, sources: vec![source], target, ..options };
        assert_eq!(lab.watch(&options, &notes).failures, [], "{at}");
        let notes = notes.0.lock().unwrap();
        let made = notes.iter().filter(|note| note.contains("MakeDirectory")).count();
        assert_eq!(made, 2, "{at}: {notes:?}");
    }
}
