//! What limited a transfer, cause by cause: each is made to be the limit, on an emulated link or
//! by a throttled end, and `lhssh -v` must name it. Nothing depends on how fast this machine is:
//! every limit made here is far below what it can do. The links need root and /dev/net/tun.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use interop::lab::{Lab, program};
use interop::need;
use linkemu::{Link, Side, Spec};
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const PORT: u16 = 2222;

/// How long anything may take; nothing here is measured by it.
const PATIENCE: Duration = Duration::from_secs(30);

/// A server across a link, or on loopback. Sessions that a link takes with it, the client's last
/// packet among the rest, end by ClientAlive.
struct Site {
    lab: Lab,
    link: Option<Link>,
    at: SocketAddr,
    servers: Vec<Child>,
}

impl Site {
    fn over(spec: Spec) -> Option<Self> {
        let at = SocketAddr::from((spec.addresses[1], PORT));
        match Link::up(spec) {
            Ok(link) => {
                Some(Self { lab: Lab::new().unwrap(), link: Some(link), at, servers: vec![] })
            }
            Err(error @ (linkemu::Error::NotPermitted | linkemu::Error::NoTun)) => {
                need::have(false, &error.to_string());
                None
            }
            Err(error) => panic!("{error}"),
        }
    }

    fn local() -> Self {
        let port = stand_ins::free_port().unwrap();
        let at = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        Self { lab: Lab::new().unwrap(), link: None, at, servers: vec![] }
    }

