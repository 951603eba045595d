//! The command lines of a run: the client's, and the server's that waits for it.

use crate::cases::{Entrant, Side, Tool, Work};
use crate::lab::Lab;
use anyhow::{Context, Result};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// What one run needs to know besides its entrant.
pub(crate) struct Order<'a> {
    pub(crate) work: Work,
    pub(crate) cipher: &'a str,
    pub(crate) source: &'a Path,
    pub(crate) size: u64,
    pub(crate) user: &'a str,
    pub(crate) server: SocketAddr,
    pub(crate) congestion: Option<&'static str>,
}

/// One end: its words, and what is odd about it.
#[derive(Default)]
pub(crate) struct End {
    pub(crate) words: Vec<String>,
    /// The file that becomes stdin.
    pub(crate) stdin: Option<PathBuf>,
    /// The server takes its connection from us (inetd), rather than listen itself.
    pub(crate) inetd: bool,
}

const SSHD: &str = "/usr/sbin/sshd";

impl Work {
    /// What reads the source at one end, the same for every contender.
    fn reader(self, source: &Path) -> String {
        let file = source.display();
        match self {
            Self::PushPipe | Self::PullPipe => format!("dd if={file} bs=1M status=none"),
            _ => format!("cat {file}"),
        }
    }

    /// What takes the stream at the other.
    fn sink(self) -> &'static str {
        match self {
            Self::PushPipe | Self::PullPipe => "dd of=/dev/null bs=1M status=none",
            _ => "cat >/dev/null",
        }
    }
}

/// Whether what an entrant needs is installed; if not, what is missing.
pub(crate) fn missing(lab: &Lab, entrant: &Entrant) -> Option<String> {
    let ours = |side, path: &Option<PathBuf>, name: &str| {
        (side == Side::Ours && path.is_none()).then(|| name.to_owned())
    };
    let stock = |side, name: &str| (side == Side::Stock).then(|| lacking(name)).flatten();
    match entrant.tool {
        Tool::Ssh { client, server } => ours(client, &lab.lhssh, "lhssh")
            .or_else(|| ours(server, &lab.lhsshd, "lhsshd"))
            .or_else(|| stock(client, "/usr/bin/ssh"))
            .or_else(|| stock(server, SSHD)),
        Tool::Netcat => lacking("/usr/bin/nc"),
        Tool::Iperf => lacking("/usr/bin/iperf3"),
    }
}

fn lacking(program: &str) -> Option<String> {
    (!Path::new(program).exists()).then(|| program.to_owned())
}

/// The server of a run.
pub(crate) fn server(lab: &Lab, entrant: &Entrant, order: &Order<'_>) -> Result<End> {
    let port = order.server.port().to_string();
    let address = order.server.ip().to_string();
    let end = |words: Vec<String>| End { words, ..End::default() };
    Ok(match entrant.tool {
        Tool::Ssh { server, .. } => {
            End { inetd: true, ..end(sshd(lab, server, entrant, order.user)?) }
        }
        Tool::Iperf => end(words(&["iperf3", "-s", "-1", "-B", &address, "-p", &port])),
        Tool::Netcat if order.work.is_push() => {
            end(shell(&format!("nc -l {address} {port} | {}", order.work.sink())))
        }
        Tool::Netcat => {
            end(shell(&format!("{} | nc -N -l {address} {port}", order.work.reader(order.source))))
        }
    })
}

fn sshd(lab: &Lab, side: Side, entrant: &Entrant, user: &str) -> Result<Vec<String>> {
    let config =
        |whose: &str| lab.user_dir(user).join(format!("{whose}.conf")).display().to_string();
    if side == Side::Stock {
        return Ok(words(&[SSHD, "-i", "-e", "-f", &config("stock")]));
    }
    let program = lab.lhsshd.as_ref().context("lhsshd")?.display().to_string();
    let mut command = words(&[&program, "-i", "-e", "-f", &config("ours")]);
    command.extend(words(entrant.server_args));
    // lhsshd serves the user who runs it.
    Ok(if user == lab.user { command } else { [become_user(user), command].concat() })
}

fn become_user(user: &str) -> Vec<String> {
    let (uid, gid) = (format!("--reuid={user}"), format!("--regid={user}"));
    words(&["setpriv", &uid, &gid, "--init-groups", "--reset-env"])
}

/// The client of a run.
pub(crate) fn client(lab: &Lab, entrant: &Entrant, order: &Order<'_>) -> Result<End> {
    match entrant.tool {
        Tool::Ssh { client, .. } => ssh(lab, client, entrant, order),
        Tool::Netcat => Ok(netcat(order)),
        Tool::Iperf => Ok(iperf(entrant, order)),
    }
}

