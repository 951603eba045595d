//! Who gets in, by which key, and what the key then allows.
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use common::{Server, Site, read_all, stderr, stdout, until, user, write};
use std::fs::{Permissions, set_permissions};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Output};

/// Refused as sshd refuses: the only method, and no reason.
fn assert_denied(output: &Output, server: &Server) {
    let text = stderr(output);
    assert!(text.contains("Permission denied (publickey)"), "{text}\n{}", server.log());
    assert_eq!(output.status.code(), Some(255));
    assert_eq!(stdout(output), "");
}

#[test]
fn a_login_is_logged_as_sshd_logs_it() {
    let server = Server::start(&[]);
    assert!(server.run("true").status.success());
    let user = user();
    server.wait_for_log(&format!("Accepted publickey for {user} from 127.0.0.1 port "));
    server.wait_for_log(" ssh2: ED25519 SHA256:");
    server.wait_for_log(&format!("Disconnected from user {user} 127.0.0.1 port "));
}

#[test]
fn a_key_that_is_in_no_file_is_denied() {
    let server = Server::start(&[]);
    server.site.keygen("other", "ed25519");
    std::fs::copy(server.site.path("other.pub"), server.site.path("authorized_keys")).unwrap();
    assert_denied(&server.run("true"), &server);
    server.wait_for_log("Failed publickey for ");
}

#[test]
fn every_kind_of_key_logs_in() {
    let server = Server::start(&[]);
    for (kind, bits) in [("ed25519", ""), ("ecdsa", "256"), ("ecdsa", "521"), ("rsa", "2048")] {
        let name = format!("{kind}{bits}");
        let mut keygen = Command::new("ssh-keygen");
        keygen.args(["-q", "-N", "", "-t", kind, "-f"]).arg(server.site.path(&name));
        if !bits.is_empty() {
            keygen.args(["-b", bits]);
        }
        assert!(keygen.status().unwrap().success());
        for end in ["", ".pub"] {
            let (from, to) = (format!("{name}{end}"), format!("user_key{end}"));
            std::fs::copy(server.site.path(&from), server.site.path(&to)).unwrap();
        }
        server.site.authorize("");
        assert_eq!(stdout(&server.run("echo in")), "in\n", "{name}: {}", server.log());
    }
}

/// Only the account that the server runs as is served. Invariant A9: another name, known to the
/// system or not, gets the very messages that a wrong key gets.
#[test]
fn a9_another_user_is_denied_like_a_wrong_key() {
    let server = Server::start(&["LogLevel=VERBOSE"]);
    server.site.keygen("other", "ed25519");
    let conversation = |user: &str, key: &str| {
        let mut ssh = server.site.ssh_to(&["LogLevel=DEBUG1"]);
        ssh.args(["-l", user, "-i"]).arg(server.site.path(key)).arg("true");
        let output = ssh.output().unwrap();
        let text = stderr(&output);
        assert!(text.contains("Permission denied"), "{user}: {text}");
        let of_auth = |line: &&str| {
            line.contains("uthentication") || line.contains("SSH2_MSG") || line.contains("ccepts")
        };
        text.lines().filter(of_auth).map(str::to_owned).collect::<Vec<_>>()
    };
    // The key that would do, offered for somebody else, against one that would not.
    let good_key = conversation("daemon", "user_key");
    let unknown = conversation("no-such-user", "user_key");
    std::fs::copy(server.site.path("other"), server.site.path("user_key")).unwrap();
    std::fs::copy(server.site.path("other.pub"), server.site.path("user_key.pub")).unwrap();
    let wrong_key = conversation(&user(), "user_key");
    assert_eq!(good_key, wrong_key);
    assert_eq!(unknown, wrong_key);
    server.wait_for_log("Invalid user no-such-user from 127.0.0.1");
}

#[test]
fn a_forced_command_runs_whatever_is_asked_for() {
    let server = Server::with_key_options(
        "command=\"echo forced: $SSH_ORIGINAL_COMMAND\"",
        &["Subsystem=greet /bin/echo hello", "TestSubsystems=yes"],
    );
    assert_eq!(stdout(&server.run("ls; id")), "forced: ls; id\n");
    let shell = server.site.ssh_to(&[]).output().unwrap();
    assert_eq!(stdout(&shell), "forced:\n");
    let subsystem = server.site.ssh_to(&[]).args(["-s", "greet"]).output().unwrap();
    assert_eq!(stdout(&subsystem), "forced: /bin/echo hello\n");
    let built_in = server.site.ssh_to(&[]).args(["-s", "zeros@longhaul"]).output().unwrap();
    assert_eq!(stdout(&built_in), "");
}

