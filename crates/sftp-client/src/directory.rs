//! A local directory that a tree is written into: names are opened one component at a time below
//! a held descriptor, and no symbolic link is followed, whoever made it (F2).

use crate::escape::shown;
use crate::failure::{Failure, Result};
use crate::local;
use rustix::fs::{Mode, OFlags, Timespec, Timestamps};
use rustix::fs::{fchmod, futimens, mkdirat, open, openat};
use rustix::io::Errno;
use std::fs::File;
use std::os::fd::OwnedFd;

/// A directory, open, and the name to call it by.
pub(crate) struct Directory {
    fd: OwnedFd,
    name: Vec<u8>,
    /// Mode that it is given when it is complete.
    mode: Option<Mode>,
}

const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// Read, write and search for the owner, while files are put in.
const WHILE_FILLED: Mode = Mode::RUSR.union(Mode::WUSR).union(Mode::XUSR);

impl Directory {
    /// The directory at the top of a tree, which the user named: made if it is not there.
    pub(crate) fn top(name: &[u8], mode: Option<u32>) -> Result<Self> {
        let wanted = permissions(mode);
        let made = made(rustix::fs::mkdir(local::path(name), wanted | WHILE_FILLED), name)?;
        let fd = open(local::path(name), DIRECTORY, Mode::empty());
        Self::opened(fd, name.to_vec(), made, mode)
    }

    /// A directory below.
    pub(crate) fn child(&self, name: &[u8], mode: Option<u32>) -> Result<Self> {
        let full = crate::paths::join(&self.name, name);
        let wanted = permissions(mode);
        let made = made(mkdirat(&self.fd, local::path(name), wanted | WHILE_FILLED), &full)?;
        let fd = openat(&self.fd, local::path(name), DIRECTORY | OFlags::NOFOLLOW, Mode::empty());
        Self::opened(fd, full, made, mode)
    }

    fn opened(
        fd: rustix::io::Result<OwnedFd>,
        name: Vec<u8>,
        made: bool,
        mode: Option<u32>,
    ) -> Result<Self> {
        let fd = fd.map_err(|error| failed("open local", &name, error))?;
        let mode = (made && !permissions(mode).contains(WHILE_FILLED)).then(|| permissions(mode));
        Ok(Self { fd, name, mode })
    }

    /// Its name, as it was reached.
    pub(crate) fn name(&self) -> &[u8] {
        &self.name
    }

    /// A file in it, open for writing.
    pub(crate) fn file(&self, name: &[u8], mode: u32, keep: bool) -> Result<File> {
        let flags = write_flags(keep) | OFlags::NOFOLLOW;
        let fd = openat(&self.fd, local::path(name), flags, file_mode(mode));
        let full = crate::paths::join(&self.name, name);
        fd.map(File::from).map_err(|error| failed("open local", &full, error))
    }

    /// All is in it: mode, and times if they are to be kept. What cannot be set is told, as sftp(1)
    /// does it.
    pub(crate) fn complete(&self, times: Option<(u32, u32)>) -> Result<()> {
        if let Some(times) = times {
            let set = futimens(&self.fd, &timestamps(times));
            set.or_else(|error| failed("local set times on", &self.name, error).tell())?;
        }
        let Some(mode) = self.mode else { return Ok(()) };
        let set = fchmod(&self.fd, mode);
        set.or_else(|error| failed("local chmod directory", &self.name, error).tell())
    }
}

/// A file that the user named, open for writing; links are followed.
pub(crate) fn create(name: &[u8], mode: u32, keep: bool) -> Result<File> {
    let fd = open(local::path(name), write_flags(keep), file_mode(mode));
    fd.map(File::from).map_err(|error| failed("open local", name, error))
}

/// `keep` leaves what is in the file.
fn write_flags(keep: bool) -> OFlags {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::CLOEXEC;
    if keep { flags } else { flags | OFlags::TRUNC }
}

/// Set-id and sticky bits are not taken over (F3); the owner can write.
fn file_mode(mode: u32) -> Mode {
    Mode::from_raw_mode(mode & 0o777) | Mode::WUSR
}

/// Of a directory; what the server does not say is up to the umask.
fn permissions(mode: Option<u32>) -> Mode {
    Mode::from_raw_mode(mode.unwrap_or(0o777) & 0o1777)
}

/// Times of a file, access and modification in seconds.
pub(crate) fn timestamps((access, modification): (u32, u32)) -> Timestamps {
    let time = |seconds: u32| Timespec { tv_sec: seconds.into(), tv_nsec: 0 };
    Timestamps { last_access: time(access), last_modification: time(modification) }
}

fn made(result: rustix::io::Result<()>, name: &[u8]) -> Result<bool> {
    match result {
        Ok(()) => Ok(true),
        Err(Errno::EXIST) => Ok(false),
        Err(error) => Err(Failure::local(format!("mkdir {}", shown(name)), &error.into())),
    }
}

fn failed(what: &str, name: &[u8], error: Errno) -> Failure {
    Failure::local(format!("{what} \"{}\"", shown(name)), &error.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn f2_links_below_the_top_are_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let (top, outside) = (dir.path().join("top"), dir.path().join("outside"));
        std::fs::create_dir_all(outside.join("sub")).unwrap();
        std::fs::create_dir(&top).unwrap();
        std::fs::write(outside.join("file"), "old").unwrap();
        symlink(&outside, top.join("dir")).unwrap();
        symlink(outside.join("file"), top.join("link")).unwrap();
        let top = Directory::top(top.as_os_str().as_bytes(), Some(0o755)).unwrap();
        assert!(top.child(b"dir", None).is_err());
        assert!(top.file(b"link", 0o644, false).is_err());
        assert_eq!(std::fs::read(outside.join("file")).unwrap(), b"old");
    }

    #[test]
    fn a_directory_is_its_owners_to_read_while_it_is_filled() {
        let dir = tempfile::tempdir().unwrap();
        let top = Directory::top(dir.path().as_os_str().as_bytes(), None).unwrap();
        let mode = || dir.path().join("closed").metadata().unwrap().permissions().mode() & 0o777;
        let child = top.child(b"closed", Some(0o40300)).unwrap();
        assert_eq!(mode(), 0o700);
        child.complete(None).unwrap();
        assert_eq!(mode(), 0o300);
    }

    #[test]
    fn a_directory_gets_its_mode_when_it_is_complete() {
        let dir = tempfile::tempdir().unwrap();
        let top = Directory::top(dir.path().as_os_str().as_bytes(), None).unwrap();
        let child = top.child(b"ro", Some(0o40555)).unwrap();
        child.file(b"x", 0o4444, false).unwrap();
        child.complete(Some((1, 2))).unwrap();
        let made = dir.path().join("ro");
        assert_eq!(made.metadata().unwrap().permissions().mode() & 0o7777, 0o555);
        let file = made.join("x").metadata().unwrap().permissions().mode();
        assert_eq!(file & 0o7777, 0o644);
        std::fs::set_permissions(&made, PermissionsExt::from_mode(0o755)).unwrap();
    }
}