fn ssh(lab: &Lab, side: Side, entrant: &Entrant, order: &Order<'_>) -> Result<End> {
    let mut base = login(lab, side, order)?;
    if entrant.plain {
        base = [become_user(order.user), base].concat();
    }
    base.extend(words(entrant.args));
    let from_file = Some(order.source.to_path_buf());
    let (reader, sink) = (order.work.reader(order.source), order.work.sink());
    let lhbench = lab.lhbench.display();
    let remote = |text: &str| [base.clone(), vec![text.to_owned()]].concat();
    let (words, stdin) = match order.work {
        Work::PushFile => (remote(sink), from_file),
        Work::PullFile | Work::PullPipe => {
            (piped(&format!("\"$@\" | {sink}"), remote(&reader)), None)
        }
        Work::PushPipe => (piped(&format!("{reader} | \"$@\""), remote(sink)), None),
        Work::Discard => (subsystem(base, "discard@longhaul"), from_file),
        Work::Zeros => {
            // Who has taken enough ends the run, so the client's own exit status says nothing.
            let script = format!("set +o pipefail; \"$@\" | {lhbench} take {}", order.size);
            (piped(&script, subsystem(base, "zeros@longhaul")), None)
        }
        Work::KeysPush | Work::KeysPull | Work::FairPush | Work::FairPull => {
            (keystrokes(lab, side, &base, order), None)
        }
        Work::EarlyPush => (remote(&format!("{lhbench} early {}", order.size)), from_file),
        Work::EarlyPull => {
            let script = format!("set +o pipefail; \"$@\" | {lhbench} early {}", order.size);
            (piped(&script, remote(&reader)), None)
        }
        Work::Login => (remote("true"), None),
        Work::SlowPull => (remote(&reader), None),
        Work::SlowPush => (remote(&format!("{lhbench} throttle 1M")), from_file),
    };
    Ok(End { words, stdin, inetd: false })
}

/// An ssh client up to and including the host: no configuration files but ours.
fn login(lab: &Lab, side: Side, order: &Order<'_>) -> Result<Vec<String>> {
    let program = match side {
        Side::Ours => lab.lhssh.as_ref().context("lhssh")?.display().to_string(),
        Side::Stock => "/usr/bin/ssh".to_owned(),
    };
    let dir = lab.user_dir(order.user);
    let known = format!("-oUserKnownHostsFile={}", dir.join("known_hosts").display());
    let key = dir.join("login").display().to_string();
    let mut command = words(&[&program, "-F", "/dev/null", "-i", &key, &known]);
    command.extend(words(&["-oGlobalKnownHostsFile=/dev/null", "-oStrictHostKeyChecking=yes"]));
    command.extend(words(&["-oBatchMode=yes", "-oKexAlgorithms=curve25519-sha256"]));
    command.extend(words(&["-c", order.cipher, "-oMACs=hmac-sha2-256-etm@openssh.com"]));
    if let (Side::Ours, Some(name)) = (side, order.congestion) {
        command.push(format!("-oCongestionControl={name}"));
    }
    command.extend(words(&["-p", &order.server.port().to_string(), "-l", order.user]));
    command.push(order.server.ip().to_string());
    Ok(command)
}

/// `base` in this program's hands; ours runs in it, with the settings that `base` has for ssh.
fn keystrokes(lab: &Lab, side: Side, base: &[String], order: &Order<'_>) -> Vec<String> {
    let mut command = words(&[&lab.lhbench.display().to_string(), "keystrokes"]);
    if matches!(order.work, Work::KeysPull | Work::FairPull) {
        command.push("--pull".to_owned());
    }
    if order.work.is_fair() {
        command.extend(words(&["--bulk", "2", "--strokes", "100"]));
    }
    if side == Side::Stock {
        command.push("--stock".to_owned());
        return [command, words(&["--"]), base.to_vec()].concat();
    }
    let dir = lab.user_dir(order.user);
    let (key, known) = (dir.join("login"), dir.join("known_hosts"));
    command.push("--".to_owned());
    command.extend([
        format!("IdentityFile={}", key.display()),
        format!("UserKnownHostsFile={}", known.display()),
        format!("Ciphers={}", order.cipher),
        format!("Port={}", order.server.port()),
        format!("User={}", order.user),
    ]);
    command.extend(order.congestion.map(|name| format!("CongestionControl={name}")));
    command.extend(words(&["StrictHostKeyChecking=yes", "BatchMode=yes", "IdentityAgent=none"]));
    command.push(order.server.ip().to_string());
    command
}

/// `-s` goes before the host, which is the last word so far.
fn subsystem(mut base: Vec<String>, name: &str) -> Vec<String> {
    base.insert(base.len().saturating_sub(1), "-s".to_owned());
    base.push(name.to_owned());
    base
}

fn netcat(order: &Order<'_>) -> End {
    let (address, port) = (order.server.ip(), order.server.port());
    let file = order.source.display();
    let line = match order.work {
        Work::PushPipe => {
            format!("{} | nc -N {address} {port}", order.work.reader(order.source))
        }
        work if work.is_push() => format!("nc -N {address} {port} <{file}"),
        work => format!("nc -d {address} {port} | {}", work.sink()),
    };
    End { words: shell(&line), ..End::default() }
}

fn iperf(entrant: &Entrant, order: &Order<'_>) -> End {
    let (address, port) = (order.server.ip().to_string(), order.server.port().to_string());
    let size = order.size.to_string();
    let mut command = words(&["iperf3", "-c", &address, "-p", &port, "-n", &size, "-J"]);
    if !order.work.is_push() {
        command.push("-R".to_owned());
    }
    if let Some(name) = order.congestion {
        command.extend(words(&["-C", name]));
    }
    let source = order.source.display().to_string();
    command.extend(entrant.args.iter().map(|word| word.replace("{source}", &source)));
    End { words: command, ..End::default() }
}

fn words(list: &[&str]) -> Vec<String> {
    list.iter().map(|word| (*word).to_owned()).collect()
}

fn shell(line: &str) -> Vec<String> {
    words(&["bash", "-o", "pipefail", "-c", line])
}

/// `script` with `command` as its `"$@"`.
fn piped(script: &str, command: Vec<String>) -> Vec<String> {
    [shell(script), words(&["bash"]), command].concat()
}