/// Invariant A4: a key that is offered and not signed with leaves nothing behind.
#[test]
fn a4_only_the_key_that_signed_says_what_may_be_done() {
    let server = Server::start(&[]);
    server.site.keygen("other", "ed25519");
    let line = |options: &str, key: &str| format!("{options} {}", server.site.text(key));
    let lines = [line("command=\"echo other\"", "other.pub"), line("", "user_key.pub")];
    write(&server.site.path("authorized_keys"), &lines.map(|l| l.trim_start().to_owned()).concat());
    // `other` is offered first and would do, but its private half is not there to sign.
    let other = server.site.path("other");
    std::fs::remove_file(&other).unwrap();
    let option = format!("IdentityFile={}.pub", other.display());
    let output = server.ssh(&[&option], "echo mine").output().unwrap();
    assert_eq!(stdout(&output), "mine\n", "{}", stderr(&output));
}

#[test]
fn from_lets_in_only_whom_it_names() {
    for (from, granted) in [
        ("127.0.0.1", true),
        ("127.0.0.0/8", true),
        ("192.0.2.1,127.*", true),
        ("192.0.2.0/24", false),
        ("127.0.0.0/8,!127.0.0.1", false),
    ] {
        let server = Server::with_key_options(&format!("from=\"{from}\""), &[]);
        let output = server.run("echo in");
        if granted {
            assert_eq!(stdout(&output), "in\n", "{from}");
        } else {
            assert_denied(&output, &server);
            server
                .wait_for_log("authorized_keys:1: refused: the key may not be used from 127.0.0.1");
        }
    }
}

#[test]
fn environment_options_count_only_where_permitted() {
    let options = "environment=\"COLOUR=red\",environment=\"SHAPE=round\"";
    for (setting, want) in [("no", ","), ("yes", "red,round"), ("COL*", "red,")] {
        let setting = format!("PermitUserEnvironment={setting}");
        let server = Server::with_key_options(options, &[&setting]);
        assert_eq!(stdout(&server.run("echo $COLOUR,$SHAPE")), format!("{want}\n"), "{setting}");
    }
}

#[test]
fn an_expired_key_is_denied() {
    let server = Server::with_key_options("expiry-time=\"20200101\"", &[]);
    assert_denied(&server.run("true"), &server);
    server.wait_for_log("authorized_keys:1: refused: the key has expired");
    server.site.authorize("expiry-time=\"20991231\"");
    assert!(server.run("true").status.success());
}

#[test]
fn a_line_with_an_unknown_option_lets_nobody_in() {
    for (options, why) in [
        ("no-such-option", "unknown option"),
        ("restrict,cert-authority", "not supported"),
        ("command=\"unfinished", "quotes"),
    ] {
        let server = Server::with_key_options(options, &[]);
        assert_denied(&server.run("true"), &server);
        server.wait_for_log("authorized_keys:1: refused: ");
        assert!(server.log().contains(why), "{}", server.log());
    }
}

#[test]
fn restrict_leaves_the_command() {
    let server = Server::with_key_options("restrict", &[]);
    assert_eq!(stdout(&server.run("echo in")), "in\n");
}

/// Effect of StrictModes (D6). The directories above a temporary one are never the user's alone,
/// so this one stands in the home.
#[test]
fn key_files_that_others_can_write_are_not_believed() {
    let home = std::env::var("HOME").unwrap();
    let Ok(dir) = tempfile::Builder::new().prefix(".lhsshd-test-").tempdir_in(home) else {
        need::have(false, "the home cannot be written");
        return;
    };
    let site = Site::new();
    let file = dir.path().join("authorized_keys");
    std::fs::copy(site.path("authorized_keys"), &file).unwrap();
    let chmod = |mode| set_permissions(&file, Permissions::from_mode(mode)).unwrap();
    chmod(0o600);
    let setting = format!("AuthorizedKeysFile={}", file.display());
    let server = site.serve(&[&setting, "StrictModes=yes"]);
    let output = server.run("echo in");
    let shared = server.log().contains("bad ownership or modes for directory");
    if !need::have(!shared, "the home itself is not the user's alone") {
        return;
    }
    assert_eq!(stdout(&output), "in\n", "{}", server.log());
    chmod(0o666);
    assert_denied(&server.run("true"), &server);
    server.wait_for_log("Authentication refused: bad ownership or modes for file");
}

