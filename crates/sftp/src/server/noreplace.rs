//! Renames that replace nothing, as far as the file system can promise that.
//!
//! ```text
//! RENAME_NOREPLACE   in one step
//! link, unlink       of a file, where the file system lacks that: link(2) never replaces
//! look, rename       of anything else, and without hard links (exFAT, some FUSE): as OpenSSH
//! ```

use super::paths::NOFOLLOW;
use rustix::fs::{AtFlags, FileType, RenameFlags};
use rustix::fs::{linkat, renameat, renameat_with, statat, unlinkat};
use rustix::io::Errno;
use std::os::fd::BorrowedFd;

/// Renames `from` to `to`, both as seen from `start`, unless something is there.
pub(super) fn rename(start: BorrowedFd<'_>, from: &[u8], to: &[u8]) -> Result<(), Errno> {
    match renameat_with(start, from, start, to, RenameFlags::NOREPLACE) {
        Err(Errno::INVAL | Errno::NOSYS) => {}
        done => return done,
    }
    let kind = statat(start, from, NOFOLLOW)?.st_mode;
    if FileType::from_raw_mode(kind) == FileType::RegularFile {
        match linkat(start, from, start, to, AtFlags::empty()) {
            Err(Errno::PERM | Errno::OPNOTSUPP | Errno::NOSYS | Errno::XDEV) => {}
            linked => return linked.and_then(|()| unlinkat(start, from, AtFlags::empty())),
        }
    }
    match statat(start, to, NOFOLLOW) {
        Err(Errno::NOENT) => renameat(start, from, start, to),
        Ok(_) => Err(Errno::EXIST),
        Err(errno) => Err(errno),
    }
}
