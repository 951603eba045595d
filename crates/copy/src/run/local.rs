//! Local: files of this host.
//!
//! A source is read by its path, as cp would. Everything written stands below a directory that is
//! held open, and is reached through held descriptors alone (invariant F2): neither a name that a
//! server sent nor a symbolic link that stands in the target leads out of it.

use super::meta::{Meta, Setting, Time};
use super::names;
use rustix::fs::{AtFlags, CWD, Mode, OFlags, ResolveFlags, Timespec, Timestamps};
use rustix::io::Errno;
use std::ffi::{CString, OsStr};
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Only the user's, until it is whole and gets its own (R1).
const PRIVATE: Mode = Mode::RUSR.union(Mode::WUSR);
/// Directories are searched and written in while the copy runs.
pub(super) const WORKABLE: u32 = 0o700;
const BENEATH: ResolveFlags = ResolveFlags::BENEATH.union(ResolveFlags::NO_SYMLINKS);

pub(super) fn path(bytes: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(bytes))
}

/// Opens a file for reading; what is no file any more does not block.
pub(super) fn open(at: &[u8]) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    Ok(sftp::open_regular(CWD, path(at), flags, Mode::empty())?.into())
}

pub(super) fn stat(at: &[u8], follow: bool) -> io::Result<Meta> {
    let flags = if follow { AtFlags::empty() } else { AtFlags::SYMLINK_NOFOLLOW };
    Ok(Meta::local(&rustix::fs::statat(CWD, path(at), flags)?))
}

pub(super) fn fstat(file: &File) -> io::Result<Meta> {
    Ok(Meta::local(&rustix::fs::fstat(file)?))
}

/// Where a file has data, from `SEEK_DATA` and `SEEK_HOLE`: what is not named reads as zeros.
pub(super) fn data(file: &File, size: u64) -> io::Result<Vec<Range<u64>>> {
    use rustix::fs::{SeekFrom, seek};
    let mut found = Vec::new();
    let mut at = 0;
    while at < size {
        let start = match seek(file, SeekFrom::Data(at)) {
            Ok(start) => start,
            Err(Errno::NXIO) => break,
            Err(error) => return Err(error.into()),
        };
        at = seek(file, SeekFrom::Hole(start))?.min(size);
        if start >= at {
            break;
        }
        found.push(start..at);
    }
    Ok(found)
}

/// Sets what is to be set, size first: extending a file changes its time.
pub(super) fn set(file: &File, setting: &Setting) -> io::Result<()> {
    if let Some(size) = setting.size {
        rustix::fs::ftruncate(file, size)?;
    }
    if let Some((user, group)) = setting.owner {
        rustix::fs::fchown(file, Some(user_id(user)), Some(group_id(group)))?;
    }
    if let Some(mode) = setting.mode {
        rustix::fs::fchmod(file, Mode::from_raw_mode(mode))?;
    }
    if let Some(times) = setting.times {
        rustix::fs::futimens(file, &timestamps(times))?;
    }
    Ok(())
}

fn user_id(id: u32) -> rustix::fs::Uid {
    rustix::fs::Uid::from_raw(id)
}

fn group_id(id: u32) -> rustix::fs::Gid {
    rustix::fs::Gid::from_raw(id)
}

fn timestamps((access, modification): (Time, Time)) -> Timestamps {
    let spec = |time: Time| Timespec { tv_sec: time.seconds, tv_nsec: time.nanos.into() };
    Timestamps { last_access: spec(access), last_modification: spec(modification) }
}

/// A directory of this host that is written below, through one thread.
pub(super) struct Below {
    root: OwnedFd,
    /// The directory that was used last, and whether a name in it changed since it was synced.
    last: Option<(Vec<u8>, OwnedFd)>,
    changed: bool,
    fsync: bool,
    /// Directories below the root that may not be on the disk, and why. It is no fault of the file
    /// that is written next, somewhere else.
    unsynced: Vec<(Vec<u8>, io::Error)>,
}

