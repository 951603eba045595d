//! Raw signatures: the numbers inside SSH keys and signatures, without names or framing.
//!
//! Ed25519 (RFC 8709), ECDSA over the three NIST curves (RFC 5656 section 3.1.2) and RSA PKCS#1
//! v1.5 with SHA-2 (RFC 8332). What frames them, and which algorithm is allowed where, is the
//! business of the `keys` crate.

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::{KeyPair as RsaKeyPair, KeyPairComponents, PublicKeyComponents};
use aws_lc_rs::signature::{self as aws, EcdsaKeyPair, Ed25519KeyPair, KeyPair, ParsedPublicKey};
use crypto_bigint::{BoxedUint, NonZero};
use wire::{Malformed, Reader, Writer};
use zeroize::Zeroizing;

/// Smallest RSA modulus accepted, in bits.
pub const RSA_MIN_BITS: usize = 2048;
/// Largest RSA modulus the crypto library signs or verifies with, in bits.
pub const RSA_MAX_BITS: usize = 8192;

/// A NIST curve of RFC 5656 section 10.1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Curve {
    /// nistp256, signatures over SHA-256.
    P256,
    /// nistp384, signatures over SHA-384.
    P384,
    /// nistp521, signatures over SHA-512.
    P521,
}

impl Curve {
    /// Every curve.
    pub const ALL: [Self; 3] = [Self::P256, Self::P384, Self::P521];

    /// The identifier inside public keys (RFC 5656 section 10.1).
    pub fn name(self) -> &'static str {
        match self {
            Self::P256 => "nistp256",
            Self::P384 => "nistp384",
            Self::P521 => "nistp521",
        }
    }

    /// Length of a scalar or coordinate in bytes.
    pub fn scalar_len(self) -> usize {
        match self {
            Self::P256 => 32,
            Self::P384 => 48,
            Self::P521 => 66,
        }
    }

    fn signing(self) -> &'static aws::EcdsaSigningAlgorithm {
        match self {
            Self::P256 => &aws::ECDSA_P256_SHA256_FIXED_SIGNING,
            Self::P384 => &aws::ECDSA_P384_SHA384_FIXED_SIGNING,
            Self::P521 => &aws::ECDSA_P521_SHA512_FIXED_SIGNING,
        }
    }

    fn verifying(self) -> &'static aws::EcdsaVerificationAlgorithm {
        match self {
            Self::P256 => &aws::ECDSA_P256_SHA256_FIXED,
            Self::P384 => &aws::ECDSA_P384_SHA384_FIXED,
            Self::P521 => &aws::ECDSA_P521_SHA512_FIXED,
        }
    }
}

/// What a signature is computed with. The hash is the caller's choice for RSA only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scheme {
    /// Ed25519.
    Ed25519,
    /// ECDSA with the hash that belongs to the curve.
    Ecdsa(Curve),
    /// RSA PKCS#1 v1.5 with SHA-256.
    RsaSha256,
    /// RSA PKCS#1 v1.5 with SHA-512.
    RsaSha512,
}

/// Numbers that are not a usable key, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadKey {
    /// A field has the wrong length or form.
    #[error("malformed {0}")]
    Malformed(&'static str),
    /// An RSA modulus outside [`RSA_MIN_BITS`]`..=`[`RSA_MAX_BITS`].
    #[error("RSA key of {0} bits; {RSA_MIN_BITS} to {RSA_MAX_BITS} are supported")]
    RsaSize(usize),
    /// The private numbers do not belong to the public ones, or to the curve.
    #[error("the parts of the key contradict each other")]
    Inconsistent,
}

/// A signature that does not verify, whatever the reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the signature is wrong")]
pub struct BadSignature;

/// Signing did not work: wrong scheme for the key, or a failure of the library.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("cannot sign with this key and algorithm")]
pub struct CannotSign;

/// A public key that verifies raw signatures.
#[derive(Clone)]
pub struct VerifyingKey(Public);

#[derive(Clone)]
enum Public {
    Ed25519(ParsedPublicKey),
    Ecdsa(Curve, ParsedPublicKey),
    Rsa(PublicKeyComponents<Vec<u8>>),
}

