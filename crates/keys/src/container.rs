//! The container of OpenSSH private keys (OpenSSH PROTOCOL.key) and its encryption.
//!
//! ```text
//! "openssh-key-v1\0"  cipher  kdf  kdf options  number of keys (1)  public key  encrypted part [tag]
//! encrypted part: check  check  key type  numbers  comment  1 2 3 4 ...
//! ```

use crate::public::read_curve;
use crate::{PrivateKey, PrivateKeyError, PublicKey};
use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use aws_lc_rs::cipher::{
    AES_128, AES_192, AES_256, Algorithm, DecryptingKey, DecryptionContext, UnboundCipherKey,
};
use crypt::sign::{RsaParts, SigningKey};
use wire::{Malformed, Reader};
use zeroize::Zeroizing;

const MAGIC: &[u8] = b"openssh-key-v1\0";

/// More rounds than this take minutes; a file that asks for them is damaged or hostile.
const MAX_ROUNDS: u32 = 16_384;

/// The clear outer part.
struct Outer<'a> {
    cipher: &'a str,
    kdf: &'a str,
    kdf_options: &'a [u8],
    public: &'a [u8],
    sealed: &'a [u8],
    tag: &'a [u8],
}

impl<'a> Outer<'a> {
    fn read(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let mut r = Reader::new(bytes);
        if r.take(MAGIC.len(), "OpenSSH private key")? != MAGIC {
            return Err(Malformed("OpenSSH private key"));
        }
        let cipher = r.text("cipher of the private key")?;
        let kdf = r.text("KDF of the private key")?;
        let kdf_options = r.string("KDF options of the private key")?;
        if r.u32("number of private keys")? != 1 {
            return Err(Malformed("number of private keys"));
        }
        let public = r.string("public key")?;
        let sealed = r.string("private key")?;
        Ok(Self { cipher, kdf, kdf_options, public, sealed, tag: r.rest() })
    }
}

/// The public key of a container.
pub(crate) fn public(bytes: &[u8]) -> Result<PublicKey, PrivateKeyError> {
    Ok(PublicKey::parse(Outer::read(bytes)?.public)?)
}

/// Decrypts and reads a container.
pub(crate) fn open(bytes: &[u8], passphrase: Option<&str>) -> Result<PrivateKey, PrivateKeyError> {
    let outer = Outer::read(bytes)?;
    let public = PublicKey::parse(outer.public)?;
    let mut clear = Zeroizing::new(outer.sealed.to_vec());
    let encrypted = outer.cipher != "none";
    if encrypted {
        let passphrase = passphrase.filter(|p| !p.is_empty());
        decrypt(&outer, passphrase.ok_or(PrivateKeyError::NeedsPassphrase)?, &mut clear)?;
    } else if outer.kdf != "none" || !outer.tag.is_empty() {
        return Err(Malformed("KDF of the private key").into());
    }
    let mut r = Reader::new(&clear);
    if r.u32("check number")? != r.u32("check number")? {
        return Err(match encrypted {
            true => PrivateKeyError::WrongPassphrase,
            false => Malformed("check number").into(),
        });
    }
    let key = read_private(&mut r, public)?;
    check_padding(r.rest())?;
    Ok(key)
}

/// The numbers, in the order of OpenSSH's agent protocol, and the comment.
fn read_private(r: &mut Reader<'_>, public: PublicKey) -> Result<PrivateKey, PrivateKeyError> {
    let key_type = r.text("key type")?;
    let key = match key_type {
        "ssh-ed25519" => {
            let _public = r.string("Ed25519 public key")?;
            // Seed and public key again, 32 bytes each.
            let (seed, _) = r
                .string("Ed25519 private key")?
                .split_first_chunk::<32>()
                .filter(|(_, rest)| rest.len() == 32)
                .ok_or(Malformed("Ed25519 private key"))?;
            SigningKey::ed25519(seed)?
        }
        "ssh-rsa" => SigningKey::rsa(&RsaParts {
            n: r.positive_mpint("RSA modulus")?,
            e: r.positive_mpint("RSA public exponent")?,
            d: r.positive_mpint("RSA private exponent")?,
            iqmp: r.positive_mpint("RSA coefficient")?,
            p: r.positive_mpint("RSA prime")?,
            q: r.positive_mpint("RSA prime")?,
        })?,
        ecdsa => {
            let curve = read_curve(ecdsa, r)?;
            let point = r.string("ECDSA public point")?;
            SigningKey::ecdsa(curve, r.positive_mpint("ECDSA scalar")?, point)?
        }
    };
    let comment = String::from_utf8_lossy(r.string("comment")?).into_owned();
    let key = PrivateKey::new(key, comment)?;
    if *key.public() != public {
        return Err(crypt::sign::BadKey::Inconsistent.into());
    }
    Ok(key)
}

