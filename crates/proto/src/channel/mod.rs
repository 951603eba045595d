//! Channels (RFC 4254): the table and what comes in (called by [`Connection`](crate::Connection)).
//!
//! ```text
//! half      one direction of a channel: open, EOF, closed
//! msg       messages that open a channel, and the short ones
//! request   channel requests, a row each
//! global    global requests, a row each
//! clear     what does not go with data in clear text (N3)
//! input     what the peer sends                      -> events, automatic replies
//! output    what our caller wants                    -> messages
//! ahead     a channel that is asked for together with the login
//! ```
//!
//! A channel enters the table when either side asks for it and leaves it when it is refused or
//! when both have sent CLOSE. Local numbers are not used again, so a late call for a channel that
//! is gone does nothing.

mod ahead;
#[cfg(feature = "none")]
mod clear;
mod global;
mod half;
mod input;
mod msg;
mod output;
mod request;
#[cfg(test)]
mod tests;

pub use ahead::Ahead;
#[cfg(feature = "none")]
pub use clear::NONE_SWITCH;
pub use half::{Half, Step};
pub use msg::OpenReason;
pub(crate) use msg::Purpose;
pub use request::{Request, TermSize};

use crate::{Error, Misbehaved, Role};
use std::collections::{BTreeMap, VecDeque};

/// Our number of a channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LocalId(pub u32);

/// What a sender on a channel needs to know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grant {
    /// The peer's number of the channel.
    pub remote: u32,
    /// The most data in one message.
    pub max_packet: u32,
    /// How much may be sent before the first WINDOW_ADJUST.
    pub window: u32,
}

/// What the peer may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Channels of any kind and state at once (C4).
    pub channels: usize,
    /// Kinds that the peer may open; everything else is refused (C5).
    pub accepts: &'static [&'static str],
    /// Global requests that our caller answers; everything else is refused at once.
    pub answers: &'static [&'static str],
}

impl Limits {
    /// A client: what it did not ask for is refused.
    pub const fn client() -> Self {
        Self { channels: 64, accepts: &[], answers: &[] }
    }

    /// A server: sessions.
    pub const fn server(max_sessions: usize) -> Self {
        Self { channels: max_sessions, accepts: &["session"], answers: &[] }
    }

    /// The same for a caller that answers these global requests (`Event::GlobalRequest`).
    #[must_use]
    pub const fn answering(self, names: &'static [&'static str]) -> Self {
        Self { answers: names, ..self }
    }
}

/// How far the opening of a channel is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// We asked; the peer may only answer.
    Opening,
    /// The peer asked; our caller has not answered, and the peer does not know our number.
    Asked,
    /// Both know both numbers.
    Open,
}

#[derive(Debug)]
struct Channel {
    stage: Stage,
    remote: u32,
    sent: Half,
    received: Half,
    /// What the peer may still send; `None` once somebody else keeps the count.
    window: Option<u32>,
    /// Replies that we wait for.
    awaited: u32,
    /// Replies that the peer waits for, oldest first.
    owed: VecDeque<Owed>,
}

/// A reply that has not been sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Owed {
    /// Our caller decides.
    ByCaller,
    /// No, as soon as its turn comes.
    Refusal,
}

impl Channel {
    fn new(stage: Stage, remote: u32, window: u32) -> Self {
        Self {
            stage,
            remote,
            sent: Half::Open,
            received: Half::Open,
            window: Some(window),
            awaited: 0,
            owed: VecDeque::new(),
        }
    }

    fn is_gone(&self) -> bool {
        self.sent == Half::Closed && self.received == Half::Closed
    }
}

/// Every channel of a connection.
#[derive(Debug)]
pub(crate) struct Channels {
    role: Role,
    limits: Limits,
    table: BTreeMap<u32, Channel>,
    next: u32,
    /// Global requests of ours that wait for their reply, oldest first.
    asked: VecDeque<String>,
    /// The peer's global requests that wait for ours, oldest first.
    due: VecDeque<global::Due>,
    /// The peer promised to open no more sessions (OpenSSH PROTOCOL section 2.2).
    no_more_sessions: bool,
    #[cfg(feature = "none")]
    restraint: clear::Restraint,
}

impl Channels {
    pub(crate) fn new(role: Role, limits: Limits) -> Self {
        Self {
            role,
            limits,
            table: BTreeMap::new(),
            next: 0,
            asked: VecDeque::new(),
            due: VecDeque::new(),
            no_more_sessions: false,
            #[cfg(feature = "none")]
            restraint: clear::Restraint::default(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.table.len()
    }

    /// How far we and the peer have closed an open channel: (sent, received).
    #[cfg(test)]
    pub(crate) fn halves(&self, id: LocalId) -> Option<(Half, Half)> {
        let channel = self.table.get(&id.0).filter(|c| c.stage == Stage::Open)?;
        Some((channel.sent, channel.received))
    }

    /// Enters a channel; `None` when there are too many.
    fn enter(&mut self, channel: Channel) -> Option<LocalId> {
        if self.table.len() >= self.limits.channels {
            return None;
        }
        while self.table.contains_key(&self.next) {
            self.next = self.next.wrapping_add(1);
        }
        let id = self.next;
        self.next = self.next.wrapping_add(1);
        self.table.insert(id, channel);
        Some(LocalId(id))
    }

    fn forget_if_gone(&mut self, id: LocalId) {
        if self.table.get(&id.0).is_some_and(Channel::is_gone) {
            self.table.remove(&id.0);
        }
    }
}

fn misbehaved(what: impl Into<String>) -> Error {
    Error::Peer(Misbehaved::Upper(what.into()))
}
