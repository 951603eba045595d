//! The listener: how it starts, counts, starts anew and ends, and what sessions cannot do to it.
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use common::{
    LHSSHD, Server, Site, children, is_alive, kill, read_all, stderr, stdout, until, user,
};
use stand_ins::free_port;
use std::fs::{Permissions, set_permissions};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::process::{Command, Output, Stdio};

/// Invariant D5: killing, stopping or crashing a session touches nobody else.
#[test]
fn d5_a_killed_session_touches_neither_the_listener_nor_others() {
    let server = Server::start(&[]);
    let mut other = server.ssh(&[], "cat").stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = other.stdin.take().unwrap();
    let mut stdout_of_other = other.stdout.take().unwrap();
    let mut echo = |text: &[u8]| {
        stdin.write_all(text).unwrap();
        let mut back = vec![0; text.len()];
        stdout_of_other.read_exact(&mut back).unwrap();
        assert_eq!(back, text);
    };
    echo(b"before");
    let first = server.sessions();
    for signal in ["KILL", "ABRT", "SYS"] {
        until("the others to end", || server.sessions() == first, || server.log());
        let mut victim = server.ssh(&[], "sleep 100").spawn().unwrap();
        let session = || server.sessions().into_iter().find(|pid| !first.contains(pid));
        let mut found = None;
        let mut is_there = || {
            found = session().filter(|pid| !children(*pid).is_empty());
            found.is_some()
        };
        until("a session", &mut is_there, || server.log());
        kill(signal, found.unwrap());
        assert_eq!(victim.wait().unwrap().code(), Some(255));
        server.wait_for_log(&format!("was killed by SIG{signal}"));
        echo(b"between");
        server.assert_serves();
    }
    // One that has not logged in, too.
    until("the others to end", || server.sessions() == first, || server.log());
    let silent = server.connect();
    until("a session", || server.sessions().len() > first.len(), || server.log());
    let young = server.sessions().into_iter().find(|pid| !first.contains(pid)).unwrap();
    // By a signal that has no name.
    kill("34", young);
    read_all(&silent);
    server.wait_for_log(&format!("session {young} was killed by signal 34"));
    let is_reaped = || !std::path::Path::new(&format!("/proc/{young}")).exists();
    until("its end", is_reaped, || server.log());
    echo(b"after");
    drop(stdin);
    assert!(other.wait().unwrap().success());
}

/// Effect of PidFile (D6).
#[test]
fn sigterm_ends_the_listener_and_no_session() {
    let mut server = Server::start(&[]);
    let pid = server.child.id().to_string();
    // Written once it listens, which is what was waited for.
    until("the PidFile", || server.site.text("pid").trim() == pid, || server.log());
    let mut ssh = server.ssh(&[], "echo ready; cat").stdin(Stdio::piped()).spawn().unwrap();
    let mut ready = [0; 6];
    ssh.stdout.as_mut().unwrap().read_exact(&mut ready).unwrap();
    server.signal("TERM");
    assert_eq!(server.child.wait().unwrap().code(), Some(0));
    assert!(!server.site.path("pid").exists());
    assert!(TcpStream::connect(("127.0.0.1", server.site.port)).is_err());
    ssh.stdin.take().unwrap().write_all(b"still here").unwrap();
    assert_eq!(read_all(ssh.stdout.take().unwrap()), b"still here");
    assert!(ssh.wait().unwrap().success());
}

/// Effect of PidFile (D6).
#[test]
fn without_a_pid_file_none_is_written() {
    let site = Site::new();
    let log = std::fs::File::create(site.path("log")).unwrap();
    let mut command = site.lhsshd(&["PidFile=none"]);
    command.arg("-D").current_dir(site.path("")).stderr(log);
    let child = command.spawn().unwrap();
    let mut server = Server { site, child };
    server.wait_for_log("Server listening on");
    server.assert_serves();
    for name in ["none", "pid"] {
        assert!(!server.site.path(name).exists(), "{name}");
    }
    server.signal("TERM");
    assert_eq!(server.child.wait().unwrap().code(), Some(0));
    assert!(!server.log().contains("PidFile"), "{}", server.log());
}

