//! sntrup761x25519-sha512 (draft-ietf-sshm-ntruprime-ssh): Streamlined NTRU Prime beside X25519.

use super::{SharedSecret, hybrid, x25519, x25519::Point};
use crate::{CryptError, Hash, KexError, random, random_array};
use sntrup761::rand::{TryCryptoRng, TryRng};
use sntrup761::{Ciphertext, DecapsulationKey, EncapsulationKey};
use std::convert::Infallible;

pub(super) use sntrup761::{CIPHERTEXT_SIZE as CIPHERTEXT_LEN, PUBLIC_KEY_SIZE as PUBLIC_LEN};

/// The client's two secrets.
pub(super) struct Ephemeral {
    kem: DecapsulationKey,
    point: x25519::Ephemeral,
}

impl Ephemeral {
    pub(super) fn generate() -> Result<(Self, Vec<u8>), CryptError> {
        let (key, kem) = sntrup761::generate_key(Random);
        let (point, public) = x25519::Ephemeral::generate()?;
        Ok((Self { kem, point }, hybrid::join(key.as_ref(), &public)))
    }

    pub(super) fn finish(&self, server: &[u8]) -> Result<SharedSecret, KexError> {
        let (secret, classic) = self.raw(server)?;
        Ok(SharedSecret::hybrid(Hash::Sha512, secret.as_ref(), &*classic))
    }

    /// Both secrets. A ciphertext that was not made for our key yields one nobody knows
    /// (implicit rejection): the signature over the exchange hash fails then, not this function.
    pub(super) fn raw(&self, server: &[u8]) -> Result<(sntrup761::SharedSecret, Point), KexError> {
        let (ciphertext, point) = hybrid::split(server, CIPHERTEXT_LEN)?;
        let classic = self.point.raw(point)?;
        let ciphertext = Ciphertext::try_from(ciphertext).map_err(|_| KexError::Value)?;
        Ok((self.kem.decapsulate(&ciphertext), classic))
    }
}

pub(super) fn respond(client: &[u8]) -> Result<(Vec<u8>, SharedSecret), KexError> {
    let (key, point) = hybrid::split(client, PUBLIC_LEN)?;
    let (own, public) = x25519::Ephemeral::generate()?;
    let classic = own.raw(point)?;
    let key = EncapsulationKey::try_from(key).map_err(|_| KexError::Value)?;
    let (ciphertext, secret) = key.encapsulate(Random);
    let shared = SharedSecret::hybrid(Hash::Sha512, secret.as_ref(), &*classic);
    Ok((hybrid::join(ciphertext.as_ref(), &public), shared))
}

/// Our generator behind the interface the KEM asks for.
struct Random;

impl TryRng for Random {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        Ok(u32::from_ne_bytes(random_array()))
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        Ok(u64::from_ne_bytes(random_array()))
    }

    fn try_fill_bytes(&mut self, out: &mut [u8]) -> Result<(), Infallible> {
        random(out);
        Ok(())
    }
}

impl TryCryptoRng for Random {}
