//! Side: one end of a lane, this host or another. What is asked is the same for both: a lane is
//! written once, and copies up, down, across and at home.
//!
//! Another host answers later, with an event that carries the token; this host at once, with the
//! return value.

pub(super) use super::fault::{Fault, internal};
use super::local::{self, Below};
use super::meta::{Meta, Setting};
use super::names;
use super::xattrs;
use sftp::client::{Answer, Client, Got, Sent, ServerFacts};
use sftp::codec::{
    Attrs, Extended, GetFile, Handle, NANOSECONDS_WANTED, Name, OpenFlags, Pairs, PutFile,
    PutFlags, Reply, Request, Xattrs, name,
};
use std::cell::OnceCell;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

/// An open file.
#[derive(Debug, Clone)]
pub(super) enum Open {
    Local(Arc<File>),
    Remote(Handle),
}

/// What a side can be asked, beside moving data. Paths of a target are below its root.
#[derive(Debug, Clone)]
pub(super) enum Ask {
    Lstat(Vec<u8>),
    Stat(Vec<u8>),
    /// For reading.
    Open(Vec<u8>),
    /// A new file of mode 0600 that was not there, for writing and reading back.
    Create(Vec<u8>),
    /// A file that is there, for writing and reading back.
    Reopen(Vec<u8>),
    /// A file under its final name, whether or not it is there.
    Overwrite(Vec<u8>),
    /// A device or pipe, which may not be readable.
    Feed(Vec<u8>),
    Fstat(Open),
    Set(Open, Setting),
    /// Not asked of servers that cannot: answered at once.
    Sync(Open),
    Close(Open),
    /// Replaces what is there, if the side [`Has::replaces`]; elsewhere it may be refused.
    Rename {
        from: Vec<u8>,
        to: Vec<u8>,
    },
    Remove(Vec<u8>),
    Mkdir(Vec<u8>, u32),
    Readlink(Vec<u8>),
    Symlink {
        target: Vec<u8>,
        link: Vec<u8>,
    },
    Hardlink {
        from: Vec<u8>,
        to: Vec<u8>,
    },
    /// On a directory, or on a link itself.
    SetPath(Vec<u8>, Setting),
    GetXattrs(Open),
    SetXattrs(Open, Pairs),
    /// Of a source, another host's alone; of a target, to set attributes of.
    Opendir(Vec<u8>),
    /// Another host's alone from here on.
    Readdir(Open),
    Hashes {
        open: Open,
        range: Range<u64>,
        block: u32,
    },
    SparseMap {
        open: Open,
        offset: u64,
    },
    CopyData {
        from: Open,
        range: Range<u64>,
        to: Open,
    },
    /// What a path is as the server sees it, from its root.
    Realpath(Vec<u8>),
    /// Where a path is that begins with a user's `~name`.
    ExpandPath(Vec<u8>),
    /// Of the file system that a path is on.
    Statvfs(Vec<u8>),
    PutFiles(PutFlags, Vec<PutFile>),
    GetFiles(Vec<GetFile>),
}

impl Ask {
    /// Means nothing on another channel.
    pub(super) fn names_a_handle(&self) -> bool {
        matches!(
            self,
            Self::Fstat(_)
                | Self::Set(..)
                | Self::Sync(_)
                | Self::Close(_)
                | Self::GetXattrs(_)
                | Self::SetXattrs(..)
                | Self::Readdir(_)
                | Self::Hashes { .. }
                | Self::SparseMap { .. }
                | Self::CopyData { .. }
        )
    }
}

/// A good answer.
#[derive(Debug)]
pub(super) enum Told {
    Done,
    Open(Open),
    Meta(Meta),
    Names(Vec<Name>),
    /// A put's, or what a get brought.
    Moved {
        len: u64,
        hash: Option<[u8; 32]>,
        bytes: Vec<u8>,
    },
    Extended(Vec<u8>),
}

pub(super) type Answered = Result<Told, Fault>;

/// One end of a lane.
pub(super) enum Side {
    /// Files of this host, to be read.
    Here,
    /// Files of this host, to be written.
    Below(Below),
    There(There),
    /// Made-up data, or nobody who wants it (`-t`).
    Nowhere,
}

/// Files of another host.
pub(super) struct There {
    pub(super) client: Client,
    /// Before every path of a target; empty for a source.
    root: Vec<u8>,
    patience: Duration,
    has: OnceCell<Has>,
}

