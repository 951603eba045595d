//! What `lhscp` calls the files that its lines are about: as the user would, with host and directory.

#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use common::{Lab, our_program};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Output};

/// `lhscp`, given in this directory; every host is this one, with this server.
fn lhscp(lab: &Lab, server: &str, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_lhscp"))
        .args(["-F", "none", "-D", server])
        .args(args)
        .current_dir(lab.directory.path())
        .env("HOME", lab.directory.path())
        .output()
        .unwrap()
}

/// What its lines on failures begin with; the server has lines of its own.
fn named(out: &Output) -> Vec<String> {
    let said = String::from_utf8(out.stderr.clone()).unwrap();
    let line = |line: &str| {
        let (name, _) = line.strip_prefix("lhscp: ")?.split_once(": ")?;
        Some(name.to_owned())
    };
    let mut names: Vec<_> = said.lines().filter_map(line).collect();
    names.sort_unstable();
    names
}

/// Four that cannot be copied: at the source a link that leads nowhere and a file that cannot be
/// read; at the target a directory in a file's way, and a file in a directory's.
fn plant(lab: &Lab) {
    fs::create_dir_all(lab.path("src/d/sub")).unwrap();
    fs::write(lab.path("src/d/x"), "x").unwrap();
    symlink("nowhere", lab.path("src/d/gone")).unwrap();
    symlink("/proc/self/mem", lab.path("src/d/mem")).unwrap();
    fs::create_dir_all(lab.path("dst/src/d/x")).unwrap();
    fs::write(lab.path("dst/src/d/sub"), "in the way").unwrap();
}

#[test]
fn a_line_names_a_file_with_its_host_and_directory() {
    for server in [common::STOCK, &our_program()] {
        if !Path::new(server).exists() {
            continue;
        }
        let lab = Lab::new();
        plant(&lab);
        let absolute = lab.directory.path().display();
        for (source, target) in [
            ("./src".to_owned(), "dst".to_owned()),
            ("./src".to_owned(), format!("host:{absolute}/dst")),
            (format!("host:{absolute}/src"), "./dst".to_owned()),
            (format!("one:{absolute}/src"), format!("other:{absolute}/dst")),
            (format!("[::1]:{absolute}/src"), format!("[::1]:{absolute}/dst")),
        ] {
            let out = lhscp(&lab, server, &["-qr", &source, &target]);
            let mut expected = vec![
                format!("{target}/src/d/sub"),
                format!("{target}/src/d/x"),
                format!("{source}/d/gone"),
                format!("{source}/d/mem"),
            ];
            expected.sort_unstable();
            assert_eq!(named(&out), expected, "{server} {source} {target}: {out:?}");
            assert_eq!(out.status.code(), Some(1));
        }
    }
}

#[test]
fn a_file_is_named_with_the_host_of_its_own_source() {
    let lab = Lab::new();
    for (directory, name) in [("here", "a"), ("there", "b"), ("elsewhere", "c")] {
        fs::create_dir(lab.path(directory)).unwrap();
        symlink("/proc/self/mem", lab.path(directory).join(name)).unwrap();
    }
    let sources = ["./here/a", "one:there/b", "two:elsewhere/c"];
    let out = lhscp(&lab, &our_program(), &[&["-q"], &sources[..], &["."]].concat());
    assert_eq!(named(&out), sources, "{out:?}");
}

#[test]
fn what_is_not_there_is_named_as_it_was_given() {
    let lab = Lab::new();
    fs::write(lab.path("a"), "a").unwrap();
    for (args, name) in [
        (["-q", "host:none", "."], "host:none"),
        (["-q", "host:n*e", "."], "host:n*e"),
        (["-q", "./none", "host:"], "./none"),
        (["-q", "a", "host:none/"], "host:none/"),
        (["-q", "a", "./none/"], "./none/"),
        (["-q", "a", "host:none/b"], "host:none/b"),
    ] {
        let out = lhscp(&lab, &our_program(), &args);
        assert_eq!(named(&out), [name], "{args:?}: {out:?}");
    }
}

/// Programs tell a file by its `path`, the same in all events, and people by its `name`.
#[test]
fn events_have_both_path_and_name() {
    let lab = Lab::new();
    plant(&lab);
    let out = lhscp(&lab, &our_program(), &["--json", "-qr", "./src", "host:dst"]);
    let said = String::from_utf8(out.stdout).unwrap();
    let events = said.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let mut told: Vec<_> = events
        .filter(|event| event["event"] == "error")
        .map(|event| ["path", "name"].map(|field| event[field].as_str().unwrap().to_owned()))
        .collect();
    told.sort_unstable();
    let expected = [
        ["./src/d/gone", "./src/d/gone"],
        ["src/d/mem", "./src/d/mem"],
        ["src/d/sub", "host:dst/src/d/sub"],
        ["src/d/x", "host:dst/src/d/x"],
    ];
    assert_eq!(told, expected, "{said}");
}
