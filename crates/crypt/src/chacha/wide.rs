//! The same packets by RustCrypto's chacha20 and poly1305, whose AVX-512 and AVX2 code is faster than
//! aws-lc's where there is AVX-512.

use crate::BadTag;
use crate::cipher::AEAD_TAG_LEN;
use aws_lc_rs::constant_time::verify_slices_are_equal;
use chacha20::ChaCha20Legacy;
use chacha20::cipher::{KeyIvInit, StreamCipher};
use poly1305::Poly1305;
use poly1305::universal_hash::KeyInit;
use zeroize::Zeroizing;

/// Whether this CPU has AVX-512, and the library was built with its code for it (.cargo/config.toml).
pub(super) fn is_faster() -> bool {
    #[cfg(all(target_arch = "x86_64", chacha20_avx512))]
    {
        use std::is_x86_feature_detected as has;
        has!("avx512f") && has!("avx512vl")
    }
    #[cfg(not(all(target_arch = "x86_64", chacha20_avx512)))]
    false
}

/// Both keys of one direction: K_2 for bodies, K_1 for lengths. Wiped on drop.
pub(super) struct Wide {
    body: Zeroizing<[u8; 32]>,
    length: Zeroizing<[u8; 32]>,
}

impl Wide {
    pub(super) fn new(key: &[u8; 64]) -> Self {
        let mut halves = key.as_chunks::<32>().0.iter();
        let mut half = || Zeroizing::new(halves.next().copied().unwrap_or_default());
        Self { body: half(), length: half() }
    }

    /// Encrypts the length field, or decrypts it.
    pub(super) fn apply_to_length(&self, seq: u32, length: &mut [u8; 4]) {
        stream(&self.length, seq).apply_keystream(length);
    }

    /// Encrypts what follows the length field, which already is; the tag over both.
    pub(super) fn seal(&self, seq: u32, packet: &mut [u8]) -> [u8; AEAD_TAG_LEN] {
        let (poly1305, mut stream) = self.start(seq);
        if let Some((_, body)) = packet.split_first_chunk_mut::<4>() {
            stream.apply_keystream(body);
        }
        poly1305.compute_unpadded(packet).into()
    }

    /// The reverse, after checking the tag.
    pub(super) fn open(
        &self,
        seq: u32,
        packet: &mut [u8],
        tag: &[u8; AEAD_TAG_LEN],
    ) -> Result<(), BadTag> {
        let (poly1305, mut stream) = self.start(seq);
        let right: [u8; AEAD_TAG_LEN] = poly1305.compute_unpadded(packet).into();
        verify_slices_are_equal(&right, tag).map_err(|_| BadTag)?;
        if let Some((_, body)) = packet.split_first_chunk_mut::<4>() {
            stream.apply_keystream(body);
        }
        Ok(())
    }

    /// The key of the tag is the start of the first block; the body begins with the second one.
    fn start(&self, seq: u32) -> (Poly1305, ChaCha20Legacy) {
        let mut stream = stream(&self.body, seq);
        let mut first = Zeroizing::new([[0; 32]; 2]);
        stream.apply_keystream(first.as_flattened_mut());
        let [key, _rest] = &*first;
        (Poly1305::new(key.into()), stream)
    }
}

/// The stream of a packet: 64 bits of nonce, as its inventor had it.
fn stream(key: &[u8; 32], seq: u32) -> ChaCha20Legacy {
    ChaCha20Legacy::new(key.into(), &u64::from(seq).to_be_bytes().into())
}
