//! The negotiable methods: names, hash, and what kind of value travels.

use crate::Hash;

/// A key exchange method.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Method {
    /// ML-KEM-768 and X25519 (draft-ietf-sshm-mlkem-hybrid-kex).
    MlKem768X25519,
    /// Streamlined NTRU Prime 761 and X25519 (draft-ietf-sshm-ntruprime-ssh).
    #[cfg(feature = "sntrup")]
    Sntrup761X25519,
    /// RFC 8731.
    Curve25519,
    /// RFC 5656 section 4.
    EcdhP256,
    /// RFC 5656 section 4.
    EcdhP384,
    /// RFC 5656 section 4.
    EcdhP521,
    /// RFC 8268.
    DhGroup16Sha512,
    /// RFC 8268.
    DhGroup14Sha256,
}

impl Method {
    /// Every name in default order, quantum-safe ones first.
    pub const NAMES: &'static [(&'static str, Self)] = &[
        ("mlkem768x25519-sha256", Self::MlKem768X25519),
        #[cfg(feature = "sntrup")]
        ("sntrup761x25519-sha512", Self::Sntrup761X25519),
        #[cfg(feature = "sntrup")]
        ("sntrup761x25519-sha512@openssh.com", Self::Sntrup761X25519),
        ("curve25519-sha256", Self::Curve25519),
        ("curve25519-sha256@libssh.org", Self::Curve25519),
        ("ecdh-sha2-nistp256", Self::EcdhP256),
        ("ecdh-sha2-nistp384", Self::EcdhP384),
        ("ecdh-sha2-nistp521", Self::EcdhP521),
        ("diffie-hellman-group16-sha512", Self::DhGroup16Sha512),
        ("diffie-hellman-group14-sha256", Self::DhGroup14Sha256),
    ];

    /// The method of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::NAMES.iter().find(|(n, _)| *n == name).map(|(_, method)| *method)
    }

    /// The hash of the exchange and of key derivation.
    pub const fn hash(self) -> Hash {
        match self {
            Self::MlKem768X25519 | Self::Curve25519 | Self::EcdhP256 | Self::DhGroup14Sha256 => {
                Hash::Sha256
            }
            Self::EcdhP384 => Hash::Sha384,
            Self::EcdhP521 | Self::DhGroup16Sha512 => Hash::Sha512,
            #[cfg(feature = "sntrup")]
            Self::Sntrup761X25519 => Hash::Sha512,
        }
    }

    /// Whether public values travel as `mpint` (RFC 4253 section 8) instead of `string`.
    pub const fn is_dh(self) -> bool {
        matches!(self, Self::DhGroup14Sha256 | Self::DhGroup16Sha512)
    }
}