/// Effect of AuthorizedKeysFile (D6): every file counts, and tokens are expanded.
#[test]
fn keys_are_looked_for_in_every_file_that_is_named() {
    let site = Site::new();
    let user = user();
    std::fs::create_dir(site.path(&user)).unwrap();
    std::fs::rename(site.path("authorized_keys"), site.path(&user).join("keys")).unwrap();
    let dir = site.path("");
    let setting = format!("AuthorizedKeysFile={0}none {0}%u/keys", dir.display());
    let server = site.serve(&[&setting]);
    server.assert_serves();
}

/// Effect of PubkeyAuthentication (D6).
#[test]
fn without_public_keys_nobody_gets_in() {
    let server = Server::start(&["PubkeyAuthentication=no"]);
    assert_denied(&server.run("true"), &server);
}

/// Effect of PubkeyAcceptedAlgorithms (D6).
#[test]
fn keys_sign_only_with_accepted_algorithms() {
    let server = Server::start(&["PubkeyAcceptedAlgorithms=rsa-sha2-512"]);
    let output = server.run("true");
    assert!(!output.status.success());
    let server = Server::start(&["PubkeyAcceptedAlgorithms=ssh-ed25519"]);
    server.assert_serves();
}

/// Effect of Banner (D6).
#[test]
fn the_banner_comes_before_login() {
    let site = Site::new();
    write(&site.path("banner"), "Welcome to nowhere\n");
    let setting = format!("Banner={}", site.path("banner").display());
    let server = site.serve(&[&setting]);
    let output = server.ssh(&["LogLevel=INFO"], "true").output().unwrap();
    assert!(stderr(&output).contains("Welcome to nowhere"), "{}", stderr(&output));
}

/// Effect of MaxAuthTries (D6); invariant A10: every request is a try.
#[test]
fn too_many_tries_end_the_connection() {
    let server = Server::start(&["MaxAuthTries=3"]);
    let mut ssh = server.site.ssh_to(&[]);
    for n in 0..4 {
        let name = format!("wrong{n}");
        server.site.keygen(&name, "ed25519");
        ssh.arg("-i").arg(server.site.path(&name));
    }
    // ssh's own key comes first and would do; it must not.
    write(&server.site.path("authorized_keys"), "");
    let output = ssh.arg("true").output().unwrap();
    let text = stderr(&output);
    assert!(
        text.contains("Too many authentication failures") || text.contains("too many"),
        "{text}"
    );
    let user = user();
    server.wait_for_log(&format!("maximum authentication attempts exceeded for {user} from "));
    // Those who watch the log at its usual level see who is guessed at.
    assert!(
        server.log().contains(&format!("Failed publickey for {user} from ")),
        "{}",
        server.log()
    );
}

/// Effect of LoginGraceTime (D6).
#[test]
fn a_silent_connection_is_closed_after_the_grace_time() {
    // Long enough for a login on a busy machine: one follows.
    let server = Server::start(&["LoginGraceTime=3"]);
    let silent = server.connect();
    let text = read_all(&silent);
    assert!(text.starts_with(b"SSH-2.0-longhaul_"), "{:?}", String::from_utf8_lossy(&text));
    server.wait_for_log("Timeout before authentication for 127.0.0.1 port ");
    let mut slow = server.connect();
    slow.write_all(b"SSH-2.0-slow\r\n").unwrap();
    read_all(&slow);
    until("the sessions to end", || server.sessions().is_empty(), || server.log());
    server.assert_serves();
}

/// Invariant B8, at the program.
#[test]
fn b8_what_is_no_identification_is_answered_by_the_end() {
    let server = Server::start(&[]);
    for nonsense in
        [&b"GET / HTTP/1.0\r\n\r\n"[..], b"SSH-1.5-old\r\n", &[b'x'; 10_000], b"\0\0\0\0\n"]
    {
        let mut stream = server.connect();
        let _ = stream.write_all(nonsense);
        read_all(&stream);
    }
    until("the sessions to end", || server.sessions().is_empty(), || server.log());
    server.assert_serves();
}

#[test]
fn the_server_speaks_first_and_at_once() {
    let server = Server::start(&[]);
    let mut reader = BufReader::new(server.connect());
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    assert!(line.starts_with("SSH-2.0-longhaul_") && line.ends_with("\r\n"), "{line:?}");
    // KEXINIT is there without a word from us: packet length, padding length, message 20.
    let mut head = [0; 6];
    reader.read_exact(&mut head).unwrap();
    assert_eq!(head[5], 20);
}
