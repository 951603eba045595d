//! SFTP v3 (draft-ietf-secsh-filexfer-02) with OpenSSH's and our extensions: codec, client, server.
//!
//! Paths are bytes. Bulk data is never parsed into a value of its own: the codec writes and reads
//! the heads of WRITE and DATA, and whoever moves the bytes deals with what follows.
#![cfg_attr(not(test), deny(clippy::indexing_slicing))]

pub mod client;
mod close;
pub mod codec;
mod lease;
pub mod longname;
mod part;
pub mod server;
mod umask;
pub mod xattrs;

pub use close::{close, flush};
pub use lease::open_regular;
pub use part::part_name;
pub use umask::umask;
