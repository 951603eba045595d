//! Extended attributes of an open file (xattr(7)), for the server and for who copies from and to
//! files of its own.

use crate::codec::Pairs;
use rustix::fs::XattrFlags;
use rustix::io::Errno;
use std::os::fd::BorrowedFd;

/// All attributes with a name that `is_wanted`; none where the file system knows none.
///
/// # Errors
/// Those of flistxattr(2) and fgetxattr(2).
pub fn of(fd: BorrowedFd<'_>, is_wanted: impl Fn(&[u8]) -> bool) -> Result<Pairs, Errno> {
    let mut pairs = Vec::new();
    for name in names(fd)?.split(|byte| *byte == 0) {
        if !name.is_empty()
            && is_wanted(name)
            && let Some(value) = value(fd, name)?
        {
            pairs.push((name.to_vec(), value));
        }
    }
    Ok(pairs)
}

/// Sets them. One that fails stops none of the others.
///
/// # Errors
/// The first of fsetxattr(2).
pub fn set(fd: BorrowedFd<'_>, pairs: &[(Vec<u8>, Vec<u8>)]) -> Result<(), Errno> {
    let set = |(name, value): &(Vec<u8>, Vec<u8>)| {
        rustix::fs::fsetxattr(fd, name.as_slice(), value, XattrFlags::empty())
    };
    pairs.iter().map(set).fold(Ok(()), Result::and)
}

/// Each ends in NUL.
fn names(fd: BorrowedFd<'_>) -> Result<Vec<u8>, Errno> {
    let list = sized(|| rustix::fs::flistxattr_query(fd), |list| rustix::fs::flistxattr(fd, list));
    match list {
        Err(Errno::OPNOTSUPP) => Ok(Vec::new()),
        list => list,
    }
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
        let size = query()?;
        let mut bytes = vec![0; size];
        if size == 0 {
            return Ok(bytes);
        }
        match read(&mut bytes) {
            Err(Errno::RANGE) => {}
            read => {
                bytes.truncate(read?);
                return Ok(bytes);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;

    #[test]
    fn what_is_set_is_told_again_and_one_that_fails_stops_no_other() {
        let file = tempfile::tempfile().unwrap();
        let pair = |name: &str, value: &str| (name.as_bytes().to_vec(), value.as_bytes().to_vec());
        let pairs = [pair("user.a", "1"), pair("nonsense", "x"), pair("user.empty", "")];
        if set(file.as_fd(), &pairs[..1]) == Err(Errno::OPNOTSUPP) {
            return; // This file system keeps none.
        }
        assert!(set(file.as_fd(), &pairs).is_err());
        let mut told = of(file.as_fd(), |name| name.starts_with(b"user.")).unwrap();
        told.sort();
        assert_eq!(told, [pairs[0].clone(), pairs[2].clone()]);
        assert_eq!(of(file.as_fd(), |_| false).unwrap(), []);
    }
}
