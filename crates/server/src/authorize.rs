//! Who may log in by which key: the user this server runs as, by the lines of AuthorizedKeysFile.
//!
//! Another name gets the same reply after the same work as a key that is in no file (A9): the
//! files are read and searched in either case, and only then is the name looked at.

use crate::account::Account;
use crate::endpoint::Endpoints;
use crate::hostname::HostName;
use crate::log::Log;
use crate::modes;
use anyhow::{Result, bail};
use conf::Server;
use keys::authorized_keys::{self, Entry, Options};
use keys::{PublicKey, SigAlg};
use proto::auth::{Decision, Policy};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

/// What a login by key comes with: from the line of the key that signed, and no other (A4).
pub(crate) struct Granted {
    pub(crate) options: Options,
    pub(crate) key: PublicKey,
}

/// The policy of one connection.
pub(crate) struct KeyFiles {
    account: Arc<Account>,
    config: Arc<Server>,
    ends: Endpoints,
    log: Arc<Log>,
    /// The client's name, where `UseDNS` asks for it.
    hostname: Option<HostName>,
    /// Lines that were complained of.
    told: Vec<(PathBuf, usize)>,
}

impl KeyFiles {
    /// The policy for a client at the other end of `ends`, whose `hostname` is asked for already.
    pub(crate) fn new(
        account: Arc<Account>,
        config: Arc<Server>,
        ends: Endpoints,
        log: Arc<Log>,
        hostname: Option<HostName>,
    ) -> Self {
        Self { account, config, ends, log, hostname, told: Vec::new() }
    }

    /// What the first line that lets the key in allows.
    fn search(&mut self, key: &PublicKey) -> Option<Options> {
        let Account { name, uid, home, .. } = &*self.account;
        let files = match self.config.authorized_keys_files(name, *uid, home) {
            Ok(files) => files,
            Err(error) => {
                self.log.error(format_args!("{error}"));
                return None;
            }
        };
        files.iter().find_map(|path| match self.read(path) {
            Ok(content) => self.search_file(path, &content, key),
            Err(error) => {
                self.log.info(format_args!("Authentication refused: {error:#}"));
                None
            }
        })
    }

    /// A file that is not there has no lines.
    fn read(&self, path: &Path) -> Result<Vec<u8>> {
        let mut file = match modes::open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            other => {
                other.map_err(|e| io::Error::new(e.kind(), format!("{}: {e}", path.display())))
            }
        }?;
        let meta = file.metadata()?;
        if self.config.strict_modes
            && let Some(why) = modes::strict(path, &meta, self.account.uid, &self.account.home)
        {
            bail!(why);
        }
        let mut content = Vec::new();
        file.read_to_end(&mut content)?;
        Ok(content)
    }

    fn search_file(&mut self, path: &Path, content: &[u8], key: &PublicKey) -> Option<Options> {
        for (line, entry) in authorized_keys::parse(content) {
            match entry {
                Ok(entry) if entry.key == *key => match self.refusal(&entry) {
                    None => return Some(entry.options),
                    Some(why) => self.tell(path, line, &why),
                },
                Ok(_) => {}
                Err(refusal) => self.tell(path, line, &refusal.to_string()),
            }
        }
        None
    }

    /// Why a line with the right key lets nobody in now.
    fn refusal(&mut self, entry: &Entry) -> Option<String> {
        let now = SystemTime::now();
        if authorized_keys::has_expired(entry, now, sys::utc_offset(now)) {
            return Some("the key has expired".to_owned());
        }
        if entry.options.from.is_some() {
            let name = self.hostname.as_mut().and_then(HostName::get);
            let ip = self.ends.peer_ip();
            let from = ip.is_some_and(|ip| authorized_keys::from_matches(entry, ip, name));
            return (!from).then(|| format!("the key may not be used from {}", self.ends));
        }
        None
    }

    /// Once per line and connection: clients ask about a key before they sign with it.
    fn tell(&mut self, path: &Path, line: usize, why: &str) {
        if !self.told.iter().any(|(p, l)| p == path && *l == line) {
            self.log.info(format_args!("{}:{line}: refused: {why}", path.display()));
            self.told.push((path.to_owned(), line));
        }
    }
}

impl Policy for KeyFiles {
    type Permissions = Granted;

    fn public_key(&mut self, user: &str, key: &PublicKey, _alg: SigAlg) -> Decision<Granted> {
        let found = self.search(key);
        match found {
            Some(options) if user == self.account.name && self.config.pubkey_authentication => {
                Decision::Accept(Granted { options, key: key.clone() })
            }
            _ => Decision::Refuse,
        }
    }
}
