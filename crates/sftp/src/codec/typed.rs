//! What extended replies contain. `encode` makes the content of a [`super::Reply::Extended`],
//! `parse` takes it.

use super::attrs::{pairs, write_pairs};
use super::{Attrs, Pairs, Status, list, write_count};
use wire::{Malformed, Reader, Writer};

/// Of `limits@openssh.com`; 0 says nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Limits {
    /// Most bytes of a packet.
    pub packet: u64,
    /// Most bytes of a READ.
    pub read: u64,
    /// Most bytes of a WRITE.
    pub write: u64,
    /// Most open handles.
    pub handles: u64,
}

/// Of `statvfs@openssh.com` and `fstatvfs@openssh.com`: the fields of statvfs(3).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "statvfs(3) says what its fields are")]
pub struct Statvfs {
    pub bsize: u64,
    pub frsize: u64,
    pub blocks: u64,
    pub bfree: u64,
    pub bavail: u64,
    pub files: u64,
    pub ffree: u64,
    pub favail: u64,
    pub fsid: u64,
    /// 1 is read-only, 2 is no set-id.
    pub flag: u64,
    pub namemax: u64,
}

/// Of `users-groups-by-id@openssh.com`: names in the order asked for, empty where unknown.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Groups {
    /// Names of users.
    pub users: Vec<Vec<u8>>,
    /// Names of groups.
    pub groups: Vec<Vec<u8>>,
}

/// Of `block-hashes@longhaul`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BlockHashes {
    /// Bytes from the offset that was asked for: less than asked for at the end of the file, or
    /// where the server did enough at once.
    pub hashed: u64,
    /// BLAKE3 of every block; the last one may be short.
    pub hashes: Vec<[u8; 32]>,
}

/// Of `put-files@longhaul`, for each file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileStatus {
    /// Whether it is in place.
    pub code: Status,
    /// Why not.
    pub text: Vec<u8>,
}

/// Of `get-files@longhaul`, for each file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileContent {
    /// FAILURE with attributes for a file that is larger than asked for.
    pub code: Status,
    /// Empty where they are not known.
    pub attrs: Attrs,
    /// All of it.
    pub content: Vec<u8>,
}

/// Of `sparse-map@longhaul`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SparseMap {
    /// Of the file.
    pub size: u64,
    /// Start and length of data, in order. If there are as many as [`SparseMap::MOST`], there may
    /// be more: the next request goes on after the last one.
    pub data: Vec<(u64, u64)>,
}

impl SparseMap {
    /// Most extents in a reply.
    pub const MOST: usize = 4096;
}

/// Of `get-xattrs@longhaul`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Xattrs(pub Pairs);

/// Reads all of `bytes`.
fn whole<'a, T>(
    bytes: &'a [u8],
    what: &'static str,
    read: impl FnOnce(&mut Reader<'a>) -> Result<T, Malformed>,
) -> Result<T, Malformed> {
    let mut r = Reader::new(bytes);
    let value = read(&mut r)?;
    r.end(what)?;
    Ok(value)
}

fn u64s<const N: usize>(bytes: &[u8], what: &'static str) -> Result<[u64; N], Malformed> {
    whole(bytes, what, |r| {
        let mut values = [0; N];
        for value in &mut values {
            *value = r.u64(what)?;
        }
        Ok(values)
    })
}

fn of_u64s(values: &[u64]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_be_bytes()).collect()
}

impl Limits {
    /// Of a reply.
    pub fn parse(bytes: &[u8]) -> Result<Self, Malformed> {
        let [packet, read, write, handles] = u64s(bytes, "limits")?;
        Ok(Self { packet, read, write, handles })
    }

    /// The reply.
    pub fn encode(&self) -> Vec<u8> {
        of_u64s(&[self.packet, self.read, self.write, self.handles])
    }
}

impl Statvfs {
    /// Of a reply.
    pub fn parse(bytes: &[u8]) -> Result<Self, Malformed> {
        let [bsize, frsize, blocks, bfree, bavail, files, ffree, favail, fsid, flag, namemax] =
            u64s(bytes, "statvfs")?;
        Ok(Self { bsize, frsize, blocks, bfree, bavail, files, ffree, favail, fsid, flag, namemax })
    }

