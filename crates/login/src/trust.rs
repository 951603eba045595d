//! Whether a host key is the host's: known_hosts, StrictHostKeyChecking, and the user's word.

use crate::{Error, Log, prompt};
use conf::{Client, StrictHostKeyChecking as Strict};
use keys::known_hosts::{self, HostName, Known, KnownHosts, Verdict};
use keys::{PublicKey, SigAlg};
use proto::HostTrust;
use std::io;
use std::path::{Path, PathBuf};

/// What is known of the host, and what to do about what is not.
pub(crate) struct Trust {
    host: HostName,
    known: KnownHosts,
    strict: Strict,
    batch: bool,
    hash: bool,
    note_in: Option<PathBuf>,
    log: Log,
}

impl Trust {
    pub(crate) fn new(conf: &Client, log: &Log) -> Result<Self, Error> {
        let user = conf.user_known_hosts()?;
        let mut known = KnownHosts::default();
        for path in user.iter().chain(&conf.global_known_hosts()) {
            known.merge(read(path)?);
        }
        for line in known.skipped() {
            log.debug(1, format_args!("{}: {}", line.place, line.why));
        }
        // As ssh has it: known_hosts holds the name that is connected to, HostName's if it is set.
        let host = HostName {
            host: conf.host_name.clone(),
            port: conf.port,
            alias: conf.host_key_alias.clone(),
        };
        Ok(Self {
            host,
            known,
            strict: conf.strict_host_key_checking,
            batch: conf.batch_mode,
            hash: conf.hash_known_hosts,
            note_in: user.into_iter().next(),
            log: log.clone(),
        })
    }

    /// Algorithms of the keys we have for the host.
    pub(crate) fn known_algorithms(&self) -> Vec<SigAlg> {
        self.known.algorithms(&self.host)
    }

    fn changed(&self, key: &PublicKey, old: &Known) -> String {
        let name = self.host.name();
        format!(
            "REMOTE HOST IDENTIFICATION HAS CHANGED for {name}: it shows {} {}, known is {} ({}). \
             Somebody may be listening in, or the host was set up anew; in that case remove the \
             old key with ssh-keygen -R '{name}'",
            key.key_type(),
            key.fingerprint(),
            old.fingerprint,
            old.place
        )
    }

    /// A key nobody knows: by StrictHostKeyChecking.
    fn unknown(&self, key: &PublicKey, others: &[Known], authorities: usize) -> Result<(), String> {
        let kind = key.key_type().trim_start_matches("ssh-").to_uppercase();
        let name = self.host.name();
        let refused = |why: &str| {
            let certificates = match authorities {
                0 => String::new(),
                _ => " (known_hosts names a @cert-authority for it, which is not supported yet)"
                    .to_owned(),
            };
            format!("no {kind} host key is known for {name}, {why}{certificates}")
        };
        match self.strict {
            Strict::Yes => Err(refused("and StrictHostKeyChecking is yes")),
            Strict::AcceptNew if !others.is_empty() => {
                Err(refused("although keys of other types are"))
            }
            Strict::AcceptNew | Strict::No => self.note(key),
            Strict::Ask if self.batch => Err(refused("and BatchMode forbids to ask")),
            Strict::Ask => self.ask(key, &kind, others),
        }
    }

    fn ask(&self, key: &PublicKey, kind: &str, others: &[Known]) -> Result<(), String> {
        let name = self.host.name();
        let print = key.fingerprint();
        let also = match others {
            [] => "This key is not known by any other names.".to_owned(),
            _ => {
                let places: Vec<String> = others.iter().map(|k| k.place.to_string()).collect();
                format!("Keys of other types are known for this host: {}", places.join(", "))
            }
        };
        let mut question = format!(
            "The authenticity of host '{name}' can't be established.\n\
             {kind} key fingerprint is {print}.\n{also}\n\
             Are you sure you want to continue connecting (yes/no/[fingerprint])? "
        );
        loop {
            let answer = prompt::ask(&question)
                .map_err(|e| format!("unknown host {name}, and nobody to ask: {e}"))?;
            match answer.to_lowercase().as_str() {
                "yes" => return self.note(key),
                "no" => return Err("not confirmed".to_owned()),
                _ if answer == print => return self.note(key),
                _ => question = "Please type 'yes', 'no' or the fingerprint: ".to_owned(),
            }
        }
    }

    /// Adds the key to the user's file; where that fails the connection goes on, as with ssh.
    fn note(&self, key: &PublicKey) -> Result<(), String> {
        let Some(path) = self.note_in.as_deref().filter(|p| *p != Path::new("/dev/null")) else {
            return Ok(());
        };
        match known_hosts::append(path, &self.host, key, self.hash) {
            Ok(()) => self.log.info(format_args!(
                "Warning: Permanently added '{}' ({}) to the list of known hosts.",
                self.host.name(),
                key.key_type()
            )),
            Err(why) => {
                let path = path.display();
                self.log.info(format_args!("Failed to add the host to {path}: {why}"));
            }
        }
        Ok(())
    }
}

impl HostTrust for Trust {
    fn verify(&self, key: &PublicKey) -> Result<(), String> {
        match self.known.check(&self.host, key) {
            Verdict::Trusted(_) => Ok(()),
            Verdict::Unknown { others, authorities } => self.unknown(key, &others, authorities),
            Verdict::Revoked(place) => {
                Err(format!("{} is marked as revoked in {place}", key.fingerprint()))
            }
            Verdict::Unreadable(line) => Err(format!(
                "{}: {} in a line that revokes a key, which may be this one",
                line.place, line.why
            )),
            Verdict::Changed(old) => Err(self.changed(key, &old)),
        }
    }
}

/// A file that is not there knows nobody; one that cannot be read is an error, as its keys would
/// be taken for unknown.
fn read(path: &Path) -> Result<KnownHosts, Error> {
    match std::fs::read(path) {
        Ok(content) => Ok(KnownHosts::parse(path, &content)),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(KnownHosts::default()),
        Err(why) => Err(Error::File { path: path.display().to_string(), why: why.to_string() }),
    }
}
