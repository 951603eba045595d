//! Which message may come now: by role, phase and strict key exchange.

/// Which side we are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// The one who connects.
    Client,
    /// The one who listens.
    Server,
}

/// Where the receiving side of a connection stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Phase {
    /// Keys are there, the user is not.
    Login,
    /// The user is there.
    Session,
}

impl Phase {
    pub(crate) fn while_(self) -> &'static str {
        "before login"
    }
}
