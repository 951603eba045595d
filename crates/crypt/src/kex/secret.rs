//! The result of an exchange, encoded the way its method hashes it.

use crate::Hash;
use std::fmt;
use zeroize::Zeroizing;

/// K, as it enters the exchange hash and key derivation; wiped on drop.
pub struct SharedSecret(Zeroizing<Vec<u8>>);

impl SharedSecret {
    /// K with its length: an `mpint` of classic methods, a `string` of hybrid ones.
    pub fn encoded(&self) -> &[u8] {
        &self.0
    }

    /// K as the number with this big-endian magnitude (RFC 4253 section 8, RFC 5656 section 4,
    /// RFC 8731 section 3.1).
    pub(super) fn mpint(magnitude: &[u8]) -> Self {
        let zeroes = magnitude.iter().take_while(|byte| **byte == 0).count();
        let digits = magnitude.get(zeroes..).unwrap_or_default();
        let sign: &[u8] =
            if digits.first().is_some_and(|high| high & 0x80 != 0) { &[0] } else { &[] };
        Self::with_length(&[sign, digits])
    }

    /// K of a hybrid: `HASH(K_PQ || K_CL)` as a `string`.
    pub(super) fn hybrid(hash: Hash, post_quantum: &[u8], classic: &[u8]) -> Self {
        Self::with_length(&[hash.digest(&[post_quantum, classic]).as_slice()])
    }

    /// One allocation of the final size: a vector that grew would leave copies behind.
    fn with_length(parts: &[&[u8]]) -> Self {
        let len: usize = parts.iter().map(|part| part.len()).sum();
        let mut out = Zeroizing::new(Vec::with_capacity(size_of::<u32>() + len));
        out.extend_from_slice(&u32::try_from(len).unwrap_or(u32::MAX).to_be_bytes());
        for part in parts {
            out.extend_from_slice(part);
        }
        Self(out)
    }
}

impl fmt::Debug for SharedSecret {
    /// Never the contents.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedSecret").finish_non_exhaustive()
    }
}
