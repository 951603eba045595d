//! Requests: what a client asks (section 6).

use super::{Attrs, Extended, Handle, kind, packet};
use wire::{Malformed, Reader, Writer};

/// How a file is opened (section 6.3).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OpenFlags(pub u32);

impl OpenFlags {
    /// For reading.
    pub const READ: Self = Self(1);
    /// For writing.
    pub const WRITE: Self = Self(2);
    /// Every write goes to the end.
    pub const APPEND: Self = Self(4);
    /// Makes the file if there is none.
    pub const CREATE: Self = Self(8);
    /// Cuts the file to nothing.
    pub const TRUNCATE: Self = Self(16);
    /// Fails if there is a file.
    pub const EXCLUSIVE: Self = Self(32);

    /// Whether the file can be read: without any right, OpenSSH's server opens for reading.
    pub fn reads(self) -> bool {
        self.has(Self::READ) || !self.has(Self::WRITE)
    }

    /// Whether all of `other` are set.
    pub fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

impl std::ops::BitOr for OpenFlags {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// A request. Paths and names are bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// Answered by a handle.
    Open {
        /// Of the file.
        path: Vec<u8>,
        /// How.
        flags: OpenFlags,
        /// Of a file that is made.
        attrs: Attrs,
    },
    /// Of a file's or a directory's handle.
    Close(Handle),
    /// Answered by data, at least a byte, or EOF.
    Read {
        /// From what.
        handle: Handle,
        /// Of the first byte.
        offset: u64,
        /// Most bytes.
        len: u32,
    },
    /// For completeness: bulk data is moved behind a [`super::WriteHead`].
    Write {
        /// To what.
        handle: Handle,
        /// Of the first byte.
        offset: u64,
        /// The bytes.
        data: Vec<u8>,
    },
    /// Attributes of a path, its last link not followed.
    Lstat(Vec<u8>),
    /// Attributes of an open file.
    Fstat(Handle),
    /// Sets attributes of a path.
    Setstat(Vec<u8>, Attrs),
    /// Sets attributes of an open file.
    Fsetstat(Handle, Attrs),
    /// Answered by a handle for [`Request::Readdir`].
    Opendir(Vec<u8>),
    /// Answered by some names, or EOF.
    Readdir(Handle),
    /// Removes a file.
    Remove(Vec<u8>),
    /// Makes a directory.
    Mkdir(Vec<u8>, Attrs),
    /// Removes an empty directory.
    Rmdir(Vec<u8>),
    /// Answered by one name.
    Realpath(Vec<u8>),
    /// Attributes of a path, links followed.
    Stat(Vec<u8>),
    /// Renames unless there is something.
    Rename {
        /// What there is.
        from: Vec<u8>,
        /// What it becomes.
        to: Vec<u8>,
    },
    /// Answered by one name.
    Readlink(Vec<u8>),
    /// Makes a link. On the wire in OpenSSH's order, which is not the draft's ([`LinkOrder`]).
    ///
    /// [`LinkOrder`]: super::LinkOrder
    Symlink {
        /// What the link says.
        target: Vec<u8>,
        /// Where the link is.
        link: Vec<u8>,
    },
    /// A request with a name.
    Extended(Extended),
}

impl Request {
    /// Appends the request with its length.
    pub fn encode(&self, id: u32, out: &mut Vec<u8>) {
        packet(self.kind(), Some(id), out, |w| self.write(w));
    }

    fn kind(&self) -> u8 {
        match self {
            Self::Open { .. } => kind::OPEN,
            Self::Close(_) => kind::CLOSE,
            Self::Read { .. } => kind::READ,
            Self::Write { .. } => kind::WRITE,
            Self::Lstat(_) => kind::LSTAT,
            Self::Fstat(_) => kind::FSTAT,
            Self::Setstat(..) => kind::SETSTAT,
            Self::Fsetstat(..) => kind::FSETSTAT,
            Self::Opendir(_) => kind::OPENDIR,
            Self::Readdir(_) => kind::READDIR,
            Self::Remove(_) => kind::REMOVE,
            Self::Mkdir(..) => kind::MKDIR,
            Self::Rmdir(_) => kind::RMDIR,
            Self::Realpath(_) => kind::REALPATH,
            Self::Stat(_) => kind::STAT,
            Self::Rename { .. } => kind::RENAME,
            Self::Readlink(_) => kind::READLINK,
            Self::Symlink { .. } => kind::SYMLINK,
            Self::Extended(_) => kind::EXTENDED,
        }
    }

