//! Authentication (RFC 4252): between the first key exchange and the connection protocol.
//!
//! ```text
//! msg      requests and replies, and the bytes that a key signs
//! client   service request and a signed request at once; the next key on each refusal
//! server   one decision per request, by a policy
//! ```
//!
//! Both machines own the transport while they run and end in an [`Authenticated`], which nothing
//! else can make.

pub mod client;
mod msg;
pub mod server;
#[cfg(test)]
mod tests;

pub use client::{Client, Credentials, Signer};
pub use server::{Decision, Policy, Server};

use crate::Transport;
use crate::channel::Ahead;
use std::fmt;
use wire::msg::Disconnect;

/// The only service that is asked for and offered after login.
const CONNECTION: &str = "ssh-connection";
/// The service that authentication itself is (RFC 4252 section 4).
const USERAUTH: &str = "ssh-userauth";

/// Why a login failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Failed {
    /// Client: nothing is left to try.
    #[error("permission denied ({methods})")]
    Denied {
        /// The methods that the server would go on with.
        methods: String,
    },
    /// Server: more requests than allowed (A10).
    #[error("too many authentication failures")]
    TooMany,
    /// Server: another user or service than in the first request (A5).
    #[error("change of user or service is not allowed")]
    Changed,
    /// Server: a service that there is not.
    #[error("service not available: {0:?}")]
    Service(String),
}

impl Failed {
    /// The reason code that the peer is told.
    pub(crate) fn disconnect_code(&self) -> Disconnect {
        match self {
            Self::Denied { .. } | Self::TooMany => Disconnect::NoMoreAuthMethods,
            Self::Changed => Disconnect::ProtocolError,
            Self::Service(_) => Disconnect::ServiceNotAvailable,
        }
    }
}

/// How a login succeeded, for the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Login {
    /// The user's name as the client gave it.
    pub user: String,
    /// `publickey` or `none`.
    pub method: &'static str,
    /// The key's fingerprint, where a key did it.
    pub key: Option<String>,
}

impl fmt::Display for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} by {}", self.user, self.method)?;
        self.key.iter().try_for_each(|key| write!(f, " {key}"))
    }
}

/// Proof that a login succeeded; owns the transport. The connection protocol starts from here and
/// from nowhere else (invariant A2).
///
/// ```compile_fail
/// fn forge(transport: proto::Transport) -> proto::auth::Authenticated {
///     let login = proto::auth::Login { user: "root".into(), method: "none", key: None };
///     proto::auth::Authenticated { transport, login, permissions: (), ahead: None }
/// }
/// ```
/// ```compile_fail
/// fn skip(transport: proto::Transport) -> proto::Connection {
///     proto::Connection::new(transport, proto::channel::Limits::client())
/// }
/// ```
pub struct Authenticated<P = ()> {
    transport: Transport,
    login: Login,
    permissions: P,
    /// Client: what left with the request that succeeded.
    ahead: Option<Ahead>,
}

impl<P> Authenticated<P> {
    /// Who, and by which method.
    pub fn login(&self) -> &Login {
        &self.login
    }

    /// The transport, to look at.
    pub fn transport(&self) -> &Transport {
        &self.transport
    }

    /// What the policy said of the key whose signature completed the login (A4), apart from the
    /// proof itself.
    pub fn split(self) -> (Authenticated, P) {
        let Self { transport, login, permissions, ahead } = self;
        (Authenticated { transport, login, permissions: (), ahead }, permissions)
    }
}

impl Authenticated {
    /// Client: whether the first channel was asked for together with the login
    /// ([`Client::ask_ahead`]).
    pub fn has_asked_ahead(&self) -> bool {
        self.ahead.is_some()
    }

    pub(crate) fn into_parts(self) -> (Transport, Option<Ahead>) {
        (self.transport, self.ahead)
    }
}

/// What became of a message.
#[allow(clippy::large_enum_variant, reason = "both own a transport and are consumed at once")]
pub enum Step<M, P = ()> {
    /// The login goes on.
    Pending(M),
    /// The user is known; carry out the outbox, then go on.
    Done(Authenticated<P>),
}
