//! System calls of the data path: at most two per 256 KiB, on each side, both ways.
//!
//! One side at a time runs under strace, so that the other one's pace is its own. A traced
//! receiver is slower, and so may take more at once, than one that is not. Measured are 0.7 to 2.0
//! calls per 256 KiB, start and login included; the client that writes to a pipe needs most.

use anyhow::{Context, Result, ensure};
use interop::{Lab, lab, need, run};
use std::fs::{self, File};
use std::io::Read;
use std::net::{Ipv4Addr, TcpListener};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// What passes.
const SIZE: u64 = 512 << 20;

/// Calls for this much.
const UNIT: u64 = 256 << 10;

/// Most calls per unit.
const CALLS: u64 = 2;

/// Starting, key exchange, login and end of one side.
const ALLOWANCE: u64 = 600;

const LIMIT: Duration = Duration::from_secs(120);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Client,
    Server,
}

/// `program`, under strace if it is the side that is counted.
fn command(program: &str, counted: bool, to: &Path) -> Result<Command> {
    let program = lab::program(program)?;
    if !counted {
        return Ok(Command::new(program));
    }
    let mut strace = Command::new("strace");
    strace.args(["-f", "-c", "-U", "calls,name", "-o"]).arg(to).arg(program);
    Ok(strace)
}

fn client(lab: &Lab, port: u16, counted: bool, to: &Path, subsystem: &str) -> Result<Command> {
    let mut client = command("lhssh", counted, to)?;
    client.args(["-F", "/dev/null", "-oBatchMode=yes", "-oStrictHostKeyChecking=yes"]);
    client.arg(format!("-oUserKnownHostsFile={}", lab.know_host(port)?.display()));
    client.arg("-oGlobalKnownHostsFile=/dev/null").arg("-i").arg(lab.key("user_ed25519"));
    client.args(["-p", &port.to_string(), "-s", "127.0.0.1", subsystem]);
    client.env_remove("SSH_AUTH_SOCK").env("HOME", lab.path(""));
    Ok(client)
}

/// A session as inetd starts it: the listener's own calls are not counted.
fn server(lab: &Lab, counted: bool, to: &Path) -> Result<Command> {
    let mut server = command("lhsshd", counted, to)?;
    server.args(["-i", "-e", "-f", "none", "-oTestSubsystems=yes", "-oStrictModes=no"]);
    server.arg(format!("-oHostKey={}", lab.key("host_ed25519").display()));
    server.arg(format!("-oAuthorizedKeysFile={}", lab.path("authorized_keys").display()));
    Ok(server)
}

/// Reads what the client of `zeros@longhaul` gets, as much at once as cat(1); then nobody wants more.
fn take(client: &mut Child) -> Result<()> {
    let mut from = client.stdout.take().context("stdout")?;
    let mut area = vec![0; 128 << 10];
    let mut left = usize::try_from(SIZE)?;
    while left > 0 {
        let most = left.min(area.len());
        let got = from.read(area.get_mut(..most).unwrap_or_default())?;
        ensure!(got > 0, "{left} bytes are missing");
        left -= got;
    }
    Ok(())
}

/// Moves [`SIZE`] bytes; the calls that `side` made.
fn calls(side: Side, subsystem: &str) -> Result<u64> {
    let lab = Lab::new()?;
    let counts = lab.path("counts");
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let port = listener.local_addr()?.port();
    let mut client = client(&lab, port, side == Side::Client, &counts, subsystem)?;
    let sends = subsystem.starts_with("discard");
    if sends {
        let data = File::create_new(lab.path("data"))?;
        data.set_len(SIZE)?;
        client.stdin(File::open(lab.path("data"))?).stdout(Stdio::null());
    } else {
        client.stdin(Stdio::null()).stdout(Stdio::piped());
    }
    let mut client = client.spawn()?;
    let connection = OwnedFd::from(listener.accept()?.0);
    let mut server = server(&lab, side == Side::Server, &counts)?;
    let log = File::create(lab.path("log"))?;
    let mut server =
        server.stdin(connection.try_clone()?).stdout(connection).stderr(log).spawn()?;
    if !sends {
        take(&mut client)?;
    }
    run::wait(&mut client, LIMIT)?;
    run::wait(&mut server, LIMIT)?;
    if sends {
        let log = fs::read_to_string(lab.path("log"))?;
        ensure!(log.contains(&format!(" bytes_in={SIZE} ")), "{log}");
    }
    total(&fs::read_to_string(&counts)?)
}

/// The last line of strace's table.
fn total(table: &str) -> Result<u64> {
    let line = table.lines().find(|line| line.ends_with("total"));
    let count = line.and_then(|line| line.split_whitespace().next());
    Ok(count.with_context(|| table.to_owned())?.parse()?)
}

#[test]
fn at_most_two_system_calls_per_256_kib() {
    if !need::require(&["strace"]) {
        return;
    }
    for subsystem in ["discard@longhaul", "zeros@longhaul"] {
        for side in [Side::Client, Side::Server] {
            let calls = calls(side, subsystem).unwrap();
            println!("{subsystem}, {side:?}: {calls} calls for {} units", SIZE / UNIT);
            assert!(
                calls <= CALLS * SIZE / UNIT + ALLOWANCE,
                "{subsystem}, {side:?}: {calls} calls for {} units",
                SIZE / UNIT
            );
        }
    }
}