/// What the server can do beyond the draft.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Has {
    /// A rename replaces what is there. SFTP's own RENAME does not have to: without the extension,
    /// what is there is removed first.
    pub(super) replaces: bool,
    pub(super) fsync: bool,
    pub(super) lsetstat: bool,
    pub(super) hardlink: bool,
    pub(super) hashes: bool,
    pub(super) put_files: bool,
    pub(super) get_files: bool,
    pub(super) sparse_map: bool,
    pub(super) copy_data: bool,
    pub(super) statvfs: bool,
    pub(super) expand_path: bool,
    pub(super) get_xattrs: bool,
    pub(super) set_xattrs: bool,
    pub(super) nanoseconds: bool,
}

impl Has {
    fn of(facts: &ServerFacts) -> Self {
        Self {
            replaces: facts.has(name::POSIX_RENAME),
            fsync: facts.has(name::FSYNC),
            lsetstat: facts.has(name::LSETSTAT),
            hardlink: facts.has(name::HARDLINK),
            hashes: facts.has(name::BLOCK_HASHES),
            put_files: facts.has(name::PUT_FILES),
            get_files: facts.has(name::GET_FILES),
            sparse_map: facts.has(name::SPARSE_MAP),
            copy_data: facts.has(name::COPY_DATA),
            statvfs: facts.has(name::STATVFS),
            expand_path: facts.has(name::EXPAND_PATH),
            get_xattrs: facts.has(name::GET_XATTRS),
            set_xattrs: facts.has(name::SET_XATTRS),
            nanoseconds: facts.has(NANOSECONDS_WANTED),
        }
    }
}

impl There {
    /// A channel on which the server may take so long for its first word.
    pub(super) fn new(client: Client, root: &[u8], patience: Duration) -> Self {
        Self { client, root: root.to_vec(), patience, has: OnceCell::new() }
    }

    /// What the server can do; waits for its word the first time. On a channel that broke before,
    /// nothing: the next answer tells.
    pub(super) fn has(&self) -> Has {
        let ask = || self.client.server_within(self.patience).map(Has::of);
        *self.has.get_or_init(|| ask().unwrap_or_default())
    }

    /// What the server calls a path; where it starts is `.`.
    pub(super) fn at(&self, path: &[u8]) -> Vec<u8> {
        let path = names::join(&self.root, path);
        if path.is_empty() { b".".to_vec() } else { path }
    }

    fn ask(&self, ask: Ask, token: u64) -> Option<Answered> {
        match self.request(ask) {
            Ok(request) => {
                self.client.request(&request, token);
                None
            }
            Err(answer) => Some(answer),
        }
    }

