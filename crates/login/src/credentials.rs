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

use crate::key_file::KeyFile;
use crate::{Error, Log};
use conf::Client;
use keys::agent::Agent;
use keys::{PrivateKey, PublicKey, SigAlg};
use proto::auth::{Credentials, Signer};
use std::collections::{HashMap, VecDeque};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use wire::NameList;

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
    pub(crate) fn unlock(
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
    left: VecDeque<Offer>,
}

/// A key, as it is to be used here.
struct Offer {
    key: Box<dyn Signer + Send>,
    /// By PubkeyAcceptedAlgorithms, in its order.
    algs: Vec<SigAlg>,
    /// An agent's key that nothing speaks for but that the agent holds it. The agent may have to ask
    /// the user, who should not be asked for keys that the server does not want.
    is_guess: bool,
}

impl Signer for Offer {
    fn public_key(&self) -> &PublicKey {
        self.key.public_key()
    }

    fn algs(&self) -> &[SigAlg] {
        &self.algs
    }

    fn is_costly(&self) -> bool {
        self.is_guess || self.key.is_costly()
    }

    fn sign(&mut self, alg: SigAlg, data: &[u8]) -> Result<Vec<u8>, String> {
        self.key.sign(alg, data)
    }
}

impl Keys {
    pub(crate) fn new(conf: &Client, log: &Log, ring: &Keyring) -> Result<Self, Error> {
        let (agent, held) = match conf.agent_socket()? {
            Some(path) => open_agent(&path, log),
            None => (None, Vec::new()),
        };
        let files = files(conf, log, ring)?;
        let named: Vec<PublicKey> = files.iter().map(|file| file.public().clone()).collect();
        let in_files = |key: &PublicKey| named.contains(key);
        let mut left: VecDeque<Box<dyn Signer + Send>> = VecDeque::new();
        let from_agent = |wanted: &dyn Fn(&PublicKey) -> bool| -> Vec<Box<dyn Signer + Send>> {
            let Some(agent) = &agent else { return Vec::new() };
            let chosen = held.iter().filter(|key| wanted(key));
            chosen.map(|key| AgentKey::boxed(Arc::clone(agent), key.clone())).collect()
        };
        left.extend(from_agent(&in_files));
        let others =
            if conf.identities_only { Vec::new() } else { from_agent(&|key| !in_files(key)) };
        let files = files.into_iter().filter(|file| !held.contains(file.public()));
        let files = files.filter(|file| signs(file, conf, log));
        let files = files.map(|file| Box::new(file) as Box<dyn Signer + Send>);
        if conf.identity_files_given() {
            left.extend(files);
            left.extend(others);
        } else {
            left.extend(others);
            left.extend(files);
        }
        let names = conf.pubkey_algorithms.names();
        let allowed: Vec<SigAlg> =
            names.iter().filter_map(|name| SigAlg::from_name(name)).collect();
        let offer = |key: Box<dyn Signer + Send>| {
            let of_key = key.algs();
            let algs = allowed.iter().copied().filter(|alg| of_key.contains(alg)).collect();
            let is_guess = held.contains(key.public_key()) && !in_files(key.public_key());
            Offer { key, algs, is_guess }
        };
        let mut left: VecDeque<Offer> = left.into_iter().map(offer).collect();
        left.retain(|offer| !offer.algs.is_empty());
        let accepted = left.iter().position(|offer| ring.is_accepted(offer.public_key()));
        if let Some(offer) = accepted.and_then(|at| left.remove(at)) {
            left.push_front(Offer { is_guess: false, ..offer });
        }
        Ok(Self { left })
    }
}

impl Credentials for Keys {
    fn next(&mut self, left: Option<NameList<'_>>) -> Option<Box<dyn Signer + Send>> {
        if left.is_some_and(|methods| !methods.contains("publickey")) {
            return None;
        }
        let mut offer = self.left.pop_front()?;
        offer.is_guess &= !self.left.is_empty();
        Some(Box::new(offer))
    }