#[test]
fn sighup_reads_the_configuration_anew_and_ends_no_session() {
    let site = Site::new();
    let file = site.path("config");
    std::fs::write(&file, "SetEnv WHICH=first\n").unwrap();
    let log = std::fs::File::create(site.path("log")).unwrap();
    let mut command = site.lhsshd(&[]);
    let child = command.arg("-D").arg("-f").arg(&file).stderr(log).spawn().unwrap();
    let server = Server { site, child };
    server.wait_for_log("Server listening");
    let mut old = server.ssh(&[], "cat; echo $WHICH").stdin(Stdio::piped()).spawn().unwrap();
    old.stdin.as_mut().unwrap().write_all(b"x").unwrap();
    let mut x = [0];
    old.stdout.as_mut().unwrap().read_exact(&mut x).unwrap();
    std::fs::write(&file, "SetEnv WHICH=second\n").unwrap();
    assert_eq!(stdout(&server.run("echo $WHICH")), "first\n", "not before it is told to");
    for _ in 0..3 {
        server.signal("HUP");
    }
    let restarts = || server.log().matches("Server listening").count();
    until("a restart", || restarts() >= 2, || server.log());
    until(
        "the second configuration",
        || stdout(&server.run("echo $WHICH")) == "second\n",
        || server.log(),
    );
    let same = server.child.id().to_string();
    until("the same process", || server.site.text("pid").trim() == same, || server.log());
    drop(old.stdin.take());
    assert_eq!(read_all(old.stdout.take().unwrap()), b"first\n");
    assert!(old.wait().unwrap().success());
    // One that cannot start again leaves nobody's number behind.
    let mut server = server;
    std::fs::write(&file, "Nonsense\n").unwrap();
    server.signal("HUP");
    assert!(!server.child.wait().unwrap().success());
    assert!(!server.site.path("pid").exists());
}

/// After SIGHUP nobody reads the standard error of a server that has a log.
#[test]
fn warnings_go_to_the_log_at_the_start_and_after_sighup() {
    let site = Site::new();
    let errors = std::fs::File::create(site.path("errors")).unwrap();
    let mut command = site.lhsshd(&["UsePAM=yes"]);
    let missing = format!("HostKey={}", site.path("missing").display());
    command.args(["-D", "-o", &missing, "-E"]).arg(site.path("log"));
    let child = command.stderr(errors).spawn().unwrap();
    let server = Server { site, child };
    for times in 1..=3 {
        let listens = || server.log().matches("Server listening").count() == times;
        until("a start", listens, || server.log());
        for what in ["UsePAM is not supported yet", "missing: No such file"] {
            let lines: Vec<_> =
                server.log().lines().filter(|l| l.contains(what)).map(str::to_owned).collect();
            assert_eq!(lines.len(), times, "{lines:?}");
            let prefix = format!("lhsshd[{}]: ", server.child.id());
            assert!(lines.iter().all(|line| line.starts_with(&prefix)), "{lines:?}");
        }
        server.signal("HUP");
    }
    assert_eq!(server.site.text("errors"), "");
}

/// A file that was broken after the start breaks nothing.
#[test]
fn sessions_get_the_configuration_that_the_listener_has() {
    let site = Site::new();
    let file = site.path("config");
    std::fs::write(&file, "SetEnv WHICH=good\n").unwrap();
    let log = std::fs::File::create(site.path("log")).unwrap();
    let child = site.lhsshd(&[]).arg("-D").arg("-f").arg(&file).stderr(log).spawn().unwrap();
    let server = Server { site, child };
    server.wait_for_log("Server listening");
    std::fs::write(&file, "Nonsense\n").unwrap();
    assert_eq!(stdout(&server.run("echo $WHICH")), "good\n");
}

/// One that ends early may lack what restricts: the listener was killed while it wrote.
#[test]
fn a_session_without_a_whole_configuration_serves_nobody() {
    for part in ["", "Port 22\n"] {
        let (mut listener, of_listener) = UnixStream::pair().unwrap();
        let (client, of_client) = UnixStream::pair().unwrap();
        let mut session = Command::new(LHSSHD);
        session.arg("--session").stdin(OwnedFd::from(of_client)).stdout(OwnedFd::from(of_listener));
        let mut child = session.stderr(Stdio::null()).spawn().unwrap();
        drop(session);
        client.set_read_timeout(Some(common::PATIENCE)).unwrap();
        listener.write_all(part.as_bytes()).unwrap();
        drop(listener);
        assert_eq!(read_all(client), b"", "{part:?}");
        assert_eq!(child.wait().unwrap().code(), Some(255));
    }
}

