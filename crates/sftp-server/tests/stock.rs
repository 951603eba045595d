//! The program itself, with the system's `sftp` on its other end (`sftp -D`).
#![allow(clippy::unwrap_used, reason = "tests")]

use std::fs;
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

const SERVER: &str = env!("CARGO_BIN_EXE_lhsftp-server");

/// Two directories: one to be served, one of the client's.
struct Site {
    dir: TempDir,
}

impl Site {
    fn new() -> Self {
        let site = Self { dir: tempfile::tempdir().unwrap() };
        fs::create_dir(site.path("remote")).unwrap();
        fs::create_dir(site.path("local")).unwrap();
        site
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Runs commands of sftp(1) with these options of the server's.
    fn sftp(&self, options: &str, commands: &str) -> Output {
        let start = self.path("remote");
        let server = format!("{SERVER} -e -d {} {options}", start.display());
        let mut child = Command::new("sftp")
            .args(["-D", &server, "-b", "-"])
            .current_dir(self.path("local"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(commands.as_bytes()).unwrap();
        child.wait_with_output().unwrap()
    }

    fn must(&self, commands: &str) -> String {
        let output = self.sftp("", commands);
        assert!(output.status.success(), "{}\n{}", text(&output.stdout), text(&output.stderr));
        text(&output.stdout)
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A file that is not all the same.
fn make(path: &Path, len: usize) -> Vec<u8> {
    let bytes: Vec<u8> = (0..len).map(|n| (n ^ n >> 8 ^ n >> 16) as u8).collect();
    fs::write(path, &bytes).unwrap();
    bytes
}

#[test]
fn files_go_both_ways() {
    let site = Site::new();
    for len in [0, 1, 32_768, 261_120, 261_121, 5_000_000] {
        let data = make(&site.path("local/data"), len);
        site.must("put data there\nget there back\n");
        assert!(fs::read(site.path("remote/there")).unwrap() == data, "{len} up");
        assert!(fs::read(site.path("local/back")).unwrap() == data, "{len} down");
    }
}

#[test]
fn interrupted_transfers_go_on() {
    let site = Site::new();
    let data = make(&site.path("local/data"), 3_000_000);
    fs::write(site.path("remote/up"), &data[..1_000_000]).unwrap();
    fs::write(site.path("local/down"), &data[..1_234_567]).unwrap();
    fs::write(site.path("remote/down"), &data).unwrap();
    site.must("reput data up\nreget down\n");
    assert!(fs::read(site.path("remote/up")).unwrap() == data);
    assert!(fs::read(site.path("local/down")).unwrap() == data);
}

#[test]
fn trees_are_copied_with_their_attributes() {
    let site = Site::new();
    fs::create_dir_all(site.path("local/tree/sub/empty")).unwrap();
    for n in 0..100 {
        make(&site.path(&format!("local/tree/sub/file {n}")), n * 100);
    }
    let script = site.path("local/tree/script");
    fs::write(&script, "#!/bin/sh\n").unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o751)).unwrap();
    site.must("put -rp tree\nget -rp tree back\n");
    let diff = Command::new("diff")
        .arg("-r")
        .args([site.path("local/tree"), site.path("local/back")])
        .status()
        .unwrap();
    assert!(diff.success());
    let (there, here) = (fs::metadata(site.path("remote/tree/script")).unwrap(), script.metadata());
    assert_eq!(there.mode() & 0o7777, 0o751);
    assert_eq!(there.mtime(), here.unwrap().mtime());
}

#[test]
fn everything_else_that_sftp_can_do() {
    let site = Site::new();
    make(&site.path("remote/a"), 1000);
    fs::set_permissions(site.path("remote/a"), fs::Permissions::from_mode(0o644)).unwrap();
    let shown = site.must(
        "pwd\nmkdir dir\nchmod 750 dir\nln a hard\nln -s a soft\nrename a dir/b\ncp dir/b c\n\
         ls -l dir/b\nls -1 *\ndf .\ndf -h .\nrm hard\nrmdir dir2\n"
            .replace("rmdir dir2", "mkdir dir2\nrmdir dir2")
            .as_str(),
    );
    assert!(shown.contains(&format!("Remote working directory: {}", remote(&site))), "{shown}");
    assert!(shown.contains("-rw-r--r--") && shown.contains(" 1000 "), "{shown}");
    assert!(shown.contains("%Capacity"), "{shown}");
    assert_eq!(fs::metadata(site.path("remote/dir")).unwrap().mode() & 0o777, 0o750);
    assert_eq!(fs::read_link(site.path("remote/soft")).unwrap(), Path::new("a"));
    assert_eq!(fs::read(site.path("remote/c")).unwrap().len(), 1000);
    assert!(!site.path("remote/hard").exists() && !site.path("remote/dir2").exists());
    for (wrong, why) in [
        ("rm nothing", "No such file"),
        ("rmdir dir", "Failure"),
        ("mkdir dir", "Failure"),
        ("get nothing", "not found"),
        ("ls nothing", "not found"),
    ] {
        let output = site.sftp("", &format!("{wrong}\n"));
        assert_eq!(output.status.code(), Some(1), "{wrong}");
        assert!(text(&output.stderr).contains(why), "{wrong}: {}", text(&output.stderr));
    }
}

fn remote(site: &Site) -> String {
    fs::canonicalize(site.path("remote")).unwrap().display().to_string()
}

/// Effects of `-R`, `-P`, `-p` and `-u` as sftp(1) meets them.
#[test]
fn f8_what_the_server_forbids_sftp_cannot_do() {
    let site = Site::new();
    make(&site.path("local/data"), 10);
    fs::write(site.path("remote/file"), "here").unwrap();
    for (options, command) in [
        ("-R", "put data"),
        ("-R", "rm file"),
        ("-R", "chmod 600 file"),
        ("-P remove", "rm file"),
        ("-p open,close,read,stat,lstat,fstat,realpath,limits", "rm file"),
    ] {
        let output = site.sftp(options, &format!("{command}\n"));
        assert_eq!(output.status.code(), Some(1), "{options}: {command}");
        assert!(text(&output.stderr).contains("ermission denied"), "{}", text(&output.stderr));
        let read = site.sftp(options, "get file /dev/null\n");
        assert!(read.status.success(), "{options}: {}", text(&read.stderr));
    }
    assert!(site.sftp("-u 077", "put data\n").status.success());
    assert_eq!(fs::metadata(site.path("remote/data")).unwrap().mode() & 0o777, 0o600);
    assert_eq!(fs::read(site.path("remote/file")).unwrap(), b"here");
}

/// Effects of `-e`, `-l`, `-h` and `-Q`, and what a wrong call ends with.
#[test]
fn the_command_line_is_that_of_sftp_server() {
    let site = Site::new();
    let log = text(&site.sftp("-l INFO", "mkdir dir\n").stderr);
    assert!(log.contains("session opened for local user"), "{log}");
    assert!(log.contains("mkdir name") && log.contains("session closed for local user"), "{log}");
    assert_eq!(text(&site.sftp("", "mkdir other\n").stderr), "");
    let run = |args: &[&str]| {
        let output = Command::new(SERVER).args(args).stdin(Stdio::null()).output().unwrap();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };
    let (code, requests, _) = run(&["-Q", "requests"]);
    assert_eq!(code, Some(0));
    let requests: Vec<_> = requests.lines().collect();
    for name in ["open", "posix-rename", "users-groups-by-id", "put-files"] {
        assert!(requests.contains(&name), "{name}");
    }
    // What scp's -D gives it.
    assert_eq!(run(&["--", "host", "sftp"]), (Some(0), String::new(), String::new()));
    for args in [&["-h"][..], &["-x"], &["-Q", "x"], &["-l", "loud"]] {
        let (code, _, usage) = run(args);
        assert_eq!(code, Some(1), "{args:?}");
        assert!(usage.contains("usage: lhsftp-server"), "{usage}");
    }
}

/// Its end is the client's end, and what it says then.
#[test]
fn it_ends_with_its_client() {
    let run = |input: &[u8]| {
        let mut child = Command::new(SERVER)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(input).unwrap();
        let output = child.wait_with_output().unwrap();
        (output.status.code(), output.stdout)
    };
    assert_eq!(run(b""), (Some(0), vec![]));
    let (code, version) = run(b"\0\0\0\x05\x01\0\0\0\x03");
    assert_eq!((code, version.get(4..9)), (Some(0), Some(&b"\x02\0\0\0\x03"[..])));
    assert_eq!(run(b"\0\0\0\x05\x01\0\0\0\x03\xff\xff\xff\xff").0, Some(11));
    assert_eq!(run(b"GET / HTTP/1.0\r\n\r\n").0, Some(11));
    // Nobody reads: it must not wait for ever.
    let mut child = Command::new(SERVER)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"\0\0\0\x05\x01\0\0\0\x03").unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
}
