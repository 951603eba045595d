//! How many threads a connection gets beside its sources and its receiver.

use proto::Transport;
use std::thread::available_parallelism;

/// Crypto workers: as the user said, or what the cores and the cipher suggest.
///
/// A hand-over between threads costs more than it wins while it takes a core away from reading
/// and writing, so with two cores everything is folded. AES-GCM with hardware runs at 10 GB/s on
/// one core and is never what limits; ChaCha20 and CTR with HMAC are.
pub fn workers(chosen: Option<usize>, transport: &Transport) -> usize {
    const MOST: usize = 4;
    let idle = available_parallelism().map_or(1, usize::from).saturating_sub(2);
    let slow = transport.negotiated().is_some_and(|n| {
        let fast = |cover: crypt::Cover| {
            let cipher = cover.protection().map(crypt::Protection::cipher);
            cipher.is_none_or(|c| c.is_aead() && c != crypt::Cipher::ChaCha20Poly1305)
        };
        !(fast(n.c2s) && fast(n.s2c) && crypt::cipher::has_fast_aes())
    });
    chosen.unwrap_or(if slow { idle.min(MOST) } else { 0 })
}
