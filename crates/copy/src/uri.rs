//! Operands of the command line: `[user@]host:path`, `scp://` and `sftp://` URIs (RFC 3986,
//! draft-ietf-secsh-scp-sftp-ssh-uri), or a path of this host. Names are checked here, before
//! anything is made of them (invariant E1).

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// One operand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Operand {
    /// A path of this host.
    Local(PathBuf),
    /// A path of another host.
    Remote {
        /// The user, the host and the port, where they were given.
        address: Address,
        /// Any bytes; empty is the directory in which the server starts.
        path: Vec<u8>,
    },
}

/// Which host, checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Address {
    pub(crate) user: Option<String>,
    pub(crate) host: String,
    pub(crate) port: Option<u16>,
}

impl Address {
    /// `user@host`, as messages call it.
    pub(crate) fn name(&self) -> String {
        let user = self.user.as_ref().map(|user| format!("{user}@")).unwrap_or_default();
        format!("{user}{}", self.host)
    }

    fn checked(user: Option<&[u8]>, host: &[u8], port: Option<u16>) -> Result<Self, String> {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (user, host) = (user.map(text), text(host));
        conf::check_host(&host).map_err(|error| error.to_string())?;
        user.as_deref().map_or(Ok(()), conf::check_user).map_err(|error| error.to_string())?;
        Ok(Self { user, host, port })
    }
}

impl Operand {
    /// Takes an operand apart.
    pub(crate) fn parse(operand: &OsStr) -> Result<Self, String> {
        let bytes = operand.as_bytes();
        for scheme in ["scp://", "sftp://"] {
            if let Some(rest) = bytes.strip_prefix(scheme.as_bytes()) {
                let wrong = |why: String| format!("{}: {why}", copy::shown(bytes));
                return uri(rest).map_err(wrong);
            }
        }
        match colon(bytes) {
            _ if bytes.is_empty() => Err("an operand is empty".to_owned()),
            _ if bytes.contains(&0) => Err("an operand holds NUL".to_owned()),
            None => Ok(Self::Local(PathBuf::from(operand))),
            Some((place, path)) => {
                let at = place.iter().rposition(|&byte| byte == b'@');
                let (user, host) = cut(place, at).map_or((None, place), |(u, h)| (Some(u), h));
                let address = Address::checked(user, unbracketed(host), None)?;
                Ok(Self::Remote { address, path: path.to_vec() })
            }
        }
    }
}

/// Splits at the colon that ends a host: the first one, before any `/`, outside `[]`, and not the
/// first byte; as scp does. Without one, the operand is a local path.
fn colon(operand: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut brackets = operand.starts_with(b"[");
    let mut last = b'/';
    for (at, &byte) in operand.iter().enumerate() {
        brackets |= last == b'@' && byte == b'[';
        match byte {
            b'/' => return None,
            b':' if at == 0 => return None,
            b':' if !brackets || last == b']' => return cut(operand, Some(at)),
            _ => last = byte,
        }
    }
    None
}

/// What stands before and after the byte at this place.
fn cut(bytes: &[u8], at: Option<usize>) -> Option<(&[u8], &[u8])> {
    let (before, after) = bytes.split_at_checked(at?)?;
    Some((before, after.split_first()?.1))
}

fn unbracketed(host: &[u8]) -> &[u8] {
    host.strip_prefix(b"[").and_then(|host| host.strip_suffix(b"]")).unwrap_or(host)
}

/// `[user[;parameters]@]host[:port][/path]`; the path is relative to where the server starts, so
/// an absolute one begins with `//`, as with scp(1).
fn uri(rest: &[u8]) -> Result<Operand, String> {
    let slash = rest.iter().position(|&byte| byte == b'/');
    let (authority, path) = cut(rest, slash).unwrap_or((rest, b""));
    let at = authority.iter().position(|&byte| byte == b'@');
    let (user, address) = cut(authority, at).map_or((None, authority), |(u, a)| (Some(u), a));
    let (host, port) = host_and_port(address)?;
    let user = user.map(uri_user).transpose()?;
    let address = Address::checked(user.as_deref(), &decode(host)?, port)?;
    let path = decode(path)?;
    match path.contains(&0) {
        true => Err("the path holds NUL".to_owned()),
        false => Ok(Operand::Remote { address, path }),
    }
}

/// The user of a URI, its `;parameters` left out; OpenSSH ignores them too.
fn uri_user(user: &[u8]) -> Result<Vec<u8>, String> {
    let name = user.split(|&byte| byte == b';').next().unwrap_or_default();
    match name.contains(&b':') {
        true => Err("a password does not belong into a URI: others can see it".to_owned()),
        false => decode(name),
    }
}

fn host_and_port(address: &[u8]) -> Result<(&[u8], Option<u16>), String> {
    let (host, port) = match address.iter().position(|&byte| byte == b']') {
        Some(end) if address.starts_with(b"[") => {
            let (host, port) = address.split_at_checked(end + 1).unwrap_or((address, b""));
            (unbracketed(host), port)
        }
        _ => {
            let colon = address.iter().position(|&byte| byte == b':');
            address.split_at_checked(colon.unwrap_or(address.len())).unwrap_or((address, b""))
        }
    };
    match port {
        b"" => Ok((host, None)),
        port => Ok((host, Some(self::port(port)?))),
    }
}

