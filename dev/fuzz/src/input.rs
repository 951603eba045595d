//! An input as a row of choices: what is missing at its end reads as nothing.

/// What is left of an input.
pub(crate) struct Input<'a>(pub(crate) &'a [u8]);

impl<'a> Input<'a> {
    /// The next byte, while there is one.
    pub(crate) fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    /// The next byte, or zero.
    pub(crate) fn byte_or_zero(&mut self) -> u8 {
        self.byte().unwrap_or_default()
    }

    /// A byte, and as many more as it says, if there are so many.
    pub(crate) fn piece(&mut self) -> &'a [u8] {
        let len = usize::from(self.byte_or_zero()).min(self.0.len());
        let (piece, rest) = self.0.split_at(len);
        self.0 = rest;
        piece
    }
}
