//! The client's side of an exchange.

use super::transcript::{put_public, take_public};
use super::{Agreed, Computed, Connection, computed};
use crate::config::HostTrust;
use crate::kexinit::KexInit;
use crate::{Error, Misbehaved, Role};
use crypt::KexError;
use crypt::kex::{Initiator, Method};
use keys::PublicKey;
use wire::{Reader, Writer, msg};

/// A kex packet of ours and the secret behind it.
pub(crate) struct Share {
    method: Method,
    initiator: Initiator,
    public: Vec<u8>,
}

impl Share {
    /// A fresh one.
    pub(crate) fn new(method: Method) -> Result<Self, Error> {
        let (initiator, public) =
            Initiator::start(method).map_err(|why| Error::Local(why.to_string()))?;
        Ok(Self { method, initiator, public })
    }

    /// KEX_INIT: KEXDH_INIT of RFC 4253 section 8, KEX_ECDH_INIT of RFC 5656 section 4.
    pub(crate) fn message(&self) -> Vec<u8> {
        let mut w = Writer::message(msg::KEX_INIT);
        put_public(&mut w, self.method, &self.public);
        w.finish()
    }
}

/// Our KEXINIT is out.
pub(crate) struct ExpectKexInit {
    pub(crate) ours: KexInit,
    /// What we sent along with it, if `ours` says that something follows.
    pub(crate) guess: Option<Share>,
}

impl ExpectKexInit {
    /// The next state, and KEX_INIT unless the server has it already.
    pub(crate) fn handle(
        self,
        c: &Connection<'_>,
        theirs: KexInit,
    ) -> Result<(ExpectReply, Option<Vec<u8>>), Error> {
        let agreed = Agreed::new(Role::Client, c, self.ours, theirs)?;
        let method = agreed.negotiated.method;
        // A share the server is to ignore has met nothing, so it may serve after all.
        let share = match self.guess.filter(|share| share.method == method) {
            Some(share) => share,
            None => Share::new(method)?,
        };
        let message = (!agreed.guessed).then(|| share.message());
        Ok((ExpectReply { agreed, share }, message))
    }
}

/// KEX_INIT is out.
pub(crate) struct ExpectReply {
    pub(crate) agreed: Agreed,
    share: Share,
}

impl ExpectReply {
    /// RFC 4253 section 8: "C verifies that K_S really is the host key for S ... computes K
    /// ... and verifies the signature s on H". A key is trusted after it has proved itself, and
    /// once; `pinned` is the key of the first exchange (B3).
    pub(crate) fn handle(
        self,
        c: &Connection<'_>,
        payload: &[u8],
        pinned: Option<&PublicKey>,
        trust: &dyn HostTrust,
    ) -> Result<(Computed, PublicKey), Error> {
        let Self { agreed: Agreed { negotiated, transcript, .. }, share } = self;
        let method = negotiated.method;
        let mut r = Reader::new(payload);
        r.take(1, "KEX_REPLY")?;
        let blob = r.string("KEX_REPLY host key")?;
        let server_public = take_public(&mut r, method, "KEX_REPLY public value")?;
        let signature = r.string("KEX_REPLY signature")?;
        r.end("KEX_REPLY: trailing bytes")?;

        let key = PublicKey::parse(blob).map_err(|why| Error::HostKey(why.to_string()))?;
        if key.key_type() != negotiated.host_key.key_type() {
            return Err(wrong_type(&key, negotiated.host_key.name()));
        }
        if pinned.is_some_and(|pinned| pinned.blob() != blob) {
            return Err(Misbehaved::HostKeyChanged.into());
        }
        let publics = (share.public.as_slice(), server_public);
        let secret = share.initiator.finish(server_public).map_err(bad_public)?;
        let hash = transcript.hash(method, blob, publics, &secret);
        key.verify(negotiated.host_key, hash.as_slice(), signature)
            .map_err(|why| Misbehaved::BadExchange(format!("host key signature: {why}")))?;
        if pinned.is_none() {
            trust.verify(&key).map_err(Error::HostKey)?;
        }
        Ok((computed(Role::Client, c, &negotiated, hash.as_slice(), &secret), key))
    }
}

/// B4: the type of the key follows from what was negotiated.
fn wrong_type(key: &PublicKey, negotiated: &str) -> Error {
    let text = format!("host key is {}, but {negotiated} was negotiated", key.key_type());
    Misbehaved::BadExchange(text).into()
}

/// Whose fault it is that there is no secret.
pub(super) fn bad_public(why: KexError) -> Error {
    match why {
        KexError::Local(why) => Error::Local(why.to_string()),
        why => Misbehaved::BadExchange(why.to_string()).into(),
    }
}
