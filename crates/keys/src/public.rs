//! Public keys: the blob on the wire, the line in a file, the fingerprint on the screen.
//!
//! A [`PublicKey`] exists only if its numbers are usable (point on the curve, RSA size in range),
//! so whoever holds one needs no further check before verifying with it.

use crate::sig::{self, SigAlg};
use base64ct::{Base64, Base64Unpadded, Encoding};
use crypt::sign::{BadKey, Curve, PublicNumbers, VerifyingKey};
use std::fmt;
use wire::{Malformed, Reader, Writer};

pub use crypt::sign::BadSignature;

/// Why a public key was not accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PublicKeyError {
    /// The blob or line does not parse.
    #[error("{0}")]
    Malformed(#[from] Malformed),
    /// A key type we cannot use (certificates, security keys, DSA).
    #[error("key type {0} is not supported")]
    Unsupported(String),
    /// It parses, but the numbers are no good.
    #[error("{0}")]
    Numbers(#[from] BadKey),
    /// The type before the base64 text is not the type inside it.
    #[error("the line says {line} but the key is {blob}")]
    TypeMismatch {
        /// What the line says.
        line: String,
        /// What the blob says.
        blob: String,
    },
}

/// A public key that has been checked and can verify signatures.
#[derive(Clone)]
pub struct PublicKey {
    key_type: &'static str,
    blob: Vec<u8>,
    key: VerifyingKey,
}

impl PublicKey {
    /// Parses a key blob (RFC 4253 section 6.6; RFC 5656 section 3.1; RFC 8709 section 4).
    pub fn parse(blob: &[u8]) -> Result<Self, PublicKeyError> {
        let mut r = Reader::new(blob);
        let name = r.string("key type")?;
        let key_type = supported_type(name)
            .ok_or_else(|| PublicKeyError::Unsupported(String::from_utf8_lossy(name).into()))?;
        let key = read_numbers(key_type, &mut r)?;
        r.end("public key")?;
        Ok(Self { key_type, blob: blob.to_vec(), key })
    }

    /// Builds the key of a private key's public numbers.
    pub(crate) fn from_numbers(numbers: &PublicNumbers) -> Result<Self, PublicKeyError> {
        let mut w = Writer::new();
        match numbers {
            PublicNumbers::Ed25519(key) => w.string("ssh-ed25519").string(key),
            PublicNumbers::Ecdsa(curve, point) => {
                w.string(format!("ecdsa-sha2-{}", curve.name())).string(curve.name()).string(point)
            }
            PublicNumbers::Rsa { e, n } => w.string("ssh-rsa").positive_mpint(e).positive_mpint(n),
        };
        Self::parse(w.as_slice())
    }

    /// The key as it stands on the wire.
    pub fn blob(&self) -> &[u8] {
        &self.blob
    }

    /// `ssh-ed25519`, `ecdsa-sha2-nistp256`/`384`/`521` or `ssh-rsa`.
    pub fn key_type(&self) -> &'static str {
        self.key_type
    }

    /// The signature algorithms this key can be used with, most preferred first.
    pub fn sig_algs(&self) -> &'static [SigAlg] {
        SigAlg::for_key_type(self.key_type)
    }

    /// `SHA256:` and the unpadded base64 of the blob's digest, as `ssh-keygen -l` prints it.
    pub fn fingerprint(&self) -> String {
        fingerprint(&self.blob)
    }

    /// One line of a `.pub` file, without comment and newline.
    pub fn to_openssh(&self) -> String {
        format!("{} {}", self.key_type, Base64::encode_string(&self.blob))
    }

    /// Reads a `.pub` line: type, base64, and an optional comment, which is ignored.
    pub fn from_openssh(line: &str) -> Result<Self, PublicKeyError> {
        let mut words = line.split_ascii_whitespace();
        let key_type = words.next().ok_or(Malformed("public key line"))?;
        let blob = decode_base64(words.next().ok_or(Malformed("public key line"))?)?;
        let inner = Reader::new(&blob).string("key type")?;
        if inner != key_type.as_bytes() {
            let blob = String::from_utf8_lossy(inner).into();
            return Err(PublicKeyError::TypeMismatch { line: key_type.into(), blob });
        }
        Self::parse(&blob)
    }

    /// Verifies a signature blob made with `alg`.
    ///
    /// The blob's own algorithm name must be `alg`: what was negotiated is what counts, not what
    /// the signer says it did.
    pub fn verify(&self, alg: SigAlg, data: &[u8], blob: &[u8]) -> Result<(), BadSignature> {
        let (name, raw) = sig::split_blob(blob).map_err(|_| BadSignature)?;
        if name != alg.name().as_bytes() || alg.key_type() != self.key_type {
            return Err(BadSignature);
        }
        self.key.verify(alg.scheme(), data, raw)
    }
}

impl PartialEq for PublicKey {
    fn eq(&self, other: &Self) -> bool {
        self.blob == other.blob
    }
}

impl Eq for PublicKey {}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PublicKey({} {})", self.key_type, self.fingerprint())
    }
}

/// The fingerprint of any key blob, of a type we support or not.
pub fn fingerprint(blob: &[u8]) -> String {
    let digest = crypt::Hash::Sha256.digest(&[blob]);
    format!("SHA256:{}", Base64Unpadded::encode_string(digest.as_slice()))
}

/// Base64 as it occurs in key files; missing padding is tolerated as OpenSSH does.
pub(crate) fn decode_base64(text: &str) -> Result<Vec<u8>, Malformed> {
    Base64Unpadded::decode_vec(text.trim_end_matches('=')).map_err(|_| Malformed("base64"))
}

fn supported_type(name: &[u8]) -> Option<&'static str> {
    SigAlg::ALL.iter().map(|alg| alg.key_type()).find(|known| known.as_bytes() == name)
}

fn read_numbers(key_type: &str, r: &mut Reader<'_>) -> Result<VerifyingKey, PublicKeyError> {
    match key_type {
        "ssh-ed25519" => Ok(VerifyingKey::ed25519(r.string("Ed25519 public key")?)?),
        "ssh-rsa" => {
            let e = r.positive_mpint("RSA public exponent")?;
            let n = r.positive_mpint("RSA modulus")?;
            Ok(VerifyingKey::rsa(e, n)?)
        }
        ecdsa => {
            let curve = read_curve(ecdsa, r)?;
            Ok(VerifyingKey::ecdsa(curve, r.string("ECDSA public point")?)?)
        }
    }
}

/// The curve identifier, which must repeat the one in the key type (RFC 5656 section 3.1).
pub(crate) fn read_curve(key_type: &str, r: &mut Reader<'_>) -> Result<Curve, Malformed> {
    let name = r.string("curve")?;
    Curve::ALL
        .into_iter()
        .find(|c| {
            c.name().as_bytes() == name && key_type.strip_prefix("ecdsa-sha2-") == Some(c.name())
        })
        .ok_or(Malformed("curve"))
}
