//! What stands at the target when something is to take its name: files and links in the way of
//! directories and files, what a killed run has left, and what was done already without an answer.

#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use common::{Lab, here, options, ours, stock, there};
use copy::list::List;
use copy::options::{Options, Place};
use copy::report::What;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

/// A source with the files `names`, of which each says its own.
fn plant(lab: &Lab, names: &[&str]) {
    for name in names {
        let path = lab.path("source").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, name).unwrap();
    }
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
