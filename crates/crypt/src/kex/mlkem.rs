//! mlkem768x25519-sha256 (draft-ietf-sshm-mlkem-hybrid-kex): FIPS 203 beside X25519.

use super::{SharedSecret, hybrid, x25519, x25519::Point};
use crate::{CryptError, Hash, KexError};
use aws_lc_rs::kem::{self, AlgorithmId, DecapsulationKey, EncapsulationKey, ML_KEM_768};

/// FIPS 203 table 3: bytes of encapsulation key and of ciphertext.
pub(super) const PUBLIC_LEN: usize = 1184;
pub(super) const CIPHERTEXT_LEN: usize = 1088;

const REFUSED: CryptError = CryptError::Refused("ML-KEM-768");

/// The client's two secrets.
pub(super) struct Ephemeral {
    kem: DecapsulationKey<AlgorithmId>,
    point: x25519::Ephemeral,
}

impl Ephemeral {
    pub(super) fn generate() -> Result<(Self, Vec<u8>), CryptError> {
        let kem = DecapsulationKey::generate(&ML_KEM_768).map_err(|_| REFUSED)?;
        let key = kem.encapsulation_key().and_then(|k| k.key_bytes()).map_err(|_| REFUSED)?;
        let (point, public) = x25519::Ephemeral::generate()?;
        Ok((Self { kem, point }, hybrid::join(key.as_ref(), &public)))
    }

    pub(super) fn finish(&self, server: &[u8]) -> Result<SharedSecret, KexError> {
        let (secret, classic) = self.raw(server)?;
        Ok(SharedSecret::hybrid(Hash::Sha256, secret.as_ref(), &*classic))
    }

    /// Both secrets. The library checks the ciphertext's length again.
    pub(super) fn raw(&self, server: &[u8]) -> Result<(kem::SharedSecret, Point), KexError> {
        let (ciphertext, point) = hybrid::split(server, CIPHERTEXT_LEN)?;
        let classic = self.point.raw(point)?;
        let secret = self.kem.decapsulate(ciphertext.into()).map_err(|_| KexError::Value)?;
        Ok((secret, classic))
    }
}

/// FIPS 203 section 7.2: the encapsulation key's length and modulus are checked, by us and by
/// the library.
pub(super) fn respond(client: &[u8]) -> Result<(Vec<u8>, SharedSecret), KexError> {
    let (key, point) = hybrid::split(client, PUBLIC_LEN)?;
    let (own, public) = x25519::Ephemeral::generate()?;
    let classic = own.raw(point)?;
    let key = EncapsulationKey::new(&ML_KEM_768, key).map_err(|_| KexError::Value)?;
    let (ciphertext, secret) = key.encapsulate().map_err(|_| KexError::Value)?;
    let shared = SharedSecret::hybrid(Hash::Sha256, secret.as_ref(), &*classic);
    Ok((hybrid::join(ciphertext.as_ref(), &public), shared))
}
