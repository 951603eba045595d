//! INIT and VERSION: the first packet of each side (section 4).

use super::{Pairs, kind, packet};
use wire::{Malformed, Reader, Writer};

/// The version of the protocol that everybody speaks.
pub const VERSION: u32 = 3;

/// The pair of INIT by which a client asks for times to the nanosecond, and that of VERSION by which
/// a server says that it takes them (PROTOCOL.md).
pub const NANOSECONDS_WANTED: &[u8] = b"nanoseconds@longhaul";

/// The pair of INIT by which a client asks which names are of one file (PROTOCOL.md).
pub const LINKED_WANTED: &[u8] = b"linked@longhaul";

/// The pair of INIT by which a client asks for extended attributes beside the content of small files
/// (PROTOCOL.md).
pub const XATTRS_WANTED: &[u8] = b"xattrs@longhaul";

/// The body of INIT or VERSION.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Hello {
    /// Of the protocol.
    pub version: u32,
    /// Names of extensions and what they say, mostly a version.
    pub extensions: Pairs,
}

impl Hello {
    /// Whether an extension is announced.
    pub fn has(&self, name: &[u8]) -> bool {
        self.value(name).is_some()
    }

    /// What an extension says.
    pub fn value(&self, name: &[u8]) -> Option<&[u8]> {
        self.extensions.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_slice())
    }

    /// Appends INIT, with its length.
    pub fn encode_init(&self, out: &mut Vec<u8>) {
        packet(kind::INIT, None, out, |w| self.write(w));
    }

    /// Appends VERSION, with its length.
    pub fn encode_version(&self, out: &mut Vec<u8>) {
        packet(kind::VERSION, None, out, |w| self.write(w));
    }

    /// Of a packet that must be INIT.
    pub fn parse_init(packet: &[u8]) -> Result<Self, Malformed> {
        Self::parse(packet, kind::INIT, "INIT")
    }

    /// Of a packet that must be VERSION.
    pub fn parse_version(packet: &[u8]) -> Result<Self, Malformed> {
        Self::parse(packet, kind::VERSION, "VERSION")
    }

    fn parse(packet: &[u8], kind: u8, what: &'static str) -> Result<Self, Malformed> {
        let mut r = Reader::new(packet);
        if r.u8(what)? != kind {
            return Err(Malformed(what));
        }
        let version = r.u32("version")?;
        let mut extensions = Vec::new();
        while r.left() > 0 {
            let name = r.string("extension name")?.to_vec();
            extensions.push((name, r.string("extension data")?.to_vec()));
        }
        Ok(Self { version, extensions })
    }

    fn write(&self, w: &mut Writer) {
        w.u32(self.version);
        for (name, value) in &self.extensions {
            w.string(name).string(value);
        }
    }
}
