//! The client's configuration (ssh_config(5)): what governs one connection, and how its values are
//! expanded. `load` reads it.

mod criteria;
mod destination;
mod load;
mod missing;
mod proxy;
mod rows;

use crate::algorithms::{AlgorithmList, Kind, Supported};
use crate::choice::{AddressFamily, LogLevel, RequestTty, StrictHostKeyChecking};
use crate::error::Error;
use crate::expand::{self, Local, check_host, check_user};
use crate::field::{Lines, OrNone, Words};
use crate::value::{EnvPatterns, RekeyLimit, Size, Variables, Workers};
use proxy::{ProxyCommand, ProxyJump};
use std::path::PathBuf;
use std::time::Duration;

pub use destination::{Destination, Endpoint};
pub use load::{Files, load};
pub use proxy::Jump;
pub(crate) use rows::TABLE;

/// What governs one connection. Fields of plain type are final; paths and commands that may hold
/// tokens are read through the methods.
#[derive(Debug, Clone)]
pub struct Client {
    /// The host as the user named it.
    pub host: String,
    /// Who runs the program.
    pub local: Local,
    /// HostName: where to connect, checked and in lower case.
    pub host_name: String,
    /// User: name at the other end, checked.
    pub user: String,
    /// Port.
    pub port: u16,
    /// AddressFamily.
    pub address_family: AddressFamily,
    /// BindAddress: local address of the connection.
    pub bind_address: Option<String>,
    /// ConnectTimeout as it was written ([`Client::connect_limit`]).
    pub connect_timeout: OrNone<Duration>,
    /// ConnectionAttempts.
    pub connection_attempts: u32,
    /// HappyEyes: addresses race (RFC 8305).
    pub happy_eyes: bool,
    /// HappyDelay: milliseconds of silence after which the next address is tried.
    pub happy_delay: u32,
    /// UseMPTCP.
    pub use_mptcp: bool,
    /// Fallback: try FallbackPort when Port cannot be reached.
    pub fallback: bool,
    /// FallbackPort.
    pub fallback_port: u16,
    /// TCPKeepAlive.
    pub tcp_keep_alive: bool,
    /// ServerAliveInterval; zero is off.
    pub server_alive_interval: Duration,
    /// ServerAliveCountMax.
    pub server_alive_count_max: u32,
    /// Compression: payloads are compressed.
    pub compression: bool,
    /// PipelineRequests: the first channel is asked for together with the login.
    pub pipeline_requests: bool,
    /// BatchMode: never ask.
    pub batch_mode: bool,
    /// LogLevel.
    pub log_level: LogLevel,
    /// IdentitiesOnly.
    pub identities_only: bool,
    /// StrictHostKeyChecking.
    pub strict_host_key_checking: StrictHostKeyChecking,
    /// HashKnownHosts.
    pub hash_known_hosts: bool,
    /// HostKeyAlias: name to look the host's key up by.
    pub host_key_alias: Option<String>,
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
    /// RequestTTY.
    pub request_tty: RequestTty,
    /// StdinNull.
    pub stdin_null: bool,
    /// SendEnv.
    pub send_env: EnvPatterns,
    /// SetEnv.
    pub set_env: Variables,
    /// CryptoWorkers.
    pub crypto_workers: Workers,
    /// TcpRcvBuf.
    pub tcp_rcv_buf: Size,
    /// TcpSndBuf.
    pub tcp_snd_buf: Size,
    /// RemoteRcvBuf: what the server is asked for.
    pub remote_rcv_buf: Size,
    /// MaxSockBuf.
    pub max_sock_buf: Size,
    /// MaxWindow.
    pub max_window: Size,
    /// NoneEnabled, of the command line.
    pub none_enabled: bool,
    /// NoneSwitch, of the command line.
    pub none_switch: bool,
    /// NoneMacEnabled, of the command line.
    pub none_mac_enabled: bool,
    /// CongestionControl.
    pub congestion_control: Option<String>,
    /// Metrics.
    pub metrics: bool,
    /// MetricsInterval.
    pub metrics_interval: Duration,
    metrics_path: String,
    identity_file: Lines<String>,
    identity_agent: Option<String>,
    user_known_hosts_file: Words,
    global_known_hosts_file: Words,
    proxy_command: ProxyCommand,
    proxy_jump: ProxyJump,
    /// Which files it is from, for the hosts on the way.
    files: Files,
}

