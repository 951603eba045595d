//! Signature algorithms by name, and the blob that frames a raw signature (RFC 4253 section 6.6).

use crypt::sign::{Curve, Scheme};
use wire::{Malformed, Reader, Writer};

/// A signature algorithm as negotiated: RFC 8709, RFC 5656 section 3, RFC 8332 section 3.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SigAlg {
    /// `ssh-ed25519`.
    Ed25519,
    /// `ecdsa-sha2-nistp256`.
    EcdsaP256,
    /// `ecdsa-sha2-nistp384`.
    EcdsaP384,
    /// `ecdsa-sha2-nistp521`.
    EcdsaP521,
    /// `rsa-sha2-512`, preferred to the shorter hash as OpenSSH does.
    RsaSha512,
    /// `rsa-sha2-256`.
    RsaSha256,
}

impl SigAlg {
    /// Every algorithm, most preferred first.
    pub const ALL: &[Self] = &[
        Self::Ed25519,
        Self::EcdsaP256,
        Self::EcdsaP384,
        Self::EcdsaP521,
        Self::RsaSha512,
        Self::RsaSha256,
    ];

    /// Name, key type and computation of each.
    fn row(self) -> (&'static str, &'static str, Scheme) {
        match self {
            Self::Ed25519 => ("ssh-ed25519", "ssh-ed25519", Scheme::Ed25519),
            Self::EcdsaP256 => {
                ("ecdsa-sha2-nistp256", "ecdsa-sha2-nistp256", Scheme::Ecdsa(Curve::P256))
            }
            Self::EcdsaP384 => {
                ("ecdsa-sha2-nistp384", "ecdsa-sha2-nistp384", Scheme::Ecdsa(Curve::P384))
            }
            Self::EcdsaP521 => {
                ("ecdsa-sha2-nistp521", "ecdsa-sha2-nistp521", Scheme::Ecdsa(Curve::P521))
            }
            Self::RsaSha512 => ("rsa-sha2-512", "ssh-rsa", Scheme::RsaSha512),
            Self::RsaSha256 => ("rsa-sha2-256", "ssh-rsa", Scheme::RsaSha256),
        }
    }

    /// The name on the wire.
    pub fn name(self) -> &'static str {
        self.row().0
    }

    /// The algorithm of a name; `ssh-rsa` (SHA-1) is none.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|alg| alg.name() == name)
    }

    /// The type of the keys that sign with it.
    pub fn key_type(self) -> &'static str {
        self.row().1
    }

    /// The algorithms a key of this type signs with, most preferred first; empty when unknown.
    pub fn for_key_type(key_type: &str) -> &'static [Self] {
        let first = Self::ALL.iter().position(|alg| alg.key_type() == key_type);
        let tail = first.and_then(|at| Self::ALL.get(at..)).unwrap_or_default();
        let len = tail.iter().take_while(|alg| alg.key_type() == key_type).count();
        tail.get(..len).unwrap_or_default()
    }

    pub(crate) fn scheme(self) -> Scheme {
        self.row().2
    }
}

/// Frames a raw signature: `string name, string signature`.
pub(crate) fn to_blob(alg: SigAlg, raw: &[u8]) -> Vec<u8> {
    Writer::new().string(alg.name()).string(raw).take()
}

/// Splits a signature blob into algorithm name and raw signature.
pub(crate) fn split_blob(blob: &[u8]) -> Result<(&[u8], &[u8]), Malformed> {
    let mut r = Reader::new(blob);
    let parts = (r.string("signature algorithm")?, r.string("signature")?);
    r.end("signature blob")?;
    Ok(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_back_to_their_algorithm() {
        for alg in SigAlg::ALL {
            assert_eq!(SigAlg::from_name(alg.name()), Some(*alg));
            assert!(SigAlg::for_key_type(alg.key_type()).contains(alg));
        }
        assert_eq!(SigAlg::for_key_type("ssh-rsa"), [SigAlg::RsaSha512, SigAlg::RsaSha256]);
        assert_eq!(SigAlg::for_key_type("ssh-ed25519"), [SigAlg::Ed25519]);
        assert!(SigAlg::for_key_type("ssh-dss").is_empty());
    }

    #[test]
    fn sha1_rsa_is_no_algorithm() {
        assert_eq!(SigAlg::from_name("ssh-rsa"), None);
    }
}
