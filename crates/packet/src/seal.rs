//! Seals a batch in place: length, padding, encryption, tag (RFC 4253 section 6). Runs on the
//! thread that filled the batch, or on a worker: the result is the same whoever does it.

use crate::batch::Batch;
use crate::key::{Key, Kind};
use crate::layout::Layout;
use crate::stamp::Stamp;
use crypt::CryptError;

/// The key one direction is sealed under.
pub type SealKey = Key<Sealing>;

/// What a [`SealKey`] is for.
pub enum Sealing {}

impl SealKey {
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