/// Effect of MaxStartups (D6): connections that have not logged in count, others do not.
#[test]
fn at_max_startups_new_connections_are_dropped() {
    let server = Server::start(&["MaxStartups=2"]);
    let mut ssh = server.ssh(&[], "echo ready; cat").stdin(Stdio::piped()).spawn().unwrap();
    let mut ready = [0; 6];
    ssh.stdout.as_mut().unwrap().read_exact(&mut ready).unwrap();
    let mut silent = [server.connect(), server.connect()];
    for stream in &mut silent {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
    }
    assert_eq!(read_all(server.connect()), b"", "dropped without a word");
    server.wait_for_log("drop connection #2 from 127.0.0.1 port ");
    drop(silent);
    until("room again", || server.run("true").status.success(), || server.log());
    drop(ssh.stdin.take());
    assert!(ssh.wait().unwrap().success());
}

/// Effect of MaxSessions (D6).
#[test]
fn more_sessions_than_allowed_are_refused() {
    let server = Server::start(&["MaxSessions=2"]);
    let socket = server.site.path("mux");
    let path = format!("ControlPath={}", socket.display());
    let mut master =
        server.ssh(&[&path, "ControlMaster=yes"], "cat").stdin(Stdio::piped()).spawn().unwrap();
    until("the master's socket", || socket.exists(), || server.log());
    let mux = |command: &str| {
        let mut ssh = server.ssh(&[&path, "ControlMaster=no", "ProxyCommand=false"], command);
        ssh.stdin(Stdio::piped()).spawn().unwrap()
    };
    let mut second = mux("echo second; cat");
    let mut text = [0; 7];
    second.stdout.as_mut().unwrap().read_exact(&mut text).unwrap();
    let third = mux("echo third").wait_with_output().unwrap();
    assert!(!third.status.success());
    assert_eq!(stdout(&third), "");
    drop(second.stdin.take());
    assert!(second.wait().unwrap().success());
    let again = mux("echo again").wait_with_output().unwrap();
    assert_eq!(stdout(&again), "again\n", "{}", stderr(&again));
    drop(master.stdin.take());
    master.wait().unwrap();
}

#[test]
fn inetd_mode_serves_on_two_pipes() {
    let site = Site::new();
    let mut inetd = site.lhsshd(&[]);
    inetd.arg("-i").arg("-E").arg(site.path("log"));
    let proxy = format!("ProxyCommand={}", words(&inetd));
    let mut ssh = site.ssh_to(&[&proxy]);
    let output = ssh.arg("echo in; echo $SSH_CONNECTION; exit 5").output().unwrap();
    let text = format!("{}\n{}", stderr(&output), site.text("log"));
    assert_eq!(stdout(&output), "in\nUNKNOWN 65535 UNKNOWN 65535\n", "{text}");
    assert_eq!(output.status.code(), Some(5));
}

#[test]
fn inetd_mode_serves_on_a_socket() {
    let site = Site::new();
    let listener = std::net::TcpListener::bind(("127.0.0.1", site.port)).unwrap();
    let mut ssh = site.ssh_to(&[]).arg("echo $SSH_CLIENT").spawn().unwrap();
    let (stream, peer) = listener.accept().unwrap();
    let mut inetd = site.lhsshd(&[]);
    inetd.arg("-i").arg("-E").arg(site.path("log"));
    let mut server = inetd.stdin(OwnedFd::from(stream)).spawn().unwrap();
    let text = read_all(ssh.stdout.take().unwrap());
    assert_eq!(
        String::from_utf8_lossy(&text),
        format!("127.0.0.1 {} {}\n", peer.port(), site.port),
        "{}",
        site.text("log")
    );
    assert!(ssh.wait().unwrap().success());
    server.wait().unwrap();
}

