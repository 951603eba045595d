//! What a login asks its callers for, for tests that log in within one process.

use keys::{PrivateKey, PublicKey, SigAlg};
use proto::auth::{Credentials, Signer};
use proto::{HostKeys, HostTrust};
use wire::NameList;

/// A key; another seed, another key.
pub fn key(seed: u8) -> PrivateKey {
    PrivateKey::from_ed25519_seed(&[seed; 32]).expect("any seed is a key")
}

/// A client that trusts every host.
#[derive(Debug)]
pub struct AnyHost;

impl HostTrust for AnyHost {
    fn verify(&self, _: &PublicKey) -> Result<(), String> {
        Ok(())
    }
}

/// A host with one key.
pub struct OneHostKey(pub PrivateKey);

impl HostKeys for OneHostKey {
    fn algorithms(&self) -> Vec<SigAlg> {
        vec![SigAlg::Ed25519]
    }

    fn public(&self, _: SigAlg) -> Result<Vec<u8>, String> {
        Ok(self.0.public().blob().to_vec())
    }

    fn sign(&self, alg: SigAlg, data: &[u8]) -> Result<Vec<u8>, String> {
        self.0.sign(alg, data).map_err(|e| e.to_string())
    }
}

struct OneKey(PrivateKey);

impl Signer for OneKey {
    fn public_key(&self) -> &PublicKey {
        self.0.public()
    }

    fn sign(&mut self, alg: SigAlg, data: &[u8]) -> Result<Vec<u8>, String> {
        self.0.sign(alg, data).map_err(|e| e.to_string())
    }
}

/// A user with one key, which is tried once.
pub struct OneCredential(Option<PrivateKey>);

impl OneCredential {
    /// The user who has `key`.
    pub fn new(key: PrivateKey) -> Self {
        Self(Some(key))
    }
}

impl Credentials for OneCredential {
    fn next(&mut self, _: Option<NameList<'_>>) -> Option<Box<dyn Signer + Send>> {
        Some(Box::new(OneKey(self.0.take()?)))
    }
}
