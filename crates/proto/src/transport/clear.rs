//! Clear text: the transport's part of the NONE cipher and NONE MAC (docs/invariants.md, N1 to N9).
//!
//! ```text
//! offer     the layer above allows it, after login: `none` stands in our KEXINITs, as long as
//!           the channels are `quiet`
//! agree     what two KEXINITs came to: both directions or none, and never a way back
//! on        from here on: no KEXINIT where there is no MAC, no login
//! ```

use super::Transport;
use crate::kexinit::Ways;
use crate::negotiate::Negotiated;
use crate::{Error, Event, Misbehaved, Outbox};
use crypt::Cover;

/// What our KEXINITs say of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ClearOffer {
    /// NONE MAC too.
    pub(crate) mac: bool,
}

/// Where the switch stands.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Clear {
    offer: Option<ClearOffer>,
    /// The channels are such that nothing but one command's data would travel in clear (N3).
    quiet: bool,
    /// The one command was asked for already: without a MAC, anybody could choose it.
    started: bool,
    /// A MAC that may stand alone is on the peer's lists, too (N2).
    peer_has_mac: bool,
    /// Agreed on, in both directions.
    cover: Option<Cover>,
    /// The layer above was told.
    told: bool,
}

impl Transport {
    /// `none` may stand in our KEXINITs from now on. Only a logged-in connection calls this (N1),
    /// and without strict key exchange it does nothing (N2).
    #[cfg(feature = "none")]
    pub(crate) fn offer_clear(&mut self, offer: Option<ClearOffer>) {
        self.clear.offer = offer.filter(|_| self.logged_in && self.strict);
    }

    /// What the channels say before a message is handled.
    #[cfg(feature = "none")]
    pub(crate) fn set_channels(&mut self, quiet: bool, started: bool) {
        (self.clear.quiet, self.clear.started) = (quiet, started);
    }

    /// N2: among the MACs of both sides is one that may stand alone.
    #[cfg(feature = "none")]
    pub(crate) fn has_clear_mac(&self) -> bool {
        self.clear.peer_has_mac
    }

    /// The MACs of the peer's first KEXINIT; a later one may have `none` alone.
    pub(super) fn note_macs(&mut self, theirs: &Ways) {
        let mut ours = self.cfg.macs.iter().filter(|mac| mac.is_etm()).map(|mac| mac.name());
        self.clear.peer_has_mac =
            ours.any(|mac| theirs.c2s.contains(mac) && theirs.s2c.contains(mac));
    }

    /// As if the peer had not offered it.
    #[cfg(all(test, feature = "none"))]
    pub(crate) fn forget_strict(&mut self) {
        self.strict = false;
    }

    /// Data travels in clear, or will from the NEWKEYS on that are under way.
    pub fn cleartext(&self) -> Option<Cover> {
        self.clear.cover
    }

    /// What our next KEXINIT says of it: after a switch, what there is.
    pub(super) fn clear_offer(&self) -> Option<ClearOffer> {
        let Clear { offer, quiet, started, cover, .. } = self.clear;
        match cover {
            Some(cover) => offer.map(|_| ClearOffer { mac: !cover.is_authenticated() }),
            None => offer.filter(|_| quiet).map(|offer| ClearOffer { mac: offer.mac && started }),
        }
    }

    /// N4: whoever sits on the way could have sent it.
    pub(super) fn check_may_exchange(&self) -> Result<(), Error> {
        match self.clear.cover {
            Some(cover) if !cover.is_authenticated() => {
                Err(misbehaved("peer started a key exchange although nothing is authenticated"))
            }
            _ => Ok(()),
        }
    }

    /// Whether our side may start an exchange.
    pub(super) fn may_exchange(&self) -> bool {
        self.clear.cover.is_none_or(Cover::is_authenticated)
    }

    /// N5: no password travels in clear.
    pub(super) fn check_no_login(&self) -> Result<(), Error> {
        match self.clear.cover {
            Some(_) => Err(misbehaved("peer sent a login over a connection without encryption")),
            None => Ok(()),
        }
    }

    /// What two KEXINITs came to.
    pub(super) fn agree_on_clear(&mut self, negotiated: &Negotiated) -> Result<(), Error> {
        let (cover, other) = (negotiated.c2s, negotiated.s2c);
        if cover.is_clear() != other.is_clear() || (cover.is_clear() && cover != other) {
            return Err(misbehaved("peer wants clear text in one direction only"));
        }
        match (self.clear.cover, cover.is_clear()) {
            (None, false) => Ok(()),
            (None, true) if self.strict && self.logged_in && self.clear_offer().is_some() => {
                self.clear.cover = Some(cover);
                Ok(())
            }
            (None, true) => Err(misbehaved("peer wants clear text where it may not be")),
            (Some(before), _) if before == cover => Ok(()),
            (Some(_), _) => Err(misbehaved("peer wants another cover after the switch")),
        }
    }

    /// Our own next packet travels in clear: said once.
    pub(super) fn tell_of_clear(&mut self, out: &mut Outbox) {
        if let Some(cover) = self.clear.cover
            && !std::mem::replace(&mut self.clear.told, true)
        {
            out.event(Event::Uncovered { cover });
        }
    }
}

fn misbehaved(what: &str) -> Error {
    Misbehaved::Upper(what.to_owned()).into()
}
