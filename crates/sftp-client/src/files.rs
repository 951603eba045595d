//! The server's files: one function per question, answers as values, failures in words.
//!
//! Names of directories come from module `names`, which checks them (F1).

use crate::escape::shown;
use crate::failure::{Failure, Result};
use crate::glob::{Kind, Tree};
use crate::listing::Names;
use crate::names::Listing;
use sftp::client::{Client, Error};
use sftp::codec::{
    Attrs, Extended, Groups, Handle, Name, OpenFlags, Reply, Request, Status, Statvfs, name,
};
use std::collections::BTreeSet;

/// Asks for the files of a server; clones ask the same one.
#[derive(Clone)]
pub(crate) struct Files {
    client: Client,
}

/// Users, and groups, asked for at once: names of 255 bytes fit into one reply.
const MOST_IDS: usize = 400;

/// The bits of a mode that say what a file is.
const KIND: u32 = 0o170_000;

/// What a mode stands for; a server that does not say has plain files.
pub(crate) fn kind(attrs: &Attrs) -> Kind {
    match attrs.mode.map(|mode| mode & KIND) {
        Some(0o040_000) => Kind::Directory,
        Some(0o120_000) => Kind::Link,
        _ => Kind::Other,
    }
}

/// A plain file, or something that the server does not say.
pub(crate) fn is_regular(attrs: &Attrs) -> bool {
    attrs.mode.is_none_or(|mode| matches!(mode & KIND, 0 | 0o100_000))
}

impl Files {
    pub(crate) fn new(client: Client) -> Self {
        Self { client }
    }

    /// Waits until the server has said what it can do.
    pub(crate) fn ready(&self) -> Result<()> {
        self.client.server().map(drop).map_err(|error| Failure::asked("version", &error))
    }

    fn has(&self, extension: &[u8]) -> bool {
        self.client.server().is_ok_and(|facts| facts.has(extension))
    }

    fn need(&self, extension: &[u8]) -> Result<()> {
        if self.has(extension) {
            return Ok(());
        }
        let name = String::from_utf8_lossy(extension);
        Err(Failure::Because(format!("Server does not support {name} extension")))
    }

    /// A path as the server has it: absolute, links resolved.
    pub(crate) fn realpath(&self, path: &[u8]) -> Result<Vec<u8>> {
        let what = || format!("realpath {}", shown(path));
        let reply = self.client.call(&Request::Realpath(path.to_vec()));
        match reply.map_err(|error| Failure::asked(what(), &error))? {
            Reply::Names(names) if names.len() == 1 => {
                Ok(names.into_iter().next().unwrap_or_default().name)
            }
            _ => Err(Failure::Because(format!("{}: not one name", what()))),
        }
    }

    /// A file, links followed.
    pub(crate) fn stat(&self, path: &[u8]) -> Result<Attrs> {
        attrs(self.client.call(&Request::Stat(path.to_vec())))
            .map_err(|error| Failure::asked("stat remote", &error))
    }

    /// A file, a link not followed.
    pub(crate) fn lstat(&self, path: &[u8]) -> Result<Attrs> {
        attrs(self.client.call(&Request::Lstat(path.to_vec())))
            .map_err(|error| Failure::asked("stat remote", &error))
    }

    /// Whether there is a directory of this name.
    pub(crate) fn is_directory(&self, path: &[u8]) -> bool {
        attrs(self.client.call(&Request::Stat(path.to_vec())))
            .is_ok_and(|attrs| kind(&attrs) == Kind::Directory)
    }

    /// A directory's names, as they come.
    pub(crate) fn open_listing(&self, path: &[u8]) -> Result<Listing> {
        Listing::open(&self.client, path)
    }

    /// All names in a directory, without the server's lines about them.
    pub(crate) fn list(&self, path: &[u8]) -> Result<Vec<Name>> {
        self.open_listing(path)?.all(false)
    }

    /// Whether the server tells the names of users and groups, so that its lines are not needed.
    pub(crate) fn knows_names(&self) -> bool {
        self.has(name::USERS_GROUPS)
    }

    /// Makes a directory.
    pub(crate) fn mkdir(&self, path: &[u8], attrs: Attrs) -> Result<()> {
        self.done(&Request::Mkdir(path.to_vec(), attrs), || {
            format!("remote mkdir \"{}\"", shown(path))
        })
    }

    /// Removes an empty directory.
    pub(crate) fn rmdir(&self, path: &[u8]) -> Result<()> {
        self.done(&Request::Rmdir(path.to_vec()), || format!("remote rmdir \"{}\"", shown(path)))
    }

