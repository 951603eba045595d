//! Transport: the machine of RFC 4253, both roles.

use crate::config::{HostKeys, HostTrust, KexConfig};
use crate::{Error, Ident, Outbox, Peer, Role};
use keys::{PublicKey, SigAlg};
use std::sync::Arc;
use wire::msg::Disconnect;

/// Who deals with a message that was received.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Handled {
    /// The transport did.
    Done,
    /// It belongs to the layer above: authentication or connection.
    Upper,
}

/// One side of a connection, from the identification on.
pub struct Transport {
    role: Role,
}

#[allow(unused_variables, missing_docs, clippy::todo)]
impl Transport {
    /// The side that connects.
    pub fn client(ours: Ident, cfg: KexConfig, trust: Arc<dyn HostTrust + Send + Sync>) -> Self {
        todo!()
    }
    /// The side that listens.
    pub fn server(ours: Ident, cfg: KexConfig, keys: Arc<dyn HostKeys + Send + Sync>) -> Self {
        todo!()
    }
    /// Our first KEXINIT, and the guessed kex packet if any.
    pub fn start(&mut self, out: &mut Outbox) -> Result<(), Error> {
        todo!()
    }
    /// The peer's identification; must be known before the first `handle`.
    pub fn identified(&mut self, theirs: Ident) {
        todo!()
    }
    /// One received payload; `seq` is its packet's sequence number.
    pub fn handle(&mut self, seq: u32, payload: &[u8], out: &mut Outbox) -> Result<Handled, Error> {
        todo!()
    }
    /// A message of the layer above: leaves at once, or after our NEWKEYS (B2).
    pub fn send(&mut self, payload: Vec<u8>, out: &mut Outbox) -> Result<(), Error> {
        todo!()
    }
    /// Starts a rekey; does nothing while an exchange is running.
    pub fn rekey(&mut self, out: &mut Outbox) -> Result<(), Error> {
        todo!()
    }
    /// `PING` (only to a peer that `peer_pings`); answered by `Event::Pong`.
    pub fn ping(&mut self, data: &[u8], out: &mut Outbox) -> Result<(), Error> {
        todo!()
    }
    /// DISCONNECT; nothing is sent or handled afterwards.
    pub fn disconnect(&mut self, code: Disconnect, text: &str, out: &mut Outbox) {
        todo!()
    }
    /// The user is there: the connection protocol may begin. Called by the auth machines: on the
    /// server directly after USERAUTH_SUCCESS was sent, on the client when it came in.
    pub(crate) fn logged_in(&mut self) {
        todo!()
    }
    /// Our side.
    pub fn role(&self) -> Role {
        self.role
    }
    /// Between our KEXINIT and our NEWKEYS.
    pub fn is_fenced(&self) -> bool {
        todo!()
    }
    /// An exchange is running in either direction.
    pub fn is_exchanging(&self) -> bool {
        todo!()
    }
    /// The session identifier (RFC 4253 section 7.2), from the moment messages may be sealed.
    pub fn session_id(&self) -> Option<&[u8]> {
        todo!()
    }
    /// Client: the host key that the peer proved to have.
    pub fn host_key(&self) -> Option<&PublicKey> {
        todo!()
    }
    /// The peer, once identified.
    pub fn peer(&self) -> Option<&Peer> {
        todo!()
    }
    /// `server-sig-algs` of RFC 8308 section 3.1, those we know; `None` when not told.
    pub fn server_sig_algs(&self) -> Option<&[SigAlg]> {
        todo!()
    }
    /// The peer answers `PING`.
    pub fn peer_pings(&self) -> bool {
        todo!()
    }
}
