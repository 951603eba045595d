//! Real programs against ours: start a server, run a client, look at what arrived.
//!
//! ```text
//! Lab       keys (made once), a directory per test            lab
//! Server    sshd, dropbear, asyncssh, paramiko, lhsshd        server
//! Client    ssh, dbclient, plink, asyncssh, paramiko, lhssh   client
//! Run       one client command with its three streams         run
//! checks    what any client and any server must do together   checks
//! Way       a wire that flips a bit, a server that is none     proxy
//! ```
//! A check takes a [`Pair`] and knows no program by name, so stock programs are put through the
//! same checks among themselves first (tests/stock.rs): where that passes and a pair with ours
//! fails, ours is at fault.
//!
//! A peer or a privilege that is missing skips the test by name; with `LONGHAUL_CI` set it fails.

pub mod algorithms;
pub mod checks;
pub mod client;
pub mod lab;
pub mod need;
pub mod proxy;
pub mod run;
pub mod server;
pub mod stream;

pub use checks::Pair;
pub use client::Client;
pub use lab::Lab;
pub use server::{Kind, Server};
