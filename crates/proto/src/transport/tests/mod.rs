//! The transport against itself and against a peer that does not play by the rules.

mod adversary;
mod compression;
mod first;
mod guess;
mod host_key;
mod openssh;
mod random;
mod rekey;
