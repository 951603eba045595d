//! Option tables and configuration files: ssh_config(5) and sshd_config(5), one row per keyword.
//!
//! Two phases, bottom up:
//! ```text
//! line     text -> Setting: keyword, arguments, where it stood     (syntax, knows no keyword)
//! file     files and their Includes -> a tree of Settings
//! row      Settings -> a struct, through the table of rows; first value wins
//! client   the client's struct, its rows, Host and Match blocks    server   the same for sshd
//! ```
//! A row is all there is to a keyword: the reader, `-o`, the `-G` and `-T` dumps and
//! docs/options.md follow from it. A keyword OpenSSH has and this suite has not stands in a second
//! table that says whether it can be passed over.

#![cfg_attr(not(test), deny(clippy::indexing_slicing))]

mod address;
mod algorithms;
mod choice;
pub mod client;
mod error;
mod expand;
mod field;
mod file;
pub mod flags;
mod line;
pub mod manual;
mod pattern;
mod row;
pub mod server;
mod value;

pub use algorithms::{AlgorithmList, Kind, Supported};
pub use choice::{
    AddressFamily, Compression, LogLevel, RequestTty, StrictHostKeyChecking, UserEnvironment,
};
pub use client::{Client, Destination, Endpoint, Jump};
pub use error::Error;
pub use expand::{Local, check_host, check_user};
pub use field::{Lines, OrNone, RestOfLine, Words};
pub use line::{Origin, Setting};
pub use pattern::{matches_list, matches_pattern};
pub use row::{Level, Loaded, Notice};
pub use server::Server;
pub use value::{
    EnvPatterns, ListenAddresses, MaxStartups, RekeyLimit, Size, Subsystems, Variables, Workers,
};
