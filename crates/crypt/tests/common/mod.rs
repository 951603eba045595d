//! What the tests of keys share.
#![allow(dead_code, reason = "each test binary uses its own part")]

use crypt::{ChaChaKey, Cipher, CtrKey, GcmKey, KeyMaterial, Mac, MacKey, Protection, Shape};
use zeroize::Zeroizing;

/// Bytes from hexadecimal digits.
pub(crate) fn unhex(text: &str) -> Vec<u8> {
    let byte = |at| u8::from_str_radix(&text[at..at + 2], 16).expect("hexadecimal");
    (0..text.len()).step_by(2).map(byte).collect()
}

/// Key material without a MAC key.
pub(crate) fn material(iv: &[u8], key: &[u8]) -> KeyMaterial {
    let secret = |bytes: &[u8]| Zeroizing::new(bytes.to_vec());
    KeyMaterial { iv: secret(iv), key: secret(key), mac: secret(&[]) }
}

/// Reproducible bytes that look random enough (xorshift).
pub(crate) fn noise(seed: u64, len: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 24) as u8
    };
    (0..len).map(|_| next()).collect()
}

/// Material of the right lengths for `protection`.
pub(crate) fn noise_material(protection: Protection, seed: u64) -> KeyMaterial {
    let piece = |letter, len| Zeroizing::new(noise(seed ^ letter, len));
    KeyMaterial {
        iv: piece(1 << 32, protection.iv_len()),
        key: piece(2 << 32, protection.key_len()),
        mac: piece(3 << 32, protection.mac_key_len()),
    }
}

/// One direction's keys, whichever they are, over packets of four length bytes and a body whose
/// length is a multiple of the block.
pub(crate) enum Keys {
    Gcm(GcmKey),
    ChaCha(ChaChaKey),
    /// The last field: whether the tag covers the ciphertext.
    Ctr(Box<(CtrKey, MacKey)>, bool),
}

impl Keys {
    pub(crate) fn new(protection: Protection, material: &KeyMaterial) -> Self {
        match protection.shape() {
            Shape::Gcm(cipher) => Self::Gcm(GcmKey::new(cipher, material).expect("material")),
            Shape::ChaCha => Self::ChaCha(ChaChaKey::new(material).expect("material")),
            Shape::Ctr(cipher, mac) => {
                let key = CtrKey::new(cipher, material).expect("material");
                let tags = MacKey::new(mac, &material.mac).expect("material");
                Self::Ctr(Box::new((key, tags)), mac.is_etm())
            }
        }
    }

    /// Seals packet `n`; its tag fills `tag`. All packets of a test have the same length.
    pub(crate) fn seal(&self, n: u32, packet: &mut [u8], tag: &mut [u8]) {
        let block = u64::from(n) * packet.len().div_ceil(CtrKey::BLOCK) as u64;
        match self {
            Self::Gcm(key) => {
                let (length, body) = packet.split_first_chunk_mut().expect("a length");
                tag.copy_from_slice(&key.seal(n.into(), length, body).expect("seals"));
            }
            Self::ChaCha(key) => tag.copy_from_slice(&key.seal(n, packet).expect("seals")),
            Self::Ctr(keys, true) => {
                keys.0.apply(block, &mut packet[4..]).expect("applies");
                tag.copy_from_slice(keys.1.tag(n, &[packet]).as_slice());
            }
            Self::Ctr(keys, false) => {
                tag.copy_from_slice(keys.1.tag(n, &[packet]).as_slice());
                keys.0.apply(block, packet).expect("applies");
            }
        }
    }

    /// Opens packet `n`; whether it was authentic.
    pub(crate) fn open(&self, n: u32, packet: &mut [u8], tag: &[u8]) -> bool {
        let block = u64::from(n) * packet.len().div_ceil(CtrKey::BLOCK) as u64;
        match self {
            Self::Gcm(key) => {
                let (length, body) = packet.split_first_chunk_mut().expect("a length");
                key.open(n.into(), length, body, tag.first_chunk().expect("a tag")).is_ok()
            }
            Self::ChaCha(key) => key.open(n, packet, tag.first_chunk().expect("a tag")).is_ok(),
            Self::Ctr(keys, true) => {
                keys.1.verify(n, &[packet], tag).is_ok()
                    && keys.0.apply(block, &mut packet[4..]).is_ok()
            }
            Self::Ctr(keys, false) => {
                keys.0.apply(block, packet).is_ok() && keys.1.verify(n, &[packet], tag).is_ok()
            }
        }
    }
}

/// Every cipher with every MAC it can have.
pub(crate) fn protections() -> Vec<Protection> {
    Protection::all().collect()
}

/// A cipher as a protection, with some MAC where it needs one.
pub(crate) fn of(cipher: Cipher) -> Protection {
    Protection::new(cipher, Some(Mac::HmacSha256Etm)).expect("a MAC is given")
}
