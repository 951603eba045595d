//! Descriptors that a process was started with.

use std::io;

/// Marks every descriptor above standard error close-on-exec (close_range(2), Linux 5.11), so that
/// nothing our own starter left open reaches the programs we start.
pub fn keep_descriptors_to_ourselves() -> io::Result<()> {
    // SAFETY: takes numbers only, and closes nothing now: owners keep what they have.
    let result =
        unsafe { libc::syscall(libc::SYS_close_range, 3u32, u32::MAX, libc::CLOSE_RANGE_CLOEXEC) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::io::{FdFlags, dup, fcntl_getfd};

    #[test]
    fn what_the_starter_left_open_ends_with_the_next_program() {
        let inherited = dup(std::io::stderr()).unwrap();
        assert!(!fcntl_getfd(&inherited).unwrap().contains(FdFlags::CLOEXEC));
        keep_descriptors_to_ourselves().unwrap();
        assert!(fcntl_getfd(&inherited).unwrap().contains(FdFlags::CLOEXEC));
        assert!(!fcntl_getfd(std::io::stderr()).unwrap().contains(FdFlags::CLOEXEC));
    }
}
