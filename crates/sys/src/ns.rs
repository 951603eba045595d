//! Network namespaces with a name, as `ip netns` keeps them.
//!
//! create  a fresh thread unshares, its namespace is bind-mounted at /run/netns/NAME
//! with    a closure runs on a thread that has entered the namespace
//! enter   the calling thread enters for good
//! delete  unmounts and unlinks; the kernel frees it when the last process has left

use std::ffi::CString;
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::{ptr, thread};

/// Where `ip netns` looks for named namespaces.
pub const DIR: &str = "/run/netns";

/// An open handle on a named network namespace. Dropping it does not delete the name.
#[derive(Debug)]
pub struct NetNs {
    name: String,
    file: File,
}

impl NetNs {
    /// Makes a new, empty namespace. Fails if the name is taken.
    pub fn create(name: &str) -> io::Result<Self> {
        fs::create_dir_all(DIR)?;
        let path = path_of(name);
        File::create_new(&path)?;
        let made = on_a_thread(|| {
            unshare_network()?;
            bind_mount(Path::new("/proc/thread-self/ns/net"), &path)
        });
        if let Err(e) = made {
            let _ = fs::remove_file(&path);
            return Err(e);
        }
        Self::open(name)
    }

    /// Opens a namespace by its name.
    pub fn open(name: &str) -> io::Result<Self> {
        Ok(Self { name: name.to_owned(), file: File::open(path_of(name))? })
    }

    /// The name, as `ip netns` would list it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Moves the calling thread into this namespace; what it spawns from now on is born there.
    pub fn enter(&self) -> io::Result<()> {
        // SAFETY: setns takes a descriptor, which `file` keeps open, and no pointers.
        let rc = unsafe { libc::setns(self.file.as_raw_fd(), libc::CLONE_NEWNET) };
        check(rc)
    }

    /// Runs `f` on a thread of its own inside the namespace and returns what it returned.
    /// Sockets and devices opened and processes spawned there belong to the namespace.
    pub fn with<T: Send>(&self, f: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
        on_a_thread(|| {
            self.enter()?;
            f()
        })
    }

    /// Removes the name.
    pub fn delete(&self) -> io::Result<()> {
        delete(&self.name)
    }
}

impl std::os::fd::AsFd for NetNs {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// Removes a name that may have been left by a process that was killed.
pub fn delete(name: &str) -> io::Result<()> {
    let path = path_of(name);
    let target = c_path(&path)?;
    // SAFETY: `target` is a valid C string for the length of the call. A failure (it was never
    // mounted) is not of interest: the unlink below decides.
    unsafe { libc::umount2(target.as_ptr(), libc::MNT_DETACH) };
    fs::remove_file(path)
}

fn path_of(name: &str) -> PathBuf {
    Path::new(DIR).join(name)
}

fn on_a_thread<T: Send>(f: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    thread::scope(|s| s.spawn(f).join())
        .unwrap_or_else(|_| Err(io::Error::other("the thread in the namespace panicked")))
}

fn unshare_network() -> io::Result<()> {
    // SAFETY: unshare takes flags only. The calling thread was made for this and ends after it.
    check(unsafe { libc::unshare(libc::CLONE_NEWNET) })
}

fn bind_mount(source: &Path, target: &Path) -> io::Result<()> {
    let (source, target) = (c_path(source)?, c_path(target)?);
    // SAFETY: both paths are valid C strings for the length of the call; a bind mount reads
    // neither the type nor the data, so both may be null.
    let rc = unsafe {
        libc::mount(source.as_ptr(), target.as_ptr(), ptr::null(), libc::MS_BIND, ptr::null())
    };
    check(rc)
}

fn c_path(path: &Path) -> io::Result<CString> {
    Ok(CString::new(path.as_os_str().as_bytes())?)
}

fn check(rc: libc::c_int) -> io::Result<()> {
    if rc < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
