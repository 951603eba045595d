//! Why a request has no answer, by culprit.

use crate::codec::Status;
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// Errors of one request, or of the whole channel. Text of the server must be escaped before it
/// reaches a terminal (E2).
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// The server said no (draft section 7).
    #[error("{}", if text.is_empty() { code.text().to_owned() } else { text.clone() })]
    Status {
        /// Its code.
        code: Status,
        /// Its words.
        text: String,
    },
    /// A file of ours could not be read or written; the rest of the channel goes on (F5).
    #[error("{0}: {1}")]
    Local(&'static str, Arc<io::Error>),
    /// A file of ours ended before the bytes that were to be sent (F9).
    #[error("the file got shorter while it was sent: nothing at byte {at}")]
    Shrunk {
        /// Offset in the file of the first byte that is not there.
        at: u64,
    },
    /// The server broke the protocol, which ends the channel (F6).
    #[error("the server broke the SFTP protocol: {0}")]
    Server(String),
    /// The channel or the connection ended before the answer came.
    #[error("{0}")]
    Ended(Arc<str>),
}

impl Error {
    /// The channel is over for this reason.
    pub fn ended(why: impl AsRef<str>) -> Self {
        Self::Ended(why.as_ref().into())
    }

    /// The channel is over because the server never began.
    pub fn silent(patience: Duration) -> Self {
        let seconds = patience.as_secs_f64();
        Self::ended(format!("the server did not begin to speak SFTP within {seconds:.0} s"))
    }

    /// The server's code, if it was the server that said no.
    pub fn status(&self) -> Option<Status> {
        match self {
            Self::Status { code, .. } => Some(*code),
            _ => None,
        }
    }

    /// Whether nothing more can be asked on this channel.
    pub fn is_channels(&self) -> bool {
        matches!(self, Self::Server(_) | Self::Ended(_))
    }

    pub(super) fn local(what: &'static str, why: io::Error) -> Self {
        Self::Local(what, Arc::new(why))
    }
}
