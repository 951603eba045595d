//! Requests that only look: STAT and its like, paths, limits, names.

use super::attributes;
use super::fault::Fault;
use super::paths::{self, NOFOLLOW};
use super::queue::Shared;
use crate::codec::{
    Attrs, Groups, Handle, Limits, MAX_DATA, MAX_PACKET, Name, Reply, Status, Statvfs,
};
use rustix::fs::{AtFlags, Mode, OFlags, StatVfs, StatVfsMountFlags};

/// Bytes of an extended reply besides its content: length, type and id.
const REPLY_HEAD: usize = 9;

impl Shared {
    pub(super) fn stat(&self, path: &[u8], follow: bool) -> Result<Reply, Fault> {
        let flags = if follow { AtFlags::empty() } else { NOFOLLOW };
        let stat = rustix::fs::statat(&self.start, path, flags)?;
        Ok(Reply::Attrs(attributes::of(&stat, self.wanted())))
    }

    pub(super) fn fstat(&self, handle: &Handle) -> Result<Reply, Fault> {
        let stat = rustix::fs::fstat(self.handles.get(handle)?.as_ref())?;
        Ok(Reply::Attrs(attributes::of(&stat, self.wanted())))
    }

    pub(super) fn realpath(&self, path: &[u8]) -> Result<Reply, Fault> {
        Ok(one_name(self.start.real(path)?))
    }

    pub(super) fn readlink(&self, path: &[u8]) -> Result<Reply, Fault> {
        let target = rustix::fs::readlinkat(&self.start, path, Vec::new())?;
        Ok(one_name(target.into_bytes()))
    }

    pub(super) fn expand_path(&self, path: &[u8]) -> Result<Reply, Fault> {
        self.realpath(&paths::expand_tilde(&self.setup.account, path)?)
    }

    pub(super) fn home_directory(&self, user: &[u8]) -> Result<Reply, Fault> {
        Ok(one_name(paths::home(&self.setup.account, user)?))
    }

    pub(super) fn statvfs(&self, path: &[u8]) -> Result<Reply, Fault> {
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let fd = rustix::fs::openat(&self.start, path, flags, Mode::empty())?;
        Ok(statvfs(&rustix::fs::fstatvfs(fd)?))
    }

    pub(super) fn fstatvfs(&self, handle: &Handle) -> Result<Reply, Fault> {
        Ok(statvfs(&rustix::fs::fstatvfs(self.handles.get(handle)?.as_ref())?))
    }

    pub(super) fn limits(&self) -> Reply {
        let limits = Limits {
            packet: MAX_PACKET as u64,
            read: MAX_DATA.into(),
            write: MAX_DATA.into(),
            handles: self.handles.most() as u64,
        };
        Reply::Extended(limits.encode())
    }

    pub(super) fn users_groups(&self, users: &[u32], groups: &[u32]) -> Result<Reply, Fault> {
        let bytes = |name: Option<String>| name.unwrap_or_default().into_bytes();
        let users = users.iter().map(|id| bytes(self.names.user(*id))).collect();
        let groups = groups.iter().map(|id| bytes(self.names.group(*id))).collect();
        let content = Groups { users, groups }.encode();
        if content.len() > MAX_PACKET - REPLY_HEAD {
            return Err(Fault::new(Status::Failure, "Too many names for one reply"));
        }
        Ok(Reply::Extended(content))
    }
}

fn one_name(name: Vec<u8>) -> Reply {
    let longname = name.clone();
    Reply::Names(vec![Name { name, longname, attrs: Attrs::default() }])
}

fn statvfs(stat: &StatVfs) -> Reply {
    let flag = |here: StatVfsMountFlags, there: u64| {
        if stat.f_flag.contains(here) { there } else { 0 }
    };
    let statvfs = Statvfs {
        bsize: stat.f_bsize,
        frsize: stat.f_frsize,
        blocks: stat.f_blocks,
        bfree: stat.f_bfree,
        bavail: stat.f_bavail,
        files: stat.f_files,
        ffree: stat.f_ffree,
        favail: stat.f_favail,
        fsid: stat.f_fsid,
        flag: flag(StatVfsMountFlags::RDONLY, 1) | flag(StatVfsMountFlags::NOSUID, 2),
        namemax: stat.f_namemax,
    };
    Reply::Extended(statvfs.encode())
}
