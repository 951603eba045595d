//! The identification lines (RFC 4253 section 4.2) and their limits (B8).
//!
//! The caller keeps what it received so far and asks [`find`] after each read; the deadline is
//! its own.

use crate::{Misbehaved, Role};

/// Longest line with its end (RFC 4253 section 4.2: "MUST NOT exceed 255 characters").
const MAX_LINE: usize = 255;
/// Most bytes that a server may send before its identification.
pub const MAX_BEFORE: usize = 8 * 1024;
/// Most lines that a server may send before its identification.
const MAX_LINES_BEFORE: usize = 64;

/// A validated identification line, without its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ident(String);

impl Ident {
    /// Ours.
    pub fn ours() -> Self {
        Self(concat!("SSH-2.0-longhaul_", env!("CARGO_PKG_VERSION")).to_owned())
    }

    /// Ours, to be taken for OpenSSH's by whoever looks at how it begins: some clients do more, and
    /// do it OpenSSH's way, with servers of that name only. [`crate::Peer`] knows us by the rest.
    pub fn ours_as_openssh() -> Self {
        Self(concat!("SSH-2.0-OpenSSH_9.2 longhaul_", env!("CARGO_PKG_VERSION")).to_owned())
    }

    /// Checks one line without its end, as sent by a `sender`.
    pub fn parse(sender: Role, line: &[u8]) -> Result<Self, Misbehaved> {
        let printable = line.iter().all(|b| b.is_ascii_graphic() || *b == b' ');
        let text = std::str::from_utf8(line).ok().filter(|_| printable);
        let text = text.ok_or(Misbehaved::Identification("not printable US-ASCII"))?;
        // RFC 4253 section 5.1: clients "MUST be able to identify" 1.99 as 2.0.
        let old = text.strip_prefix("SSH-1.99-").filter(|_| sender == Role::Server);
        match text.strip_prefix("SSH-2.0-").or(old) {
            Some(software) if !software.is_empty() => Ok(Self(text.to_owned())),
            Some(_) => Err(Misbehaved::Identification("no software version")),
            None => Err(Misbehaved::Identification("not SSH-2")),
        }
    }

    /// The line, as it enters the exchange hash.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The line with its end, as it is sent.
    pub fn to_wire(&self) -> Vec<u8> {
        [self.0.as_bytes(), b"\r\n"].concat()
    }

    /// Software version and comment.
    pub fn software(&self) -> &str {
        self.0.splitn(3, '-').nth(2).unwrap_or_default()
    }
}

/// An identification in what was received.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The peer's identification.
    pub ident: Ident,
    /// How many of the bytes it took, lines before it included; packets follow.
    pub consumed: usize,
}

/// Looks for the identification of the `sender` in all bytes received so far; `None` as long as
/// it is not complete.
pub fn find(sender: Role, received: &[u8]) -> Result<Option<Found>, Misbehaved> {
    let mut before = 0;
    for (count, line) in received.split_inclusive(|b| *b == b'\n').enumerate() {
        let ident = line.starts_with(b"SSH-");
        check_limits(sender, ident, count, before, line)?;
        let Some(text) = line.strip_suffix(b"\n") else { return Ok(None) };
        before += line.len();
        if ident {
            // RFC 4253 section 4.2: some implementations end the line with LF alone.
            let text = text.strip_suffix(b"\r").unwrap_or(text);
            return Ok(Some(Found { ident: Ident::parse(sender, text)?, consumed: before }));
        }
    }
    Ok(None)
}

/// RFC 4253 section 4.2: a server "MAY send other lines of data before sending the version
/// string"; a client may not. A line that is not complete yet counts as far as it goes.
fn check_limits(
    sender: Role,
    ident: bool,
    count: usize,
    before: usize,
    line: &[u8],
) -> Result<(), Misbehaved> {
    let may_become_ident = ident || b"SSH-".starts_with(line);
    if ident && line.len() > MAX_LINE {
        return Err(Misbehaved::Identification("longer than 255 bytes"));
    }
    if may_become_ident {
        return Ok(());
    }
    match sender {
        Role::Client => Err(Misbehaved::Identification("not SSH")),
        Role::Server if count >= MAX_LINES_BEFORE || before + line.len() > MAX_BEFORE => {
            Err(Misbehaved::Identification("too much text before it"))
        }
        Role::Server => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(sender: Role, bytes: &[u8]) -> Option<(String, usize)> {
        let found = find(sender, bytes).unwrap()?;
        Some((found.ident.as_str().to_owned(), found.consumed))
    }

    #[test]
    fn a_line_is_found_with_either_end_and_what_follows_is_left() {
        for (bytes, len) in [(&b"SSH-2.0-x y\r\n\0\0"[..], 13), (b"SSH-2.0-x y\nrest", 12)] {
            assert_eq!(found(Role::Client, bytes), Some(("SSH-2.0-x y".to_owned(), len)));
        }
        assert_eq!(Ident::ours().to_wire(), b"SSH-2.0-longhaul_0.1.0\r\n");
    }

    #[test]
    fn every_prefix_of_a_good_line_asks_for_more() {
        let line = b"hello\r\nSSH-1.99-OpenSSH_3.4\r\n";
        for cut in 0..line.len() {
            assert_eq!(find(Role::Server, &line[..cut]), Ok(None), "{cut}");
        }
        assert!(found(Role::Server, line).is_some());
    }

    /// B8: at most 255 bytes with the line end.
    #[test]
    fn an_identification_over_255_bytes_is_refused() {
        let line = |n: usize| [b"SSH-2.0-".to_vec(), vec![b'x'; n - 10], b"\r\n".to_vec()].concat();
        assert!(found(Role::Client, &line(255)).is_some());
        assert!(find(Role::Client, &line(256)).is_err());
        assert!(find(Role::Client, &line(300)[..256]).is_err(), "without waiting for its end");
    }

    /// B8: no line before a client's identification.
    #[test]
    fn a_client_may_not_send_lines_before() {
        assert!(find(Role::Client, b"GET / HTTP/1.1\r\n").is_err());
        assert!(find(Role::Client, b"X").is_err());
        assert_eq!(find(Role::Client, b"SS"), Ok(None));
    }

    /// B8: bounded lines before a server's.
    #[test]
    fn a_server_may_send_a_bounded_banner() {
        let ok = [b"hi\n".repeat(MAX_LINES_BEFORE), b"SSH-2.0-x\r\n".to_vec()].concat();
        assert!(found(Role::Server, &ok).is_some());
        assert!(find(Role::Server, &b"hi\n".repeat(MAX_LINES_BEFORE + 1)).is_err());
        assert!(find(Role::Server, &vec![b'x'; MAX_BEFORE + 1]).is_err());
    }

    #[test]
    fn other_versions_and_controls_are_refused() {
        for bad in [&b"SSH-1.5-x"[..], b"SSH-2.0-", b"SSH-2.0-a\0b", b"SSH-2.0-\xff", b"SSH-3"] {
            assert!(Ident::parse(Role::Server, bad).is_err(), "{bad:?}");
        }
        assert!(Ident::parse(Role::Client, b"SSH-1.99-x").is_err());
    }
}
