//! Finite-field Diffie-Hellman in the two groups of [`groups`](super::groups) (RFC 4253
//! section 8, RFC 8268), over fixed-size integers in constant time.

use super::{SharedSecret, groups};
use crate::{KexError, random};
use crypto_bigint::modular::{FixedMontyForm, FixedMontyParams};
use crypto_bigint::{Odd, U512, U2048, U4096, Uint};
use zeroize::Zeroizing;

/// Bits of the secret exponent. 512 is twice the 256 bits of the strongest key derived from the
/// result, which is the size OpenSSH chooses; in a group whose order is a prime times two a
/// short exponent is as hard to find as the best attack on the group (RFC 7919 section 5.2).
const EXPONENT_BITS: u32 = U512::BITS;

/// diffie-hellman-group14-sha256.
pub(super) type Group14 = Ephemeral<{ U2048::LIMBS }>;
/// diffie-hellman-group16-sha512.
pub(super) type Group16 = Ephemeral<{ U4096::LIMBS }>;

/// A fresh secret exponent and its group.
pub(super) struct Ephemeral<const LIMBS: usize> {
    exponent: Zeroizing<U512>,
    group: &'static Group<LIMBS>,
}

/// A prime and what Montgomery multiplication needs of it, computed by the compiler.
struct Group<const LIMBS: usize> {
    params: FixedMontyParams<LIMBS>,
}

static GROUP14: Group<{ U2048::LIMBS }> = Group::new(groups::GROUP14);
static GROUP16: Group<{ U4096::LIMBS }> = Group::new(groups::GROUP16);

impl Group14 {
    pub(super) fn generate() -> (Self, Vec<u8>) {
        Self::of(&GROUP14)
    }
}

impl Group16 {
    pub(super) fn generate() -> (Self, Vec<u8>) {
        Self::of(&GROUP16)
    }
}

impl<const LIMBS: usize> Ephemeral<LIMBS> {
    /// The secret and `2^secret mod p`, big-endian.
    fn of(group: &'static Group<LIMBS>) -> (Self, Vec<u8>) {
        let mut bytes = Zeroizing::new([0; U512::BYTES]);
        random(&mut *bytes);
        let own = Self { exponent: Zeroizing::new(U512::from_be_slice(&*bytes)), group };
        let public = own.raise(&Uint::from_u32(2));
        (own, public.to_be_bytes().as_ref().to_vec())
    }

    /// K is the peer's value to the power of our secret.
    pub(super) fn agree(&self, peer: &[u8]) -> Result<SharedSecret, KexError> {
        let peer = self.group.element(peer)?;
        let shared = Zeroizing::new(self.raise(&peer));
        Ok(SharedSecret::mpint(Zeroizing::new(shared.to_be_bytes()).as_ref()))
    }

    fn raise(&self, base: &Uint<LIMBS>) -> Uint<LIMBS> {
        let base = FixedMontyForm::new(base, &self.group.params);
        base.pow_bounded_exp(&self.exponent, EXPONENT_BITS).retrieve()
    }
}

impl<const LIMBS: usize> Group<LIMBS> {
    const fn new(prime: &str) -> Self {
        let odd = Odd::<Uint<LIMBS>>::from_be_hex(prime);
        Self { params: FixedMontyParams::new_vartime(odd) }
    }

    /// RFC 4253 section 8: "Values of 'e' or 'f' that are not in the range [1, p-1] MUST NOT be
    /// sent or accepted." 1 and p - 1 are refused too: their powers are known without a secret.
    fn element(&self, magnitude: &[u8]) -> Result<Uint<LIMBS>, KexError> {
        let expected = Uint::<LIMBS>::BYTES;
        if magnitude.len() > expected {
            return Err(KexError::Length { expected, got: magnitude.len() });
        }
        let mut padded = vec![0; expected - magnitude.len()];
        padded.extend_from_slice(magnitude);
        let value = Uint::from_be_slice(&padded);
        let p_minus_1 = self.params.modulus().get().wrapping_sub(&Uint::ONE);
        if value > Uint::ONE && value < p_minus_1 { Ok(value) } else { Err(KexError::Value) }
    }
}