    fn write(&self, w: &mut Writer) {
        match self {
            Self::Open { path, flags, attrs } => attrs.write(w.string(path).u32(flags.0)),
            Self::Close(handle) | Self::Fstat(handle) | Self::Readdir(handle) => {
                w.string(handle);
            }
            Self::Read { handle, offset, len } => {
                w.string(handle).u64(*offset).u32(*len);
            }
            Self::Write { handle, offset, data } => {
                w.string(handle).u64(*offset).string(data);
            }
            Self::Lstat(path)
            | Self::Opendir(path)
            | Self::Remove(path)
            | Self::Rmdir(path)
            | Self::Realpath(path)
            | Self::Stat(path)
            | Self::Readlink(path) => {
                w.string(path);
            }
            Self::Setstat(path, attrs) | Self::Mkdir(path, attrs) => attrs.write(w.string(path)),
            Self::Fsetstat(handle, attrs) => attrs.write(w.string(handle)),
            Self::Rename { from: first, to: second }
            | Self::Symlink { target: first, link: second } => {
                w.string(first).string(second);
            }
            Self::Extended(extended) => extended.write(w),
        }
    }

    /// Of a packet without its length: the request and its id.
    pub fn parse(packet: &[u8]) -> Result<(u32, Self), Malformed> {
        let mut r = Reader::new(packet);
        let kind = r.u8("type")?;
        let id = r.u32("id")?;
        let request = Self::read(kind, &mut r)?;
        r.end("request")?;
        Ok((id, request))
    }

    fn read(kind: u8, r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let path = |r: &mut Reader<'_>| r.string("path").map(<[u8]>::to_vec);
        Ok(match kind {
            kind::OPEN => Self::Open {
                path: path(r)?,
                flags: OpenFlags(r.u32("open flags")?),
                attrs: Attrs::read(r)?,
            },
            kind::CLOSE => Self::Close(Handle::read(r)?),
            kind::READ => Self::Read {
                handle: Handle::read(r)?,
                offset: r.u64("offset")?,
                len: r.u32("length")?,
            },
            kind::WRITE => Self::Write {
                handle: Handle::read(r)?,
                offset: r.u64("offset")?,
                data: r.string("data")?.to_vec(),
            },
            kind::LSTAT => Self::Lstat(path(r)?),
            kind::FSTAT => Self::Fstat(Handle::read(r)?),
            kind::SETSTAT => Self::Setstat(path(r)?, Attrs::read(r)?),
            kind::FSETSTAT => Self::Fsetstat(Handle::read(r)?, Attrs::read(r)?),
            kind::OPENDIR => Self::Opendir(path(r)?),
            kind::READDIR => Self::Readdir(Handle::read(r)?),
            kind::REMOVE => Self::Remove(path(r)?),
            kind::MKDIR => Self::Mkdir(path(r)?, Attrs::read(r)?),
            kind::RMDIR => Self::Rmdir(path(r)?),
            kind::REALPATH => Self::Realpath(path(r)?),
            kind::STAT => Self::Stat(path(r)?),
            kind::RENAME => Self::Rename { from: path(r)?, to: path(r)? },
            kind::READLINK => Self::Readlink(path(r)?),
            kind::SYMLINK => Self::Symlink { target: path(r)?, link: path(r)? },
            kind::EXTENDED => Self::Extended(Extended::read(r)?),
            _ => return Err(Malformed("request type")),
        })
    }
}
