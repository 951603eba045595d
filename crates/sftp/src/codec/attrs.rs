//! ATTRS: what is known, or to be set, of a file (section 5).

use super::{list, write_count};
use wire::{Malformed, Reader, Writer};

const SIZE: u32 = 1;
const OWNER: u32 = 2;
const MODE: u32 = 4;
const TIMES: u32 = 8;
const EXTENDED: u32 = 0x8000_0000;
const KNOWN: u32 = SIZE | OWNER | MODE | TIMES | EXTENDED;

/// The pair that carries the parts of the times below a second (PROTOCOL.md): `uint32` nanoseconds
/// of access, `uint32` of modification.
pub const NANOSECONDS: &[u8] = b"times-ns@longhaul";

/// The pair that tells which file it is, where that has further names (PROTOCOL.md): `uint64`
/// device, `uint64` inode.
pub const LINKED: &[u8] = b"linked@longhaul";

/// The pair that tells that the name was a symbolic link's, and the rest is of the file that it
/// leads to (PROTOCOL.md); empty.
pub const FOLLOWED: &[u8] = b"followed@longhaul";

/// The pair that carries extended attributes (PROTOCOL.md): a list of pairs of its own.
pub const XATTRS: &[u8] = b"xattrs@longhaul";

/// Names and their values.
pub type Pairs = Vec<(Vec<u8>, Vec<u8>)>;

/// Attributes; what is absent is unknown, or left as it is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Attrs {
    /// Bytes.
    pub size: Option<u64>,
    /// User and group.
    pub owner: Option<(u32, u32)>,
    /// Type and permissions, as in `st_mode`.
    pub mode: Option<u32>,
    /// Access and modification, seconds since 1970 as unsigned 32 bits.
    pub times: Option<(u32, u32)>,
    /// Pairs of name and value.
    pub extended: Pairs,
}

impl Attrs {
    /// The parts of access and modification time below a second, if told and sane.
    pub fn nanoseconds(&self) -> Option<(u32, u32)> {
        let mut r = Reader::new(self.value(NANOSECONDS)?);
        let (access, modification) = (r.u32("time").ok()?, r.u32("time").ok()?);
        r.end("times").ok()?;
        (access < 1_000_000_000 && modification < 1_000_000_000).then_some((access, modification))
    }

    /// Adds them.
    pub fn set_nanoseconds(&mut self, access: u32, modification: u32) {
        self.set_value(NANOSECONDS, Writer::new().u32(access).u32(modification).take());
    }

    /// Device and inode of a file that has further names, if told.
    pub fn linked(&self) -> Option<(u64, u64)> {
        let mut r = Reader::new(self.value(LINKED)?);
        let node = (r.u64("device").ok()?, r.u64("inode").ok()?);
        r.end("node").ok()?;
        Some(node)
    }

    /// Adds them.
    pub fn set_linked(&mut self, device: u64, inode: u64) {
        self.set_value(LINKED, Writer::new().u64(device).u64(inode).take());
    }

    /// Whether they are told to be those of the file that a symbolic link leads to.
    pub fn followed(&self) -> bool {
        self.value(FOLLOWED).is_some()
    }

    /// Says so.
    pub fn set_followed(&mut self) {
        self.set_value(FOLLOWED, Vec::new());
    }

    /// Extended attributes, if told; none are not told.
    pub fn xattrs(&self) -> Option<Pairs> {
        let mut r = Reader::new(self.value(XATTRS)?);
        let list = pairs(&mut r).ok()?;
        r.end("extended attributes").ok()?;
        Some(list)
    }

    /// Adds them.
    pub fn set_xattrs(&mut self, list: &[(Vec<u8>, Vec<u8>)]) {
        let mut w = Writer::new();
        write_pairs(&mut w, list);
        self.set_value(XATTRS, w.take());
    }

    fn value(&self, name: &[u8]) -> Option<&[u8]> {
        self.extended.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_slice())
    }

    fn set_value(&mut self, name: &[u8], value: Vec<u8>) {
        self.extended.retain(|(known, _)| known != name);
        self.extended.push((name.to_vec(), value));
    }

    /// Takes one off the front. Flags that the draft does not know would leave the rest unreadable.
    pub fn read(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let flags = r.u32("attribute flags")?;
        if flags & !KNOWN != 0 {
            return Err(Malformed("attribute flags"));
        }
        let has = |flag: u32| flags & flag != 0;
        let size = has(SIZE).then(|| r.u64("size")).transpose()?;
        let owner = has(OWNER).then(|| pair(r, "owner")).transpose()?;
        let mode = has(MODE).then(|| r.u32("permissions")).transpose()?;
        let times = has(TIMES).then(|| pair(r, "times")).transpose()?;
        let extended = if has(EXTENDED) { pairs(r)? } else { Vec::new() };
        Ok(Self { size, owner, mode, times, extended })
    }

    /// Appends it.
    pub fn write(&self, w: &mut Writer) {
        let flag = |there: bool, flag: u32| if there { flag } else { 0 };
        w.u32(
            flag(self.size.is_some(), SIZE)
                | flag(self.owner.is_some(), OWNER)
                | flag(self.mode.is_some(), MODE)
                | flag(self.times.is_some(), TIMES)
                | flag(!self.extended.is_empty(), EXTENDED),
        );
        if let Some(size) = self.size {
            w.u64(size);
        }
        if let Some((user, group)) = self.owner {
            w.u32(user).u32(group);
        }
        if let Some(mode) = self.mode {
            w.u32(mode);
        }
        if let Some((access, modification)) = self.times {
            w.u32(access).u32(modification);
        }
        if !self.extended.is_empty() {
            write_pairs(w, &self.extended);
        }
    }
}

fn pair(r: &mut Reader<'_>, what: &'static str) -> Result<(u32, u32), Malformed> {
    Ok((r.u32(what)?, r.u32(what)?))
}

/// A counted list of pairs of strings.
pub(super) fn pairs(r: &mut Reader<'_>) -> Result<Pairs, Malformed> {
    list(r, "pairs", |r| Ok((r.string("name")?.to_vec(), r.string("value")?.to_vec())))
}

pub(super) fn write_pairs(w: &mut Writer, pairs: &[(Vec<u8>, Vec<u8>)]) {
    write_count(w, pairs);
    for (name, value) in pairs {
        w.string(name).string(value);
    }
}
