//! Server: a real server on a free port of loopback, ended when the value is dropped.

use crate::lab::{KEY_TYPES, Lab, program};
use crate::need;
use anyhow::{Context, Result, bail, ensure};
use stand_ins::free_port;
use std::fs::{self, File};
use std::net::{Ipv4Addr, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How long it may take to log what has happened.
const SOON: Duration = Duration::from_secs(60);

/// Whose server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// lhsshd.
    Ours,
    /// OpenSSH's sshd.
    OpenSsh,
    /// Dropbear.
    Dropbear,
    /// A small server on asyncssh.
    Asyncssh,
    /// A small server on paramiko.
    Paramiko,
}

impl Kind {
    /// Whether it can run here; the test is skipped when not.
    pub fn available(self) -> bool {
        match self {
            Self::Ours => true,
            Self::OpenSsh => need::require(&["sshd", "ssh-keygen"]),
            Self::Dropbear => need::require(&["dropbear", "unshare"]) && need::require_mounts(),
            Self::Asyncssh | Self::Paramiko => {
                need::have(need::python().exists(), "scripts/venv was not run")
            }
        }
    }

    fn command(self, lab: &Lab, port: u16, config: &[&str]) -> Result<Command> {
        match self {
            Self::Ours => sshd(program("lhsshd")?, lab, port, config),
            Self::OpenSsh => sshd(
                need::find("sshd").context("sshd")?,
                lab,
                port,
                &[&["UsePAM no"], config].concat(),
            ),
            Self::Dropbear => dropbear(lab, port),
            Self::Asyncssh => Ok(python("asyncssh_server.py", lab, port)),
            Self::Paramiko => Ok(python("paramiko_server.py", lab, port)),
        }
    }
}

/// A running server.
pub struct Server {
    /// Whose it is.
    pub kind: Kind,
    /// Where it listens, on 127.0.0.1.
    pub port: u16,
    /// Its known_hosts line for every host key.
    pub known_hosts: PathBuf,
    log: PathBuf,
    command: Command,
    child: Child,
}

impl Server {
    /// Starts one; `config` are more lines for sshd_config, for the servers that have one.
    pub fn start(lab: &Lab, kind: Kind, config: &[&str]) -> Result<Self> {
        let port = free_port()?;
        let log = lab.path(&format!("server.{port}.log"));
        let mut command = kind.command(lab, port, config)?;
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(File::create(&log)?);
        let child = command.spawn().with_context(|| format!("{command:?}"))?;
        let known_hosts = lab.know_host(port)?;
        let mut server = Self { kind, port, known_hosts, log, command, child };
        server.wait_until_listening()?;
        Ok(server)
    }

    /// Kills it and all its sessions at once, as when its machine loses power.
    pub fn crash(&mut self) -> Result<()> {
        // Nothing may be born while the list is made.
        let listener = nix::unistd::Pid::from_raw(i32::try_from(self.pid())?);
        nix::sys::signal::kill(listener, nix::sys::signal::SIGSTOP)?;
        let mut all = vec![self.pid()];
        let mut seen = 0;
        while let Some(pid) = all.get(seen).copied() {
            all.extend(children(pid));
            seen += 1;
        }
        for pid in all {
            let pid = nix::unistd::Pid::from_raw(i32::try_from(pid)?);
            // A session may have ended meanwhile.
            let _ = nix::sys::signal::kill(pid, nix::sys::signal::SIGKILL);
        }
        self.child.wait()?;
        Ok(())
    }

    /// Starts it again, at the same port, after it has crashed.
    pub fn start_again(&mut self) -> Result<()> {
        self.child = self.command.spawn()?;
        self.wait_until_listening()
    }

