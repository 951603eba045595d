//! The keys to log in with, in the order in which they are tried.
//!
//! ```text
//! 1  keys of the agent that IdentityFile names      cost nothing, and are meant
//! 2  other files that the user named
//! 3  other keys of the agent                        not with IdentitiesOnly
//! 4  the default files
//! ```
//! The agent's own order would let a ring of many keys use up MaxAuthTries before the one that
//! the user named.

use crate::{Error, Log, prompt};
use conf::Client;
use keys::agent::Agent;
use keys::{PrivateKey, PrivateKeyError, PublicKey, SigAlg};
use proto::auth::{Credentials, Signer};
use std::collections::{HashMap, VecDeque};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use wire::NameList;

/// How often a wrong passphrase may be typed.
const TRIES: usize = 3;

type SharedAgent = Arc<Mutex<Agent<UnixStream>>>;

/// What a login leaves to the next one to the same host: clones share it, so that a passphrase is
/// asked once, and the key that was accepted is tried first.
#[derive(Clone, Default)]
pub struct Keyring(Arc<Mutex<Ring>>);

#[derive(Default)]
struct Ring {
    unlocked: HashMap<PathBuf, Arc<PrivateKey>>,
    /// Fingerprint of the key that was accepted.
    accepted: Option<String>,
}

impl Keyring {
    /// Nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// The key of a file. Asked for while the ring is locked: who comes meanwhile waits for the
    /// answer instead of asking, too.
    fn unlock(
        &self,
        path: &Path,
        ask: impl FnOnce() -> Result<PrivateKey, String>,
    ) -> Result<Arc<PrivateKey>, String> {
        let mut ring = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(key) = ring.unlocked.get(path) {
            return Ok(Arc::clone(key));
        }
        let key = Arc::new(ask()?);
        ring.unlocked.insert(path.to_owned(), Arc::clone(&key));
        Ok(key)
    }

    pub(crate) fn accepted(&self, key: Option<String>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).accepted = key;
    }

    fn is_accepted(&self, key: &PublicKey) -> bool {
        let ring = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        ring.accepted.as_ref().is_some_and(|accepted| *accepted == key.fingerprint())
    }
}

/// What is left to try.
pub(crate) struct Keys {
    left: VecDeque<Box<dyn Signer + Send>>,
    allowed: Vec<SigAlg>,
}

impl Keys {
    pub(crate) fn new(conf: &Client, log: &Log, ring: &Keyring) -> Result<Self, Error> {
        let (agent, held) = match conf.agent_socket()? {
            Some(path) => open_agent(&path, log),
            None => (None, Vec::new()),
        };
        let files = files(conf, log, ring)?;
        let in_files = |key: &PublicKey| files.iter().any(|file| file.public == *key);
        let mut left: VecDeque<Box<dyn Signer + Send>> = VecDeque::new();
        let from_agent = |wanted: &dyn Fn(&PublicKey) -> bool| -> Vec<Box<dyn Signer + Send>> {
            let Some(agent) = &agent else { return Vec::new() };
            let chosen = held.iter().filter(|key| wanted(key));
            chosen.map(|key| AgentKey::boxed(Arc::clone(agent), key.clone())).collect()
        };
        left.extend(from_agent(&in_files));
        let others =
            if conf.identities_only { Vec::new() } else { from_agent(&|key| !in_files(key)) };
        let files = files.into_iter().filter(|file| !held.contains(&file.public));
        let files = files.map(|file| Box::new(file) as Box<dyn Signer + Send>);
        if conf.identity_files_given() {
            left.extend(files);
            left.extend(others);
        } else {
            left.extend(others);
            left.extend(files);
        }
        let accepted = left.iter().position(|key| ring.is_accepted(key.public_key()));
        if let Some(key) = accepted.and_then(|at| left.remove(at)) {
            left.push_front(key);
        }
        let allowed = conf.pubkey_algorithms.names().iter();
        Ok(Self { left, allowed: allowed.filter_map(|name| SigAlg::from_name(name)).collect() })
    }
}

impl Credentials for Keys {
    fn next(&mut self, left: Option<NameList<'_>>) -> Option<Box<dyn Signer + Send>> {
        if left.is_some_and(|methods| !methods.contains("publickey")) {
            return None;
        }
        loop {
            let next = self.left.pop_front()?;
            if next.public_key().sig_algs().iter().any(|alg| self.allowed.contains(alg)) {
                return Some(next);
            }
        }
    }
}

/// An agent that does not answer is the same as none: the files are left.
fn open_agent(path: &Path, log: &Log) -> (Option<SharedAgent>, Vec<PublicKey>) {
    let opened =
        Agent::connect(path).map_err(keys::agent::AgentError::from).and_then(|mut agent| {
            let held = agent.identities()?;
            Ok((agent, held))
        });
    match opened {
        Ok((agent, held)) => {
            log.debug(1, format_args!("the agent holds {} keys", held.len()));
            (Some(Arc::new(Mutex::new(agent))), held.into_iter().map(|id| id.key).collect())
        }
        Err(e) => {
            log.debug(1, format_args!("{}: {e}", path.display()));
            (None, Vec::new())
        }
    }
}

