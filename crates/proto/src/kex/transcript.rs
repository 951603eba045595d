//! The exchange hash H (RFC 4253 section 8, RFC 5656 section 4) and how public values travel.

use crate::Ident;
use crate::kexinit::KexInit;
use crypt::Digest;
use crypt::kex::{Method, SharedSecret};
use wire::{Malformed, Reader, Writer};

/// What both sides said before the method began, encoded as H wants it: V_C, V_S, I_C, I_S.
pub(super) struct Transcript(Writer);

impl Transcript {
    pub(super) fn new((v_c, v_s): (&Ident, &Ident), client: KexInit, server: KexInit) -> Self {
        let mut w = Writer::new();
        w.string(v_c.as_str()).string(v_s.as_str());
        w.string(&client.payload).string(&server.payload);
        Self(w)
    }

    /// H over all of it, the host key, both public values and the secret.
    pub(super) fn hash(
        mut self,
        method: Method,
        host_key: &[u8],
        (client, server): (&[u8], &[u8]),
        secret: &SharedSecret,
    ) -> Digest {
        self.0.string(host_key);
        put_public(&mut self.0, method, client);
        put_public(&mut self.0, method, server);
        method.hash().digest(&[self.0.as_slice(), secret.encoded()])
    }
}

/// Appends a public value: `mpint` for Diffie-Hellman, `string` for the others.
pub(super) fn put_public(w: &mut Writer, method: Method, public: &[u8]) {
    if method.is_dh() {
        w.positive_mpint(public)
    } else {
        w.string(public)
    };
}

/// Takes a public value.
pub(super) fn take_public<'a>(
    r: &mut Reader<'a>,
    method: Method,
    what: &'static str,
) -> Result<&'a [u8], Malformed> {
    if method.is_dh() { r.positive_mpint(what) } else { r.string(what) }
}
