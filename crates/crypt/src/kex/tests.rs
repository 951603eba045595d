//! Every exchange against an encoding of the shared secret written a second time, and every
//! public value that must be refused (B6).

use super::*;
use crate::Hash;

/// `mpint` by the words of RFC 4251 section 5, digit by digit: "unnecessary leading bytes with
/// the value 0 or 255 MUST NOT be included", "if the most significant bit would be set for a
/// positive number, the number MUST be preceded by a zero byte".
fn reference_mpint(magnitude: &[u8]) -> Vec<u8> {
    let mut digits: Vec<u8> = magnitude.to_vec();
    while digits.first() == Some(&0) {
        digits.remove(0);
    }
    if !digits.is_empty() && digits[0] > 127 {
        digits.insert(0, 0);
    }
    let mut out = vec![0, 0, (digits.len() / 256) as u8, (digits.len() % 256) as u8];
    out.append(&mut digits);
    out
}

/// Which kinds of secret a run has met.
#[derive(Default)]
struct Seen {
    leading_zero: usize,
    high_bit: usize,
}

impl Seen {
    fn note(&mut self, secret: &[u8]) {
        self.leading_zero += usize::from(secret[0] == 0);
        self.high_bit += usize::from(secret[0] > 127);
    }

    fn both(&self) -> bool {
        self.leading_zero > 0 && self.high_bit > 0
    }
}

/// `rounds` exchanges. `raw` gives the client's secret before encoding.
fn classic<T>(
    method: Method,
    rounds: usize,
    generate: impl Fn() -> (T, Vec<u8>),
    raw: impl Fn(&T, &[u8]) -> Vec<u8>,
    agree: impl Fn(&T, &[u8]) -> SharedSecret,
) -> Seen {
    let mut seen = Seen::default();
    for _ in 0..rounds {
        let (own, public) = generate();
        let (answer, theirs) = respond(method, &public).unwrap();
        let secret = raw(&own, &answer);
        assert_eq!(agree(&own, &answer).encoded(), theirs.encoded());
        assert_eq!(theirs.encoded(), reference_mpint(&secret));
        seen.note(&secret);
    }
    seen
}

#[test]
fn curve25519_secrets_agree_and_are_encoded_as_mpint() {
    let seen = classic(
        Method::Curve25519,
        10_000,
        || x25519::Ephemeral::generate().unwrap(),
        |own, peer| own.raw(peer).unwrap().to_vec(),
        |own, peer| own.agree(peer).unwrap(),
    );
    assert!(seen.both());
}

fn nist(method: Method, rounds: usize) -> Seen {
    classic(
        method,
        rounds,
        || ecdh::Ephemeral::generate(method).unwrap(),
        |own, peer| own.raw(peer).unwrap().to_vec(),
        |own, peer| own.agree(peer).unwrap(),
    )
}

#[test]
fn nistp256_secrets_agree_and_are_encoded_as_mpint() {
    assert!(nist(Method::EcdhP256, 10_000).both());
}

#[test]
fn nistp384_secrets_agree_and_are_encoded_as_mpint() {
    assert!(nist(Method::EcdhP384, 5_000).both());
}

/// 521 bits in 66 bytes: the first byte is 0 or 1, a high first bit comes after a zero byte.
#[test]
fn nistp521_secrets_agree_and_are_encoded_as_mpint() {
    assert!(nist(Method::EcdhP521, 2_000).leading_zero > 500);
}

/// Too slow to meet leading zeroes and high bits by chance; a test in `dh` makes them.
#[test]
fn group14_secrets_agree_and_are_encoded_as_mpint() {
    classic(
        Method::DhGroup14Sha256,
        60,
        dh::Group14::generate,
        |own, peer| own.raw(peer).unwrap().to_vec(),
        |own, peer| own.agree(peer).unwrap(),
    );
}

#[test]
fn group16_secrets_agree_and_are_encoded_as_mpint() {
    classic(
        Method::DhGroup16Sha512,
        8,
        dh::Group16::generate,
        |own, peer| own.raw(peer).unwrap().to_vec(),
        |own, peer| own.agree(peer).unwrap(),
    );
}

/// A hybrid's secret is a hash as a `string`: leading zeroes stay, no sign byte comes.
/// `rounds` exchanges with each of `keys` client keys.
fn hybrids<T>(
    method: Method,
    [keys, rounds]: [usize; 2],
    generate: impl Fn() -> (T, Vec<u8>),
    raw: impl Fn(&T, &[u8]) -> (Vec<u8>, Vec<u8>),
    finish: impl Fn(&T, &[u8]) -> SharedSecret,
) -> Seen {
    let mut seen = Seen::default();
    let mut exchange = |own: &T, public: &[u8]| {
        let (answer, theirs) = respond(method, public).unwrap();
        let (quantum, classic) = raw(own, &answer);
        let hash = method.hash().digest(&[&[quantum, classic].concat()]);
        let length = [0, 0, 0, hash.as_slice().len() as u8];
        assert_eq!(finish(own, &answer).encoded(), theirs.encoded());
        assert_eq!(theirs.encoded(), [&length, hash.as_slice()].concat());
        seen.note(hash.as_slice());
    };
    for _ in 0..keys {
        let (own, public) = generate();
        (0..rounds).for_each(|_| exchange(&own, &public));
    }
    seen
}

