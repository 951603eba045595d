//! The server's configuration: command line, then one file (sshd_config(5)). Called by the
//! listener when it starts and at SIGHUP.
//!
//! ```text
//! rows, missing   the keywords              criteria   what a Match line asks
//! (here)          files -> one struct       blocks     what Match blocks say of one connection
//! ```

mod blocks;
mod criteria;
mod missing;
mod rows;

use crate::algorithms::{AlgorithmList, Kind, Supported};
use crate::choice::{AddressFamily, Compression, LogLevel, UserEnvironment};
use crate::error::Error;
use crate::expand;
use crate::field::{Lines, OrNone, RestOfLine, Words};
use crate::file::{self, Item, Rules};
use crate::line::Setting;
use crate::row::{Loaded, Resolver};
use crate::value::{
    EnvPatterns, ListenAddresses, MaxStartups, RekeyLimit, Size, Subsystems, Variables, Workers,
};
use blocks::Blocks;
use criteria::Criterion;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub use criteria::Visitor;
pub(crate) use rows::TABLE;

/// Where the file is unless `-f` says otherwise: apart from that of the system's sshd.
pub const DEFAULT_FILE: &str = "/etc/longhaul/lhsshd_config";

/// What governs the server.
#[derive(Debug, Clone)]
pub struct Server {
    /// AddressFamily.
    pub address_family: AddressFamily,
    /// LogLevel.
    pub log_level: LogLevel,
    /// LoginGraceTime; zero is no limit.
    pub login_grace_time: Duration,
    /// MaxStartups.
    pub max_startups: MaxStartups,
    /// MaxAuthTries.
    pub max_auth_tries: u32,
    /// MaxSessions.
    pub max_sessions: u32,
    /// ClientAliveInterval; zero is off.
    pub client_alive_interval: Duration,
    /// ClientAliveCountMax.
    pub client_alive_count_max: u32,
    /// PubkeyAuthentication.
    pub pubkey_authentication: bool,
    /// StrictModes.
    pub strict_modes: bool,
    /// Subsystem.
    pub subsystems: Subsystems,
    /// AcceptEnv.
    pub accept_env: EnvPatterns,
    /// SetEnv.
    pub set_env: Variables,
    /// PermitUserEnvironment.
    pub permit_user_environment: UserEnvironment,
    /// PermitUserRC.
    pub permit_user_rc: bool,
    /// Ciphers.
    pub ciphers: AlgorithmList,
    /// MACs.
    pub macs: AlgorithmList,
    /// KexAlgorithms.
    pub kex: AlgorithmList,
    /// HostKeyAlgorithms.
    pub host_key_algorithms: AlgorithmList,
    /// PubkeyAcceptedAlgorithms.
    pub pubkey_algorithms: AlgorithmList,
    /// RekeyLimit.
    pub rekey_limit: RekeyLimit,
    /// UseDNS.
    pub use_dns: bool,
    /// TCPKeepAlive.
    pub tcp_keep_alive: bool,
    /// UseMPTCP.
    pub use_mptcp: bool,
    /// CryptoWorkers.
    pub crypto_workers: Workers,
    /// TcpRcvBuf.
    pub tcp_rcv_buf: Size,
    /// TcpSndBuf.
    pub tcp_snd_buf: Size,
    /// MaxSockBuf.
    pub max_sock_buf: Size,
    /// MaxWindow.
    pub max_window: Size,
    /// Compression, for clients that want it.
    pub compression: Compression,
    /// CongestionControl.
    pub congestion_control: Option<String>,
    /// NoneEnabled.
    pub none_enabled: bool,
    /// NoneMacEnabled.
    pub none_mac_enabled: bool,
    /// TestSubsystems.
    pub test_subsystems: bool,
    /// IdentifyAsOpenSSH.
    pub identify_as_openssh: bool,
    ports: Lines<u16>,
    listen_addresses: ListenAddresses,
    host_keys: Lines<String>,
    authorized_keys_file: Words,
    pid_file: OrNone<String>,
    banner: OrNone<String>,
    transfer_log: OrNone<String>,
    force_command: RestOfLine,
    blocks: Blocks,
}

/// Which file is read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum ConfigFile {
    /// [`DEFAULT_FILE`]; without it, the defaults.
    #[default]
    Standard,
    /// `-f file`: this one, which must exist.
    Only(PathBuf),
    /// `-f none`.
    None,
    /// The text of a file, as [`Server::to_text`] makes it.
    Text(String),
}

