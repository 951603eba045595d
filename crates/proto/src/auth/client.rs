//! The client's side of RFC 4252: prove to be the user in one round trip.
//!
//! ```text
//! begin    as soon as messages may be sealed: service request and first request, unasked
//! handle   SUCCESS: done.  PK_OK: sign.  FAILURE: the next credential
//! ```
//!
//! The first channel may be asked for in the same flight as a signature of the last key, or of one
//! that the server said it would take: should it refuse, nothing else was left to try.
//!
//! There is no `none` request and no key query ahead of a signature, unless signing costs the
//! user something (a passphrase): then the server is asked first whether it would take the key.

use super::{Authenticated, Failed, Login, Step, USERAUTH, msg as m};
use crate::channel::Ahead;
use crate::draft::Draft;
use crate::{Error, Event, Handled, Misbehaved, Outbox, Transport};
use keys::{PublicKey, SigAlg};
use wire::{NameList, Reader, msg};

/// A key pair whose private half is in a file, an agent or the user's head.
pub trait Signer {
    /// The public half.
    fn public_key(&self) -> &PublicKey;

    /// What it may sign with, preferred first.
    fn algs(&self) -> &[SigAlg] {
        self.public_key().sig_algs()
    }

    /// Signing may ask the user for something, so the server is asked first.
    fn is_costly(&self) -> bool {
        false
    }

    /// The signature blob over `data`. `Err` says why not; the next credential is tried.
    fn sign(&mut self, alg: SigAlg, data: &[u8]) -> Result<Vec<u8>, String>;
}

/// The caller's keys, in the order in which they are to be tried.
pub trait Credentials {
    /// The next one, which was not given before. `left`: the methods that the server would go on
    /// with, once it has told.
    fn next(&mut self, left: Option<NameList<'_>>) -> Option<Box<dyn Signer + Send>>;

    /// Whether no other is left.
    fn is_last(&self) -> bool {
        false
    }
}

/// What the transport knows by now.
pub(super) struct Facts<'a> {
    pub(super) session_id: &'a [u8],
    pub(super) sig_algs: Option<&'a [SigAlg]>,
    /// The peer is OpenSSH, which reads on after a channel message that came too early.
    pub(super) reads_on: bool,
}

/// The client before login; owns the transport.
pub struct Client<C> {
    transport: Transport,
    core: Core<C>,
    draft: Draft,
}

impl<C: Credentials> Client<C> {
    /// Logs in as `user` over `transport`, whose first key exchange may still be running.
    pub fn new(transport: Transport, user: impl Into<String>, credentials: C) -> Self {
        Self { transport, core: Core::new(user.into(), credentials), draft: Draft::default() }
    }

    /// One received message, from the first KEXINIT on; `seq` is its packet's sequence number.
    /// After an error the outbox ends with the DISCONNECT that tells the peer.
    pub fn handle(
        mut self,
        seq: u32,
        payload: &[u8],
        out: &mut Outbox,
    ) -> Result<Step<Self>, Error> {
        match self.advance(seq, payload, out) {
            Ok(None) => Ok(Step::Pending(self)),
            Ok(Some(login)) => {
                self.transport.logged_in(out);
                let Self { transport, core, .. } = self;
                let ahead = core.ahead.filter(|_| core.asked_ahead);
                Ok(Step::Done(Authenticated { transport, login, permissions: (), ahead }))
            }
            Err(error) => {
                self.transport.fail(&error, out);
                Err(error)
            }
        }
    }

    /// Asks for the first channel together with the login, if nothing can be lost by that;
    /// [`Authenticated::has_asked_ahead`] tells. To be called before the first exchange ends.
    pub fn ask_ahead(&mut self, ahead: Ahead) {
        self.core.ahead = Some(ahead);
    }

    /// Whether it left with the request that waits for its answer: the server may do what it asks
    /// for, whatever becomes of the connection.
    pub fn has_asked_ahead(&self) -> bool {
        self.core.asked_ahead
    }

    /// The transport, for `start`, `identified` and to look at.
    pub fn transport_mut(&mut self) -> &mut Transport {
        &mut self.transport
    }

    fn advance(
        &mut self,
        seq: u32,
        payload: &[u8],
        out: &mut Outbox,
    ) -> Result<Option<Login>, Error> {
        let handled = self.transport.handle(seq, payload, out)?;
        let Some(session_id) = self.transport.session_id() else { return Ok(None) };
        let facts = Facts {
            session_id,
            sig_algs: self.transport.server_sig_algs(),
            reads_on: self.transport.peer().is_some_and(|peer| peer.is_openssh_from(0, 0)),
        };
        let login = match handled {
            Handled::Upper => self.core.handle(payload, &facts, &mut self.draft)?,
            Handled::Done => None,
        };
        if self.transport.compresses_after_login() {
            // What leaves before the login is confirmed is not compressed, and would be taken to be.
            self.core.ahead = None;
        }
        self.core.begin(&facts, &mut self.draft)?;
        self.draft.leave(&mut self.transport, out)?;
        Ok(login)
    }
}

