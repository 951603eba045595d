//! `internal-sftp` with the system's `sftp` and `scp` as clients.
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use common::{Server, stderr, stdout, until};
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// A file large enough that windows turn over and requests straddle packets.
fn write_noise(path: &Path, len: usize) -> Vec<u8> {
    let bytes = stand_ins::noise(1, len);
    fs::write(path, &bytes).unwrap();
    bytes
}

/// `sftp` or `scp` with the test's key, which take the port as `-P`.
fn client(server: &Server, program: &str) -> Command {
    let ssh = server.site.ssh_to(&[]);
    let mut args: Vec<_> = ssh.get_args().filter(|arg| *arg != "-T").collect();
    args.pop();
    let mut command = Command::new(program);
    command.args(args.iter().map(|arg| if *arg == "-p" { "-P".as_ref() } else { *arg }));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn batch(server: &Server, lines: &str) -> Output {
    let mut sftp = client(server, "sftp");
    let mut child = sftp.args(["-b", "-", "127.0.0.1"]).stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

fn must(output: &Output) {
    assert!(output.status.success(), "{}\n{}", stdout(output), stderr(output));
}

/// Effect of Subsystem with `internal-sftp` and its options (D6).
#[test]
fn openssh_transfers_both_ways_through_internal_sftp() {
    let server = Server::start(&["Subsystem=sftp internal-sftp -l INFO"]);
    let site = |name: &str| server.site.path(name);
    let data = write_noise(&site("data"), 20_000_000);
    let dir = site("");
    let lines = format!(
        "cd {dir}\nlcd {dir}\nput data there\nget there back\nmkdir sub\nrename there sub/moved\nln -s sub link\nls -l link\ndf .\n",
        dir = dir.display()
    );
    must(&batch(&server, &lines));
    assert!(fs::read(site("sub/moved")).unwrap() == data);
    assert!(fs::read(site("back")).unwrap() == data);
    server.wait_for_log("bytes read 0 written 20000000");
    server.wait_for_log("bytes read 20000000 written 0");

    let remote = |name: &str| format!("127.0.0.1:{}", site(name).display());
    let scp = |from: String, to: String| client(&server, "scp").args([from, to]).output().unwrap();
    must(&scp(site("data").display().to_string(), remote("copied")));
    must(&scp(remote("copied"), site("returned").display().to_string()));
    assert!(fs::read(site("returned")).unwrap() == data);
    until("sessions are over", || server.sessions().is_empty(), || server.log());
}

#[test]
fn a_key_for_internal_sftp_is_for_nothing_else() {
    let server = Server::with_key_options(
        "command=\"internal-sftp -R -l INFO\"",
        &["Subsystem=sftp /bin/false"],
    );
    let file = server.site.path("file");
    let lines = format!("-put {0} {0}2\nget {0} {0}3\n", file.display());
    write_noise(&file, 1000);
    let output = batch(&server, &lines);
    must(&output);
    assert!(stderr(&output).contains("Permission denied"), "{}", stderr(&output));
    assert!(!server.site.path("file2").exists() && server.site.path("file3").exists());
    for command in ["id", "internal-sftp"] {
        let output = server.run(command);
        assert_eq!(stdout(&output), "This service allows sftp connections only.\n");
        assert_eq!(output.status.code(), Some(1));
    }
}

/// A client that goes away in the middle leaves no process behind, and no thread to keep one.
#[test]
fn a_client_that_is_killed_ends_its_session() {
    let server = Server::start(&["Subsystem=sftp internal-sftp -l INFO"]);
    let (up, down) = (server.site.path("up"), server.site.path("down"));
    for large in [&up, &down] {
        fs::File::create(large).unwrap().set_len(64 << 30).unwrap();
    }
    let lines =
        [format!("put {} /dev/null", up.display()), format!("get {} /dev/null", down.display())];
    for (line, opened) in lines.iter().zip(["open \"/dev/null\"", "down\" flags READ"]) {
        let mut sftp = client(&server, "sftp");
        sftp.args(["-b", "-", "127.0.0.1"]).stdin(Stdio::piped());
        let mut child = sftp.spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(format!("{line}\n").as_bytes()).unwrap();
        server.wait_for_log(opened);
        child.kill().unwrap();
        child.wait().unwrap();
        until("the session's end", || server.sessions().is_empty(), || server.log());
    }
    server.assert_serves();
}