impl ConfigFile {
    /// What `-f` with this argument asks for.
    #[must_use]
    pub fn from_option(value: &Path) -> Self {
        match value.to_str() {
            Some("none") => Self::None,
            _ => Self::Only(value.to_owned()),
        }
    }
}

/// Reads the configuration; `given` are the settings of the command line, in order.
///
/// # Errors
/// A file that cannot be read, a line that is wrong or not supported.
pub fn load(
    given: &[Setting],
    file: &ConfigFile,
    supported: &Supported,
) -> Result<Loaded<Server>, Error> {
    let mut resolver = Resolver::new(&TABLE, supported, Server::new(supported));
    for setting in given {
        if setting.is("Match") {
            Criterion::read(setting)?; // refuses the command line
        }
        resolver.apply(setting, true)?;
    }
    let mut blocks = Blocks::default();
    walk(&mut resolver, &mut blocks, &read_file(file)?, None)?;
    let Resolver { mut config, notices, .. } = resolver;
    config.blocks = blocks;
    Ok(Loaded { config, notices })
}

fn read_file(file: &ConfigFile) -> Result<Vec<Item>, Error> {
    match file {
        ConfigFile::None => Ok(Vec::new()),
        ConfigFile::Text(text) => {
            file::parse(text, &"the configuration".into(), rules(Path::new("/")), 0)
        }
        ConfigFile::Standard => Ok(read(Path::new(DEFAULT_FILE))?.unwrap_or_default()),
        ConfigFile::Only(path) => {
            let absent = || io::Error::other("no such file");
            read(path)?.ok_or_else(|| Error::File(path.display().to_string(), absent()))
        }
    }
}

/// Relative Includes start where OpenSSH has them, so that its files load as they are.
fn read(path: &Path) -> Result<Option<Vec<Item>>, Error> {
    let ours = path.parent().filter(|dir| dir.ends_with("longhaul"));
    file::read(path, rules(ours.unwrap_or(Path::new("/etc/ssh"))))
}

fn rules(base: &Path) -> Rules<'_> {
    Rules { base, home: None, owner: None }
}

/// The settings of one file, under the conditions around it; its own blocks end with it.
fn walk(
    resolver: &mut Resolver<'_, Server>,
    blocks: &mut Blocks,
    items: &[Item],
    around: Option<&[Criterion]>,
) -> Result<(), Error> {
    let mut here = around.map(<[Criterion]>::to_vec);
    for item in items {
        match (item, &here) {
            (Item::Included(items), _) => walk(resolver, blocks, items, here.as_deref())?,
            (Item::Setting(line), _) if line.is("Match") => {
                let outer = around.unwrap_or_default().iter().cloned();
                here = Some(outer.chain(Criterion::read(line)?).collect());
            }
            (Item::Setting(setting), None) => resolver.apply(setting, true)?,
            (Item::Setting(setting), Some(criteria)) => {
                in_block(resolver, blocks, criteria, setting)?;
            }
        }
    }
    Ok(())
}

/// One setting of a Match block. After `Match all` everything may stand, as in sshd: it is how a
/// file ends its last block.
fn in_block(
    resolver: &mut Resolver<'_, Server>,
    blocks: &mut Blocks,
    criteria: &[Criterion],
    setting: &Setting,
) -> Result<(), Error> {
    if TABLE.is_for_match(&setting.keyword) {
        resolver.check(setting)?;
        if TABLE.has_row(&setting.keyword) {
            blocks.add(criteria, setting);
        }
        return Ok(());
    }
    resolver.apply(setting, criteria.is_empty())?;
    if criteria.is_empty() {
        return Ok(());
    }
    let why = format!("{} is not allowed within a Match block", setting.keyword);
    Err(Error::Line(setting.origin.clone(), why))
}