/// The request that waits for its answer.
enum Asked {
    Nothing,
    None,
    Query(Box<dyn Signer + Send>, SigAlg),
    Signed(Box<dyn Signer + Send>, SigAlg),
}

impl Asked {
    fn login(&self, user: &str) -> Option<Login> {
        let (method, key) = match self {
            Self::Nothing => return None,
            Self::None => ("none", None),
            Self::Query(signer, _) | Self::Signed(signer, _) => {
                ("publickey", Some(signer.public_key().fingerprint()))
            }
        };
        Some(Login { user: user.to_owned(), method, key })
    }
}

/// The machine without the transport.
pub(super) struct Core<C> {
    user: String,
    credentials: C,
    begun: bool,
    accepted: bool,
    asked: Asked,
    /// What is to be asked for together with the login.
    pub(super) ahead: Option<Ahead>,
    /// It left with the request that waits for its answer.
    pub(super) asked_ahead: bool,
}

impl<C: Credentials> Core<C> {
    pub(super) fn new(user: String, credentials: C) -> Self {
        let (ahead, asked_ahead) = (None, false);
        let asked = Asked::Nothing;
        Self { user, credentials, begun: false, accepted: false, asked, ahead, asked_ahead }
    }

    /// Service request and first request in one flight (RFC 4253 section 10 lets us go on before
    /// SERVICE_ACCEPT). Without any key: `none`, which tells the methods, and the banner.
    pub(super) fn begin(&mut self, facts: &Facts<'_>, draft: &mut Draft) -> Result<(), Error> {
        if std::mem::replace(&mut self.begun, true) {
            return Ok(());
        }
        draft.send(m::service_request());
        if !self.offer_next(None, facts, draft) {
            self.asked = Asked::None;
            draft.send(m::none_request(&self.user));
        }
        Ok(())
    }

    /// One message of RFC 4252; how the login succeeded, if it did.
    pub(super) fn handle(
        &mut self,
        payload: &[u8],
        facts: &Facts<'_>,
        draft: &mut Draft,
    ) -> Result<Option<Login>, Error> {
        let mut r = Reader::new(payload);
        let number = r.u8("message number")?;
        match (number, self.accepted) {
            (msg::SERVICE_ACCEPT, false) if self.begun => self.service(&mut r)?,
            (msg::USERAUTH_BANNER, _) => {
                draft.event(Event::Banner { text: m::read_banner(&mut r)? });
            }
            (msg::USERAUTH_SUCCESS, true) => return self.succeeded(&r).map(Some),
            (msg::USERAUTH_FAILURE, true) => self.refused(&mut r, facts, draft)?,
            (msg::USERAUTH_PK_OK, true) => self.would_take(&mut r, facts, draft)?,
            _ => return Err(unasked(number)),
        }
        Ok(None)
    }

    fn service(&mut self, r: &mut Reader<'_>) -> Result<(), Error> {
        match m::read_service(r)? {
            USERAUTH => self.accepted = true,
            other => return Err(Failed::Service(other.to_owned()).into()),
        }
        Ok(())
    }

    fn succeeded(&mut self, r: &Reader<'_>) -> Result<Login, Error> {
        r.end("USERAUTH_SUCCESS")?;
        self.asked.login(&self.user).ok_or_else(|| unasked(msg::USERAUTH_SUCCESS))
    }

    fn refused(
        &mut self,
        r: &mut Reader<'_>,
        facts: &Facts<'_>,
        draft: &mut Draft,
    ) -> Result<(), Error> {
        let (left, partial) = m::read_failure(r)?;
        let asked = std::mem::replace(&mut self.asked, Asked::Nothing);
        if std::mem::take(&mut self.asked_ahead) {
            // The server has thrown it away.
            self.ahead = None;
        }
        let tried = asked.login(&self.user).ok_or_else(|| unasked(msg::USERAUTH_FAILURE))?;
        draft.event(Event::AuthRefused {
            user: tried.user,
            method: tried.method.to_owned(),
            key: tried.key,
            left: left.as_str().to_owned(),
            partial,
        });
        if left.contains("publickey")
            && (self.sign_otherwise(asked, facts, draft)
                || self.offer_next(Some(left), facts, draft))
        {
            return Ok(());
        }
        Err(Failed::Denied { methods: left.as_str().to_owned() }.into())
    }

