//! chacha20-poly1305@openssh.com packets: length and body under two keys, one tag over both,
//! the nonce is the sequence number (OpenSSH's PROTOCOL.chacha20poly1305).

use crate::cipher::AEAD_TAG_LEN;
use crate::material::exactly;
use crate::{BadTag, CryptError, KeyMaterial};
use aws_lc_rs::aead::chacha20_poly1305_openssh::{KEY_LEN, OpeningKey, SealingKey};

const LENGTH_LEN: usize = 4;

/// One direction's pair of ChaCha20 keys.
pub struct ChaChaKey {
    sealing: SealingKey,
    opening: OpeningKey,
}

impl ChaChaKey {
    /// The key of one direction.
    pub fn new(material: &KeyMaterial) -> Result<Self, CryptError> {
        let key: &[u8; KEY_LEN] = exactly(&material.key, "ChaCha20-Poly1305 key")?;
        Ok(Self { sealing: SealingKey::new(key), opening: OpeningKey::new(key) })
    }

    /// Encrypts `packet`, four bytes of length and the body, in place; its tag. The same
    /// sequence number must never seal twice (P2): rekey before it wraps.
    pub fn seal(&self, seq: u32, packet: &mut [u8]) -> Result<[u8; AEAD_TAG_LEN], CryptError> {
        if packet.len() < LENGTH_LEN {
            return Err(CryptError::Refused("ChaCha20-Poly1305 packet without a length"));
        }
        let mut tag = [0; AEAD_TAG_LEN];
        self.sealing.seal_in_place(seq, packet, &mut tag);
        Ok(tag)
    }

    /// The packet's length field, decrypted but not yet authenticated: good for finding the end
    /// of the packet within limits, for nothing else.
    pub fn peek_length(&self, seq: u32, encrypted: &[u8; LENGTH_LEN]) -> u32 {
        u32::from_be_bytes(self.opening.decrypt_packet_length(seq, *encrypted))
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
        self.opening.open_in_place(seq, packet, tag).map(|_| ()).map_err(|_| BadTag)
    }
}