impl VerifyingKey {
    /// Ed25519 from the 32 bytes of RFC 8709 section 4.
    pub fn ed25519(public: &[u8]) -> Result<Self, BadKey> {
        let bad = BadKey::Malformed("Ed25519 public key");
        if public.len() != 32 {
            return Err(bad);
        }
        ParsedPublicKey::new(&aws::ED25519, public)
            .map(|key| Self(Public::Ed25519(key)))
            .map_err(|_| bad)
    }

    /// ECDSA from an uncompressed point (RFC 5656 section 3.1), which must be on the curve.
    pub fn ecdsa(curve: Curve, point: &[u8]) -> Result<Self, BadKey> {
        let bad = BadKey::Malformed("ECDSA public point");
        if point.len() != 1 + 2 * curve.scalar_len() || point.first() != Some(&4) {
            return Err(bad);
        }
        ParsedPublicKey::new(curve.verifying(), point)
            .map(|key| Self(Public::Ecdsa(curve, key)))
            .map_err(|_| bad)
    }

    /// RSA from exponent and modulus, big-endian without leading zeroes.
    pub fn rsa(e: &[u8], n: &[u8]) -> Result<Self, BadKey> {
        let odd = |x: &[u8]| x.last().is_some_and(|low| low & 1 == 1);
        let bits = bit_len(n);
        if !(RSA_MIN_BITS..=RSA_MAX_BITS).contains(&bits) {
            return Err(BadKey::RsaSize(bits));
        }
        if !odd(e) || !(2..=33).contains(&bit_len(e)) || e.first() == Some(&0) {
            return Err(BadKey::Malformed("RSA public exponent"));
        }
        if !odd(n) || n.first() == Some(&0) {
            return Err(BadKey::Malformed("RSA modulus"));
        }
        Ok(Self(Public::Rsa(PublicKeyComponents { n: n.to_vec(), e: e.to_vec() })))
    }

    /// Verifies a raw signature: 64 bytes for Ed25519, `mpint r, mpint s` for ECDSA, a number of
    /// at most the modulus' length for RSA.
    pub fn verify(&self, scheme: Scheme, data: &[u8], sig: &[u8]) -> Result<(), BadSignature> {
        let verified = match (&self.0, scheme) {
            (Public::Ed25519(key), Scheme::Ed25519) => key.verify_sig(data, sig),
            (Public::Ecdsa(curve, key), Scheme::Ecdsa(wanted)) if *curve == wanted => {
                let fixed = ecdsa_fixed(wanted, sig).map_err(|_| BadSignature)?;
                key.verify_sig(data, &fixed)
            }
            (Public::Rsa(key), Scheme::RsaSha256) => {
                let sig = left_pad(sig, key.n.len()).ok_or(BadSignature)?;
                key.verify(&aws::RSA_PKCS1_2048_8192_SHA256, data, &sig)
            }
            (Public::Rsa(key), Scheme::RsaSha512) => {
                let sig = left_pad(sig, key.n.len()).ok_or(BadSignature)?;
                key.verify(&aws::RSA_PKCS1_2048_8192_SHA512, data, &sig)
            }
            _ => return Err(BadSignature),
        };
        verified.map_err(|_| BadSignature)
    }
}

/// The private numbers of an RSA key as OpenSSH keeps them; big-endian, zeroised by their owner.
pub struct RsaParts<'a> {
    /// Modulus.
    pub n: &'a [u8],
    /// Public exponent.
    pub e: &'a [u8],
    /// Private exponent.
    pub d: &'a [u8],
    /// `q^-1 mod p`.
    pub iqmp: &'a [u8],
    /// First prime.
    pub p: &'a [u8],
    /// Second prime.
    pub q: &'a [u8],
}

/// A private key that makes raw signatures. The crypto library clears its memory when freed.
pub struct SigningKey(Private);

enum Private {
    Ed25519(Ed25519KeyPair),
    Ecdsa(Curve, EcdsaKeyPair),
    Rsa(RsaKeyPair),
}

/// The public half of a [`SigningKey`], as numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PublicNumbers {
    /// The 32 bytes of an Ed25519 public key.
    Ed25519([u8; 32]),
    /// Curve and uncompressed point.
    Ecdsa(Curve, Vec<u8>),
    /// Exponent and modulus, big-endian.
    Rsa {
        /// Public exponent.
        e: Vec<u8>,
        /// Modulus.
        n: Vec<u8>,
    },
}

