//! How many threads a connection gets beside its sources and its receiver.

use proto::Transport;
use std::thread::available_parallelism;

/// Crypto workers: as the user said, or what the cores and the cipher suggest.
///
/// A hand-over between threads costs more than it wins while it takes a core away from reading
/// and writing, so with two cores everything is folded. AES-GCM with hardware runs at 10 GB/s on
/// one core and is never what limits; ChaCha20 and CTR with HMAC are.
pub fn workers(chosen: Option<usize>, transport: &Transport) -> usize {
    let slow = transport.negotiated().is_some_and(|n| {
        let fast = |cover: crypt::Cover| {
            let cipher = cover.protection().map(crypt::Protection::cipher);
            cipher.is_none_or(|c| c.is_aead() && c != crypt::Cipher::ChaCha20Poly1305)
        };
        !(fast(n.c2s) && fast(n.s2c) && crypt::cipher::has_fast_aes())
    });
    // The cores that this process may use: affinity and CPU quotas count.
    let cores = available_parallelism().map_or(1, usize::from);
    chosen.unwrap_or(if slow { idle(cores) } else { 0 })
}

/// Cores that neither reading nor writing needs, as far as more of them still help.
fn idle(cores: usize) -> usize {
    const MOST: usize = 4;
    cores.saturating_sub(2).min(MOST)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `CryptoWorkers auto` never makes a stream slower than serial: without an idle core there
    /// is no worker to hand anything to.
    #[test]
    fn one_or_two_cores_have_no_workers() {
        let workers = [1, 2, 3, 4, 6, 64].map(idle);
        assert_eq!(workers, [0, 0, 1, 2, 4, 4]);
    }
}
