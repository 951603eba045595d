//! Bounded reader over one message (RFC 4251 section 5). It cannot index and cannot panic.

use crate::NameList;
use std::fmt;

/// A message that does not parse; names the field that was missing or wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Malformed(pub &'static str);

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "malformed {}", self.0)
    }
}

impl std::error::Error for Malformed {}

/// Takes values off the front of a byte slice.
#[derive(Debug, Clone)]
pub struct Reader<'a> {
    left: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Reads from the start of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { left: bytes }
    }

    /// The next `n` raw bytes.
    pub fn take(&mut self, n: usize, what: &'static str) -> Result<&'a [u8], Malformed> {
        let (head, tail) = self.left.split_at_checked(n).ok_or(Malformed(what))?;
        self.left = tail;
        Ok(head)
    }

    /// The next `N` raw bytes as an array.
    pub fn array<const N: usize>(&mut self, what: &'static str) -> Result<&'a [u8; N], Malformed> {
        let (head, tail) = self.left.split_first_chunk::<N>().ok_or(Malformed(what))?;
        self.left = tail;
        Ok(head)
    }

    /// `byte`.
    pub fn u8(&mut self, what: &'static str) -> Result<u8, Malformed> {
        self.array::<1>(what).map(|[b]| *b)
    }

    /// `boolean`: any non-zero value is true (RFC 4251 section 5).
    pub fn bool(&mut self, what: &'static str) -> Result<bool, Malformed> {
        self.u8(what).map(|b| b != 0)
    }

    /// `uint32`, big-endian.
    pub fn u32(&mut self, what: &'static str) -> Result<u32, Malformed> {
        self.array(what).map(|b| u32::from_be_bytes(*b))
    }

    /// `uint64`, big-endian.
    pub fn u64(&mut self, what: &'static str) -> Result<u64, Malformed> {
        self.array(what).map(|b| u64::from_be_bytes(*b))
    }

    /// `string`: a `uint32` length and that many bytes.
    pub fn string(&mut self, what: &'static str) -> Result<&'a [u8], Malformed> {
        let len = usize::try_from(self.u32(what)?).map_err(|_| Malformed(what))?;
        self.take(len, what)
    }

    /// `string` that must be UTF-8.
    pub fn text(&mut self, what: &'static str) -> Result<&'a str, Malformed> {
        std::str::from_utf8(self.string(what)?).map_err(|_| Malformed(what))
    }

    /// `name-list`: comma-separated US-ASCII names, none empty.
    pub fn names(&mut self, what: &'static str) -> Result<NameList<'a>, Malformed> {
        NameList::parse(self.string(what)?).ok_or(Malformed(what))
    }

    /// `mpint` that must be positive and in shortest form; its magnitude without leading zeroes.
    pub fn positive_mpint(&mut self, what: &'static str) -> Result<&'a [u8], Malformed> {
        match self.string(what)? {
            [0, rest @ ..] if rest.first().is_some_and(|high| high & 0x80 != 0) => Ok(rest),
            all @ [1..=0x7f, ..] => Ok(all),
            _ => Err(Malformed(what)),
        }
    }

    /// Everything that is left; the reader is empty afterwards.
    pub fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.left)
    }

    /// How many bytes are left.
    pub fn left(&self) -> usize {
        self.left.len()
    }

    /// The message must be over.
    pub fn end(&self, what: &'static str) -> Result<(), Malformed> {
        if self.left.is_empty() { Ok(()) } else { Err(Malformed(what)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Writer;

    #[test]
    fn a_length_beyond_the_message_is_malformed() {
        for bytes in [&[0u8, 0, 0, 5, 1, 2][..], &[0xff; 8], &[0, 0, 0], &[]] {
            assert_eq!(Reader::new(bytes).string("x"), Err(Malformed("x")));
        }
    }

    #[test]
    fn mpints_are_positive_and_shortest() {
        for (bytes, ok) in [
            (&[0x7fu8][..], true),
            (&[0, 0x80], true),
            (&[0x80], false),
            (&[0, 0x7f], false),
            (&[], false),
            (&[0], false),
        ] {
            let mut w = Writer::new();
            w.string(bytes);
            assert_eq!(Reader::new(w.as_slice()).positive_mpint("n").is_ok(), ok, "{bytes:?}");
        }
    }

    #[test]
    fn trailing_bytes_are_malformed() {
        let mut r = Reader::new(&[1, 2]);
        assert_eq!(r.u8("b"), Ok(1));
        assert!(r.end("m").is_err());
        assert_eq!(r.rest(), [2]);
        assert!(r.end("m").is_ok());
    }
}
