//! SSH data types on the wire (RFC 4251 section 5) and message numbers.
//!
//! [`text`] makes a peer's words fit for people.
//!
//! The only floor below everything: no dependencies, no allocation while reading, no way to
//! index. A [`Reader`] takes values off the front of a message and says what was wrong with it;
//! a [`Writer`] appends values to a growing message.
#![cfg_attr(not(test), deny(clippy::indexing_slicing))]

pub mod msg;
mod names;
mod read;
pub mod text;
mod write;

pub use names::NameList;
pub use read::{Malformed, Reader};
pub use write::Writer;
