//! X25519 (RFC 7748, RFC 8731): alone as curve25519-sha256, and as the classic half of hybrids.

use super::SharedSecret;
use crate::{CryptError, KexError};
use aws_lc_rs::agreement::{self, PrivateKey, UnparsedPublicKey, X25519};
use zeroize::Zeroizing;

/// Bytes of a public value and of the raw secret.
pub(super) const LEN: usize = 32;

/// A raw shared secret: the point's u coordinate as it comes, wiped on drop.
pub(super) type Point = Zeroizing<[u8; LEN]>;

const REFUSED: CryptError = CryptError::Refused("X25519");

/// A fresh secret scalar.
pub(super) struct Ephemeral(PrivateKey);

impl Ephemeral {
    pub(super) fn generate() -> Result<(Self, Vec<u8>), CryptError> {
        let private = PrivateKey::generate(&X25519).map_err(|_| REFUSED)?;
        let public = private.compute_public_key().map_err(|_| REFUSED)?.as_ref().to_vec();
        Ok((Self(private), public))
    }

    /// K of curve25519-sha256. RFC 8731 section 3.1: the 32 bytes as they come, read as a
    /// big-endian number.
    pub(super) fn agree(&self, peer: &[u8]) -> Result<SharedSecret, KexError> {
        Ok(SharedSecret::mpint(&*self.raw(peer)?))
    }

    /// The point itself. RFC 8731 section 3: an all-zero secret, which is what points of
    /// low order lead to, aborts; the library checks for it.
    pub(super) fn raw(&self, peer: &[u8]) -> Result<Point, KexError> {
        if peer.len() != LEN {
            return Err(KexError::Length { expected: LEN, got: peer.len() });
        }
        let peer = UnparsedPublicKey::new(&X25519, peer);
        agreement::agree(&self.0, peer, KexError::Value, |secret| {
            secret.try_into().map(Zeroizing::new).map_err(|_| REFUSED.into())
        })
    }
}
