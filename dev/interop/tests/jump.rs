//! ProxyJump and `-W` through real servers: stock sshd, dropbear and ours, one hop and two; where
//! there is no way, one line says why.

use anyhow::{Context, Result, ensure};
use interop::lab::program;
use interop::run::{Input, Outcome, Output, run, wait};
use interop::{Kind, Lab, Server};
use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};
use std::thread::JoinHandle;
use std::time::Duration;

const SOON: Duration = Duration::from_secs(60);
const SIZE: u64 = 2 << 20;

/// Servers under names of a configuration file, as a user has them.
struct Net {
    lab: Lab,
    /// Name and server, kept running.
    hosts: Vec<(&'static str, Server)>,
}

impl Net {
    /// The servers `hosts`, each with lines for its own configuration.
    fn of(hosts: &[(&'static str, Kind, &[&str])]) -> Option<Self> {
        if !hosts.iter().all(|(_, kind, _)| kind.available()) {
            return None;
        }
        let lab = Lab::new().expect("lab");
        let start = |lines: &[&str], kind| Server::start(&lab, kind, lines).expect("server");
        let hosts = hosts.iter();
        let hosts = hosts.map(|&(name, kind, lines)| (name, start(lines, kind))).collect();
        let net = Self { lab, hosts };
        net.configure("").expect("configuration");
        Some(net)
    }

    /// A gate, and two hosts behind it, one stock and one ours.
    fn usual() -> Option<Self> {
        let sftp: &[&str] = &["Subsystem sftp internal-sftp"];
        Self::of(&[
            ("gate", Kind::OpenSsh, &[]),
            ("inner", Kind::OpenSsh, sftp),
            ("ours", Kind::Ours, sftp),
        ])
    }

    /// Writes the configuration file: `first`, a block for each host, and what holds for all.
    fn configure(&self, first: &str) -> Result<()> {
        let mut text = format!("{first}\n");
        for (name, Server { port, known_hosts, .. }) in &self.hosts {
            let known = known_hosts.display();
            text += &format!("Host {name}\nPort {port}\nUserKnownHostsFile {known}\n");
        }
        text += &format!(
            "Host nowhere\nPort 1\nHost *\nHostName 127.0.0.1\nBatchMode yes\nIdentityFile {}\n\
             GlobalKnownHostsFile /dev/null\nStrictHostKeyChecking yes\nIdentityAgent none\n",
            self.lab.key("user_ed25519").display()
        );
        Ok(fs::write(self.lab.path("config"), text)?)
    }

    /// `program` with the configuration file and `args`.
    fn command(&self, program: impl AsRef<std::ffi::OsStr>, args: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.arg("-F").arg(self.lab.path("config")).args(args);
        command.env_remove("SSH_AUTH_SOCK").env("HOME", self.lab.path(""));
        command
    }

    fn lhssh(&self, args: &[&str], input: Input) -> Result<Outcome> {
        run(self.command(program("lhssh")?, args), input, Output::Keep, SOON)
    }

    /// `SIZE` bytes there and back.
    fn echoes(&self, args: &[&str]) -> Result<()> {
        let args = [args, &["cat; exit 7"]].concat();
        let lhssh = self.command(program("lhssh")?, &args);
        let out = run(lhssh, Input::Stream(SIZE, 3), Output::Compare(SIZE, 3), SOON)?;
        ensure!(out.status == 7 && out.stderr.is_empty(), "{args:?}: {out:?}");
        Ok(())
    }

    /// One line with `words`, and exit code 255.
    fn fails(&self, args: &[&str], words: &str) -> Result<()> {
        let out = self.lhssh(args, Input::Held)?;
        ensure!(out.status == 255, "{args:?}: {out:?}");
        ensure!(out.stderr.lines().count() == 1, "{args:?}: {}", out.stderr);
        ensure!(out.stderr.contains(words), "{args:?}: {}", out.stderr);
        Ok(())
    }
}

#[test]
fn commands_run_behind_one_host_and_behind_two() -> Result<()> {
    let Some(net) = Net::usual() else { return Ok(()) };
    net.echoes(&["-J", "gate", "inner"])?;
    let args = ["-v", "-J", "gate,ssh://inner/", "ours", "cat; exit 7"];
    let lhssh = net.command(program("lhssh")?, &args);
    let out = run(lhssh, Input::Stream(SIZE, 3), Output::Compare(SIZE, 3), SOON)?;
    ensure!(out.status == 7, "{out:?}");
    let calls: Vec<_> =
        out.stderr.lines().filter_map(|l| l.split_once("jumping through ")).collect();
    let starts = |at: usize, start: &str| calls.get(at).is_some_and(|(_, c)| c.starts_with(start));
    ensure!(calls.len() == 2 && starts(0, "inner: lhssh -J gate "), "{}", out.stderr);
    ensure!(starts(1, "gate: lhssh -F "), "{}", out.stderr);
    Ok(())
}

/// Each host on the way has its own lines of the file, ProxyJump among them.
#[test]
fn the_file_says_how_every_host_is_reached() -> Result<()> {
    let Some(net) = Net::usual() else { return Ok(()) };
    net.configure("Host ours\nProxyJump inner\nHost inner\nProxyJump gate\nLocalForward 1 a:2")?;
    // The server's key is looked up under its own name and port, or its alias.
    let other = net.hosts[0].1.known_hosts.display().to_string();
    let known = format!("-oUserKnownHostsFile={other}");
    net.fails(&[&known, "ours", "true"], "host key")?;
    let alias = format!("-oHostKeyAlias=[127.0.0.1]:{}", net.hosts[0].1.port);
    net.echoes(&[&known, &alias, "ours"])
}

#[test]
fn dropbear_leads_on_as_well() -> Result<()> {
    let hosts: [(_, _, &[&str]); 2] = [("gate", Kind::Dropbear, &[]), ("ours", Kind::Ours, &[])];
    let Some(net) = Net::of(&hosts) else { return Ok(()) };
    net.echoes(&["-J", "gate", "ours"])
}

#[test]
fn ssh_takes_dash_w_for_its_proxy() -> Result<()> {
    let Some(net) = Net::usual() else { return Ok(()) };
    let config = net.lab.path("config");
    let (lhssh, config) = (program("lhssh")?.display().to_string(), config.display());
    let proxy = format!("-oProxyCommand={lhssh} -F {config} -W %h:%p gate");
    let ssh = net.command("ssh", &[&proxy, "inner", "cat; exit 7"]);
    let out = run(ssh, Input::Stream(SIZE, 3), Output::Compare(SIZE, 3), SOON)?;
    ensure!(out.status == 7, "{out:?}");
    Ok(())
}

#[test]
fn files_go_up_and_come_down_through_a_host_in_two_lanes() -> Result<()> {
    let Some(net) = Net::usual() else { return Ok(()) };
    let at = |name: &str| net.lab.path(name).display().to_string();
    let content: Vec<u8> = (0..SIZE).map(|n| (n * n / 251) as u8).collect();
    fs::write(at("file"), &content)?;
    let (up, down) = (format!("inner:{}", at("up")), format!("ours:{}", at("file")));
    for [from, to] in [[&at("file"), &up], [&down, &at("down")]] {
        let lhscp = net.command(program("lhscp")?, &["-q", "-n", "2", "-J", "gate", from, to]);
        let out = run(lhscp, Input::Empty, Output::Keep, SOON)?;
        ensure!(out.status == 0 && out.stderr.is_empty(), "{from}: {out:?}");
    }
    ensure!(fs::read(at("up"))? == content && fs::read(at("down"))? == content, "differs");
    let lhsftp = net.command(program("lhsftp")?, &["-b", "-", "-J", "gate", "ours"]);
    let get = format!("get {} {}", at("file"), at("got"));
    let out = run(lhsftp, Input::Bytes(get.into_bytes()), Output::Keep, SOON)?;
    ensure!(out.status == 0 && fs::read(at("got"))? == content, "{out:?}");
    Ok(())
}

#[test]
fn where_there_is_no_way_one_line_says_why() -> Result<()> {
    let hosts: [(_, _, &[&str]); 3] = [
        ("gate", Kind::OpenSsh, &[]),
        ("closed", Kind::OpenSsh, &["AllowTcpForwarding no"]),
        ("ours", Kind::Ours, &[]),
    ];
    let Some(net) = Net::of(&hosts) else { return Ok(()) };
    net.fails(&["-J", "nowhere", "ours", "true"], "connect to host 127.0.0.1 port 1: ")?;
    net.fails(&["-J", "gate", "nowhere", "true"], "gate does not connect to 127.0.0.1 port 1: ")?;
    net.fails(&["-J", "gate,nowhere,gate", "ours", "true"], "gate does not connect to 127.0.0.1")?;
    net.fails(&["-J", "closed", "ours", "true"], "administratively prohibited")?;
    net.fails(&["-W", "127.0.0.1:1", "closed"], "administratively prohibited")?;
    net.fails(&["-J", "ours", "gate", "true"], "ours does not connect to 127.0.0.1")?;
    net.configure("Host a\nProxyJump b\nHost b\nProxyJump a")?;
    net.fails(&["a", "true"], "is one reached through itself?")?;
    // What copies says so in a line of its own, after that of the jump.
    let lhscp = net.command(program("lhscp")?, &["-q", "-J", "closed", "ours:x", "."]);
    let out = run(lhscp, Input::Empty, Output::Keep, SOON)?;
    ensure!(out.status == 255 && out.stderr.contains("no connection through closed"), "{out:?}");
    Ok(())
}

/// A server for one connection.
fn serve(with: fn(std::net::TcpStream) -> std::io::Result<()>) -> Result<(String, JoinHandle<()>)> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let to = listener.local_addr()?.to_string();
    let serving = std::thread::spawn(move || {
        let (stream, _) = listener.accept().expect("accept");
        with(stream).expect("serve");
    });
    Ok((to, serving))
}

#[test]
fn dash_w_passes_the_end_of_either_side_on() -> Result<()> {
    let Some(net) = Net::of(&[("gate", Kind::OpenSsh, &[])]) else { return Ok(()) };
    // Ours first: all of it arrives, then the answer.
    let (to, serving) = serve(|mut stream| {
        let count = std::io::copy(&mut stream, &mut std::io::sink())?;
        stream.write_all(format!("{count} bytes").as_bytes())
    })?;
    let out = net.lhssh(&["-W", &to, "gate"], Input::Stream(SIZE, 3))?;
    ensure!(out.status == 0 && out.stdout == format!("{SIZE} bytes").as_bytes(), "{out:?}");
    serving.join().ok().context("server")?;
    // Theirs first: its reader sees the end, and what we send still arrives.
    let (to, serving) = serve(|mut stream| {
        stream.write_all(&[7; SIZE as usize])?;
        stream.shutdown(Shutdown::Write)?;
        let mut rest = String::new();
        stream.read_to_string(&mut rest)?;
        assert_eq!(rest, "the rest of an upload");
        Ok(())
    })?;
    let mut lhssh = net.command(program("lhssh")?, &["-W", &to, "gate"]);
    let mut lhssh = lhssh.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let mut came = Vec::new();
    lhssh.stdout.take().context("stdout")?.read_to_end(&mut came)?;
    lhssh.stdin.take().context("stdin")?.write_all(b"the rest of an upload")?;
    ensure!(wait(&mut lhssh, SOON)?.success() && came == [7; SIZE as usize]);
    serving.join().ok().context("server")?;
    // The server has ended it; a last word of ours has nowhere to go.
    let (to, serving) = serve(|stream| stream.shutdown(Shutdown::Both))?;
    let out = net.lhssh(&["-W", &to, "gate"], Input::Bytes(b"a last word".to_vec()))?;
    ensure!(out.status == 0 && out.stdout.is_empty(), "{out:?}");
    serving.join().ok().context("server")
}

/// A socket's end shows only when nobody holds it any more: whoever gave us one, as a jump has it,
/// waits for ours.
#[test]
fn dash_w_over_a_socket_ends_with_the_server() -> Result<()> {
    let Some(net) = Net::of(&[("gate", Kind::OpenSsh, &[])]) else { return Ok(()) };
    let (to, serving) = serve(|mut stream| {
        stream.write_all(b"all of it")?;
        stream.shutdown(Shutdown::Write)?;
        stream.read_to_end(&mut Vec::new()).map(drop)
    })?;
    let (mut ours, theirs) = UnixStream::pair()?;
    let mut lhssh = net.command(program("lhssh")?, &["-W", &to, "gate"]);
    lhssh.stdin(OwnedFd::from(theirs.try_clone()?)).stdout(OwnedFd::from(theirs));
    let mut running = lhssh.spawn()?;
    drop(lhssh);
    let mut came = Vec::new();
    ours.read_to_end(&mut came)?;
    ensure!(wait(&mut running, SOON)?.success() && came == b"all of it");
    serving.join().ok().context("server")
}

/// lhsftp goes on after a Ctrl-C, which the terminal sends to all that leads to its host; lhssh and
/// lhscp end with it, and so does what leads to theirs.
#[test]
fn only_lhsftp_keeps_interrupts_from_what_leads_to_its_host() -> Result<()> {
    let Some(net) = Net::usual() else { return Ok(()) };
    if !need::require(&["nc"]) {
        return Ok(());
    }
    let mask = net.lab.path("mask");
    let (port, mask) = (net.hosts.first().context("gate")?.1.port, mask.display());
    let script = net.lab.path("relay");
    let relay = format!("grep SigIgn /proc/$$/status >{mask}; exec nc 127.0.0.1 {port}\n");
    fs::write(&script, relay)?;
    net.configure(&format!("Host gate\nProxyCommand sh {}", script.display()))?;
    let ignored = || -> Result<bool> {
        let text = fs::read_to_string(net.lab.path("mask"))?;
        let bits = u64::from_str_radix(text.trim().trim_start_matches("SigIgn:").trim(), 16)?;
        fs::remove_file(net.lab.path("mask"))?;
        Ok(bits & 1 << 1 > 0)
    };
    net.echoes(&["gate"])?;
    let usual = ignored()?;
    net.echoes(&["-J", "gate", "inner"])?;
    ensure!(ignored()? == usual, "as our starter has it");
    // The gate itself serves no files, which is known only after it was reached.
    for (args, status) in [(&["gate"][..], 255), (&["-J", "gate", "inner"], 0)] {
        let lhsftp = net.command(program("lhsftp")?, &[&["-b", "-"], args].concat());
        let out = run(lhsftp, Input::Bytes(b"pwd\n".to_vec()), Output::Keep, SOON)?;
        ensure!(out.status == status && ignored()?, "{args:?}: {out:?}");
    }
    Ok(())
}
