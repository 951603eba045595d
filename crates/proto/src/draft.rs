//! What a machine above the transport wants sent and known.
//!
//! Authentication and channels do not see the transport: they fill a draft, and the machine that
//! owns the transport passes the messages through it, which holds them during a key exchange.

use crate::{Error, Event, Outbox, Transport};

/// Messages and events of one call.
#[derive(Debug, Default)]
pub(crate) struct Draft {
    pub(crate) messages: Vec<Vec<u8>>,
    pub(crate) events: Vec<Event>,
}

impl Draft {
    pub(crate) fn send(&mut self, payload: Vec<u8>) {
        self.messages.push(payload);
    }

    pub(crate) fn event(&mut self, event: Event) {
        self.events.push(event);
    }

    /// Passes everything on and leaves the draft empty.
    pub(crate) fn leave(
        &mut self,
        transport: &mut Transport,
        out: &mut Outbox,
    ) -> Result<(), Error> {
        out.events.append(&mut self.events);
        for message in self.messages.drain(..) {
            transport.send(message, out)?;
        }
        Ok(())
    }
}
