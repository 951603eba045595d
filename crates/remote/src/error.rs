//! Why a host's files cannot be had.

use std::io;

/// Errors of connecting and of opening channels. Text of the server in them is escaped (E2).
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no logged-in connection.
    #[error(transparent)]
    Login(#[from] login::Error),
    /// The server opens no more sessions on this connection (MaxSessions): another connection may
    /// help.
    #[error("the server opens no more sessions on this connection: {0}")]
    Full(String),
    /// The server refuses what the channel is for.
    #[error("the server refuses the {what}: {why}")]
    Refused {
        /// What was asked for.
        what: String,
        /// Its words.
        why: String,
    },
    /// The connection ended.
    #[error("{0}")]
    Lost(String),
    /// A program does not start.
    #[error("{program}: {why}")]
    Program {
        /// Its name.
        program: String,
        /// Why not.
        why: io::Error,
    },
    /// A command printed more than was to be kept.
    #[error("the command printed more than {0} bytes")]
    TooMuch(usize),
    /// The way to this host has no commands, only files.
    #[error("commands cannot be run this way")]
    NoCommands,
}

impl Error {
    /// What the user can do, if that is worth a line.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Login(error) => error.hint(),
            _ => None,
        }
    }
}
