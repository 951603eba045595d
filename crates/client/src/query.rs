//! `-Q`: which algorithms this program has.

use conf::Supported;
use conf::flags::Refused;
use crypt::cipher::Cipher;

/// What `-Q` can list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Query {
    Cipher,
    CipherAuth,
    Mac,
    Kex,
    Key,
    Sig,
    Protocol,
    Compression,
    Empty,
    Help,
}

impl Query {
    /// Names of ssh(1), keywords that take such a list among them.
    const NAMES: &[(&str, Self)] = &[
        ("cipher", Self::Cipher),
        ("cipher-auth", Self::CipherAuth),
        ("compression", Self::Compression),
        ("help", Self::Help),
        ("kex", Self::Kex),
        ("key", Self::Key),
        ("key-cert", Self::Empty),
        ("key-plain", Self::Key),
        ("key-sig", Self::Sig),
        ("mac", Self::Mac),
        ("protocol-version", Self::Protocol),
        ("sig", Self::Sig),
        ("Ciphers", Self::Cipher),
        ("MACs", Self::Mac),
        ("KexAlgorithms", Self::Kex),
        ("HostKeyAlgorithms", Self::Sig),
        ("PubkeyAcceptedAlgorithms", Self::Sig),
    ];

    /// The query of this name, whose case does not matter.
    pub(crate) fn parse(text: &str) -> Result<Self, Refused> {
        let found = Self::NAMES.iter().find(|(name, _)| name.eq_ignore_ascii_case(text));
        let unknown = || Refused::Usage(format!("unsupported query '{text}' (-Q help lists them)"));
        found.map(|&(_, query)| query).ok_or_else(unknown)
    }

    /// The answer, one name per item.
    pub(crate) fn answer(self, supported: &Supported) -> Vec<&'static str> {
        let is_aead = |name: &&str| Cipher::from_name(name).is_some_and(Cipher::is_aead);
        match self {
            Self::Cipher => supported.ciphers.clone(),
            Self::CipherAuth => supported.ciphers.iter().copied().filter(is_aead).collect(),
            Self::Mac => supported.macs.clone(),
            Self::Kex => supported.kex.clone(),
            Self::Sig => supported.signatures.clone(),
            Self::Key => key_types(&supported.signatures),
            Self::Protocol => vec!["2"],
            Self::Compression => proto::Compression::ALL.map(proto::Compression::name).to_vec(),
            Self::Empty => Vec::new(),
            Self::Help => Self::NAMES.iter().map(|(name, _)| *name).take(12).collect(),
        }
    }
}

/// Key types of signature algorithms: that of both RSA ones is `ssh-rsa` (RFC 8332 section 3).
fn key_types(signatures: &[&'static str]) -> Vec<&'static str> {
    let mut types: Vec<&str> = Vec::new();
    for name in signatures {
        let key_type = if name.starts_with("rsa-sha2-") { "ssh-rsa" } else { name };
        if !types.contains(&key_type) {
            types.push(key_type);
        }
    }
    types
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_list_names() {
        let supported = Supported {
            ciphers: vec!["aes128-gcm@openssh.com", "aes128-ctr"],
            signatures: vec!["ssh-ed25519", "rsa-sha2-512", "rsa-sha2-256"],
            ..Supported::default()
        };
        let ask = |name| Query::parse(name).unwrap().answer(&supported);
        assert_eq!(ask("cipher-auth"), ["aes128-gcm@openssh.com"]);
        assert_eq!(ask("key"), ["ssh-ed25519", "ssh-rsa"]);
        assert_eq!(ask("ciphers").len(), 2);
        assert!(ask("help").contains(&"kex"));
        assert!(Query::parse("nothing").is_err());
    }
}