    /// The first request left before the server's EXT_INFO was in: if it takes another algorithm
    /// of this key, the key deserves a second try.
    fn sign_otherwise(&mut self, asked: Asked, facts: &Facts<'_>, draft: &mut Draft) -> bool {
        let Asked::Signed(signer, before) = asked else { return false };
        let told = facts.sig_algs.unwrap_or_default();
        let other = signer.algs().iter().copied().find(|alg| told.contains(alg));
        match other {
            Some(alg) if !told.contains(&before) => self.sign(signer, alg, facts, draft),
            _ => false,
        }
    }

    /// Offers credentials until one could be; whether one was.
    fn offer_next(
        &mut self,
        left: Option<NameList<'_>>,
        facts: &Facts<'_>,
        draft: &mut Draft,
    ) -> bool {
        while let Some(signer) = self.credentials.next(left) {
            if self.offer(signer, facts, draft) {
                return true;
            }
        }
        false
    }

    fn offer(
        &mut self,
        signer: Box<dyn Signer + Send>,
        facts: &Facts<'_>,
        draft: &mut Draft,
    ) -> bool {
        let Some(alg) = choose(signer.algs(), facts.sig_algs) else {
            unusable(&*signer, "the server takes none of its signature algorithms", draft);
            return false;
        };
        if !signer.is_costly() {
            let signed = self.sign(signer, alg, facts, draft);
            // By another algorithm the same key may be taken, once EXT_INFO has told.
            let may_sign_again = matches!(&self.asked, Asked::Signed(signer, _)
                if signer.algs().len() > 1 && facts.sig_algs.is_none());
            if signed && self.credentials.is_last() && (facts.reads_on || !may_sign_again) {
                self.go_ahead(draft);
            }
            return signed;
        }
        draft.send(m::key_query(&self.user, alg, signer.public_key().blob()));
        self.asked = Asked::Query(signer, alg);
        true
    }

    fn sign(
        &mut self,
        mut signer: Box<dyn Signer + Send>,
        alg: SigAlg,
        facts: &Facts<'_>,
        draft: &mut Draft,
    ) -> bool {
        let mut request = m::key_request(&self.user, alg, signer.public_key().blob());
        match signer.sign(alg, &m::to_be_signed(facts.session_id, request.as_slice())) {
            Ok(signature) => {
                draft.send(request.string(signature).take());
                self.asked = Asked::Signed(signer, alg);
                true
            }
            Err(why) => {
                unusable(&*signer, &why, draft);
                false
            }
        }
    }

    /// After a signature that is the last, or that the server will take.
    fn go_ahead(&mut self, draft: &mut Draft) {
        self.asked_ahead = self.ahead.as_ref().is_some_and(|ahead| ahead.send(draft));
    }

    /// PK_OK must name the key that was asked about (RFC 4252 section 7).
    fn would_take(
        &mut self,
        r: &mut Reader<'_>,
        facts: &Facts<'_>,
        draft: &mut Draft,
    ) -> Result<(), Error> {
        let (algorithm, blob) = m::read_pk_ok(r)?;
        match std::mem::replace(&mut self.asked, Asked::Nothing) {
            Asked::Query(signer, alg)
                if alg.name() == algorithm && signer.public_key().blob() == blob =>
            {
                if self.sign(signer, alg, facts, draft) {
                    self.go_ahead(draft);
                    return Ok(());
                }
                if self.offer_next(None, facts, draft) {
                    return Ok(());
                }
                Err(Failed::Denied { methods: "publickey".to_owned() }.into())
            }
            _ => Err(unasked(msg::USERAUTH_PK_OK)),
        }
    }
}

/// The key's first algorithm that the server takes. A key with a single one is offered whatever
/// the list says: the list may be incomplete (RFC 8308 section 3.1).
fn choose(of_key: &[SigAlg], told: Option<&[SigAlg]>) -> Option<SigAlg> {
    match (of_key, told) {
        ([only], _) => Some(*only),
        (_, None) => of_key.first().copied(),
        (_, Some(told)) => of_key.iter().copied().find(|alg| told.contains(alg)),
    }
}

fn unusable(signer: &dyn Signer, why: &str, draft: &mut Draft) {
    let key = signer.public_key().fingerprint();
    draft.event(Event::AuthUnusable { key, why: why.to_owned() });
}

fn unasked(number: u8) -> Error {
    let name = msg::name(number).unwrap_or("a message");
    Misbehaved::Upper(format!("peer sent {name}, which answers nothing we asked")).into()
}
