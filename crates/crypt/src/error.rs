//! What can go wrong, by culprit: our caller ([`CryptError`]) or the peer ([`KexError`],
//! [`BadTag`]).

/// Our own side's fault: wrong sizes, or the library refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CryptError {
    /// Key material of the wrong length.
    #[error("{what}: {got} bytes instead of {expected}")]
    Length {
        /// Which piece.
        what: &'static str,
        /// Length the algorithm needs.
        expected: usize,
        /// Length that was given.
        got: usize,
    },
    /// The algorithm cannot do what it was asked to.
    #[error("{0}: refused by the crypto library")]
    Refused(&'static str),
}

/// A packet that is not what the key's owner sealed. Carries no detail on purpose: whoever
/// tampered learns nothing from us.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("message authentication failed")]
pub struct BadTag;

/// The exchange failed; all but [`KexError::Local`] are the peer's fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum KexError {
    /// A public value that is too short or too long for the method.
    #[error("public value of {got} bytes instead of {expected}")]
    Length {
        /// Length the method needs; for Diffie-Hellman the longest it may be.
        expected: usize,
        /// Length the peer sent.
        got: usize,
    },
    /// Out of range, not on the curve, or of low order.
    #[error("invalid public value")]
    Value,
    /// Nothing the peer did.
    #[error("key exchange: {0}")]
    Local(#[from] CryptError),
}
