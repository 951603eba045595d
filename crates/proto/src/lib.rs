//! SSH-2 as state machines without I/O: bytes, time and randomness come in, messages and events
//! come out.
//!
//! ```text
//! ident       the two identification lines               peer      what they tell us of the other side
//! table       which message may come now                 transport the machine that holds the rest
//! kexinit     the proposals            -> negotiate      one answer for both directions
//! kex         client and server: states consumed by the next message, ending in two NewKeys
//! ext_info    what is told after the first NEWKEYS       rekey     when it is time again
//! outbox      what the caller carries out, in order      event     what it gets to know
//! auth        client and server: a transport -> Authenticated
//! conn        Authenticated -> Connection: its channels  channel   the table of channels
//! data        splits bulk packets                        window    how far a sender may go
//! ```
//!
//! Nothing here knows a packet, a socket or a clock. Bulk channel data never comes this way.
#![cfg_attr(not(test), deny(clippy::indexing_slicing))]

pub mod auth;
pub mod channel;
pub mod config;
pub mod conn;
pub mod data;
mod draft;
pub mod error;
pub mod event;
mod ext_info;
pub mod ident;
mod kex;
mod kexinit;
pub mod negotiate;
pub mod outbox;
#[cfg(test)]
mod pair;
pub mod peer;
pub mod rekey;
pub mod table;
pub mod transport;
pub mod window;

pub use auth::Authenticated;
pub use channel::{Grant, Limits, LocalId, Request};
pub use config::{Compression, HostKeys, HostTrust, KexConfig};
pub use conn::Connection;
#[cfg(feature = "none")]
pub use conn::NoSwitch;
pub use error::{Error, Misbehaved, Mismatch};
pub use event::Event;
pub use ident::Ident;
pub use negotiate::Negotiated;
pub use outbox::{Effect, NewKeys, Outbox};
pub use peer::Peer;
pub use rekey::RekeyLimit;
pub use table::{Phase, Role};
pub use transport::{Handled, MAX_BEFORE_LOGIN, MAX_IN_SESSION, Transport};
