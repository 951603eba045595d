//! From the shared secret to keys (RFC 4253 section 7.2).

use crate::Hash;
use zeroize::{Zeroize, Zeroizing};

/// `len` bytes of `HASH(K || H || letter || session_id)`, extended by `HASH(K || H || so far)`.
/// `shared_encoded` is K as it stands in the exchange hash
/// ([`SharedSecret::encoded`](crate::kex::SharedSecret::encoded)).
pub fn derive(
    hash: Hash,
    shared_encoded: &[u8],
    exchange_hash: &[u8],
    session_id: &[u8],
    letter: u8,
    len: usize,
) -> Zeroizing<Vec<u8>> {
    // Room for whole hash values, so that growing never leaves a copy behind.
    let mut out = Zeroizing::new(Vec::with_capacity(len.next_multiple_of(hash.output_len())));
    while out.len() < len {
        let first: &[&[u8]] = &[shared_encoded, exchange_hash, &[letter], session_id];
        let more: &[&[u8]] = &[shared_encoded, exchange_hash, &out];
        let piece = hash.digest(if out.is_empty() { first } else { more });
        out.extend_from_slice(piece.as_slice());
    }
    out.truncate(len);
    out.spare_capacity_mut().zeroize();
    out
}