struct AgentKey {
    agent: SharedAgent,
    key: PublicKey,
}

impl AgentKey {
    fn boxed(agent: SharedAgent, key: PublicKey) -> Box<dyn Signer + Send> {
        Box::new(Self { agent, key })
    }
}

impl Signer for AgentKey {
    fn public_key(&self) -> &PublicKey {
        &self.key
    }

    fn sign(&mut self, alg: SigAlg, data: &[u8]) -> Result<Vec<u8>, String> {
        let mut agent = self.agent.lock().map_err(|_| "agent lost".to_owned())?;
        agent.sign(&self.key, data, alg).map_err(|e| e.to_string())
    }
}

/// A key file; an encrypted one is opened only when the server would take the key.
struct FileKey {
    path: PathBuf,
    public: PublicKey,
    private: Option<Arc<PrivateKey>>,
    batch: bool,
    ring: Keyring,
}

/// The readable key files, in order. Only a file that the user named deserves a message.
fn files(conf: &Client, log: &Log, ring: &Keyring) -> Result<Vec<FileKey>, Error> {
    let given = conf.identity_files_given();
    let mut keys = Vec::new();
    for path in conf.identity_files()? {
        match FileKey::read(&path, conf.batch_mode, ring) {
            Ok(key) => {
                log.debug(
                    1,
                    format_args!("identity file {}: {}", path.display(), key.public.fingerprint()),
                );
                keys.push(key);
            }
            Err(why) if given => log.error(format_args!("{}: {why}", path.display())),
            Err(why) => log.debug(2, format_args!("{}: {why}", path.display())),
        }
    }
    Ok(keys)
}

impl FileKey {
    fn read(path: &Path, batch: bool, ring: &Keyring) -> Result<Self, String> {
        use std::os::unix::fs::PermissionsExt;
        let content = zeroize::Zeroizing::new(std::fs::read(path).map_err(|e| e.to_string())?);
        let mode = std::fs::metadata(path).map_err(|e| e.to_string())?.permissions().mode();
        if mode & 0o077 != 0 {
            let mode = mode & 0o7777;
            return Err(format!(
                "permissions {mode:04o} are too open; others can read this private key: chmod 600"
            ));
        }
        let (public, private) = match PrivateKey::from_bytes(&content, None) {
            Ok(key) => (key.public().clone(), Some(Arc::new(key))),
            Err(PrivateKeyError::NeedsPassphrase) => {
                (PrivateKey::public_of_file(&content).map_err(|e| e.to_string())?, None)
            }
            Err(e) => return Err(e.to_string()),
        };
        Ok(Self { path: path.to_owned(), public, private, batch, ring: ring.clone() })
    }

    fn unlock(&mut self) -> Result<&PrivateKey, String> {
        if self.private.is_none() {
            if self.batch {
                return Err("needs a passphrase, and BatchMode forbids to ask".to_owned());
            }
            self.private = Some(self.ring.unlock(&self.path, || self.ask())?);
        }
        self.private.as_deref().ok_or_else(|| "no key".to_owned())
    }

    fn ask(&self) -> Result<PrivateKey, String> {
        let content = std::fs::read(&self.path).map_err(|e| e.to_string())?;
        let content = zeroize::Zeroizing::new(content);
        let question = format!("Enter passphrase for key '{}': ", self.path.display());
        for _ in 0..TRIES {
            let passphrase = prompt::passphrase(&question).map_err(|e| e.to_string())?;
            match PrivateKey::from_bytes(&content, Some(&passphrase)) {
                Err(PrivateKeyError::WrongPassphrase) => {}
                done => return done.map_err(|e| e.to_string()),
            }
        }
        Err("wrong passphrase".to_owned())
    }
}

impl Signer for FileKey {
    fn public_key(&self) -> &PublicKey {
        &self.public
    }

    fn is_costly(&self) -> bool {
        self.private.is_none()
    }

    fn sign(&mut self, alg: SigAlg, data: &[u8]) -> Result<Vec<u8>, String> {
        let path = self.path.display().to_string();
        let key = self.unlock().map_err(|why| format!("{path}: {why}"))?;
        key.sign(alg, data).map_err(|e| format!("{path}: {e}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_passphrase_is_asked_once_for_all_connections() {
        let ring = Keyring::new();
        let asked = std::sync::atomic::AtomicU32::new(0);
        let unlock = |ring: &Keyring| {
            ring.unlock(Path::new("key"), || {
                asked.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                std::thread::sleep(std::time::Duration::from_millis(20));
                PrivateKey::from_ed25519_seed(&[7; 32]).map_err(|e| e.to_string())
            })
        };
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| unlock(&ring.clone()).unwrap());
            }
        });
        assert_eq!(asked.into_inner(), 1);
    }

    #[test]
    fn the_key_that_was_accepted_is_known_again() {
        let key = PrivateKey::from_ed25519_seed(&[7; 32]).unwrap();
        let ring = Keyring::new();
        assert!(!ring.is_accepted(key.public()));
        ring.accepted(Some(key.public().fingerprint()));
        assert!(ring.is_accepted(key.public()));
    }
}
