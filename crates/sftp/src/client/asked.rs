//! What is asked for: how it waits in the queue, and what is remembered of it until the server
//! has answered.

use super::Error;
use super::transfer::{Check, Data, Got, Target};
use crate::codec::{Handle, Reply, Status};
use std::sync::mpsc::SyncSender;

/// What a READ counts as unsent.
const READ_BYTES: u64 = 64;

/// Who waits for the answer to a request.
pub(super) enum Waiting {
    Token(u64),
    Caller(SyncSender<Result<Reply, Error>>),
    /// The client itself, for the server's limits.
    Sizes,
}

/// The kind of answer that a request has beside a status (draft section 7).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Expect {
    Status,
    Handle,
    Names,
    Attrs,
    Data,
    Extended,
    /// A request that only the caller knows.
    Any,
}

impl Expect {
    /// Whether `reply` may answer. A status that says no always may.
    pub(super) fn takes(self, reply: &Reply) -> bool {
        match reply {
            Reply::Status { code: Status::Ok, .. } => matches!(self, Self::Status | Self::Any),
            Reply::Status { .. } => true,
            Reply::Handle(_) => self == Self::Handle,
            Reply::Names(_) => self == Self::Names,
            Reply::Attrs(_) => self == Self::Attrs,
            Reply::Data(_) => self == Self::Data,
            Reply::Extended(_) => matches!(self, Self::Extended | Self::Any),
        }
    }
}

/// A request that was encoded with the id 0.
pub(super) struct Message {
    pub(super) bytes: Vec<u8>,
    pub(super) expect: Expect,
    pub(super) waiting: Waiting,
}

/// Bytes for a file at the server, cut into WRITEs when they leave.
pub(super) struct Put {
    pub(super) token: u64,
    pub(super) handle: Handle,
    pub(super) remote: u64,
    pub(super) data: Data,
    pub(super) check: Check,
}

/// Bytes of a file at the server: one READ, and more for the rest if the answer is short.
pub(super) struct Get {
    pub(super) token: u64,
    pub(super) handle: Handle,
    pub(super) remote: u64,
    /// Bytes asked for in all.
    pub(super) len: u32,
    pub(super) target: Target,
    pub(super) hasher: Option<Box<blake3::Hasher>>,
    pub(super) got: Got,
    /// Bytes that the READ under way asks for.
    pub(super) asked: u32,
    /// Answers so far that were far shorter than what was asked for.
    pub(super) crumbs: u32,
    pub(super) failed: Option<Error>,
}

/// What waits to be sent.
pub(super) enum Item {
    Message(Message),
    Put(Put),
    Get(Box<Get>),
}

impl Item {
    pub(super) fn unsent(&self) -> u64 {
        match self {
            Self::Message(message) => message.bytes.len() as u64,
            Self::Put(put) => put.data.len(),
            Self::Get(_) => READ_BYTES,
        }
    }
}

/// What the server owes an answer to.
pub(super) enum Owed {
    Request(Expect, Waiting),
    /// A WRITE of the put with this number.
    Write(u64),
    Read(Box<Get>),
    /// A READ of this token, whose answer is coming in.
    Arriving(u64),
}

/// What DATA is for.
pub(super) enum Arriving {
    /// A get.
    Bulk(Box<Get>),
    /// A READ that was asked for as a plain request.
    Reply,
}
