//! What tests of several crates need.
//!
//! ```text
//! login   what a login asks its callers for: one host key, a client that trusts any, one user key
//! noise   bytes to move
//! port    a port to listen at
//! ```

mod login;
mod noise;
mod port;

pub use login::{AnyHost, OneCredential, OneHostKey, key};
pub use noise::noise;
pub use port::free_port;
