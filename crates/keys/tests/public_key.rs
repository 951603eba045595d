//! Public keys and signature blobs that are wrong in one respect.

mod common;

use common::{KINDS, keygen};
use keys::{BadSignature, PrivateKey, PublicKey, PublicKeyError, SigAlg};
use proptest::prelude::*;
use std::fs;
use tempfile::TempDir;
use wire::{Reader, Writer};

fn keys() -> Vec<PrivateKey> {
    let dir = TempDir::new().expect("dir");
    let load = |kind: &(&str, &str)| {
        let file = fs::read(keygen(dir.path(), *kind, "", &[])).expect("file");
        PrivateKey::from_bytes(&file, None).expect("key")
    };
    KINDS[..5].iter().map(load).collect()
}

#[test]
fn a_signature_that_names_another_algorithm_than_negotiated_is_refused() {
    for key in keys() {
        for alg in key.public().sig_algs() {
            let signature = key.sign(*alg, b"data").expect("signature");
            let mut r = Reader::new(&signature);
            let (_, raw) = (r.string("name").expect("blob"), r.string("raw").expect("blob"));
            for other in SigAlg::ALL.iter().filter(|other| *other != alg) {
                assert_eq!(key.public().verify(*other, b"data", &signature), Err(BadSignature));
                let renamed = Writer::new().string(other.name()).string(raw).take();
                assert_eq!(key.public().verify(*alg, b"data", &renamed), Err(BadSignature));
                assert_eq!(key.public().verify(*other, b"data", &renamed), Err(BadSignature));
            }
        }
    }
}

#[test]
fn a_signature_blob_cut_or_extended_is_refused() {
    for key in keys() {
        let alg = key.public().sig_algs()[0];
        let mut signature = key.sign(alg, b"data").expect("signature");
        for len in 0..signature.len() {
            assert!(key.public().verify(alg, b"data", &signature[..len]).is_err(), "{len}");
        }
        signature.push(0);
        assert!(key.public().verify(alg, b"data", &signature).is_err());
    }
}

#[test]
fn a_signature_with_any_bit_flipped_is_refused() {
    for key in keys() {
        let alg = key.public().sig_algs()[0];
        let mut signature = key.sign(alg, b"data").expect("signature");
        for bit in 0..signature.len() * 8 {
            signature[bit / 8] ^= 1 << (bit % 8);
            assert!(key.public().verify(alg, b"data", &signature).is_err(), "{alg:?} {bit}");
            signature[bit / 8] ^= 1 << (bit % 8);
        }
    }
}

/// Some signers drop the leading zeroes of the number; OpenSSH accepts that, and so do we.
#[test]
fn an_rsa_signature_without_its_leading_zeroes_is_good() {
    let keys = keys();
    let key = keys.last().expect("rsa");
    let raw = |data: &[u8]| {
        let signature = key.sign(SigAlg::RsaSha256, data).expect("signature");
        signature[signature.len() - 256..].to_vec()
    };
    let (data, short) = (0u32..)
        .map(|n| n.to_be_bytes())
        .find_map(|data| Some((data, raw(&data).strip_prefix(&[0])?.to_vec())))
        .expect("one in 256");
    let blob = Writer::new().string("rsa-sha2-256").string(&short).take();
    assert_eq!(key.public().verify(SigAlg::RsaSha256, &data, &blob), Ok(()));
    let long = [&[0, 0][..], &short].concat();
    let blob = Writer::new().string("rsa-sha2-256").string(long).take();
    assert_eq!(key.public().verify(SigAlg::RsaSha256, &data, &blob), Err(BadSignature));
}

#[test]
fn a_key_blob_cut_or_extended_is_refused() {
    for key in keys() {
        let blob = key.public().blob();
        for len in 0..blob.len() {
            assert!(PublicKey::parse(&blob[..len]).is_err(), "{len}");
        }
        assert!(PublicKey::parse(&[blob, &[0]].concat()).is_err());
    }
}

#[test]
fn numbers_that_are_no_key_are_refused() {
    let point = |first: u8, rest: &[u8]| [&[first], rest].concat();
    let ecdsa = |name: &str, curve: &str, point: &[u8]| {
        Writer::new().string(name).string(curve).string(point).take()
    };
    let rsa = |e: &[u8], n: &[u8]| {
        Writer::new().string("ssh-rsa").positive_mpint(e).positive_mpint(n).take()
    };
    let odd = |len: usize| vec![0xff; len];
    let p256 = "ecdsa-sha2-nistp256";
    for (what, blob) in [
        ("off the curve", ecdsa(p256, "nistp256", &point(4, &[1; 64]))),
        ("compressed", ecdsa(p256, "nistp256", &point(2, &[1; 32]))),
        ("infinity", ecdsa(p256, "nistp256", &[0])),
        ("another curve inside", ecdsa(p256, "nistp384", &point(4, &[1; 96]))),
        ("short ed25519", Writer::new().string("ssh-ed25519").string([1; 31]).take()),
        ("short rsa", rsa(&[1, 0, 1], &odd(255))),
        ("long rsa", rsa(&[1, 0, 1], &odd(1025))),
        ("exponent 1", rsa(&[1], &odd(256))),
        ("even exponent", rsa(&[1, 0, 0], &odd(256))),
        ("long exponent", rsa(&odd(5), &odd(256))),
        ("even modulus", rsa(&[1, 0, 1], &[odd(255), vec![0]].concat())),
    ] {
        assert!(PublicKey::parse(&blob).is_err(), "{what}");
    }
    assert!(PublicKey::parse(&rsa(&[1, 0, 1], &odd(256))).is_ok());
}

#[test]
fn a_line_that_names_another_type_than_its_key_is_refused() {
    let key = PrivateKey::from_ed25519_seed(&[1; 32]).expect("key").public().clone();
    let line = key.to_openssh().replacen("ssh-ed25519", "ssh-rsa", 1);
    let error = PublicKey::from_openssh(&line).expect_err("refused");
    assert!(matches!(error, PublicKeyError::TypeMismatch { .. }), "{error}");
    assert_eq!(PublicKey::from_openssh(&format!("{} a comment", key.to_openssh())), Ok(key));
}

#[test]
fn private_keys_show_nothing_of_themselves() {
    let key = PrivateKey::from_ed25519_seed(&[0x41; 32]).expect("key");
    let fingerprint = key.public().fingerprint();
    assert_eq!(format!("{key:?}"), format!("PrivateKey({fingerprint})"));
}

proptest! {
    #[test]
    fn no_blob_panics(tail in proptest::collection::vec(any::<u8>(), 0..80), which in 0usize..6) {
        let name = SigAlg::ALL[which].key_type();
        let _ = PublicKey::parse(&tail);
        let _ = PublicKey::parse(&Writer::new().string(name).raw(&tail).take());
    }

    #[test]
    fn no_line_panics(line in "(ssh-rsa|ssh-ed25519|x) [A-Za-z0-9+/= ]{0,40}") {
        let _ = PublicKey::from_openssh(&line);
    }

    #[test]
    fn no_private_key_file_panics(body in "[A-Za-z0-9+/=\n ]{0,80}", which in 0usize..5) {
        let labels = ["OPENSSH PRIVATE KEY", "RSA PRIVATE KEY", "EC PRIVATE KEY", "PRIVATE KEY", "X"];
        let label = labels[which];
        let file = format!("-----BEGIN {label}-----\n{body}-----END {label}-----\n");
        prop_assert!(PrivateKey::from_bytes(file.as_bytes(), Some("p")).is_err());
        prop_assert!(PrivateKey::from_bytes(body.as_bytes(), None).is_err());
    }
}
