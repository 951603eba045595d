//! A host's files: logs in, opens sftp channels, carries their bytes.
//!
//! ```text
//! host         whom to connect to; clones share what a login learnt     any thread
//! login_limit  how many connections may log in at once
//! connection   one login: opens channels, runs commands, ends           any thread
//! channels     what happens on its channels                             receiving thread
//! ends         sftp::client as the engine's producers and consumers     sending, receiving threads
//! stderr       what the other end says on its standard error
//! stream       made-up data to our server or from it, for measuring
//! limit        what limited connections that did one thing together
//! child        the same over a local server's pipes
//! ```
//! Whatever ends a channel or a connection, every token of its clients gets an answer.
#![cfg_attr(not(test), deny(clippy::indexing_slicing))]

mod channels;
mod child;
mod connection;
mod ends;
mod error;
mod host;
mod limit;
mod login_limit;
mod stderr;
mod stream;

pub use child::child;
pub use connection::{Connection, Finished};
pub use error::Error;
pub use host::Host;
pub use limit::Limit;
pub use stream::{Came, Next, Stream, StreamEnd};