#[test]
fn mlkem_secrets_agree_and_are_encoded_as_string() {
    let seen = hybrids(
        Method::MlKem768X25519,
        [10_000, 1],
        || mlkem::Ephemeral::generate().unwrap(),
        |own, peer| {
            let (quantum, classic) = own.raw(peer).unwrap();
            (quantum.as_ref().to_vec(), classic.to_vec())
        },
        |own, peer| own.finish(peer).unwrap(),
    );
    assert!(seen.both());
}

#[cfg(feature = "sntrup")]
#[test]
fn sntrup_secrets_agree_and_are_encoded_as_string() {
    let seen = hybrids(
        Method::Sntrup761X25519,
        [5, 30],
        || sntrup::Ephemeral::generate().unwrap(),
        |own, peer| {
            let (quantum, classic) = own.raw(peer).unwrap();
            (quantum.as_ref().to_vec(), classic.to_vec())
        },
        |own, peer| own.finish(peer).unwrap(),
    );
    assert!(seen.high_bit > 0);
}

#[test]
fn mpint_secrets_have_no_spare_zero_and_no_sign() {
    for magnitude in [
        &[][..],
        &[0],
        &[0, 0, 0],
        &[1],
        &[0x7f, 0xff],
        &[0x80],
        &[0, 0x7f],
        &[0, 0x80],
        &[0, 0, 0xff, 0],
        &[0xff; 66],
        &[0x80; 512],
    ] {
        assert_eq!(SharedSecret::mpint(magnitude).encoded(), reference_mpint(magnitude));
    }
}

/// Length of what a client sends and of what a server answers.
fn lengths(method: Method) -> (usize, usize) {
    match method {
        Method::Curve25519 => (32, 32),
        Method::EcdhP256 => (65, 65),
        Method::EcdhP384 => (97, 97),
        Method::EcdhP521 => (133, 133),
        Method::DhGroup14Sha256 => (256, 256),
        Method::DhGroup16Sha512 => (512, 512),
        Method::MlKem768X25519 => (1184 + 32, 1088 + 32),
        #[cfg(feature = "sntrup")]
        Method::Sntrup761X25519 => (1158 + 32, 1039 + 32),
    }
}

/// Both roles refuse `public`.
fn refused(method: Method, public: &[u8]) -> [KexError; 2] {
    let (own, _) = Initiator::start(method).unwrap();
    [own.finish(public).unwrap_err(), respond(method, public).err().unwrap()]
}

#[test]
fn public_values_have_the_length_of_their_method() {
    for (name, method) in Method::NAMES {
        let (own, public) = Initiator::start(*method).unwrap();
        let (answer, secret) = respond(*method, &public).unwrap();
        assert_eq!((public.len(), answer.len()), lengths(*method), "{name}");
        assert_eq!(own.finish(&answer).unwrap().encoded(), secret.encoded(), "{name}");
    }
}

#[test]
fn a_public_value_one_byte_too_long_or_short_is_refused() {
    for (name, method) in Method::NAMES {
        let (_, public) = Initiator::start(*method).unwrap();
        let (answer, _) = respond(*method, &public).unwrap();
        let longer = |bytes: &[u8]| [bytes, &[1]].concat();
        let shorter = |bytes: &[u8]| bytes[..bytes.len() - 1].to_vec();
        for change in [&longer as &dyn Fn(&[u8]) -> Vec<u8>, &shorter, &|_| Vec::new()] {
            // A Diffie-Hellman value is a number: a shorter one is another number in range.
            if method.is_dh() && change(&public).len() < public.len() && !change(&public).is_empty()
            {
                continue;
            }
            let (own, _) = Initiator::start(*method).unwrap();
            assert!(own.finish(&change(&answer)).is_err(), "{name}");
            assert!(respond(*method, &change(&public)).is_err(), "{name}");
        }
    }
}

/// The points of order 1, 2, 4 and 8, on the curve and on its twist, and their aliases beyond
/// the field's prime.
const LOW_ORDER: [&str; 7] = [
    "0000000000000000000000000000000000000000000000000000000000000000",
    "0100000000000000000000000000000000000000000000000000000000000000",
    "e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800",
    "5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157",
    "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
];

fn unhex(text: &str) -> Vec<u8> {
    (0..text.len()).step_by(2).map(|i| u8::from_str_radix(&text[i..i + 2], 16).unwrap()).collect()
}

