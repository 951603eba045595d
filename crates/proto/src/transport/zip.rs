//! Which directions are compressed, and from when on: `zlib@openssh.com` begins with the end of the
//! login (OpenSSH PROTOCOL section 1.2), and anew with each key exchange after it.

use crate::{Effect, NewKeys, Outbox};

/// What the keys in force say.
#[derive(Debug, Default)]
pub(super) struct Zip {
    sending: bool,
    receiving: bool,
}

impl Zip {
    /// Our new keys come into force.
    pub(super) fn seals(&mut self, mut new: Box<NewKeys>, logged_in: bool) -> Box<NewKeys> {
        self.sending = new.compress;
        new.compress &= logged_in;
        new
    }

    /// The peer's new keys come into force.
    pub(super) fn opens(&mut self, mut new: Box<NewKeys>, logged_in: bool) -> Box<NewKeys> {
        self.receiving = new.compress;
        new.compress &= logged_in;
        new
    }

    /// The login is over.
    pub(super) fn begin(&self, out: &mut Outbox) {
        if self.sending {
            out.effects.push(Effect::Deflate);
        }
        if self.receiving {
            out.effects.push(Effect::Inflate);
        }
    }

    pub(super) fn is_sending(&self) -> bool {
        self.sending
    }
}
