//! The log: who opened, closed and changed what, in the words of sftp-server(8).

use std::fmt::Arguments;

/// How much is logged; each includes those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs, reason = "the names of sftp-server(8)")]
pub enum Level {
    Quiet,
    Fatal,
    Error,
    Info,
    Verbose,
    Debug,
}

impl Level {
    /// Of a name as after `-l`.
    pub fn of(name: &str) -> Option<Self> {
        Some(match name.to_ascii_uppercase().as_str() {
            "QUIET" => Self::Quiet,
            "FATAL" => Self::Fatal,
            "ERROR" => Self::Error,
            "INFO" => Self::Info,
            "VERBOSE" => Self::Verbose,
            "DEBUG" | "DEBUG1" | "DEBUG2" | "DEBUG3" => Self::Debug,
            _ => return None,
        })
    }
}

/// Takes lines of the log. They may carry any bytes of the client's, shown as text: what is not
/// printable is for the taker to escape.
pub trait Log: Send + Sync {
    /// One line. Called from several threads.
    fn line(&self, level: Level, line: Arguments<'_>);
}