#[test]
fn x25519_points_of_low_order_are_refused_in_every_method_that_has_one() {
    for point in LOW_ORDER.map(unhex) {
        assert_eq!(refused(Method::Curve25519, &point), [KexError::Value; 2], "{point:02x?}");
        for (name, method) in Method::NAMES.iter().filter(|(n, _)| n.contains("x25519-")) {
            let (own, public) = Initiator::start(*method).unwrap();
            let (answer, _) = respond(*method, &public).unwrap();
            let with_point = |value: &[u8]| [&value[..value.len() - 32], &point].concat();
            assert!(own.finish(&with_point(&answer)).is_err(), "{name}");
            assert!(respond(*method, &with_point(&public)).is_err(), "{name}");
        }
    }
}

#[test]
fn nist_points_off_the_curve_or_not_in_the_one_form_are_refused() {
    for method in [Method::EcdhP256, Method::EcdhP384, Method::EcdhP521] {
        let (_, good) = Initiator::start(method).unwrap();
        let field = (good.len() - 1) / 2;
        let mut off_curve = good.clone();
        off_curve[good.len() - 1] ^= 1;
        let mut hybrid_form = good.clone();
        hybrid_form[0] = 6 + (good[good.len() - 1] & 1);
        let beyond_field = [&[4][..], &vec![0xff; 2 * field]].concat();
        let zero = [&[4][..], &vec![0; 2 * field]].concat();
        for bad in [off_curve, hybrid_form, beyond_field, zero, vec![0; good.len()]] {
            assert_eq!(refused(method, &bad), [KexError::Value; 2]);
        }
        let compressed = [&[2 + (good[good.len() - 1] & 1)][..], &good[1..=field]].concat();
        for bad in [compressed, vec![0]] {
            assert!(matches!(refused(method, &bad), [KexError::Length { .. }, _]));
        }
    }
}

#[test]
fn group_elements_out_of_range_are_refused() {
    for (method, prime) in [
        (Method::DhGroup14Sha256, unhex(groups::GROUP14)),
        (Method::DhGroup16Sha512, unhex(groups::GROUP16)),
    ] {
        let last = prime.len() - 1;
        let changed = |by: i8| {
            let mut value = prime.clone();
            value[last] = value[last].wrapping_add_signed(by);
            value
        };
        let beyond = vec![0xff; prime.len()];
        for bad in [vec![], vec![0], vec![1], prime.clone(), changed(-1), beyond] {
            assert_eq!(refused(method, &bad), [KexError::Value; 2]);
        }
        for good in [vec![2], changed(-2)] {
            assert!(respond(method, &good).is_ok());
        }
    }
}

#[test]
fn an_mlkem_key_that_is_not_reduced_is_refused() {
    let (_, mut public) = Initiator::start(Method::MlKem768X25519).unwrap();
    // FIPS 203 section 7.2: coefficients are below 3329; three bytes hold two of twelve bits.
    public[..3].fill(0xff);
    assert_eq!(respond(Method::MlKem768X25519, &public).err(), Some(KexError::Value));
}

/// Implicit rejection: no error to tell the attacker anything, and no agreement either.
#[test]
fn a_changed_kem_ciphertext_leads_to_another_secret() {
    for (name, method) in Method::NAMES.iter().filter(|(n, _)| n.contains("x25519-")) {
        let (own, public) = Initiator::start(*method).unwrap();
        let (mut answer, secret) = respond(*method, &public).unwrap();
        answer[100] ^= 1;
        assert_ne!(own.finish(&answer).unwrap().encoded(), secret.encoded(), "{name}");
    }
}

#[test]
fn two_exchanges_share_nothing() {
    for (name, method) in Method::NAMES {
        let (_, first) = Initiator::start(*method).unwrap();
        let (_, second) = Initiator::start(*method).unwrap();
        assert_ne!(first, second, "{name}");
        let secrets = [(); 2].map(|()| respond(*method, &first).unwrap().1);
        assert_ne!(secrets[0].encoded(), secrets[1].encoded(), "{name}");
    }
}

#[test]
fn names_are_unique_and_known() {
    for (name, method) in Method::NAMES {
        assert_eq!(Method::from_name(name), Some(*method));
        assert_eq!(method.is_dh(), name.starts_with("diffie"));
    }
    assert_eq!(Method::from_name("diffie-hellman-group1-sha1"), None);
    assert_eq!(Method::EcdhP384.hash(), Hash::Sha384);
}

/// RFC 3526: both begin and end with 64 one bits; the digits between are pi's.
#[test]
fn group_primes_are_those_of_the_rfc() {
    for (prime, bits, c) in [(groups::GROUP14, 2048, "AACAA68"), (groups::GROUP16, 4096, "4063199")]
    {
        assert_eq!(prime.len() * 4, bits);
        assert!(prime.starts_with("FFFFFFFFFFFFFFFFC90FDAA22168C234C4C6628B80DC1CD1"));
        assert!(prime.ends_with(&format!("{c}FFFFFFFFFFFFFFFF")));
    }
}
