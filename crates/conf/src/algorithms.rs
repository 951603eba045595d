//! Algorithm lists (ssh_config(5), Ciphers): what is supported comes from the program; a list
//! replaces it, or appends (`+`), removes (`-`) or moves to the front (`^`).

use crate::field::{Field, Input};
use crate::pattern::Match;
use crate::pattern::match_all;

/// Which list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Ciphers.
    Cipher,
    /// Message authentication codes.
    Mac,
    /// Key exchange methods.
    Kex,
    /// Signature algorithms of host keys.
    HostKey,
    /// Signature algorithms of users' keys.
    UserKey,
}

/// What the program can do, each list in its default order of preference.
#[derive(Debug, Clone, Default)]
pub struct Supported {
    /// Ciphers.
    pub ciphers: Vec<&'static str>,
    /// Message authentication codes.
    pub macs: Vec<&'static str>,
    /// Key exchange methods.
    pub kex: Vec<&'static str>,
    /// Signature algorithms, for host keys and users' keys alike.
    pub signatures: Vec<&'static str>,
}

impl Supported {
    fn of(&self, kind: Kind) -> &[&'static str] {
        match kind {
            Kind::Cipher => &self.ciphers,
            Kind::Mac => &self.macs,
            Kind::Kex => &self.kex,
            Kind::HostKey | Kind::UserKey => &self.signatures,
        }
    }
}

/// Names that OpenSSH knows. In a list those this program has not are passed over, so that lists
/// written for OpenSSH still load; what is left is a subset of what the user allowed.
static OPENSSH: &[&str] = &[
    "aes128-gcm@openssh.com",
    "aes256-gcm@openssh.com",
    "chacha20-poly1305@openssh.com",
    "aes128-ctr",
    "aes192-ctr",
    "aes256-ctr",
    "3des-cbc",
    "aes128-cbc",
    "aes192-cbc",
    "aes256-cbc",
    "rijndael-cbc@lysator.liu.se",
    "hmac-sha2-256",
    "hmac-sha2-512",
    "hmac-sha2-256-etm@openssh.com",
    "hmac-sha2-512-etm@openssh.com",
    "hmac-sha1",
    "hmac-sha1-96",
    "hmac-sha1-etm@openssh.com",
    "hmac-sha1-96-etm@openssh.com",
    "hmac-md5",
    "hmac-md5-96",
    "hmac-md5-etm@openssh.com",
    "hmac-md5-96-etm@openssh.com",
    "umac-64@openssh.com",
    "umac-128@openssh.com",
    "umac-64-etm@openssh.com",
    "umac-128-etm@openssh.com",
    "mlkem768x25519-sha256",
    "sntrup761x25519-sha512",
    "sntrup761x25519-sha512@openssh.com",
    "curve25519-sha256",
    "curve25519-sha256@libssh.org",
    "ecdh-sha2-nistp256",
    "ecdh-sha2-nistp384",
    "ecdh-sha2-nistp521",
    "diffie-hellman-group14-sha256",
    "diffie-hellman-group16-sha512",
    "diffie-hellman-group1-sha1",
    "diffie-hellman-group14-sha1",
    "diffie-hellman-group18-sha512",
    "diffie-hellman-group-exchange-sha1",
    "diffie-hellman-group-exchange-sha256",
    "ssh-ed25519",
    "ecdsa-sha2-nistp256",
    "ecdsa-sha2-nistp384",
    "ecdsa-sha2-nistp521",
    "rsa-sha2-256",
    "rsa-sha2-512",
    "ssh-dss",
    "ssh-dss-cert-v01@openssh.com",
    "ssh-rsa",
    "ssh-rsa-cert-v01@openssh.com",
    "rsa-sha2-256-cert-v01@openssh.com",
    "rsa-sha2-512-cert-v01@openssh.com",
    "ssh-ed25519-cert-v01@openssh.com",
    "ecdsa-sha2-nistp256-cert-v01@openssh.com",
    "ecdsa-sha2-nistp384-cert-v01@openssh.com",
    "ecdsa-sha2-nistp521-cert-v01@openssh.com",
    "sk-ssh-ed25519@openssh.com",
    "sk-ssh-ed25519-cert-v01@openssh.com",
    "sk-ecdsa-sha2-nistp256@openssh.com",
    "sk-ecdsa-sha2-nistp256-cert-v01@openssh.com",
    "webauthn-sk-ecdsa-sha2-nistp256@openssh.com",
];

/// A resolved list: supported names only, most preferred first, never empty where it counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AlgorithmList {
    kind: Kind,
    names: Vec<&'static str>,
    given: bool,
}

impl AlgorithmList {
    pub(crate) fn new(kind: Kind, supported: &Supported) -> Self {
        Self { kind, names: supported.of(kind).to_vec(), given: false }
    }

    /// The names, most preferred first.
    #[must_use]
    pub fn names(&self) -> &[&'static str] {
        &self.names
    }

