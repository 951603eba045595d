//! Extended requests: OpenSSH's (its PROTOCOL, section 4) and ours (PROTOCOL.md).

use super::attrs::{pairs, write_pairs};
use super::{Attrs, Handle, Pairs, list, write_count};
use wire::{Malformed, Reader, Writer};

/// Names of extended requests.
pub mod name {
    /// rename(2), which replaces what is there.
    pub const POSIX_RENAME: &[u8] = b"posix-rename@openssh.com";
    /// statvfs(3).
    pub const STATVFS: &[u8] = b"statvfs@openssh.com";
    /// fstatvfs(3).
    pub const FSTATVFS: &[u8] = b"fstatvfs@openssh.com";
    /// link(2).
    pub const HARDLINK: &[u8] = b"hardlink@openssh.com";
    /// fsync(2).
    pub const FSYNC: &[u8] = b"fsync@openssh.com";
    /// SETSTAT of a link itself.
    pub const LSETSTAT: &[u8] = b"lsetstat@openssh.com";
    /// How large things may be.
    pub const LIMITS: &[u8] = b"limits@openssh.com";
    /// `~` and `~user` at the front of a path.
    pub const EXPAND_PATH: &[u8] = b"expand-path@openssh.com";
    /// Copies between two open files of the server.
    pub const COPY_DATA: &[u8] = b"copy-data";
    /// Of a user.
    pub const HOME_DIRECTORY: &[u8] = b"home-directory";
    /// Names of numbers.
    pub const USERS_GROUPS: &[u8] = b"users-groups-by-id@openssh.com";
    /// BLAKE3 of every block of a range.
    pub const BLOCK_HASHES: &[u8] = b"block-hashes@longhaul";
    /// Several small files at once, to the server.
    pub const PUT_FILES: &[u8] = b"put-files@longhaul";
    /// Several small files at once, from the server.
    pub const GET_FILES: &[u8] = b"get-files@longhaul";
    /// Where a file has data.
    pub const SPARSE_MAP: &[u8] = b"sparse-map@longhaul";
    /// Extended attributes.
    pub const GET_XATTRS: &[u8] = b"get-xattrs@longhaul";
    /// Extended attributes.
    pub const SET_XATTRS: &[u8] = b"set-xattrs@longhaul";
}

/// How [`Extended::PutFiles`] writes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PutFlags(pub u32);

impl PutFlags {
    /// Files and directories are on disk before the answer.
    pub const FSYNC: Self = Self(1);
    /// The mode becomes that of ATTRS, the umask notwithstanding; set-id bits are kept only where
    /// ATTRS names the owner, and never without this flag. Times are set with or without it.
    pub const EXACT: Self = Self(2);
    /// A file that is there stays, and is an error.
    pub const NO_REPLACE: Self = Self(4);

    /// Whether all of `other` are set.
    pub fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

impl std::ops::BitOr for PutFlags {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// A small file on its way to the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PutFile {
    /// Absolute, or from the session's start directory.
    pub path: Vec<u8>,
    /// Of the new file; a size is ignored.
    pub attrs: Attrs,
    /// All of it.
    pub content: Vec<u8>,
}

/// A small file that is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GetFile {
    /// Absolute, or from the session's start directory.
    pub path: Vec<u8>,
    /// A file that is larger is not sent at all.
    pub most: u32,
}

