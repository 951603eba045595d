//! What the server can do: the extensions of its VERSION (draft section 4) and its limits
//! (OpenSSH PROTOCOL section 4.8, `limits@openssh.com`).

use crate::codec::{Limits, LinkOrder, MAX_DATA, MAX_PACKET, Pairs};
use std::sync::{Arc, OnceLock};

/// Bytes of data that every server takes and gives at once: the draft's section 3 asks for packets
/// of 34000 bytes.
const PLAIN: u32 = 32 * 1024;

/// Least that is believed of a server's word; the most is what the codec takes.
const LEAST: u64 = 1024;
const MOST: u64 = MAX_DATA as u64;

/// What a server said of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerFacts {
    /// Extensions: names and their versions, as sent.
    pub extensions: Pairs,
    /// Sizes of requests.
    pub sizes: Sizes,
}

impl ServerFacts {
    /// Whether an extension (of [`codec::name`](crate::codec::name)) is announced.
    pub fn has(&self, name: &[u8]) -> bool {
        self.extensions.iter().any(|(known, _)| known == name)
    }
}

/// What is known of a server, for all channels of one connection to it: the first that hears it
/// spares the others the wait. Clones are the same.
#[derive(Debug, Clone, Default)]
pub struct Known {
    facts: Arc<OnceLock<ServerFacts>>,
    links: LinkOrder,
}

impl Known {
    /// Of a server behind an SSH server that identifies itself as this software version.
    pub fn of(software: &str) -> Self {
        Self { facts: Arc::default(), links: LinkOrder::of_server(software) }
    }

    pub(super) fn get(&self) -> Option<&ServerFacts> {
        self.facts.get()
    }

    /// The first word counts.
    pub(super) fn set(&self, facts: ServerFacts) {
        let _ = self.facts.set(facts);
    }

    /// How it wants the arguments of SYMLINK.
    pub(super) fn links(&self) -> LinkOrder {
        self.links
    }
}

/// How much one request may carry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sizes {
    /// Data bytes of a READ's answer.
    pub read: u32,
    /// Data bytes of a WRITE.
    pub write: u32,
    /// Bytes of a request or answer, its length field apart.
    pub packet: u32,
    /// Handles that may be open at once; `None` where the server does not say.
    pub handles: Option<u64>,
}

impl Default for Sizes {
    /// What holds for a server that says nothing.
    fn default() -> Self {
        Self { read: PLAIN, write: PLAIN, packet: 34_000, handles: None }
    }
}

impl Sizes {
    /// What a server said: 0 is "no limit", or "I do not say".
    pub(super) fn said(limits: &Limits) -> Self {
        let plain = Self::default();
        let told = |said: u64, most: u64, plain: u32| match said {
            0 => plain,
            said => u32::try_from(said.clamp(LEAST, most)).unwrap_or(plain),
        };
        Self {
            read: told(limits.read, MOST, plain.read),
            write: told(limits.write, MOST, plain.write),
            packet: told(limits.packet, MAX_PACKET as u64, plain.packet),
            handles: (limits.handles > 0).then_some(limits.handles),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_of_stock_servers_are_used_and_absurd_ones_are_not() {
        let said =
            |packet, read, write, handles| Sizes::said(&Limits { packet, read, write, handles });
        let stock = said(256 * 1024, 255 * 1024, 255 * 1024, 1019);
        assert_eq!((stock.read, stock.write, stock.handles), (261_120, 261_120, Some(1019)));
        assert_eq!(said(0, 0, 0, 0), Sizes::default());
        let absurd = said(1, 1, u64::MAX, 0);
        assert_eq!((absurd.read, absurd.write), (1024, MAX_DATA));
        assert_eq!(said(u64::MAX, u64::MAX, u64::MAX, 0).read, MAX_DATA);
    }
}