    /// Removes a file.
    pub(crate) fn remove(&self, path: &[u8]) -> Result<()> {
        self.done(&Request::Remove(path.to_vec()), || format!("remote delete {}", shown(path)))
    }

    /// Renames; what is there is replaced, if the server can do that and `plain` does not forbid it.
    pub(crate) fn rename(&self, from: &[u8], to: &[u8], plain: bool) -> Result<()> {
        let (from, to) = (from.to_vec(), to.to_vec());
        let what = format!("remote rename \"{}\" to \"{}\"", shown(&from), shown(&to));
        let request = if !plain && self.has(name::POSIX_RENAME) {
            Request::Extended(Extended::PosixRename { from, to })
        } else {
            Request::Rename { from, to }
        };
        self.done(&request, || what)
    }

    /// A second name for a file.
    pub(crate) fn hard_link(&self, old: &[u8], new: &[u8]) -> Result<()> {
        self.need(name::HARDLINK)?;
        let request = Extended::Hardlink { from: old.to_vec(), to: new.to_vec() };
        self.done(&Request::Extended(request), || {
            format!("remote link \"{}\" to \"{}\"", shown(old), shown(new))
        })
    }

    /// A symbolic link.
    pub(crate) fn sym_link(&self, target: &[u8], new: &[u8]) -> Result<()> {
        let request = Request::Symlink { target: target.to_vec(), link: new.to_vec() };
        self.done(&request, || {
            format!("remote symlink file \"{}\" to \"{}\"", shown(target), shown(new))
        })
    }

    /// Sets attributes of a file, or of a link itself.
    pub(crate) fn set(&self, path: &[u8], attrs: Attrs, follow: bool) -> Result<()> {
        if follow {
            return self.done(&Request::Setstat(path.to_vec(), attrs), || {
                format!("remote setstat \"{}\"", shown(path))
            });
        }
        self.need(name::LSETSTAT)?;
        self.done(&Request::Extended(Extended::Lsetstat(path.to_vec(), attrs)), || {
            format!("remote lsetstat \"{}\"", shown(path))
        })
    }

    /// How full the file system is.
    pub(crate) fn space(&self, path: &[u8]) -> Result<Statvfs> {
        self.need(name::STATVFS)?;
        let reply = self.client.call(&Request::Extended(Extended::Statvfs(path.to_vec())));
        let reply = reply.map_err(|error| Failure::asked("remote statvfs", &error))?;
        extended(reply, Statvfs::parse, "statvfs")
    }

