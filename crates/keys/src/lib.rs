//! Keys and the files that say whom to trust. Nothing here talks to the network.
#![cfg_attr(not(test), deny(clippy::indexing_slicing))]

mod container;
mod private;
mod public;
mod sig;

pub use crypt::sign::CannotSign;
pub use private::{PrivateKey, PrivateKeyError};
pub use public::{BadSignature, PublicKey, PublicKeyError, fingerprint};
pub use sig::SigAlg;
