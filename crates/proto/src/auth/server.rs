//! The server's side of RFC 4252: one decision per request.
//!
//! ```text
//! handle   SERVICE_REQUEST -> ACCEPT.  USERAUTH_REQUEST -> count, decide, answer
//! count    every request is a try: `none`, queries, unknown methods (A10)
//! decide   the only function that grants a login (A7)
//! ```
//!
//! A refusal is the same message after the same work, whoever the user is (A9): the policy is
//! asked in every case in which a key can be read, and does the same look-ups for a user that
//! there is not.

use super::msg::{KeyRequest, Method, Request};
use super::{Authenticated, CONNECTION, Failed, Login, Step, USERAUTH, msg as m};
use crate::draft::Draft;
use crate::{Error, Event, Handled, Misbehaved, Outbox, Transport};
use keys::{PublicKey, SigAlg};
use wire::{Reader, msg};

/// The methods that a refusal names.
const METHODS: &[&str] = &["publickey"];

/// What a policy says of a user and a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision<P> {
    /// With a signature of this key the user may log in, with these permissions.
    Accept(P),
    /// Not so, for whatever reason.
    Refuse,
}

/// Who may log in by which key.
pub trait Policy {
    /// What a key allows: options of its line in authorized_keys, a forced command.
    type Permissions;

    /// Asked for a key query and again, afresh, for a signed request; only the latter's
    /// permissions count (A4). Must do the same look-ups for a user that there is not (A9).
    fn public_key(
        &mut self,
        user: &str,
        key: &PublicKey,
        alg: SigAlg,
    ) -> Decision<Self::Permissions>;
}

/// Limits and texts of a server's logins.
#[derive(Debug, Clone)]
pub struct Rules {
    /// Algorithms that a user's key may sign with, most preferred first: EXT_INFO announces
    /// them in this order (`server-sig-algs`, RFC 8308 section 3.1).
    pub sig_algs: Vec<SigAlg>,
    /// Requests that may be refused before the connection ends (`MaxAuthTries`).
    pub max_tries: u32,
    /// Shown before the first answer.
    pub banner: Option<String>,
}

/// The server before login; owns the transport.
pub struct Server<P> {
    transport: Transport,
    core: Core<P>,
    draft: Draft,
}

impl<P: Policy> Server<P> {
    /// Lets a user of `policy` in over `transport`, whose first key exchange must not be over yet:
    /// EXT_INFO leaves with its end and announces `rules.sig_algs`.
    pub fn new(mut transport: Transport, policy: P, rules: Rules) -> Self {
        transport.set_login_algs(&rules.sig_algs);
        Self { transport, core: Core::new(policy, rules), draft: Draft::default() }
    }

    /// One received message, from the first KEXINIT on; `seq` is its packet's sequence number.
    /// After an error the outbox ends with the DISCONNECT that tells the peer.
    pub fn handle(
        mut self,
        seq: u32,
        payload: &[u8],
        out: &mut Outbox,
    ) -> Result<Step<Self, P::Permissions>, Error> {
        match self.advance(seq, payload, out) {
            Ok(None) => Ok(Step::Pending(self)),
            Ok(Some((login, permissions))) => {
                self.transport.logged_in(out);
                let transport = self.transport;
                Ok(Step::Done(Authenticated { transport, login, permissions, ahead: None }))
            }
            Err(error) => {
                self.transport.fail(&error, out);
                Err(error)
            }
        }
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
    ) -> Result<Option<(Login, P::Permissions)>, Error> {
        let handled = self.transport.handle(seq, payload, out)?;
        let (Handled::Upper, Some(session_id)) = (handled, self.transport.session_id()) else {
            return Ok(None);
        };
        let outcome = self.core.handle(payload, session_id, &mut self.draft);
        self.draft.leave(&mut self.transport, out)?;
        outcome
    }
}

/// What becomes of a request.
enum Verdict<P> {
    Granted(P),
    /// The key would do; now sign with it.
    WouldTake,
    Refused,
}

/// The machine without the transport.
pub(super) struct Core<P> {
    policy: P,
    rules: Rules,
    accepted: bool,
    bannered: bool,
    user: Option<String>,
    tries: u32,
    /// Algorithm and key of the query that was answered last, if nothing came since.
    would_take: Option<(SigAlg, Vec<u8>)>,
}

impl<P: Policy> Core<P> {
    pub(super) fn new(policy: P, rules: Rules) -> Self {
        Self {
            policy,
            rules,
            accepted: false,
            bannered: false,
            user: None,
            tries: 0,
            would_take: None,
        }
    }

    #[cfg(test)]
    pub(super) fn policy(&self) -> &P {
        &self.policy
    }

