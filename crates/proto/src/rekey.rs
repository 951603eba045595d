//! When it is time for new keys (RFC 4253 section 9, RFC 4344 section 3).
//!
//! The data plane counts what passes under a key and asks [`RekeyLimit::is_due`] once per batch,
//! for each direction; when it is, somebody calls `Transport::rekey`.

use crypt::{Cipher, Cover};
use std::time::Duration;

/// Packets under one key. RFC 4344 section 3.1: "SHOULD NOT send more than 2**32 packets before
/// rekeying again ... the preferred way to do this is to rekey after receiving more than 2**31".
pub const MAX_PACKETS: u64 = 1 << 31;

/// The hard stop, however slow the peer is to exchange keys: before 2^32, where sequence numbers
/// would repeat under one key, with room for batches under way. Nothing more is sealed.
pub const NO_MORE_PACKETS: u64 = (1 << 32) - (1 << 20);

/// How much one key may do; `None`: no limit of the user's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RekeyLimit {
    /// Bytes under one key; `None`: by the cipher's block.
    pub bytes: Option<u64>,
    /// Time under one key.
    pub time: Option<Duration>,
}

/// What one key has done so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Used {
    /// Bytes of packets.
    pub bytes: u64,
    /// Packets.
    pub packets: u64,
    /// Time since NEWKEYS.
    pub age: Duration,
}

impl RekeyLimit {
    /// Bytes after which the key of `cover` is to be replaced: a MAC alone has no limit.
    pub fn bytes_for(&self, cover: Cover) -> u64 {
        let most = cover.protection().map_or(u64::MAX, |p| max_bytes(p.cipher()));
        self.bytes.map_or(most, |wanted| wanted.min(most))
    }

    /// Whether it is time.
    pub fn is_due(&self, cover: Cover, used: Used) -> bool {
        used.bytes >= self.bytes_for(cover)
            || used.packets >= MAX_PACKETS
            || self.time.is_some_and(|most| used.age >= most)
    }
}

/// RFC 4344 section 3.2: 2^(L/4) blocks of L bits, at most 1 GiB where L is below 128. 64 GiB
/// for AES; ChaCha20 counts as a cipher of 64 bits, as in OpenSSH.
fn max_bytes(cipher: Cipher) -> u64 {
    if cipher.block_len() >= 16 { 16 << 32 } else { 1 << 30 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn aead(cipher: Cipher) -> Cover {
        crypt::Protection::new(cipher, None).unwrap().into()
    }

    #[test]
    fn the_cipher_limits_bytes_and_the_user_may_lower_them() {
        let gcm = aead(Cipher::Aes128Gcm);
        assert_eq!(RekeyLimit::default().bytes_for(gcm), 64 << 30);
        assert_eq!(RekeyLimit::default().bytes_for(aead(Cipher::ChaCha20Poly1305)), 1 << 30);
        let user = |bytes| RekeyLimit { bytes: Some(bytes), time: None };
        assert_eq!(user(65_536).bytes_for(gcm), 65_536);
        assert_eq!(user(u64::MAX).bytes_for(gcm), 64 << 30);
    }

    #[test]
    fn bytes_packets_and_time_each_make_it_due() {
        let limit = RekeyLimit { bytes: Some(100), time: Some(Duration::from_secs(10)) };
        let due = |bytes, packets, secs| {
            let used = Used { bytes, packets, age: Duration::from_secs(secs) };
            limit.is_due(aead(Cipher::Aes256Gcm), used)
        };
        assert!(!due(99, MAX_PACKETS - 1, 9));
        assert!(due(100, 0, 0) && due(0, MAX_PACKETS, 0) && due(0, 0, 10));
    }
}
