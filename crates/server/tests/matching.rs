//! Match blocks and ForceCommand, over real connections.
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use common::{Server, Site, stderr, stdout, user, write};
use std::process::{Command, Stdio};

/// A server with this configuration file; `ME` in it is who runs the test.
fn server(text: &str) -> Server {
    let site = Site::new();
    let text = text.replace("ME", &user()).replace("PORT", &site.port.to_string());
    write(&site.path("config"), &text);
    let mut command = site.lhsshd(&["TestSubsystems=yes"]);
    command.arg("-f").arg(site.path("config"));
    site.start(command)
}

fn output(text: &str, command: &str) -> String {
    let server = server(text);
    let output = server.run(command);
    stdout(&output) + &stderr(&output)
}

/// Effect of Match and ForceCommand: user, groups, address, port, host, negation, order.
#[test]
fn the_blocks_that_describe_a_connection_count_for_it() {
    let cases = [
        ("ForceCommand echo all $SSH_ORIGINAL_COMMAND", "all id\n"),
        ("Match user ME\nForceCommand echo mine", "mine\n"),
        ("Match user !ME,*\nForceCommand echo mine\nMatch all\nForceCommand echo other", "other\n"),
        ("Match group *\nForceCommand echo some group", "some group\n"),
        ("Match address 127.0.0.0/8 localport PORT\nForceCommand echo near", "near\n"),
        (
            "Match address 10.0.0.0/8\nForceCommand echo far\nMatch host 127.*\nForceCommand echo b",
            "b\n",
        ),
        (
            "Match localaddress 127.0.0.1\nForceCommand echo 1\nMatch user ME\nForceCommand echo 2",
            "1\n",
        ),
        ("ForceCommand echo a\nMatch user ME\nForceCommand none", "asked\n"),
    ];
    for (text, want) in cases {
        let command = if want == "asked\n" { "echo asked" } else { "id" };
        assert_eq!(output(text, command), want, "{text}");
    }
}

/// What the administrator forces counts before what the owner of the key does.
#[test]
fn a_command_of_a_match_block_comes_before_that_of_the_key() {
    let server = server("Match user ME\nForceCommand echo admin\n");
    server.site.authorize("command=\"echo key\"");
    assert_eq!(stdout(&server.run("id")), "admin\n");
}

/// Effect of `ForceCommand internal-sftp`.
#[test]
fn a_user_may_be_confined_to_sftp() {
    let text = "Subsystem sftp internal-sftp\nMatch user ME\nForceCommand internal-sftp -R\n";
    let server = server(text);
    let refused = server.run("id");
    assert_eq!(stdout(&refused), "This service allows sftp connections only.\n");
    assert!(!refused.status.success());
    let file = server.site.path("file");
    let sftp = |batch: &str| {
        let mut sftp = Command::new("sftp");
        sftp.args(["-q", "-F", "none", "-b", "-", "-i"]).arg(server.site.path("user_key"));
        sftp.args(["-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null"]);
        sftp.args(["-o", "IdentityAgent=none", "-P", &server.site.port.to_string(), "127.0.0.1"]);
        let mut sftp = sftp
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        std::io::Write::write_all(&mut sftp.stdin.take().unwrap(), batch.as_bytes()).unwrap();
        sftp.wait_with_output().unwrap()
    };
    write(&file, "content");
    let got = server.site.path("got");
    let output = sftp(&format!("get {} {}\n", file.display(), got.display()));
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(server.site.text("got"), "content");
    assert!(!sftp(&format!("rm {}\n", file.display())).status.success(), "-R is read-only");
}

/// The other keywords of blocks reach their effect, too.
#[test]
fn limits_and_the_log_follow_the_block() {
    let server =
        server("MaxSessions 0\nMatch user ME\nMaxSessions 1\nLogLevel QUIET\nAcceptEnv X\n");
    let mut ssh = server.ssh(&["SetEnv=X=yes"], "echo $X");
    assert_eq!(stdout(&ssh.output().unwrap()), "yes\n");
    assert!(!server.log().contains("Accepted publickey"), "{}", server.log());
}

#[test]
fn dash_t_shows_what_counts_for_a_connection() {
    let site = Site::new();
    write(
        &site.path("config"),
        "Match group ROOTLESS,* user x\nMaxSessions 3\nMatch user root\nMaxSessions 4\n",
    );
    let dump = |spec: &[&str]| {
        let mut lhsshd = site.lhsshd(&[]);
        lhsshd.arg("-f").arg(site.path("config")).arg("-T").args(spec);
        let output = lhsshd.output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        let all = stdout(&output);
        all.lines().find(|line| line.starts_with("maxsessions ")).unwrap().to_owned()
    };
    assert_eq!(dump(&["-C", "user=root"]), "maxsessions 4");
    assert_eq!(dump(&["-C", "user=no-such-user"]), "maxsessions 10");
    assert_eq!(dump(&[]), "maxsessions 10");
}