#[test]
fn without_d_it_leaves_the_foreground_once_it_listens() {
    let site = Site::new();
    let mut command = site.lhsshd(&[]);
    let output = command.arg("-E").arg(site.path("log")).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let pid: u32 = site.text("pid").trim().parse().unwrap();
    let output = site.ssh_to(&[]).arg("echo in").output().unwrap();
    assert_eq!(stdout(&output), "in\n", "{}", site.text("log"));
    let ids =
        Command::new("ps").args(["-o", "sid=,tty=", "-p", &pid.to_string()]).output().unwrap();
    assert_eq!(stdout(&ids).split_whitespace().collect::<Vec<_>>(), [&pid.to_string(), "?"]);
    kill("HUP", pid);
    let listening = || site.text("log").matches("Server listening").count();
    until("a restart", || listening() == 2, || site.text("log"));
    kill("TERM", pid);
    until("the end", || !is_alive(pid), || site.text("log"));
    assert!(!site.path("pid").exists());
}

/// To upgrade is to replace the file and to send SIGHUP.
#[test]
fn sighup_runs_the_program_that_is_installed_by_then() {
    let site = Site::new();
    let dir = site.path("").canonicalize().unwrap();
    let program = dir.join("lhsshd");
    // By another process: one that this test forks meanwhile would keep the file open for writing.
    let install = || {
        let mut sh = Command::new("sh");
        sh.args(["-c", "cp \"$0\" new && mv new lhsshd", LHSSHD]).current_dir(&dir);
        assert!(sh.status().unwrap().success());
    };
    install();
    let mut command = Command::new(&program);
    command.args(site.lhsshd(&[]).get_args()).arg("-E").arg(site.path("log"));
    assert!(command.status().unwrap().success(), "{}", site.text("log"));
    let pid: u32 = site.text("pid").trim().parse().unwrap();
    let runs = || std::fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
    let listens =
        |times| until("a start", || starts(&site.text("log")) == times, || site.text("log"));
    assert_eq!(runs(), program);
    install();
    assert_ne!(runs(), program, "an old one");
    kill("HUP", pid);
    listens(2);
    assert_eq!(runs(), program);
    std::fs::remove_file(&program).unwrap();
    kill("HUP", pid);
    // Not installed any more: it goes on as it is.
    listens(3);
    kill("TERM", pid);
    until("the end", || !is_alive(pid), || site.text("log"));
}

fn starts(log: &str) -> usize {
    log.matches("Server listening").count()
}

#[test]
fn a_detached_listener_that_cannot_listen_says_so_to_its_starter() {
    let server = Server::start(&[]);
    let output = server.site.lhsshd(&[]).output().unwrap();
    assert_eq!(output.status.code(), Some(255));
    let text = stderr(&output);
    assert!(text.contains("lhsshd: cannot listen on any address"), "{text}");
}

#[test]
fn debug_mode_serves_one_connection_in_one_process() {
    let site = Site::new();
    let mut command = site.lhsshd(&[]);
    let mut child = command.arg("-d").stderr(Stdio::piped()).spawn().unwrap();
    let mut log = std::io::BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    std::io::BufRead::read_line(&mut log, &mut line).unwrap();
    assert!(line.contains("Server listening"), "{line}");
    let output = site.ssh_to(&[]).arg("echo $PPID").output().unwrap();
    assert_eq!(stdout(&output).trim(), child.id().to_string());
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let rest = String::from_utf8(read_all(log)).unwrap();
    assert!(rest.contains("Accepted publickey"), "{rest}");
}

/// Effect of Port and ListenAddress (D6).
#[test]
fn it_listens_where_it_is_told_to() {
    let site = Site::new();
    let more = [free_port().unwrap(), free_port().unwrap()];
    let ports = more.map(|port| format!("ListenAddress=127.0.0.1:{port}"));
    let server = site.serve(&[&ports[0], &ports[1]]);
    for port in [more[0], more[1], server.site.port] {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        let mut start = [0; 4];
        stream.read_exact(&mut start).unwrap();
        assert_eq!(&start, b"SSH-");
    }
    let port = free_port().unwrap();
    let site = Site::new();
    let plain = format!("Port={port}");
    let mut command = Command::new(LHSSHD);
    command.args([
        "-D",
        "-f",
        "none",
        "-o",
        &plain,
        "-o",
        "PidFile=none",
        "-o",
        "AddressFamily=inet",
    ]);
    command.arg("-h").arg(site.path("host_key"));
    let log = std::fs::File::create(site.path("log")).unwrap();
    let child = command.stderr(log).spawn().unwrap();
    let server = Server { site, child };
    server.wait_for_log(&format!("Server listening on 0.0.0.0 port {port}."));
    assert!(!server.log().contains("listening on ::"));
}

