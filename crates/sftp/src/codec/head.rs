//! Heads of the two packets that carry files: WRITE and DATA. What follows them is never copied
//! into a value: it is moved between the file and the packets it travels in.

use super::{Handle, MAX_PACKET, kind};
use wire::{Malformed, Reader};

/// Longest head of a WRITE: length, type, id, handle, offset, length of the data.
pub const WRITE_HEAD: usize = 4 + 1 + 4 + (4 + Handle::MAX) + 8 + 4;

/// The head of DATA: length, type, id, length of the data.
pub const DATA_HEAD: usize = 4 + 1 + 4 + 4;

/// A WRITE but its data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WriteHead {
    /// Of the request.
    pub id: u32,
    /// Where to.
    pub handle: Handle,
    /// Of the first byte in the file.
    pub offset: u64,
    /// Bytes of data that follow.
    pub len: u32,
}

impl WriteHead {
    /// Appends it with its length; the data is to follow.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let handle = self.handle.as_bytes();
        let handle_len = u32::try_from(handle.len()).unwrap_or(0);
        let rest = 1 + 4 + 4 + handle_len + 8 + 4;
        out.extend_from_slice(&self.len.saturating_add(rest).to_be_bytes());
        out.push(kind::WRITE);
        out.extend_from_slice(&self.id.to_be_bytes());
        out.extend_from_slice(&handle_len.to_be_bytes());
        out.extend_from_slice(handle);
        out.extend_from_slice(&self.offset.to_be_bytes());
        out.extend_from_slice(&self.len.to_be_bytes());
    }

    /// The head at the front of `bytes`, the length field included, and how many bytes it took.
    /// `None` until it is all there. The data must be in the packet, but may be followed by
    /// [`WriteHead::surplus`].
    pub fn parse(bytes: &[u8]) -> Result<Option<(Self, usize)>, Malformed> {
        let mut r = Reader::new(bytes);
        let Ok(len) = r.array::<4>("length") else { return Ok(None) };
        let len = super::packet_length(*len)?;
        let mut r = Reader::new(r.rest());
        match Self::read(&mut r, len) {
            Ok((head, used)) => Ok(Some((head, 4 + used))),
            Err(Short::Missing) => Ok(None),
            Err(Short::Malformed(why)) => Err(why),
        }
    }

    /// Bytes of the packet behind the data, of a head that `packet` was read as: they mean nothing.
    /// The Go library pkg/sftp up to 1.13.5, and so rclone 1.60, sends its whole buffer whatever
    /// length it says, and OpenSSH's server skips what is too much.
    pub fn surplus(&self, packet: &[u8]) -> usize {
        let Some(len) = packet.first_chunk().and_then(|len| super::packet_length(*len).ok()) else {
            return 0;
        };
        let data = usize::try_from(self.len).unwrap_or(usize::MAX);
        let head = 1 + 4 + (4 + self.handle.as_bytes().len()) + 8 + 4;
        len.saturating_sub(head).saturating_sub(data)
    }

    fn read(r: &mut Reader<'_>, len: usize) -> Result<(Self, usize), Short> {
        let have = r.left();
        if r.u8("WRITE")? != kind::WRITE {
            return Err(Short::Malformed(Malformed("WRITE")));
        }
        let id = r.u32("id")?;
        let handle_len = r.u32("handle")?;
        if usize::try_from(handle_len).map_or(true, |len| len > Handle::MAX) {
            return Err(Short::Malformed(Malformed("handle")));
        }
        let handle = r.take(usize::try_from(handle_len).unwrap_or(0), "handle")?;
        let handle = Handle::new(handle).map_err(Short::Malformed)?;
        let (offset, data) = (r.u64("offset")?, r.u32("data")?);
        let used = have - r.left();
        let whole = usize::try_from(data).ok().and_then(|data| used.checked_add(data));
        if whole.is_none_or(|whole| whole > len) {
            return Err(Short::Malformed(Malformed("WRITE")));
        }
        Ok((Self { id, handle, offset, len: data }, used))
    }
}

/// Why a head was not read.
enum Short {
    /// There is more to come.
    Missing,
    Malformed(Malformed),
}

/// The reader fails for nothing else than a value that is not all there.
impl From<Malformed> for Short {
    fn from(_: Malformed) -> Self {
        Self::Missing
    }
}

/// DATA but its data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DataHead {
    /// Of the request.
    pub id: u32,
    /// Bytes of data that follow.
    pub len: u32,
}

impl DataHead {
    /// As it stands on the wire, with its length.
    pub fn encode(self) -> [u8; DATA_HEAD] {
        let mut bytes = [0; DATA_HEAD];
        let fields = [(self.len.saturating_add(9)).to_be_bytes(), self.id.to_be_bytes()];
        let [length, id] = fields;
        let len = self.len.to_be_bytes();
        let all = length.iter().chain(&[kind::DATA]).chain(&id).chain(&len);
        bytes.iter_mut().zip(all).for_each(|(place, byte)| *place = *byte);
        bytes
    }

    /// Of a whole head. The length of the data must be what the packet has left.
    pub fn parse(bytes: &[u8; DATA_HEAD]) -> Result<Self, Malformed> {
        let mut r = Reader::new(bytes);
        let len = super::packet_length(*r.array("length")?)?;
        if r.u8("DATA")? != kind::DATA {
            return Err(Malformed("DATA"));
        }
        let head = Self { id: r.u32("id")?, len: r.u32("data")? };
        let whole = usize::try_from(head.len).ok().and_then(|data| data.checked_add(9));
        if whole == Some(len) && len <= MAX_PACKET { Ok(head) } else { Err(Malformed("DATA")) }
    }
}
