//! Fault: why an end did not do what it was asked, and at which end that is.

use super::lane::At;
use sftp::codec::Status;
use std::io;
use thiserror::Error;
use wire::text::words;

/// A bad answer.
#[derive(Debug, Clone, Error)]
pub(super) enum Fault {
    /// The connection or the channel is over: nothing is wrong with the file.
    #[error("{0}")]
    Lost(String),
    /// The server broke the protocol: nothing of it is believed any more.
    #[error("{0}")]
    Broken(String),
    /// There is no such file.
    #[error("No such file or directory")]
    Missing,
    /// A listing has no more names.
    #[error("the server said that there is no more, where there must be")]
    End,
    /// There is no room any more, or the file system is read-only: nothing else will fit either (R4).
    #[error("{0}")]
    Full(String),
    /// The source is not what it was (F9), or what was written at the target is not.
    #[error("{1}")]
    Changed(At, &'static str),
    /// The server does not know how.
    #[error("the server cannot take them")]
    Unsupported,
    /// What is at the target is not what it looks like (`--verify`).
    #[error("the target's content differs from the source's")]
    Differs,
    /// Anything else, with the cause in words.
    #[error("{0}")]
    Other(String),
    /// What the source's end says of the source; anything else is the target's.
    #[error("{0}")]
    Source(Box<Self>),
}

impl Fault {
    pub(super) fn other(why: impl Into<String>) -> Self {
        Self::Other(why.into())
    }

    /// The server answered, but not what it was asked.
    pub(super) fn unfit() -> Self {
        Self::other("the server's answer does not fit the request")
    }

    /// The same as what this end says. Channels are nobody's.
    pub(super) fn at(self, at: At) -> Self {
        match (at, self) {
            (At::Source, fault) if !fault.has_its_end() => Self::Source(Box::new(fault)),
            (_, fault) => fault,
        }
    }

    fn has_its_end(&self) -> bool {
        matches!(
            self,
            Self::Lost(_) | Self::Broken(_) | Self::Changed(..) | Self::Differs | Self::Source(_)
        )
    }

    /// At which end it is.
    pub(super) fn end(&self) -> At {
        match self {
            Self::Source(_) => At::Source,
            Self::Changed(at, _) => *at,
            _ => At::Target,
        }
    }

    /// Whether it is for want of rights.
    pub(super) fn is_refusal(&self) -> bool {
        let words = ["ermission denied", "not permitted"];
        matches!(self, Self::Other(why) if words.iter().any(|words| why.contains(words)))
    }

    /// What no server and no file can bring about.
    pub(super) fn internal(what: &str) -> Self {
        Self::Other(internal(what))
    }
}

/// What is told of a fault of our own.
pub(super) fn internal(what: &str) -> String {
    format!("internal error: {what}; please report it")
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        use io::ErrorKind as E;
        match error.kind() {
            E::NotFound => Self::Missing,
            E::StorageFull | E::QuotaExceeded | E::ReadOnlyFilesystem => Self::Full(words(&error)),
            _ => Self::Other(words(&error)),
        }
    }
}

impl From<sftp::client::Error> for Fault {
    fn from(error: sftp::client::Error) -> Self {
        use sftp::client::Error as E;
        match &error {
            E::Ended(_) => Self::Lost(error.to_string()),
            E::Server(_) => Self::Broken(error.to_string()),
            E::Shrunk { .. } => {
                Self::Changed(At::Source, "the source got shorter while it was copied")
            }
            E::Local(_, why) => Self::from(io::Error::new(why.kind(), words(why))),
            E::Status { code: Status::NoSuchFile, .. } => Self::Missing,
            E::Status { code: Status::Eof, .. } => Self::End,
            E::Status { text, .. } if is_full(text) => Self::Full(text.clone()),
            E::Status { .. } => Self::Other(error.to_string()),
        }
    }
}

/// Servers that say why in words, of their C library, of Go's or their own.
fn is_full(text: &str) -> bool {
    let text = text.to_lowercase();
    let full = ["no space left", "quota exceeded", "read-only file system"];
    full.iter().any(|full| text.contains(full))
}