    /// Whether the user asked for this list in this order, so that it is to be left alone: not by
    /// adding to the default or taking from it (`+`, `-`).
    #[must_use]
    pub fn is_given(&self) -> bool {
        self.given
    }
}

impl Field for AlgorithmList {
    fn set(&mut self, input: &Input<'_>) -> Result<(), String> {
        let text = input.one()?;
        self.names = resolve(text, input.supported.of(self.kind))?;
        self.given = !text.starts_with(['+', '-']);
        Ok(())
    }

    fn refusal(&self) -> Option<String> {
        self.names.is_empty().then(|| "no supported algorithm is left".to_owned())
    }

    fn show(&self) -> Vec<String> {
        vec![self.names.join(",")]
    }

    fn syntax(&self) -> &'static str {
        "[+-^]name,..."
    }
}

/// Applies a list as the user wrote it to what is supported.
fn resolve(text: &str, supported: &[&'static str]) -> Result<Vec<&'static str>, String> {
    let (operator, list) = match text.as_bytes().first() {
        Some(b'+' | b'-' | b'^') => text.split_at(1),
        _ => ("", text),
    };
    let patterns: Vec<&str> = list.split(',').collect();
    if operator != "-" {
        check_names(&patterns, supported)?;
    }
    let (named, others) = partition(&patterns, supported);
    Ok(match operator {
        "-" => others,
        "^" => [named, others].concat(),
        "+" => supported.to_vec(), // the default list is everything there is
        _ => named,
    })
}

/// A name that nobody knows is a typing error, and an error.
fn check_names(patterns: &[&str], supported: &[&str]) -> Result<(), String> {
    let known = |pattern: &str| {
        let names = || supported.iter().chain(OPENSSH);
        names().any(|name| match_all(name, [pattern]) == Match::Yes)
    };
    match patterns.iter().find(|pattern| !known(pattern)) {
        Some(name) => Err(format!("unknown algorithm '{name}'")),
        None => Ok(()),
    }
}

/// The supported names that the patterns take, in the patterns' order, and the other ones.
fn partition(patterns: &[&str], all: &[&'static str]) -> (Vec<&'static str>, Vec<&'static str>) {
    let mut named: Vec<&'static str> = Vec::new();
    for pattern in patterns {
        for name in all.iter().filter(|name| match_all(name, [*pattern]) == Match::Yes) {
            if !named.contains(name) {
                named.push(name);
            }
        }
    }
    let others = all.iter().copied().filter(|name| !named.contains(name)).collect();
    (named, others)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: &[&str] = &["a-gcm", "b-gcm", "c-ctr"];

    #[test]
    fn a_list_replaces_appends_removes_or_leads() {
        let cases: [(&str, &[&str]); 8] = [
            ("c-ctr,a-gcm", &["c-ctr", "a-gcm"]),
            ("c-ctr,c-ctr", &["c-ctr"]),
            ("*-gcm", &["a-gcm", "b-gcm"]),
            ("+aes128-cbc", &["a-gcm", "b-gcm", "c-ctr"]),
            ("-*-gcm", &["c-ctr"]),
            ("-nothing", &["a-gcm", "b-gcm", "c-ctr"]),
            ("^c-ctr", &["c-ctr", "a-gcm", "b-gcm"]),
            ("aes128-cbc,b-gcm", &["b-gcm"]),
        ];
        for (text, want) in cases {
            assert_eq!(resolve(text, ALL).unwrap(), want, "{text}");
        }
    }

    #[test]
    fn every_name_of_ssh_is_known() {
        if !need::require(&["ssh"]) {
            return;
        }
        for query in ["cipher", "mac", "kex", "key", "sig"] {
            let output = std::process::Command::new("ssh").args(["-Q", query]).output().unwrap();
            assert!(output.status.success(), "ssh -Q {query}");
            let text = String::from_utf8(output.stdout).unwrap();
            text.lines().for_each(|name| assert!(OPENSSH.contains(&name), "{name}"));
        }
    }

    #[test]
    fn typing_errors_are_errors() {
        for text in ["", "a-gmc", "+a-gmc", "a-gcm,,b-gcm", "+"] {
            assert!(resolve(text, ALL).is_err(), "{text}");
        }
    }

    #[test]
    fn nothing_left_is_refused_and_only_a_whole_list_has_an_order() {
        let supported = Supported { ciphers: ALL.to_vec(), ..Supported::default() };
        for (text, usable, given) in [
            ("-*", false, false),
            ("aes128-cbc", false, true),
            ("c-ctr", true, true),
            ("^c-ctr", true, true),
            ("+c-ctr", true, false),
            ("-c-ctr", true, false),
        ] {
            let mut list = AlgorithmList::new(Kind::Cipher, &supported);
            list.set(&Input { args: &[text.to_owned()], supported: &supported }).unwrap();
            assert_eq!((list.refusal().is_none(), list.is_given()), (usable, given), "{text}");
        }
    }
}
