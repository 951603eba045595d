//! Status codes (section 7).

use wire::Malformed;

/// How a request went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// Well.
    Ok,
    /// Nothing is left to read.
    Eof,
    /// There is no such file.
    NoSuchFile,
    /// Not allowed.
    PermissionDenied,
    /// Anything else; the text says more.
    Failure,
    /// A request that does not parse.
    BadMessage,
    /// Client's own: there is no connection.
    NoConnection,
    /// Client's own: the connection is gone.
    ConnectionLost,
    /// The server does not know the request.
    Unsupported,
    /// A number from later drafts.
    Other(u32),
}

/// Their numbers, in order.
const NUMBERED: [Status; 9] = [
    Status::Ok,
    Status::Eof,
    Status::NoSuchFile,
    Status::PermissionDenied,
    Status::Failure,
    Status::BadMessage,
    Status::NoConnection,
    Status::ConnectionLost,
    Status::Unsupported,
];

impl Status {
    /// Its number.
    pub fn code(self) -> u32 {
        match self {
            Self::Other(code) => code,
            known => NUMBERED.iter().zip(0..).find(|(s, _)| **s == known).map_or(4, |(_, n)| n),
        }
    }

    /// Of a number; those of later drafts are kept as they are.
    pub fn of(code: u32) -> Self {
        let known = usize::try_from(code).ok().and_then(|code| NUMBERED.get(code));
        known.copied().unwrap_or(Self::Other(code))
    }

    /// What OpenSSH's server says for it.
    pub fn text(self) -> &'static str {
        match self {
            Self::Ok => "Success",
            Self::Eof => "End of file",
            Self::NoSuchFile => "No such file",
            Self::PermissionDenied => "Permission denied",
            Self::Failure => "Failure",
            Self::BadMessage => "Bad message",
            Self::NoConnection => "No connection",
            Self::ConnectionLost => "Connection lost",
            Self::Unsupported => "Operation unsupported",
            Self::Other(_) => "Unknown error",
        }
    }

    pub(super) fn read(r: &mut wire::Reader<'_>) -> Result<Self, Malformed> {
        r.u32("status").map(Self::of)
    }
}