impl SigningKey {
    /// Ed25519 from its 32-byte seed (RFC 8032 section 5.1.5).
    pub fn ed25519(seed: &[u8]) -> Result<Self, BadKey> {
        if seed.len() != 32 {
            return Err(BadKey::Malformed("Ed25519 seed"));
        }
        Ed25519KeyPair::from_seed_unchecked(seed)
            .map(|key| Self(Private::Ed25519(key)))
            .map_err(|_| BadKey::Inconsistent)
    }

    /// ECDSA from the secret scalar (leading zeroes may be missing) and its public point.
    pub fn ecdsa(curve: Curve, scalar: &[u8], point: &[u8]) -> Result<Self, BadKey> {
        let scalar =
            left_pad(scalar, curve.scalar_len()).ok_or(BadKey::Malformed("ECDSA scalar"))?;
        EcdsaKeyPair::from_private_key_and_public_key(curve.signing(), &scalar, point)
            .map(|key| Self(Private::Ecdsa(curve, key)))
            .map_err(|_| BadKey::Inconsistent)
    }

    /// RSA from the numbers in an OpenSSH key file; every one is checked against the others.
    pub fn rsa(parts: &RsaParts<'_>) -> Result<Self, BadKey> {
        VerifyingKey::rsa(parts.e, parts.n)?;
        let components = KeyPairComponents {
            public_key: PublicKeyComponents { n: parts.n, e: parts.e },
            d: parts.d,
            p: parts.p,
            q: parts.q,
            dP: &crt_exponent(parts.d, parts.p)?,
            dQ: &crt_exponent(parts.d, parts.q)?,
            qInv: parts.iqmp,
        };
        RsaKeyPair::from_components(&components)
            .map(|key| Self(Private::Rsa(key)))
            .map_err(|_| BadKey::Inconsistent)
    }

    /// An unencrypted DER private key: PKCS#8 of any supported type, PKCS#1 RSA, SEC 1 ECDSA.
    pub fn from_der(der: &[u8]) -> Result<Self, BadKey> {
        if let Ok(key) = Ed25519KeyPair::from_pkcs8_maybe_unchecked(der) {
            return Ok(Self(Private::Ed25519(key)));
        }
        for curve in Curve::ALL {
            if let Ok(key) = EcdsaKeyPair::from_private_key_der(curve.signing(), der) {
                return Ok(Self(Private::Ecdsa(curve, key)));
            }
        }
        let key = RsaKeyPair::from_pkcs8(der)
            .or_else(|_| RsaKeyPair::from_der(der))
            .map_err(|_| BadKey::Malformed("DER private key"))?;
        let bits = key.public_modulus_len() * 8;
        if !(RSA_MIN_BITS..=RSA_MAX_BITS).contains(&bits) {
            return Err(BadKey::RsaSize(bits));
        }
        Ok(Self(Private::Rsa(key)))
    }

    /// The public half.
    pub fn public(&self) -> Result<PublicNumbers, BadKey> {
        match &self.0 {
            Private::Ed25519(key) => <[u8; 32]>::try_from(key.public_key().as_ref())
                .map(PublicNumbers::Ed25519)
                .map_err(|_| BadKey::Inconsistent),
            Private::Ecdsa(curve, key) => {
                Ok(PublicNumbers::Ecdsa(*curve, key.public_key().as_ref().to_vec()))
            }
            Private::Rsa(key) => {
                let (n, e) = rsa_public_from_der(key.public_key().as_ref())?;
                Ok(PublicNumbers::Rsa { e: e.to_vec(), n: n.to_vec() })
            }
        }
    }

    /// A raw signature over `data`, in the form [`VerifyingKey::verify`] takes.
    pub fn sign(&self, scheme: Scheme, data: &[u8]) -> Result<Vec<u8>, CannotSign> {
        match (&self.0, scheme) {
            (Private::Ed25519(key), Scheme::Ed25519) => {
                key.try_sign(data).map(|sig| sig.as_ref().to_vec()).map_err(|_| CannotSign)
            }
            (Private::Ecdsa(curve, key), Scheme::Ecdsa(wanted)) if *curve == wanted => {
                let sig = key.sign(&SystemRandom::new(), data).map_err(|_| CannotSign)?;
                ecdsa_mpints(wanted, sig.as_ref())
            }
            (Private::Rsa(key), Scheme::RsaSha256) => rsa_sign(key, &aws::RSA_PKCS1_SHA256, data),
            (Private::Rsa(key), Scheme::RsaSha512) => rsa_sign(key, &aws::RSA_PKCS1_SHA512, data),
            _ => Err(CannotSign),
        }
    }
}

