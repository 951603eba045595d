//! The numbers a packet is sealed or opened under, given once and in order.
//!
//! GCM counts packets since NEWKEYS, ChaCha20 and the MACs take the sequence number, CTR the
//! blocks since NEWKEYS; a batch carries the numbers of its first packet and each further
//! packet's follow from its length.

/// Numbers of one packet, or of the first of a batch.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stamp {
    /// Sequence number, modulo 2^32 (RFC 4253 section 6.4).
    pub seq: u32,
    /// Packets since NEWKEYS: the GCM invocation counter (RFC 5647 section 7.1).
    pub packets: u64,
    /// Cipher blocks since NEWKEYS: the position in the CTR keystream (RFC 4344 section 4).
    pub blocks: u64,
}

impl Stamp {
    /// The numbers of the packet after one of `blocks` cipher blocks.
    #[must_use]
    pub fn after(self, blocks: u64) -> Self {
        Self {
            seq: self.seq.wrapping_add(1),
            packets: self.packets.wrapping_add(1),
            blocks: self.blocks.wrapping_add(blocks),
        }
    }

    /// What NEWKEYS does: counters under the key restart, the sequence number only with strict
    /// key exchange (OpenSSH PROTOCOL section 1.9).
    #[must_use]
    pub fn rekeyed(self, reset_seq: bool) -> Self {
        Self { seq: if reset_seq { 0 } else { self.seq }, packets: 0, blocks: 0 }
    }
}
