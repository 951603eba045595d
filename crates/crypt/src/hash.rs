//! SHA-2 for the exchange hash, key derivation and fingerprints.

use aws_lc_rs::{digest, hmac};

/// A hash function of SSH.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Hash {
    /// SHA-256.
    Sha256,
    /// SHA-384.
    Sha384,
    /// SHA-512.
    Sha512,
}

/// A hash value.
#[derive(Clone, Copy)]
pub struct Digest(digest::Digest);

impl Digest {
    /// Its bytes.
    pub fn as_slice(&self) -> &[u8] {
        self.0.as_ref()
    }
}

impl AsRef<[u8]> for Digest {
    fn as_ref(&self) -> &[u8] {
        self.as_slice()
    }
}

impl Hash {
    fn algorithm(self) -> &'static digest::Algorithm {
        match self {
            Self::Sha256 => &digest::SHA256,
            Self::Sha384 => &digest::SHA384,
            Self::Sha512 => &digest::SHA512,
        }
    }

    /// Bytes of a hash value.
    pub fn output_len(self) -> usize {
        self.algorithm().output_len()
    }

    /// The hash of the parts, one behind the other.
    pub fn digest(self, parts: &[&[u8]]) -> Digest {
        let mut state = digest::Context::new(self.algorithm());
        for part in parts {
            state.update(part);
        }
        Digest(state.finish())
    }
}

/// SHA-256 of what comes piece by piece.
pub struct Sha256(digest::Context);

impl Default for Sha256 {
    fn default() -> Self {
        Self(digest::Context::new(&digest::SHA256))
    }
}

impl Sha256 {
    /// Of nothing so far.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a piece.
    pub fn update(&mut self, piece: &[u8]) {
        self.0.update(piece);
    }

    /// The hash of all pieces.
    pub fn finish(self) -> Digest {
        Digest(self.0.finish())
    }
}

/// HMAC-SHA1, for the hashed host names of known_hosts and nothing else.
pub fn hmac_sha1(key: &[u8], data: &[u8]) -> [u8; 20] {
    let key = hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, key);
    let mut out = [0; 20];
    for (to, from) in out.iter_mut().zip(hmac::sign(&key, data).as_ref()) {
        *to = *from;
    }
    out
}
