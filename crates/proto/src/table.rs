//! Which message may come now: by our role, the phase and strict key exchange (A1, A3, B1).
//!
//! One row per message; `transport` asks before it looks at anything but the first byte. A new
//! message is a new row. What has no row is unknown, what has a row and does not fit ends the
//! connection.

use std::fmt;
use wire::msg;

/// Which side we are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// The one who connects.
    Client,
    /// The one who listens.
    Server,
}

impl Role {
    /// The other side.
    pub fn peer(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Client => "client",
            Self::Server => "server",
        })
    }
}

/// What the peer may be doing, as its messages and ours determine it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u16)]
pub enum Phase {
    /// First exchange: its KEXINIT is due.
    FirstKexInit = 1 << 0,
    /// First exchange: a packet it guessed wrongly is due, to be ignored (B5).
    FirstGuess = 1 << 1,
    /// First exchange: its part of the method is due.
    FirstMethod = 1 << 2,
    /// First exchange: its NEWKEYS is due.
    FirstNewKeys = 1 << 3,
    /// There are keys but no user. Also: our rekey KEXINIT is out, its own is not in.
    Login = 1 << 4,
    /// There is a user. Also: our rekey KEXINIT is out, its own is not in.
    Session = 1 << 5,
    /// A rekey: a packet it guessed wrongly is due, to be ignored (B5).
    RekeyGuess = 1 << 6,
    /// A rekey: its part of the method is due.
    RekeyMethod = 1 << 7,
    /// A rekey: its NEWKEYS is due.
    RekeyNewKeys = 1 << 8,
}

impl Phase {
    /// Every phase.
    pub const ALL: [Self; 9] = [
        Self::FirstKexInit,
        Self::FirstGuess,
        Self::FirstMethod,
        Self::FirstNewKeys,
        Self::Login,
        Self::Session,
        Self::RekeyGuess,
        Self::RekeyMethod,
        Self::RekeyNewKeys,
    ];

    /// Keys are there and the peer is not inside an exchange.
    fn is_open(self) -> bool {
        matches!(self, Self::Login | Self::Session)
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::FirstKexInit => "before its KEXINIT",
            Self::FirstGuess | Self::FirstMethod => "during the first key exchange",
            Self::FirstNewKeys => "instead of its first NEWKEYS",
            Self::Login => "before login",
            Self::Session => "after login",
            Self::RekeyGuess | Self::RekeyMethod => "during a rekey",
            Self::RekeyNewKeys => "instead of NEWKEYS of a rekey",
        })
    }
}

/// What becomes of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The transport's own, legal at nearly any time.
    Generic,
    /// Belongs to the running exchange, or starts one.
    Kex,
    /// A wrongly guessed packet: drop it, once (RFC 4253 section 7).
    WrongGuess,
    /// For the layer above.
    Upper,
    /// Legal, and without effect.
    Drop,
    /// Not in the table: UNIMPLEMENTED is the answer (RFC 4253 section 11.4).
    Unknown,
    /// In the table, but not now or not from this side: disconnect.
    Forbidden,
}

const ANY: u16 = 0x1ff;
const OPEN: u16 = Phase::Login as u16 | Phase::Session as u16;
const FIRST: u16 = Phase::FirstKexInit as u16
    | Phase::FirstGuess as u16
    | Phase::FirstMethod as u16
    | Phase::FirstNewKeys as u16;
const GUESS: u16 = Phase::FirstGuess as u16 | Phase::RekeyGuess as u16;
const METHOD: u16 = Phase::FirstMethod as u16 | Phase::RekeyMethod as u16;
const NEWKEYS: u16 = Phase::FirstNewKeys as u16 | Phase::RekeyNewKeys as u16;
const LOGIN: u16 = Phase::Login as u16;
const SESSION: u16 = Phase::Session as u16;

const C: u8 = 1;
const S: u8 = 2;
const BOTH: u8 = C | S;

/// One line of the table: message numbers, who may send them, when, and to what effect.
struct Row {
    numbers: (u8, u8),
    senders: u8,
    phases: u16,
    /// Phases that strict key exchange takes away.
    lax_only: u16,
    verdict: Verdict,
}

