//! Cover: what the packets of one direction have around them after a NEWKEYS.
//!
//! Whether data is sealed, only authenticated, or bare is a type (docs/invariants.md, N8): what
//! takes a [`Protection`] cannot be given clear text, and without the feature `none` nothing else
//! exists.

use crate::{Mac, Protection};

/// How one direction travels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Cover {
    /// Encrypted and authenticated: always, but for a switch that both sides allowed.
    Sealed(Protection),
    /// NONE cipher: everybody on the way can read it, and nobody can change it.
    #[cfg(feature = "none")]
    Authenticated(ClearMac),
    /// NONE cipher and NONE MAC: everybody on the way can read it and change it.
    #[cfg(feature = "none")]
    Bare,
}

/// A MAC that is good enough to stand alone: over the packet as it travels, with SHA-2 (N2).
#[cfg(feature = "none")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ClearMac(Mac);

#[cfg(feature = "none")]
impl ClearMac {
    /// The MAC, if it is one of those.
    pub fn new(mac: Mac) -> Option<Self> {
        mac.is_etm().then_some(Self(mac))
    }

    /// Which one.
    pub const fn mac(self) -> Mac {
        self.0
    }
}

/// What packets without a cipher are padded to (RFC 4253 section 6: "8 or the cipher block size").
#[cfg(feature = "none")]
const CLEAR_BLOCK: usize = 8;

impl Cover {
    /// Every cover there is.
    pub fn all() -> impl Iterator<Item = Self> {
        #[cfg(feature = "none")]
        let clear = Mac::ALL.iter().filter_map(|mac| ClearMac::new(*mac)).map(Self::Authenticated);
        #[cfg(feature = "none")]
        let clear = clear.chain([Self::Bare]);
        #[cfg(not(feature = "none"))]
        let clear = [];
        Protection::all().map(Self::Sealed).chain(clear)
    }

    /// Nothing is encrypted.
    pub const fn is_clear(self) -> bool {
        !matches!(self, Self::Sealed(_))
    }

    /// A changed packet is noticed.
    pub const fn is_authenticated(self) -> bool {
        match self {
            Self::Sealed(_) => true,
            #[cfg(feature = "none")]
            Self::Authenticated(_) => true,
            #[cfg(feature = "none")]
            Self::Bare => false,
        }
    }

    /// The protection, where there is encryption.
    pub const fn protection(self) -> Option<Protection> {
        match self {
            Self::Sealed(protection) => Some(protection),
            #[cfg(feature = "none")]
            Self::Authenticated(_) | Self::Bare => None,
        }
    }

    /// The cipher's name as it was negotiated.
    pub const fn cipher_name(self) -> &'static str {
        match self {
            Self::Sealed(protection) => protection.cipher().name(),
            #[cfg(feature = "none")]
            Self::Authenticated(_) | Self::Bare => "none",
        }
    }

    /// The MAC's name as it was negotiated; `None` where the cipher brings its own.
    pub fn mac_name(self) -> Option<&'static str> {
        match self {
            Self::Sealed(protection) => protection.mac().map(Mac::name),
            #[cfg(feature = "none")]
            Self::Authenticated(mac) => Some(mac.mac().name()),
            #[cfg(feature = "none")]
            Self::Bare => Some("none"),
        }
    }

    /// Bytes of initial IV.
    pub const fn iv_len(self) -> usize {
        match self.protection() {
            Some(protection) => protection.iv_len(),
            None => 0,
        }
    }

    /// Bytes of encryption key.
    pub const fn key_len(self) -> usize {
        match self.protection() {
            Some(protection) => protection.key_len(),
            None => 0,
        }
    }

    /// Bytes of integrity key.
    pub const fn mac_key_len(self) -> usize {
        match self {
            Self::Sealed(protection) => protection.mac_key_len(),
            #[cfg(feature = "none")]
            Self::Authenticated(mac) => mac.mac().key_len(),
            #[cfg(feature = "none")]
            Self::Bare => 0,
        }
    }

    /// Bytes of tag behind each packet.
    pub const fn tag_len(self) -> usize {
        match self {
            Self::Sealed(protection) => protection.tag_len(),
            #[cfg(feature = "none")]
            Self::Authenticated(mac) => mac.mac().tag_len(),
            #[cfg(feature = "none")]
            Self::Bare => 0,
        }
    }

    /// What packets are padded to.
    pub const fn block_len(self) -> usize {
        match self {
            Self::Sealed(protection) => protection.block_len(),
            #[cfg(feature = "none")]
            Self::Authenticated(_) | Self::Bare => CLEAR_BLOCK,
        }
    }

    /// Whether the length counts towards the padding: not where it is authenticated apart from
    /// what is padded.
    pub fn aligns_length(self) -> bool {
        match self {
            Self::Sealed(protection) => protection.mac().is_some_and(|mac| !mac.is_etm()),
            #[cfg(feature = "none")]
            Self::Authenticated(_) => false,
            #[cfg(feature = "none")]
            Self::Bare => true,
        }
    }
}

impl From<Protection> for Cover {
    fn from(protection: Protection) -> Self {
        Self::Sealed(protection)
    }
}

#[cfg(test)]
#[cfg(feature = "none")]
mod tests {
    use super::*;

    /// N2: alone only a MAC over the packet as it travels, with SHA-2.
    #[test]
    fn n2_only_the_two_encrypt_then_mac_ones_stand_alone() {
        let good: Vec<Mac> =
            Mac::ALL.iter().copied().filter(|m| ClearMac::new(*m).is_some()).collect();
        assert_eq!(good, [Mac::HmacSha256Etm, Mac::HmacSha512Etm]);
    }

    /// N8: every cover is one of three, and only one of them is encrypted.
    #[test]
    fn n8_sealed_authenticated_and_bare_are_apart() {
        let count = |f: fn(&Cover) -> bool| Cover::all().filter(f).count();
        assert_eq!(count(|c| !c.is_clear()), Protection::all().count());
        assert_eq!(count(|c| c.is_clear() && c.is_authenticated()), 2);
        assert_eq!(count(|c| !c.is_authenticated()), 1);
        assert!(Cover::all().all(|c| c.is_clear() == (c.key_len() == 0)));
    }
}
