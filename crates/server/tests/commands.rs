//! Commands over a connection: what goes in, what comes out, how they end.
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use common::{Server, Site, is_alive, kill, read_all, stderr, stdout, until, user};
use stand_ins::noise;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Command, Stdio};

#[test]
fn output_errors_and_status_arrive_apart() {
    let server = Server::start(&[]);
    let output = server.run("echo out; echo err >&2; exit 7");
    assert_eq!((stdout(&output), stderr(&output)), ("out\n".into(), "err\n".into()));
    assert_eq!(output.status.code(), Some(7));
}

/// ps(1), top(1) and pkill(1) go by it, and a session is started from a file called "exe".
#[test]
fn a_session_is_called_as_the_program_is() {
    let server = Server::start(&[]);
    assert_eq!(stdout(&server.run("cat /proc/$PPID/comm")), "lhsshd\n");
}

/// What sshd has, and `tar -cf /dev/stdout` or `tee /dev/stderr` need: a socket cannot be opened.
#[test]
fn a_commands_streams_are_pipes() {
    let server = Server::start(&[]);
    let output = server.run("for fd in stdin stdout stderr; do test -p /dev/$fd && echo $fd; done");
    assert_eq!(stdout(&output), "stdin\nstdout\nstderr\n");
}

#[test]
fn every_status_arrives_as_it_is() {
    let server = Server::start(&[]);
    for code in [0, 1, 126, 254, 255] {
        assert_eq!(server.run(&format!("exit {code}")).status.code(), Some(code));
    }
    assert_eq!(server.run("/no/such/program").status.code(), Some(127));
}

#[test]
fn a_command_that_was_killed_is_told_as_killed() {
    let server = Server::start(&[]);
    let output = server.ssh(&["LogLevel=DEBUG"], "kill -TERM $$").output().unwrap();
    assert_eq!(output.status.code(), Some(255));
    assert!(stderr(&output).contains("exit-signal"), "{}", stderr(&output));
    server.wait_for_log("ExitSignal { name: \"TERM\"");
}

#[test]
fn the_clients_eof_is_the_commands_eof() {
    let server = Server::start(&[]);
    let mut ssh = server.ssh(&[], "cat; echo end").stdin(Stdio::piped()).spawn().unwrap();
    ssh.stdin.take().unwrap().write_all(b"in\n").unwrap();
    assert_eq!(read_all(ssh.stdout.take().unwrap()), b"in\nend\n");
    assert!(ssh.wait().unwrap().success());
}

#[test]
fn output_goes_on_after_the_clients_eof_and_input_after_the_commands() {
    let server = Server::start(&[]);
    let file = server.site.path("late");
    let command = format!("exec >&- 2>&-; cat > {}", file.display());
    let mut ssh = server.ssh(&[], &command).stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = ssh.stdin.take().unwrap();
    assert_eq!(read_all(ssh.stdout.take().unwrap()), b"");
    stdin.write_all(b"after its eof").unwrap();
    drop(stdin);
    assert!(ssh.wait().unwrap().success());
    assert_eq!(server.site.text("late"), "after its eof");
}

#[test]
fn sixty_four_mebibytes_pass_both_ways_unchanged() {
    let server = Server::start(&[]);
    let sent = noise(1, 64 << 20);
    let mut ssh = server.ssh(&[], "cat").stdin(Stdio::piped()).spawn().unwrap();
    let (mut stdin, stdout) = (ssh.stdin.take().unwrap(), ssh.stdout.take().unwrap());
    let received = std::thread::scope(|scope| {
        scope.spawn(|| {
            stdin.write_all(&sent).unwrap();
            drop(stdin);
        });
        read_all(stdout)
    });
    assert!(ssh.wait().unwrap().success());
    assert!(received == sent, "{} of {} bytes", received.len(), sent.len());
    server.wait_for_log("bytes_in=67108864 bytes_out=67108864");
}

#[test]
fn a_reader_that_stops_is_told_to_the_client_and_ends_quietly() {
    let server = Server::start(&[]);
    let mut ssh = server.ssh(&[], "head -c 5").stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = ssh.stdin.take().unwrap();
    let chunk = noise(1, 1 << 20);
    // Ends by the broken pipe that eow@openssh.com makes of the client's standard input.
    while stdin.write_all(&chunk).is_ok() {}
    assert_eq!(read_all(ssh.stdout.take().unwrap()).len(), 5);
    assert!(ssh.wait().unwrap().success());
}

