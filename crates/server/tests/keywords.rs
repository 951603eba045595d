//! Keywords whose effect no other test here is about (invariant D6: every option has an effect
//! test). Sockets' options are tested beside the code.
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use common::{Server, Site, read_all, stderr, stdout, until};
use stand_ins::noise;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

/// What `ssh -vv` says of a connection.
fn talk(server: &Server, options: &[&str]) -> String {
    let output = server.ssh(&[options, &["LogLevel=DEBUG3"]].concat(), "true").output().unwrap();
    stderr(&output)
}

/// Effect of Ciphers, MACs, KexAlgorithms, HostKeyAlgorithms.
#[test]
fn algorithms_are_those_that_are_configured() {
    for (setting, want) in [
        ("Ciphers=aes256-ctr", "cipher: aes256-ctr"),
        ("Ciphers=chacha20-poly1305@openssh.com", "cipher: chacha20-poly1305@openssh.com"),
        ("KexAlgorithms=ecdh-sha2-nistp384", "kex: algorithm: ecdh-sha2-nistp384"),
        ("HostKeyAlgorithms=rsa-sha2-256", "kex: host key algorithm: rsa-sha2-256"),
    ] {
        let site = Site::new();
        site.keygen("host_rsa", "rsa");
        let key = format!("HostKey={}", site.path("host_rsa").display());
        let server = site.serve(&[setting, &key]);
        let text = talk(&server, &[]);
        assert!(text.contains(want), "{setting}: {text}");
    }
    let server = Server::start(&["Ciphers=aes128-ctr", "MACs=hmac-sha2-512-etm@openssh.com"]);
    let text = talk(&server, &[]);
    assert!(text.contains("MAC: hmac-sha2-512-etm@openssh.com"), "{text}");
    let text = talk(&server, &["Ciphers=aes256-gcm@openssh.com"]);
    assert!(text.contains("no matching cipher found"), "{text}");
    server.wait_for_log("no common cipher");
}

/// Effect of RekeyLimit.
#[test]
fn keys_are_renewed_after_as_much_as_configured() {
    for (limit, many) in [("1M", true), ("1G", false)] {
        let server = Server::start(&[&format!("RekeyLimit={limit}")]);
        let output = server.ssh(&["LogLevel=DEBUG1"], "head -c 8M /dev/zero").output().unwrap();
        assert_eq!(output.stdout.len(), 8 << 20);
        let count = stderr(&output).matches("SSH2_MSG_NEWKEYS received").count();
        assert_eq!(count > 4, many, "{limit}: {count} exchanges");
    }
}

/// Effect of ClientAliveInterval and ClientAliveCountMax.
#[test]
fn a_client_that_shows_no_sign_of_life_is_given_up() {
    let server = Server::start(&["ClientAliveInterval=1", "ClientAliveCountMax=2"]);
    let mut ssh = server.ssh(&["LogLevel=DEBUG1"], "cat");
    let mut ssh = ssh.stdin(Stdio::piped()).spawn().unwrap();
    // A living one answers, so it is asked a third time.
    let mut lines = BufReader::new(ssh.stderr.take().unwrap()).lines().map(Result::unwrap);
    let asked = lines.by_ref().filter(|line| line.contains("rtype keepalive@openssh.com"));
    let asked = asked.take(3).count();
    assert_eq!((asked, server.sessions().len()), (3, 1), "{}", server.log());
    common::kill("STOP", ssh.id());
    until("the session to end", || server.sessions().is_empty(), || server.log());
    server.wait_for_log("no answer from the other side for 3 s");
    ssh.kill().unwrap();
    ssh.wait().unwrap();
}

/// Effect of MaxWindow.
#[test]
fn no_window_is_larger_than_configured() {
    let server = Server::start(&["MaxWindow=300K"]);
    let text = talk(&server, &[]);
    assert!(text.contains("rwindow 307200"), "{text}");
    let mut ssh = server.ssh(&[], "sleep 1; cat | wc -c").stdin(Stdio::piped()).spawn().unwrap();
    ssh.stdin.take().unwrap().write_all(&noise(1, 4 << 20)).unwrap();
    assert_eq!(read_all(ssh.stdout.take().unwrap()), b"4194304\n");
    assert!(ssh.wait().unwrap().success());
}

