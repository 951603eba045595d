//! The path of this program, for starting it anew. After an upgrade the path leads to the new file,
//! while `/proc/self/exe` goes on leading to the old one, deleted or not.

use crate::log::Log;
use nix::errno::Errno;
use nix::unistd::execv;
use std::ffi::{CString, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The file that this process was made from. Session processes are started from it, because they
/// must understand the listener they come from.
pub(crate) const RUNNING: &str = "/proc/self/exe";

/// The path this program was started by. Must be asked for at the start, while the file is there.
pub(crate) fn path() -> PathBuf {
    let name = std::env::args_os().next().map(PathBuf::from);
    match name.filter(|name| name.as_os_str().as_bytes().contains(&b'/')) {
        Some(path) => std::path::absolute(&path).unwrap_or(path),
        // Found along PATH.
        None => std::env::current_exe().unwrap_or_else(|_| RUNNING.into()),
    }
}

/// Turns this process into the program at `path`, with the arguments it has. Where that cannot be
/// run, the running program goes on: a listener is worth more than none. Returns only an error.
pub(crate) fn replace(path: &Path, log: &Log) -> Errno {
    let name = path.as_os_str();
    let Err(error) = execute(path, name);
    log.error(format_args!("restart by {}: {error}", path.display()));
    let Err(error) = execute(Path::new(RUNNING), name);
    error
}

fn execute(path: &Path, name: &OsStr) -> nix::Result<std::convert::Infallible> {
    let text = |text: &OsStr| CString::new(text.as_bytes()).map_err(|_| Errno::EINVAL);
    let name = std::iter::once(text(name));
    let given = std::env::args_os().skip(1);
    let args: Vec<CString> = name.chain(given.map(|arg| text(&arg))).collect::<Result<_, _>>()?;
    execv(&text(path.as_os_str())?, &args)
}
