//! What the two hybrid methods share: a post-quantum part and an X25519 point back to back.

use super::x25519;
use crate::KexError;

/// Takes a public value apart; both lengths are exact.
pub(super) fn split(public: &[u8], post_quantum: usize) -> Result<(&[u8], &[u8]), KexError> {
    let expected = post_quantum + x25519::LEN;
    match public.split_at_checked(post_quantum) {
        Some((first, point)) if point.len() == x25519::LEN => Ok((first, point)),
        _ => Err(KexError::Length { expected, got: public.len() }),
    }
}

/// Puts one together.
pub(super) fn join(post_quantum: &[u8], point: &[u8]) -> Vec<u8> {
    [post_quantum, point].concat()
}
