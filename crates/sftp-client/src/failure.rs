//! Why a command failed, and how that is said.

use crate::escape::shown;
use sftp::client::Error;
use sftp::codec::Status;
use std::io;
use wire::text::words;

/// A command that did not do what it was asked.
#[derive(Debug)]
pub(crate) enum Failure {
    /// For this reason, which is still to be told.
    Because(String),
    /// The reasons were told when they came up.
    Told,
    /// There is no server any more: nothing can go on.
    Lost(String),
}

pub(crate) type Result<T> = std::result::Result<T, Failure>;

impl Failure {
    /// A request about something failed: `what: why`.
    pub(crate) fn asked(what: impl std::fmt::Display, error: &Error) -> Self {
        match error {
            error if error.is_channels() => Self::Lost(shown(error.to_string().as_bytes())),
            error => Self::Because(format!("{what}: {}", reason(error))),
        }
    }

    /// A call of the local system about something failed: `what: why`.
    pub(crate) fn local(what: impl std::fmt::Display, error: &io::Error) -> Self {
        Self::Because(format!("{what}: {}", words(error)))
    }

    /// Says why, if that was not said yet. Only the loss of the server is handed on.
    pub(crate) fn tell(self) -> Result<()> {
        match self {
            Self::Because(why) => eprintln!("{why}"),
            Self::Told => {}
            Self::Lost(_) => return Err(self),
        }
        Ok(())
    }
}

/// A server's status in sftp(1)'s words, or in its own where those say more; our own errors in
/// theirs.
fn reason(error: &Error) -> String {
    match error {
        Error::Status { code, text } => match code {
            Status::NoSuchFile => "No such file or directory".to_owned(),
            // Both stand for many things, and the text says which.
            Status::Failure | Status::Other(_) if !text.is_empty() => shown(text.as_bytes()),
            code => code.text().to_owned(),
        },
        Error::Local(_, why) => words(why),
        other => shown(other.to_string().as_bytes()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r5_a_failure_is_told_in_the_servers_words_if_it_has_any() {
        for (code, text, told) in [
            (Status::Failure, "No space left on device", "No space left on device"),
            (Status::Failure, "", "Failure"),
            (Status::Failure, "Failure", "Failure"),
            (Status::Failure, "\x1b[2J", "\\033[2J"),
            (Status::PermissionDenied, "no", "Permission denied"),
            (Status::NoSuchFile, "no", "No such file or directory"),
        ] {
            assert_eq!(reason(&Error::Status { code, text: text.to_owned() }), told);
        }
    }
}
