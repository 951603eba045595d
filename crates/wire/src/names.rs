//! `name-list` (RFC 4251 section 5): comma-separated names, first is preferred.

use std::fmt;

/// A validated name-list: printable US-ASCII without commas inside names, no empty name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NameList<'a>(&'a str);

impl<'a> NameList<'a> {
    /// Checks the bytes of a name-list; the empty list is valid.
    pub fn parse(bytes: &'a [u8]) -> Option<Self> {
        let text = std::str::from_utf8(bytes).ok()?;
        let valid = |name: &str| !name.is_empty() && name.bytes().all(|b| b.is_ascii_graphic());
        (text.is_empty() || text.split(',').all(valid)).then_some(Self(text))
    }

    /// The names, most preferred first.
    pub fn iter(self) -> impl Iterator<Item = &'a str> {
        self.0.split(',').filter(|name| !name.is_empty())
    }

    /// The most preferred name.
    pub fn first(self) -> Option<&'a str> {
        self.iter().next()
    }

    /// Whether `name` is in the list.
    pub fn contains(self, name: &str) -> bool {
        self.iter().any(|n| n == name)
    }

    /// The list as it stands on the wire.
    pub fn as_str(self) -> &'a str {
        self.0
    }
}

impl fmt::Display for NameList<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_names_and_controls_are_refused() {
        for bad in [&b",a"[..], b"a,", b"a,,b", b"a b", b"a\0", b"\xff"] {
            assert!(NameList::parse(bad).is_none(), "{bad:?}");
        }
        assert_eq!(NameList::parse(b"").map(|l| l.iter().count()), Some(0));
        assert_eq!(NameList::parse(b"a,b").and_then(NameList::first), Some("a"));
    }
}
