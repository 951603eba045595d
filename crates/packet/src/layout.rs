//! Sizes of a binary packet under each kind of protection (RFC 4253 section 6).
//!
//! ```text
//! | packet_length 4 | padding_length 1 | payload | padding | tag |
//! ```

use crypt::Cover;

/// Bytes before the payload: `packet_length` and `padding_length`.
pub const HEAD: usize = 5;

/// Data bytes in a full packet of bulk: what every peer accepts (RFC 4253 section 6.1 asks for
/// 32768 of payload). Larger packets do not pay: 256 KiB ones measured a third slower (cache).
pub const DATA: usize = 32 * 1024;

/// Largest `packet_length` we accept: what OpenSSH accepts too.
pub const MAX_PACKET: u32 = 256 * 1024;

/// Largest tag: hmac-sha2-512.
pub const MAX_TAG: usize = 64;

/// Most padding we add: the shortest that fills the block, at least four bytes.
const MAX_PADDING: usize = 4 + 16;

/// Room after the payload for padding and tag.
pub const TAILROOM: usize = MAX_PADDING + MAX_TAG;

/// How packets are padded and tagged under one key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    /// Padding aligns to this: the cipher's block, at least 8.
    pub block: usize,
    /// Tag bytes after the packet.
    pub tag: usize,
    /// Whether `packet_length` itself counts towards the alignment: not where it is
    /// authenticated apart from the encrypted part (AEAD, encrypt-then-MAC).
    pub aligns_length: bool,
}

impl Layout {
    /// Before the first NEWKEYS.
    pub const PLAIN: Self = Self { block: 8, tag: 0, aligns_length: true };

    /// Under what was negotiated.
    pub fn of(cover: impl Into<Cover>) -> Self {
        let cover = cover.into();
        let (block, tag) = (cover.block_len(), cover.tag_len());
        Self { block, tag, aligns_length: cover.aligns_length() }
    }

    /// Padding of a packet with `payload` bytes: the least that RFC 4253 section 6 allows.
    pub fn padding(self, payload: usize) -> usize {
        let unpadded = payload + if self.aligns_length { HEAD } else { 1 };
        let short = self.block - unpadded % self.block;
        if short < 4 { short + self.block } else { short }
    }

    /// Bytes on the wire of a packet with `payload` bytes.
    pub fn packet(self, payload: usize) -> usize {
        HEAD + payload + self.padding(payload) + self.tag
    }

    /// Cipher blocks a packet with `packet_length` uses of a CTR keystream.
    pub fn blocks(self, packet_length: usize) -> u64 {
        let encrypted = packet_length + if self.aligns_length { 4 } else { 0 };
        (encrypted / self.block.max(1)) as u64
    }

    /// Whether a received `packet_length` is one this layout can produce (invariant B7: checked
    /// before anything is subtracted from it or allocated for it).
    pub fn accepts(self, packet_length: u32, limit: u32) -> bool {
        let Ok(len) = usize::try_from(packet_length) else { return false };
        let aligned = len + if self.aligns_length { 4 } else { 0 };
        // At least padding_length, one byte of payload and four of padding.
        len >= 6 && packet_length <= limit && aligned.is_multiple_of(self.block.max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn padding_is_between_four_and_a_block_more_and_aligns() {
        for (block, aligns_length) in [(8, true), (8, false), (16, true), (16, false)] {
            let layout = Layout { block, tag: 16, aligns_length };
            for payload in 1..100 {
                let padding = layout.padding(payload);
                assert!((4..4 + block).contains(&padding));
                let length = u32::try_from(1 + payload + padding).unwrap();
                assert!(layout.accepts(length, MAX_PACKET));
                assert!(!layout.accepts(length + 1, MAX_PACKET));
            }
        }
    }

    #[test]
    fn b7_lengths_out_of_bounds_are_refused() {
        let gcm = Layout { block: 16, tag: 16, aligns_length: false };
        for length in [0, 1, 5, MAX_PACKET + 16, u32::MAX - 15, u32::MAX] {
            assert!(!gcm.accepts(length, MAX_PACKET), "{length}");
        }
    }
}