    /// Another server at the far end, on a port of its own, with these lines in its configuration.
    fn serve(&mut self, lines: &str) {
        // In namespaces of its own, every port is free.
        let next = match self.link {
            Some(_) => self.at.port() + 1,
            None => stand_ins::free_port().unwrap(),
        };
        self.at.set_port(next);
        let (ip, port) = (self.at.ip(), self.at.port());
        let config = self.lab.path(&format!("config.{port}"));
        let keys = self.lab.path("authorized_keys");
        let text = format!(
            "ListenAddress {ip}\nPort {port}\nAuthorizedKeysFile {}\nStrictModes no\nPidFile none\n\
             HostKey {}\nTestSubsystems yes\nUseDNS no\n\
             ClientAliveInterval 2\nClientAliveCountMax 2\n{lines}\n",
            keys.display(),
            self.lab.key("host_ed25519").display()
        );
        fs::write(&config, text).unwrap();
        let mut command = Command::new(program("lhsshd").unwrap());
        command.args(["-D", "-e", "-f"]).arg(config).stdin(Stdio::null());
        command.stderr(File::create(self.lab.path(&format!("log.{port}"))).unwrap());
        let child = match &self.link {
            Some(link) => link.exec_in_b(&mut command).unwrap(),
            None => command.spawn().unwrap(),
        };
        self.servers.push(child);
        let deadline = Instant::now() + PATIENCE;
        while self.connect().is_err() {
            assert!(Instant::now() < deadline, "the server does not listen: {}", self.log());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn connect(&self) -> std::io::Result<TcpStream> {
        match &self.link {
            Some(link) => link.run_in(Side::A, || TcpStream::connect(self.at)),
            None => TcpStream::connect(self.at),
        }
    }

    fn log(&self) -> String {
        let path = self.lab.path(&format!("log.{}", self.at.port()));
        fs::read_to_string(path).unwrap_or_default()
    }

    /// `lhssh` with these arguments before the host's name.
    fn lhssh(&self, args: &[&str]) -> Command {
        let mut command = Command::new(program("lhssh").unwrap());
        command.args(["-F", "none", "-oBatchMode=yes", "-oStrictHostKeyChecking=no"]);
        command.args(["-oUserKnownHostsFile=/dev/null", "-oGlobalKnownHostsFile=/dev/null"]);
        command.arg("-i").arg(self.lab.key("user_ed25519"));
        command.args(["-p", &self.at.port().to_string()]).args(args);
        command.arg(self.at.ip().to_string());
        command.env_remove("SSH_AUTH_SOCK").env("HOME", self.lab.path(""));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn spawn(&self, mut command: Command) -> Child {
        match &self.link {
            Some(link) => link.exec_in_a(&mut command).unwrap(),
            None => command.spawn().unwrap(),
        }
    }

    /// What limited, by `lhssh -v`, after this much was sent to `cat >/dev/null`.
    fn push(&self, args: &[&str], bytes: usize) -> String {
        self.transfer(args, "cat >/dev/null", bytes)
    }

    /// The same after this much was received.
    fn pull(&self, args: &[&str], bytes: usize) -> String {
        self.transfer(args, &format!("head -c {bytes} /dev/zero"), 0)
    }

    fn transfer(&self, args: &[&str], command: &str, input: usize) -> String {
        let mut ssh = self.lhssh(&[&["-v"], args].concat());
        let mut child = self.spawn({
            ssh.arg(command).stdin(Stdio::piped()).stdout(Stdio::null());
            ssh
        });
        let mut stdin = child.stdin.take().unwrap();
        let writer = std::thread::spawn(move || stdin.write_all(&vec![0; input]));
        let said = ended(child);
        writer.join().unwrap().unwrap();
        limit(&said, &self.log())
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        for server in &mut self.servers {
            let _ = server.kill();
            let _ = server.wait();
        }
    }
}

/// What a child said on standard error, after it ended well.
fn ended(mut child: Child) -> String {
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert!(child.wait().unwrap().success(), "{said}");
    said
}

/// The line of `-v`.
fn limit(said: &str, log: &str) -> String {
    let line = said.lines().find_map(|line| line.strip_prefix("debug1: limited by: "));
    line.unwrap_or_else(|| panic!("no limit in {said}\n{log}")).to_owned()
}

fn link(rate: u64) -> Spec {
    let rate = Some(rate);
    Spec { rtt: Duration::from_millis(50), rate, rate_back: rate, ..Spec::default() }
}

/// Ten times what any of the limits below lets through.
const WIDE: u64 = 400_000_000;

#[test]
fn windows_and_buffers_are_named_with_their_sizes() {
    let Some(mut site) = Site::over(link(WIDE)) else { return };
    site.serve("MaxWindow 256K");
    let said = site.push(&[], 5 << 20);
    assert!(said.starts_with("the peer's 256.0 KiB channel window"), "{said}");
    site.serve("");
    let said = site.pull(&["-oMaxWindow=256K"], 5 << 20);
    assert!(said.starts_with("our channel window of 256.0 KiB"), "{said}");
    let said = site.push(&["-oTcpSndBuf=64K"], 3 << 20);
    assert!(said.starts_with("the TCP send buffer here"), "{said}");
    let said = site.pull(&["-oTcpRcvBuf=64K"], 3 << 20);
    assert!(said.starts_with("the TCP receive buffer here"), "{said}");
    site.serve("TcpRcvBuf 64K");
    let said = site.push(&[], 3 << 20);
    assert!(said.starts_with("the TCP receive buffer at the other end"), "{said}");
}

#[test]
fn a_path_that_is_full_or_loses_is_named() {
    let Some(mut site) = Site::over(link(20_000_000)) else { return };
    site.serve("");
    let said = site.push(&[], 8 << 20);
    assert!(said.starts_with("the path, which carries no more"), "{said}");
    drop(site);
    let spec = Spec { loss: 0.01, cc: Some("cubic".to_owned()), ..link(WIDE) };
    let Some(mut site) = Site::over(spec) else { return };
    site.serve("");
    let said = site.push(&[], 4 << 20);
    assert!(said.starts_with("packet loss on the path"), "{said}");
}

#[test]
fn slow_producers_and_consumers_are_named_wherever_they_are() {
    let mut site = Site::local();
    site.serve("MaxWindow 256K");
    // Here, in: a writer that sleeps.
    let mut ssh = site.lhssh(&["-v"]);
    ssh.arg("cat >/dev/null").stdin(Stdio::piped());
    let mut child = site.spawn(ssh);
    let mut stdin = child.stdin.take().unwrap();
    for _ in 0..20 {
        stdin.write_all(&[0; 16 << 10]).unwrap();
        std::thread::sleep(Duration::from_millis(100));
    }
    drop(stdin);
    let said = limit(&ended(child), &site.log());
    assert!(said.starts_with("a slow producer here"), "{said}");
    // There, in: a reader that sleeps.
    let slow = "i=0; while [ $i -lt 24 ]; do head -c 131072 | wc -c; sleep 0.15; i=$((i+1)); done";
    let said = site.transfer(&[], slow, 3 << 20);
    assert!(said.starts_with("a slow consumer at the other end"), "{said}");
    // Here, out: a reader that sleeps.
    let mut ssh = site.lhssh(&["-v", "-oMaxWindow=256K"]);
    ssh.arg("head -c 3145728 /dev/zero");
    let mut child = site.spawn(ssh);
    let mut stdout = child.stdout.take().unwrap();
    let mut piece = vec![0; 128 << 10];
    while stdout.read_exact(&mut piece).is_ok() {
        std::thread::sleep(Duration::from_millis(100));
    }
    let said = limit(&ended(child), &site.log());
    assert!(said.starts_with("a slow consumer here"), "{said}");
}

/// Compression is work for one core: of what does not compress the end that sends has nearly all.
#[test]
fn the_core_that_compresses_is_named() {
    let mut site = Site::local();
    site.serve("");
    let noise = site.lab.path("noise");
    interop::stream::make(&mut File::create(&noise).unwrap(), 64 << 20, 7).unwrap();
    let mut ssh = site.lhssh(&["-v", "-C"]);
    ssh.arg("cat >/dev/null").stdin(File::open(&noise).unwrap());
    let said = limit(&ended(site.spawn(ssh)), &site.log());
    assert!(said.starts_with("one core here"), "{said}");
}

/// `--explain` knows from the other end's figures what from here is only "the other end".
#[test]
fn explaining_tells_the_cause_and_the_setting() {
    let Some(mut site) = Site::over(link(WIDE)) else { return };
    site.serve("TcpSndBuf 64K\nMaxWindow 256K");
    let output = site.spawn(site.lhssh(&["--explain=1"])).wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}{errors}{}", site.log());
    let (down, up) = said.split_once("\nto ").unwrap_or_else(|| panic!("{said}"));
    assert!(down.contains("limited by: the TCP send buffer at the other end"), "{said}");
    assert!(down.contains("net.ipv4.tcp_wmem"), "{said}");
    assert!(up.contains("limited by: the peer's 256.0 KiB channel window"), "{said}");
    assert!(up.contains("raise MaxWindow in the server's configuration"), "{said}");
    assert!(said.contains("longhaul_") && said.contains("round trip 5"), "{said}");
}

/// Against a server that is not ours, and has no test subsystems.
#[test]
fn explaining_needs_nothing_at_the_other_end() {
    if !need::require(&["sshd"]) {
        return;
    }
    let mut site = Site::local();
    site.at.set_port(stand_ins::free_port().unwrap());
    let lab = Lab::new().unwrap();
    let server = interop::Server::start(&lab, interop::Kind::OpenSsh, &[]).unwrap();
    site.at.set_port(server.port);
    let clear = ["-oNoneEnabled=yes", "-oNoneSwitch=yes"];
    let output = site.lhssh(&["--explain=2"]).args(clear).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}{errors}");
    // N7: what is not granted is told.
    assert!(errors.contains("not for --explain; the session stays encrypted"), "{errors}");
    assert!(said.starts_with("127.0.0.1: OpenSSH_"), "{said}");
    assert_eq!(said.matches("limited by: ").count(), 2, "{said}");
}

/// Effect of Metrics, MetricsInterval and MetricsPath: rows of both ends as time goes by.
#[test]
fn metrics_of_both_ends_are_written_as_time_goes_by() {
    let mut site = Site::local();
    site.serve("");
    let path = site.lab.path("m");
    let setting = format!("-oMetricsPath={}", path.display());
    let mut ssh = site.lhssh(&["-oMetrics=yes", "-oMetricsInterval=1", &setting]);
    ssh.arg("head -c 1048576 /dev/zero; sleep 3").stdout(Stdio::null());
    assert!(ssh.status().unwrap().success(), "{}", site.log());
    for end in ["local", "remote"] {
        let text = fs::read_to_string(site.lab.path(&format!("m.{end}.csv"))).unwrap();
        let mut lines = text.lines();
        let names: Vec<_> = lines.next().unwrap().split(',').collect();
        let rows: Vec<Vec<&str>> = lines.map(|line| line.split(',').collect()).collect();
        assert!(rows.len() >= 3, "{end}: {text}");
        assert!(rows.iter().all(|row| row.len() == names.len()), "{end}: {text}");
        let column = |name| names.iter().position(|known| *known == name).unwrap();
        let last = rows.last().unwrap();
        let moved = if end == "local" { "data_received" } else { "data_sent" };
        assert_eq!(last[column(moved)], "1048576", "{end}: {text}");
        assert!(last[column("rtt_us")].parse::<u64>().unwrap() > 0, "{end}: {text}");
        assert!(!last[column("congestion")].is_empty(), "{end}: {text}");
    }
    assert!(!Path::new("lhssh-metrics.local.csv").exists());
    let quiet = site.lhssh(&[&setting.replace("/m", "/n")]).arg("true").status().unwrap();
    assert!(quiet.success() && !site.lab.path("n.local.csv").exists(), "only with Metrics");
}

/// The figures at the end with `-v`, and on SIGUSR1 while it runs.
#[test]
fn figures_are_told_at_the_end_and_when_a_signal_asks() {
    let mut site = Site::local();
    site.serve("");
    let mut ssh = site.lhssh(&["-v"]);
    ssh.arg("echo ready; cat >/dev/null").stdin(Stdio::piped());
    let mut child = site.spawn(ssh);
    let mut stdin = child.stdin.take().unwrap();
    let mut stdout = child.stdout.take().unwrap();
    stdout.read_exact(&mut [0; 6]).unwrap();
    stdin.write_all(&vec![0; 1 << 20]).unwrap();
    let pid = nix::unistd::Pid::from_raw(child.id().cast_signed());
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGUSR1).unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    let told = |line: &String| line.starts_with("lhssh: transfer: server=longhaul_");
    assert!(lines.any(|line| told(&line)), "it ended without figures");
    drop(stdin);
    let said = lines.collect::<Vec<_>>().join("\n");
    assert!(child.wait().unwrap().success(), "{said}");
    let last = said.lines().find(|line| line.starts_with("debug1: transfer: ")).unwrap();
    for part in ["cipher_out=", " mac_in=", " bytes_out=1048576 ", " bytes_in=6 ", " rtt_ms="] {
        assert!(last.contains(part), "{part} in {last}");
    }
}
