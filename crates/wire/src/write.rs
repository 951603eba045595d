//! Appends values to a message (RFC 4251 section 5).

/// A message under construction.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Writer {
    bytes: Vec<u8>,
}

impl Writer {
    /// An empty message.
    pub fn new() -> Self {
        Self::default()
    }

    /// A message that starts with its number.
    pub fn message(number: u8) -> Self {
        Self { bytes: vec![number] }
    }

    /// `byte`.
    pub fn u8(&mut self, value: u8) -> &mut Self {
        self.bytes.push(value);
        self
    }

    /// `boolean`.
    pub fn bool(&mut self, value: bool) -> &mut Self {
        self.u8(u8::from(value))
    }

    /// `uint32`.
    pub fn u32(&mut self, value: u32) -> &mut Self {
        self.raw(&value.to_be_bytes())
    }

    /// `uint64`.
    pub fn u64(&mut self, value: u64) -> &mut Self {
        self.raw(&value.to_be_bytes())
    }

    /// Bytes without a length.
    pub fn raw(&mut self, bytes: &[u8]) -> &mut Self {
        self.bytes.extend_from_slice(bytes);
        self
    }

    /// `string`. Longer than 4 GiB cannot occur in a message and is cut to a length that fails
    /// at the reader.
    pub fn string(&mut self, bytes: impl AsRef<[u8]>) -> &mut Self {
        let bytes = bytes.as_ref();
        self.u32(u32::try_from(bytes.len()).unwrap_or(u32::MAX));
        self.raw(bytes)
    }

    /// `name-list`.
    pub fn names<S: AsRef<str>>(&mut self, names: &[S]) -> &mut Self {
        let list: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
        self.string(list.join(","))
    }

    /// `mpint` of a non-negative number given as big-endian magnitude; leading zeroes are dropped.
    pub fn positive_mpint(&mut self, magnitude: &[u8]) -> &mut Self {
        let zeroes = magnitude.iter().take_while(|b| **b == 0).count();
        let digits = magnitude.get(zeroes..).unwrap_or_default();
        let sign = digits.first().is_some_and(|high| high & 0x80 != 0);
        let len = digits.len() + usize::from(sign);
        self.u32(u32::try_from(len).unwrap_or(u32::MAX));
        if sign {
            self.u8(0);
        }
        self.raw(digits)
    }

    /// The bytes so far.
    pub fn as_slice(&self) -> &[u8] {
        &self.bytes
    }

    /// The finished message.
    pub fn finish(self) -> Vec<u8> {
        self.bytes
    }

    /// The finished message, leaving the writer empty: ends a chain of `&mut` calls.
    pub fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of RFC 4251 section 5.
    #[test]
    fn mpint_examples_of_the_rfc() {
        for (magnitude, wire) in [
            (&[][..], &[0u8, 0, 0, 0][..]),
            (
                &[0x09, 0xa3, 0x78, 0xf9, 0xb2, 0xe3, 0x32, 0xa7],
                &[0, 0, 0, 8, 0x09, 0xa3, 0x78, 0xf9, 0xb2, 0xe3, 0x32, 0xa7],
            ),
            (&[0x80], &[0, 0, 0, 2, 0, 0x80]),
            (&[0, 0, 0x80], &[0, 0, 0, 2, 0, 0x80]),
        ] {
            assert_eq!(Writer::new().positive_mpint(magnitude).take(), wire);
        }
    }

    #[test]
    fn name_lists_join_with_commas() {
        assert_eq!(Writer::new().names(&["a", "b"]).take(), b"\0\0\0\x03a,b");
        assert_eq!(Writer::new().names::<&str>(&[]).take(), b"\0\0\0\0");
    }
}
