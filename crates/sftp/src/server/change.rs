//! Requests that open, close and change: OpenSSH's semantics, word for word where clients see it.

use super::attributes::{self, Target};
use super::fault::Fault;
use super::handles::{Open, What};
use super::log::Level;
use super::noreplace;
use super::queue::Shared;
use crate::codec::{Attrs, Handle, OpenFlags, Reply, Status};
use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use rustix::io::Errno;
use std::os::fd::{AsFd, OwnedFd};

/// Permissions of a file or directory that comes without any, before the umask.
const FILE: u32 = 0o666;
const DIRECTORY: u32 = 0o777;

/// Bytes of a name or path, for the log.
pub(super) fn shown(bytes: &[u8]) -> std::borrow::Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

impl Shared {
    pub(super) fn open(
        &self,
        path: &[u8],
        flags: OpenFlags,
        attrs: &Attrs,
    ) -> Result<Reply, Fault> {
        let mode = attrs.mode.unwrap_or(FILE);
        let names = flag_names(flags);
        let path_shown = shown(path);
        self.log(Level::Info, format_args!("open \"{path_shown}\" flags {names} mode 0{mode:o}"));
        if !self.setup.options.permit.open(flags) {
            return Err(Status::PermissionDenied.into());
        }
        let flags_here = flags_here(flags)?;
        let mode = attributes::permissions(mode);
        let fd = crate::open_regular(&self.start, path, flags_here, mode)?;
        let open = Open::new(path.to_vec(), fd, What::File(flags));
        self.handles.add(open).map(Reply::Handle)
    }

    pub(super) fn close_handle(&self, handle: &Handle) -> Result<(), Fault> {
        let open = self.handles.remove(handle)?;
        self.log_close("", &open);
        open.flush()
    }

    pub(super) fn log_close(&self, how: &str, open: &Open) {
        let path = shown(&open.path);
        match open.what {
            What::Directory(_) => self.log(Level::Info, format_args!("{how}closedir \"{path}\"")),
            What::File(_) => {
                let (read, written) = open.moved();
                let line =
                    format_args!("{how}close \"{path}\" bytes read {read} written {written}");
                self.log(Level::Info, line);
            }
        }
    }

    pub(super) fn setstat(&self, path: &[u8], attrs: &Attrs, follow: bool) -> Result<(), Fault> {
        if !follow {
            attributes::check_no_size(attrs)?;
        }
        self.log_set(path, attrs);
        attributes::set(&Target::Path(self.start.as_fd(), path, follow), attrs)
    }

    pub(super) fn fsetstat(&self, handle: &Handle, attrs: &Attrs) -> Result<(), Fault> {
        let open = self.handles.get(handle)?;
        self.log_set(&open.path, attrs);
        attributes::set(&Target::Open(open.as_fd()), attrs)
    }

    fn log_set(&self, path: &[u8], attrs: &Attrs) {
        let path = shown(path);
        if let Some(size) = attrs.size {
            self.log(Level::Info, format_args!("set \"{path}\" size {size}"));
        }
        if let Some(mode) = attrs.mode {
            self.log(Level::Info, format_args!("set \"{path}\" mode {mode:04o}"));
        }
        if let Some((_, time)) = attrs.times {
            self.log(Level::Info, format_args!("set \"{path}\" modtime {time}"));
        }
        if let Some((user, group)) = attrs.owner {
            self.log(Level::Info, format_args!("set \"{path}\" owner {user} group {group}"));
        }
    }

    pub(super) fn remove(&self, path: &[u8]) -> Result<(), Fault> {
        self.log(Level::Info, format_args!("remove name \"{}\"", shown(path)));
        Ok(rustix::fs::unlinkat(&self.start, path, AtFlags::empty())?)
    }

    pub(super) fn mkdir(&self, path: &[u8], attrs: &Attrs) -> Result<(), Fault> {
        let mode = attrs.mode.map_or(DIRECTORY, |mode| mode & 0o7777);
        self.log(Level::Info, format_args!("mkdir name \"{}\" mode 0{mode:o}", shown(path)));
        Ok(rustix::fs::mkdirat(&self.start, path, Mode::from_raw_mode(mode))?)
    }

