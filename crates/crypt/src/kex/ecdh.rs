//! ECDH over the NIST curves (RFC 5656 section 4).

use super::{Method, SharedSecret};
use crate::{CryptError, KexError};
use aws_lc_rs::agreement::{
    self, Algorithm, ECDH_P256, ECDH_P384, ECDH_P521, PrivateKey, UnparsedPublicKey,
};
use zeroize::Zeroizing;

/// SEC 1 section 2.3.3: the first byte of a point in uncompressed form.
const UNCOMPRESSED: u8 = 4;

/// A fresh secret scalar of one curve.
pub(super) struct Ephemeral {
    private: PrivateKey,
    point_len: usize,
}

/// The curve and the length of its uncompressed points.
fn curve(method: Method) -> Result<(&'static Algorithm, usize), CryptError> {
    match method {
        Method::EcdhP256 => Ok((&ECDH_P256, 1 + 2 * 32)),
        Method::EcdhP384 => Ok((&ECDH_P384, 1 + 2 * 48)),
        Method::EcdhP521 => Ok((&ECDH_P521, 1 + 2 * 66)),
        _ => Err(CryptError::Refused("method without a NIST curve")),
    }
}

impl Ephemeral {
    pub(super) fn generate(method: Method) -> Result<(Self, Vec<u8>), CryptError> {
        let refused = |_| CryptError::Refused("ECDH");
        let (algorithm, point_len) = curve(method)?;
        let private = PrivateKey::generate(algorithm).map_err(refused)?;
        let public = private.compute_public_key().map_err(refused)?.as_ref().to_vec();
        Ok((Self { private, point_len }, public))
    }

    /// K is the x coordinate as a number.
    pub(super) fn agree(&self, peer: &[u8]) -> Result<SharedSecret, KexError> {
        Ok(SharedSecret::mpint(&self.raw(peer)?))
    }

    /// The x coordinate, as long as the field. RFC 5656 section 4: "All elliptic curve public
    /// keys MUST be validated after they are received"; the library checks that the point is on
    /// the curve and not infinity (the curves' cofactor is 1), we that it is in the form we send.
    pub(super) fn raw(&self, peer: &[u8]) -> Result<Zeroizing<Vec<u8>>, KexError> {
        if peer.len() != self.point_len {
            return Err(KexError::Length { expected: self.point_len, got: peer.len() });
        }
        if peer.first() != Some(&UNCOMPRESSED) {
            return Err(KexError::Value);
        }
        let peer = UnparsedPublicKey::new(self.private.algorithm(), peer);
        agreement::agree(&self.private, peer, KexError::Value, |x| Ok(Zeroizing::new(x.to_vec())))
    }
}
