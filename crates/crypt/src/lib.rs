//! Algorithms behind shared keys: ciphers, MACs, hashes, key exchange, signatures.
//!
//! Every key is `Send + Sync` and used through `&self`; the nonce, sequence number or keystream
//! position is always an argument. So any number of cores may seal or open packets of one
//! stream, in any order, and the bytes are those that one core would have made.
//!
//! Nothing here invents a primitive: AES, ChaCha20, Poly1305, HMAC, SHA-2, the curves and
//! ML-KEM are aws-lc's (on some CPUs AES is ring's, and ChaCha20 and Poly1305 are RustCrypto's),
//! big-number arithmetic is crypto-bigint's, Streamlined NTRU Prime is sntrup761's. This crate gives them SSH's framing: which bytes are key, nonce, tag, and how a
//! shared secret is encoded.
//!
//! ```text
//! cipher   names, sizes, which cipher goes with which MAC     gcm chacha ctr mac   keys at work
//! cover    sealed, or without the cipher after a switch
//! kex      public values in, shared secret out                hash kdf             from secret to keys
//! sign     raw signature keys                                 random               the only source
//! ```
#![cfg_attr(not(test), deny(clippy::indexing_slicing))]

mod chacha;
pub mod cipher;
mod cover;
mod ctr;
mod error;
mod gcm;
mod hash;
mod kdf;
pub mod kex;
mod mac;
mod material;
mod random;
pub mod sign;

pub use chacha::ChaChaKey;
pub use cipher::{Cipher, Mac, Protection, Shape};
#[cfg(feature = "none")]
pub use cover::ClearMac;
pub use cover::Cover;
pub use ctr::CtrKey;
pub use error::{BadTag, CryptError, KexError};
pub use gcm::GcmKey;
pub use hash::{Digest, Hash, Sha256, hmac_sha1};
pub use kdf::derive;
pub use mac::{MacKey, Tag};
pub use material::{Direction, KeyMaterial};
pub use random::{random, random_array};
