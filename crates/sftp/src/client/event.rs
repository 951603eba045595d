//! What a program gets to know.

use super::{Error, Got, Sent};
use crate::codec::Reply;

/// Something that happened on a channel, in the order in which it did.
#[derive(Debug)]
pub enum Event {
    /// The one answer to a token's request, put or get.
    Answer {
        /// The token that it was asked with.
        token: u64,
        /// What became of it.
        answer: Result<Answer, Error>,
    },
    /// What a put or get was to move never left, not even in part: the channel ended before. Its
    /// answer follows.
    Unsent {
        /// The token that it was asked with.
        token: u64,
    },
    /// Little is left of what was queued to be sent: there is room for more.
    Room,
    /// Nothing more will come: the channel or the connection ended. Every token had its answer.
    Ended(Error),
}

/// A good answer.
#[derive(Debug)]
pub enum Answer {
    /// To a request; a status other than OK is an [`Error::Status`].
    Reply(Reply),
    /// To a put: the server wrote all of it.
    Sent(Sent),
    /// To a get: all of it is where it was to be written.
    Got(Got),
}
