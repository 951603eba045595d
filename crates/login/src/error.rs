//! Why there is no logged-in connection: what, why, and what the user can do about it.

use std::io;
use std::time::Duration;
use wire::text::words;

/// Errors of connecting and logging in.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The name has no address.
    #[error("could not resolve hostname {host}: {}", words(why))]
    Resolve {
        /// The name.
        host: String,
        /// The resolver's words.
        why: io::Error,
    },
    /// No address answered.
    #[error("connect to host {host} port {port}: {}", words(why))]
    Connect {
        /// The name.
        host: String,
        /// The port.
        port: u16,
        /// What the last address gave.
        why: io::Error,
    },
    /// A socket option that the user asked for does not work here.
    #[error("{option}: {}", words(why))]
    Option {
        /// The keyword.
        option: &'static str,
        /// Why not.
        why: io::Error,
    },
    /// The ProxyCommand did not start.
    #[error("proxy command: {}", words(.0))]
    Proxy(io::Error),
    /// ProxyJump would lead nowhere.
    #[error("ProxyJump: {0}")]
    Jump(&'static str),
    /// No connection through a jump host, for a reason that the jump has told the user.
    #[error("{host}: no connection through {via}")]
    Via {
        /// The host that was to be reached.
        host: String,
        /// The jump host.
        via: String,
    },
    /// A file the user named cannot be read.
    #[error("{path}: {why}")]
    File {
        /// Its path.
        path: String,
        /// Why not.
        why: String,
    },
    /// The configuration is wrong.
    #[error(transparent)]
    Conf(#[from] conf::Error),
    /// The connection failed, or its peer misbehaved.
    #[error("{host}{}{why}", if host.is_empty() { "" } else { ": " })]
    Engine {
        /// The host, once known.
        host: String,
        /// What failed.
        why: engine::Error,
    },
    /// Keys were exchanged, and then the login took too long.
    #[error("{host}: no login within {} s", .limit.as_secs())]
    Late {
        /// The host.
        host: String,
        /// ConnectTimeout.
        limit: Duration,
    },
    /// Nobody needs it any more ([`CallOff`](crate::CallOff)).
    #[error("the login was called off")]
    CalledOff,
    /// The server knows none of our keys.
    #[error("{user}@{host}: permission denied ({methods})")]
    Denied {
        /// The user at the other end.
        user: String,
        /// The host.
        host: String,
        /// What the server would take.
        methods: String,
    },
}

impl From<engine::Error> for Error {
    fn from(why: engine::Error) -> Self {
        Self::Engine { host: String::new(), why }
    }
}

impl From<proto::Error> for Error {
    fn from(error: proto::Error) -> Self {
        match error {
            proto::Error::Auth(proto::auth::Failed::Denied { methods }) => {
                Self::Denied { user: String::new(), host: String::new(), methods }
            }
            other => engine::Error::from(other).into(),
        }
    }
}

impl Error {
    /// Fills in whom it was about.
    pub(crate) fn at(self, at_user: &str, at_host: &str) -> Self {
        match self {
            Self::Denied { methods, .. } => {
                Self::Denied { user: at_user.to_owned(), host: at_host.to_owned(), methods }
            }
            Self::Engine { why, .. } => Self::Engine { host: at_host.to_owned(), why },
            other => other,
        }
    }

    /// Whether the user knows why already: one line is enough.
    pub fn is_told(&self) -> bool {
        matches!(self, Self::Via { .. })
    }

    /// Whether the peer went away, for a reason that it may have told.
    pub(crate) fn is_by_leaving(&self) -> bool {
        use engine::Error::{Closed, Disconnected, Local};
        matches!(self, Self::Engine { why: Closed | Disconnected(..) | Local(..), .. })
    }

    /// Whether nothing came in time.
    pub(crate) fn is_timeout(&self) -> bool {
        matches!(self, Self::Engine { why: engine::Error::Timeout(_), .. })
    }

    /// Whether the connection ended, and the peer has not said why.
    pub(crate) fn is_by_silence(&self) -> bool {
        use engine::Error::{Closed, Local};
        matches!(self, Self::Engine { why: Closed | Local(..), .. })
    }

    /// What the user can do, if that is worth a line.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Denied { methods, .. } if !methods.split(',').any(|m| m == "publickey") => Some(
                "the server does not accept public keys, and lhssh offers nothing else yet".into(),
            ),
            Self::Denied { .. } => Some(
                "no key was accepted; see which were tried with -v, name one with -i, \
                 or append its .pub line to ~/.ssh/authorized_keys there"
                    .into(),
            ),
            Self::Connect { why, .. } if why.kind() == io::ErrorKind::TimedOut => {
                Some("raise it with -o ConnectTimeout=SECONDS".into())
            }
            Self::Late { .. } => Some("raise it with -o ConnectTimeout=SECONDS".into()),
            Self::Conf(error) => error.hint(),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::error::Error as _;

    /// Programs print an error with its sources: a source that the message has already would be
    /// said twice.
    #[test]
    fn nothing_is_said_twice() {
        let errors = [
            Error::from(engine::Error::Closed),
            Error::from(engine::Error::Local("read", io::ErrorKind::BrokenPipe.into())),
            Error::from(conf::Error::File("f".to_owned(), io::ErrorKind::NotFound.into())),
        ];
        for error in errors {
            assert!(error.source().is_none(), "{error}");
        }
    }
}
