//! Program: who takes part in the pictures. A row per pair of programs, with command lines to be
//! filled in for each turn; what is installed is found, with its version.

use super::peer::Peer;
use crate::lab::Lab;
use anyhow::{Context, Result, ensure};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Which way the bytes go, seen from the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    Send,
    Receive,
}

/// What a program does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Runs a command at the other end, as ssh does.
    Command,
    /// The two are the ends of a pipe, as netcat's are.
    Pipe,
    /// Copies a file.
    Copy,
}

/// A pair of programs that is installed.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Program {
    pub(crate) name: String,
    /// Name and version, as pictures show it.
    pub(crate) label: String,
    pub(crate) kind: Kind,
    /// Command lines with places to fill in.
    pub(crate) client: String,
    pub(crate) server: String,
    /// Whether the server takes its connection from us rather than listen.
    pub(crate) inetd: bool,
}

/// What pictures are about without being told.
struct Row {
    name: &'static str,
    /// How it is shown, with the version in place of `{}`; else the version follows the name.
    shown: &'static str,
    kind: Kind,
    /// Programs that must be there; their paths are places to fill in.
    needs: &'static [&'static str],
    /// What prints the version.
    version: [&'static str; 2],
    client: &'static str,
    server: &'static str,
    inetd: bool,
}

const OURS: &str = "{lhsshd} -i -e -f {dir}/ours.conf {server_options}";
const STOCK: &str = "{sshd} -i -e -f {dir}/stock.conf -oCiphers={cipher} -oMACs={mac}";
/// It reads ~/.ssh/authorized_keys and nothing else: one is put there, for its eyes only.
const DROPBEAR: &str = "unshare -m sh -c 'mount --bind {dir}/dropbear {home}/.ssh && exec {dropbear} \
                        -i -s -r {dir}/host.dropbear'";