#[test]
fn a_login_shell_runs_without_a_terminal() {
    let server = Server::start(&[]);
    let mut ssh = server.site.ssh_to(&[]).stdin(Stdio::piped()).spawn().unwrap();
    ssh.stdin.take().unwrap().write_all(b"echo \"$0\"; tty; exit 3\n").unwrap();
    let output = ssh.wait_with_output().unwrap();
    let text = stdout(&output);
    assert!(text.starts_with('-'), "a login shell's name starts with a dash: {text}");
    assert!(text.contains("not a tty"), "{text}");
    assert_eq!(output.status.code(), Some(3));
}

#[test]
fn a_terminal_is_refused() {
    let server = Server::start(&[]);
    let mut ssh = server.site.ssh_to(&[]);
    let output = ssh.args(["-tt", "tty"]).output().unwrap();
    assert!(stderr(&output).contains("PTY allocation request failed"), "{}", stderr(&output));
    server.assert_serves();
}

#[test]
fn the_environment_is_that_of_sshd() {
    let server = Server::start(&[]);
    let output = server.run("env; pwd");
    let (text, user) = (stdout(&output), user());
    let port = server.site.port;
    for line in
        [format!("USER={user}"), format!("LOGNAME={user}"), format!("MAIL=/var/mail/{user}")]
    {
        assert!(text.lines().any(|have| have == line), "{line} not in {text}");
    }
    let value = |name: &str| {
        let start = format!("{name}=");
        text.lines().find_map(|line| line.strip_prefix(&start)).map(str::to_owned)
    };
    let client = value("SSH_CLIENT").unwrap();
    assert!(client.starts_with("127.0.0.1 ") && client.ends_with(&format!(" {port}")), "{client}");
    let connection = value("SSH_CONNECTION").unwrap();
    assert!(connection.ends_with(&format!(" 127.0.0.1 {port}")), "{connection}");
    assert_eq!(value("HOME").as_deref(), text.lines().last());
    assert!(value("SHELL").is_some() && value("PATH").is_some());
    assert_eq!(value("SSH_ORIGINAL_COMMAND"), None);
    assert_eq!(value("CARGO_MANIFEST_DIR"), None, "the server's own environment leaks");
}

/// Effect of AcceptEnv and SetEnv (D6).
#[test]
fn the_client_sets_only_what_is_accepted_and_the_server_has_the_last_word() {
    let server = Server::start(&["AcceptEnv=LC_* FOO", "SetEnv=LC_B=server BAR=\"a b\""]);
    let options = ["SetEnv=LC_A=1 LC_B=2 FOO=3 QUUX=4"];
    let command = "echo $LC_A,$LC_B,$FOO,$QUUX,$BAR";
    let output = server.ssh(&options, command).output().unwrap();
    assert_eq!(stdout(&output), "1,server,3,,a b\n");
}

/// Effect of Subsystem (D6).
#[test]
fn subsystems_run_their_command_and_unknown_ones_are_refused() {
    let server =
        Server::start(&["Subsystem=greet echo hello \"$USER\"", "Subsystem=sftp internal-sftp -x"]);
    let subsystem = |name: &str| server.site.ssh_to(&[]).args(["-s", name]).output().unwrap();
    assert_eq!(stdout(&subsystem("greet")), format!("hello {}\n", user()));
    for name in ["nothing", "sftp", "zeros@longhaul"] {
        let output = subsystem(name);
        assert!(stderr(&output).contains("subsystem request failed"), "{}", stderr(&output));
        assert_eq!(output.status.code(), Some(255), "{name}");
    }
    server.wait_for_log("request refused: internal-sftp: invalid option '-x'");
}

/// Effect of TestSubsystems (D6).
#[test]
fn test_subsystems_take_everything_and_give_zeros() {
    let server = Server::start(&["TestSubsystems=yes"]);
    let subsystem = |name: &str| {
        let mut ssh = server.site.ssh_to(&[]);
        ssh.args(["-s", name]).stdin(Stdio::piped()).spawn().unwrap()
    };
    let mut discard = subsystem("discard@longhaul");
    discard.stdin.take().unwrap().write_all(&noise(1, 16 << 20)).unwrap();
    let output = discard.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stdout.len()), (Some(0), 0));
    server.wait_for_log("bytes_in=16777216 bytes_out=0");

    let mut zeros = subsystem("zeros@longhaul");
    let mut some = vec![1; 4 << 20];
    zeros.stdout.take().unwrap().read_exact(&mut some).unwrap();
    assert!(some.iter().all(|byte| *byte == 0));
    zeros.kill().unwrap();
    zeros.wait().unwrap();
    server.assert_serves();
}

#[test]
fn a_background_process_that_keeps_the_output_keeps_the_channel() {
    let server = Server::start(&[]);
    let output = server.run("(sleep 1; echo late) & echo early");
    assert_eq!(stdout(&output), "early\nlate\n");
}

