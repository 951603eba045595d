//! Transport: RFC 4253 from the first KEXINIT on, both roles, as one machine without I/O.
//!
//! ```text
//! start, rekey    our KEXINIT: the fence falls, the layers above wait in `held`
//! handle          one received message: `table` judges it, then `generic`, `exchange` or above
//! send            one message of the layers above: leaves at once, or after our NEWKEYS
//! ```
//!
//! Called by one thread at a time; every call fills an [`Outbox`] that is to be carried out
//! before the next. After an error the machine is dead: nothing is handled, nothing leaves but
//! the DISCONNECT of [`Transport::fail`].

mod clear;
mod exchange;
mod generic;
mod held;
#[cfg(test)]
mod tests;
mod zip;

pub(crate) use clear::ClearOffer;
pub use held::{MAX_BEFORE_LOGIN, MAX_IN_SESSION};

use crate::config::{HostKeys, HostTrust, KexConfig};
use crate::ext_info::{ExtInfo, Place};
use crate::kex::{ExpectNewKeys, client, server};
use crate::negotiate::Negotiated;
use crate::table::{self, Phase, Role, Verdict};
use crate::{Error, Ident, Misbehaved, Outbox, Peer};
use clear::Clear;
use held::Held;
use keys::{PublicKey, SigAlg};
use std::sync::Arc;
use wire::msg::{self, Disconnect};
use wire::{Malformed, Writer};
use zip::Zip;

/// Who deals with a message that was received.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Handled {
    /// The transport did.
    Done,
    /// It belongs to the layer above: authentication or connection.
    Upper,
}

/// What decides about host keys: trust on one side, possession on the other.
enum Authority {
    Client(Arc<dyn HostTrust + Send + Sync>),
    Server(Arc<dyn HostKeys + Send + Sync>),
}

/// Where the exchange stands.
enum Stage {
    /// None is running.
    Idle,
    /// Our KEXINIT is out.
    ClientInit(client::ExpectKexInit),
    /// Our KEXINIT is out.
    ServerInit(server::ExpectKexInit),
    /// Our KEX_INIT is out.
    Reply(client::ExpectReply),
    /// The client's KEX_INIT is due.
    Init(server::ExpectInit),
    /// Our NEWKEYS is out.
    NewKeys(ExpectNewKeys),
    /// Failed; the peer is not told yet.
    Failed,
    /// Disconnected by either side.
    Closed,
}

/// What the first exchange settles for the whole connection.
struct Settled {
    session_id: Vec<u8>,
    /// Client: the server's key (B3).
    host_key: Option<PublicKey>,
}

/// Key exchanges that a client may start before login, on top of the first (B11). Stock clients
/// start none; one is for those that count time or bytes from the connection's beginning.
const MAX_EARLY_REKEYS: u32 = 1;

/// One side of a connection.
pub struct Transport {
    cfg: KexConfig,
    authority: Authority,
    ours: Ident,
    peer: Option<Peer>,
    stage: Stage,
    /// Between our KEXINIT and our NEWKEYS; from the beginning, as there are no keys yet.
    fenced: bool,
    held: Held,
    /// The flags of the first KEXINITs (B1).
    strict: bool,
    peer_wants_ext_info: bool,
    settled: Option<Settled>,
    /// The peer's first NEWKEYS is in.
    opened: bool,
    logged_in: bool,
    /// Server: rekeys of the client before login.
    early_rekeys: u32,
    negotiated: Option<Negotiated>,
    /// The server's first choices in its last KEXINIT agree with what was negotiated: a guess in
    /// the next exchange will be right.
    can_guess: bool,
    /// Server: what EXT_INFO says of users' keys.
    login_algs: Vec<SigAlg>,
    ext_info: ExtInfo,
    ext_info_place: Place,
    /// The peer's first message is in.
    any_handled: bool,
    clear: Clear,
    zip: Zip,
}

impl Transport {
    /// The side that connects.
    pub fn client(ours: Ident, cfg: KexConfig, trust: Arc<dyn HostTrust + Send + Sync>) -> Self {
        Self::new(ours, cfg, Authority::Client(trust))
    }

    /// The side that listens.
    pub fn server(ours: Ident, cfg: KexConfig, keys: Arc<dyn HostKeys + Send + Sync>) -> Self {
        Self::new(ours, cfg, Authority::Server(keys))
    }

