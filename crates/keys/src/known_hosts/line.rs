//! One line of known_hosts: `[@marker] hosts key-type base64 [comment]`.

use super::hash::HashedName;
use super::{HostName, Place};
use crate::pattern::{self, Match};
use crate::public::decode_base64;
use wire::Reader;

/// The word in front of the hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Marker {
    /// None: the key is the host's.
    Host,
    /// `@revoked`: the key must never be accepted.
    Revoked,
    /// `@cert-authority`: the key signs host certificates, which we do not support.
    Authority,
}

/// Whom a line is about.
#[derive(Debug)]
enum Hosts {
    Patterns(String),
    Hashed(HashedName),
}

/// A line that parses. The key may be of a type that we cannot use.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) marker: Marker,
    hosts: Hosts,
    pub(super) key_type: String,
    pub(super) blob: Vec<u8>,
    pub(super) place: Place,
}

impl Line {
    /// Parses a line; `None` for an empty one or a comment, `Err` says what is wrong. A comment
    /// behind the key may be in any encoding; a host name that is not UTF-8 matches none.
    pub(super) fn parse(text: &[u8], place: &Place) -> Result<Option<Self>, &'static str> {
        let text = String::from_utf8_lossy(text);
        if text.contains('\0') {
            return Err("NUL byte");
        }
        let mut words = text.split_ascii_whitespace().peekable();
        let marker = match words.peek() {
            None => return Ok(None),
            Some(word) if word.starts_with('#') => return Ok(None),
            Some(&"@revoked") => Marker::Revoked,
            Some(&"@cert-authority") => Marker::Authority,
            Some(word) if word.starts_with('@') => return Err("unknown marker"),
            Some(_) => Marker::Host,
        };
        let mut words = words.skip(usize::from(marker != Marker::Host));
        let hosts = parse_hosts(words.next().ok_or("no host")?)?;
        let key_type = words.next().ok_or("no key type")?.to_owned();
        let blob = decode_base64(words.next().ok_or("no key")?).map_err(|_| "bad base64")?;
        match Reader::new(&blob).string("key type") {
            Ok(inner) if inner == key_type.as_bytes() => {}
            Ok(_) => return Err("the key is of another type than the line says"),
            Err(_) => return Err("bad key"),
        }
        Ok(Some(Self { marker, hosts, key_type, blob, place: place.clone() }))
    }

    /// Whether the line is about `name`, which is in the form of [`HostName::name`].
    pub(super) fn is_about(&self, name: &str) -> bool {
        match &self.hosts {
            Hosts::Patterns(list) => pattern::host_list_matches(list, name) == Match::Yes,
            Hosts::Hashed(hashed) => hashed.is(name),
        }
    }
}

/// Whether a line that does not parse was meant to revoke a key. A byte order mark, with which some
/// editors begin a file, hides no marker.
pub(super) fn revokes(text: &[u8]) -> bool {
    const MARKER: &[u8] = b"@revoked";
    let text = text.strip_prefix("\u{feff}".as_bytes()).unwrap_or(text).trim_ascii_start();
    text.get(..MARKER.len()).is_some_and(|word| word.eq_ignore_ascii_case(MARKER))
}

fn parse_hosts(text: &str) -> Result<Hosts, &'static str> {
    if text.starts_with('|') {
        return HashedName::parse(text).map(Hosts::Hashed).ok_or("bad hashed host name");
    }
    Ok(Hosts::Patterns(text.to_owned()))
}

impl HostName {
    /// Whether the name can stand in a line without meaning something else there.
    pub(super) fn is_plain(&self) -> bool {
        let name = self.name();
        let special = |b: u8| b",*?!\"".contains(&b) || !b.is_ascii_graphic();
        !name.is_empty() && !name.starts_with(['|', '@', '#']) && !name.bytes().any(special)
    }
}
