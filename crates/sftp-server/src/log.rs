//! The log: the system's, or standard error with `-e`.

use sftp::server::{Facility, Level, Options};
use std::fmt::{Arguments, Write as _};
use std::io::Write as _;
use std::os::unix::net::UnixDatagram;

/// Where syslogd or journald listens.
const SYSLOG: &str = "/dev/log";

/// Where lines go.
pub(crate) enum Log {
    Stderr,
    System(UnixDatagram, Facility),
    /// There is no system log.
    Nowhere,
}

impl Log {
    /// What the command line asks for.
    pub(crate) fn open(options: &Options) -> Self {
        if options.log_to_stderr {
            return Self::Stderr;
        }
        let socket = UnixDatagram::unbound().and_then(|s| s.connect(SYSLOG).map(|()| s));
        socket.map_or(Self::Nowhere, |socket| Self::System(socket, options.facility))
    }
}

impl sftp::server::Log for Log {
    /// One line by one write. A log that cannot be written stops nobody.
    fn line(&self, level: Level, line: Arguments<'_>) {
        let line = visible(&line.to_string());
        let pid = std::process::id();
        match self {
            Self::Stderr => {
                let _ = std::io::stderr().write_all(format!("{line}\n").as_bytes());
            }
            Self::System(socket, facility) => {
                let priority = facility.0 << 3 | severity(level);
                let _ = socket.send(format!("<{priority}>lhsftp-server[{pid}]: {line}").as_bytes());
            }
            Self::Nowhere => {}
        }
    }
}

/// The severity of syslog(3).
fn severity(level: Level) -> u8 {
    match level {
        Level::Quiet | Level::Fatal => 2,
        Level::Error => 3,
        Level::Info | Level::Verbose => 6,
        Level::Debug => 7,
    }
}

/// Clients put what they like into names; a line stays one line.
fn visible(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() {
            let _ = write!(out, "{}", c.escape_default());
        } else {
            out.push(c);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_from_the_client_cannot_make_a_line_two() {
        assert_eq!(visible("a\nAccepted\u{1b}[1m ü"), "a\\nAccepted\\u{1b}[1m ü");
    }
}
