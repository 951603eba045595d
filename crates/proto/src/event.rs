//! What a caller gets to know, beside what it must do.

use crate::channel::{Grant, LocalId, Request};
use crypt::Cover;

/// One thing that happened. Text of the peer must be escaped before it reaches a terminal (E2).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// The peer ended the connection (RFC 4253 section 11.1); nothing follows.
    Disconnected {
        /// Its reason code.
        code: u32,
        /// Its description; escape it before it reaches a terminal.
        text: String,
    },
    /// SSH_MSG_DEBUG (RFC 4253 section 11.3).
    Debug {
        /// The peer wants it seen.
        always_display: bool,
        /// Its text; escape it before it reaches a terminal.
        text: String,
    },
    /// The peer did not know our packet with this sequence number (RFC 4253 section 11.4).
    Unimplemented {
        /// The sequence number of the packet it did not know.
        seq: u32,
    },
    /// A key exchange is over in both directions.
    Exchanged {
        /// It was the first one: `Transport::negotiated` and the peer's key are known from now.
        first: bool,
    },
    /// Client: what we sent along with our KEXINIT was a wrong guess, and the right packet has
    /// left (RFC 4253 section 7). Not every server knows that it is to ignore the first one.
    GuessedWrong,
    /// Login: the server's words for the user (RFC 4252 section 5.4).
    Banner {
        /// Its text.
        text: String,
    },
    /// Login: a request was refused. A server may let some time pass before it carries out the
    /// effects that came with this (A9).
    AuthRefused {
        /// For whom.
        user: String,
        /// `none`, `publickey`, ...
        method: String,
        /// The key's fingerprint, where there was a key.
        key: Option<String>,
        /// The methods that may go on.
        left: String,
        /// The request itself was right, but more are needed.
        partial: bool,
    },
    /// Login: a key of ours could not sign, and the next one is tried.
    AuthUnusable {
        /// The key's fingerprint.
        key: String,
        /// Why.
        why: String,
    },
    /// The peer opened the channel we asked for.
    Opened {
        /// Our number.
        id: LocalId,
        /// What a sender needs.
        grant: Grant,
    },
    /// The peer did not open the channel we asked for; it is gone.
    OpenFailed {
        /// Our number.
        id: LocalId,
        /// Its reason code (RFC 4254 section 5.1).
        reason: u32,
        /// Its words.
        text: String,
    },
    /// The peer asks for a channel: accept or reject.
    OpenRequested {
        /// Our number.
        id: LocalId,
        /// The channel type, one of those offered.
        kind: String,
        /// What a sender needs once it is accepted.
        grant: Grant,
    },
    /// A channel request for the caller; with `want_reply` it must reply, in order.
    Request {
        /// Our number.
        id: LocalId,
        /// What is asked.
        request: Request,
        /// A reply is due.
        want_reply: bool,
    },
    /// The answer to the oldest request of ours that wanted one.
    Reply {
        /// Our number.
        id: LocalId,
        /// It was granted.
        ok: bool,
    },
    /// We may send more: for [`window::Send::add`](crate::window::Send::add).
    Adjusted {
        /// Our number.
        id: LocalId,
        /// How many bytes more.
        credit: u32,
    },
    /// Data of a channel that is not routed; credit it when it is consumed.
    Data {
        /// Our number.
        id: LocalId,
        /// `None`, or the type code of extended data.
        code: Option<u32>,
        /// The bytes.
        data: Vec<u8>,
    },
    /// No more data of the peer follows.
    Eof {
        /// Our number.
        id: LocalId,
    },
    /// The peer reads no more of our data (OpenSSH PROTOCOL section 2.1).
    EndOfWrite {
        /// Our number.
        id: LocalId,
    },
    /// Nothing of the peer follows. Unless it has, the caller closes too, after its senders have
    /// stopped; then the channel is gone.
    Closed {
        /// Our number.
        id: LocalId,
    },
    /// The command ended (RFC 4254 section 6.10).
    ExitStatus {
        /// Our number.
        id: LocalId,
        /// Its status.
        status: u32,
    },
    /// The command was killed (RFC 4254 section 6.10).
    ExitSignal {
        /// Our number.
        id: LocalId,
        /// The signal's name without `SIG`.
        name: String,
        /// It dumped core.
        core: bool,
        /// The server's words.
        text: String,
    },
    /// A global request that [`Limits::answers`](crate::channel::Limits::answers) names; with
    /// `want_reply` the caller owes a `Connection::answer`, in order.
    GlobalRequest {
        /// What is asked.
        name: String,
        /// What came with it; the caller reads it.
        data: Vec<u8>,
        /// A reply is due.
        want_reply: bool,
    },
    /// What we send from here on travels in clear, and what the peer sends from its NEWKEYS on
    /// (docs/none.md): to be told to the user and the log.
    Uncovered {
        /// With a MAC or without.
        cover: Cover,
    },
    /// There will be no switch to clear text after all: why, for the user.
    StillSealed {
        /// In a few words.
        why: &'static str,
    },
    /// The answer to the oldest global request of ours that wanted one.
    GlobalReply {
        /// What was asked.
        name: String,
        /// It was granted.
        ok: bool,
        /// What came with it.
        data: Vec<u8>,
    },
}
