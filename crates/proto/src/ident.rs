//! The identification lines (RFC 4253 section 4.2).

/// A validated identification line, without its line end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ident(String);

impl Ident {
    /// Ours.
    pub fn ours() -> Self {
        Self(concat!("SSH-2.0-longhaul_", env!("CARGO_PKG_VERSION")).to_owned())
    }

    /// The line without its end, as it enters the exchange hash.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}
