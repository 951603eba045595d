//! Places of the command line (ssh(1)), checked before anything is made of them. Called by the
//! client's `args`, and by `proxy` for the hosts on the way.

use crate::error::Error;
use crate::expand::{check_host, check_user};
use crate::field::Scalar;
use crate::line::Origin;

/// Destination of the command line: `[user@]host` or `ssh://[user@]host[:port]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Destination {
    /// The host, checked.
    pub host: String,
    /// The user, checked.
    pub user: Option<String>,
    /// The port of a URI.
    pub port: Option<u16>,
}

impl Destination {
    /// Takes it apart and checks its names.
    ///
    /// # Errors
    /// A malformed URI, or a name that is refused.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let parts = match text.strip_prefix("ssh://") {
            Some(uri) => Self::uri(uri).map_err(|why| wrong(text, &why))?,
            None => {
                let (user, host) = user_and(text);
                Self { host: host.to_owned(), user: user.map(str::to_owned), port: None }
            }
        };
        parts.check()?;
        Ok(parts)
    }

    /// A host on the way: `[user@]host[:port]`, or a URI.
    pub(super) fn hop(text: &str) -> Result<Self, String> {
        let parts = match text.strip_prefix("ssh://") {
            Some(uri) => Self::uri(uri)?,
            None => {
                let (user, address) = user_and(text);
                let (host, port) = host_and_port(address)?;
                Self { host, user: user.map(str::to_owned), port }
            }
        };
        parts.check().map_err(|error| error.to_string())?;
        Ok(parts)
    }

    pub(super) fn check(&self) -> Result<(), Error> {
        check_host(&self.host)?;
        self.user.as_deref().map_or(Ok(()), check_user)
    }

    fn uri(uri: &str) -> Result<Self, String> {
        let (user, address) = user_and(uri.strip_suffix('/').unwrap_or(uri));
        // RFC 3986 userinfo; ";fingerprint=..." of the expired draft is ignored by OpenSSH too.
        let user = user.map(|user| user.split(';').next().unwrap_or(user));
        let user = user.map(|user| decode(user).ok_or("bad user")).transpose()?;
        let (host, port) = host_and_port(address)?;
        Ok(Self { host, user, port })
    }
}

/// Where a forward leads: `host:port`, an IPv6 address in brackets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// The host, checked.
    pub host: String,
    /// The port.
    pub port: u16,
}

impl Endpoint {
    /// Takes it apart and checks the name.
    ///
    /// # Errors
    /// No port, or one that is none; a name that is refused.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let (host, port) = host_and_port(text).map_err(|why| wrong(text, &why))?;
        let port = port.ok_or_else(|| wrong(text, "no port"))?;
        check_host(&host)?;
        Ok(Self { host, port })
    }
}

fn wrong(text: &str, why: &str) -> Error {
    Error::Line(Origin::CommandLine, format!("'{text}': {why}"))
}

/// `[user@]` and the rest.
fn user_and(text: &str) -> (Option<&str>, &str) {
    text.rsplit_once('@').map_or((None, text), |(user, rest)| (Some(user), rest))
}

/// `host[:port]`, an IPv6 address in brackets.
fn host_and_port(text: &str) -> Result<(String, Option<u16>), String> {
    let (host, port) = match text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, "")) => (host, None),
        Some((host, tail)) => (host, Some(tail.strip_prefix(':').ok_or("no port")?)),
        None => text.split_once(':').map_or((text, None), |(host, port)| (host, Some(port))),
    };
    Ok((host.to_owned(), port.map(u16::read).transpose()?))
}

/// Percent-decoding (RFC 3986 section 2.1).
fn decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let digit = |b: Option<u8>| char::from(b?).to_digit(16);
                u8::try_from(digit(rest.next())? * 16 + digit(rest.next())?).ok()?
            }
            byte => byte,
        });
    }
    String::from_utf8(bytes).ok()
}