/// Effect of CryptoWorkers.
#[test]
fn as_many_threads_seal_and_open_as_configured() {
    let count = |workers: &str| {
        let server = Server::start(&[&format!("CryptoWorkers={workers}")]);
        let command = "cat /proc/$PPID/task/*/comm | grep -c crypto";
        let threads: usize = stdout(&server.run(command)).trim().parse().unwrap();
        let sent = noise(1, 5 << 20);
        let mut ssh = server.ssh(&[], "cat").stdin(Stdio::piped()).spawn().unwrap();
        let (mut stdin, stdout) = (ssh.stdin.take().unwrap(), ssh.stdout.take().unwrap());
        std::thread::scope(|scope| {
            scope.spawn(|| {
                stdin.write_all(&sent).unwrap();
                drop(stdin);
            });
            assert!(read_all(stdout) == sent);
        });
        assert!(ssh.wait().unwrap().success());
        threads
    };
    assert_eq!((count("3"), count("0")), (3, 0));
}

/// Effect of UseDNS: names in `from=` are those that lead back to the address.
#[test]
fn names_count_only_where_they_are_looked_up() {
    let hosts = std::fs::read_to_string("/etc/hosts").unwrap_or_default();
    let first = hosts.lines().find(|line| line.starts_with("127.0.0.1"));
    let named = first.and_then(|line| line.split_whitespace().nth(1)) == Some("localhost");
    if !need::have(named, "127.0.0.1 is not localhost here") {
        return;
    }
    let server = Server::with_key_options("from=\"localhost\"", &["UseDNS=yes"]);
    server.assert_serves();
    let server = Server::with_key_options("from=\"localhost\"", &["UseDNS=no"]);
    assert!(!server.run("true").status.success());
}

/// Effect of LogLevel.
#[test]
fn nothing_is_logged_when_quiet() {
    let site = Site::new();
    let log = std::fs::File::create(site.path("log")).unwrap();
    let child = site.lhsshd(&["LogLevel=QUIET"]).arg("-D").stderr(log).spawn().unwrap();
    let server = Server { site, child };
    let port = server.site.port;
    until("the port", || TcpStream::connect(("127.0.0.1", port)).is_ok(), String::new);
    assert!(server.run("true").status.success());
    assert_eq!(server.log(), "");
}

/// Effect of TransferLog.
#[test]
fn each_session_leaves_a_line_of_its_transfer() {
    let site = Site::new();
    let path = site.path("transfers");
    let server = site.serve(&[&format!("TransferLog={}", path.display()), "RekeyLimit=1M"]);
    let command = "head -c 8388608 >/dev/null; echo well";
    let mut ssh = server.ssh(&["Ciphers=aes128-ctr"], command);
    let mut ssh = ssh.stdin(Stdio::piped()).spawn().unwrap();
    ssh.stdin.take().unwrap().write_all(&noise(1, 8 << 20)).unwrap();
    assert_eq!(read_all(ssh.stdout.take().unwrap()), b"well\n");
    assert!(ssh.wait().unwrap().success());
    assert_eq!(server.run("exit 3").status.code(), Some(3));

    let lines = || std::fs::read_to_string(&path).unwrap_or_default();
    until("two lines", || lines().lines().count() == 2, lines);
    let text = lines();
    let find = |part: &str| text.lines().find(|line| line.contains(part)).unwrap();
    let line = find("\"bytes_in\":8388608,");
    for part in [
        "\"address\":\"127.0.0.1\"",
        &format!("\"user\":\"{}\"", common::user()),
        "\"client\":\"OpenSSH_",
        "\"cipher_in\":\"aes128-ctr\"",
        "\"mac_out\":\"",
        "\"bytes_out\":5,",
        "\"clear_in\":0,",
        "\"not_taken\":0,",
        "\"rtt_ms\":",
        "\"retransmits\":",
        "\"end\":\"disconnected by user\"",
    ] {
        assert!(line.contains(part), "{part} in {line}");
    }
    let number = |name: &str| -> u64 {
        let rest = line.split(&format!("\"{name}\":")).nth(1).unwrap();
        rest.split(',').next().unwrap().parse().unwrap()
    };
    assert!(number("rekeys") >= 2, "{line}");
    assert!(number("wire_in") > 8 << 20 && number("window_in") >= 2 << 20, "{line}");
    assert!(number("peak_in") > 0 && number("mean_in") > 0, "{line}");
    assert!(find("\"bytes_in\":0,").contains("\"limited_by\":\"-\""));
    // The same in the log.
    server.wait_for_log("Transfer: address=127.0.0.1 ");
    assert!(server.log().contains(" bytes_in=8388608 bytes_out=5 "), "{}", server.log());
    let mode = std::fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "users' names are nobody else's business");
}