/// A request with a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Extended {
    /// Renames, replacing what is there.
    PosixRename {
        /// What there is.
        from: Vec<u8>,
        /// What it becomes.
        to: Vec<u8>,
    },
    /// Answered by [`super::Statvfs`].
    Statvfs(Vec<u8>),
    /// Answered by [`super::Statvfs`].
    Fstatvfs(Handle),
    /// A second name.
    Hardlink {
        /// What there is.
        from: Vec<u8>,
        /// What it is called, too.
        to: Vec<u8>,
    },
    /// Answered when all that was written is on disk.
    Fsync(Handle),
    /// Sets attributes of a link itself.
    Lsetstat(Vec<u8>, Attrs),
    /// Answered by [`super::Limits`].
    Limits,
    /// Answered by one name.
    ExpandPath(Vec<u8>),
    /// Copies inside the server.
    CopyData {
        /// Open for reading.
        from: Handle,
        /// Of the first byte there.
        from_offset: u64,
        /// Bytes; 0 is all there are.
        len: u64,
        /// Open for writing, another one.
        to: Handle,
        /// Of the first byte there.
        to_offset: u64,
    },
    /// Answered by one name; an empty user is oneself.
    HomeDirectory(Vec<u8>),
    /// Answered by [`super::Groups`].
    UsersGroupsById {
        /// Numbers of users.
        users: Vec<u32>,
        /// Numbers of groups.
        groups: Vec<u32>,
    },
    /// Answered by [`super::BlockHashes`].
    BlockHashes {
        /// Open for reading.
        handle: Handle,
        /// Of the first byte.
        offset: u64,
        /// Bytes; 0 is to the end. The answer may be about less.
        len: u64,
        /// Bytes of a block, at least 64 KiB.
        block: u32,
    },
    /// Answered by a list of [`super::FileStatus`].
    PutFiles {
        /// How.
        flags: PutFlags,
        /// In this order.
        files: Vec<PutFile>,
    },
    /// Answered by a list of [`super::FileContent`], which may be shorter.
    GetFiles(Vec<GetFile>),
    /// Answered by [`super::SparseMap`].
    SparseMap {
        /// Open for reading.
        handle: Handle,
        /// From where on.
        offset: u64,
    },
    /// Answered by [`super::Xattrs`].
    GetXattrs(Handle),
    /// Sets those, leaves others.
    SetXattrs(Handle, Pairs),
    /// A name that is not known here.
    Unknown {
        /// The name.
        name: Vec<u8>,
        /// All that follows.
        data: Vec<u8>,
    },
}

impl Extended {
    /// Its name on the wire.
    pub fn name(&self) -> &[u8] {
        match self {
            Self::PosixRename { .. } => name::POSIX_RENAME,
            Self::Statvfs(_) => name::STATVFS,
            Self::Fstatvfs(_) => name::FSTATVFS,
            Self::Hardlink { .. } => name::HARDLINK,
            Self::Fsync(_) => name::FSYNC,
            Self::Lsetstat(..) => name::LSETSTAT,
            Self::Limits => name::LIMITS,
            Self::ExpandPath(_) => name::EXPAND_PATH,
            Self::CopyData { .. } => name::COPY_DATA,
            Self::HomeDirectory(_) => name::HOME_DIRECTORY,
            Self::UsersGroupsById { .. } => name::USERS_GROUPS,
            Self::BlockHashes { .. } => name::BLOCK_HASHES,
            Self::PutFiles { .. } => name::PUT_FILES,
            Self::GetFiles(_) => name::GET_FILES,
            Self::SparseMap { .. } => name::SPARSE_MAP,
            Self::GetXattrs(_) => name::GET_XATTRS,
            Self::SetXattrs(..) => name::SET_XATTRS,
            Self::Unknown { name, .. } => name,
        }
    }

