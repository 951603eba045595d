//! One key exchange (RFC 4253 sections 7 and 8) as states that the next message consumes.
//!
//! ```text
//! client   ExpectKexInit --KEXINIT--> ExpectReply --KEX_REPLY--> ExpectNewKeys --NEWKEYS--> Keys
//! server   ExpectKexInit --KEXINIT--> ExpectInit  --KEX_INIT---> ExpectNewKeys --NEWKEYS--> Keys
//! ```
//!
//! A state holds what is valid in it; there is no field that "is set by then". Which message may
//! come is `table`'s business, order on the wire is `transport`'s.

pub(crate) mod client;
pub(crate) mod server;
mod transcript;

use crate::kexinit::KexInit;
use crate::negotiate::{Negotiated, guess_is_right, negotiate};
use crate::{Compression, Error, Ident, NewKeys, Role};
use crypt::kex::SharedSecret;
use crypt::{Cover, Direction, KeyMaterial};
use transcript::Transcript;

/// What an exchange needs to know of its connection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Connection<'a> {
    pub(crate) ours: &'a Ident,
    pub(crate) theirs: &'a Ident,
    /// The first exchange's hash; `None` while that one runs.
    pub(crate) session_id: Option<&'a [u8]>,
    /// Strict key exchange.
    pub(crate) strict: bool,
}

/// Both KEXINITs are in: what every next state begins with.
pub(crate) struct Agreed {
    pub(crate) negotiated: Negotiated,
    transcript: Transcript,
    /// Packets of the peer to ignore: one, if it guessed wrongly (B5).
    pub(crate) ignore_guess: bool,
    /// Our own guess, if we sent one, was right.
    guessed: bool,
}

impl Agreed {
    fn new(role: Role, c: &Connection<'_>, ours: KexInit, theirs: KexInit) -> Result<Self, Error> {
        let right = guess_is_right(&ours, &theirs);
        let (ignore_guess, guessed) = (theirs.lists.follows && !right, ours.lists.follows && right);
        let (client, server, idents) = match role {
            Role::Client => (ours, theirs, (c.ours, c.theirs)),
            Role::Server => (theirs, ours, (c.theirs, c.ours)),
        };
        let negotiated = negotiate(role, &client, &server)?;
        let transcript = Transcript::new(idents, client, server);
        Ok(Self { negotiated, transcript, ignore_guess, guessed })
    }
}

/// The exchange is computed: keys for both directions, ours in use at once.
pub(crate) struct Computed {
    /// To seal with, directly after our NEWKEYS.
    pub(crate) seal: Box<NewKeys>,
    /// The first exchange's hash: the session identifier.
    pub(crate) session_id: Vec<u8>,
    pub(crate) next: ExpectNewKeys,
}

/// Waits for the peer's NEWKEYS.
pub(crate) struct ExpectNewKeys {
    open: Box<NewKeys>,
}

impl ExpectNewKeys {
    /// RFC 4253 section 7.3: after it "all messages MUST use the new keys".
    pub(crate) fn handle(self, payload: &[u8]) -> Result<Box<NewKeys>, Error> {
        match payload {
            [_] => Ok(self.open),
            _ => Err(wire::Malformed("NEWKEYS: trailing bytes").into()),
        }
    }
}

/// From hash and secret to the keys of `role` (RFC 4253 section 7.2).
fn computed(
    role: Role,
    c: &Connection<'_>,
    negotiated: &Negotiated,
    hash: &[u8],
    secret: &SharedSecret,
) -> Computed {
    let session_id = c.session_id.unwrap_or(hash).to_vec();
    let keys = |direction, cover: Cover, compression: Compression| {
        let encoded = secret.encoded();
        let of = negotiated.method.hash();
        let material = KeyMaterial::derive(of, encoded, hash, &session_id, direction, cover);
        let compress = compression == Compression::Delayed;
        Box::new(NewKeys { cover, material, reset_seq: c.strict, compress })
    };
    let Negotiated { c2s_compression, s2c_compression, .. } = *negotiated;
    let c2s = keys(Direction::ClientToServer, negotiated.c2s, c2s_compression);
    let s2c = keys(Direction::ServerToClient, negotiated.s2c, s2c_compression);
    let (seal, open) = match role {
        Role::Client => (c2s, s2c),
        Role::Server => (s2c, c2s),
    };
    Computed { seal, session_id, next: ExpectNewKeys { open } }
}
