//! Files that another process holds a lease on: NFS servers for their delegations, Samba for its
//! oplocks (fcntl(2)).

use rustix::fs::{FileType, Mode, OFlags, fstat, open, openat};
use rustix::io::{Errno, Result};
use rustix::path::Arg;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// openat(2) of what may be a FIFO, which `flags` with `NONBLOCK` are not to wait for. A regular
/// file under a lease is waited for all the same, until its holder has given the lease back: the
/// kernel sees to that within 45 s (/proc/sys/fs/lease-break-time).
///
/// # Errors
/// Those of openat(2); that of a lease only where there is no /proc.
pub fn open_regular(
    from: impl AsFd,
    path: impl Arg + Copy,
    flags: OFlags,
    mode: Mode,
) -> Result<OwnedFd> {
    match openat(from.as_fd(), path, flags, mode) {
        Err(Errno::AGAIN) => wait(from.as_fd(), path, flags),
        opened => opened,
    }
}

/// Finds the file first: one that takes its place meanwhile could be a FIFO.
fn wait(from: BorrowedFd<'_>, path: impl Arg, flags: OFlags) -> Result<OwnedFd> {
    let find = OFlags::PATH | OFlags::CLOEXEC | flags.intersection(OFlags::NOFOLLOW);
    let found = openat(from, path, find, Mode::empty())?;
    if FileType::from_raw_mode(fstat(&found)?.st_mode) != FileType::RegularFile {
        return Err(Errno::AGAIN);
    }
    let again = flags.difference(OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CREATE);
    let path = format!("/proc/self/fd/{}", found.as_raw_fd());
    open(path, again, Mode::empty()).map_err(|errno| match errno {
        Errno::NOENT => Errno::AGAIN,
        errno => errno,
    })
}
