//! A host's files: logs in, opens sftp channels, carries their bytes.
//!
//! ```text
//! host        whom to connect to; clones share what a login learnt         any thread
//! doorway     how many may be on their way in at once
//! connection  one login: opens channels, runs commands, ends               any thread
//! desk        what happens on its channels                                 receiving thread
//! stream      made-up data to our server or from it, for measuring
//! limit       what limited connections that did one thing together
//! glue        sftp::client as the engine's producers and consumers         sending, receiving threads
//! words       what the other end says on its standard error
//! child       the same over a local server's pipes
//! ```
//! Whatever ends a channel or a connection, every token of its clients gets an answer.
#![cfg_attr(not(test), deny(clippy::indexing_slicing))]

mod child;
mod connection;
mod desk;
mod doorway;
mod error;
mod glue;
mod host;
mod limit;
mod stream;
mod words;

pub use child::child;
pub use connection::{Connection, Finished};
pub use error::Error;
pub use host::Host;
pub use limit::Limit;
pub use stream::{Came, Next, Stream, StreamEnd};
