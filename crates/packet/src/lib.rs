//! The hot record layer: SSH binary packets over memory the caller owns (RFC 4253 section 6).
//!
//! ```text
//! out   batch   data areas with head- and tailroom; finish() writes the channel-data heads
//!       stamp   numbers given once, in order: sequence, packets and blocks since NEWKEYS
//!       seal    length, padding, encryption and tag, in place, any thread, any order
//! key     the ciphers' keys of a direction, for seal and open
//! state   sealed, authenticated or bare, one way
//! in    frame   length of the packet at the front of the received bytes
//!       open    check and decrypt in place, yields where the payload lies
//! compress   payloads smaller, where both sides want that: the one part with a history
//! ```
//! Nothing here allocates per packet or knows what a channel is. But for compression nothing copies
//! a data byte either, or is stateful beyond the counters: keys are shared and take their nonce as
//! an argument, so that N cores may work on one stream with no change on the wire.
#![cfg_attr(not(test), deny(clippy::indexing_slicing))]

pub mod batch;
pub mod compress;
mod error;
pub mod key;
pub mod layout;
pub mod open;
pub mod seal;
pub mod stamp;
mod state;

pub use batch::Batch;
pub use compress::{Deflate, Inflate};
pub use error::Error;
pub use layout::Layout;
pub use open::{Inbound, OpenKey, Opened};
pub use seal::SealKey;
pub use stamp::Stamp;
