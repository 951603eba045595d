//! Hashed host names, `|1|salt|hash`: HMAC-SHA1 of the name under a random salt.

use base64ct::{Base64, Encoding};

/// SHA-1's output, which is also the salt's length.
const LEN: usize = 20;

/// A host name that can be recognised but not read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HashedName {
    salt: Vec<u8>,
    hash: [u8; LEN],
}

impl HashedName {
    /// Hashes `name` under a new salt.
    pub(super) fn new(name: &str) -> Self {
        let salt: [u8; LEN] = crypt::random_array();
        Self { salt: salt.to_vec(), hash: crypt::hmac_sha1(&salt, name.as_bytes()) }
    }

    /// Parses `|1|salt|hash`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (salt, hash) = text.strip_prefix("|1|")?.split_once('|')?;
        let salt = Base64::decode_vec(salt).ok().filter(|salt| salt.len() == LEN)?;
        let hash = Base64::decode_vec(hash).ok()?.try_into().ok()?;
        Some(Self { salt, hash })
    }

    /// Whether this is the hash of `name`. Not a secret: no constant time needed.
    pub(super) fn is(&self, name: &str) -> bool {
        crypt::hmac_sha1(&self.salt, name.as_bytes()) == self.hash
    }

    /// `|1|salt|hash`.
    pub(super) fn to_text(&self) -> String {
        format!("|1|{}|{}", Base64::encode_string(&self.salt), Base64::encode_string(&self.hash))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hashed_name_is_recognised_and_no_other() {
        let hashed = HashedName::parse(&HashedName::new("host.example").to_text()).expect("hashed");
        assert!(hashed.is("host.example"));
        assert!(!hashed.is("host.example."));
    }

    #[test]
    fn other_hashes_and_lengths_are_refused() {
        for bad in ["|2|AAAA|AAAA", "|1|AAAA|AAAA", "|1|", "||", "|1|AAAA", "x"] {
            assert_eq!(HashedName::parse(bad), None, "{bad}");
        }
    }
}
