//! lhscp as a user types it: wrong lines, one clear line each, the right exit code. Nothing here
//! reaches a host.

use std::process::{Command, Output};

fn lhscp(args: &[&str]) -> Output {
    let home = tempfile::tempdir().expect("a directory");
    let mut command = Command::new(env!("CARGO_BIN_EXE_lhscp"));
    command.args(args).env("HOME", home.path()).env_remove("XDG_STATE_HOME");
    command.output().expect("lhscp")
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("text")
}

#[test]
fn help_is_on_standard_output() {
    let out = lhscp(&["--help"]);
    assert!(out.status.success() && out.stderr.is_empty());
    assert!(text(&out.stdout).starts_with("usage: lhscp "));
    assert!(text(&out.stdout).contains("--shard K/N"));
}

#[test]
fn the_version_is_on_standard_output() {
    for option in ["-V", "--version"] {
        let out = lhscp(&[option]);
        assert!(out.status.success());
        assert!(text(&out.stdout).starts_with("longhaul_"));
    }
}

#[test]
fn wrong_lines_get_one_line_and_exit_code_1() {
    let cases: &[(&[&str], &str)] = &[
        (&[], "lhscp: give a source and a target (--help shows how)"),
        (&["a"], "lhscp: no target: give a source and a target (--help shows how)"),
        (&["-Z", "a", "h:"], "lhscp: unknown option -- Z"),
        (&["--nonsense", "a", "h:"], "lhscp: unknown option --nonsense (--help lists them)"),
        (&["--bwlimit", "fast", "a", "h:"], "lhscp: --bwlimit: 'fast' is not a rate, such as"),
        (&["--shard", "0/4", "a", "h:"], "lhscp: --shard: '0/4': the part is from 1 to 4"),
        (
            &["--", "-oProxyCommand=x:", "a"],
            "lhscp: host \"-oProxyCommand=x\" is refused: it starts",
        ),
        (&["a", "h$(x):"], "lhscp: host \"h$(x)\" is refused: it has characters that a shell"),
        (&["scp://h:99999/x", "."], "lhscp: scp://h:99999/x: ':99999' is not a port"),
        (&["-O", "a", "h:"], "lhscp: -O is not supported yet: it asks for scp's old protocol"),
        (&["-F", "none", "-P", "x", "a", "h:"], "lhscp: command line: "),
        (&["-F", "/no/such/config", "a", "h:"], "lhscp: /no/such/config: "),
        (&["-F", "none", "-c", "rot13", "a", "h:"], "lhscp: command line: "),
        (&["--self-test", "/no/such/place"], "lhscp: /no/such/place: No such file or directory"),
        (&["--self-test", "/tmp", "a"], "lhscp: --self-test takes no source and no target"),
    ];
    for (args, want) in cases {
        let out = lhscp(args);
        let said = text(&out.stderr);
        assert_eq!(out.status.code(), Some(1), "{args:?}: {said}");
        assert!(said.starts_with(want), "{args:?}: {said}");
        assert_eq!(said.lines().filter(|line| !line.starts_with("hint: ")).count(), 1, "{said}");
        assert!(out.stdout.is_empty(), "{args:?}");
    }
}

#[test]
fn a_keyword_that_is_not_there_yet_is_refused_with_a_hint() {
    let out = lhscp(&["-F", "none", "-o", "Tunnel=yes", "a", "h:"]);
    assert_eq!(out.status.code(), Some(1));
    let said = text(&out.stderr);
    assert!(said.starts_with("lhscp: command line: Tunnel is not supported yet"), "{said}");
    assert!(said.contains("\nhint: "), "{said}");
}

#[test]
fn between_two_paths_of_this_host_it_copies_as_well() {
    let dir = tempfile::tempdir().unwrap();
    let [a, b] = ["a", "b"].map(|name| dir.path().join(name).display().to_string());
    std::fs::create_dir(&a).unwrap();
    std::fs::write(format!("{a}/x"), "content").unwrap();
    let without_r = lhscp(&[&a, &b]);
    assert_eq!(without_r.status.code(), Some(1));
    assert!(text(&without_r.stderr).contains("a: not a regular file"));
    assert!(lhscp(&["-rp", &a, &b]).status.success());
    assert_eq!(std::fs::read(format!("{b}/x")).unwrap(), b"content");
}

#[test]
fn json_ends_with_the_report() {
    let dir = tempfile::tempdir().unwrap();
    let [a, b] = ["a", "b"].map(|name| dir.path().join(name).display().to_string());
    std::fs::write(&a, "content").unwrap();
    let out = lhscp(&["--json", "-q", &a, &b]);
    assert!(out.stderr.is_empty());
    let events: Vec<serde_json::Value> =
        text(&out.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(events.first().unwrap()["event"], "start");
    let report = events.last().unwrap();
    assert_eq!(report["event"], "report");
    assert_eq!((&report["complete"], &report["bytes"]), (&true.into(), &7.into()));
    assert!(events.iter().any(|event| event["event"] == "file" && event["outcome"] == "copied"));
}

#[test]
fn a_dry_run_prints_what_it_would_do() {
    let dir = tempfile::tempdir().unwrap();
    let [a, b] = ["a", "b"].map(|name| dir.path().join(name).display().to_string());
    std::fs::write(&a, "content").unwrap();
    let out = lhscp(&["--dry-run", &a, &b]);
    assert!(out.status.success());
    assert_eq!(text(&out.stdout), "create  b\n");
    assert!(!dir.path().join("b").exists());
}

#[test]
fn a_host_that_is_not_there_is_exit_code_255() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("a").display().to_string();
    std::fs::write(&file, "x").unwrap();
    // Port 1 of loopback: nobody listens.
    let out = lhscp(&["-B", "-F", "none", "-P", "1", &file, "127.0.0.1:"]);
    let said = text(&out.stderr);
    assert_eq!(out.status.code(), Some(255), "{said}");
    assert!(said.starts_with("lhscp: 127.0.0.1: "), "{said}");
}

/// A list that could not be written would look like one with nothing in it.
#[test]
fn lines_that_cannot_be_written_are_told_and_fail() {
    let dir = tempfile::tempdir().expect("a directory");
    let [from, to] = ["from", "to"].map(|name| dir.path().join(name).display().to_string());
    std::fs::write(&from, "content").expect("a file");
    for (options, full, code) in [
        (&["-F", "none", "--dry-run"][..], true, 1),
        (&["-F", "none", "--json"], true, 1),
        (&["-F", "none"], true, 0),
        (&["-F", "none", "--dry-run"], false, 0),
    ] {
        let out = std::fs::File::create(if full { "/dev/full" } else { "/dev/null" });
        let mut command = Command::new(env!("CARGO_BIN_EXE_lhscp"));
        command.args(options).args([&from, &to]).env("HOME", dir.path());
        let out = command.stdout(out.expect("a device")).output().expect("lhscp");
        let said = text(&out.stderr);
        assert_eq!(out.status.code(), Some(code), "{options:?} {full}: {said}");
        let told = said.contains("lhscp: standard output: No space left on device\n");
        assert_eq!(told, code == 1, "{options:?} {full}: {said}");
    }
}