/// Opens a directory. One that may be written to and not read (a drop box) is opened without the
/// right to read: it can be all but listed and synced.
fn directory_by(open: impl Fn(OFlags) -> io::Result<OwnedFd>) -> io::Result<OwnedFd> {
    let flags = OFlags::DIRECTORY | OFlags::CLOEXEC;
    match open(flags | OFlags::RDONLY) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => open(flags | OFlags::PATH),
        opened => opened,
    }
}

impl Below {
    /// Follows links on the way to the root: that path is the user's own.
    pub(super) fn new(root: &[u8], fsync: bool) -> io::Result<Self> {
        let root = if root.is_empty() { b"." } else { root };
        let open = |flags| rustix::fs::open(path(root), flags, Mode::empty());
        let root = directory_by(|flags| open(flags).map_err(io::Error::from))?;
        Ok(Self { root, last: None, changed: false, fsync, unsynced: Vec::new() })
    }

    /// The directory that `at` is in, and its name there.
    fn parent<'a>(&mut self, at: &'a [u8]) -> io::Result<(BorrowedFd<'_>, &'a Path)> {
        let (directory, name) = names::split(at);
        let known = self.last.as_ref().is_some_and(|(last, _)| last == directory);
        if !known {
            self.sync_last();
            let fd = self.directory(directory)?;
            self.last = Some((directory.to_vec(), fd));
        }
        let fd = self.last.as_ref().map_or(self.root.as_fd(), |(_, fd)| fd.as_fd());
        Ok((fd, path(name)))
    }

    fn directory(&self, at: &[u8]) -> io::Result<OwnedFd> {
        let at = if at.is_empty() { b"." } else { at };
        directory_by(|flags| self.beneath(path(at), flags, Mode::empty()))
    }

    fn beneath(&self, at: &Path, flags: OFlags, mode: Mode) -> io::Result<OwnedFd> {
        rustix::fs::openat2(&self.root, at, flags, mode, BENEATH).map_err(|errno| match errno {
            Errno::LOOP => io::Error::other("a directory on the way is a symbolic link"),
            errno => errno.into(),
        })
    }

    fn sync_last(&mut self) {
        if let Some((directory, fd)) = self.last.as_ref().filter(|_| self.changed && self.fsync)
            && let Err(errno) = rustix::fs::fsync(fd)
            // Nobody can see to it who may not read it.
            && errno != Errno::BADF
        {
            self.unsynced.push((directory.clone(), errno.into()));
        }
        self.changed = false;
    }

    /// The names that changed are on the disk, but for those in the directories that are told of,
    /// each once.
    #[must_use]
    pub(super) fn sync(&mut self) -> Vec<(Vec<u8>, io::Error)> {
        self.sync_last();
        std::mem::take(&mut self.unsynced)
    }

    pub(super) fn lstat(&mut self, at: &[u8]) -> io::Result<Meta> {
        let (parent, name) = self.parent(at)?;
        Ok(Meta::local(&rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW)?))
    }

    fn open(&mut self, at: &[u8], flags: OFlags, mode: Mode) -> io::Result<File> {
        let (parent, name) = self.parent(at)?;
        let flags = flags | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NOCTTY;
        Ok(sftp::open_regular(parent, name, flags, mode)?.into())
    }

    /// A new file, private for now; fails if there is one (R1).
    pub(super) fn create(&mut self, at: &[u8]) -> io::Result<File> {
        let file = self.open(at, OFlags::RDWR | OFlags::CREATE | OFlags::EXCL, PRIVATE)?;
        self.changed = true;
        Ok(file)
    }

    /// A file that is there.
    pub(super) fn reopen(&mut self, at: &[u8]) -> io::Result<File> {
        self.open(at, OFlags::RDWR, Mode::empty())
    }

    /// A file that is there, to be looked at, and to be given attributes.
    pub(super) fn read(&mut self, at: &[u8]) -> io::Result<File> {
        self.open(at, OFlags::RDONLY | OFlags::NONBLOCK, Mode::empty())
    }

    /// A file under its final name, old content and all (`--inplace`).
    pub(super) fn overwrite(&mut self, at: &[u8]) -> io::Result<File> {
        self.open(at, OFlags::RDWR | OFlags::CREATE, Mode::from_raw_mode(0o666))
    }

    /// A device or pipe.
    pub(super) fn feed(&mut self, at: &[u8]) -> io::Result<File> {
        self.open(at, OFlags::WRONLY, Mode::empty())
    }

    /// A directory, to set attributes of.
    pub(super) fn opendir(&mut self, at: &[u8]) -> io::Result<File> {
        self.open(at, OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty())
    }

    pub(super) fn rename(&mut self, from: &[u8], to: &[u8]) -> io::Result<()> {
        let (parent, to) = self.parent(to)?;
        rustix::fs::renameat(parent, path(names::split(from).1), parent, to)?;
        self.changed = true;
        Ok(())
    }

    pub(super) fn remove(&mut self, at: &[u8]) -> io::Result<()> {
        let (parent, name) = self.parent(at)?;
        rustix::fs::unlinkat(parent, name, AtFlags::empty())?;
        self.changed = true;
        Ok(())
    }

    pub(super) fn mkdir(&mut self, at: &[u8], mode: u32) -> io::Result<()> {
        let (parent, name) = self.parent(at)?;
        rustix::fs::mkdirat(parent, name, Mode::from_raw_mode(mode))?;
        self.changed = true;
        Ok(())
    }

    pub(super) fn symlink(&mut self, target: &[u8], at: &[u8]) -> io::Result<()> {
        let (parent, name) = self.parent(at)?;
        let target = CString::new(target).map_err(io::Error::other)?;
        rustix::fs::symlinkat(target.as_c_str(), parent, name)?;
        self.changed = true;
        Ok(())
    }

    pub(super) fn hardlink(&mut self, from: &[u8], to: &[u8]) -> io::Result<()> {
        let (directory, name) = names::split(from);
        let directory = self.directory(directory)?;
        let (parent, to) = self.parent(to)?;
        rustix::fs::linkat(&directory, path(name), parent, to, AtFlags::empty())?;
        self.changed = true;
        Ok(())
    }

    /// Sets what is to be set on a directory, or on a link itself.
    pub(super) fn set(&mut self, at: &[u8], setting: &Setting) -> io::Result<()> {
        let flags = AtFlags::SYMLINK_NOFOLLOW;
        let (parent, name) = self.parent(at)?;
        if let Some((user, group)) = setting.owner {
            let owner = (Some(user_id(user)), Some(group_id(group)));
            rustix::fs::chownat(parent, name, owner.0, owner.1, flags)?;
        }
        let meta = Meta::local(&rustix::fs::statat(parent, name, flags)?);
        if let Some(mode) = setting.mode.filter(|_| meta.kind == super::meta::Kind::Directory) {
            let opened = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let fd = rustix::fs::openat(parent, name, opened, Mode::empty())?;
            rustix::fs::fchmod(fd, Mode::from_raw_mode(mode))?;
        }
        if let Some(times) = setting.times {
            rustix::fs::utimensat(parent, name, &timestamps(times), flags)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

    fn below() -> (tempfile::TempDir, Below) {
        let directory = tempfile::tempdir().unwrap();
        let below = Below::new(directory.path().as_os_str().as_bytes(), true).unwrap();
        (directory, below)
    }

    #[test]
    fn f2_nothing_is_reached_outside_of_the_target() {
        let (directory, mut below) = below();
        let outside = tempfile::tempdir().unwrap();
        fs::write(outside.path().join("x"), "old").unwrap();
        symlink(outside.path(), directory.path().join("link")).unwrap();
        symlink(outside.path().join("x"), directory.path().join("file")).unwrap();
        assert!(below.create(b"link/new").is_err());
        assert!(below.create(b"../new").is_err());
        assert!(below.create(b"/tmp/new").is_err());
        assert!(below.reopen(b"link/x").is_err());
        assert!(below.overwrite(b"file").is_err());
        assert!(below.remove(b"link/x").is_err());
        assert!(below.mkdir(b"link/d", 0o700).is_err());
        assert!(below.set(b"link/x", &Setting { mode: Some(0), ..Setting::default() }).is_err());
        assert_eq!(fs::read_to_string(outside.path().join("x")).unwrap(), "old");
        assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 1);
    }

    #[test]
    fn r1_a_part_file_is_new_and_private_and_replaces_the_old_at_once() {
        let (directory, mut below) = below();
        fs::write(directory.path().join("x"), "old").unwrap();
        let file = below.create(b".x.1.part").unwrap();
        let part = directory.path().join(".x.1.part");
        assert_eq!(fs::metadata(&part).unwrap().mode() & 0o7777, 0o600);
        assert_eq!(below.create(b".x.1.part").unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        let setting = Setting { mode: Some(0o640), size: Some(5), ..Setting::default() };
        set(&file, &setting).unwrap();
        below.rename(b".x.1.part", b"x").unwrap();
        let meta = fs::metadata(directory.path().join("x")).unwrap();
        assert_eq!((meta.len(), meta.permissions().mode() & 0o7777), (5, 0o640));
        assert!(!part.exists());
    }

    #[test]
    fn a_directory_that_does_not_reach_the_disk_is_told_by_its_own_name_once() {
        // Directories of this file system cannot be synced.
        let mut below = Below::new(b"/proc/self", true).unwrap();
        for directory in ["task", "net"] {
            below.lstat(format!("{directory}/x").as_bytes()).unwrap_err();
            below.changed = true;
        }
        let unsynced: Vec<_> = below.sync().into_iter().map(|(directory, _)| directory).collect();
        assert_eq!(unsynced, [b"task".to_vec(), b"net".to_vec()]);
        assert!(below.sync().is_empty());
    }

    #[test]
    fn a_file_under_a_lease_is_waited_for() {
        let (directory, mut below) = below();
        let path = directory.path().join("x");
        fs::write(&path, "content").unwrap();
        for by_name in [true, false] {
            let Some(_lease) = need::lease(&path) else { return };
            match by_name {
                true => drop(open(path.as_os_str().as_bytes()).unwrap()),
                false => drop(below.read(b"x").unwrap()),
            }
        }
    }

    #[test]
    fn holes_are_known() {
        let (directory, mut below) = below();
        let file = below.create(b"x").unwrap();
        rustix::io::pwrite(&file, &[1; 65536], 1 << 20).unwrap();
        rustix::fs::ftruncate(&file, 3 << 20).unwrap();
        let found = data(&file, 3 << 20).unwrap();
        assert_eq!((found.len(), found[0].clone()), (1, 1 << 20..(1 << 20) + 65536));
        assert!(fstat(&file).unwrap().sparse);
        assert_eq!(data(&below.create(b"empty").unwrap(), 0).unwrap(), []);
        drop(directory);
    }

    #[test]
    fn times_and_modes_of_directories_and_links_are_set() {
        let (directory, mut below) = below();
        below.mkdir(b"d", WORKABLE).unwrap();
        below.symlink(b"nowhere", b"d/l").unwrap();
        let time = Time { seconds: 1_000_000_000, nanos: 5 };
        let setting =
            Setting { mode: Some(0o500), times: Some((time, time)), ..Setting::default() };
        below.set(b"d/l", &setting).unwrap();
        below.set(b"d", &setting).unwrap();
        let meta = below.lstat(b"d").unwrap();
        assert_eq!((meta.mode, meta.modified), (0o500, time));
        assert_eq!(below.lstat(b"d/l").unwrap().modified, time);
        drop(directory);
    }
}