impl Server {
    pub(crate) fn new(supported: &Supported) -> Self {
        let list = |kind| AlgorithmList::new(kind, supported);
        Self {
            address_family: AddressFamily::Any,
            log_level: LogLevel::Info,
            login_grace_time: Duration::from_secs(120),
            max_startups: MaxStartups { start: 10, rate: 30, full: 100 },
            max_auth_tries: 6,
            max_sessions: 10,
            client_alive_interval: Duration::ZERO,
            client_alive_count_max: 3,
            pubkey_authentication: true,
            strict_modes: true,
            subsystems: Subsystems::default(),
            accept_env: EnvPatterns::default(),
            set_env: Variables::default(),
            permit_user_environment: UserEnvironment::No,
            permit_user_rc: true,
            ciphers: list(Kind::Cipher),
            macs: list(Kind::Mac),
            kex: list(Kind::Kex),
            host_key_algorithms: list(Kind::HostKey),
            pubkey_algorithms: list(Kind::UserKey),
            rekey_limit: RekeyLimit::default(),
            use_dns: false,
            tcp_keep_alive: true,
            use_mptcp: false,
            crypto_workers: Workers::Auto,
            tcp_rcv_buf: Size::default(),
            tcp_snd_buf: Size::default(),
            max_sock_buf: Size::default(),
            max_window: Size::default(),
            compression: Compression::Delayed,
            congestion_control: None,
            none_enabled: false,
            none_mac_enabled: false,
            test_subsystems: false,
            identify_as_openssh: false,
            ports: Lines::of([22]),
            listen_addresses: ListenAddresses::default(),
            host_keys: Lines::of(
                ["ed25519", "ecdsa", "rsa"]
                    .map(|kind| format!("/etc/longhaul/ssh_host_{kind}_key")),
            ),
            authorized_keys_file: Words::of(&[".ssh/authorized_keys", ".ssh/authorized_keys2"]),
            pid_file: OrNone(Some("/run/lhsshd.pid".to_owned())),
            banner: OrNone(None),
            transfer_log: OrNone(None),
            force_command: RestOfLine(None),
            blocks: Blocks::default(),
        }
    }

    /// The effective configuration as `-T` prints it.
    #[must_use]
    pub fn dump(&self) -> String {
        TABLE.dump(self)
    }

    /// The effective configuration as a file that reads back as it was: [`ConfigFile::Text`].
    #[must_use]
    pub fn to_text(&self) -> String {
        TABLE.write(self) + &self.blocks.text()
    }

    /// Where to listen: host (`None` is every address of the family) and port.
    #[must_use]
    pub fn listen(&self) -> Vec<(Option<&str>, u16)> {
        let ports = self.ports.items();
        let every = ports.iter().map(|&port| (None, port));
        match self.listen_addresses.0.as_slice() {
            [] => every.collect(),
            addresses => addresses
                .iter()
                .flat_map(|(host, port)| {
                    let ports = port.as_ref().map_or(ports, std::slice::from_ref);
                    ports.iter().map(move |&port| (Some(host.as_str()), port))
                })
                .collect(),
        }
    }

    /// HostKey.
    #[must_use]
    pub fn host_keys(&self) -> Vec<PathBuf> {
        self.host_keys.items().iter().filter(|f| f.as_str() != "none").map(PathBuf::from).collect()
    }

    /// Whether host keys were named, so that one that is missing deserves a message.
    #[must_use]
    pub fn host_keys_given(&self) -> bool {
        self.host_keys.is_given()
    }

    /// Leaves the host keys that `usable` says yes to.
    pub fn retain_host_keys(&mut self, mut usable: impl FnMut(&Path) -> bool) {
        self.host_keys.retain(|file| usable(Path::new(file)));
    }

    /// PidFile.
    #[must_use]
    pub fn pid_file(&self) -> Option<&Path> {
        self.pid_file.0.as_deref().map(Path::new)
    }

    /// ForceCommand.
    #[must_use]
    pub fn force_command(&self) -> Option<&str> {
        self.force_command.0.as_deref()
    }

    /// Banner: file whose text is sent before login.
    #[must_use]
    pub fn banner(&self) -> Option<&Path> {
        self.banner.0.as_deref().map(Path::new)
    }

    /// TransferLog.
    #[must_use]
    pub fn transfer_log(&self) -> Option<&Path> {
        self.transfer_log.0.as_deref().map(Path::new)
    }

    /// AuthorizedKeysFile for one user, expanded and absolute.
    ///
    /// # Errors
    /// An unknown token.
    pub fn authorized_keys_files(
        &self,
        user: &str,
        uid: u32,
        home: &Path,
    ) -> Result<Vec<PathBuf>, Error> {
        let (text, uid) = (home.to_string_lossy(), uid.to_string());
        let tokens = [('h', text.as_ref()), ('u', user), ('U', uid.as_str())];
        let expand = |file: &String| {
            let path = expand::percent(file, &tokens).map(|file| home.join(file));
            path.map_err(|why| Error::Expansion("AuthorizedKeysFile", why))
        };
        self.authorized_keys_file.0.iter().map(expand).collect()
    }
}

#[cfg(test)]
mod tests;
