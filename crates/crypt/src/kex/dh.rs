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
        Ok(SharedSecret::mpint(&self.raw(peer)?))
    }

    /// K, big-endian and as long as the prime.
    pub(super) fn raw(&self, peer: &[u8]) -> Result<Zeroizing<Vec<u8>>, KexError> {
        let shared = Zeroizing::new(self.raise(&self.group.element(peer)?));
        Ok(Zeroizing::new(Zeroizing::new(shared.to_be_bytes()).as_ref().to_vec()))
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

#[cfg(test)]
mod tests {
    use super::*;

    /// With an exponent of one the secret is the peer's value: any encoding can be provoked.
    #[test]
    fn a_secret_with_leading_zeroes_or_a_high_bit_is_a_shortest_mpint() {
        let exponent = Zeroizing::new(U512::ONE);
        let own = Ephemeral { exponent, group: &GROUP16 };
        for (peer, encoded) in [
            (&[2][..], &[0, 0, 0, 1, 2][..]),
            (&[0x80], &[0, 0, 0, 2, 0, 0x80]),
            (&[0, 0, 0xff, 0], &[0, 0, 0, 3, 0, 0xff, 0]),
            (&[0x7f, 0xff], &[0, 0, 0, 2, 0x7f, 0xff]),
        ] {
            assert_eq!(own.raw(peer).map(|raw| raw.len()), Ok(512));
            assert_eq!(own.agree(peer).unwrap().encoded(), encoded);
        }
    }

    /// Small numbers, so that the powers can be checked by eye: 2^10 and (2^10)^3.
    #[test]
    fn powers_are_powers() {
        let own = |e: u32| Ephemeral { exponent: Zeroizing::new(U512::from(e)), group: &GROUP14 };
        assert_eq!(own(10).agree(&[2]).unwrap().encoded(), [0, 0, 0, 2, 4, 0]);
        assert_eq!(own(3).agree(&[4, 0]).unwrap().encoded(), [0, 0, 0, 4, 0x40, 0, 0, 0]);
    }
}
