//! This side: the local files of patterns, commands of the shell, directories.

use crate::escape::shown;
use crate::failure::{Failure, Result};
use crate::glob::{Kind, Tree};
use std::ffi::OsStr;
use std::fs::{self, Metadata};
use std::io::{self, ErrorKind};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;
use std::process::Command;

/// The local files.
pub(crate) struct Here;

/// Bytes as a path.
pub(crate) fn path(bytes: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(bytes))
}

/// Whether there is a directory of this name.
pub(crate) fn is_directory(bytes: &[u8]) -> bool {
    path(bytes).is_dir()
}

impl Tree for Here {
    type Stat = Metadata;

    /// As glob(3), which says nothing about what it passes over.
    fn names(&self, directory: &[u8]) -> Result<Vec<Vec<u8>>> {
        use ErrorKind::{NotADirectory, NotFound, PermissionDenied};
        let entries =
            fs::read_dir(path(directory)).and_then(Iterator::collect::<io::Result<Vec<_>>>);
        match entries {
            Ok(entries) => {
                Ok(entries.into_iter().map(|entry| entry.file_name().into_vec()).collect())
            }
            Err(error) if matches!(error.kind(), NotFound | PermissionDenied | NotADirectory) => {
                Ok(Vec::new())
            }
            Err(error) => {
                Err(Failure::local(format!("local opendir \"{}\"", shown(directory)), &error))
            }
        }
    }

    fn lstat(&self, name: &[u8]) -> Result<Option<Metadata>> {
        Ok(fs::symlink_metadata(path(name)).ok())
    }

    fn stat(&self, name: &[u8]) -> Result<Option<Metadata>> {
        Ok(fs::metadata(path(name)).ok())
    }

    fn kind(stat: &Metadata) -> Kind {
        match stat.file_type() {
            kind if kind.is_dir() => Kind::Directory,
            kind if kind.is_symlink() => Kind::Link,
            _ => Kind::Other,
        }
    }
}

/// Changes the directory; without a path, to the user's.
pub(crate) fn change_directory(to: Option<&[u8]>) -> Result<()> {
    let home = || std::env::var_os("HOME").map(OsStringExt::into_vec);
    let to = match to {
        None | Some(b"") | Some(b"~") => home().unwrap_or_else(|| b"/".to_vec()),
        Some(path) => match path.strip_prefix(b"~/") {
            Some(rest) => crate::paths::join(&home().unwrap_or_default(), rest),
            None => path.to_vec(),
        },
    };
    std::env::set_current_dir(path(&to)).map_err(|error| {
        let to = shown(&to);
        Failure::local(format!("Couldn't change local directory to \"{to}\""), &error)
    })
}

/// The directory we are in.
pub(crate) fn directory() -> Result<Vec<u8>> {
    let directory = std::env::current_dir();
    let directory = directory.map_err(|e| Failure::local("Couldn't get local cwd", &e))?;
    Ok(directory.into_os_string().into_vec())
}

/// Makes a directory.
pub(crate) fn make_directory(name: &[u8]) -> Result<()> {
    fs::create_dir(path(name)).map_err(|error| {
        Failure::local(format!("Couldn't create local directory \"{}\"", shown(name)), &error)
    })
}

/// Runs the user's own words in the user's shell; without any, the shell alone. The text never
/// comes from a server (F4).
pub(crate) fn shell(command: &[u8]) -> Result<()> {
    let shell = std::env::var_os("SHELL").filter(|shell| !shell.is_empty());
    let shell = shell.unwrap_or_else(|| "/bin/sh".into());
    let mut child = Command::new(&shell);
    if !command.trim_ascii().is_empty() {
        child.arg("-c").arg(OsStr::from_bytes(command));
    }
    let status = child.status().map_err(|error| {
        Failure::local(format!("Couldn't execute \"{}\"", shown(shell.as_bytes())), &error)
    })?;
    match status.code() {
        None => eprintln!("Shell exited abnormally"),
        Some(0) => {}
        Some(code) => eprintln!("Shell exited with status {code}"),
    }
    Ok(())
}
