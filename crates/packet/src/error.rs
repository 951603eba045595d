//! What can be wrong with a packet. A failed integrity check carries no detail on purpose.

use wire::msg::Disconnect;

/// A received packet that must end the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// `packet_length` is outside what RFC 4253 section 6 and our limit allow.
    #[error("packet length {0} is out of bounds")]
    Length(u32),
    /// `packet_length` is not a multiple of the block size, or the padding does not fit.
    #[error("packet padding is wrong")]
    Padding,
    /// The tag does not match: damaged or forged on the way.
    #[error("packet failed its integrity check")]
    Integrity,
    /// What was compressed is not, or is longer than a packet may be (RFC 4253 section 6.2).
    #[error("packet cannot be decompressed")]
    Compression,
}

impl Error {
    /// The reason code the peer is told (RFC 4250 section 4.2.2).
    pub fn disconnect_code(self) -> Disconnect {
        match self {
            Self::Integrity => Disconnect::MacError,
            Self::Compression => Disconnect::CompressionError,
            Self::Length(_) | Self::Padding => Disconnect::ProtocolError,
        }
    }
}

impl From<crypt::BadTag> for Error {
    fn from(_: crypt::BadTag) -> Self {
        Self::Integrity
    }
}

/// An algorithm that will not run proves nothing: it counts as a failed check (invariant A10).
impl From<crypt::CryptError> for Error {
    fn from(_: crypt::CryptError) -> Self {
        Self::Integrity
    }
}
