//! Private keys: what they sign, and which file formats they come from.
//!
//! `-----BEGIN OPENSSH PRIVATE KEY-----` is read by [`container`](crate::container), with or
//! without a passphrase; the three PEM formats that `ssh-keygen -m` writes, without one only.

use crate::{PublicKey, PublicKeyError, SigAlg, container, sig};
use base64ct::{Base64Unpadded, Encoding};
use crypt::sign::{BadKey, CannotSign, SigningKey};
use std::fmt;
use wire::Malformed;
use zeroize::Zeroizing;

/// Why a private key file gave no key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PrivateKeyError {
    /// The key is encrypted and no passphrase was given.
    #[error("the key is encrypted and needs a passphrase")]
    NeedsPassphrase,
    /// The passphrase is wrong (or the file is damaged: the two cannot be told apart).
    #[error("wrong passphrase")]
    WrongPassphrase,
    /// Not a private key file, or a damaged one.
    #[error("{0}")]
    Malformed(#[from] Malformed),
    /// A format we know and do not read; OpenSSH can rewrite the file.
    #[error("{0} is not supported; `ssh-keygen -p -f FILE` rewrites the file in a format that is")]
    Unsupported(String),
    /// Another kind of file, and what to do about it.
    #[error("{0}")]
    OtherFile(&'static str),
    /// The public half is not usable.
    #[error("{0}")]
    Public(#[from] PublicKeyError),
    /// The private numbers are not usable.
    #[error("{0}")]
    Numbers(#[from] BadKey),
}

/// How files start that are given as private keys by mistake.
const OTHER_FILES: [(&str, &str); 5] = [
    ("PuTTY-User-Key-File", "a PuTTY key; `puttygen FILE -O private-openssh -o NEW` converts it"),
    ("SSH PRIVATE KEY FILE FORMAT 1.1", "a key of SSH 1, which is not supported"),
    ("---- BEGIN SSH2 PUBLIC KEY", "a public key; the private half is needed"),
    ("ssh-", "a public key; the private half is needed"),
    ("ecdsa-", "a public key; the private half is needed"),
];

/// A private key. It has no `Clone` and shows nothing in `Debug`; share it by `Arc`.
pub struct PrivateKey {
    public: PublicKey,
    key: SigningKey,
    comment: String,
}

impl PrivateKey {
    /// Reads a private key file.
    ///
    /// A passphrase given for a key that has none is ignored.
    pub fn from_bytes(file: &[u8], passphrase: Option<&str>) -> Result<Self, PrivateKeyError> {
        for (start, what) in OTHER_FILES {
            if file.starts_with(start.as_bytes()) {
                return Err(PrivateKeyError::OtherFile(what));
            }
        }
        let (label, body) = pem(file)?;
        match label {
            "OPENSSH PRIVATE KEY" => container::open(&decode(body)?, passphrase),
            "RSA PRIVATE KEY" | "EC PRIVATE KEY" if body.contains("Proc-Type:") => {
                Err(PrivateKeyError::Unsupported(format!("encrypted PEM \"{label}\"")))
            }
            "RSA PRIVATE KEY" | "EC PRIVATE KEY" | "PRIVATE KEY" => {
                Self::new(SigningKey::from_der(&decode(body)?)?, String::new())
            }
            other => Err(PrivateKeyError::Unsupported(format!("\"{other}\""))),
        }
    }

    /// The public half of an OpenSSH private key file, readable without the passphrase.
    pub fn public_of_file(file: &[u8]) -> Result<PublicKey, PrivateKeyError> {
        match pem(file)? {
            ("OPENSSH PRIVATE KEY", body) => container::public(&decode(body)?),
            _ => Self::from_bytes(file, None).map(|key| key.public),
        }
    }

    /// An Ed25519 key from its seed (RFC 8032 section 5.1.5).
    pub fn from_ed25519_seed(seed: &[u8; 32]) -> Result<Self, PrivateKeyError> {
        Self::new(SigningKey::ed25519(seed)?, String::new())
    }

    pub(crate) fn new(key: SigningKey, comment: String) -> Result<Self, PrivateKeyError> {
        let public = PublicKey::from_numbers(&key.public()?)?;
        Ok(Self { public, key, comment })
    }

    /// The public half.
    pub fn public(&self) -> &PublicKey {
        &self.public
    }

    /// The comment stored with the key; empty in formats that have none.
    pub fn comment(&self) -> &str {
        &self.comment
    }

    /// Signs `data`; the result is a signature blob (RFC 4253 section 6.6).
    pub fn sign(&self, alg: SigAlg, data: &[u8]) -> Result<Vec<u8>, CannotSign> {
        self.key.sign(alg.scheme(), data).map(|raw| sig::to_blob(alg, &raw))
    }
}

impl fmt::Debug for PrivateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PrivateKey({})", self.public.fingerprint())
    }
}

/// Label and body of the first PEM block (RFC 7468 section 2).
fn pem(file: &[u8]) -> Result<(&str, &str), Malformed> {
    const WHAT: Malformed = Malformed("private key file");
    let text = std::str::from_utf8(file).map_err(|_| WHAT)?;
    let (_, text) = text.split_once("-----BEGIN ").ok_or(WHAT)?;
    let (label, text) = text.split_once("-----").ok_or(WHAT)?;
    let (body, end) = text.split_once("-----END ").ok_or(WHAT)?;
    end.strip_prefix(label).and_then(|end| end.strip_prefix("-----")).ok_or(WHAT)?;
    Ok((label, body))
}

fn decode(body: &str) -> Result<Zeroizing<Vec<u8>>, Malformed> {
    let mut text = Zeroizing::new(String::with_capacity(body.len()));
    text.extend(body.split_ascii_whitespace());
    Base64Unpadded::decode_vec(text.trim_end_matches('='))
        .map(Zeroizing::new)
        .map_err(|_| Malformed("base64 in private key file"))
}
