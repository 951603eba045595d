//! Messages of RFC 4252, and the bytes that a user's key signs (section 7).

use super::{CONNECTION, USERAUTH};
use keys::SigAlg;
use wire::{Malformed, Reader, Writer, msg};

/// USERAUTH_REQUEST (section 5).
pub(super) struct Request<'a> {
    pub(super) user: &'a str,
    pub(super) service: &'a str,
    pub(super) method: Method<'a>,
}

/// What a request wants to be known by.
pub(super) enum Method<'a> {
    /// Section 5.2.
    None,
    /// Section 7.
    PublicKey(KeyRequest<'a>),
    /// Any other; its contents are not looked at.
    Other(&'a str),
}

/// The method `publickey`.
pub(super) struct KeyRequest<'a> {
    /// The signature algorithm's name.
    pub(super) algorithm: &'a str,
    pub(super) blob: &'a [u8],
    /// `None`: would you take this key?
    pub(super) signature: Option<&'a [u8]>,
}

impl<'a> Request<'a> {
    /// Reads all after the message number.
    pub(super) fn read(r: &mut Reader<'a>) -> Result<Self, Malformed> {
        let user = r.text("user name")?;
        let service = r.text("service name")?;
        let method = match r.text("method name")? {
            "none" => Method::None,
            "publickey" => Method::PublicKey(KeyRequest::read(r)?),
            other => {
                r.rest();
                Method::Other(other)
            }
        };
        r.end("USERAUTH_REQUEST")?;
        Ok(Self { user, service, method })
    }
}

impl<'a> KeyRequest<'a> {
    fn read(r: &mut Reader<'a>) -> Result<Self, Malformed> {
        let signed = r.bool("signature flag")?;
        let algorithm = r.text("public key algorithm")?;
        let blob = r.string("public key")?;
        let signature = if signed { Some(r.string("signature")?) } else { None };
        Ok(Self { algorithm, blob, signature })
    }
}

impl Method<'_> {
    pub(super) fn name(&self) -> &str {
        match self {
            Self::None => "none",
            Self::PublicKey(_) => "publickey",
            Self::Other(name) => name,
        }
    }
}

/// SERVICE_REQUEST for authentication.
pub(super) fn service_request() -> Vec<u8> {
    Writer::message(msg::SERVICE_REQUEST).string(USERAUTH).take()
}

/// SERVICE_ACCEPT for authentication.
pub(super) fn service_accept() -> Vec<u8> {
    Writer::message(msg::SERVICE_ACCEPT).string(USERAUTH).take()
}

/// Reads the service of SERVICE_REQUEST and SERVICE_ACCEPT.
pub(super) fn read_service<'a>(r: &mut Reader<'a>) -> Result<&'a str, Malformed> {
    let service = r.text("service name")?;
    r.end("service message")?;
    Ok(service)
}

fn request(user: &str, method: &str) -> Writer {
    let mut w = Writer::message(msg::USERAUTH_REQUEST);
    w.string(user).string(CONNECTION).string(method);
    w
}

/// The method `none`: nothing to offer, which methods are there?
pub(super) fn none_request(user: &str) -> Vec<u8> {
    request(user, "none").finish()
}

/// Would you take this key?
pub(super) fn key_query(user: &str, alg: SigAlg, blob: &[u8]) -> Vec<u8> {
    request(user, "publickey").bool(false).string(alg.name()).string(blob).take()
}

/// A request but for its signature.
pub(super) fn key_request(user: &str, alg: SigAlg, blob: &[u8]) -> Writer {
    let mut w = request(user, "publickey");
    w.bool(true).string(alg.name()).string(blob);
    w
}

/// Section 7: the session identifier as a string, then the request up to the signature.
pub(super) fn to_be_signed(session_id: &[u8], request: &[u8]) -> Vec<u8> {
    Writer::new().string(session_id).raw(request).take()
}

/// USERAUTH_FAILURE (section 5.1).
pub(super) fn failure(methods: &[&str]) -> Vec<u8> {
    Writer::message(msg::USERAUTH_FAILURE).names(methods).bool(false).take()
}

/// Reads the methods left and the partial-success flag.
pub(super) fn read_failure<'a>(
    r: &mut Reader<'a>,
) -> Result<(wire::NameList<'a>, bool), Malformed> {
    let both = (r.names("authentication methods")?, r.bool("partial success")?);
    r.end("USERAUTH_FAILURE")?;
    Ok(both)
}

/// USERAUTH_PK_OK (section 7).
pub(super) fn pk_ok(algorithm: &str, blob: &[u8]) -> Vec<u8> {
    Writer::message(msg::USERAUTH_PK_OK).string(algorithm).string(blob).take()
}

/// Reads algorithm and key.
pub(super) fn read_pk_ok<'a>(r: &mut Reader<'a>) -> Result<(&'a str, &'a [u8]), Malformed> {
    let both = (r.text("public key algorithm")?, r.string("public key")?);
    r.end("USERAUTH_PK_OK")?;
    Ok(both)
}

/// USERAUTH_BANNER (section 5.4).
pub(super) fn banner(text: &str) -> Vec<u8> {
    Writer::message(msg::USERAUTH_BANNER).string(text).string("").take()
}

/// Reads the text.
pub(super) fn read_banner(r: &mut Reader<'_>) -> Result<String, Malformed> {
    let text = String::from_utf8_lossy(r.string("banner")?).into_owned();
    r.string("language tag")?;
    r.end("USERAUTH_BANNER")?;
    Ok(text)
}
