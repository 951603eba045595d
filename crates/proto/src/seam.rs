//! Stand-ins for the crates `crypt` and `keys` until both are in the tree.
#![allow(missing_docs, clippy::all)]

pub mod crypt {
    use zeroize::Zeroizing;
    pub struct KeyMaterial {
        pub iv: Zeroizing<Vec<u8>>,
        pub key: Zeroizing<Vec<u8>>,
        pub mac: Zeroizing<Vec<u8>>,
    }
    impl std::fmt::Debug for KeyMaterial {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("KeyMaterial")
        }
    }
    pub mod cipher {
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Cipher {
            Aes128Gcm,
        }
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Mac {
            HmacSha256,
        }
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Protection {
            Aead(Cipher),
            CipherMac(Cipher, Mac),
        }
    }
}

pub mod keys {
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum SigAlg {
        Ed25519,
        EcdsaP256,
        EcdsaP384,
        EcdsaP521,
        RsaSha256,
        RsaSha512,
    }
    impl SigAlg {
        pub const ALL: &'static [SigAlg] = &[SigAlg::Ed25519];
        pub fn name(self) -> &'static str {
            "ssh-ed25519"
        }
        pub fn from_name(_: &str) -> Option<Self> {
            None
        }
        pub fn key_type(self) -> &'static str {
            "ssh-ed25519"
        }
    }
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct PublicKey(Vec<u8>);
    #[derive(Debug)]
    pub struct BadSignature;
    impl PublicKey {
        pub fn parse(blob: &[u8]) -> Result<Self, wire::Malformed> {
            Ok(Self(blob.to_vec()))
        }
        pub fn blob(&self) -> &[u8] {
            &self.0
        }
        pub fn key_type(&self) -> &'static str {
            "ssh-ed25519"
        }
        pub fn sig_algs(&self) -> &'static [SigAlg] {
            &[SigAlg::Ed25519]
        }
        pub fn verify(&self, _: SigAlg, _: &[u8], _: &[u8]) -> Result<(), BadSignature> {
            Err(BadSignature)
        }
    }
}