fn rsa_sign(
    key: &RsaKeyPair,
    padding: &'static dyn aws::RsaEncoding,
    data: &[u8],
) -> Result<Vec<u8>, CannotSign> {
    let mut sig = vec![0; key.public_modulus_len()];
    key.sign(padding, &SystemRandom::new(), data, &mut sig).map_err(|_| CannotSign)?;
    Ok(sig)
}

/// `d mod (prime - 1)`: OpenSSH's files leave it out, the crypto library wants it.
fn crt_exponent(d: &[u8], prime: &[u8]) -> Result<Zeroizing<Vec<u8>>, BadKey> {
    const BAD: BadKey = BadKey::Malformed("RSA private number");
    let bits = u32::try_from(d.len().max(prime.len()) * 8).map_err(|_| BAD)?;
    if bits as usize > RSA_MAX_BITS {
        return Err(BAD);
    }
    let number = |bytes| BoxedUint::from_be_slice(bytes, bits).map(Zeroizing::new).map_err(|_| BAD);
    let less_one = Zeroizing::new(number(prime)?.wrapping_sub(BoxedUint::one()));
    let divisor = NonZero::new((*less_one).clone()).into_option().map(Zeroizing::new).ok_or(BAD)?;
    let rest = Zeroizing::new(number(d)?.rem(&divisor));
    Ok(Zeroizing::new(rest.to_be_bytes().into_vec()))
}

/// `mpint r, mpint s` (RFC 5656 section 3.1.2) to the two numbers at full length.
fn ecdsa_fixed(curve: Curve, sig: &[u8]) -> Result<Vec<u8>, Malformed> {
    const WHAT: &str = "ECDSA signature";
    let mut r = Reader::new(sig);
    let mut fixed = Vec::with_capacity(2 * curve.scalar_len());
    for _ in 0..2 {
        let number = r.positive_mpint(WHAT)?;
        fixed.extend(left_pad(number, curve.scalar_len()).ok_or(Malformed(WHAT))?.iter());
    }
    r.end(WHAT)?;
    Ok(fixed)
}

fn ecdsa_mpints(curve: Curve, fixed: &[u8]) -> Result<Vec<u8>, CannotSign> {
    let (r, s) = fixed.split_at_checked(curve.scalar_len()).ok_or(CannotSign)?;
    Ok(Writer::new().positive_mpint(r).positive_mpint(s).take())
}

/// `bytes` with leading zeroes up to `len`; `None` when it is longer.
fn left_pad(bytes: &[u8], len: usize) -> Option<Zeroizing<Vec<u8>>> {
    let mut padded = Zeroizing::new(vec![0; len.checked_sub(bytes.len())?]);
    padded.reserve_exact(bytes.len());
    padded.extend_from_slice(bytes);
    Some(padded)
}

fn bit_len(number: &[u8]) -> usize {
    let zeroes = number.iter().take_while(|b| **b == 0).count();
    let top = number.get(zeroes).map_or(0, |b| b.leading_zeros() as usize);
    (number.len() - zeroes) * 8 - top
}

/// Modulus and exponent of `RSAPublicKey ::= SEQUENCE { n INTEGER, e INTEGER }` (RFC 8017
/// appendix A.1.1).
fn rsa_public_from_der<'a>(der: &'a [u8]) -> Result<(&'a [u8], &'a [u8]), BadKey> {
    const SEQUENCE: u8 = 0x30;
    const INTEGER: u8 = 0x02;
    let read = || -> Result<_, Malformed> {
        let mut outer = Reader::new(der);
        let mut inner = Reader::new(der_value(&mut outer, SEQUENCE)?);
        Ok((der_value(&mut inner, INTEGER)?, der_value(&mut inner, INTEGER)?))
    };
    let strip = |what, number: &'a [u8]| match number {
        [0, rest @ ..] => Ok(rest),
        [_, ..] => Ok(number),
        [] => Err(BadKey::Malformed(what)),
    };
    let (n, e) = read().map_err(|bad| BadKey::Malformed(bad.0))?;
    Ok((strip("RSA modulus", n)?, strip("RSA exponent", e)?))
}

