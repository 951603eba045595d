//! Destination of the command line (ssh(1)), checked before anything is made of it. Called by the
//! client's `args`.

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
            Some(uri) => Self::uri(uri)?,
            None => {
                let (user, host) = match text.rsplit_once('@') {
                    Some((user, host)) => (Some(user.to_owned()), host),
                    None => (None, text),
                };
                Self { host: host.to_owned(), user, port: None }
            }
        };
        check_host(&parts.host)?;
        parts.user.as_deref().map_or(Ok(()), check_user)?;
        Ok(parts)
    }

    fn uri(uri: &str) -> Result<Self, Error> {
        let wrong = |why: &str| Error::Line(Origin::CommandLine, format!("'ssh://{uri}': {why}"));
        let authority = uri.strip_suffix('/').unwrap_or(uri);
        let (user, address) = match authority.rsplit_once('@') {
            // RFC 3986 userinfo; ";fingerprint=..." of the expired draft is ignored by OpenSSH too.
            Some((user, address)) => (Some(user.split(';').next().unwrap_or(user)), address),
            None => (None, authority),
        };
        let (host, port) = match address.strip_prefix('[').and_then(|a| a.split_once(']')) {
            Some((host, "")) => (host, None),
            Some((host, tail)) => {
                (host, Some(tail.strip_prefix(':').ok_or_else(|| wrong("no port"))?))
            }
            None => address.split_once(':').map_or((address, None), |(h, p)| (h, Some(p))),
        };
        let user = user.map(|user| decode(user).ok_or_else(|| wrong("bad user"))).transpose()?;
        let port = port.map(u16::read).transpose();
        Ok(Self { host: host.to_owned(), user, port: port.map_err(|why| wrong(&why))? })
    }
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
