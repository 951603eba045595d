//! Keys at work: round trips, flipped bits, any order and any number of threads.

mod common;

use common::{Keys, material, noise, noise_material, of, protections};
use crypt::{ChaChaKey, Cipher, CryptError, CtrKey, GcmKey, Mac, MacKey, Protection, Shape};
use std::thread;

fn shared<T: Send + Sync>() {}

#[test]
fn keys_may_be_used_by_several_threads() {
    shared::<GcmKey>();
    shared::<ChaChaKey>();
    shared::<CtrKey>();
    shared::<MacKey>();
}

#[test]
fn what_is_sealed_opens_under_every_protection() {
    for protection in protections() {
        let keys = Keys::new(protection, &noise_material(protection, 1));
        for len in [16, 32, 4096, 32 * 1024 + 16] {
            let plain = noise(len as u64, len);
            let (mut packet, mut tag) = (plain.clone(), vec![0; protection.tag_len()]);
            keys.seal(3, &mut packet, &mut tag);
            assert_ne!(packet[4..], plain[4..], "{protection:?}");
            assert!(keys.open(3, &mut packet, &tag), "{protection:?}");
            assert_eq!(packet[4..], plain[4..], "{protection:?}");
        }
    }
}

/// P7 for one packet: every bit of it and of its tag, under every protection.
#[test]
fn no_flipped_bit_is_accepted() {
    for protection in protections() {
        let keys = Keys::new(protection, &noise_material(protection, 2));
        let (mut packet, mut tag) = (noise(7, 64), vec![0; protection.tag_len()]);
        keys.seal(9, &mut packet, &mut tag);
        for bit in 0..(packet.len() + tag.len()) * 8 {
            let mut sealed = [packet.clone(), tag.clone()].concat();
            sealed[bit / 8] ^= 1 << (bit % 8);
            let (packet, tag) = sealed.split_at_mut(packet.len());
            assert!(!keys.open(9, packet, tag), "{protection:?} bit {bit}");
        }
    }
}

#[test]
fn a_packet_does_not_open_at_another_number_or_under_another_key() {
    for protection in protections() {
        let keys = Keys::new(protection, &noise_material(protection, 3));
        let others = Keys::new(protection, &noise_material(protection, 4));
        let (mut packet, mut tag) = (noise(8, 64), vec![0; protection.tag_len()]);
        keys.seal(5, &mut packet, &mut tag);
        for number in [0, 4, 6, u32::MAX] {
            assert!(!keys.open(number, &mut packet.clone(), &tag), "{protection:?}");
        }
        assert!(!others.open(5, &mut packet.clone(), &tag), "{protection:?}");
        assert!(keys.open(5, &mut packet, &tag), "{protection:?}");
    }
}

/// P5, for the keys that check and decrypt in one call.
#[test]
fn a_packet_that_fails_leaves_no_plaintext_behind() {
    for cipher in [Cipher::Aes128Gcm, Cipher::Aes256Gcm, Cipher::ChaCha20Poly1305] {
        let keys = Keys::new(of(cipher), &noise_material(of(cipher), 5));
        let plain = noise(10, 32 * 1024);
        let (mut packet, mut tag) = (plain.clone(), [0; 16]);
        keys.seal(1, &mut packet, &mut tag);
        tag[15] ^= 1;
        assert!(!keys.open(1, &mut packet, &tag));
        let leaked = packet[4..].chunks(16).zip(plain[4..].chunks(16)).filter(|(a, b)| a == b);
        assert_eq!(leaked.count(), 0, "{cipher:?}");
    }
}

#[test]
fn a_chacha_packet_without_a_length_is_refused() {
    let key = ChaChaKey::new(&material(&[], &noise(1, 64))).unwrap();
    for len in 0..4 {
        assert!(key.seal(0, &mut vec![0; len]).is_err());
        assert!(key.open(0, &mut vec![0; len], &[0; 16]).is_err());
    }
    assert!(key.seal(0, &mut [0; 4]).is_ok());
}

/// P6 at this floor: packets sealed by 1 to 16 threads in whatever order are those of one thread.
#[test]
fn parallel_packets_are_those_of_one_thread() {
    const PACKETS: usize = 64;
    for protection in protections() {
        let keys = Keys::new(protection, &noise_material(protection, 6));
        let seal_all = |threads: usize| {
            let size = 1024 + protection.tag_len();
            let mut batch = noise(11, PACKETS * size);
            let packets: Vec<_> = batch.chunks_mut(size).enumerate().collect();
            let mut shares: Vec<Vec<_>> = (0..threads).map(|_| Vec::new()).collect();
            for (n, packet) in packets {
                shares[n % threads].push((n, packet));
            }
            thread::scope(|scope| {
                for share in shares {
                    let keys = &keys;
                    scope.spawn(move || {
                        for (n, packet) in share.into_iter().rev() {
                            let (packet, tag) = packet.split_at_mut(1024);
                            keys.seal(n as u32, packet, tag);
                        }
                    });
                }
            });
            batch
        };
        let serial = seal_all(1);
        for threads in [2, 3, 7, 16] {
            assert!(seal_all(threads) == serial, "{protection:?}, {threads} threads");
        }
    }
}

