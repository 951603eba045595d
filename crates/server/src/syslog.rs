//! The system's log: a socket on which syslogd or journald listens, as syslog(3) uses it.

use std::io::{self, ErrorKind};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};

/// Where it listens.
const PATH: &str = "/dev/log";

/// The way to the system's log. Connected when it is needed, and again when whoever listened was
/// restarted.
#[derive(Debug)]
pub(crate) struct Syslog {
    socket: UnixDatagram,
    path: PathBuf,
}

impl Syslog {
    /// This system's.
    pub(crate) fn open() -> io::Result<Self> {
        Self::at(Path::new(PATH))
    }

    /// One that listens elsewhere.
    pub(crate) fn at(path: &Path) -> io::Result<Self> {
        Ok(Self { socket: UnixDatagram::unbound()?, path: path.to_owned() })
    }

    /// The same connection once more.
    pub(crate) fn try_clone(&self) -> io::Result<Self> {
        Ok(Self { socket: self.socket.try_clone()?, path: self.path.clone() })
    }

    /// One message, priority and all.
    pub(crate) fn send(&self, message: &str) -> io::Result<()> {
        match self.socket.send(message.as_bytes()) {
            Err(error) if nobody_listens(&error) => {
                self.socket.connect(&self.path)?;
                self.socket.send(message.as_bytes()).map(drop)
            }
            sent => sent.map(drop),
        }
    }
}

/// Not yet, or not any more.
fn nobody_listens(error: &io::Error) -> bool {
    use ErrorKind::{ConnectionRefused, ConnectionReset, NotConnected, NotFound};
    matches!(error.kind(), NotConnected | ConnectionRefused | ConnectionReset | NotFound)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_that_was_restarted_is_found_again() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let syslog = Syslog::at(&path).unwrap();
        assert!(syslog.send("too early").is_err());
        for text in ["one", "two"] {
            let listener = UnixDatagram::bind(&path).unwrap();
            syslog.send(text).unwrap();
            let mut message = [0; 16];
            let length = listener.recv(&mut message).unwrap();
            assert_eq!(&message[..length], text.as_bytes());
            std::fs::remove_file(&path).unwrap();
        }
    }
}
