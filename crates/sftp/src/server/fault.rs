//! Why a request was not done: a status and what to say about it.

use crate::codec::{Reply, Status};
use rustix::io::Errno;
use std::borrow::Cow;

/// A request that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fault {
    pub(super) code: Status,
    pub(super) text: Cow<'static, str>,
}

impl Fault {
    /// With a text of our own.
    pub(super) fn new(code: Status, text: &'static str) -> Self {
        Self { code, text: text.into() }
    }

    /// A handle that is not open, or not for this.
    pub(super) fn handle() -> Self {
        Self::new(Status::Failure, "Invalid handle")
    }

    /// Nothing more.
    pub(super) fn eof() -> Self {
        Self::from(Status::Eof)
    }

    pub(super) fn reply(&self) -> Reply {
        Reply::Status { code: self.code, text: self.text.as_bytes().to_vec() }
    }
}

impl From<Status> for Fault {
    fn from(code: Status) -> Self {
        Self { code, text: code.text().into() }
    }
}

/// The status that OpenSSH's server has for an error, with the system's own words: the draft knows
/// three, and "no space left" is not among them.
impl From<Errno> for Fault {
    fn from(errno: Errno) -> Self {
        let code = match errno {
            Errno::NOENT | Errno::NOTDIR | Errno::BADF | Errno::LOOP => Status::NoSuchFile,
            Errno::PERM | Errno::ACCESS | Errno::FAULT => Status::PermissionDenied,
            Errno::NAMETOOLONG | Errno::INVAL => Status::BadMessage,
            Errno::NOSYS => Status::Unsupported,
            _ => Status::Failure,
        };
        Self { code, text: wire::text::words(&errno.into()).into() }
    }
}

impl From<nix::errno::Errno> for Fault {
    fn from(errno: nix::errno::Errno) -> Self {
        Errno::from_raw_os_error(errno as i32).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_systems_words_go_with_every_status() {
        let full = Fault::from(Errno::NOSPC);
        assert_eq!((full.code, &*full.text), (Status::Failure, "No space left on device"));
        let missing = Fault::from(Errno::NOENT);
        let expected = (Status::NoSuchFile, "No such file or directory");
        assert_eq!((missing.code, &*missing.text), expected);
    }
}
