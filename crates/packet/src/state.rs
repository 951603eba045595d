//! What one direction's packets may be next: sealed, only authenticated, or bare, one way
//! (docs/invariants.md, N8). The last guard in front of the data plane, whatever was negotiated.

use crypt::{Cover, CryptError};

/// How a direction travels now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// Before the first NEWKEYS.
    Unkeyed,
    Sealed,
    Authenticated,
    Bare,
}

impl State {
    fn of(cover: Cover) -> Self {
        match (cover.is_clear(), cover.is_authenticated()) {
            (false, _) => Self::Sealed,
            (true, true) => Self::Authenticated,
            (true, false) => Self::Bare,
        }
    }

    /// The state under this cover, if it may come next. Clear text comes after sealed packets only,
    /// so never before login; from there no way leads back, and from bare packets none leads on
    /// (N4).
    pub(crate) fn next(self, cover: Cover) -> Result<Self, CryptError> {
        let next = Self::of(cover);
        let allowed = match self {
            Self::Unkeyed => next == Self::Sealed,
            Self::Sealed => next != Self::Unkeyed,
            Self::Authenticated => next == Self::Authenticated,
            Self::Bare => false,
        };
        if allowed { Ok(next) } else { Err(CryptError::Refused("cover")) }
    }
}

#[cfg(test)]
#[cfg(feature = "none")]
mod tests {
    use super::*;

    /// N8: one way, by the whole table.
    #[test]
    fn n8_clear_text_follows_sealed_packets_and_nothing_leads_back() {
        let rows = [
            (State::Unkeyed, [true, false, false]),
            (State::Sealed, [true, true, true]),
            (State::Authenticated, [false, true, false]),
            (State::Bare, [false, false, false]),
        ];
        for (state, want) in rows {
            for next in Cover::all() {
                let index = match State::of(next) {
                    State::Sealed => 0,
                    State::Authenticated => 1,
                    _ => 2,
                };
                assert_eq!(state.next(next).is_ok(), want[index], "{state:?} to {next:?}");
            }
        }
    }
}
