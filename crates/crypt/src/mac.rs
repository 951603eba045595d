//! HMAC over sequence number and packet (RFC 4253 section 6.4, RFC 6668).

use crate::{BadTag, CryptError, Mac};
use aws_lc_rs::{constant_time, hmac};

/// One direction's integrity key.
pub struct MacKey {
    key: hmac::Key,
}

/// A packet's tag.
#[derive(Clone, Copy)]
pub struct Tag(hmac::Tag);

impl Tag {
    /// The bytes that go behind the packet.
    pub fn as_slice(&self) -> &[u8] {
        self.0.as_ref()
    }
}

impl MacKey {
    /// The key of one direction.
    pub fn new(mac: Mac, key: &[u8]) -> Result<Self, CryptError> {
        if key.len() != mac.key_len() {
            let (expected, got) = (mac.key_len(), key.len());
            return Err(CryptError::Length { what: "HMAC key", expected, got });
        }
        let algorithm = match mac {
            Mac::HmacSha256 | Mac::HmacSha256Etm => hmac::HMAC_SHA256,
            Mac::HmacSha512 | Mac::HmacSha512Etm => hmac::HMAC_SHA512,
        };
        Ok(Self { key: hmac::Key::new(algorithm, key) })
    }

    /// `MAC(key, seq || parts)`.
    pub fn tag(&self, seq: u32, parts: &[&[u8]]) -> Tag {
        let mut state = hmac::Context::with_key(&self.key);
        state.update(&seq.to_be_bytes());
        for part in parts {
            state.update(part);
        }
        Tag(state.sign())
    }

    /// Compares in constant time.
    pub fn verify(&self, seq: u32, parts: &[&[u8]], expect: &[u8]) -> Result<(), BadTag> {
        constant_time::verify_slices_are_equal(self.tag(seq, parts).as_slice(), expect)
            .map_err(|_| BadTag)
    }
}