const fn row(first: u8, last: u8, senders: u8, phases: u16, verdict: Verdict) -> Row {
    Row { numbers: (first, last), senders, phases, lax_only: 0, verdict }
}

/// OpenSSH PROTOCOL section 1.9: with strict key exchange nothing that is not strictly required
/// may come before the first NEWKEYS.
const fn lax(mut row: Row) -> Row {
    row.lax_only = FIRST;
    row
}

use Verdict::{Drop, Forbidden, Generic, Kex, Unknown, Upper, WrongGuess};

#[rustfmt::skip]
const TABLE: &[Row] = &[
    row(msg::DISCONNECT, msg::DISCONNECT, BOTH, ANY, Generic),
    lax(row(msg::IGNORE, msg::DEBUG, BOTH, ANY, Generic)),
    row(msg::SERVICE_REQUEST, msg::SERVICE_REQUEST, C, LOGIN, Upper),
    row(msg::SERVICE_ACCEPT, msg::SERVICE_ACCEPT, S, LOGIN, Upper),
    row(msg::EXT_INFO, msg::EXT_INFO, BOTH, LOGIN, Generic),
    row(msg::KEXINIT, msg::KEXINIT, BOTH, Phase::FirstKexInit as u16 | OPEN, Kex),
    row(msg::NEWKEYS, msg::NEWKEYS, BOTH, NEWKEYS, Kex),
    row(msg::KEX_INIT, msg::KEX_INIT, C, METHOD, Kex),
    row(msg::KEX_REPLY, msg::KEX_REPLY, S, METHOD, Kex),
    row(30, 49, BOTH, GUESS, WrongGuess),
    row(msg::USERAUTH_REQUEST, msg::USERAUTH_REQUEST, C, LOGIN, Upper),
    // RFC 4252 section 5.1: requests after success "SHOULD be silently ignored".
    row(msg::USERAUTH_REQUEST, msg::USERAUTH_REQUEST, C, SESSION, Drop),
    row(msg::USERAUTH_FAILURE, msg::USERAUTH_BANNER, S, LOGIN, Upper),
    row(msg::USERAUTH_PK_OK, msg::USERAUTH_PK_OK, S, LOGIN, Upper),
    row(msg::GLOBAL_REQUEST, msg::REQUEST_FAILURE, BOTH, SESSION, Upper),
    row(msg::CHANNEL_OPEN, msg::CHANNEL_FAILURE, BOTH, SESSION, Upper),
    // RFC 4250 section 4.1.2: the rest of the connection protocol. Unknown, once it exists (A2).
    row(80, 127, BOTH, SESSION, Unknown),
    row(msg::PING, msg::PONG, BOTH, OPEN, Generic),
];

/// What becomes of message `number` that the peer of `role` sent in `phase`.
pub fn verdict(role: Role, phase: Phase, strict: bool, number: u8) -> Verdict {
    let sender = if role == Role::Server { C } else { S };
    let mut listed = false;
    for row in TABLE.iter().filter(|row| (row.numbers.0..=row.numbers.1).contains(&number)) {
        let phases = if strict { row.phases & !row.lax_only } else { row.phases };
        if row.senders & sender != 0
            && phases & phase as u16 != 0
            && !(listed && row.verdict == Unknown)
        {
            return row.verdict;
        }
        listed = true;
    }
    if listed || !phase.is_open() { Forbidden } else { Unknown }
}

/// Whether that message has any place there; an unknown one is answered, but has none (A1).
pub fn allowed(role: Role, phase: Phase, strict: bool, number: u8) -> bool {
    !matches!(verdict(role, phase, strict, number), Unknown | Forbidden)
}

/// Whether `number` may leave between our KEXINIT and our NEWKEYS (B2, RFC 4253 section 7.1).
/// In a first exchange only DISCONNECT may: strictness is the peer's to demand.
pub(crate) fn may_leave_fenced(first: bool, number: u8) -> bool {
    let last = if first { msg::DISCONNECT } else { msg::DEBUG };
    (msg::DISCONNECT..=last).contains(&number)
}

#[cfg(test)]
mod tests;
