//! What the machines ask their caller to do, in order, and what they let it know.

use crate::Event;
use crypt::{Cover, KeyMaterial};

/// Filled by every call into a machine; the caller empties it.
#[derive(Debug, Default)]
pub struct Outbox {
    /// To be carried out in this order, before the machine is called again.
    pub effects: Vec<Effect>,
    /// What happened, for the caller's own decisions.
    pub events: Vec<Event>,
}

impl Outbox {
    /// An empty one.
    pub fn new() -> Self {
        Self::default()
    }

    /// One message under the current sending key.
    pub(crate) fn send(&mut self, payload: Vec<u8>) {
        self.effects.push(Effect::Send(payload));
    }

    /// One thing to know.
    pub(crate) fn event(&mut self, event: Event) {
        self.events.push(event);
    }
}

/// One step of the sending or receiving side.
#[derive(Debug)]
pub enum Effect {
    /// Our KEXINIT follows: bulk channel data waits until the next [`Effect::SealWith`]
    /// (RFC 4253 section 7.1). Other messages wait inside the machine.
    Fence,
    /// One message payload, first byte its number, sealed under the current sending key.
    Send(Vec<u8>),
    /// Directly after our NEWKEYS: everything after it is sealed with this; ends the fence.
    SealWith(Box<NewKeys>),
    /// Directly after the peer's NEWKEYS: everything received after it is opened with this.
    OpenWith(Box<NewKeys>),
    /// Directly after USERAUTH_SUCCESS: everything sent after it is compressed.
    Deflate,
    /// Directly after USERAUTH_SUCCESS: everything received after it is compressed.
    Inflate,
}

/// The keys of one direction, fresh out of an exchange (RFC 4253 section 7.2).
#[derive(Debug)]
pub struct NewKeys {
    /// Cipher and integrity as one value.
    pub cover: Cover,
    /// IV, key and MAC key of the lengths that `cover` wants.
    pub material: KeyMaterial,
    /// Strict key exchange: the sequence number of this direction starts again at 0.
    pub reset_seq: bool,
    /// What follows is compressed, beginning anew (RFC 4253 section 6.2).
    pub compress: bool,
}