const fn pair(name: &'static str, needs: &'static [&'static str], server: &'static str) -> Row {
    let (kind, version) = (Kind::Command, ["ssh", "-V"]);
    Row { name, shown: "", kind, needs, version, client: "{ssh} {ssh_words}", server, inetd: true }
}

#[rustfmt::skip] // a table
const ROWS: &[Row] = &[
    Row { version: ["lhssh", "-V"], client: "{lhssh} {ssh_words}", ..pair("longhaul", &["lhssh", "lhsshd"], OURS) },
    Row { client: "{lhssh} {ssh_words}", ..pair("lhssh → OpenSSH", &["lhssh", "sshd", "ssh"], STOCK) },
    Row { shown: "OpenSSH {} → lhsshd", ..pair("OpenSSH → lhsshd", &["ssh", "lhsshd"], OURS) },
    pair("OpenSSH", &["ssh", "sshd"], STOCK),
    Row {
        client: "{hpnssh} {ssh_words}", version: ["hpnssh", "-V"],
        ..pair("HPN-SSH", &["hpnssh", "hpnsshd"], "{hpnsshd} -i -e -f {dir}/stock.conf {server_options}")
    },
    Row {
        client: "{dbclient} -y -y -T -p {port} -i {dir}/login.dropbear -l {user} -c {cipher} {host} {command}",
        version: ["dropbear", "-V"],
        ..pair("Dropbear", &["dbclient", "dropbear", "dropbearconvert", "unshare"], DROPBEAR)
    },
    Row {
        client: "{plink} -batch -ssh -T -P {port} -i {dir}/login.ppk -hostkey {fingerprint} -l {user} {host} {command}",
        version: ["plink", "-V"], shown: "PuTTY {} → OpenSSH",
        ..pair("PuTTY → OpenSSH", &["plink", "puttygen", "sshd"], STOCK)
    },
    Row {
        name: "netcat", shown: "", kind: Kind::Pipe, needs: &["nc"], version: ["nc", "-h"], inetd: false,
        client: "{nc} {nc_client} {host} {port}", server: "{nc} {nc_server} -l {host} {port}",
    },
];

#[rustfmt::skip] // a table
const COPIERS: &[Row] = &[
    copier("lhscp → lhsshd", "lhscp {} → lhsshd", &["lhscp", "lhsshd"], ["lhscp", "-V"], ["{lhscp}", "{lhsshd} {listen_ours}"]),
    copier("lhscp → OpenSSH", "", &["lhscp", "sshd", "ssh"], ["ssh", "-V"], ["{lhscp}", "{sshd} {listen_stock}"]),
    copier("scp", "", &["scp", "sshd", "ssh"], ["ssh", "-V"], ["{scp}", "{sshd} {listen_stock}"]),
];

const fn copier(
    name: &'static str,
    shown: &'static str,
    needs: &'static [&'static str],
    version: [&'static str; 2],
    [client, server]: [&'static str; 2],
) -> Row {
    Row { name, shown, kind: Kind::Copy, needs, version, client, server, inetd: false }
}

/// The places of a command line and what goes there.
pub(crate) type Places = BTreeMap<&'static str, String>;

/// Fills in a command line. What stands in a place may have places of its own.
pub(crate) fn fill(template: &str, places: &Places) -> String {
    let mut line = template.to_owned();
    for _ in 0..3 {
        for (name, value) in places {
            line = line.replace(&format!("{{{name}}}"), value);
        }
    }
    line
}

/// Everyone who is installed, and the paths of their programs; says who is not.
pub(crate) fn installed(lab: &Lab, lhscp: Option<&Path>, peers: &[Peer]) -> (Vec<Program>, Places) {
    let mut paths = Places::new();
    let mut found = Vec::new();
    for row in ROWS.iter().chain(COPIERS) {
        match row.find(lab, lhscp, &mut paths) {
            Ok(program) => found.push(program),
            Err(why) => eprintln!("lhbench: {} is left out: {why:#}", row.name),
        }
    }
    found.extend(peers.iter().map(Program::given));
    (found, paths)
}

impl Row {
    fn find(&self, lab: &Lab, lhscp: Option<&Path>, paths: &mut Places) -> Result<Program> {
        for &name in self.needs {
            let path = path_of(lab, lhscp, name).with_context(|| format!("no {name}"))?;
            paths.insert(name, path.display().to_string());
        }
        match self.name {
            "Dropbear" => dropbear_keys(lab)?,
            "PuTTY → OpenSSH" => putty_key(lab)?,
            _ => {}
        }
        let [program, flag] = self.version;
        let version = paths.get(program).and_then(|path| version(Path::new(path), flag));
        Ok(Program {
            name: self.name.to_owned(),
            label: self.label(version.as_deref().unwrap_or_default()),
            kind: self.kind,
            client: match self.kind {
                Kind::Copy => format!("{} {{copy_words}}", self.client),
                Kind::Command | Kind::Pipe => self.client.to_owned(),
            },
            server: self.server.to_owned(),
            inetd: self.inetd,
        })
    }
}

impl Row {
    /// The name with the version behind it, or where it belongs.
    fn label(&self, version: &str) -> String {
        let shown = if self.shown.is_empty() {
            format!("{} {{}}", self.name)
        } else {
            self.shown.to_owned()
        };
        shown.replace("{}", version).trim_end().to_owned()
    }
}

impl Program {
    fn given(peer: &Peer) -> Self {
        let word = peer.client.split_whitespace().next().unwrap_or_default();
        let version = version(Path::new(word), "-V").unwrap_or_default();
        Self {
            name: peer.name.clone(),
            label: format!("{} {version}", peer.name).trim_end().to_owned(),
            kind: if peer.runs_commands() { Kind::Command } else { Kind::Pipe },
            client: peer.client.clone(),
            server: peer.server.clone().unwrap_or_else(|| STOCK.to_owned()),
            inetd: peer.server.is_none(),
        }
    }

    /// Whether both ends take options in ssh's style, which the NONE cipher needs.
    pub(crate) fn takes_options(&self) -> bool {
        let client = ["{client_options}", "{ssh_words}"];
        client.iter().any(|place| self.client.contains(place))
            && self.server.contains("{server_options}")
    }

    /// Whether one of its command lines has a place of this name.
    pub(crate) fn takes(&self, place: &str) -> bool {
        let place = format!("{{{place}}}");
        [&self.client, &self.server]
            .into_iter()
            .any(|line| line.contains(&place) || line.contains("{ssh_words}"))
    }

    /// Who is not one of the table's.
    pub(crate) fn is_given(&self) -> bool {
        ROWS.iter().chain(COPIERS).all(|row| row.name != self.name)
    }
}

fn path_of(lab: &Lab, lhscp: Option<&Path>, name: &str) -> Option<PathBuf> {
    match name {
        "lhssh" => lab.lhssh.clone(),
        "lhsshd" => lab.lhsshd.clone(),
        "lhscp" => lhscp.map(Path::to_path_buf),
        _ => {
            let path = std::env::var_os("PATH")?;
            let more = ["/usr/sbin", "/usr/local/sbin"].map(PathBuf::from);
            let dirs = std::env::split_paths(&path).chain(more);
            dirs.map(|dir| dir.join(name)).find(|path| path.exists())
        }
    }
}

/// The first word with a number and a point in what a program says of itself.
fn version(program: &Path, flag: &str) -> Option<String> {
    let out = Command::new(program).arg(flag).output().ok()?;
    let text = [out.stdout, out.stderr].concat();
    number_in(&String::from_utf8_lossy(&text))
}

fn number_in(text: &str) -> Option<String> {
    let words = text.split([' ', '\n', ',', '_', '(', ')', '/']);
    let mut words = words.map(|word| word.trim_start_matches(|c: char| !c.is_ascii_digit()));
    words.find(|word| word.contains('.') && word.len() > 2).map(str::to_owned)
}

fn output(program: &str, args: &[&str]) -> Result<String> {
    let out = Command::new(program).args(args).output().with_context(|| program.to_owned())?;
    ensure!(out.status.success(), "{program}: {}", String::from_utf8_lossy(&out.stderr).trim());
    Ok(String::from_utf8_lossy(&out.stdout).into_owned())
}

/// Dropbear has a key format of its own, and its server is told of authorized_keys by a mount.
fn dropbear_keys(lab: &Lab) -> Result<()> {
    ensure!(lab.root, "its server needs a mount of its own, which needs root");
    let dir = lab.user_dir(&lab.user);
    for name in ["login", "host"] {
        let [from, to] = [dir.join(name), dir.join(format!("{name}.dropbear"))];
        let [from, to] = [from.display().to_string(), to.display().to_string()];
        output("dropbearconvert", &["openssh", "dropbear", &from, &to])?;
    }
    let own = dir.join("dropbear");
    std::fs::create_dir_all(&own)?;
    std::fs::copy(dir.join("authorized_keys"), own.join("authorized_keys"))?;
    output("chmod", &["-R", "go=", &own.display().to_string()])?;
    let home = nix::unistd::User::from_name(&lab.user)?.context("no home")?.dir;
    Ok(std::fs::create_dir_all(home.join(".ssh"))?)
}

fn putty_key(lab: &Lab) -> Result<()> {
    let key = lab.user_dir(&lab.user).join("login").display().to_string();
    output("puttygen", &[&key, "-o", &format!("{key}.ppk")]).map(drop)
}

/// The host key as plink is told of it.
pub(crate) fn fingerprint(lab: &Lab) -> Result<String> {
    let key = lab.user_dir(&lab.user).join("host.pub").display().to_string();
    let text = output("ssh-keygen", &["-l", "-f", &key])?;
    Ok(text.split_whitespace().nth(1).context("no fingerprint")?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_found_in_what_programs_say() {
        for (said, version) in [
            ("OpenSSH_9.2p1 Debian-2+deb12u10, OpenSSL 3.0.19", "9.2p1"),
            ("longhaul_0.1.0\n", "0.1.0"),
            ("Dropbear v2022.83", "2022.83"),
            ("plink: Release 0.78\nBuild platform", "0.78"),
            ("OpenBSD netcat (Debian patchlevel 1.219-1)", "1.219-1"),
        ] {
            assert_eq!(number_in(said).as_deref(), Some(version));
        }
        assert_eq!(number_in("no such option"), None);
    }

    #[test]
    fn places_within_places_are_filled_in() {
        let places = Places::from([("ssh", "ssh -p {port}".to_owned()), ("port", "22".to_owned())]);
        assert_eq!(fill("{ssh} host {other}", &places), "ssh -p 22 host {other}");
    }

    #[test]
    fn names_are_unique() {
        let mut names: Vec<_> = ROWS.iter().chain(COPIERS).map(|row| row.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), ROWS.len() + COPIERS.len());
    }
}