fn run(command: &mut Command) -> (Option<i32>, String, String) {
    let output: Output = command.output().unwrap();
    (output.status.code(), stdout(&output), stderr(&output))
}

#[test]
fn tests_of_the_configuration_say_what_is_wrong() {
    let site = Site::new();
    assert_eq!(run(site.lhsshd(&[]).arg("-t")), (Some(0), String::new(), String::new()));
    let (code, dump, _) = run(site.lhsshd(&["MaxAuthTries=4"]).arg("-T"));
    assert_eq!(code, Some(0));
    assert!(dump.contains("\nmaxauthtries 4\n"), "{dump}");

    let file = site.path("config");
    std::fs::write(&file, "\nPort twenty\n").unwrap();
    let (code, _, text) = run(Command::new(LHSSHD).arg("-t").arg("-f").arg(&file));
    assert_eq!(code, Some(255));
    assert_eq!(text.lines().count(), 1, "{text}");
    assert!(text.starts_with("lhsshd: ") && text.contains("config line 2: "), "{text}");
    let (code, _, text) = run(Command::new(LHSSHD).args(["-t", "-f", "/no/such/file"]));
    assert_eq!(code, Some(255));
    assert!(text.starts_with("lhsshd: /no/such/file: "), "{text}");
    let (code, _, _) = run(Command::new(LHSSHD).arg("-Z"));
    assert_eq!(code, Some(1));
}

/// Effect of HostKey (D6).
#[test]
fn host_keys_that_cannot_be_used_are_passed_over_and_none_is_fatal() {
    let site = Site::new();
    let missing = format!("HostKey={}", site.path("missing").display());
    let server = site.serve(&[&missing]);
    server.assert_serves();
    assert!(server.log().contains("missing: No such file"), "{}", server.log());

    let site = Site::new();
    set_permissions(site.path("host_key"), Permissions::from_mode(0o644)).unwrap();
    let (code, _, text) = run(site.lhsshd(&[]).arg("-D"));
    assert_eq!(code, Some(255));
    assert!(text.contains("permissions 0644 are too open"), "{text}");
    assert!(text.contains("no host keys available"), "{text}");

    let site = Site::new();
    let cut = site.text("host_key");
    std::fs::write(site.path("host_key"), &cut[..cut.len() / 2]).unwrap();
    let (code, _, text) = run(site.lhsshd(&[]).arg("-t"));
    assert_eq!(code, Some(255));
    assert!(text.lines().all(|line| line.starts_with("lhsshd: ")), "{text}");
}

/// A client that prefers its type would get no further.
#[test]
fn a_host_key_that_cannot_sign_is_not_offered() {
    let site = Site::new();
    let locked = site.path("locked");
    let mut keygen = Command::new("ssh-keygen");
    keygen.args(["-q", "-t", "ecdsa", "-N", "secret", "-f"]).arg(&locked);
    assert!(keygen.status().unwrap().success());
    let setting = format!("HostKey={}", locked.display());
    let inetd = site.lhsshd(&[&setting, "LogLevel=ERROR"]);
    let server = site.serve(&[&setting]);
    let prefers = "HostKeyAlgorithms=ecdsa-sha2-nistp256,ssh-ed25519";
    let output = server.ssh(&[prefers], "echo in").output().unwrap();
    assert_eq!(stdout(&output), "in\n", "{}\n{}", stderr(&output), server.log());
    assert!(server.log().contains("locked: the key is encrypted"), "{}", server.log());
    let proxy = format!("ProxyCommand={} -i -e", words(&inetd));
    let output = server.ssh(&[prefers, &proxy], "echo in").output().unwrap();
    assert_eq!(stdout(&output), "in\n", "{}", stderr(&output));
}

/// A command as a shell reads it.
fn words(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let quoted: Vec<_> = words.map(|word| format!("'{}'", word.to_string_lossy())).collect();
    quoted.join(" ")
}

/// Root's server serves root; see also `a9_another_user_is_denied_like_a_wrong_key`.
#[test]
fn commands_run_as_the_user_the_server_runs_as() {
    let server = Server::start(&[]);
    assert_eq!(stdout(&server.run("id -un")).trim(), user());
}
