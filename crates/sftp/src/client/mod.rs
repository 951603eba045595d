//! The client of an SFTP channel (draft-ietf-secsh-filexfer-02), as a machine between three hands:
//! programs ask through a [`Client`], one thread fills packets from [`Outgoing`], one thread hands
//! what came to [`Incoming`]. It has no thread and no descriptor of its own.
//!
//! ```text
//! calls     Client: request, call, put, get             any thread
//! asked     what is asked for, until it is answered
//! ledger    what is queued, what is in flight, why it ended      under one lock
//! outgoing  queue -> requests and file data, in place            sending thread
//! incoming  what came -> answers and files, in place             receiving thread
//! facts     what the server can do, and its limits
//! flight    how many bytes to keep under way
//! ```
//! A file's bytes are read by the kernel straight into the packets they leave in, and written from
//! the packets they came in. Every token gets one answer, whatever happens to the channel.

mod areas;
mod asked;
mod calls;
mod error;
mod event;
mod facts;
mod flight;
mod incoming;
mod ledger;
mod outgoing;
mod pieces;
#[cfg(test)]
mod tests;
mod transfer;

pub use calls::Client;
pub use error::Error;
pub use event::{Answer, Event};
pub use facts::{Known, ServerFacts, Sizes};
pub use flight::Flight;
pub use incoming::Incoming;
pub use ledger::Ender;
pub use outgoing::Outgoing;
pub use transfer::{Check, Data, Got, Sent, Target};

use std::sync::Arc;
use std::sync::mpsc::Sender;

/// A client of one channel and the two halves that its transport drives; answers to tokens go to
/// `events`. INIT (draft section 4) leaves first, by itself.
///
/// Once the last clone of the `Client` is dropped and what it asked for has left, `Outgoing` ends.
pub fn pair(events: Sender<Event>) -> (Client, Outgoing, Incoming) {
    pair_knowing(events, &Known::default())
}

/// The same on a connection of which other channels may have heard what the server can do.
pub fn pair_knowing(events: Sender<Event>, known: &Known) -> (Client, Outgoing, Incoming) {
    let shared = Arc::new(ledger::Shared::new(events, known.clone()));
    (Client::new(Arc::clone(&shared)), Outgoing::new(Arc::clone(&shared)), Incoming::new(shared))
}
