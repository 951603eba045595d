//! Whether a host key is the host's: known_hosts, StrictHostKeyChecking, and the user's word.

use crate::{Error, Log, prompt};
use conf::{Client, StrictHostKeyChecking as Strict};
use keys::known_hosts::{self, HostName, Known, KnownHosts, Verdict};
use keys::{PublicKey, SigAlg};
use proto::HostTrust;
use rustix::io::Errno;
use std::io;
use std::path::{Path, PathBuf};
use wire::text::words;

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
        for path in user.iter().chain(&conf.global_known_hosts()?) {
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
    fn unknown(&self, key: &PublicKey, authorities: usize) -> Result<(), String> {
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
        let unasked = |why: &str| {
            let print = key.fingerprint();
            refused(&format!(
                "{why}: it shows {print}; if that is the host's, accept it with -o \
                 StrictHostKeyChecking=accept-new"
            ))
        };
        match self.strict {
            Strict::Yes => Err(refused("and StrictHostKeyChecking is yes")),
            Strict::AcceptNew | Strict::No => self.note(key),
            Strict::Ask if self.batch => Err(unasked("and BatchMode forbids to ask")),
            Strict::Ask => match self.ask(key, &kind) {
                // open(2) of /dev/tty where no terminal controls the process.
                Err(why) if why.raw_os_error() == Some(Errno::NXIO.raw_os_error()) => {
                    Err(unasked("and there is no terminal to ask on"))
                }
                Err(why) => Err(unasked(&format!("and nobody to ask ({})", words(&why)))),
                Ok(true) => self.note(key),
                Ok(false) => Err("not confirmed".to_owned()),
            },
        }
    }

    /// Whether the user says that it is the host's.
    fn ask(&self, key: &PublicKey, kind: &str) -> io::Result<bool> {
        let name = self.host.name();
        let print = key.fingerprint();
        let mut question = format!(
            "The authenticity of host '{name}' can't be established.\n\
             {kind} key fingerprint is {print}.\n\
             This key is not known by any other names.\n\
             Are you sure you want to continue connecting (yes/no/[fingerprint])? "
        );
        loop {
            let answer = prompt::ask(&question)?;
            match answer.to_lowercase().as_str() {
                "yes" => return Ok(true),
                "no" => return Ok(false),
                _ if answer == print => return Ok(true),
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
            Verdict::Unknown { authorities } => self.unknown(key, authorities),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::setup::configured;
    use conf::LogLevel;
    use stand_ins::key;
    use std::fs;
    use tempfile::TempDir;

    const STRICT: [&str; 4] = ["yes", "accept-new", "ask", "no"];

    /// A key of another type for the host.
    const OTHER_TYPE: &str = "host ssh-rsa AAAAB3NzaC1yc2E=\n";

    /// A line for the host with the key of this seed.
    fn line(seed: u8) -> String {
        let host = HostName::new("host", 22);
        known_hosts::line(&host, key(seed).public(), false).unwrap() + "\n"
    }

    /// A user whose known_hosts has these lines.
    struct User(TempDir);

    impl User {
        fn who_knows(lines: &str) -> Self {
            let user = Self(tempfile::tempdir().unwrap());
            fs::write(user.file(), lines).unwrap();
            user
        }

        fn file(&self) -> PathBuf {
            self.0.path().join("known_hosts")
        }

        fn known(&self) -> String {
            fs::read_to_string(self.file()).unwrap()
        }

        /// The verdict on the key of this seed; nobody can be asked.
        fn meets(&self, seed: u8, settings: &[&str]) -> Result<(), String> {
            let file = format!("UserKnownHostsFile={}", self.file().display());
            let usual = [file.as_str(), "GlobalKnownHostsFile=/dev/null", "BatchMode=yes"];
            let conf = configured("host", &[settings, &usual[..]].concat());
            let log = Log::new("test", LogLevel::Quiet, None).unwrap();
            Trust::new(&conf, &log).unwrap().verify(key(seed).public())
        }

        fn meets_if(&self, seed: u8, strict: &str) -> Result<(), String> {
            self.meets(seed, &[&format!("StrictHostKeyChecking={strict}")])
        }
    }

    /// Effect of StrictHostKeyChecking and BatchMode (D6).
    #[test]
    fn a_key_nobody_knows_is_noted_or_refused_as_configured() {
        for (strict, lines, refused) in [
            ("yes", "", Some("StrictHostKeyChecking is yes")),
            ("accept-new", "", None),
            ("ask", "", Some("BatchMode forbids to ask")),
            ("no", "", None),
        ] {
            let user = User::who_knows(lines);
            match (user.meets_if(1, strict), refused) {
                (Ok(()), None) => assert_eq!(user.known(), lines.to_owned() + &line(1)),
                (Err(why), Some(words)) => {
                    assert!(why.contains(words), "{strict} {lines}: {why}");
                    assert_eq!(user.known(), lines, "{strict}");
                }
                other => panic!("{strict} {lines}: {other:?}"),
            }
        }
    }

    #[test]
    fn a_changed_or_revoked_key_is_refused_whatever_is_configured() {
        let revoked = format!("@revoked {}{}", line(1), line(1));
        for (lines, words) in [
            (line(2), "REMOTE HOST IDENTIFICATION HAS CHANGED"),
            (OTHER_TYPE.to_owned(), "REMOTE HOST IDENTIFICATION HAS CHANGED"),
            (revoked, "is marked as revoked in"),
        ] {
            for strict in STRICT {
                let user = User::who_knows(&lines);
                let why = user.meets_if(1, strict).unwrap_err();
                assert!(why.contains(words), "{strict}: {why}");
                assert_eq!(user.known(), lines, "{strict}");
            }
        }
    }

    #[test]
    fn a_known_key_is_trusted_and_not_noted_again() {
        for strict in STRICT {
            let user = User::who_knows(&line(1));
            user.meets_if(1, strict).unwrap();
            assert_eq!(user.known(), line(1), "{strict}");
        }
    }

    /// Effects of HashKnownHosts and HostKeyAlias (D6).
    #[test]
    fn a_noted_key_is_known_by_its_name_from_then_on() {
        for (setting, start) in
            [("HashKnownHosts=yes", "|1|"), ("HostKeyAlias=alias", "alias "), ("Port=22", "host ")]
        {
            let user = User::who_knows("");
            user.meets(1, &["StrictHostKeyChecking=accept-new", setting]).unwrap();
            assert!(user.known().starts_with(start), "{setting}: {}", user.known());
            user.meets(1, &["StrictHostKeyChecking=yes", setting]).unwrap();
        }
    }

    #[test]
    fn an_authority_is_named_as_the_reason_that_it_may_be() {
        let user = User::who_knows(&format!("@cert-authority {}", line(2)));
        let why = user.meets_if(1, "yes").unwrap_err();
        assert!(why.contains("@cert-authority for it, which is not supported"), "{why}");
    }

    /// Its keys would be taken for unknown.
    #[test]
    fn a_file_that_cannot_be_read_is_an_error() {
        let user = User::who_knows("");
        let directory = format!("UserKnownHostsFile={}", user.0.path().display());
        let log = Log::new("test", LogLevel::Quiet, None).unwrap();
        assert!(Trust::new(&configured("host", &[directory]), &log).is_err());
        let nowhere = format!("UserKnownHostsFile={}/none", user.0.path().display());
        assert!(Trust::new(&configured("host", &[nowhere]), &log).is_ok());
    }
}
