//! AES in counter mode (RFC 4344 section 4) with the keystream position as an argument.

use crate::material::exactly;
use crate::{Cipher, CryptError, KeyMaterial};
use aws_lc_rs::cipher::{
    AES_128, AES_192, AES_256, EncryptingKey, EncryptionContext, UnboundCipherKey,
};
use zeroize::Zeroizing;

/// One direction's AES-CTR key and initial counter.
pub struct CtrKey {
    key: EncryptingKey,
    initial: Zeroizing<u128>,
}

impl CtrKey {
    /// Bytes of keystream per step of the counter.
    pub const BLOCK: usize = 16;

    /// The key of one direction.
    pub fn new(cipher: Cipher, material: &KeyMaterial) -> Result<Self, CryptError> {
        let algorithm = match cipher {
            Cipher::Aes128Ctr => &AES_128,
            Cipher::Aes192Ctr => &AES_192,
            Cipher::Aes256Ctr => &AES_256,
            _ => return Err(CryptError::Refused(cipher.name())),
        };
        let wrong = |_| CryptError::Length {
            what: "AES-CTR key",
            expected: cipher.key_len(),
            got: material.key.len(),
        };
        let key = UnboundCipherKey::new(algorithm, &material.key)
            .and_then(EncryptingKey::ctr)
            .map_err(wrong)?;
        let initial = u128::from_be_bytes(*exactly(&material.iv, "AES-CTR IV")?);
        Ok(Self { key, initial: Zeroizing::new(initial) })
    }

    /// Encrypts or decrypts `data` in place with the keystream from `block` on: the number of
    /// blocks since NEWKEYS. RFC 4344 section 4: the counter is a 128-bit number and wraps as
    /// one. A failure leaves data that must not be sent.
    pub fn apply(&self, block: u64, data: &mut [u8]) -> Result<(), CryptError> {
        let counter = self.initial.wrapping_add(u128::from(block)).to_be_bytes();
        self.key
            .less_safe_encrypt(data, EncryptionContext::Iv128(counter.into()))
            .map(|_| ())
            .map_err(|_| CryptError::Refused("AES-CTR"))
    }
}