fn der_value<'a>(r: &mut Reader<'a>, tag: u8) -> Result<&'a [u8], Malformed> {
    const WHAT: &str = "DER RSA public key";
    if r.u8(WHAT)? != tag {
        return Err(Malformed(WHAT));
    }
    let len = match r.u8(WHAT)? {
        short @ 0..=0x7f => usize::from(short),
        0x81 => usize::from(r.u8(WHAT)?),
        0x82 => usize::from(u16::from_be_bytes(*r.array(WHAT)?)),
        _ => return Err(Malformed(WHAT)),
    };
    r.take(len, WHAT)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(text: &str) -> Vec<u8> {
        let digit = |at: usize| u8::from_str_radix(&text[at..at + 2], 16).expect("hex");
        (0..text.len()).step_by(2).map(digit).collect()
    }

    /// RFC 8032 section 7.1, test 2.
    #[test]
    fn ed25519_vector_of_the_rfc() {
        let seed = hex("4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb");
        let public = hex("3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c");
        let signature = hex(concat!(
            "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da",
            "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00",
        ));
        let key = SigningKey::ed25519(&seed).expect("key");
        assert_eq!(key.sign(Scheme::Ed25519, &[0x72]).as_ref(), Ok(&signature));
        let verifying = VerifyingKey::ed25519(&public).expect("key");
        assert_eq!(verifying.verify(Scheme::Ed25519, &[0x72], &signature), Ok(()));
        assert_eq!(verifying.verify(Scheme::Ed25519, &[0x73], &signature), Err(BadSignature));
    }

    /// RFC 6979 appendix A.2.5 (message "sample", SHA-256): r and s as mpints.
    #[test]
    fn ecdsa_vector_of_the_rfc() {
        let point = hex(concat!(
            "0460fed4ba255a9d31c961eb74c6356d68c049b8923b61fa6ce669622e60f29fb6",
            "7903fe1008b8bc99a41ae9e95628bc64f2f1b20c2d7e9f5177a3c294d4462299",
        ));
        let r = hex("efd48b2aacb6a8fd1140dd9cd45e81d69d2c877b56aaf991c34d0ea84eaf3716");
        let s = hex("f7cb1c942d657c41d436c7a1b6e29f65f3e900dbb9aff4064dc4ab2f843acda8");
        let key = VerifyingKey::ecdsa(Curve::P256, &point).expect("key");
        let signature = Writer::new().positive_mpint(&r).positive_mpint(&s).take();
        let scheme = Scheme::Ecdsa(Curve::P256);
        assert_eq!(key.verify(scheme, b"sample", &signature), Ok(()));
        // Exactly one encoding: no missing sign byte, no number longer than the curve's.
        for bad in [
            Writer::new().string(&r).string(&s).take(),
            Writer::new().positive_mpint(&r).positive_mpint(&[&[1][..], &s].concat()).take(),
            Writer::new().positive_mpint(&r).string(b"").take(),
            Writer::new().raw(&signature).u8(0).take(),
        ] {
            assert_eq!(key.verify(scheme, b"sample", &bad), Err(BadSignature));
        }
    }

    #[test]
    fn crt_exponents_are_remainders() {
        let remainder = |d: &[u8], prime: &[u8]| crt_exponent(d, prime).map(|e| e.to_vec());
        assert_eq!(remainder(&[100], &[8]).map(|e| e.last().copied()), Ok(Some(100 % 7)));
        assert!(remainder(&[100], &[1]).is_err());
        assert!(remainder(&[1; 2_000], &[7]).is_err());
    }

    #[test]
    fn bits_are_counted_from_the_highest_one() {
        for (number, bits) in [(&[][..], 0), (&[0, 0], 0), (&[1], 1), (&[0, 0x80], 8), (&[1, 0], 9)]
        {
            assert_eq!(bit_len(number), bits, "{number:?}");
        }
    }
}