impl Client {
    pub(crate) fn new(host: &str, supported: &Supported, local: &Local) -> Self {
        let list = |kind| AlgorithmList::new(kind, supported);
        Self {
            host: host.to_owned(),
            local: local.clone(),
            host_name: "%h".to_owned(),
            user: local.user.clone(),
            port: 22,
            address_family: AddressFamily::Any,
            bind_address: None,
            connect_timeout: OrNone(None),
            connection_attempts: 1,
            happy_eyes: true,
            happy_delay: 250,
            use_mptcp: false,
            fallback: false,
            fallback_port: 22,
            tcp_keep_alive: true,
            server_alive_interval: Duration::ZERO,
            server_alive_count_max: 3,
            compression: false,
            pipeline_requests: true,
            batch_mode: false,
            log_level: LogLevel::Info,
            identities_only: false,
            strict_host_key_checking: StrictHostKeyChecking::Ask,
            hash_known_hosts: false,
            host_key_alias: None,
            ciphers: list(Kind::Cipher),
            macs: list(Kind::Mac),
            kex: list(Kind::Kex),
            host_key_algorithms: list(Kind::HostKey),
            pubkey_algorithms: list(Kind::UserKey),
            rekey_limit: RekeyLimit::default(),
            request_tty: RequestTty::Auto,
            stdin_null: false,
            send_env: EnvPatterns::default(),
            set_env: Variables::default(),
            crypto_workers: Workers::Auto,
            tcp_rcv_buf: Size::default(),
            tcp_snd_buf: Size::default(),
            remote_rcv_buf: Size::default(),
            max_sock_buf: Size::default(),
            max_window: Size::default(),
            none_enabled: false,
            none_switch: false,
            none_mac_enabled: false,
            congestion_control: None,
            metrics: false,
            metrics_interval: Duration::from_secs(5),
            metrics_path: "lhssh-metrics".to_owned(),
            identity_file: Lines::of(
                ["ed25519", "ecdsa", "rsa"].map(|kind| format!("~/.ssh/id_{kind}")),
            ),
            identity_agent: None,
            user_known_hosts_file: Words::of(&["~/.ssh/known_hosts", "~/.ssh/known_hosts2"]),
            global_known_hosts_file: Words::of(&[
                "/etc/ssh/ssh_known_hosts",
                "/etc/ssh/ssh_known_hosts2",
            ]),
            proxy_command: ProxyCommand::default(),
            proxy_jump: ProxyJump::default(),
            files: Files::Standard,
        }
    }

    /// Checks the names before anything is made of them.
    fn finish(mut self) -> Result<Self, Error> {
        self.host_name = self.resolved_host_name()?;
        check_host(&self.host_name)?;
        check_user(&self.user)?;
        if let Some(alias) = &self.host_key_alias {
            check_host(alias)?;
        }
        self.jump()?;
        Ok(self)
    }

    /// HostName with its token expanded, not checked yet.
    fn resolved_host_name(&self) -> Result<String, Error> {
        let expanded = expand::percent(&self.host_name, &[('h', &self.host)]);
        let expanded = expanded.map_err(|why| Error::Expansion("HostName", why))?;
        Ok(expanded.to_lowercase())
    }

    /// ConnectTimeout as a limit: neither `none` nor 0 is one, as with ssh.
    #[must_use]
    pub fn connect_limit(&self) -> Option<Duration> {
        self.connect_timeout.0.filter(|limit| !limit.is_zero())
    }

    /// The effective configuration as `-G` prints it.
    #[must_use]
    pub fn dump(&self) -> String {
        format!("host {}\n{}", self.host, TABLE.dump(self))
    }