    fn wait_until_listening(&mut self) -> Result<()> {
        let deadline = Instant::now() + Duration::from_secs(15);
        while Instant::now() < deadline {
            if let Some(status) = self.child.try_wait()? {
                bail!("{:?} server ended ({status}): {}", self.kind, self.log());
            }
            if TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).is_ok() {
                return Ok(());
            }
            sleep(Duration::from_millis(10));
        }
        bail!("{:?} server does not listen: {}", self.kind, self.log())
    }

    /// The configuration of a client within the test's own process.
    pub fn configuration(&self, lab: &Lab) -> Result<conf::Client> {
        let given = [
            ("Port", self.port.to_string()),
            ("IdentityFile", lab.key("user_ed25519").display().to_string()),
            ("UserKnownHostsFile", self.known_hosts.display().to_string()),
            ("GlobalKnownHostsFile", "/dev/null".to_owned()),
            ("IdentityAgent", "none".to_owned()),
            ("BatchMode", "yes".to_owned()),
        ];
        let given = given.map(|(keyword, value)| conf::Setting::given(keyword, &value));
        let (me, files) = (login::local_user()?, conf::client::Files::None);
        let loaded = conf::client::load("127.0.0.1", &given, &files, &login::supported(), &me)?;
        Ok(loaded.config)
    }

    /// All that it logged.
    pub fn whole_log(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// A line with `text` that it logs; it may do so after a client has gone.
    pub fn line(&self, text: &str) -> Result<String> {
        let deadline = Instant::now() + SOON;
        loop {
            let log = self.whole_log();
            if let Some(line) = log.lines().find(|line| line.contains(text)) {
                return Ok(line.to_owned());
            }
            ensure!(Instant::now() < deadline, "no {text:?} in the log: {}", self.log());
            sleep(Duration::from_millis(20));
        }
    }

    /// The end of what it logged.
    pub fn log(&self) -> String {
        let text = self.whole_log();
        let lines: Vec<&str> = text.lines().collect();
        lines.get(lines.len().saturating_sub(15)..).unwrap_or_default().join("\n")
    }

    /// The server's process, to signal it.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The processes that `pid` has started and not waited for.
fn children(pid: u32) -> Vec<u32> {
    let list = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect()
}

/// lhsshd takes sshd's command line and configuration, so one function starts either.
fn sshd(program: PathBuf, lab: &Lab, port: u16, more: &[&str]) -> Result<Command> {
    let mut text = format!(
        "ListenAddress 127.0.0.1\nPort {port}\nAuthorizedKeysFile {}\nStrictModes no\nPidFile none\n\
         PermitRootLogin yes\nPasswordAuthentication no\nMaxStartups 100\n",
        lab.path("authorized_keys").display()
    );
    for kind in KEY_TYPES {
        text += &format!("HostKey {}\n", lab.key(&format!("host_{}", kind.name)).display());
    }
    for line in more {
        text += &format!("{line}\n");
    }
    let config = lab.path(&format!("sshd_config.{port}"));
    fs::write(&config, text)?;
    let mut command = Command::new(program);
    command.args(["-D", "-e", "-f"]).arg(config);
    Ok(command)
}

/// Dropbear reads ~/.ssh/authorized_keys and nothing else, so it gets a mount namespace in which
/// ~/.ssh is the test's.
fn dropbear(lab: &Lab, port: u16) -> Result<Command> {
    let mine = lab.path("dropbear");
    fs::create_dir_all(&mine)?;
    fs::copy(lab.path("authorized_keys"), mine.join("authorized_keys"))?;
    let home = nix::unistd::User::from_uid(nix::unistd::geteuid())?.context("no user")?.dir;
    fs::create_dir_all(home.join(".ssh"))?;
    let script = "chmod 700 $1 && chmod 600 $1/authorized_keys && mount --bind $1 $2 && shift 2 && \
                  exec \"$@\"";
    let mut command = Command::new("unshare");
    command.args(["-m", "sh", "-c", script, "sh"]).arg(&mine).arg(home.join(".ssh"));
    command.arg(need::find("dropbear").context("dropbear")?).args(["-F", "-E", "-s", "-r"]);
    command.arg(lab.key("host_ed25519.dropbear")).arg("-P").arg(lab.path("dropbear.pid"));
    command.arg("-p").arg(format!("127.0.0.1:{port}"));
    Ok(command)
}

fn python(script: &str, lab: &Lab, port: u16) -> Command {
    let mut command = Command::new(need::python());
    command.arg(need::root().join("dev/interop/peers").join(script)).arg(port.to_string());
    command.arg(lab.key("host_ed25519")).arg(lab.path("authorized_keys"));
    command
}
