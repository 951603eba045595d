//! The server's log: lines as sshd words them, to standard error or the system's log.
//!
//! `-E file` makes the file standard error itself, so that session processes inherit it.

use crate::args::{Args, LogTo};
use crate::syslog::Syslog;
use anyhow::{Context, Result};
use conf::LogLevel;
use std::fmt::Arguments;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt;
use wire::text::visible_within;

/// Longest line, in bytes: what every receiver should take (RFC 5424 section 6.1), less what stands
/// in front of it. sshd cuts at half of that, which a line of the transfer log may need.
const MAX_LINE: usize = 1900;

/// Longest name that a peer gives, as in sshd: what stands behind it in the line is not cut off.
const MAX_NAME: usize = 100;

/// LOG_AUTH of syslog(3).
const AUTH: u8 = 4;

/// A name that a peer gives, as it may stand in a line.
pub(crate) fn name(of_peer: &str) -> String {
    visible_within(of_peer, MAX_NAME)
}

/// What ends a listener that has no terminal any more: after SIGHUP standard error is nobody's.
pub(crate) fn last_words(args: &Args, error: &anyhow::Error) {
    if args.log_to == LogTo::System {
        let log = Log::system(LogLevel::Error);
        log.to_system(LogLevel::Error, &log.line(format_args!("{error:#}")));
    }
}

/// Lines below a level are not written.
#[derive(Debug)]
pub(crate) struct Log {
    /// Of the program, in front of every line.
    name: &'static str,
    level: LogLevel,
    /// Of syslog(3), by number.
    facility: u8,
    /// Standard error otherwise, and where this cannot be reached.
    system: Option<Syslog>,
}

impl Log {
    /// Opens what the command line asks for.
    pub(crate) fn open(args: &Args, level: LogLevel) -> Result<Self> {
        match &args.log_to {
            LogTo::Stderr => Ok(Self::stderr(level)),
            LogTo::File(path) => {
                // Users' names and addresses are nobody else's business.
                let file = OpenOptions::new().append(true).create(true).mode(0o600).open(path);
                let file = file.with_context(|| format!("log file {}", path.display()))?;
                rustix::stdio::dup2_stderr(file).context("log file")?;
                Ok(Self::stderr(level))
            }
            LogTo::System if args.foreground => Ok(Self::stderr(level)),
            LogTo::System => Ok(Self::system(level)),
        }
    }

    /// To standard error.
    pub(crate) fn stderr(level: LogLevel) -> Self {
        Self { name: "lhsshd", level, facility: AUTH, system: None }
    }

    /// To the system's log; to standard error while there is none.
    pub(crate) fn system(level: LogLevel) -> Self {
        Self { system: Syslog::open().ok(), ..Self::stderr(level) }
    }

    /// The same place for lines of another program's, which has a level of its own.
    pub(crate) fn of(&self, name: &'static str, level: LogLevel, facility: u8) -> Self {
        let system = self.system.as_ref().and_then(|system| system.try_clone().ok());
        Self { name, level, facility, system }
    }

    /// The same log at another level.
    pub(crate) fn at_level(&self, level: LogLevel) -> Self {
        self.of(self.name, level, self.facility)
    }

    /// Whether lines go to the system's log.
    pub(crate) fn is_system(&self) -> bool {
        self.system.is_some()
    }

    /// Something went wrong.
    pub(crate) fn error(&self, line: Arguments<'_>) {
        self.write(LogLevel::Error, line);
    }

    /// Logins and the like.
    pub(crate) fn info(&self, line: Arguments<'_>) {
        self.write(LogLevel::Info, line);
    }

    /// For developers.
    pub(crate) fn debug(&self, line: Arguments<'_>) {
        self.write(LogLevel::Debug1, line);
    }

    /// One line by one write. A log that cannot be written stops nobody.
    pub(crate) fn write(&self, level: LogLevel, line: Arguments<'_>) {
        if level > self.level {
            return;
        }
        let line = self.line(line);
        if !self.to_system(level, &line) {
            let _ = std::io::stderr().write_all(format!("{line}\n").as_bytes());
        }
    }

    fn line(&self, text: Arguments<'_>) -> String {
        format!(
            "{}[{}]: {}",
            self.name,
            std::process::id(),
            visible_within(&text.to_string(), MAX_LINE)
        )
    }

    /// Whether the system's log has it.
    fn to_system(&self, level: LogLevel, line: &str) -> bool {
        let priority = self.facility << 3 | severity(level);
        let send = |system: &Syslog| system.send(&format!("<{priority}>{line}"));
        self.system.as_ref().is_some_and(|system| send(system).is_ok())
    }
}

/// The severity of syslog(3).
fn severity(level: LogLevel) -> u8 {
    match level {
        LogLevel::Quiet | LogLevel::Fatal => 2,
        LogLevel::Error => 3,
        LogLevel::Info | LogLevel::Verbose => 6,
        LogLevel::Debug1 | LogLevel::Debug2 | LogLevel::Debug3 => 7,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixDatagram;

    /// One that does not leave at all is a login that nobody hears of.
    #[test]
    fn a_line_is_one_message_of_bounded_length_whatever_is_in_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let listener = UnixDatagram::bind(&path).unwrap();
        let log = Log { system: Syslog::at(&path).ok(), ..Log::stderr(LogLevel::Info) };
        let user = "\n\u{1b}\u{202e}x".repeat(100_000);
        log.info(format_args!("Failed none for {} from 192.0.2.1", name(&user)));
        log.info(format_args!("{user}"));
        let mut message = [0; 1 << 16];
        let mut receive = || {
            let length = listener.recv(&mut message).unwrap();
            String::from_utf8(message[..length].to_vec()).unwrap()
        };
        let named = receive();
        assert!(named.contains(r"]: Failed none for \n\u{1b}\u{202e}x\n"), "{named}");
        assert!(named.ends_with("... from 192.0.2.1") && named.len() < 200, "{named}");
        let long = receive();
        assert!(long.ends_with("...") && (1024..2048).contains(&long.len()), "{}", long.len());
        assert!(!long.contains(['\n', '\u{1b}', '\u{202e}']));
    }
}