    /// The reply.
    pub fn encode(&self) -> Vec<u8> {
        of_u64s(&[
            self.bsize,
            self.frsize,
            self.blocks,
            self.bfree,
            self.bavail,
            self.files,
            self.ffree,
            self.favail,
            self.fsid,
            self.flag,
            self.namemax,
        ])
    }
}

impl Groups {
    /// Of a reply.
    pub fn parse(bytes: &[u8]) -> Result<Self, Malformed> {
        let names = |bytes: &[u8]| {
            let mut r = Reader::new(bytes);
            let mut names = Vec::new();
            while r.left() > 0 {
                names.push(r.string("name")?.to_vec());
            }
            Ok(names)
        };
        whole(bytes, "names", |r| {
            Ok(Self { users: names(r.string("users")?)?, groups: names(r.string("groups")?)? })
        })
    }

    /// The reply.
    pub fn encode(&self) -> Vec<u8> {
        let names = |names: &[Vec<u8>]| {
            let mut w = Writer::new();
            names.iter().for_each(|name| {
                w.string(name);
            });
            w.finish()
        };
        Writer::new().string(names(&self.users)).string(names(&self.groups)).take()
    }
}

impl BlockHashes {
    /// Most hashes in a reply, which must fit into a packet.
    pub const MOST: usize = 8000;

    /// Of a reply.
    pub fn parse(bytes: &[u8]) -> Result<Self, Malformed> {
        whole(bytes, "block hashes", |r| {
            let hashed = r.u64("length")?;
            let mut hashes = Vec::with_capacity(r.left() / 32);
            while r.left() > 0 {
                hashes.push(*r.array("hash")?);
            }
            Ok(Self { hashed, hashes })
        })
    }

    /// The reply.
    pub fn encode(&self) -> Vec<u8> {
        let mut w = Writer::new();
        w.u64(self.hashed);
        self.hashes.iter().for_each(|hash| {
            w.raw(hash);
        });
        w.finish()
    }
}

impl FileStatus {
    /// Of a reply.
    pub fn parse_list(bytes: &[u8]) -> Result<Vec<Self>, Malformed> {
        whole(bytes, "files", |r| {
            list(r, "files", |r| {
                Ok(Self { code: Status::read(r)?, text: r.string("text")?.to_vec() })
            })
        })
    }

    /// The reply.
    pub fn encode_list(files: &[Self]) -> Vec<u8> {
        let mut w = Writer::new();
        write_count(&mut w, files);
        files.iter().for_each(|file| {
            w.u32(file.code.code()).string(&file.text);
        });
        w.finish()
    }
}

impl FileContent {
    /// Of a reply.
    pub fn parse_list(bytes: &[u8]) -> Result<Vec<Self>, Malformed> {
        whole(bytes, "files", |r| {
            list(r, "files", |r| {
                let (code, attrs) = (Status::read(r)?, Attrs::read(r)?);
                Ok(Self { code, attrs, content: r.string("content")?.to_vec() })
            })
        })
    }

    /// The reply.
    pub fn encode_list(files: &[Self]) -> Vec<u8> {
        let mut w = Writer::new();
        write_count(&mut w, files);
        for Self { code, attrs, content } in files {
            attrs.write(w.u32(code.code()));
            w.string(content);
        }
        w.finish()
    }
}

impl SparseMap {
    /// Of a reply.
    pub fn parse(bytes: &[u8]) -> Result<Self, Malformed> {
        whole(bytes, "sparse map", |r| {
            let size = r.u64("size")?;
            let data = list(r, "extents", |r| Ok((r.u64("start")?, r.u64("length")?)))?;
            Ok(Self { size, data })
        })
    }

    /// The reply.
    pub fn encode(&self) -> Vec<u8> {
        let mut w = Writer::new();
        write_count(w.u64(self.size), &self.data);
        self.data.iter().for_each(|(start, len)| {
            w.u64(*start).u64(*len);
        });
        w.finish()
    }
}

impl Xattrs {
    /// Of a reply.
    pub fn parse(bytes: &[u8]) -> Result<Self, Malformed> {
        whole(bytes, "extended attributes", pairs).map(Self)
    }

    /// The reply.
    pub fn encode(&self) -> Vec<u8> {
        let mut w = Writer::new();
        write_pairs(&mut w, &self.0);
        w.finish()
    }
}
