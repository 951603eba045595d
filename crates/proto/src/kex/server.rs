//! The server's side of an exchange.

use super::client::bad_public;
use super::transcript::{put_public, take_public};
use super::{Agreed, Computed, Connection, computed};
use crate::config::HostKeys;
use crate::kexinit::KexInit;
use crate::{Error, Role};
use wire::{Reader, Writer, msg};

/// Our KEXINIT is out.
pub(crate) struct ExpectKexInit {
    pub(crate) ours: KexInit,
}

impl ExpectKexInit {
    pub(crate) fn handle(self, c: &Connection<'_>, theirs: KexInit) -> Result<ExpectInit, Error> {
        Ok(ExpectInit { agreed: Agreed::new(Role::Server, c, self.ours, theirs)? })
    }
}

/// Both KEXINITs are known; the client's public value is due.
pub(crate) struct ExpectInit {
    pub(crate) agreed: Agreed,
}

impl ExpectInit {
    /// RFC 4253 section 8: "S ... computes K ... H, and signature s on H with its private host
    /// key". The reply is to be followed by NEWKEYS at once.
    pub(crate) fn handle(
        self,
        c: &Connection<'_>,
        payload: &[u8],
        keys: &dyn HostKeys,
    ) -> Result<(Vec<u8>, Computed), Error> {
        let Agreed { negotiated, transcript, .. } = self.agreed;
        let method = negotiated.method;
        let mut r = Reader::new(payload);
        r.take(1, "KEX_INIT")?;
        let client_public = take_public(&mut r, method, "KEX_INIT public value")?;
        r.end("KEX_INIT: trailing bytes")?;

        let (public, secret) = crypt::kex::respond(method, client_public).map_err(bad_public)?;
        let blob = keys.public(negotiated.host_key).map_err(Error::Local)?;
        let publics = (client_public, public.as_slice());
        let hash = transcript.hash(method, &blob, publics, &secret);
        let signature = keys.sign(negotiated.host_key, hash.as_slice()).map_err(Error::Local)?;
        let mut w = Writer::message(msg::KEX_REPLY);
        w.string(&blob);
        put_public(&mut w, method, &public);
        w.string(&signature);
        Ok((w.finish(), computed(Role::Server, c, &negotiated, hash.as_slice(), &secret)))
    }
}
