//! Why a connection ended, by culprit.

use std::io;
use wire::msg::Disconnect;
use wire::text::words;

/// Errors of a running connection.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The peer broke the protocol, or the two sides have nothing in common.
    #[error(transparent)]
    Protocol(#[from] proto::Error),
    /// A packet that is not one.
    #[error("corrupted on the wire: {0}")]
    Packet(#[from] packet::Error),
    /// An algorithm would not take its key.
    #[error("cannot set up encryption: {0}")]
    Crypt(#[from] crypt::CryptError),
    /// Data for a channel that is not open (RFC 4254 section 5.2; invariant C3).
    #[error("the other side sent data for channel {0}, which is not open")]
    Stray(u32),
    /// The peer closed the connection without a word.
    #[error("connection closed by the other side")]
    Closed,
    /// The peer said goodbye: its reason code and text.
    #[error("the other side disconnected: {1} (code {0})")]
    Disconnected(u32, String),
    /// Nothing came in time.
    #[error("no answer from the other side for {} s", .0.as_secs())]
    Timeout(std::time::Duration),
    /// The peer did not finish a key exchange in time.
    #[error("the other side did not finish a key exchange within {} s", .0.as_secs())]
    Unfinished(std::time::Duration),
    /// Our own fault, as we start an exchange long before: nothing may be sealed under this key
    /// any more (invariant P2).
    #[error("the sending key is worn out: 2^32 packets without a key exchange")]
    WornOut,
    /// The operating system refused: what we did, and why not.
    #[error("{}: {}", .0, words(.1))]
    Local(&'static str, io::Error),
}

impl Error {
    /// The words for the peer: nothing of what is only our own business.
    pub fn for_peer(&self) -> String {
        match self {
            Self::Protocol(error) => error.for_peer(),
            Self::Crypt(_) | Self::WornOut | Self::Local(..) => "internal error".to_owned(),
            _ => self.to_string(),
        }
    }

    /// What the peer is told; `None` when it cannot hear it any more.
    pub fn disconnect_code(&self) -> Option<Disconnect> {
        match self {
            Self::Protocol(error) => Some(error.disconnect_code()),
            Self::Packet(error) => Some(error.disconnect_code()),
            Self::Stray(_) => Some(Disconnect::ProtocolError),
            Self::Crypt(_) | Self::Unfinished(_) => Some(Disconnect::KeyExchangeFailed),
            Self::Timeout(_) | Self::Local(..) => Some(Disconnect::ByApplication),
            // A DISCONNECT would need the key, too.
            Self::Closed | Self::Disconnected(..) | Self::WornOut => None,
        }
    }
}
