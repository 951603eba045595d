//! Ends: what a lane is made of, a channel to each host that it needs.

use super::super::side::Side;
use sftp::client::{Error, Event};
use std::sync::mpsc::{Receiver, Sender};

/// Which end a question goes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum At {
    Source,
    Target,
}

/// What a lane is made of.
pub(in super::super) struct Ends {
    pub(in super::super) source: Side,
    pub(in super::super) target: Side,
    pub(in super::super) events: Receiver<Event>,
    /// Where answers of others than the channels come from.
    pub(in super::super) tell: Sender<Event>,
    /// Its servers have begun to speak SFTP.
    begun: bool,
    /// Both ends are one channel to one server; a lane's copies by itself (`copy-data`).
    pub(in super::super) within: bool,
}

impl Ends {
    pub(in super::super) fn new(
        source: Side,
        target: Side,
        (tell, events): (Sender<Event>, Receiver<Event>),
        within: bool,
    ) -> Self {
        Self { source, target, events, tell, begun: false, within }
    }

    /// The next event. A server that is there but does not begin to speak SFTP is not waited for:
    /// once it does, whether it lives is the connection's to find out.
    pub(in super::super) fn event(&mut self) -> Event {
        if !std::mem::replace(&mut self.begun, true) {
            self.source.wait_for_its_word();
            self.target.wait_for_its_word();
        }
        let gone = |_| Event::Ended(Error::ended("the channel ended"));
        self.events.recv().unwrap_or_else(gone)
    }

    /// The same channels, to another target.
    pub(in super::super) fn aimed(self, target: Side) -> Self {
        Self { target, ..self }
    }

    pub(in super::super) fn side(&mut self, at: At) -> &mut Side {
        match at {
            At::Source => &mut self.source,
            At::Target => &mut self.target,
        }
    }
}
