//! Channel windows (RFC 4254 section 5.2): what may be sent, and how much to let the peer send.
//!
//! [`Send`] belongs to whoever sends on a channel, [`Recv`] to whoever receives. Both are plain
//! values without a clock; the data plane keeps them next to its routes and touches them once per
//! batch.

mod recv;
#[cfg(test)]
mod sim;

pub use recv::{Overrun, Recv, Rule};

/// The peer granted more than a window can hold (RFC 4254 section 5.2: "The window MUST NOT be
/// increased above 2^32 - 1 bytes"): invariant C1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("peer grew a channel's window beyond 2^32 - 1 bytes")]
pub struct Overflow;

impl From<Overflow> for crate::Error {
    fn from(overflow: Overflow) -> Self {
        crate::Misbehaved::Upper(overflow.to_string()).into()
    }
}

impl From<Overrun> for crate::Error {
    fn from(overrun: Overrun) -> Self {
        crate::Misbehaved::Upper(overrun.to_string()).into()
    }
}

/// How much may be sent on one channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Send {
    credit: u32,
}

impl Send {
    /// The window that the peer gave when the channel was opened.
    pub fn new(window: u32) -> Self {
        Self { credit: window }
    }

    /// The peer's CHANNEL_WINDOW_ADJUST.
    pub fn add(&mut self, bytes: u32) -> Result<(), Overflow> {
        self.credit = self.credit.checked_add(bytes).ok_or(Overflow)?;
        Ok(())
    }

    /// Takes up to `wanted` bytes of credit; how many it were. 0: wait for the peer.
    pub fn take(&mut self, wanted: u32) -> u32 {
        let taken = wanted.min(self.credit);
        self.credit = self.credit.saturating_sub(taken);
        taken
    }

    /// Gives back what was taken and not sent after all (a short read of the source).
    pub fn put_back(&mut self, bytes: u32) {
        self.credit = self.credit.saturating_add(bytes);
    }

    /// What is left.
    pub fn credit(&self) -> u32 {
        self.credit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Invariant C1.
    #[test]
    fn c1_a_window_grown_beyond_32_bits_is_refused() {
        let mut send = Send::new(u32::MAX - 1);
        assert_eq!(send.add(1), Ok(()));
        assert_eq!(send.add(1), Err(Overflow));
        assert_eq!(send.credit(), u32::MAX);
    }

    #[test]
    fn no_more_is_taken_than_the_peer_granted() {
        let mut send = Send::new(10);
        assert_eq!((send.take(4), send.take(100), send.take(1)), (4, 6, 0));
        send.put_back(3);
        assert_eq!(send.take(5), 3);
    }
}