    /// The request for it, or the answer where none is needed or possible. One match over all of
    /// them: a question without a request does not compile.
    fn request(&self, ask: Ask) -> Result<Request, Answered> {
        Ok(match ask {
            Ask::Lstat(path) => Request::Lstat(self.at(&path)),
            Ask::Stat(path) => Request::Stat(self.at(&path)),
            Ask::Open(path) => self.open(&path, OpenFlags::READ, None),
            Ask::Create(path) => self.open(&path, UPDATE | NEW, Some(0o600)),
            Ask::Reopen(path) => self.open(&path, UPDATE, None),
            Ask::Overwrite(path) => self.open(&path, UPDATE | OpenFlags::CREATE, Some(0o666)),
            Ask::Feed(path) => self.open(&path, OpenFlags::WRITE, None),
            Ask::Fstat(open) => Request::Fstat(remote(open)?),
            Ask::Set(open, setting) if setting.is_empty() => {
                drop(open);
                return Err(Ok(Told::Done));
            }
            Ask::Set(open, setting) => {
                Request::Fsetstat(remote(open)?, setting.attrs(self.has().nanoseconds))
            }
            Ask::Sync(open) if self.has().fsync => {
                Request::Extended(Extended::Fsync(remote(open)?))
            }
            Ask::Sync(_) => return Err(Ok(Told::Done)),
            Ask::Close(open) => Request::Close(remote(open)?),
            Ask::Rename { from, to } => self.rename(&from, &to),
            Ask::Remove(path) => Request::Remove(self.at(&path)),
            Ask::Mkdir(path, mode) => Request::Mkdir(self.at(&path), mode_alone(mode)),
            Ask::Readlink(path) => Request::Readlink(self.at(&path)),
            Ask::Symlink { target, link } => Request::Symlink { target, link: self.at(&link) },
            Ask::Hardlink { from, to } if self.has().hardlink => {
                Request::Extended(Extended::Hardlink { from: self.at(&from), to: self.at(&to) })
            }
            Ask::Hardlink { .. } => {
                return Err(Err(Fault::other("the server makes no hard links")));
            }
            Ask::SetPath(path, setting) => {
                let attrs = setting.attrs(self.has().nanoseconds);
                match self.has().lsetstat {
                    true => Request::Extended(Extended::Lsetstat(self.at(&path), attrs)),
                    false => Request::Setstat(self.at(&path), attrs),
                }
            }
            Ask::GetXattrs(open) => Request::Extended(Extended::GetXattrs(remote(open)?)),
            Ask::SetXattrs(open, pairs) => {
                Request::Extended(Extended::SetXattrs(remote(open)?, pairs))
            }
            Ask::Opendir(path) => Request::Opendir(self.at(&path)),
            Ask::Readdir(open) => Request::Readdir(remote(open)?),
            Ask::Hashes { open, range, block } => Request::Extended(Extended::BlockHashes {
                handle: remote(open)?,
                offset: range.start,
                len: range.end - range.start,
                block,
            }),
            Ask::SparseMap { open, offset } => {
                Request::Extended(Extended::SparseMap { handle: remote(open)?, offset })
            }
            Ask::CopyData { from, range, to } => Request::Extended(Extended::CopyData {
                from: remote(from)?,
                from_offset: range.start,
                len: range.end - range.start,
                to: remote(to)?,
                to_offset: range.start,
            }),
            Ask::Realpath(path) => Request::Realpath(path),
            Ask::ExpandPath(path) if self.has().expand_path => {
                Request::Extended(Extended::ExpandPath(path))
            }
            Ask::ExpandPath(_) => {
                return Err(Err(Fault::other("the server does not know users' homes")));
            }
            Ask::Statvfs(path) if self.has().statvfs => {
                Request::Extended(Extended::Statvfs(self.at(&path)))
            }
            Ask::Statvfs(_) => return Err(Err(Fault::other("the server does not say"))),
            Ask::PutFiles(flags, files) => Request::Extended(Extended::PutFiles { flags, files }),
            Ask::GetFiles(files) => Request::Extended(Extended::GetFiles(files)),
        })
    }

    fn open(&self, path: &[u8], flags: OpenFlags, mode: Option<u32>) -> Request {
        let attrs = Attrs { mode, ..Attrs::default() };
        Request::Open { path: self.at(path), flags, attrs }
    }

    fn rename(&self, from: &[u8], to: &[u8]) -> Request {
        let (from, to) = (self.at(from), self.at(to));
        match self.has().replaces {
            true => Request::Extended(Extended::PosixRename { from, to }),
            false => Request::Rename { from, to },
        }
    }
}

const UPDATE: OpenFlags = OpenFlags(OpenFlags::READ.0 | OpenFlags::WRITE.0);
const NEW: OpenFlags = OpenFlags(OpenFlags::CREATE.0 | OpenFlags::EXCLUSIVE.0);

fn mode_alone(mode: u32) -> Attrs {
    Attrs { mode: Some(mode), ..Attrs::default() }
}

fn remote(open: Open) -> Result<Handle, Answered> {
    match open {
        Open::Remote(handle) => Ok(handle),
        Open::Local(_) => Err(Err(mixed_up())),
    }
}

fn mixed_up() -> Fault {
    Fault::internal("a question for the other end")
}

fn local(open: &Open) -> Result<&Arc<File>, Fault> {
    match open {
        Open::Local(file) => Ok(file),
        Open::Remote(_) => Err(mixed_up()),
    }
}

impl Side {
    /// Waits until a server has begun to speak SFTP; one that takes too long has ended the channel,
    /// and the next event tells.
    pub(super) fn wait_for_its_word(&self) {
        if let Self::There(there) = self {
            let _ = there.client.begun_within(there.patience);
        }
    }

    /// What the server can do; this host can all but what only servers are asked for.
    pub(super) fn has(&self) -> Has {
        match self {
            Self::There(there) => there.has(),
            _ => Has {
                replaces: true,
                fsync: true,
                lsetstat: true,
                hardlink: true,
                get_xattrs: true,
                set_xattrs: true,
                ..Has::default()
            },
        }
    }

    pub(super) fn is_remote(&self) -> bool {
        matches!(self, Self::There(_))
    }

