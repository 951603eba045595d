//! Extended attributes: `get-xattrs@longhaul`, `set-xattrs@longhaul`.
//!
//! Those that begin with `user.` are anybody's; the others mean something to the system and are
//! shown and set for root alone.

use super::fault::Fault;
use super::queue::Shared;
use crate::codec::{Handle, MAX_PACKET, Pairs, Reply, Status, Xattrs};
use rustix::fs::XattrFlags;
use rustix::io::Errno;
use std::os::fd::AsFd;
use std::os::fd::BorrowedFd;

/// Bytes of a reply's packet that are not pairs.
const HEAD: usize = 64;

impl Shared {
    pub(super) fn get_xattrs(&self, handle: &Handle) -> Result<Reply, Fault> {
        let open = self.handles.get(handle)?;
        let mut pairs = Vec::new();
        let mut bytes = HEAD;
        for name in names(open.as_fd())? {
            let Some(value) = value(open.as_fd(), &name)? else { continue };
            bytes += name.len() + value.len() + 8;
            if bytes > MAX_PACKET {
                return Err(Errno::TOOBIG.into());
            }
            pairs.push((name, value));
        }
        Ok(Reply::Extended(Xattrs(pairs).encode()))
    }

    pub(super) fn set_xattrs(&self, handle: &Handle, pairs: &Pairs) -> Result<(), Fault> {
        let open = self.handles.get(handle)?;
        for (name, value) in pairs {
            if !is_ours(name) {
                return Err(Status::PermissionDenied.into());
            }
            rustix::fs::fsetxattr(open.as_ref(), name.as_slice(), value, XattrFlags::empty())?;
        }
        Ok(())
    }
}

fn is_ours(name: &[u8]) -> bool {
    name.starts_with(b"user.") || rustix::process::geteuid().is_root()
}

/// The names of all that may be shown; none where the file system knows none.
fn names(fd: BorrowedFd<'_>) -> Result<Vec<Vec<u8>>, Errno> {
    let list = sized(|| rustix::fs::flistxattr_query(fd), |list| rustix::fs::flistxattr(fd, list));
    let list = match list {
        Err(Errno::OPNOTSUPP) => return Ok(Vec::new()),
        list => list?,
    };
    let names = list.split(|b| *b == 0).filter(|name| !name.is_empty() && is_ours(name));
    Ok(names.map(<[u8]>::to_vec).collect())
}

/// `None` for one that is gone again.
fn value(fd: BorrowedFd<'_>, name: &[u8]) -> Result<Option<Vec<u8>>, Errno> {
    let value = sized(
        || rustix::fs::fgetxattr_query(fd, name),
        |value| rustix::fs::fgetxattr(fd, name, value),
    );
    match value {
        Err(Errno::NODATA) => Ok(None),
        value => value.map(Some),
    }
}

/// Asks how much there is, makes room, and asks again if it grew meanwhile.
fn sized(
    query: impl Fn() -> Result<usize, Errno>,
    read: impl Fn(&mut [u8]) -> Result<usize, Errno>,
) -> Result<Vec<u8>, Errno> {
    loop {
        let mut bytes = vec![0; query()?];
        match read(&mut bytes) {
            Err(Errno::RANGE) => {}
            read => {
                bytes.truncate(read?);
                return Ok(bytes);
            }
        }
    }
}