    /// Names of the users and groups of these files; `None` if the server cannot say, and the
    /// lines of its listings have to do.
    pub(crate) fn names<'a>(&self, of: impl Iterator<Item = &'a Attrs>) -> Result<Option<Names>> {
        if !self.knows_names() {
            return Ok(None);
        }
        let owners: Vec<(u32, u32)> = of.filter_map(|attrs| attrs.owner).collect();
        let sorted = |ids: BTreeSet<u32>| ids.into_iter().collect::<Vec<u32>>();
        let users = sorted(owners.iter().map(|&(user, _)| user).collect());
        let groups = sorted(owners.iter().map(|&(_, group)| group).collect());
        let mut names = Names::default();
        let (mut users, mut groups) = (users.chunks(MOST_IDS), groups.chunks(MOST_IDS));
        loop {
            let (users, groups) = (users.next(), groups.next());
            if users.or(groups).is_none() {
                return Ok(Some(names));
            }
            names.add(self.some_names(users.unwrap_or_default(), groups.unwrap_or_default())?);
        }
    }

    fn some_names(&self, users: &[u32], groups: &[u32]) -> Result<Names> {
        let ask = Extended::UsersGroupsById { users: users.to_vec(), groups: groups.to_vec() };
        let reply = self.client.call(&Request::Extended(ask));
        let reply = reply.map_err(|error| Failure::asked("users-groups-by-id", &error))?;
        let answer = extended(reply, Groups::parse, "users-groups-by-id")?;
        Ok(Names::new(users, groups, answer))
    }

    /// Opens a file; `role` says in errors what it is opened as.
    pub(crate) fn open(
        &self,
        role: &str,
        path: &[u8],
        flags: OpenFlags,
        attrs: Attrs,
    ) -> Result<Handle> {
        let reply = self.client.call(&Request::Open { path: path.to_vec(), flags, attrs });
        let what = || format!("{role} open \"{}\"", shown(path));
        opened(reply).map_err(|error| Failure::asked(what(), &error))
    }

    /// Closes a file; what was written may fail only now.
    pub(crate) fn close(&self, handle: Handle) -> Result<()> {
        self.done(&Request::Close(handle), || "close remote".to_owned())
    }

    /// Sets attributes of an open file.
    pub(crate) fn fset(&self, handle: &Handle, attrs: Attrs) -> Result<()> {
        self.done(&Request::Fsetstat(handle.clone(), attrs), || "remote fsetstat".to_owned())
    }

    /// Whether the server can say that a file is on its disk.
    pub(crate) fn can_sync(&self) -> bool {
        self.has(name::FSYNC)
    }

    /// Waits until an open file is on the server's disk, if the server can say.
    pub(crate) fn sync(&self, handle: &Handle) -> Result<()> {
        if !self.can_sync() {
            return Ok(());
        }
        let request = Request::Extended(Extended::Fsync(handle.clone()));
        self.done(&request, || "remote fsync".to_owned())
    }

    /// Empties the target of a copy, unless it may be the source by another name: only files of
    /// different sizes are surely two. One of the same size, which is told, is overwritten to its
    /// end.
    pub(crate) fn empty_if_another(&self, source: &Handle, target: &Handle) -> Result<Option<u64>> {
        let (target_size, source_size) = (self.size(target)?, self.size(source)?);
        if target_size == source_size || target_size == Some(0) {
            return Ok(target_size);
        }
        self.fset(target, Attrs { size: Some(0), ..Attrs::default() }).map(|()| None)
    }

    /// The size of an open file.
    pub(crate) fn size(&self, handle: &Handle) -> Result<Option<u64>> {
        let reply = self.client.call(&Request::Fstat(handle.clone()));
        attrs(reply).map(|attrs| attrs.size).map_err(|error| Failure::asked("remote fstat", &error))
    }

    /// Copies all of an open file into another, at the server.
    pub(crate) fn copy_data(&self, from: Handle, to: Handle) -> std::result::Result<(), Error> {
        let copy = Extended::CopyData { from, from_offset: 0, len: 0, to, to_offset: 0 };
        self.client.call(&Request::Extended(copy)).map(drop)
    }

    /// Whether copies at the server are possible.
    pub(crate) fn need_copy_data(&self) -> Result<()> {
        self.need(name::COPY_DATA)
    }

    fn done(&self, request: &Request, what: impl FnOnce() -> String) -> Result<()> {
        self.client.call(request).map(drop).map_err(|error| Failure::asked(what(), &error))
    }
}

fn attrs(reply: std::result::Result<Reply, Error>) -> std::result::Result<Attrs, Error> {
    match reply? {
        Reply::Attrs(attrs) => Ok(Attrs { extended: Vec::new(), ..attrs }),
        _ => Err(Error::ended("attributes were asked for, something else came")),
    }
}

/// What cannot be looked at is not there, as far as patterns go.
fn found(attrs: Result<Attrs>) -> Result<Option<Attrs>> {
    match attrs {
        Err(lost @ Failure::Lost(_)) => Err(lost),
        attrs => Ok(attrs.ok()),
    }
}

fn opened(reply: std::result::Result<Reply, Error>) -> std::result::Result<Handle, Error> {
    match reply? {
        Reply::Handle(handle) => Ok(handle),
        _ => Err(Error::ended("a handle was asked for, something else came")),
    }
}

fn extended<T, E>(
    reply: Reply,
    parse: fn(&[u8]) -> std::result::Result<T, E>,
    what: &str,
) -> Result<T> {
    let Reply::Extended(bytes) = reply else {
        return Err(Failure::Because(format!("{what}: not an answer")));
    };
    parse(&bytes).map_err(|_| Failure::Because(format!("{what}: malformed answer")))
}

impl Tree for Files {
    type Stat = Attrs;

    /// As sftp(1), which tells what it passes over.
    fn names(&self, directory: &[u8]) -> Result<Vec<Vec<u8>>> {
        let mut listing = match Listing::ask(&self.client, directory) {
            Ok(listing) => listing,
            Err(error) => {
                let failure = Listing::refused(directory, &error);
                return match error.status() {
                    Some(Status::NoSuchFile | Status::PermissionDenied) => {
                        failure.tell().map(|()| Vec::new())
                    }
                    _ => Err(failure),
                };
            }
        };
        Ok(listing.all(false)?.into_iter().map(|entry| entry.name).collect())
    }

    fn lstat(&self, path: &[u8]) -> Result<Option<Attrs>> {
        found(Files::lstat(self, path))
    }

    fn stat(&self, path: &[u8]) -> Result<Option<Attrs>> {
        found(Files::stat(self, path))
    }

    fn kind(stat: &Attrs) -> Kind {
        kind(stat)
    }
}