    /// One message of RFC 4252; how the login succeeded, if it did.
    pub(super) fn handle(
        &mut self,
        payload: &[u8],
        session_id: &[u8],
        draft: &mut Draft,
    ) -> Result<Option<(Login, P::Permissions)>, Error> {
        let mut r = Reader::new(payload);
        match (r.u8("message number")?, self.accepted) {
            (msg::SERVICE_REQUEST, false) => self.service(&mut r, draft).map(|()| None),
            (msg::USERAUTH_REQUEST, true) => {
                let request = Request::read(&mut r)?;
                self.request(&request, session_id, draft)
            }
            (number, _) => {
                let name = msg::name(number).unwrap_or("a message");
                Err(Misbehaved::Upper(format!("peer sent {name} out of order")).into())
            }
        }
    }

    fn service(&mut self, r: &mut Reader<'_>, draft: &mut Draft) -> Result<(), Error> {
        match m::read_service(r)? {
            USERAUTH => {
                self.accepted = true;
                draft.send(m::service_accept());
                Ok(())
            }
            other => Err(Failed::Service(other.to_owned()).into()),
        }
    }

    fn request(
        &mut self,
        request: &Request<'_>,
        session_id: &[u8],
        draft: &mut Draft,
    ) -> Result<Option<(Login, P::Permissions)>, Error> {
        self.same_subject(request)?;
        self.count(&request.method)?;
        if let Some(text) = self.rules.banner.as_ref().filter(|_| !self.bannered) {
            draft.send(m::banner(text));
            self.bannered = true;
        }
        match self.decide(request, session_id) {
            Verdict::Granted(permissions) => {
                draft.send(vec![msg::USERAUTH_SUCCESS]);
                let (user, key) = (request.user.to_owned(), fingerprint(&request.method));
                Ok(Some((Login { user, method: "publickey", key }, permissions)))
            }
            Verdict::WouldTake => {
                if let Method::PublicKey(key) = &request.method {
                    draft.send(m::pk_ok(key.algorithm, key.blob));
                }
                Ok(None)
            }
            Verdict::Refused => self.refuse(request, draft).map(|()| None),
        }
    }

    /// A5, RFC 4252 section 5: a server that does not flush its state when user or service change
    /// must disconnect.
    fn same_subject(&mut self, request: &Request<'_>) -> Result<(), Error> {
        let first = self.user.get_or_insert_with(|| request.user.to_owned());
        if first != request.user {
            return Err(Failed::Changed.into());
        }
        match (request.service, self.tries) {
            (CONNECTION, _) => Ok(()),
            (other, 0) => Err(Failed::Service(other.to_owned()).into()),
            _ => Err(Failed::Changed.into()),
        }
    }

    /// A10: every request is a try, but a signature for the key that was just asked about belongs
    /// to the try of its query.
    fn count(&mut self, method: &Method<'_>) -> Result<(), Error> {
        let asked = self.would_take.take();
        let follows = match (method, &asked) {
            (Method::PublicKey(key), Some((alg, blob))) => {
                key.signature.is_some() && key.algorithm == alg.name() && key.blob == blob
            }
            _ => false,
        };
        if !follows {
            self.tries = self.tries.saturating_add(1);
        }
        if self.tries > self.rules.max_tries {
            return Err(Failed::TooMany.into());
        }
        Ok(())
    }

    /// A7: nothing else grants a login. A8: one method is enough, so no key counts twice.
    fn decide(&mut self, request: &Request<'_>, session_id: &[u8]) -> Verdict<P::Permissions> {
        let Method::PublicKey(offer) = &request.method else { return Verdict::Refused };
        let Some((alg, key)) = self.readable(offer) else { return Verdict::Refused };
        let Decision::Accept(permissions) = self.policy.public_key(request.user, &key, alg) else {
            return Verdict::Refused;
        };
        let Some(signature) = offer.signature else {
            self.would_take = Some((alg, offer.blob.to_vec()));
            return Verdict::WouldTake;
        };
        let signed = m::key_request(request.user, alg, offer.blob).finish();
        match key.verify(alg, &m::to_be_signed(session_id, &signed), signature) {
            Ok(()) => Verdict::Granted(permissions),
            Err(_) => Verdict::Refused,
        }
    }

    /// The key, if it parses and fits an algorithm that we accept.
    fn readable(&self, offer: &KeyRequest<'_>) -> Option<(SigAlg, PublicKey)> {
        let alg = SigAlg::from_name(offer.algorithm)?;
        let key = PublicKey::parse(offer.blob).ok()?;
        let fits = self.rules.sig_algs.contains(&alg) && key.sig_algs().contains(&alg);
        fits.then_some((alg, key))
    }

    fn refuse(&mut self, request: &Request<'_>, draft: &mut Draft) -> Result<(), Error> {
        draft.event(Event::AuthRefused {
            user: request.user.to_owned(),
            method: request.method.name().to_owned(),
            key: fingerprint(&request.method),
            left: METHODS.join(","),
            partial: false,
        });
        if self.tries >= self.rules.max_tries {
            return Err(Failed::TooMany.into());
        }
        draft.send(m::failure(METHODS));
        Ok(())
    }
}

fn fingerprint(method: &Method<'_>) -> Option<String> {
    match method {
        Method::PublicKey(key) => Some(keys::fingerprint(key.blob)),
        _ => None,
    }
}
