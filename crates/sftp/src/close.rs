//! The last errors of a written file: NFS, CIFS and many FUSE file systems send what they still
//! hold when a descriptor is closed, and report a spent quota or a full disk only then (close(2)).

use rustix::io::{Errno, Result};
use std::os::fd::{AsFd, OwnedFd};

/// Closes a file and returns the error that dropping it would ignore.
pub fn close(fd: impl Into<OwnedFd>) -> Result<()> {
    let closed = nix::unistd::close(fd.into());
    closed.map_err(|errno| Errno::from_raw_os_error(errno as i32))
}

/// Closes a duplicate of `fd`, which makes the file system flush the file as the close of `fd`
/// itself would. `fd` stays open, whoever shares it.
pub fn flush(fd: impl AsFd) -> Result<()> {
    close(rustix::io::fcntl_dupfd_cloexec(fd, 0)?)
}