    pub(super) fn rmdir(&self, path: &[u8]) -> Result<(), Fault> {
        self.log(Level::Info, format_args!("rmdir name \"{}\"", shown(path)));
        Ok(rustix::fs::unlinkat(&self.start, path, AtFlags::REMOVEDIR)?)
    }

    /// RENAME: never over something (section 6.5).
    pub(super) fn rename(&self, from: &[u8], to: &[u8]) -> Result<(), Fault> {
        self.log_two("rename old", "new", from, to);
        Ok(noreplace::rename(self.start.as_fd(), from, to)?)
    }

    pub(super) fn posix_rename(&self, from: &[u8], to: &[u8]) -> Result<(), Fault> {
        self.log_two("posix-rename old", "new", from, to);
        Ok(rustix::fs::renameat(&self.start, from, &self.start, to)?)
    }

    pub(super) fn hardlink(&self, from: &[u8], to: &[u8]) -> Result<(), Fault> {
        self.log_two("hardlink old", "new", from, to);
        Ok(rustix::fs::linkat(&self.start, from, &self.start, to, AtFlags::empty())?)
    }

    pub(super) fn symlink(&self, target: &[u8], link: &[u8]) -> Result<(), Fault> {
        self.log_two("symlink old", "new", target, link);
        Ok(rustix::fs::symlinkat(target, &self.start, link)?)
    }

    fn log_two(&self, what: &str, then: &str, one: &[u8], two: &[u8]) {
        let (one, two) = (shown(one), shown(two));
        self.log(Level::Info, format_args!("{what} \"{one}\" {then} \"{two}\""));
    }

    pub(super) fn fsync(&self, handle: &Handle) -> Result<(), Fault> {
        let open = self.handles.get(handle)?;
        self.log(Level::Verbose, format_args!("fsync \"{}\"", shown(&open.path)));
        Ok(rustix::fs::fsync(open.as_ref())?)
    }
}

/// The flags of open(2). A FIFO or a device must not hold up the session, and never becomes the
/// controlling terminal.
fn flags_here(flags: OpenFlags) -> Result<OFlags, Fault> {
    let mut here = match (flags.has(OpenFlags::READ), flags.has(OpenFlags::WRITE)) {
        (true, true) => OFlags::RDWR,
        (false, true) => OFlags::WRONLY,
        // Without either, OpenSSH's server opens for reading.
        (_, false) => OFlags::RDONLY,
    };
    for (there, flag) in [
        (OpenFlags::APPEND, OFlags::APPEND),
        (OpenFlags::CREATE, OFlags::CREATE),
        (OpenFlags::TRUNCATE, OFlags::TRUNC),
        (OpenFlags::EXCLUSIVE, OFlags::EXCL),
    ] {
        if flags.has(there) {
            here |= flag;
        }
    }
    Ok(here | OFlags::CLOEXEC | OFlags::NOCTTY | OFlags::NONBLOCK)
}

/// As sftp-server(8) logs them.
fn flag_names(flags: OpenFlags) -> String {
    let names = ["READ", "WRITE", "APPEND", "CREATE", "TRUNCATE", "EXCL"];
    let set = names.iter().enumerate().filter(|(bit, _)| flags.0 & 1 << bit != 0);
    set.map(|(_, name)| *name).collect::<Vec<_>>().join(",")
}

/// A directory, to be listed.
pub(super) fn open_directory(from: impl AsFd, path: &[u8]) -> Result<OwnedFd, Errno> {
    open_directory_by(OFlags::RDONLY, from, path)
}

/// A directory, to change what is in it. One that may be written to and not read (a drop box) is
/// opened without the right to read: it can be all but listed and synced.
pub(super) fn open_place(from: impl AsFd, path: &[u8]) -> Result<OwnedFd, Errno> {
    match open_directory_by(OFlags::RDONLY, &from, path) {
        Err(Errno::ACCESS) => open_directory_by(OFlags::PATH, &from, path),
        opened => opened,
    }
}

fn open_directory_by(how: OFlags, from: impl AsFd, path: &[u8]) -> Result<OwnedFd, Errno> {
    let flags = how | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let from = if path.first() == Some(&b'/') { CWD } else { from.as_fd() };
    rustix::fs::openat(from, path, flags, Mode::empty())
}
