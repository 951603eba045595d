//! The log: the system's, or standard error with `-e`.

use sftp::server::{Facility, Level, Options};
use std::fmt::Arguments;
use std::io::Write as _;
use std::os::unix::net::UnixDatagram;
use wire::text::visible_within;

/// Where syslogd or journald listens.
const SYSLOG: &str = "/dev/log";

/// Longest line, in bytes: a message that every receiver should take (RFC 5424 section 6.1), less
/// what stands in front of it.
const MAX_LINE: usize = 1900;

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
        let line = visible_within(&line.to_string(), MAX_LINE);
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
