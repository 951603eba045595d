//! Which user keys may log in, and what they may do then: sshd(8), AUTHORIZED_KEYS FILE FORMAT.
//!
//! ```text
//! scan      quotes, commas, where the options end     from     from="..."
//! options   their meaning                             expiry   expiry-time="..."
//! ```
//! A line counts whole or not at all: whatever is in it that we do not know, cannot enforce or
//! cannot read refuses the line.

mod expiry;
mod from;
mod options;
mod scan;

use crate::{PublicKey, PublicKeyError, SigAlg};
use std::net::IpAddr;
use std::time::SystemTime;

pub use expiry::ExpiryTime;
pub use from::FromList;
pub use options::Options;

/// Longest line read, as in OpenSSH.
const MAX_LINE: usize = 1 << 20;

/// A line that lets a key in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// What it may do.
    pub options: Options,
    /// The key.
    pub key: PublicKey,
    /// The text behind the key.
    pub comment: String,
}

/// Why a line lets nobody in.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Not UTF-8 in front of the comment, a NUL byte in it, or over 1 MiB.
    #[error("not a line of text")]
    NotText,
    /// Options without a key behind them.
    #[error("no key")]
    NoKey,
    /// Quotes that do not close, do not open, or stand in the wrong place.
    #[error("wrong quotes in the options")]
    Quotes,
    /// An option that sshd(8) does not have.
    #[error("unknown option {0:?}")]
    UnknownOption(String),
    /// An option that needs a value and has none.
    #[error("option {0:?} needs a value in quotes")]
    NoValue(String),
    /// An option whose value makes no sense.
    #[error("bad value of option {0:?}")]
    BadValue(&'static str),
    /// An option that may be given once.
    #[error("option {0:?} is given twice")]
    Twice(&'static str),
    /// A known option that is not enforced yet; letting the key in without it would be wrong.
    #[error("option {0:?} is not supported")]
    NotHonoured(&'static str),
    /// The key itself.
    #[error("{0}")]
    Key(#[from] PublicKeyError),
}

impl Entry {
    /// Parses one line; `None` for an empty one or a comment. The comment behind the key may be in
    /// any encoding, everything before it must be UTF-8.
    pub fn parse(line: &[u8]) -> Result<Option<Self>, Refusal> {
        let line = line.trim_ascii();
        if line.len() > MAX_LINE || line.contains(&0) {
            return Err(Refusal::NotText);
        }
        let text = line.utf8_chunks().next().map_or("", |chunk| chunk.valid());
        let rest = line.get(text.len()..).unwrap_or_default();
        if line.is_empty() || text.starts_with('#') {
            return Ok(None);
        }
        match Self::of_text(text) {
            Ok((options, key, Some(comment))) => {
                let comment = format!("{comment}{}", String::from_utf8_lossy(rest));
                Ok(Some(Self { options, key, comment: comment.trim().to_owned() }))
            }
            _ if !rest.is_empty() => Err(Refusal::NotText),
            Ok((options, key, None)) => Ok(Some(Self { options, key, comment: String::new() })),
            Err(refusal) => Err(refusal),
        }
    }

    /// Options, key and comment; without blanks behind the key there is no comment, not even an
    /// empty one.
    fn of_text(text: &str) -> Result<(Options, PublicKey, Option<&str>), Refusal> {
        let (options, key) = if starts_with_key(text) {
            (Options::default(), text)
        } else {
            let (options, key) = scan::split_line(text)?;
            (options::parse(options)?, key.trim_start_matches([' ', '\t']))
        };
        Ok((options, PublicKey::from_openssh(key)?, comment(key)))
    }
}

/// What follows the second word, if it is known to end.
fn comment(key: &str) -> Option<&str> {
    const BLANK: [char; 2] = [' ', '\t'];
    let (_, blob) = key.split_once(BLANK)?;
    blob.trim_start_matches(BLANK).split_once(BLANK).map(|(_, comment)| comment)
}

/// A line without options starts with a key type; no option is called like one.
fn starts_with_key(text: &str) -> bool {
    let word = text.split([' ', '\t']).next().unwrap_or_default();
    !SigAlg::for_key_type(word).is_empty()
        || ["ssh-", "ecdsa-", "sk-"].iter().any(|family| word.starts_with(family))
}

/// The lines of a file that are neither empty nor comments, numbered from 1.
pub fn parse(content: &[u8]) -> impl Iterator<Item = (usize, Result<Entry, Refusal>)> {
    let lines = content.split(|b| *b == b'\n').enumerate();
    lines.filter_map(|(index, line)| Some((index + 1, Entry::parse(line).transpose()?)))
}

/// Whether a client at `ip`, by name `hostname` if one was looked up, may use the entry.
pub fn from_matches(entry: &Entry, ip: IpAddr, hostname: Option<&str>) -> bool {
    entry.options.from.as_ref().is_none_or(|list| list.matches(ip, hostname))
}

/// Whether the entry's time is over; `utc_offset` is the local zone's, in seconds east of Greenwich.
pub fn has_expired(entry: &Entry, now: SystemTime, utc_offset: i32) -> bool {
    entry.options.expiry.is_some_and(|time| time.has_passed(now, utc_offset))
}

#[cfg(test)]
mod tests;
