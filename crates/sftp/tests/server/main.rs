//! The server as a client sees it: bytes in, bytes out, files in between.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod files;
mod hostile;
mod leases;
mod order;
mod ours;
mod peer;
