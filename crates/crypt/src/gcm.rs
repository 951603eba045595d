//! AES-GCM packets (RFC 5647): the length is associated data, the nonce counts invocations.

use crate::cipher::AEAD_TAG_LEN;
use crate::material::exactly;
use crate::{BadTag, Cipher, CryptError, KeyMaterial};
use aws_lc_rs::aead::{AES_128_GCM, AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};

/// One direction's AES-GCM key and initial IV.
pub struct GcmKey {
    key: LessSafeKey,
    iv: InitialIv,
}

/// RFC 5647 section 7.1: a fixed field and a counter that starts where key derivation put it.
struct InitialIv {
    fixed: [u8; 4],
    counter: u64,
}

impl InitialIv {
    fn new(iv: &[u8; 12]) -> Self {
        let [a, b, c, d, counter @ ..] = *iv;
        Self { fixed: [a, b, c, d], counter: u64::from_be_bytes(counter) }
    }

    /// The counter wraps within its eight bytes and never carries into the fixed field.
    fn nonce(&self, invocation: u64) -> Nonce {
        let [a, b, c, d] = self.fixed;
        let [e, f, g, h, i, j, k, l] = self.counter.wrapping_add(invocation).to_be_bytes();
        Nonce::assume_unique_for_key([a, b, c, d, e, f, g, h, i, j, k, l])
    }
}

impl GcmKey {
    /// The key of one direction.
    pub fn new(cipher: Cipher, material: &KeyMaterial) -> Result<Self, CryptError> {
        let algorithm = match cipher {
            Cipher::Aes128Gcm => &AES_128_GCM,
            Cipher::Aes256Gcm => &AES_256_GCM,
            _ => return Err(CryptError::Refused(cipher.name())),
        };
        let key = UnboundKey::new(algorithm, &material.key).map_err(|_| CryptError::Length {
            what: "AES-GCM key",
            expected: cipher.key_len(),
            got: material.key.len(),
        })?;
        let iv = InitialIv::new(exactly(&material.iv, "AES-GCM IV")?);
        Ok(Self { key: LessSafeKey::new(key), iv })
    }

    /// Encrypts `data` in place and authenticates it with the length field `aad`. `invocation`
    /// is the number of packets since NEWKEYS; the same one must never seal twice (P2).
    pub fn seal(
        &self,
        invocation: u64,
        aad: &[u8; 4],
        data: &mut [u8],
    ) -> Result<[u8; AEAD_TAG_LEN], CryptError> {
        let tag = self
            .key
            .seal_in_place_separate_tag(self.iv.nonce(invocation), Aad::from(aad), data)
            .map_err(|_| CryptError::Refused("AES-GCM seal"))?;
        exactly(tag.as_ref(), "AES-GCM tag").copied()
    }

    /// Checks the tag and decrypts `data` in place. After a failure `data` is not plaintext
    /// (P5): the library has overwritten it.
    pub fn open(
        &self,
        invocation: u64,
        aad: &[u8; 4],
        data: &mut [u8],
        tag: &[u8; AEAD_TAG_LEN],
    ) -> Result<(), BadTag> {
        self.key
            .open_in_place_separate_tag(self.iv.nonce(invocation), Aad::from(aad), tag, data)
            .map(|_| ())
            .map_err(|_| BadTag)
    }
}