/// Initial counters that carry out of 32, 64 and 128 bits on the way.
#[test]
fn ctr_in_chunks_is_ctr_in_one_piece_across_every_carry() {
    const LEN: usize = 64 * 16;
    let ivs = [
        [0; 16],
        u128::from(u32::MAX - 20).to_be_bytes(),
        u128::from(u64::MAX - 20).to_be_bytes(),
        (u128::from(u64::MAX) << 32).wrapping_sub(20).to_be_bytes(),
        (u128::MAX - 20).to_be_bytes(),
    ];
    for cipher in [Cipher::Aes128Ctr, Cipher::Aes192Ctr, Cipher::Aes256Ctr] {
        for iv in ivs {
            let key = CtrKey::new(cipher, &material(&iv, &noise(12, cipher.key_len()))).unwrap();
            let mut whole = noise(13, LEN);
            key.apply(0, &mut whole).unwrap();
            for blocks in 1..20 {
                let mut pieces = noise(13, LEN);
                let chunks = pieces.chunks_mut(blocks * CtrKey::BLOCK).enumerate();
                for (i, chunk) in chunks.collect::<Vec<_>>().into_iter().rev() {
                    key.apply((i * blocks) as u64, chunk).unwrap();
                }
                assert!(pieces == whole, "{cipher:?} in pieces of {blocks} blocks");
            }
        }
    }
}

/// The wrapped counter is the counter that starts at zero.
#[test]
fn ctr_wraps_as_one_number_of_128_bits() {
    let key = noise(14, 16);
    let high = CtrKey::new(Cipher::Aes128Ctr, &material(&[0xff; 16], &key)).unwrap();
    let zero = CtrKey::new(Cipher::Aes128Ctr, &material(&[0; 16], &key)).unwrap();
    let (mut a, mut b, mut c) = ([0; 48], [0; 32], [0; 32]);
    high.apply(0, &mut a).unwrap();
    zero.apply(0, &mut b).unwrap();
    high.apply(1, &mut c).unwrap();
    assert_eq!((&a[16..], b), (&b[..], c));
}

#[test]
fn key_material_of_the_wrong_length_or_cipher_is_refused() {
    for protection in protections() {
        let good = noise_material(protection, 15);
        let build = |iv: usize, key: usize| {
            let material = material(&noise(1, iv), &noise(2, key));
            match protection.shape() {
                Shape::Gcm(cipher) => GcmKey::new(cipher, &material).map(|_| ()),
                Shape::ChaCha => ChaChaKey::new(&material).map(|_| ()),
                Shape::Ctr(cipher, _) => CtrKey::new(cipher, &material).map(|_| ()),
            }
        };
        assert_eq!(build(good.iv.len(), good.key.len()), Ok(()));
        for (iv, key) in [(0, 1), (0, 0), (1, 0)] {
            let bad = build(good.iv.len() + iv, good.key.len() + key);
            let harmless = (iv, key) == (0, 0) || (protection.iv_len() == 0 && key == 0);
            assert_eq!(bad.is_ok(), harmless, "{protection:?}");
        }
        assert!(build(good.iv.len(), good.key.len() - 1).is_err());
        assert!(build(good.iv.len(), 0).is_err());
    }
    let m = material(&[0; 12], &[0; 16]);
    assert!(GcmKey::new(Cipher::Aes128Ctr, &m).is_err());
    assert!(CtrKey::new(Cipher::Aes128Gcm, &m).is_err());
    let short = MacKey::new(Mac::HmacSha256, &[0; 31]).map(|_| ());
    assert_eq!(short, Err(CryptError::Length { what: "HMAC key", expected: 32, got: 31 }));
}

#[test]
fn a_mac_of_another_length_is_refused() {
    for mac in Mac::ALL {
        let key = MacKey::new(*mac, &noise(16, mac.key_len())).unwrap();
        let tag = key.tag(1, &[b"data"]);
        assert_eq!(tag.as_slice().len(), mac.tag_len());
        let longer = [tag.as_slice(), &[0]].concat();
        for bad in [&[][..], &tag.as_slice()[..16], &longer] {
            assert!(key.verify(1, &[b"data"], bad).is_err(), "{mac:?}");
        }
    }
}

/// B9: one value, never without integrity, never with two.
#[test]
fn a_protection_has_exactly_one_integrity() {
    for cipher in Cipher::ALL {
        assert_eq!(Protection::new(*cipher, None).is_some(), cipher.is_aead());
        for mac in Mac::ALL {
            let both = Protection::new(*cipher, Some(*mac)).unwrap();
            assert_eq!(both.mac(), (!cipher.is_aead()).then_some(*mac));
            assert_eq!(both.cipher(), *cipher);
            let tag = both.mac().map_or(16, Mac::tag_len);
            assert_eq!((both.tag_len(), both.key_len()), (tag, cipher.key_len()));
        }
    }
    assert_eq!(Protection::all().count(), 3 + 3 * 4);
}

#[test]
fn names_are_found_and_unknown_ones_are_not() {
    assert!(Cipher::ALL.iter().all(|c| Cipher::from_name(c.name()) == Some(*c)));
    assert!(Mac::ALL.iter().all(|m| Mac::from_name(m.name()) == Some(*m)));
    for name in ["", "none", "aes128-cbc", "aes128-gcm", "AES128-CTR"] {
        assert_eq!(Cipher::from_name(name), None);
    }
    for name in ["", "none", "hmac-sha1", "hmac-md5", "hmac-sha2-256-etm"] {
        assert_eq!(Mac::from_name(name), None);
    }
}

#[test]
fn secrets_are_not_printed() {
    let shown = format!("{:?}", material(&[0xab; 12], &[0xcd; 16]));
    assert!(!shown.contains("171") && !shown.contains("ab"), "{shown}");
}
