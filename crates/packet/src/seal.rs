//! Seals a batch in place: length, padding, encryption, tag (RFC 4253 section 6). Runs on the
//! thread that filled the batch, or on a worker: the result is the same whoever does it.

use crate::batch::Batch;
use crate::layout::Layout;
use crate::stamp::Stamp;
use crate::state::State;
use crypt::cipher::{Protection, Shape};
use crypt::{ChaChaKey, Cover, CryptError, CtrKey, GcmKey, KeyMaterial, MacKey};

/// The key one direction is sealed under. Shared between threads; its nonces come from the
/// batch's stamp, never from here, so none can repeat (invariant P2).
pub struct SealKey {
    kind: Kind,
    layout: Layout,
    state: State,
}

/// Ways to seal; [`crate::open::OpenKey`] mirrors them.
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

impl Kind {
    pub(crate) fn new(cover: Cover, keys: &KeyMaterial) -> Result<Self, CryptError> {
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

impl SealKey {
    /// No protection: before the first NEWKEYS.
    pub fn plain() -> Self {
        Self { kind: Kind::Plain, layout: Layout::PLAIN, state: State::Unkeyed }
    }

    /// A key of its own, whatever came before.
    pub fn new(cover: impl Into<Cover>, keys: &KeyMaterial) -> Result<Self, CryptError> {
        let cover = cover.into();
        let (kind, state) = (Kind::new(cover, keys)?, State::of(cover));
        Ok(Self { kind, layout: Layout::of(cover), state })
    }

    /// The key after a NEWKEYS that follows this one: never back to better cover, and never out of
    /// the bare state (N8, N4).
    pub fn rekeyed(&self, cover: Cover, keys: &KeyMaterial) -> Result<Self, CryptError> {
        self.state.check(cover)?;
        Self::new(cover, keys)
    }

    /// Whether the key can be used up: not where there is neither nonce nor MAC.
    pub fn wears_out(&self) -> bool {
        self.state.wears_out()
    }

    /// Whether packets leave as they are: no cipher, no MAC (N8).
    pub fn is_bare(&self) -> bool {
        self.state == State::Bare
    }

    /// Packet sizes under this key.
    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// Seals every packet of a stamped batch in place. After an error the batch must not leave.
    pub fn seal(&self, batch: &mut Batch) -> Result<(), CryptError> {
        let layout = self.layout;
        batch.seal_each(layout, |at, padding, outside, bytes| {
            if outside > 0 && !self.is_bare() {
                return Err(CryptError::Refused("data that does not come by"));
            }
            let body = bytes.len() - layout.tag;
            let Some((packet, tag)) = bytes.split_at_mut_checked(body) else { return Ok(()) };
            write_length_and_padding(packet, padding, outside);
            self.seal_one(at, packet, tag)
        })
    }

    fn seal_one(&self, at: Stamp, packet: &mut [u8], tag: &mut [u8]) -> Result<(), CryptError> {
        match &self.kind {
            Kind::Plain => {}
            #[cfg(feature = "none")]
            Kind::Bare => {}
            #[cfg(feature = "none")]
            Kind::Mac(mac) => tag.copy_from_slice(mac.tag(at.seq, &[packet]).as_slice()),
            Kind::Gcm(key) => {
                if let Some((length, body)) = packet.split_first_chunk_mut::<4>() {
                    tag.copy_from_slice(&key.seal(at.packets, length, body)?);
                }
            }
            Kind::ChaCha(key) => tag.copy_from_slice(&key.seal(at.seq, packet)?),
            Kind::CtrThenMac(ctr, mac) => {
                if let Some((_, body)) = packet.split_first_chunk_mut::<4>() {
                    ctr.apply(at.blocks, body)?;
                }
                tag.copy_from_slice(mac.tag(at.seq, &[packet]).as_slice());
            }
            Kind::CtrAndMac(ctr, mac) => {
                tag.copy_from_slice(mac.tag(at.seq, &[packet]).as_slice());
                ctr.apply(at.blocks, packet)?;
            }
        }
        Ok(())
    }
}

/// `packet_length`, `padding_length` and the padding. Padding is zero: random bytes would only
/// matter to ciphers whose blocks leak equal plaintext, and we offer none.
fn write_length_and_padding(packet: &mut [u8], padding: usize, outside: usize) {
    let length = u32::try_from(packet.len() - 4 + outside).unwrap_or_default();
    if let Some((head, rest)) = packet.split_first_chunk_mut::<5>() {
        let [a, b, c, d] = length.to_be_bytes();
        *head = [a, b, c, d, u8::try_from(padding).unwrap_or_default()];
        let payload = rest.len() - padding;
        if let Some(area) = rest.get_mut(payload..) {
            area.fill(0);
        }
    }
}
