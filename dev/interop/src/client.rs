//! Client: the command line of each real client, for one remote command.

use crate::lab::{Lab, program};
use crate::need;
use crate::server::Server;
use anyhow::Result;
use std::path::Path;
use std::process::Command;

/// Whose client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Client {
    /// lhssh.
    Ours,
    /// OpenSSH's ssh.
    OpenSsh,
    /// Dropbear's dbclient.
    Dbclient,
    /// PuTTY's plink.
    Plink,
    /// A small client on asyncssh.
    Asyncssh,
    /// A small client on paramiko.
    Paramiko,
}

impl Client {
    /// Whether it can run here; the test is skipped when not.
    pub fn available(self) -> bool {
        match self {
            Self::Ours => true,
            Self::OpenSsh => need::require(&["ssh"]),
            Self::Dbclient => need::require(&["dbclient"]),
            Self::Plink => need::require(&["plink", "puttygen"]),
            Self::Asyncssh | Self::Paramiko => {
                need::have(need::python().exists(), "scripts/venv was not run")
            }
        }
    }

    /// The client's command for `remote`, with the user key of type `key`. `args` are more words
    /// in ssh's style, for the clients that share it.
    pub fn command(
        self,
        lab: &Lab,
        server: &Server,
        key: &str,
        args: &[&str],
        remote: &str,
    ) -> Result<Command> {
        let port = server.port.to_string();
        let user = user()?;
        let mut command = match self {
            Self::Ours => ssh(&program("lhssh")?, lab, server, key),
            Self::OpenSsh => ssh(Path::new("ssh"), lab, server, key),
            Self::Dbclient => dbclient(lab, &port),
            Self::Plink => plink(lab, &port)?,
            Self::Asyncssh => python("asyncssh_client.py", lab, server),
            Self::Paramiko => python("paramiko_client.py", lab, server),
        };
        command.args(args);
        match self {
            Self::Asyncssh | Self::Paramiko => command.args([&user, remote]),
            _ => command.args(["-l", &user, "127.0.0.1", remote]),
        };
        // No agent, and no home directory whose files a client would read or write.
        command.env_remove("SSH_AUTH_SOCK").env("HOME", lab.path(""));
        Ok(command)
    }
}

fn user() -> Result<String> {
    let uid = nix::unistd::geteuid();
    Ok(nix::unistd::User::from_uid(uid)?.map_or_else(|| uid.to_string(), |user| user.name))
}

/// lhssh takes ssh's command line, so one function starts either.
fn ssh(program: &Path, lab: &Lab, server: &Server, key: &str) -> Command {
    let mut command = Command::new(program);
    command.args(["-F", "/dev/null", "-oBatchMode=yes", "-oStrictHostKeyChecking=yes"]);
    command.arg(format!("-oUserKnownHostsFile={}", server.known_hosts.display()));
    command.arg("-oGlobalKnownHostsFile=/dev/null").arg("-i").arg(lab.key(&format!("user_{key}")));
    command.arg("-p").arg(server.port.to_string());
    command
}

fn dbclient(lab: &Lab, port: &str) -> Command {
    let mut command = Command::new("dbclient");
    command.args(["-y", "-y", "-T", "-p", port, "-i"]).arg(lab.key("user_ed25519.dropbear"));
    command
}

fn plink(lab: &Lab, port: &str) -> Result<Command> {
    let mut command = Command::new("plink");
    command.args(["-batch", "-ssh", "-T", "-P", port, "-i"]).arg(lab.key("user_ed25519.ppk"));
    for kind in crate::lab::KEY_TYPES {
        command.args(["-hostkey", &lab.fingerprint(&format!("host_{}", kind.name))?]);
    }
    Ok(command)
}

fn python(script: &str, lab: &Lab, server: &Server) -> Command {
    let mut command = Command::new(need::python());
    command.arg(need::root().join("dev/interop/peers").join(script)).arg(server.port.to_string());
    command.arg(lab.key("user_ed25519")).arg(&server.known_hosts);
    command
}
