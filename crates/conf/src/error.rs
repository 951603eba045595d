//! What can be wrong with a configuration: always the place, then what and why, in one line.

use crate::line::Origin;
use std::io;

/// A configuration that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A line is malformed, or its value is.
    #[error("{0}: {1}")]
    Line(Origin, String),
    /// The keyword is in neither table.
    #[error("{0}: Bad configuration option: {1}")]
    Unknown(Origin, String),
    /// OpenSSH has it; passing over it would change what the user gets.
    #[error("{0}: {1} is not supported yet: {2}")]
    NotYet(Origin, String, &'static str),
    /// A file could not be read.
    #[error("{0}: {1}")]
    File(String, io::Error),
    /// A file that others could have written.
    #[error("{0}: bad owner or permissions")]
    Permissions(String),
    /// A host or user name that could mean something else to a shell or a program.
    #[error("{0} {1:?} is refused: {2}")]
    Name(&'static str, String, &'static str),
    /// A value whose tokens cannot be expanded.
    #[error("{0}: {1}")]
    Expansion(&'static str, String),
}

impl Error {
    /// One line on what the user can do, where there is something.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Unknown(_, keyword) => Some(format!(
                "if another program reads this file too, put 'IgnoreUnknown {keyword}' before it"
            )),
            Self::NotYet(..) => Some("use OpenSSH where this is needed".to_owned()),
            Self::Permissions(_) => Some("chmod go-w it, and own it yourself".to_owned()),
            _ => None,
        }
    }
}
