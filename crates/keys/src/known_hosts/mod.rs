//! Which host keys to believe: sshd(8), SSH_KNOWN_HOSTS FILE FORMAT.
//!
//! ```text
//! line     one line: marker, hosts, key         hash    |1|salt|hash
//! mod      all lines of all files, the verdict  append  a new line
//! ```
//! A key is trusted if any line for the host has it, unless any line revokes it.

mod append;
mod hash;
mod line;

use crate::{PublicKey, SigAlg};
use line::{Line, Marker};
use std::fmt;
use std::path::Path;
use std::sync::Arc;

pub use append::{append, line};

/// The default port, which is not part of a name.
const SSH_PORT: u16 = 22;

/// A host as known_hosts names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostName {
    /// Name or address as the user wrote it.
    pub host: String,
    /// Port of the connection.
    pub port: u16,
    /// `HostKeyAlias`: stands for host and port.
    pub alias: Option<String>,
}

impl HostName {
    /// A host without alias.
    pub fn new(host: impl Into<String>, port: u16) -> Self {
        Self { host: host.into(), port, alias: None }
    }

    /// The name in a file: the alias, `host` for port 22, or `[host]:port`; lower case.
    pub fn name(&self) -> String {
        let name = match (&self.alias, self.port) {
            (Some(alias), _) => alias.clone(),
            (None, SSH_PORT) => self.host.clone(),
            (None, port) => format!("[{}]:{port}", self.host),
        };
        name.to_ascii_lowercase()
    }

    /// The name to fall back to: on another port, a key known for the host's port 22 counts too.
    fn name_without_port(&self) -> Option<String> {
        (self.alias.is_none() && self.port != SSH_PORT).then(|| self.host.to_ascii_lowercase())
    }
}

/// Where a line stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The file.
    pub file: Arc<Path>,
    /// Its line, from 1.
    pub line: usize,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file.display(), self.line)
    }
}

/// A line that was left out, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skipped {
    /// Where it stands.
    pub place: Place,
    /// What is wrong with it.
    pub why: &'static str,
    /// It begins with `@revoked`.
    pub revokes: bool,
}

/// A key that a file has for a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Known {
    /// Where it stands.
    pub place: Place,
    /// `ssh-ed25519` and so on; not necessarily a type we support.
    pub key_type: String,
    /// As `ssh-keygen -l` prints it.
    pub fingerprint: String,
}

impl Known {
    fn of(line: &Line) -> Self {
        let fingerprint = crate::fingerprint(&line.blob);
        Self { place: line.place.clone(), key_type: line.key_type.clone(), fingerprint }
    }
}

/// What the files say about a host and the key it showed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The key is the host's.
    Trusted(Place),
    /// No line has a key for the host.
    Unknown {
        /// `@cert-authority` lines for this host, which are not supported.
        authorities: usize,
    },
    /// Another key is known, of whatever type: somebody in between could avoid the types that are
    /// known.
    Changed(Known),
    /// A `@revoked` line has this key.
    Revoked(Place),
    /// A `@revoked` line cannot be read, so it may have this key.
    Unreadable(Skipped),
}

/// The lines of all known_hosts files, in the order they were merged.
#[derive(Debug, Default)]
pub struct KnownHosts {
    lines: Vec<Line>,
    skipped: Vec<Skipped>,
}

impl KnownHosts {
    /// Parses the content of one file. Bad lines are left out, see [`skipped`](Self::skipped); with
    /// one among them that revokes, no key is trusted.
    pub fn parse(file: &Path, content: &[u8]) -> Self {
        let mut known = Self::default();
        let file: Arc<Path> = file.into();
        for (index, text) in content.split(|b| *b == b'\n').enumerate() {
            let place = Place { file: Arc::clone(&file), line: index + 1 };
            match Line::parse(text, &place) {
                Ok(line) => known.lines.extend(line),
                Err(why) => {
                    let revokes = line::revokes(text);
                    known.skipped.push(Skipped { place, why, revokes });
                }
            }
        }
        known
    }

    /// Adds the lines of another file behind these.
    pub fn merge(&mut self, other: Self) {
        self.lines.extend(other.lines);
        self.skipped.extend(other.skipped);
    }

    /// The lines that could not be read.
    pub fn skipped(&self) -> &[Skipped] {
        &self.skipped
    }

    /// Judges the key that `host` showed.
    ///
    /// As in OpenSSH: revoked wins over everything, a matching key over a different one. On a port
    /// other than 22 a host that is not known by `[host]:port` is also looked up without its port;
    /// there only a matching key counts.
    pub fn check(&self, host: &HostName, key: &PublicKey) -> Verdict {
        if let Some(line) = self.skipped.iter().find(|line| line.revokes) {
            return Verdict::Unreadable(line.clone());
        }
        let name = host.name();
        let bare = host.name_without_port();
        let revoked = |name: &String| self.find(name, Marker::Revoked, key).next();
        if let Some(line) = revoked(&name).or_else(|| bare.as_ref().and_then(revoked)) {
            return Verdict::Revoked(line.place.clone());
        }
        if let Some(line) = self.find(&name, Marker::Host, key).next() {
            return Verdict::Trusted(line.place.clone());
        }
        let others = || self.about(&name, Marker::Host);
        let alike = others().find(|line| line.key_type == key.key_type());
        if let Some(line) = alike.or_else(|| others().next()) {
            return Verdict::Changed(Known::of(line));
        }
        let without_port = bare.and_then(|bare| self.find(&bare, Marker::Host, key).next());
        match without_port {
            Some(line) => Verdict::Trusted(line.place.clone()),
            None => Verdict::Unknown { authorities: self.authorities(host) },
        }
    }

    /// How many `@cert-authority` lines are about `host`; they are not supported.
    pub fn authorities(&self, host: &HostName) -> usize {
        self.about(&host.name(), Marker::Authority).count()
    }

    /// The signature algorithms of the keys known for `host`, in the order of the lines: a client
    /// proposes these first, so that it meets a key it can check.
    pub fn algorithms(&self, host: &HostName) -> Vec<SigAlg> {
        let mut lines: Vec<&Line> = self.about(&host.name(), Marker::Host).collect();
        if let (true, Some(bare)) = (lines.is_empty(), host.name_without_port()) {
            lines = self.about(&bare, Marker::Host).collect();
        }
        let mut found = Vec::new();
        for alg in lines.iter().flat_map(|line| SigAlg::for_key_type(&line.key_type)) {
            if !found.contains(alg) {
                found.push(*alg);
            }
        }
        found
    }

    fn about(&self, name: &str, marker: Marker) -> impl Iterator<Item = &Line> {
        self.lines.iter().filter(move |line| line.marker == marker && line.is_about(name))
    }

    /// The key is compared first: hashing a name for every line would cost more.
    fn find(&self, name: &str, marker: Marker, key: &PublicKey) -> impl Iterator<Item = &Line> {
        let has_key = move |line: &&Line| line.marker == marker && line.blob == key.blob();
        self.lines.iter().filter(has_key).filter(move |line| line.is_about(name))
    }
}