    /// Asks; this host answers at once.
    pub(super) fn ask(&mut self, ask: Ask, token: u64) -> Option<Answered> {
        match self {
            Self::There(there) => there.ask(ask, token),
            Self::Here => Some(read(ask)),
            Self::Below(below) => Some(write(below, ask)),
            Self::Nowhere => Some(Ok(Told::Done)),
        }
    }
}

/// What a source of this host answers.
fn read(ask: Ask) -> Answered {
    Ok(match ask {
        Ask::Lstat(path) => Told::Meta(local::stat(&path, false)?),
        Ask::Stat(path) => Told::Meta(local::stat(&path, true)?),
        Ask::Open(path) => Told::Open(Open::Local(Arc::new(local::open(&path)?))),
        Ask::Readlink(path) => {
            let target =
                rustix::fs::readlink(local::path(&path), Vec::new()).map_err(io::Error::from)?;
            Told::Names(vec![Name { name: target.into_bytes(), ..Name::default() }])
        }
        Ask::Fstat(open) => Told::Meta(local::fstat(local(&open)?)?),
        Ask::Close(_) => Told::Done,
        Ask::GetXattrs(open) => Told::Extended(Xattrs(xattrs::of(local(&open)?)?).encode()),
        _ => return Err(mixed_up()),
    })
}

/// What a target of this host answers.
fn write(below: &mut Below, ask: Ask) -> Answered {
    let opened = |file| Told::Open(Open::Local(Arc::new(file)));
    Ok(match ask {
        Ask::Lstat(path) | Ask::Stat(path) => Told::Meta(below.lstat(&path)?),
        Ask::Open(path) => opened(below.read(&path)?),
        Ask::GetXattrs(open) => Told::Extended(Xattrs(xattrs::of(local(&open)?)?).encode()),
        Ask::Create(path) => opened(below.create(&path)?),
        Ask::Reopen(path) => opened(below.reopen(&path)?),
        Ask::Overwrite(path) => opened(below.overwrite(&path)?),
        Ask::Feed(path) => opened(below.feed(&path)?),
        Ask::Opendir(path) => opened(below.opendir(&path)?),
        Ask::Fstat(open) => Told::Meta(local::fstat(local(&open)?)?),
        other => {
            change(below, other)?;
            Told::Done
        }
    })
}

fn change(below: &mut Below, ask: Ask) -> Result<(), Fault> {
    match ask {
        Ask::Set(open, setting) => local::set(local(&open)?, &setting)?,
        Ask::Sync(open) => local(&open)?.sync_all()?,
        // Dropping it would tell nobody what did not fit.
        Ask::Close(open) => sftp::flush(local(&open)?).map_err(io::Error::from)?,
        Ask::SetXattrs(open, pairs) => xattrs::set(local(&open)?, &pairs)?,
        Ask::Rename { from, to } => below.rename(&from, &to)?,
        Ask::Remove(path) => below.remove(&path)?,
        Ask::Mkdir(path, mode) => below.mkdir(&path, mode)?,
        Ask::Symlink { target, link } => below.symlink(&target, &link)?,
        Ask::Hardlink { from, to } => below.hardlink(&from, &to)?,
        Ask::SetPath(path, setting) => below.set(&path, &setting)?,
        _ => return Err(mixed_up()),
    }
    Ok(())
}

/// What another host answered.
pub(super) fn told(answer: Result<Answer, sftp::client::Error>) -> Answered {
    Ok(match answer? {
        Answer::Reply(Reply::Status { .. }) => Told::Done,
        Answer::Reply(Reply::Handle(handle)) => Told::Open(Open::Remote(handle)),
        Answer::Reply(Reply::Attrs(attrs)) => Told::Meta(
            Meta::told(&attrs).ok_or_else(|| Fault::other("the server does not tell its size"))?,
        ),
        Answer::Reply(Reply::Names(names)) => Told::Names(names),
        Answer::Reply(Reply::Extended(bytes)) => Told::Extended(bytes),
        Answer::Reply(Reply::Data(bytes)) => {
            Told::Moved { len: bytes.len() as u64, hash: None, bytes }
        }
        Answer::Sent(Sent { len, hash }) => Told::Moved { len, hash, bytes: Vec::new() },
        Answer::Got(Got { len, hash, bytes, .. }) => Told::Moved { len: len.into(), hash, bytes },
    })
}