    fn is_last(&self) -> bool {
        self.left.is_empty()
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

/// The key files, in order, those of which there is the public half alone among them. Only a file
/// that the user named deserves a message.
fn files(conf: &Client, log: &Log, ring: &Keyring) -> Result<Vec<KeyFile>, Error> {
    let mut keys = Vec::new();
    for path in conf.identity_files()? {
        match KeyFile::read(&path, conf.batch_mode, ring) {
            Ok(key) => {
                let print = key.public().fingerprint();
                log.debug(1, format_args!("identity file {}: {print}", path.display()));
                keys.push(key);
            }
            Err(why) => complain(conf, log, &path, &why),
        }
    }
    Ok(keys)
}

fn complain(conf: &Client, log: &Log, path: &Path, why: &str) {
    if conf.identity_files_given() {
        log.error(format_args!("{}: {why}", path.display()));
    } else {
        log.debug(2, format_args!("{}: {why}", path.display()));
    }
}

/// Whether a file that no agent stands in for can sign; complains if it cannot.
fn signs(file: &KeyFile, conf: &Client, log: &Log) -> bool {
    let why = file.unusable();
    why.iter().for_each(|why| complain(conf, log, file.path(), why));
    why.is_none()
}

#[cfg(test)]
mod tests {
    use super::*;
    use conf::client::Files;
    use conf::{LogLevel, Setting};
    use std::os::unix::fs::PermissionsExt;
    use std::path::PathBuf;
    use std::process::{Child, Command, Stdio};
    use std::time::Duration;

    /// An agent that ends with the test, and a directory for keys.
    struct Desk {
        agent: Child,
        dir: tempfile::TempDir,
    }

    impl Desk {
        fn new() -> Self {
            let dir = tempfile::tempdir().unwrap();
            let mut command = Command::new("ssh-agent");
            command.args(["-D", "-a"]).arg(dir.path().join("agent")).stdout(Stdio::null());
            let desk = Self { agent: command.spawn().unwrap(), dir };
            let listens = |_| {
                std::thread::sleep(Duration::from_millis(10));
                Agent::connect(&desk.path("agent")).is_ok()
            };
            assert!((0..1000).any(listens));
            desk
        }

        fn path(&self, name: &str) -> PathBuf {
            self.dir.path().join(name)
        }

        /// A pair of key files.
        fn key(&self, name: &str) -> PublicKey {
            self.key_of("ed25519", name)
        }

        fn key_of(&self, kind: &str, name: &str) -> PublicKey {
            let mut keygen = Command::new("ssh-keygen");
            keygen.args(["-q", "-t", kind, "-N", "", "-f"]).arg(self.path(name));
            assert!(keygen.status().unwrap().success());
            let line = std::fs::read_to_string(self.path(&format!("{name}.pub"))).unwrap();
            PublicKey::from_openssh(&line).unwrap()
        }

        fn give_to_agent(&self, name: &str) {
            let mut add = Command::new("ssh-add");
            add.arg("-q").arg(self.path(name)).env("SSH_AUTH_SOCK", self.path("agent"));
            assert!(add.status().unwrap().success());
        }

        /// What is tried, and what is said of the rest.
        fn keys(&self, settings: &[String]) -> (Vec<PublicKey>, String) {
            let (keys, said) = self.offers(settings, &Keyring::new());
            (keys.left.iter().map(|key| key.public_key().clone()).collect(), said)
        }

        fn offers(&self, settings: &[String], ring: &Keyring) -> (Keys, String) {
            let agent = format!("IdentityAgent={}", self.path("agent").display());
            let settings: Vec<_> = settings.iter().chain([&agent]).map(String::as_str).collect();
            let given: Vec<_> = settings.iter().map(|s| Setting::option(s).unwrap()).collect();
            let local = conf::Local { home: self.path("home"), user: "me".into(), uid: 7 };
            let supported = crate::supported();
            let loaded = conf::client::load("host", &given, &Files::None, &supported, &local);
            let file = self.path("log");
            let _ = std::fs::remove_file(&file);
            let log = Log::new("lhssh", LogLevel::Info, Some(&file)).unwrap();
            let keys = Keys::new(&loaded.unwrap().config, &log, ring).unwrap();
            (keys, std::fs::read_to_string(file).unwrap())
        }

        fn identity(&self, name: &str) -> String {
            format!("IdentityFile={}", self.path(name).display())
        }
    }

    impl Drop for Desk {
        fn drop(&mut self) {
            let _ = self.agent.kill();
            let _ = self.agent.wait();
        }
    }

    /// `-i key.pub` picks one of many keys of the agent, as with ssh; so does `-i key` where only
    /// `key.pub` is left, or where `key` may not be used.
    #[test]
    fn a_public_half_names_a_key_of_the_agent() {
        let desk = Desk::new();
        let [other, key] = ["other", "key"].map(|name| {
            let key = desk.key(name);
            desk.give_to_agent(name);
            key
        });
        let named = |name| desk.keys(&[desk.identity(name)]);
        let both = (vec![key.clone(), other], String::new());
        assert_eq!(named("key.pub"), both);
        std::fs::set_permissions(desk.path("key"), std::fs::Permissions::from_mode(0o644)).unwrap();
        assert_eq!(named("key"), both, "the agent signs: the file is not used");
        std::fs::write(desk.path("key"), "broken").unwrap();
        assert_eq!(named("key"), both);
        std::fs::remove_file(desk.path("key")).unwrap();
        assert_eq!(named("key"), both);
        let only = ["key", "key.pub"].map(|name| desk.identity(name));
        let only = desk.keys(&[&only[..], &["IdentitiesOnly=yes".into()]].concat());
        assert_eq!(only, (vec![key], String::new()));
    }

    #[test]
    fn a_public_half_that_no_agent_knows_is_not_tried() {
        let desk = Desk::new();
        desk.key("key");
        std::fs::remove_file(desk.path("key")).unwrap();
        let (tried, said) = desk.keys(&[desk.identity("key"), desk.identity("key.pub")]);
        assert_eq!(tried, []);
        let path = desk.path("key").display().to_string();
        let want = [
            format!("lhssh: {path}: No such file or directory (os error 2)"),
            format!("lhssh: {path}.pub: a public key; the private half is needed"),
        ];
        assert_eq!(said.lines().collect::<Vec<_>>(), want);
    }

    /// The agent may ask for each signature: not for keys that the server does not want.
    #[test]
    fn a_key_that_the_agent_alone_speaks_for_is_asked_about_before_it_signs() {
        let desk = Desk::new();
        let [named, accepted, other, last] = ["named", "accepted", "other", "last"].map(|name| {
            let key = desk.key(name);
            desk.give_to_agent(name);
            key
        });
        let ring = Keyring::new();
        ring.accepted(Some(accepted.fingerprint()));
        let (mut keys, _) = desk.offers(&[desk.identity("named")], &ring);
        let offers = std::iter::from_fn(|| keys.next(None));
        let offers: Vec<_> =
            offers.map(|key| (key.public_key().clone(), key.is_costly())).collect();
        assert_eq!(offers, [(accepted, false), (named, false), (other, true), (last, false)]);
    }

    /// Effect of PubkeyAcceptedAlgorithms (D6): on what a key signs with, too.
    #[test]
    fn a_key_signs_only_with_what_is_accepted_in_the_users_order() {
        let desk = Desk::new();
        desk.key_of("rsa", "key");
        for (list, want) in [
            ("rsa-sha2-256", &["rsa-sha2-256"][..]),
            ("^rsa-sha2-256", &["rsa-sha2-256", "rsa-sha2-512"]),
            ("+ssh-ed25519", &["rsa-sha2-512", "rsa-sha2-256"]),
            ("ssh-ed25519", &[]),
        ] {
            let list = format!("PubkeyAcceptedAlgorithms={list}");
            let (mut keys, _) = desk.offers(&[desk.identity("key"), list], &Keyring::new());
            let key = keys.next(None);
            let algs = key.iter().flat_map(|key| key.algs().iter().map(|alg| alg.name()));
            assert_eq!(algs.collect::<Vec<_>>(), want);
        }
    }

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