#[test]
fn a_background_process_that_lets_go_keeps_nobody_waiting() {
    let server = Server::start(&[]);
    let output = server.run("sleep 60 >/dev/null 2>&1 </dev/null & echo $!");
    let pid: u32 = stdout(&output).trim().parse().unwrap();
    assert!(is_alive(pid), "the session's end is not its end");
    kill("KILL", pid);
}

#[test]
fn a_client_that_goes_away_hangs_up_its_command() {
    let server = Server::start(&[]);
    let file = server.site.path("hup");
    // bash reports the hung-up sleep on standard error first; when the session is gone by then, it
    // is killed by SIGPIPE instead of running its trap.
    let command = format!(
        "exec 2>/dev/null; trap 'echo hung up > {}; exit' HUP; echo ready; while :; do sleep 0.1; done",
        file.display()
    );
    let mut ssh = server.ssh(&[], &command).spawn().unwrap();
    let mut ready = [0; 6];
    ssh.stdout.as_mut().unwrap().read_exact(&mut ready).unwrap();
    ssh.kill().unwrap();
    ssh.wait().unwrap();
    until("the command to be hung up", || server.site.text("hup") == "hung up\n", || server.log());
}

/// As under nohup: a shell can never trap what was ignored when it started.
#[test]
fn commands_hear_signals_that_the_servers_starter_ignored() {
    let site = Site::new();
    let mut ignoring = Command::new("env");
    ignoring.args(["--ignore-signal=HUP", "--ignore-signal=CHLD", "--ignore-signal=TERM"]);
    let server = site.serve_by(ignoring, &[]);
    let output = server.run("trap 'echo heard' HUP TERM; kill -HUP $$; kill -TERM $$; true");
    assert_eq!(stdout(&output), "heard\nheard\n", "{}", server.log());
}

/// Without the hang-up, what was received and never read would keep the session for ever.
#[test]
fn a_command_that_reads_nothing_does_not_keep_a_broken_session() {
    let server = Server::start(&[]);
    let mut ssh =
        server.ssh(&[], "echo ready; exec sleep 1000").stdin(Stdio::piped()).spawn().unwrap();
    let mut ready = [0; 6];
    ssh.stdout.as_mut().unwrap().read_exact(&mut ready).unwrap();
    let mut stdin = ssh.stdin.take().unwrap();
    stdin.write_all(&noise(1, 2 << 20)).unwrap();
    ssh.kill().unwrap();
    ssh.wait().unwrap();
    until("the session to end", || server.sessions().is_empty(), || server.log());
    assert!(server.wait_for_figure("not_taken") > 0, "{}", server.log());
}

/// sshd would not wait for it either.
#[test]
fn a_command_that_ignores_the_hang_up_does_not_keep_a_broken_session() {
    let server = Server::start(&[]);
    let command = "trap '' HUP; echo $$; exec sleep 1000";
    let mut ssh = server.ssh(&[], command).stdin(Stdio::piped()).spawn().unwrap();
    let mut pid = String::new();
    BufReader::new(ssh.stdout.as_mut().unwrap()).read_line(&mut pid).unwrap();
    ssh.stdin.take().unwrap().write_all(&noise(1, 2 << 20)).unwrap();
    ssh.kill().unwrap();
    ssh.wait().unwrap();
    until("the session to end", || server.sessions().is_empty(), || server.log());
    assert!(server.wait_for_figure("not_taken") > 0, "{}", server.log());
    let pid = pid.trim().parse().unwrap();
    assert!(is_alive(pid), "it ignores the hang-up");
    kill("KILL", pid);
}

#[test]
fn commands_have_no_terminal_and_a_group_of_their_own() {
    let server = Server::start(&[]);
    let output = server.run("ps -o tty=,pgid= -p $$; echo $$");
    let text = stdout(&output);
    let mut words = text.split_whitespace();
    assert_eq!(words.next(), Some("?"));
    assert_eq!(words.next(), words.next(), "{text}");
}

#[test]
fn rsync_and_tar_work_through_it() {
    if !need::require(&["rsync"]) {
        return;
    }
    let server = Server::start(&[]);
    let (from, to) = (server.site.path("from"), server.site.path("to"));
    std::fs::create_dir(&from).unwrap();
    std::fs::write(from.join("file"), noise(1, 3 << 20)).unwrap();
    let ssh = server.site.ssh_to(&[]);
    let mut words: Vec<_> = ssh.get_args().map(|arg| arg.to_string_lossy().into_owned()).collect();
    words.pop();
    let status = Command::new("rsync")
        .args(["-a", "-e", &format!("ssh {}", words.join(" "))])
        .arg(format!("{}/", from.display()))
        .arg(format!("127.0.0.1:{}", to.display()))
        .status()
        .unwrap();
    assert!(status.success());
    assert_eq!(std::fs::read(to.join("file")).unwrap(), noise(1, 3 << 20));
}
