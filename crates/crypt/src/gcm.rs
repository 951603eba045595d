//! AES-GCM packets (RFC 5647): the length is associated data, the nonce counts invocations.
//!
//! Two libraries, because neither is fast everywhere (GB/s of one core, 32 KiB packets):
//!
//! ```text
//!                              aws-lc   ring
//! AVX-512 with VAES              12      9.6
//! AVX2 with VAES, no AVX-512     2.7     5.8
//! AES-NI alone                   the same code in both
//! ```

use crate::cipher::AEAD_TAG_LEN;
use crate::material::exactly;
use crate::{BadTag, Cipher, CryptError, KeyMaterial};

/// One direction's AES-GCM key and initial IV.
pub struct GcmKey {
    key: Key,
    iv: InitialIv,
}

enum Key {
    AwsLc(aws_lc_rs::aead::LessSafeKey),
    Ring(Box<ring::aead::LessSafeKey>),
}

impl Key {
    fn new(cipher: Cipher, key: &[u8]) -> Result<Self, CryptError> {
        let wrong = || CryptError::Length {
            what: "AES-GCM key",
            expected: cipher.key_len(),
            got: key.len(),
        };
        let wide = match cipher {
            Cipher::Aes128Gcm => false,
            Cipher::Aes256Gcm => true,
            _ => return Err(CryptError::Refused(cipher.name())),
        };
        if ring_is_faster() {
            use ring::aead::{AES_128_GCM, AES_256_GCM, LessSafeKey, UnboundKey};
            let algorithm = if wide { &AES_256_GCM } else { &AES_128_GCM };
            let key = UnboundKey::new(algorithm, key).map_err(|_| wrong())?;
            Ok(Self::Ring(Box::new(LessSafeKey::new(key))))
        } else {
            use aws_lc_rs::aead::{AES_128_GCM, AES_256_GCM, LessSafeKey, UnboundKey};
            let algorithm = if wide { &AES_256_GCM } else { &AES_128_GCM };
            let key = UnboundKey::new(algorithm, key).map_err(|_| wrong())?;
            Ok(Self::AwsLc(LessSafeKey::new(key)))
        }
    }
}

/// Whether this CPU has wide AES, but not the registers that aws-lc's code for it needs.
fn ring_is_faster() -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        use std::is_x86_feature_detected as has;
        has!("vaes") && has!("vpclmulqdq") && has!("avx2") && !has!("avx512bw")
    }
    #[cfg(not(target_arch = "x86_64"))]
    false
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
    fn nonce(&self, invocation: u64) -> [u8; 12] {
        let [a, b, c, d] = self.fixed;
        let [e, f, g, h, i, j, k, l] = self.counter.wrapping_add(invocation).to_be_bytes();
        [a, b, c, d, e, f, g, h, i, j, k, l]
    }
}

impl GcmKey {
    /// The key of one direction.
    pub fn new(cipher: Cipher, material: &KeyMaterial) -> Result<Self, CryptError> {
        let iv = InitialIv::new(exactly(&material.iv, "AES-GCM IV")?);
        Ok(Self { key: Key::new(cipher, &material.key)?, iv })
    }

    /// Encrypts `data` in place and authenticates it with the length field `aad`. `invocation`
    /// is the number of packets since NEWKEYS; the same one must never seal twice (P2).
    pub fn seal(
        &self,
        invocation: u64,
        aad: &[u8; 4],
        data: &mut [u8],
    ) -> Result<[u8; AEAD_TAG_LEN], CryptError> {
        let nonce = self.iv.nonce(invocation);
        let refused = CryptError::Refused("AES-GCM seal");
        match &self.key {
            Key::AwsLc(key) => {
                use aws_lc_rs::aead::{Aad, Nonce};
                let nonce = Nonce::assume_unique_for_key(nonce);
                let tag = key.seal_in_place_separate_tag(nonce, Aad::from(aad), data);
                exactly(tag.map_err(|_| refused)?.as_ref(), "AES-GCM tag").copied()
            }
            Key::Ring(key) => {
                use ring::aead::{Aad, Nonce};
                let nonce = Nonce::assume_unique_for_key(nonce);
                let tag = key.seal_in_place_separate_tag(nonce, Aad::from(aad), data);
                exactly(tag.map_err(|_| refused)?.as_ref(), "AES-GCM tag").copied()
            }
        }
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
        let nonce = self.iv.nonce(invocation);
        let opened = match &self.key {
            Key::AwsLc(key) => {
                use aws_lc_rs::aead::{Aad, Nonce};
                let nonce = Nonce::assume_unique_for_key(nonce);
                key.open_in_place_separate_tag(nonce, Aad::from(aad), tag, data).is_ok()
            }
            Key::Ring(key) => {
                use ring::aead::{Aad, Nonce};
                let nonce = Nonce::assume_unique_for_key(nonce);
                let tag = (*tag).into();
                key.open_in_place_separate_tag(nonce, Aad::from(aad), tag, data, 0..).is_ok()
            }
        };
        if opened { Ok(()) } else { Err(BadTag) }
    }
}
