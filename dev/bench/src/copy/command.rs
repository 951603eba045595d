//! The command lines of a copy: the server that listens, and the program that copies.

use super::cases::{Program, Server, Way};
use super::peer::Peer;
use crate::lab::Lab;
use anyhow::{Context, Result};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

const CIPHER: &str = "aes128-gcm@openssh.com";
const SSHD: &str = "/usr/sbin/sshd";

/// What a turn needs to know besides its contender.
pub(crate) struct Order<'a> {
    pub(crate) way: Way,
    pub(crate) source: &'a Path,
    pub(crate) target: &'a Path,
    pub(crate) is_tree: bool,
    pub(crate) server: SocketAddr,
}

impl Order<'_> {
    /// Source and target, the remote one as scp writes it.
    fn ends(&self, lab: &Lab) -> [String; 2] {
        let host = format!("{}@{}", lab.user, self.server.ip());
        let [source, target] = [self.source, self.target].map(|path| path.display().to_string());
        match self.way {
            Way::Up => [source, format!("{host}:{target}")],
            Way::Down => [format!("{host}:{source}"), target],
        }
    }
}

/// What is missing for this, if anything.
pub(crate) fn missing(lab: &Lab, lhscp: Option<&Path>, who: &Who<'_>) -> Option<String> {
    let lacking = |path: &str| (!Path::new(path).exists()).then(|| path.to_owned());
    let server = match who.server() {
        Server::Ours => lab.lhsshd.is_none().then(|| "lhsshd".to_owned()),
        Server::Stock => lacking(SSHD),
    };
    server.or_else(|| match who {
        Who::Peer(_) => None,
        Who::Program(Program::Lhscp(_), _) => lhscp.is_none().then(|| "lhscp".to_owned()),
        Who::Program(Program::Scp, _) => lacking("/usr/bin/scp"),
        Who::Program(Program::Sftp, _) => lacking("/usr/bin/sftp"),
        Who::Program(Program::Rsync, _) => lacking("/usr/bin/rsync"),
        Who::Program(Program::Tar, _) => lacking("/usr/bin/tar"),
    })
}

/// Who copies: a program of the table, or one of the command line.
#[derive(Clone, Copy)]
pub(crate) enum Who<'a> {
    Program(Program, Server),
    Peer(&'a Peer),
}

impl Who<'_> {
    pub(crate) fn server(&self) -> Server {
        match self {
            Self::Program(_, server) => *server,
            Self::Peer(_) => Server::Stock,
        }
    }
}

/// A server that listens until it is told to end.
pub(crate) fn server(lab: &Lab, server: Server, address: SocketAddr) -> Result<Vec<String>> {
    let config = |whose: &str| lab.user_dir(&lab.user).join(format!("{whose}.conf"));
    let (program, config) = match server {
        Server::Ours => (lab.lhsshd.clone().context("lhsshd")?, config("ours")),
        Server::Stock => (PathBuf::from(SSHD), config("stock")),
    };
    let listen = format!("-oListenAddress={}:{}", address.ip(), address.port());
    let words = ["-D", "-e", "-f", &config.display().to_string(), &listen, "-oMaxStartups=100"];
    let subsystem = "-oSubsystem=sftp internal-sftp";
    Ok([program.display().to_string()]
        .into_iter()
        .chain(words.map(str::to_owned))
        .chain([subsystem.to_owned()])
        .collect())
}

/// The program that copies.
pub(crate) fn client(
    lab: &Lab,
    lhscp: Option<&Path>,
    who: &Who<'_>,
    order: &Order<'_>,
) -> Result<Vec<String>> {
    let config = ssh_config(lab, order.server.port())?;
    let [source, target] = order.ends(lab);
    let program = match who {
        Who::Peer(peer) => {
            return Ok(peer.command(lab, order.server.port(), &config, [&source, &target]));
        }
        Who::Program(program, _) => *program,
    };
    let recursive = if order.is_tree { "-rq" } else { "-q" };
    let ssh = format!("ssh -F {config}");
    Ok(match program {
        Program::Lhscp(more) => {
            let program = lhscp.context("lhscp")?.display().to_string();
            let more: Vec<_> = more.to_vec();
            words(
                &[
                    &[program.as_str(), recursive, "-F", &config],
                    more.as_slice(),
                    &[&source, &target],
                ]
                .concat(),
            )
        }
        Program::Scp => words(&["scp", recursive, "-F", &config, &source, &target]),
        Program::Sftp => sftp(&config, order),
        Program::Rsync => {
            words(&["rsync", "-rW", "--inplace", "-e", &ssh, &(source + slash(order)), &target])
        }
        Program::Tar => shell(&tar(&ssh, order)),
    })
}

/// rsync copies what is in a directory only if its name ends so.
fn slash(order: &Order<'_>) -> &'static str {
    if order.is_tree { "/" } else { "" }
}

fn sftp(config: &str, order: &Order<'_>) -> Vec<String> {
    let host = order.server.ip();
    let (source, target) = (order.source.display(), order.target.display());
    let verb = match (order.way, order.is_tree) {
        (Way::Up, false) => "put",
        (Way::Up, true) => "put -r",
        (Way::Down, false) => "get",
        (Way::Down, true) => "get -r",
    };
    shell(&format!("echo '{verb} {source} {target}' | sftp -q -b - -F {config} {host} >/dev/null"))
}

fn tar(ssh: &str, order: &Order<'_>) -> String {
    let host = order.server.ip();
    let (source, target) = (order.source.display(), order.target.display());
    let (pack, unpack) =
        (format!("tar -C {source} -cf - ."), format!("mkdir -p {target} && tar -C {target} -xf -"));
    match order.way {
        Way::Up => format!("{pack} | {ssh} {host} '{unpack}'"),
        Way::Down => format!("{ssh} {host} '{pack}' | ({unpack})"),
    }
}

/// A configuration that every client reads, ours included; gives its path.
fn ssh_config(lab: &Lab, port: u16) -> Result<String> {
    let dir = lab.user_dir(&lab.user);
    let text = format!(
        "Host *\nUser {}\nPort {port}\nIdentityFile {dir}/login\nIdentitiesOnly yes\n\
         UserKnownHostsFile {dir}/known_hosts\nGlobalKnownHostsFile /dev/null\n\
         StrictHostKeyChecking yes\nBatchMode yes\nCiphers {CIPHER}\n\
         KexAlgorithms curve25519-sha256\n",
        lab.user,
        dir = dir.display(),
    );
    let path = lab.path("ssh_config");
    std::fs::write(&path, text)?;
    Ok(path.display().to_string())
}

fn words(list: &[&str]) -> Vec<String> {
    list.iter().map(|word| (*word).to_owned()).collect()
}

fn shell(line: &str) -> Vec<String> {
    words(&["bash", "-o", "pipefail", "-c", line])
}