fn port(text: &[u8]) -> Result<u16, String> {
    let number = text.strip_prefix(b":").and_then(|text| std::str::from_utf8(text).ok());
    let digits = number.filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
    let port = digits.and_then(|text| text.parse().ok()).filter(|&port| port != 0);
    port.ok_or_else(|| format!("'{}' is not a port", copy::shown(text)))
}

/// Percent-decoding (RFC 3986 section 2.1).
fn decode(text: &[u8]) -> Result<Vec<u8>, String> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.iter().copied();
    let wrong = || "a '%' is not followed by two hexadecimal digits".to_owned();
    while let Some(byte) = rest.next() {
        let mut digit = || char::from(rest.next()?).to_digit(16);
        out.push(match byte {
            b'%' => {
                let (high, low) = digit().zip(digit()).ok_or_else(wrong)?;
                u8::try_from(high * 16 + low).map_err(|_| wrong())?
            }
            byte => byte,
        });
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse(text: &str) -> Result<Operand, String> {
        Operand::parse(OsStr::new(text))
    }

    fn local(text: &str) -> bool {
        matches!(parse(text), Ok(Operand::Local(path)) if path == OsStr::new(text))
    }

    /// User, host, port and path, `-` for what is not there.
    fn remote(text: &str) -> String {
        let Operand::Remote { address, path } = parse(text).unwrap() else { panic!("{text}") };
        let user = address.user.unwrap_or("-".to_owned());
        let port = address.port.map_or("-".to_owned(), |port| port.to_string());
        format!("{user} {} {port} {}", address.host, String::from_utf8(path).unwrap())
    }

    #[test]
    fn a_colon_makes_a_host_only_before_a_slash() {
        for text in ["file", "./a:b", "/a:b", "dir/a:b", ":a", "a", ".", "~/x", "[::1]", "[a]/b:c"]
        {
            assert!(local(text), "{text}");
        }
        let cases = [
            ("host:", "- host - "),
            ("host:file", "- host - file"),
            ("host:/a:b", "- host - /a:b"),
            ("me@host:a@b:c", "me host - a@b:c"),
            ("a@b@host:x", "a@b host - x"),
            ("[::1]:x", "- ::1 - x"),
            ("me@[fe80::1%eth0]:x", "me fe80::1%eth0 - x"),
            ("::x", "local"),
            ("host:a b", "- host - a b"),
            ("host:~/x", "- host - ~/x"),
        ];
        for (text, want) in cases {
            match want {
                "local" => assert!(local(text), "{text}"),
                want => assert_eq!(remote(text), want, "{text}"),
            }
        }
    }

    #[test]
    fn uris_are_taken_apart_and_decoded() {
        let cases = [
            ("scp://host", "- host - "),
            ("scp://host/", "- host - "),
            ("scp://host/a/b", "- host - a/b"),
            ("scp://host//a/b", "- host - /a/b"),
            ("sftp://me@host:2222/a%20b", "me host 2222 a b"),
            ("scp://me;fingerprint=x@host/", "me host - "),
            ("scp://me%2Btag@host/", "me+tag host - "),
            ("scp://[::1]:22/x", "- ::1 22 x"),
            ("scp://[::1]/x", "- ::1 - x"),
            ("scp://host/%2e%2e/x:y", "- host - ../x:y"),
        ];
        for (text, want) in cases {
            assert_eq!(remote(text), want, "{text}");
        }
        let Ok(Operand::Remote { path, .. }) = parse("scp://h/%ff%0a") else { panic!() };
        assert_eq!(path, b"\xff\n");
    }

    #[test]
    fn paths_are_bytes() {
        let operand = OsStr::from_bytes(b"h:\xff\n");
        let Operand::Remote { path, .. } = Operand::parse(operand).unwrap() else { panic!() };
        assert_eq!(path, b"\xff\n");
    }

    #[test]
    fn e1_names_that_a_shell_or_a_program_could_misread_are_refused() {
        let cases = [
            ("-oProxyCommand=x:y", "starts with '-'"),
            ("-x@host:y", "starts with '-'"),
            ("$(x):y", "shell"),
            ("a`b`@host:y", "shell"),
            ("a b:y", "blanks"),
            ("a\nb:y", "control"),
            ("@host:y", "user \"\" is refused"),
            ("scp://-x/", "starts with '-'"),
            ("scp://%2dx/", "starts with '-'"),
            ("scp://a%0ab/", "control"),
            ("scp://me%20@h/", "blanks"),
            ("scp://", "host \"\" is refused"),
            ("scp:///x", "host \"\" is refused"),
            ("scp://h:0/", "':0' is not a port"),
            ("scp://h:+22/", "':+22' is not a port"),
            ("scp://h:/", "':' is not a port"),
            ("scp://h:70000/", "is not a port"),
            ("scp://[::1]x/", "'x' is not a port"),
            ("scp://me:secret@h/", "a password does not belong"),
            ("scp://h/%4", "'%' is not followed"),
            ("scp://h/%zz", "'%' is not followed"),
            ("scp://h/%00", "NUL"),
            ("", "empty"),
        ];
        for (text, want) in cases {
            let why = parse(text).expect_err(text);
            assert!(why.contains(want), "{text}: {why}");
        }
    }

    proptest! {
        #[test]
        fn no_operand_panics(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            _ = Operand::parse(OsStr::from_bytes(&bytes));
            let uri = [b"scp://", bytes.as_slice()].concat();
            _ = Operand::parse(OsStr::from_bytes(&uri));
        }
    }
}
