//! Attributes of files, read and set.

use super::fault::Fault;
use super::paths::NOFOLLOW;
use crate::codec::{Attrs, Hello, LINKED_WANTED, NANOSECONDS_WANTED, Status, XATTRS_WANTED};
use rustix::fs::{AtFlags, FileType, Gid, Mode, OFlags, Stat, Timespec, Timestamps, Uid};
use rustix::io::Errno;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

/// What of `st_mode` can be set.
const PERMISSIONS: u32 = 0o7777;

/// What a client asked in its INIT to be told beyond the draft (PROTOCOL.md).
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Wanted {
    nanoseconds: bool,
    /// Which names are of one file.
    linked: bool,
    pub(super) xattrs: bool,
}

impl Wanted {
    pub(super) fn of(hello: &Hello) -> Self {
        Self {
            nanoseconds: hello.has(NANOSECONDS_WANTED),
            linked: hello.has(LINKED_WANTED),
            xattrs: hello.has(XATTRS_WANTED),
        }
    }
}

/// The attributes of a file, with what the client asked for.
pub(super) fn of(stat: &Stat, wanted: Wanted) -> Attrs {
    let seconds = |time: i64| u32::try_from(time).unwrap_or(if time < 0 { 0 } else { u32::MAX });
    let mut attrs = Attrs {
        size: u64::try_from(stat.st_size).ok(),
        owner: Some((stat.st_uid, stat.st_gid)),
        mode: Some(stat.st_mode),
        times: Some((seconds(stat.st_atime), seconds(stat.st_mtime))),
        extended: Vec::new(),
    };
    if wanted.nanoseconds {
        let below = |n: u64| u32::try_from(n).unwrap_or(0);
        attrs.set_nanoseconds(below(stat.st_atime_nsec), below(stat.st_mtime_nsec));
    }
    let file = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
    if wanted.linked && file && stat.st_nlink > 1 {
        attrs.set_linked(stat.st_dev, stat.st_ino);
    }
    attrs
}

/// What attributes are set on.
pub(super) enum Target<'a> {
    Open(BorrowedFd<'a>),
    /// From a directory; whether a link at the end is followed.
    Path(BorrowedFd<'a>, &'a [u8], bool),
}

/// Sets all that is told: size, owner, permissions, which a change of owner may cut, and times,
/// which all of those change. One that fails stops none of the others; the first is the answer.
pub(super) fn set(target: &Target<'_>, attrs: &Attrs) -> Result<(), Fault> {
    let size = attrs.size.map_or(Ok(()), |size| target.truncate(size));
    let owner = attrs.owner.map_or(Ok(()), |(user, group)| target.chown(user, group));
    let mode = attrs.mode.map_or(Ok(()), |mode| target.chmod(mode));
    let times = times(attrs).map_or(Ok(()), |times| target.set_times(&times));
    Ok(size.and(owner).and(mode).and(times)?)
}

/// Both times, whole; only with seconds do nanoseconds mean something.
pub(super) fn times(attrs: &Attrs) -> Option<Timestamps> {
    let (access, modification) = attrs.times?;
    let (access_below, modification_below) = attrs.nanoseconds().unwrap_or_default();
    let time =
        |seconds: u32, below: u32| Timespec { tv_sec: seconds.into(), tv_nsec: below.into() };
    Some(Timestamps {
        last_access: time(access, access_below),
        last_modification: time(modification, modification_below),
    })
}

/// Owner and group to set. A number of all ones is nobody's, and leaves what is there (chown(2)).
pub(super) fn owner((user, group): (u32, u32)) -> (Option<Uid>, Option<Gid>) {
    let some = |id: u32| (id != u32::MAX).then_some(id);
    (some(user).map(Uid::from_raw), some(group).map(Gid::from_raw))
}

/// Permissions to set.
pub(super) fn permissions(mode: u32) -> Mode {
    Mode::from_raw_mode(mode & PERMISSIONS)
}

impl Target<'_> {
    fn truncate(&self, size: u64) -> Result<(), Errno> {
        match self {
            Self::Open(fd) => rustix::fs::ftruncate(fd, size),
            Self::Path(from, path, true) => {
                let flags = OFlags::WRONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
                let fd = crate::open_regular(from, *path, flags, Mode::empty())?;
                rustix::fs::ftruncate(fd, size)
            }
            Self::Path(_, _, false) => Err(Errno::INVAL),
        }
    }

    fn chown(&self, user: u32, group: u32) -> Result<(), Errno> {
        let (user, group) = owner((user, group));
        match self {
            Self::Open(fd) => rustix::fs::fchown(fd, user, group),
            Self::Path(from, path, follow) => {
                rustix::fs::chownat(from, *path, user, group, flags(*follow))
            }
        }
    }

    fn chmod(&self, mode: u32) -> Result<(), Errno> {
        let mode = permissions(mode);
        match self {
            Self::Open(fd) => rustix::fs::fchmod(fd, mode),
            Self::Path(from, path, true) => {
                rustix::fs::chmodat(from, *path, mode, AtFlags::empty())
            }
            Self::Path(from, path, false) => chmod_nofollow(*from, path, mode),
        }
    }

    fn set_times(&self, times: &Timestamps) -> Result<(), Errno> {
        match self {
            Self::Open(fd) => rustix::fs::futimens(fd, times),
            Self::Path(from, path, follow) => {
                rustix::fs::utimensat(from, *path, times, flags(*follow))
            }
        }
    }
}

fn flags(follow: bool) -> AtFlags {
    if follow { AtFlags::empty() } else { NOFOLLOW }
}

/// The permissions of what is there and no link, which has none.
fn chmod_nofollow(from: BorrowedFd<'_>, path: &[u8], mode: Mode) -> Result<(), Errno> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let fd = rustix::fs::openat(from, path, flags, Mode::empty())?;
    if FileType::from_raw_mode(rustix::fs::fstat(&fd)?.st_mode) == FileType::Symlink {
        return Err(Errno::OPNOTSUPP);
    }
    rustix::fs::chmod(format!("/proc/self/fd/{}", fd.as_fd().as_raw_fd()), mode)
}

/// LSETSTAT has no size.
pub(super) fn check_no_size(attrs: &Attrs) -> Result<(), Fault> {
    if attrs.size.is_some() { Err(Status::BadMessage.into()) } else { Ok(()) }
}
