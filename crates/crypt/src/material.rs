//! The secret bytes of one direction, between key derivation and the keys made of them.

use crate::{Cover, CryptError, derive, hash::Hash};
use std::fmt;
use zeroize::Zeroizing;

/// IV, encryption key and integrity key of one direction (RFC 4253 section 7.2), wiped on drop.
#[derive(Clone, PartialEq, Eq)]
pub struct KeyMaterial {
    /// Initial IV; empty where the cipher has none.
    pub iv: Zeroizing<Vec<u8>>,
    /// Encryption key.
    pub key: Zeroizing<Vec<u8>>,
    /// Integrity key; empty for an AEAD.
    pub mac: Zeroizing<Vec<u8>>,
}

/// Which way the packets go, seen from nobody's side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Letters A, C, E.
    ClientToServer,
    /// Letters B, D, F.
    ServerToClient,
}

impl KeyMaterial {
    /// Derives all three for a cover (RFC 4253 section 7.2).
    pub fn derive(
        hash: Hash,
        shared_encoded: &[u8],
        exchange_hash: &[u8],
        session_id: &[u8],
        direction: Direction,
        cover: impl Into<Cover>,
    ) -> Self {
        let cover = cover.into();
        let [iv, key, mac] = match direction {
            Direction::ClientToServer => *b"ACE",
            Direction::ServerToClient => *b"BDF",
        };
        let piece =
            |letter, len| derive(hash, shared_encoded, exchange_hash, session_id, letter, len);
        Self {
            iv: piece(iv, cover.iv_len()),
            key: piece(key, cover.key_len()),
            mac: piece(mac, cover.mac_key_len()),
        }
    }
}

impl fmt::Debug for KeyMaterial {
    /// Never the contents.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyMaterial").finish_non_exhaustive()
    }
}

/// `bytes` as exactly `N` of them.
pub(crate) fn exactly<'a, const N: usize>(
    bytes: &'a [u8],
    what: &'static str,
) -> Result<&'a [u8; N], CryptError> {
    bytes.try_into().map_err(|_| CryptError::Length { what, expected: N, got: bytes.len() })
}
