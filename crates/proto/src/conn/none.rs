//! The switch to clear text as a connection's caller sees it (docs/invariants.md, N1 to N9).
//!
//! ```text
//! client   switch_to_none   longhaul: announces it   -> confirmed -> rekey with `none`
//!                           HPN-SSH: rekey with `none`, which the server takes or leaves
//! server   permit_none      longhaul: confirms the announcement, then its KEXINITs have `none`
//!                           HPN-SSH: its KEXINITs have `none` from now on, as a MAC once the
//!                           command was asked for: nobody on the way may choose it
//! ```
//! Both only exist on a [`Connection`], so after a login (N1). Whatever is refused, the connection
//! goes on as it is, sealed (N7).

use super::Connection;
use crate::channel::NONE_SWITCH;
use crate::transport::ClearOffer;
use crate::{Error, Event, Outbox, Role};

/// Why our side does not even try to switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoSwitch {
    /// N2.
    #[error("the other side has no strict key exchange")]
    NotStrict,
    /// It speaks neither our announcement nor HPN-SSH's way.
    #[error("the other side does not know the NONE cipher")]
    Unknown,
    /// N2.
    #[error("it needs hmac-sha2-256-etm or hmac-sha2-512-etm among the MACs")]
    NoMac,
    /// N3.
    #[error("a terminal, a forward or another channel was asked for")]
    NotQuiet,
}

/// A client's switch under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Switch {
    #[default]
    No,
    /// The server has not answered; with the NONE MAC or without.
    Announced(bool),
    /// The rekey is to come as soon as none is running.
    Due,
    /// The rekey is running.
    Rekeying,
}

impl Connection {
    /// Server: policy for this user and address allows the switch; with the NONE MAC, too, if
    /// `mac`. `Event::Uncovered` tells when it has happened.
    pub fn permit_none(&mut self, mac: bool) {
        let transport = &mut self.transport;
        if transport.role() != Role::Server || !transport.is_strict() || !transport.has_clear_mac()
        {
            return;
        }
        if transport.peer().is_some_and(crate::Peer::is_hpn) {
            transport.offer_clear(Some(ClearOffer { mac }));
        } else {
            self.channels.permit_switch(mac);
        }
    }

    /// Client: the user wants the switch; with the NONE MAC, too, if `mac`. To be called after the
    /// channel's requests, so that command and environment still travel sealed. Events tell how
    /// it went: `Uncovered`, or `StillSealed`.
    ///
    /// # Errors
    /// `Err` inside says why it is not tried.
    pub fn switch_to_none(
        &mut self,
        mac: bool,
        out: &mut Outbox,
    ) -> Result<Result<(), NoSwitch>, Error> {
        if let Err(why) = self.may_switch() {
            return Ok(Err(why));
        }
        self.channels.bind();
        if self.transport.peer().is_some_and(crate::Peer::is_longhaul) {
            self.announce(mac, out)?;
        } else {
            self.transport.offer_clear(Some(ClearOffer { mac }));
            self.switch = Switch::Due;
            self.go_on_switching(out)?;
        }
        Ok(Ok(()))
    }

    fn may_switch(&self) -> Result<(), NoSwitch> {
        let transport = &self.transport;
        let knows = transport.peer().is_some_and(|peer| peer.is_longhaul() || peer.is_hpn());
        match () {
            () if transport.role() != Role::Client || !knows => Err(NoSwitch::Unknown),
            () if !transport.is_strict() => Err(NoSwitch::NotStrict),
            () if !transport.has_clear_mac() => Err(NoSwitch::NoMac),
            () if !self.channels.is_quiet() => Err(NoSwitch::NotQuiet),
            () => Ok(()),
        }
    }

    fn announce(&mut self, mac: bool, out: &mut Outbox) -> Result<(), Error> {
        self.switch = Switch::Announced(mac);
        // Where it does not leave nobody answers, and the connection stays sealed.
        self.global_request(NONE_SWITCH, &[u8::from(mac)], true, out).map(drop)
    }

    /// Before a message is handled: the transport learns what the channels carry.
    pub(super) fn look_at_channels(&mut self) {
        self.transport.set_channels(self.channels.is_quiet(), self.channels.has_started());
    }

    /// After a message was handled: what it means for the switch.
    pub(super) fn go_on_switching(&mut self, out: &mut Outbox) -> Result<(), Error> {
        if let Some(cover) = self.transport.cleartext() {
            self.channels.uncover(cover);
        }
        if let Some(mac) = self.channels.take_agreed() {
            self.transport.offer_clear(Some(ClearOffer { mac }));
        }
        match (self.switch, self.channels.take_answered()) {
            (Switch::Announced(mac), Some(true)) => {
                self.transport.offer_clear(Some(ClearOffer { mac }));
                self.switch = Switch::Due;
            }
            // Perhaps it is only the MAC that the server wants to keep.
            (Switch::Announced(true), Some(false)) => self.announce(false, out)?,
            (Switch::Announced(false), Some(false)) => {
                self.stay_sealed("the server refuses the NONE cipher", out);
            }
            _ => {}
        }
        if self.switch == Switch::Due && !self.transport.is_exchanging() {
            self.look_at_channels();
            self.transport.rekey(out)?;
            self.switch = Switch::Rekeying;
        } else if self.switch == Switch::Rekeying && !self.transport.is_exchanging() {
            self.switch = Switch::No;
            if self.transport.cleartext().is_none() {
                self.stay_sealed("the server has not chosen the NONE cipher", out);
            }
        }
        Ok(())
    }

    fn stay_sealed(&mut self, why: &'static str, out: &mut Outbox) {
        self.switch = Switch::No;
        self.channels.unbind();
        self.transport.offer_clear(None);
        out.event(Event::StillSealed { why });
    }
}
