//! What a caller gets to know, beside what it must do.

/// One thing that happened.
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
    /// The answer to `Transport::ping` (OpenSSH PROTOCOL section 1.10).
    Pong(Vec<u8>),
}
