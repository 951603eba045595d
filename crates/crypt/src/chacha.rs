//! chacha20-poly1305@openssh.com packets: length and body under two keys, one tag over both,
//! the nonce is the sequence number (OpenSSH's PROTOCOL.chacha20poly1305).
//!
//! Two libraries, because neither is fast everywhere (GB/s of one core, 32 KiB packets):
//!
//! ```text
//!               aws-lc   chacha20 and poly1305 (wide)
//! AVX-512         1.6      2.1
//! AVX2 alone      1.3      0.9
//! ```

use crate::cipher::AEAD_TAG_LEN;
use crate::material::exactly;
use crate::{BadTag, CryptError, KeyMaterial};
use aws_lc_rs::aead::chacha20_poly1305_openssh::{KEY_LEN, OpeningKey, SealingKey};

mod wide;

use wide::Wide;

const LENGTH_LEN: usize = 4;

/// One direction's pair of ChaCha20 keys.
pub struct ChaChaKey(Key);

enum Key {
    AwsLc(Box<(SealingKey, OpeningKey)>),
    Wide(Box<Wide>),
}

impl ChaChaKey {
    /// The key of one direction.
    pub fn new(material: &KeyMaterial) -> Result<Self, CryptError> {
        let key: &[u8; KEY_LEN] = exactly(&material.key, "ChaCha20-Poly1305 key")?;
        Ok(Self(if wide::is_faster() {
            Key::Wide(Box::new(Wide::new(key)))
        } else {
            Key::AwsLc(Box::new((SealingKey::new(key), OpeningKey::new(key))))
        }))
    }

    /// Encrypts `packet`, four bytes of length and the body, in place; its tag. The same
    /// sequence number must never seal twice (P2): rekey before it wraps.
    pub fn seal(&self, seq: u32, packet: &mut [u8]) -> Result<[u8; AEAD_TAG_LEN], CryptError> {
        let short = CryptError::Refused("ChaCha20-Poly1305 packet without a length");
        let (length, _) = packet.split_first_chunk_mut::<LENGTH_LEN>().ok_or(short)?;
        match &self.0 {
            Key::AwsLc(keys) => {
                let mut tag = [0; AEAD_TAG_LEN];
                keys.0.seal_in_place(seq, packet, &mut tag);
                Ok(tag)
            }
            Key::Wide(key) => {
                key.apply_to_length(seq, length);
                Ok(key.seal(seq, packet))
            }
        }
    }

    /// The packet's length field, decrypted but not yet authenticated: good for finding the end
    /// of the packet within limits, for nothing else.
    pub fn peek_length(&self, seq: u32, encrypted: &[u8; LENGTH_LEN]) -> u32 {
        u32::from_be_bytes(match &self.0 {
            Key::AwsLc(keys) => keys.1.decrypt_packet_length(seq, *encrypted),
            Key::Wide(key) => {
                let mut length = *encrypted;
                key.apply_to_length(seq, &mut length);
                length
            }
        })
    }

    /// Checks the tag over `packet` (encrypted length and body), then decrypts the body in
    /// place; the length stays encrypted. After a failure `packet` is as it was (P5).
    pub fn open(
        &self,
        seq: u32,
        packet: &mut [u8],
        tag: &[u8; AEAD_TAG_LEN],
    ) -> Result<(), BadTag> {
        if packet.len() < LENGTH_LEN {
            return Err(BadTag);
        }
        match &self.0 {
            Key::AwsLc(keys) => {
                keys.1.open_in_place(seq, packet, tag).map(|_| ()).map_err(|_| BadTag)
            }
            Key::Wide(key) => key.open(seq, packet, tag),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whichever is faster here: both are the same on the wire.
    #[test]
    fn both_libraries_make_the_same_packets() {
        let key = std::array::from_fn(|i| i as u8 * 3);
        let keys = Box::new((SealingKey::new(&key), OpeningKey::new(&key)));
        let aws_lc = ChaChaKey(Key::AwsLc(keys));
        let wide = ChaChaKey(Key::Wide(Box::new(Wide::new(&key))));
        for len in [4, 5, 20, 63, 64, 67, 68, 69, 132, 1024, 1028, 4097, 32_793, 131_100] {
            let plain: Vec<u8> = (0..len).map(|i| i as u8 ^ (i >> 8) as u8).collect();
            for seq in [0, 1, 255, 0x0102_0304, u32::MAX] {
                let (mut here, mut there) = (plain.clone(), plain.clone());
                let tag = aws_lc.seal(seq, &mut here).unwrap();
                assert_eq!(wide.seal(seq, &mut there), Ok(tag), "{len} {seq}");
                assert!(here == there, "{len} {seq}");
                let length = here[..4].try_into().unwrap();
                assert_eq!(wide.peek_length(seq, &length), aws_lc.peek_length(seq, &length));
                assert_eq!(wide.peek_length(seq, &length).to_be_bytes(), plain[..4]);
                wide.open(seq, &mut here, &tag).unwrap();
                assert!(here[4..] == plain[4..] && here[..4] == length, "{len} {seq}");
            }
        }
    }

    #[test]
    fn p5_a_packet_with_a_wrong_tag_stays_as_it_is_in_both_libraries() {
        let key = [7; KEY_LEN];
        let keys = Box::new((SealingKey::new(&key), OpeningKey::new(&key)));
        for key in [Key::AwsLc(keys), Key::Wide(Box::new(Wide::new(&key)))] {
            let key = ChaChaKey(key);
            let mut packet = [1; 100];
            let tag = key.seal(9, &mut packet).unwrap();
            for bit in 0..128 {
                let mut wrong = tag;
                wrong[bit / 8] ^= 1 << (bit % 8);
                let before = packet;
                assert_eq!(key.open(9, &mut packet, &wrong), Err(BadTag));
                assert_eq!(packet, before);
            }
            assert_eq!(key.open(8, &mut packet, &tag), Err(BadTag));
            packet[50] ^= 1;
            assert_eq!(key.open(9, &mut packet, &tag), Err(BadTag));
        }
    }
}