    fn new(ours: Ident, cfg: KexConfig, authority: Authority) -> Self {
        Self {
            cfg,
            authority,
            ours,
            peer: None,
            stage: Stage::Idle,
            fenced: true,
            held: Held::default(),
            strict: false,
            peer_wants_ext_info: false,
            settled: None,
            opened: false,
            logged_in: false,
            early_rekeys: 0,
            negotiated: None,
            can_guess: false,
            login_algs: SigAlg::ALL.to_vec(),
            ext_info: ExtInfo::default(),
            ext_info_place: Place::default(),
            any_handled: false,
            clear: Clear::default(),
            zip: Zip::default(),
        }
    }

    /// Our first KEXINIT, and a client's guessed kex packet if it is to guess. Needs nothing of
    /// the peer, not even its identification.
    pub fn start(&mut self, out: &mut Outbox) -> Result<(), Error> {
        if matches!(self.stage, Stage::Idle) && self.settled.is_none() {
            self.offer(true, out)?;
        }
        Ok(())
    }

    /// The peer's identification; must be known before the first [`handle`](Self::handle).
    pub fn identified(&mut self, theirs: Ident) {
        self.peer.get_or_insert_with(|| Peer::new(theirs));
    }

    /// One received payload; `seq` is its packet's sequence number.
    pub fn handle(&mut self, seq: u32, payload: &[u8], out: &mut Outbox) -> Result<Handled, Error> {
        if self.is_closed() {
            return Ok(Handled::Done);
        }
        let result = self.judge(seq, payload, out);
        if result.is_err() {
            self.stage = Stage::Failed;
        }
        result
    }

    fn judge(&mut self, seq: u32, payload: &[u8], out: &mut Outbox) -> Result<Handled, Error> {
        let number = *payload.first().ok_or(Malformed("message: empty"))?;
        let phase = self.phase();
        if std::mem::replace(&mut self.any_handled, true) && seq == 0 && !self.opened {
            return Err(Misbehaved::SequenceWrapped.into());
        }
        let verdict = table::verdict(self.role(), phase, self.strict, number);
        if phase == Phase::Login && verdict != Verdict::Forbidden {
            self.ext_info_place = self.ext_info_place.step(self.role(), number)?;
        }
        match verdict {
            Verdict::Generic => self.generic(number, payload, out)?,
            Verdict::Kex => self.exchange(seq, number, payload, out)?,
            Verdict::WrongGuess => self.ignore_guess(),
            Verdict::Upper => return Ok(Handled::Upper),
            Verdict::Drop => self.check_no_login()?,
            Verdict::Unknown => out.send(Writer::message(msg::UNIMPLEMENTED).u32(seq).take()),
            Verdict::Forbidden => return Err(Misbehaved::Unexpected { number, phase }.into()),
        }
        Ok(Handled::Done)
    }

    /// A message of the layers above: leaves at once, or after our NEWKEYS (B2). Fails when the
    /// peer makes us hold too much of them.
    pub fn send(&mut self, payload: Vec<u8>, out: &mut Outbox) -> Result<(), Error> {
        let number = payload.first().copied().unwrap_or_default();
        if self.is_closed() {
            return Ok(());
        }
        if !self.fenced || table::may_leave_fenced(self.settled.is_none(), number) {
            out.send(payload);
            return Ok(());
        }
        let most = if self.logged_in { MAX_IN_SESSION } else { MAX_BEFORE_LOGIN };
        self.held.push(payload, most).map_err(|why| {
            self.stage = Stage::Failed;
            why.into()
        })
    }

    /// Starts a rekey; does nothing while an exchange is running, and before login: OpenSSH
    /// answers an early one with UNIMPLEMENTED, and both sides would wait for ever. A peer's
    /// early one is taken.
    pub fn rekey(&mut self, out: &mut Outbox) -> Result<(), Error> {
        if matches!(self.stage, Stage::Idle) && self.logged_in && self.may_exchange() {
            self.offer(self.can_guess, out)?;
        }
        Ok(())
    }

    /// DISCONNECT (RFC 4253 section 11.1); nothing is handled or sent afterwards.
    pub fn disconnect(&mut self, code: Disconnect, text: &str, out: &mut Outbox) {
        if !matches!(std::mem::replace(&mut self.stage, Stage::Closed), Stage::Closed) {
            let mut w = Writer::message(msg::DISCONNECT);
            out.send(w.u32(code as u32).string(text).string("").take());
        }
    }

