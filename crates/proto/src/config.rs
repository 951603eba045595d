//! What a caller decides about key exchange, and whom it asks for trust and signatures.

use crate::kexinit;
use crypt::{Cipher, Mac};
use keys::{PublicKey, SigAlg};

/// Proposals of one side, most preferred first.
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
    /// Compression, the same for both directions.
    pub compression: Vec<Compression>,
    /// Client: send the first kex packet together with KEXINIT (RFC 4253 section 7).
    pub first_packet_guess: bool,
}

impl Default for KexConfig {
    /// Everything there is but compression, in the order that suits this CPU.
    fn default() -> Self {
        Self {
            kex: kexinit::default_kex(),
            host_key_algs: SigAlg::ALL.to_vec(),
            ciphers: kexinit::default_ciphers(crypt::cipher::has_fast_aes()),
            macs: kexinit::default_macs(),
            compression: vec![Compression::None],
            first_packet_guess: true,
        }
    }
}

/// What happens to payloads before they are sealed (RFC 4253 section 6.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    /// Nothing.
    None,
    /// zlib from the end of the login on, so that nobody reaches it who may not log in (B9).
    Delayed,
}

impl Compression {
    /// All there are.
    pub const ALL: [Self; 2] = [Self::None, Self::Delayed];

    /// Its name on the wire.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Delayed => "zlib@openssh.com",
        }
    }

    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.name() == name)
    }
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

    /// The key for `alg` as it stands on the wire (K_S of RFC 4253 section 8). `Err` says why
    /// there is none, for the log.
    fn public(&self, alg: SigAlg) -> Result<Vec<u8>, String>;

    /// Signs an exchange hash with the key for `alg`; the result is a signature blob.
    fn sign(&self, alg: SigAlg, data: &[u8]) -> Result<Vec<u8>, String>;
}
