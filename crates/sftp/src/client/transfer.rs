//! Bulk: where the bytes of a put come from and where those of a get go.

use std::fs::File;
use std::sync::Arc;

/// What a put sends.
#[derive(Debug, Clone)]
pub enum Data {
    /// `len` bytes of a file from `offset` on, read when they leave.
    File {
        /// The file, open for reading.
        file: Arc<File>,
        /// Its first byte to send.
        offset: u64,
        /// How many.
        len: u64,
    },
    /// These bytes.
    Bytes(Arc<[u8]>),
    /// So many zero bytes.
    Zeros(u64),
}

impl Data {
    /// Bytes to send.
    pub fn len(&self) -> u64 {
        match self {
            Self::File { len, .. } | Self::Zeros(len) => *len,
            Self::Bytes(bytes) => bytes.len() as u64,
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Where a get's bytes go.
#[derive(Debug, Clone)]
pub enum Target {
    /// Into a file from `offset` on, written as they come; nothing outside of what was asked for.
    File {
        /// The file, open for writing.
        file: Arc<File>,
        /// Where the first byte goes.
        offset: u64,
    },
    /// Into [`Got::bytes`].
    Bytes,
    /// Nowhere.
    Discard,
}

/// Whether the bytes are hashed while they pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Check {
    /// They are not.
    #[default]
    None,
    /// With BLAKE3, the put's or get's own bytes alone.
    Blake3,
}

impl Check {
    pub(super) fn hasher(self) -> Option<Box<blake3::Hasher>> {
        (self == Self::Blake3).then(Box::default)
    }
}

/// What a put did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sent {
    /// Bytes sent, all that were asked for.
    pub len: u64,
    /// Their hash, with [`Check::Blake3`].
    pub hash: Option<[u8; 32]>,
}

/// What a get brought.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Got {
    /// Bytes that came: as many as were asked for, unless the file ended.
    pub len: u32,
    /// The file ended before all that was asked for.
    pub eof: bool,
    /// The bytes, with [`Target::Bytes`].
    pub bytes: Vec<u8>,
    /// Their hash, with [`Check::Blake3`].
    pub hash: Option<[u8; 32]>,
}
