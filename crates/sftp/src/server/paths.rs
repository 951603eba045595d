//! Paths: where relative ones start, and what a path is without links and dots.
//!
//! The process's own directory is not the session's: lhsshd serves several sessions. Every call
//! goes through a descriptor of the start directory.

use super::fault::Fault;
use super::{Account, Setup};
use crate::codec::Status;
use nix::unistd::User;
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags};
use rustix::io::Errno;
use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

/// Links followed before it is a loop, as in Linux.
const MOST_LINKS: usize = 40;

/// The directory where relative paths start.
pub(super) struct Start {
    fd: OwnedFd,
    /// Without links.
    path: Vec<u8>,
}

impl Start {
    /// The one of the options, else of the setup, else the root: the first that can be entered.
    pub(super) fn of(setup: &Setup) -> io::Result<Self> {
        let template = setup.options.start.as_ref();
        let asked = template.map(|template| OsString::from_vec(expand(template, &setup.account)));
        let first = asked.map_or(setup.start.clone(), |path| setup.start.join(path));
        let all = [first.as_path(), &setup.start, Path::new("/")];
        let opened = all.iter().find_map(|path| Self::open(path).ok());
        opened.ok_or_else(|| io::Error::other("no directory to start in"))
    }

    fn open(path: &Path) -> Result<Self, Errno> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd = rustix::fs::openat(CWD, path, flags, Mode::empty())?;
        let path = std::fs::canonicalize(path).map_err(|_| Errno::NOENT)?;
        Ok(Self { fd, path: path.into_os_string().into_vec() })
    }

    /// A path without links and dots. The last component need not exist, as in OpenSSH's server.
    pub(super) fn real(&self, path: &[u8]) -> Result<Vec<u8>, Errno> {
        let mut real = Vec::new();
        let mut left: Vec<Vec<u8>> = Vec::new();
        push(&mut left, path);
        if path.first() != Some(&b'/') {
            push(&mut left, &self.path);
        }
        let mut links = 0;
        while let Some(component) = left.pop() {
            match component.as_slice() {
                b"" | b"." => continue,
                b".." => {
                    real.truncate(real.iter().rposition(|b| *b == b'/').unwrap_or(0));
                    continue;
                }
                name => {
                    real.push(b'/');
                    real.extend_from_slice(name);
                }
            }
            let last = left.is_empty();
            match rustix::fs::lstat(real.as_slice()).map(|s| FileType::from_raw_mode(s.st_mode)) {
                Err(Errno::NOENT) if last => {}
                Err(errno) => return Err(errno),
                Ok(FileType::Symlink) => {
                    links += 1;
                    if links > MOST_LINKS {
                        return Err(Errno::LOOP);
                    }
                    let target = rustix::fs::readlink(real.as_slice(), Vec::new())?.into_bytes();
                    push(&mut left, &target);
                    let stays = if target.first() == Some(&b'/') {
                        0
                    } else {
                        real.iter().rposition(|b| *b == b'/').unwrap_or(0)
                    };
                    real.truncate(stays);
                }
                Ok(FileType::Directory) => {}
                Ok(_) if last => {}
                Ok(_) => return Err(Errno::NOTDIR),
            }
        }
        if real.is_empty() {
            real.push(b'/');
        }
        Ok(real)
    }
}

