//! Keys and the files that say whom to trust.
//!
//! [`PublicKey`] and [`PrivateKey`] verify and sign; [`known_hosts`] tells a client which host
//! keys to believe, [`authorized_keys`] tells a server which user keys may do what, [`agent`]
//! asks a running `ssh-agent` to sign. Nothing here talks to the network.
#![cfg_attr(not(test), deny(clippy::indexing_slicing))]

pub mod agent;
pub mod authorized_keys;
mod container;
pub mod known_hosts;
pub mod pattern;
mod private;
mod public;
mod sig;

pub use crypt::sign::CannotSign;
pub use private::{PrivateKey, PrivateKeyError};
pub use public::{BadSignature, PublicKey, PublicKeyError, fingerprint};
pub use sig::SigAlg;
