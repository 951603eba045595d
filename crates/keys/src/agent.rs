//! Client of the agent protocol (draft-ietf-sshm-ssh-agent): list keys, have one sign.

use crate::{PublicKey, SigAlg, sig};
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use wire::{Malformed, Reader, Writer};

/// Largest answer read; OpenSSH's own limit.
const MAX_MESSAGE: usize = 256 * 1024;

const FAILURE: u8 = 5;
const REQUEST_IDENTITIES: u8 = 11;
const IDENTITIES_ANSWER: u8 = 12;
const SIGN_REQUEST: u8 = 13;
const SIGN_RESPONSE: u8 = 14;

/// Section 3.6.1: which hash an RSA key signs with.
const RSA_SHA2_256: u32 = 2;
const RSA_SHA2_512: u32 = 4;

/// Why the agent did not do it.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// The connection to it failed.
    #[error("agent: {0}")]
    Io(#[from] io::Error),
    /// Its answer does not parse or is too long.
    #[error("agent: {0}")]
    Malformed(#[from] Malformed),
    /// It said no: locked, key gone, or the user refused.
    #[error("the agent refused")]
    Refused,
    /// It signed with another algorithm than asked for: too old for SHA-2 with RSA.
    #[error("the agent cannot sign with {0}")]
    WrongAlgorithm(&'static str),
}

/// A key that the agent holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// Its public half.
    pub key: PublicKey,
    /// The comment, usually a file name.
    pub comment: String,
}

/// A connection to an agent.
#[derive(Debug)]
pub struct Agent<S> {
    stream: S,
}

impl Agent<UnixStream> {
    /// Connects to the agent's socket.
    pub fn connect(path: &Path) -> io::Result<Self> {
        UnixStream::connect(path).map(Self::new)
    }
}

impl<S: Read + Write> Agent<S> {
    /// Speaks to an agent over an open stream.
    pub fn new(stream: S) -> Self {
        Self { stream }
    }

    /// The keys it holds (section 3.5), in its order; those of types we cannot use are left out.
    pub fn identities(&mut self) -> Result<Vec<Identity>, AgentError> {
        const WHAT: &str = "list of keys";
        let answer = self.call(&[REQUEST_IDENTITIES], IDENTITIES_ANSWER)?;
        let mut r = Reader::new(&answer);
        let mut identities = Vec::new();
        for _ in 0..r.u32(WHAT)? {
            let blob = r.string(WHAT)?;
            let comment = String::from_utf8_lossy(r.string(WHAT)?).into_owned();
            identities.extend(PublicKey::parse(blob).ok().map(|key| Identity { key, comment }));
        }
        r.end(WHAT)?;
        Ok(identities)
    }

    /// Has it sign `data` (section 3.6); the result is a signature blob made with `alg`.
    pub fn sign(
        &mut self,
        key: &PublicKey,
        data: &[u8],
        alg: SigAlg,
    ) -> Result<Vec<u8>, AgentError> {
        let flags = match alg {
            SigAlg::RsaSha256 => RSA_SHA2_256,
            SigAlg::RsaSha512 => RSA_SHA2_512,
            _ => 0,
        };
        let mut request = Writer::message(SIGN_REQUEST);
        request.string(key.blob()).string(data).u32(flags);
        let answer = self.call(request.as_slice(), SIGN_RESPONSE)?;
        let mut r = Reader::new(&answer);
        let blob = r.string("signature")?;
        r.end("signature")?;
        let (name, _) = sig::split_blob(blob)?;
        if name != alg.name().as_bytes() {
            return Err(AgentError::WrongAlgorithm(alg.name()));
        }
        Ok(blob.to_vec())
    }

    /// Sends a request and takes the body of the answer, which must be of number `expected`.
    fn call(&mut self, request: &[u8], expected: u8) -> Result<Vec<u8>, AgentError> {
        let mut framed = Writer::new();
        self.stream.write_all(framed.string(request).as_slice())?;
        self.stream.flush()?;
        let mut len = [0; 4];
        self.stream.read_exact(&mut len)?;
        let len = usize::try_from(u32::from_be_bytes(len)).unwrap_or(usize::MAX);
        if !(1..=MAX_MESSAGE).contains(&len) {
            return Err(Malformed("length of the answer").into());
        }
        let mut answer = vec![0; len];
        self.stream.read_exact(&mut answer)?;
        match answer.split_first() {
            Some((number, body)) if *number == expected => Ok(body.to_vec()),
            Some((&FAILURE, _)) => Err(AgentError::Refused),
            _ => Err(Malformed("answer").into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// An agent that answers everything with the same bytes.
    struct Canned(io::Cursor<Vec<u8>>);

    impl Canned {
        fn agent(bytes: &[u8]) -> Agent<Self> {
            Agent::new(Self(io::Cursor::new(bytes.to_vec())))
        }
    }

    impl Read for Canned {
        fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
            self.0.read(buf)
        }
    }

    impl Write for Canned {
        fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
            Ok(buf.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn key() -> PublicKey {
        crate::PrivateKey::from_ed25519_seed(&[1; 32]).expect("key").public().clone()
    }

    #[test]
    fn a_refusal_is_told_from_a_broken_answer() {
        let refused = Canned::agent(&[0, 0, 0, 1, 5]).identities();
        assert!(matches!(refused, Err(AgentError::Refused)));
        for bad in [&[0u8, 0, 0, 0][..], &[0, 4, 0, 1, 12], &[0xff; 8], &[0, 0, 0, 1, 99]] {
            let answer = Canned::agent(bad).identities();
            assert!(matches!(answer, Err(AgentError::Malformed(_))), "{bad:?}");
        }
        assert!(matches!(Canned::agent(&[0, 0]).identities(), Err(AgentError::Io(_))));
    }

    #[test]
    fn a_signature_by_another_algorithm_is_refused() {
        let blob = sig::to_blob(SigAlg::RsaSha256, b"signature");
        let body = Writer::message(SIGN_RESPONSE).string(blob).take();
        let mut agent = Canned::agent(&Writer::new().string(body).take());
        let signed = agent.sign(&key(), b"data", SigAlg::RsaSha512);
        assert!(matches!(signed, Err(AgentError::WrongAlgorithm("rsa-sha2-512"))), "{signed:?}");
    }

    #[test]
    fn keys_of_other_types_are_left_out() {
        let mut body = Writer::message(IDENTITIES_ANSWER);
        body.u32(2).string(b"\0\0\0\x07ssh-dss").string("old");
        body.string(key().blob()).string("new");
        let answer = Writer::new().string(body.as_slice()).take();
        let identities = Canned::agent(&answer).identities().expect("identities");
        assert_eq!(identities, [Identity { key: key(), comment: "new".into() }]);
    }

    proptest! {
        #[test]
        fn no_answer_panics(body in proptest::collection::vec(any::<u8>(), 0..64), number in 10u8..16) {
            let message = Writer::message(number).raw(&body).take();
            let framed = Writer::new().string(message).take();
            let _ = Canned::agent(&framed).identities();
            let _ = Canned::agent(&framed).sign(&key(), b"data", SigAlg::Ed25519);
        }
    }
}