    /// IdentityFile, expanded.
    ///
    /// # Errors
    /// An unknown token or variable.
    pub fn identity_files(&self) -> Result<Vec<PathBuf>, Error> {
        let files = self.identity_file.items().iter();
        let files = files.filter(|file| !file.eq_ignore_ascii_case("none"));
        files.map(|file| self.path("IdentityFile", file)).collect()
    }

    /// Whether the user named identity files, so that one that is missing deserves a message.
    #[must_use]
    pub fn identity_files_given(&self) -> bool {
        self.identity_file.is_given()
    }

    /// The agent's socket: IdentityAgent, else `SSH_AUTH_SOCK`.
    ///
    /// # Errors
    /// An unknown token or variable.
    pub fn agent_socket(&self) -> Result<Option<PathBuf>, Error> {
        let variable = |name| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
        match self.identity_agent.as_deref() {
            None | Some("SSH_AUTH_SOCK") => Ok(variable("SSH_AUTH_SOCK")),
            Some(none) if none.eq_ignore_ascii_case("none") => Ok(None),
            Some(text) => match text.strip_prefix('$').filter(|name| !name.starts_with('{')) {
                Some(name) => Ok(variable(name)),
                None => self.path("IdentityAgent", text).map(Some),
            },
        }
    }

    /// MetricsPath, expanded.
    ///
    /// # Errors
    /// An unknown token or variable.
    pub fn metrics_path(&self) -> Result<PathBuf, Error> {
        self.path("MetricsPath", &self.metrics_path)
    }

    /// UserKnownHostsFile, expanded; a new host's key is noted in the first.
    ///
    /// # Errors
    /// An unknown token or variable.
    pub fn user_known_hosts(&self) -> Result<Vec<PathBuf>, Error> {
        let files = self.user_known_hosts_file.0.iter();
        files.map(|file| self.path("UserKnownHostsFile", file)).collect()
    }

    /// GlobalKnownHostsFile. As in ssh(1), `~` is the user's home and nothing else is expanded.
    ///
    /// # Errors
    /// Another user's home.
    pub fn global_known_hosts(&self) -> Result<Vec<PathBuf>, Error> {
        let files = self.global_known_hosts_file.0.iter();
        let expanded = files.map(|file| expand::tilde(file, &self.local.home));
        let expanded: Result<_, _> = expanded.collect();
        expanded.map_err(|why| Error::Expansion("GlobalKnownHostsFile", why))
    }

    /// ProxyCommand with its tokens expanded, for the user's shell. All that is put in was checked.
    ///
    /// # Errors
    /// An unknown token.
    pub fn proxy_command(&self) -> Result<Option<String>, Error> {
        let port = self.port.to_string();
        let command = self.proxy_command.0.as_deref();
        let command = command.map(|text| expand::percent(text, &self.proxy_tokens(&port)));
        command.transpose().map_err(|why| Error::Expansion("ProxyCommand", why))
    }

    /// ProxyJump: how lhssh is called to reach the server through other hosts. There is no
    /// ProxyCommand then.
    ///
    /// # Errors
    /// An unknown token, a name that is refused, a host that is reached through itself.
    pub fn jump(&self) -> Result<Option<Jump>, Error> {
        self.proxy_jump.0.as_ref().map(|hops| hops.call(self)).transpose()
    }

    fn proxy_tokens<'a>(&'a self, port: &'a str) -> [(char, &'a str); 4] {
        [('h', &self.host_name), ('n', &self.host), ('p', port), ('r', &self.user)]
    }

    fn path(&self, keyword: &'static str, text: &str) -> Result<PathBuf, Error> {
        let home = self.local.home.to_string_lossy();
        let (port, uid) = (self.port.to_string(), self.local.uid.to_string());
        let tokens = [
            ('d', home.as_ref()),
            ('h', &self.host_name),
            ('i', &uid),
            ('k', self.host_key_alias.as_ref().unwrap_or(&self.host)),
            ('n', &self.host),
            ('p', &port),
            ('r', &self.user),
            ('u', &self.local.user),
        ];
        let path = expand::path(text, &tokens, &self.local.home);
        path.map_err(|why| Error::Expansion(keyword, why))
    }
}

#[cfg(test)]
mod tests;
