//! What a peer's identification tells about it.

/// A peer as its identification describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Peer {}
