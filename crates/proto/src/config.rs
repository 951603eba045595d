//! What a caller decides about key exchange, and whom it asks for trust and signatures.

use crypt::{Cipher, Mac};
use keys::{PublicKey, SigAlg};
use std::time::Duration;

/// Proposals and limits of one side, most preferred first.
#[derive(Debug, Clone)]
pub struct KexConfig {
    /// Key exchange methods by name (two of them have two names).
    pub kex: Vec<&'static str>,
    /// Host key signature algorithms. A client puts first those whose keys it knows for the
    /// host; a server offers those of [`HostKeys::algorithms`] that stand here.
    pub host_key_algs: Vec<SigAlg>,
    /// Ciphers, the same for both directions.
    pub ciphers: Vec<Cipher>,
    /// MACs for the ciphers that need one, the same for both directions.
    pub macs: Vec<Mac>,
    /// Client: send the first kex packet together with KEXINIT (RFC 4253 section 7).
    pub first_packet_guess: bool,
    /// When the data plane should ask for a rekey.
    pub rekey: RekeyLimit,
}

/// When it is time for new keys (RFC 4253 section 9); counted by the data plane, per direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RekeyLimit {
    /// Bytes under one key; `None`: by the cipher's block (RFC 4344 section 3.2).
    pub bytes: Option<u64>,
    /// Time under one key.
    pub time: Option<Duration>,
}

/// The client's trust in host keys.
pub trait HostTrust {
    /// Asked once per connection, after the key has proved itself. `Err` says why not, for the
    /// user. Later exchanges must present the same key and are not asked about.
    fn verify(&self, key: &PublicKey) -> Result<(), String>;
}

/// The server's host keys.
pub trait HostKeys {
    /// The signature algorithms of the keys there are, most preferred first.
    fn algorithms(&self) -> Vec<SigAlg>;

    /// Signs an exchange hash with the key for `alg`. `Err` says why not, for the log.
    fn sign(&self, alg: SigAlg, data: &[u8]) -> Result<Signed, String>;
}

/// A host key's answer to an exchange.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signed {
    /// The public key as it stands on the wire (K_S of RFC 4253 section 8).
    pub key: Vec<u8>,
    /// The signature blob.
    pub signature: Vec<u8>,
}
