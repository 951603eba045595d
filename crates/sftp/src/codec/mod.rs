//! The codec: requests and replies as values, to bytes and back. Both roles use it; no I/O.
//!
//! ```text
//! hello      INIT and VERSION, which come first and have no id
//! request    what a client asks, extended has the requests of OpenSSH and ours
//! reply      what a server answers, typed has the contents of extended replies
//! head       the heads of WRITE and DATA alone, whose payload is not parsed but moved
//! attrs, status                what they have in common
//! links      the order of SYMLINK's arguments, which is not everybody's
//! ```
//! Every packet is `uint32 length`, then that many bytes: its type, and all but the first two have
//! a `uint32 id`. `encode` writes the length too, `parse` takes what follows it.

mod attrs;
mod extended;
mod head;
mod hello;
mod links;
mod reply;
mod request;
mod status;
mod typed;

pub use attrs::{Attrs, FOLLOWED, LINKED, NANOSECONDS, Pairs, XATTRS};
pub use extended::{Extended, GetFile, PutFile, PutFlags, name};
pub use head::{DATA_HEAD, DataHead, WRITE_HEAD, WriteHead};
pub use hello::{Hello, LINKED_WANTED, NANOSECONDS_WANTED, VERSION, XATTRS_WANTED};
pub use links::LinkOrder;
pub use reply::{Name, Reply};
pub use request::{OpenFlags, Request};
pub use status::Status;
pub use typed::{BlockHashes, FileContent, FileStatus, Groups, Limits, SparseMap, Statvfs, Xattrs};
pub use wire::Malformed;

/// Largest packet either side takes, without its length field: OpenSSH's
/// SFTP_MAX_MSG_LENGTH (256 KiB).
pub const MAX_PACKET: usize = 256 * 1024;

/// Most data in one READ or WRITE, as OpenSSH's server limits it: 255 KiB.
pub const MAX_DATA: u32 = 255 * 1024;

/// Packet types (section 3 of the draft).
pub mod kind {
    /// Client: the first packet.
    pub const INIT: u8 = 1;
    /// Server: the answer to INIT.
    pub const VERSION: u8 = 2;
    /// Opens a file.
    pub const OPEN: u8 = 3;
    /// Closes a handle.
    pub const CLOSE: u8 = 4;
    /// Reads from a file.
    pub const READ: u8 = 5;
    /// Writes to a file.
    pub const WRITE: u8 = 6;
    /// Attributes of a path, links not followed.
    pub const LSTAT: u8 = 7;
    /// Attributes of a handle.
    pub const FSTAT: u8 = 8;
    /// Changes attributes of a path.
    pub const SETSTAT: u8 = 9;
    /// Changes attributes of a handle.
    pub const FSETSTAT: u8 = 10;
    /// Opens a directory.
    pub const OPENDIR: u8 = 11;
    /// The next names of a directory.
    pub const READDIR: u8 = 12;
    /// Removes a file.
    pub const REMOVE: u8 = 13;
    /// Makes a directory.
    pub const MKDIR: u8 = 14;
    /// Removes a directory.
    pub const RMDIR: u8 = 15;
    /// Makes a path absolute.
    pub const REALPATH: u8 = 16;
    /// Attributes of a path, links followed.
    pub const STAT: u8 = 17;
    /// Renames, never over something.
    pub const RENAME: u8 = 18;
    /// Where a symbolic link leads.
    pub const READLINK: u8 = 19;
    /// Makes a symbolic link.
    pub const SYMLINK: u8 = 20;
    /// Reply: how a request went.
    pub const STATUS: u8 = 101;
    /// Reply: a handle.
    pub const HANDLE: u8 = 102;
    /// Reply: data of a file.
    pub const DATA: u8 = 103;
    /// Reply: names.
    pub const NAME: u8 = 104;
    /// Reply: attributes.
    pub const ATTRS: u8 = 105;
    /// A request with a name.
    pub const EXTENDED: u8 = 200;
    /// The reply to some of those.
    pub const EXTENDED_REPLY: u8 = 201;
}

/// What a server calls an open file or directory: opaque, at most 256 bytes (section 6.3).
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Handle(Vec<u8>);

impl Handle {
    /// Longest there is.
    pub const MAX: usize = 256;

    /// Of at most 256 bytes.
    pub fn new(bytes: impl Into<Vec<u8>>) -> Result<Self, Malformed> {
        let bytes = bytes.into();
        if bytes.len() <= Self::MAX { Ok(Self(bytes)) } else { Err(Malformed("handle")) }
    }

    /// As it stands on the wire.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    fn read(r: &mut wire::Reader<'_>) -> Result<Self, Malformed> {
        Self::new(r.string("handle")?)
    }
}

impl AsRef<[u8]> for Handle {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

/// The length field of a packet, checked before anything is kept (F6): at least a type, at most
/// [`MAX_PACKET`].
pub fn packet_length(field: [u8; 4]) -> Result<usize, Malformed> {
    match usize::try_from(u32::from_be_bytes(field)) {
        Ok(len @ 1..=MAX_PACKET) => Ok(len),
        _ => Err(Malformed("packet length")),
    }
}

/// Appends a packet with its length: what `body` writes after type and id.
fn packet(kind: u8, id: Option<u32>, out: &mut Vec<u8>, body: impl FnOnce(&mut wire::Writer)) {
    let mut w = wire::Writer::message(kind);
    if let Some(id) = id {
        w.u32(id);
    }
    body(&mut w);
    let len = u32::try_from(w.as_slice().len()).unwrap_or(u32::MAX);
    out.extend_from_slice(&len.to_be_bytes());
    out.extend_from_slice(w.as_slice());
}

/// `count` values, each at least a byte long: no room is made before they are seen.
fn list<'a, T>(
    r: &mut wire::Reader<'a>,
    what: &'static str,
    mut one: impl FnMut(&mut wire::Reader<'a>) -> Result<T, Malformed>,
) -> Result<Vec<T>, Malformed> {
    let count = r.u32(what)?;
    (0..count).map(|_| one(r)).collect()
}

fn write_count<T>(w: &mut wire::Writer, list: &[T]) {
    w.u32(u32::try_from(list.len()).unwrap_or(u32::MAX));
}

#[cfg(test)]
mod tests;
