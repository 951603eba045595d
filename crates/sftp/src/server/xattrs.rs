//! Extended attributes: `get-xattrs@longhaul`, `set-xattrs@longhaul`.
//!
//! Those that begin with `user.`, and access lists, are the owner's; the others mean something to
//! the system and are shown and set for root alone.

use super::fault::Fault;
use super::queue::Shared;
use crate::codec::{Handle, MAX_PACKET, Pairs, Reply, Status, Xattrs};
use crate::xattrs;
use rustix::io::Errno;
use std::os::fd::{AsFd, BorrowedFd};

/// Bytes of a reply's packet that are not pairs.
const HEAD: usize = 64;

/// Access lists (acl(5)), which an owner may set as he may set permissions.
const ACCESS_LISTS: &[u8] = b"system.posix_acl_";

impl Shared {
    pub(super) fn get_xattrs(&self, handle: &Handle) -> Result<Reply, Fault> {
        let pairs = of(self.handles.get(handle)?.as_fd())?;
        Ok(Reply::Extended(Xattrs(pairs).encode()))
    }

    pub(super) fn set_xattrs(&self, handle: &Handle, pairs: &Pairs) -> Result<(), Fault> {
        let open = self.handles.get(handle)?;
        match pairs.iter().all(|(name, _)| is_ours(name)) {
            true => Ok(xattrs::set(open.as_fd(), pairs)?),
            false => Err(Status::PermissionDenied.into()),
        }
    }
}

/// All that may be shown, if it fits into a reply.
pub(super) fn of(fd: BorrowedFd<'_>) -> Result<Pairs, Errno> {
    let pairs = xattrs::of(fd, is_ours)?;
    if HEAD + bytes(&pairs) > MAX_PACKET { Err(Errno::TOOBIG) } else { Ok(pairs) }
}

/// What pairs take in a packet.
pub(super) fn bytes(pairs: &[(Vec<u8>, Vec<u8>)]) -> usize {
    pairs.iter().map(|(name, value)| name.len() + value.len() + 8).sum()
}

fn is_ours(name: &[u8]) -> bool {
    let owners = name.starts_with(b"user.") || name.starts_with(ACCESS_LISTS);
    owners || rustix::process::geteuid().is_root()
}