/// The padding counts 1, 2, 3 ... and is shorter than any cipher block we read.
fn check_padding(padding: &[u8]) -> Result<(), Malformed> {
    let counts = padding.iter().zip(1u8..=16).all(|(byte, expected)| *byte == expected);
    if counts && padding.len() <= 16 { Ok(()) } else { Err(Malformed("padding")) }
}

/// How a cipher name decrypts.
enum Mode {
    Ctr(&'static Algorithm, usize),
    Cbc(&'static Algorithm, usize),
    Gcm256,
}

impl Mode {
    fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "aes128-ctr" => Self::Ctr(&AES_128, 16),
            "aes192-ctr" => Self::Ctr(&AES_192, 24),
            "aes256-ctr" => Self::Ctr(&AES_256, 32),
            // The default of OpenSSH 6.5 to 7.5.
            "aes256-cbc" => Self::Cbc(&AES_256, 32),
            "aes256-gcm@openssh.com" => Self::Gcm256,
            _ => return None,
        })
    }

    fn key_and_iv_len(&self) -> (usize, usize) {
        match self {
            Self::Ctr(_, key) | Self::Cbc(_, key) => (*key, 16),
            Self::Gcm256 => (32, 12),
        }
    }
}

fn decrypt(outer: &Outer<'_>, pass: &str, data: &mut [u8]) -> Result<(), PrivateKeyError> {
    let unsupported = |what: &str| PrivateKeyError::Unsupported(format!("key encryption {what:?}"));
    let mode = Mode::from_name(outer.cipher).ok_or_else(|| unsupported(outer.cipher))?;
    if outer.kdf != "bcrypt" {
        return Err(unsupported(outer.kdf));
    }
    let (key_len, iv_len) = mode.key_and_iv_len();
    let secret = derive(outer.kdf_options, pass, key_len + iv_len)?;
    let (key, iv) = secret.split_at_checked(key_len).ok_or(Malformed("derived key"))?;
    let tag_len = if matches!(mode, Mode::Gcm256) { 16 } else { 0 };
    if outer.tag.len() != tag_len || !data.len().is_multiple_of(16) {
        return Err(Malformed("length of the encrypted private key").into());
    }
    match mode {
        Mode::Gcm256 => open_gcm(key, iv, outer.tag, data),
        Mode::Ctr(aes, _) => apply(aes, key, iv, data, DecryptingKey::ctr),
        Mode::Cbc(aes, _) => apply(aes, key, iv, data, DecryptingKey::cbc),
    }
    .ok_or(PrivateKeyError::WrongPassphrase)
}

/// Key and IV from the passphrase: options are `string salt, uint32 rounds`.
fn derive(options: &[u8], pass: &str, len: usize) -> Result<Zeroizing<Vec<u8>>, PrivateKeyError> {
    let mut r = Reader::new(options);
    let salt = r.string("salt")?;
    let rounds = r.u32("KDF rounds")?;
    r.end("KDF options")?;
    if !(1..=MAX_ROUNDS).contains(&rounds) {
        return Err(Malformed("KDF rounds").into());
    }
    let mut secret = Zeroizing::new(vec![0; len]);
    bcrypt_pbkdf::bcrypt_pbkdf(pass, salt, rounds, &mut secret).map_err(|_| Malformed("salt"))?;
    Ok(secret)
}

fn apply(
    aes: &'static Algorithm,
    key: &[u8],
    iv: &[u8],
    data: &mut [u8],
    mode: fn(UnboundCipherKey) -> Result<DecryptingKey, aws_lc_rs::error::Unspecified>,
) -> Option<()> {
    let key = mode(UnboundCipherKey::new(aes, key).ok()?).ok()?;
    let iv = <&[u8; 16]>::try_from(iv).ok()?;
    key.decrypt(data, DecryptionContext::Iv128(iv.into())).ok().map(drop)
}

fn open_gcm(key: &[u8], iv: &[u8], tag: &[u8], data: &mut [u8]) -> Option<()> {
    let key = LessSafeKey::new(UnboundKey::new(&AES_256_GCM, key).ok()?);
    let nonce = Nonce::try_assume_unique_for_key(iv).ok()?;
    let mut sealed = Zeroizing::new([data, tag].concat());
    let clear = key.open_in_place(nonce, Aad::empty(), &mut sealed).ok()?;
    data.copy_from_slice(clear);
    Some(())
}