    /// DISCONNECT because of an error of this machine or of a layer above.
    pub fn fail(&mut self, error: &Error, out: &mut Outbox) {
        self.disconnect(error.disconnect_code(), &error.for_peer(), out);
    }

    /// Server: the algorithms that users' keys may sign with, for `server-sig-algs`; all of them
    /// unless set before the first exchange ends.
    pub(crate) fn set_login_algs(&mut self, algs: &[SigAlg]) {
        algs.clone_into(&mut self.login_algs);
    }

    /// The user is there: the connection protocol may begin. Called by the auth machines: on the
    /// server directly after USERAUTH_SUCCESS was sent, on the client when it came in.
    pub(crate) fn logged_in(&mut self, out: &mut Outbox) {
        self.logged_in = true;
        self.zip.begin(out);
    }

    /// What we send is compressed from the end of the login on.
    pub(crate) fn compresses_after_login(&self) -> bool {
        self.zip.is_sending()
    }

    /// What the peer may be doing.
    fn phase(&self) -> Phase {
        let first = !self.opened;
        let ignore = |agreed: &crate::kex::Agreed| match (agreed.ignore_guess, first) {
            (true, true) => Phase::FirstGuess,
            (true, false) => Phase::RekeyGuess,
            (false, true) => Phase::FirstMethod,
            (false, false) => Phase::RekeyMethod,
        };
        match &self.stage {
            Stage::Reply(state) => ignore(&state.agreed),
            Stage::Init(state) => ignore(&state.agreed),
            Stage::NewKeys(_) if first => Phase::FirstNewKeys,
            Stage::NewKeys(_) => Phase::RekeyNewKeys,
            _ if first => Phase::FirstKexInit,
            _ if self.logged_in => Phase::Session,
            _ => Phase::Login,
        }
    }

    /// B5: exactly one.
    fn ignore_guess(&mut self) {
        match &mut self.stage {
            Stage::Reply(state) => state.agreed.ignore_guess = false,
            Stage::Init(state) => state.agreed.ignore_guess = false,
            _ => {}
        }
    }

    /// Our side.
    pub fn role(&self) -> Role {
        match self.authority {
            Authority::Client(_) => Role::Client,
            Authority::Server(_) => Role::Server,
        }
    }

    /// Whether channel data may come now: not between the peer's KEXINIT and its NEWKEYS (B2).
    pub fn hears_data(&self) -> bool {
        self.phase() == Phase::Session
    }

    /// Nothing of the layers above leaves: between our KEXINIT and our NEWKEYS, and before.
    pub fn is_fenced(&self) -> bool {
        self.fenced
    }

    /// An exchange is running in either direction.
    pub fn is_exchanging(&self) -> bool {
        !matches!(self.stage, Stage::Idle | Stage::Failed | Stage::Closed)
    }

    /// Disconnected by either side, or failed.
    pub fn is_closed(&self) -> bool {
        matches!(self.stage, Stage::Failed | Stage::Closed)
    }

    /// The session identifier (RFC 4253 section 7.2), as soon as our first NEWKEYS is out.
    pub fn session_id(&self) -> Option<&[u8]> {
        self.settled.as_ref().map(|settled| settled.session_id.as_slice())
    }

    /// Client: the host key that the peer proved to have.
    pub fn host_key(&self) -> Option<&PublicKey> {
        self.settled.as_ref()?.host_key.as_ref()
    }

    /// The peer, once identified.
    pub fn peer(&self) -> Option<&Peer> {
        self.peer.as_ref()
    }

    /// What the last exchange that got so far agreed on.
    pub fn negotiated(&self) -> Option<&Negotiated> {
        self.negotiated.as_ref()
    }

    /// Strict key exchange is in force.
    pub fn is_strict(&self) -> bool {
        self.strict
    }

    /// `server-sig-algs` of RFC 8308 section 3.1, those we know; `None` when not told.
    pub fn server_sig_algs(&self) -> Option<&[SigAlg]> {
        self.ext_info.server_sig_algs.as_deref()
    }

    /// Bytes of messages that wait for our NEWKEYS. Tests and fuzz targets hold them to their bound.
    pub fn held_bytes(&self) -> usize {
        self.held.bytes()
    }
}
