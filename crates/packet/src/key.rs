//! What sealing and opening have in common: the ciphers' keys of one direction, and what may
//! follow them (RFC 4253 section 6; docs/invariants.md, N8).

use crate::layout::Layout;
use crate::state::State;
use crypt::cipher::{Protection, Shape};
use crypt::{ChaChaKey, Cover, CryptError, CtrKey, GcmKey, KeyMaterial, MacKey};
use std::marker::PhantomData;

/// The key of one direction, its packet sizes, and how that direction travels: a
/// [`SealKey`](crate::SealKey) or an [`OpenKey`](crate::OpenKey), by `W`. Shared between threads;
/// its nonces come from the packets' stamps, never from here, so none can repeat (invariant P2).
pub struct Key<W> {
    pub(crate) kind: Kind,
    pub(crate) layout: Layout,
    state: State,
    way: PhantomData<W>,
}

/// Ways to seal, and to open what was sealed.
pub(crate) enum Kind {
    /// Before the first NEWKEYS.
    Plain,
    /// RFC 5647.
    Gcm(GcmKey),
    /// chacha20-poly1305@openssh.com (OpenSSH PROTOCOL.chacha20poly1305).
    ChaCha(ChaChaKey),
    /// RFC 4344 with RFC 6668, the MAC over the ciphertext (`-etm@openssh.com`).
    CtrThenMac(CtrKey, MacKey),
    /// The same, the MAC over the plaintext (RFC 4253 section 6.4).
    CtrAndMac(CtrKey, MacKey),
    /// NONE cipher: the MAC alone.
    #[cfg(feature = "none")]
    Mac(MacKey),
    /// NONE cipher and NONE MAC.
    #[cfg(feature = "none")]
    Bare,
}

impl<W> Key<W> {
    /// No protection: before the first NEWKEYS.
    pub fn plain() -> Self {
        Self { kind: Kind::Plain, layout: Layout::PLAIN, state: State::Unkeyed, way: PhantomData }
    }

    /// A key of its own, whatever came before. Never one for clear text, which follows sealed
    /// packets only, by [`Self::rekeyed`] (N8).
    pub fn new(protection: Protection, keys: &KeyMaterial) -> Result<Self, CryptError> {
        Self::plain().rekeyed(Cover::Sealed(protection), keys)
    }

    /// The key after a NEWKEYS that follows this one: never back to better cover, and never out of
    /// the bare state (N8, N4).
    pub fn rekeyed(&self, cover: Cover, keys: &KeyMaterial) -> Result<Self, CryptError> {
        let (state, kind) = (self.state.next(cover)?, Kind::new(cover, keys)?);
        Ok(Self { kind, layout: Layout::of(cover), state, way: PhantomData })
    }

    /// Whether packets leave as they are: no cipher, no MAC (N8).
    pub fn is_bare(&self) -> bool {
        self.state == State::Bare
    }

    /// Whether the key can be used up: not where there is neither nonce nor MAC.
    pub fn wears_out(&self) -> bool {
        !self.is_bare()
    }
}

impl Kind {
    fn new(cover: Cover, keys: &KeyMaterial) -> Result<Self, CryptError> {
        match cover {
            Cover::Sealed(protection) => Self::sealed(protection, keys),
            #[cfg(feature = "none")]
            Cover::Authenticated(mac) => Ok(Self::Mac(MacKey::new(mac.mac(), &keys.mac)?)),
            #[cfg(feature = "none")]
            Cover::Bare => Ok(Self::Bare),
        }
    }

    fn sealed(protection: Protection, keys: &KeyMaterial) -> Result<Self, CryptError> {
        Ok(match protection.shape() {
            Shape::Gcm(cipher) => Self::Gcm(GcmKey::new(cipher, keys)?),
            Shape::ChaCha => Self::ChaCha(ChaChaKey::new(keys)?),
            Shape::Ctr(cipher, mac) => {
                let ctr = CtrKey::new(cipher, keys)?;
                let mac_key = MacKey::new(mac, &keys.mac)?;
                if mac.is_etm() {
                    Self::CtrThenMac(ctr, mac_key)
                } else {
                    Self::CtrAndMac(ctr, mac_key)
                }
            }
        })
    }
}