impl AsFd for Start {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Puts a path's components onto a stack, the first on top. A slash at the end leaves an empty
/// one: what it ends must be a directory.
fn push(left: &mut Vec<Vec<u8>>, path: &[u8]) {
    left.extend(path.split(|b| *b == b'/').rev().map(<[u8]>::to_vec));
}

/// `%d` and `%u` of `-d`.
fn expand(template: &[u8], account: &Account) -> Vec<u8> {
    let mut out = Vec::new();
    let mut bytes = template.iter();
    while let Some(byte) = bytes.next() {
        match (byte, bytes.as_slice().first()) {
            (b'%', Some(b'd')) => out.extend_from_slice(account.home.as_os_str().as_bytes()),
            (b'%', Some(b'u')) => out.extend_from_slice(&account.name),
            (b'%', Some(b'%')) => out.push(b'%'),
            _ => {
                out.push(*byte);
                continue;
            }
        }
        bytes.next();
    }
    out
}

/// A user's home directory; of the session's own user without a name.
pub(super) fn home(account: &Account, user: &[u8]) -> Result<Vec<u8>, Fault> {
    if user.is_empty() || user == account.name {
        return Ok(account.home.as_os_str().as_bytes().to_vec());
    }
    let unknown = || Fault::new(Status::NoSuchFile, "No such user");
    let name = std::str::from_utf8(user).map_err(|_| unknown())?;
    let user = User::from_name(name)?.ok_or_else(unknown)?;
    Ok(user.dir.into_os_string().into_vec())
}

/// `~` and `~user` in front of a path. As in OpenSSH `~` is where the session starts: at home,
/// unless `-d` says otherwise.
pub(super) fn expand_tilde(account: &Account, path: &[u8]) -> Result<Vec<u8>, Fault> {
    let Some(rest) = path.strip_prefix(b"~") else { return Ok(path.to_vec()) };
    let end = rest.iter().position(|b| *b == b'/').unwrap_or(rest.len());
    let (user, rest) = rest.split_at(end);
    if user.is_empty() {
        return Ok([b".", rest].concat());
    }
    Ok([home(account, user)?.as_slice(), rest].concat())
}

/// Takes a path apart: its directory and its last component, which must be a name (F1).
pub(super) fn split(path: &[u8]) -> Result<(&[u8], &[u8]), Fault> {
    let slash = path.iter().rposition(|b| *b == b'/');
    let (directory, name) = match slash {
        None => (&b"."[..], path),
        Some(at) => {
            let (directory, name) = path.split_at(at);
            let name = name.get(1..).unwrap_or_default();
            (if directory.is_empty() { b"/" } else { directory }, name)
        }
    };
    if matches!(name, b"" | b"." | b"..") || path.contains(&0) {
        return Err(Fault::new(Status::BadMessage, "Not the name of a file"));
    }
    Ok((directory, name))
}

/// Not following a link at the end.
pub(super) const NOFOLLOW: AtFlags = AtFlags::SYMLINK_NOFOLLOW;

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    fn account() -> Account {
        Account { name: b"u".to_vec(), home: "/home/u".into() }
    }

    #[test]
    fn paths_become_real_as_realpath_says() {
        let dir = tempfile::tempdir().unwrap();
        let root = std::fs::canonicalize(dir.path()).unwrap();
        std::fs::create_dir_all(root.join("a/b")).unwrap();
        std::fs::write(root.join("a/file"), "").unwrap();
        std::os::unix::fs::symlink("b/../file", root.join("a/link")).unwrap();
        std::os::unix::fs::symlink(root.join("a"), root.join("absolute")).unwrap();
        std::os::unix::fs::symlink("loop", root.join("loop")).unwrap();
        std::os::unix::fs::symlink("nowhere", root.join("dangling")).unwrap();
        let start = Start::open(&root).unwrap();
        let real = |path: &str| {
            let real = start.real(path.as_bytes())?;
            let real = PathBuf::from(OsString::from_vec(real));
            Ok(real.strip_prefix(&root).map(Path::to_owned).unwrap_or(real))
        };
        for (path, expected) in [
            ("", Ok("")),
            (".", Ok("")),
            ("a/./b//", Ok("a/b")),
            ("a/b/../link", Ok("a/file")),
            ("absolute/link", Ok("a/file")),
            ("absolute/b/..", Ok("a")),
            ("new", Ok("new")),
            ("a/new", Ok("a/new")),
            ("dangling", Ok("nowhere")),
            ("/", Ok("/")),
            ("/..", Ok("/")),
            ("../../../../../../../../..", Ok("/")),
            ("new/b", Err(Errno::NOENT)),
            ("a/file/..", Err(Errno::NOTDIR)),
            ("a/file/", Err(Errno::NOTDIR)),
            ("loop", Err(Errno::LOOP)),
        ] {
            assert_eq!(real(path), expected.map(PathBuf::from), "{path:?}");
        }
    }

    #[test]
    fn tokens_and_tildes_expand() {
        assert_eq!(expand(b"%d/x-%u%%%z%", &account()), b"/home/u/x-u%%z%");
        let tilde = |path: &[u8]| expand_tilde(&account(), path);
        assert_eq!(tilde(b"~/x"), Ok(b"./x".to_vec()), "from where the session starts");
        assert_eq!(tilde(b"~"), Ok(b".".to_vec()));
        assert_eq!(tilde(b"~u/x"), Ok(b"/home/u/x".to_vec()));
        assert_eq!(tilde(b"~root/x"), Ok(b"/root/x".to_vec()));
        assert_eq!(tilde(b"a~"), Ok(b"a~".to_vec()));
        assert!(tilde(b"~no-such-user/x").is_err());
    }

    #[test]
    fn f1_the_last_component_of_a_path_is_a_name() {
        assert_eq!(split(b"a/b"), Ok((&b"a"[..], &b"b"[..])));
        assert_eq!(split(b"b"), Ok((&b"."[..], &b"b"[..])));
        assert_eq!(split(b"/b"), Ok((&b"/"[..], &b"b"[..])));
        for bad in [&b""[..], b"/", b"a/", b"..", b"a/..", b".", b"a\0b"] {
            assert!(split(bad).is_err(), "{bad:?}");
        }
    }
}