    pub(super) fn write(&self, w: &mut Writer) {
        w.string(self.name());
        match self {
            Self::PosixRename { from, to } | Self::Hardlink { from, to } => {
                w.string(from).string(to);
            }
            Self::Statvfs(text) | Self::ExpandPath(text) | Self::HomeDirectory(text) => {
                w.string(text);
            }
            Self::Fstatvfs(handle) | Self::Fsync(handle) | Self::GetXattrs(handle) => {
                w.string(handle);
            }
            Self::Lsetstat(path, attrs) => attrs.write(w.string(path)),
            Self::Limits => {}
            Self::CopyData { from, from_offset, len, to, to_offset } => {
                w.string(from).u64(*from_offset).u64(*len).string(to).u64(*to_offset);
            }
            Self::UsersGroupsById { users, groups } => {
                w.string(numbers(users)).string(numbers(groups));
            }
            Self::BlockHashes { handle, offset, len, block } => {
                w.string(handle).u64(*offset).u64(*len).u32(*block);
            }
            Self::PutFiles { flags, files } => {
                write_count(w.u32(flags.0), files);
                for PutFile { path, attrs, content } in files {
                    attrs.write(w.string(path));
                    w.string(content);
                }
            }
            Self::GetFiles(files) => {
                write_count(w, files);
                files.iter().for_each(|file| {
                    w.string(&file.path).u32(file.most);
                });
            }
            Self::SparseMap { handle, offset } => {
                w.string(handle).u64(*offset);
            }
            Self::SetXattrs(handle, list) => write_pairs(w.string(handle), list),
            Self::Unknown { data, .. } => {
                w.raw(data);
            }
        }
    }

    pub(super) fn read(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let name = r.string("extended request")?;
        let text = |r: &mut Reader<'_>| r.string("path").map(<[u8]>::to_vec);
        Ok(match name {
            name::POSIX_RENAME => Self::PosixRename { from: text(r)?, to: text(r)? },
            name::STATVFS => Self::Statvfs(text(r)?),
            name::FSTATVFS => Self::Fstatvfs(Handle::read(r)?),
            name::HARDLINK => Self::Hardlink { from: text(r)?, to: text(r)? },
            name::FSYNC => Self::Fsync(Handle::read(r)?),
            name::LSETSTAT => Self::Lsetstat(text(r)?, Attrs::read(r)?),
            name::LIMITS => Self::Limits,
            name::EXPAND_PATH => Self::ExpandPath(text(r)?),
            name::COPY_DATA => Self::CopyData {
                from: Handle::read(r)?,
                from_offset: r.u64("offset")?,
                len: r.u64("length")?,
                to: Handle::read(r)?,
                to_offset: r.u64("offset")?,
            },
            name::HOME_DIRECTORY => Self::HomeDirectory(text(r)?),
            name::USERS_GROUPS => Self::UsersGroupsById {
                users: read_numbers(r.string("users")?)?,
                groups: read_numbers(r.string("groups")?)?,
            },
            name::BLOCK_HASHES => Self::BlockHashes {
                handle: Handle::read(r)?,
                offset: r.u64("offset")?,
                len: r.u64("length")?,
                block: r.u32("block size")?,
            },
            name::PUT_FILES => Self::PutFiles {
                flags: PutFlags(r.u32("flags")?),
                files: list(r, "files", PutFile::read)?,
            },
            name::GET_FILES => Self::GetFiles(list(r, "files", GetFile::read)?),
            name::SPARSE_MAP => {
                Self::SparseMap { handle: Handle::read(r)?, offset: r.u64("offset")? }
            }
            name::GET_XATTRS => Self::GetXattrs(Handle::read(r)?),
            name::SET_XATTRS => Self::SetXattrs(Handle::read(r)?, pairs(r)?),
            _ => Self::Unknown { name: name.to_vec(), data: r.rest().to_vec() },
        })
    }
}

impl PutFile {
    fn read(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let (path, attrs) = (r.string("path")?.to_vec(), Attrs::read(r)?);
        Ok(Self { path, attrs, content: r.string("content")?.to_vec() })
    }
}

impl GetFile {
    fn read(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Self { path: r.string("path")?.to_vec(), most: r.u32("size")? })
    }
}

/// Numbers inside a string of their own.
fn numbers(list: &[u32]) -> Vec<u8> {
    list.iter().flat_map(|number| number.to_be_bytes()).collect()
}

fn read_numbers(bytes: &[u8]) -> Result<Vec<u32>, Malformed> {
    let mut r = Reader::new(bytes);
    let mut numbers = Vec::new();
    while r.left() > 0 {
        numbers.push(r.u32("number")?);
    }
    Ok(numbers)
}
