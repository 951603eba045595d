//! Known answers: NIST SP 800-38A, RFC 4231, RFC 2202, FIPS 180-2, and for what SSH puts together
//! itself (GCM with a counting nonce, OpenSSH's ChaCha20-Poly1305, key derivation) answers made
//! with OpenSSL's primitives by a program that shares no code with this one.

mod common;

use common::{material, unhex};
use crypt::{ChaChaKey, Cipher, CtrKey, GcmKey, Hash, Mac, MacKey, derive, hmac_sha1};

fn count(from: u8, len: u8) -> Vec<u8> {
    (from..from + len).collect()
}

/// The counter starts two below its wrap, so the third packet's has wrapped and the fixed field
/// has not moved (RFC 5647 section 7.1).
#[test]
fn gcm_counts_invocations_in_eight_bytes_and_wraps() {
    let answers = [
        (Cipher::Aes128Gcm, 0, "c1bb348e0e8aa24284d7bf11929a54adbff51435a7c8e7dfcd09f8eb731d1f1e"),
        (Cipher::Aes128Gcm, 1, "f01250647ae300e698a19e206671340afb20c235c8ce631cb9b010b126f67eeb"),
        (Cipher::Aes128Gcm, 2, "aa7cecbe63aa12487bef00085de7558f5cb9e7c42755954247811693c853bc50"),
        (Cipher::Aes128Gcm, 3, "66503ed148a15177af456c3cf729ba4921c32bb0a2c0b69555c8b12b209b612d"),
        (Cipher::Aes256Gcm, 0, "c4312e30795db435f538d47a175458e760d1a0730c6d728c6bd0f643797a47b7"),
        (Cipher::Aes256Gcm, 1, "849ee06cd80a550a327739770730f455a6c9667b9ed514cb0c653e6a19df5ffd"),
        (Cipher::Aes256Gcm, 2, "3c987e150741939b911291187df74bf4a2a12f76cd78a3225b0cff0f07677463"),
        (Cipher::Aes256Gcm, 3, "908e9aad4851e09333f38741574623a57d2bab6e5c552a1a91ecb76512c319ac"),
    ];
    let tags = [
        "0ecf75f6ab63f28542e91b0a66532365",
        "f1beef6d4af9e0b92c66832b50f808f6",
        "c19075932fece716d40866262a4ce525",
        "0f57c59f8305b3633df9ab3bf90e7916",
        "9cd9ec415ea84d0b071150bb101f9f47",
        "c54bd754cd40e4c3d59693c8b2ff6f81",
        "3df85fc6df53d9595e552573ee51c9f5",
        "48b10957b0117ec6cdac023892c29518",
    ];
    for ((cipher, invocation, ciphertext), tag) in answers.into_iter().zip(tags) {
        let iv = unhex("a0a1a2a3fffffffffffffffe");
        let key = GcmKey::new(cipher, &material(&iv, &count(0, cipher.key_len() as u8))).unwrap();
        let mut data = count(32, 32);
        let sealed = key.seal(invocation, &[0, 0, 0, 32], &mut data).unwrap();
        assert_eq!((data, sealed.to_vec()), (unhex(ciphertext), unhex(tag)));
    }
}

#[test]
fn chacha_takes_its_nonce_from_the_sequence_number() {
    for (seq, packet, tag) in [
        (
            0,
            "94450e717cdd2456c58fccba7f0c320edf323c548cc4858299d421279085826daab4f7dff68d8eea5967b6d6",
            "50c7825e32d32020c9e47dd6b1618e4a",
        ),
        (
            7,
            "a39afc824c23732426ea40350000d59fa7fea15f40c74641069a47f83c1765a000d281d720d277229deb7e32",
            "924c7d12a48dbc46d2b6590657724823",
        ),
        (
            u32::MAX,
            "b90ee4986df76afcc66dbe89fa5bc5dd02f770dd62cf4f61b756a1032e59983fae6694b844df5f0a73dcc733",
            "9f7ea7554ae85396f90968097c5e55a8",
        ),
    ] {
        let key = ChaChaKey::new(&material(&[], &count(0, 64))).unwrap();
        let mut data = [&[0, 0, 0, 40][..], &count(100, 40)].concat();
        let sealed = key.seal(seq, &mut data).unwrap();
        assert_eq!((&data, sealed.to_vec()), (&unhex(packet), unhex(tag)));
        assert_eq!(key.peek_length(seq, data.first_chunk().unwrap()), 40);
    }
}

/// SP 800-38A sections F.5.1, F.5.3 and F.5.5.
#[test]
fn ctr_gives_the_answers_of_nist() {
    let plain = "6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e51\
                 30c81c46a35ce411e5fbc1191a0a52eff69f2445df4f9b17ad2b417be66c3710";
    for (cipher, key, sealed) in [
        (
            Cipher::Aes128Ctr,
            "2b7e151628aed2a6abf7158809cf4f3c",
            "874d6191b620e3261bef6864990db6ce9806f66b7970fdff8617187bb9fffdff\
             5ae4df3edbd5d35e5b4f09020db03eab1e031dda2fbe03d1792170a0f3009cee",
        ),
        (
            Cipher::Aes192Ctr,
            "8e73b0f7da0e6452c810f32b809079e562f8ead2522c6b7b",
            "1abc932417521ca24f2b0459fe7e6e0b090339ec0aa6faefd5ccc2c6f4ce8e94\
             1e36b26bd1ebc670d1bd1d665620abf74f78a7f6d29809585a97daec58c6b050",
        ),
        (
            Cipher::Aes256Ctr,
            "603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4",
            "601ec313775789a5b7a7f504bbf3d228f443e3ca4d62b59aca84e990cacaf5c5\
             2b0930daa23de94ce87017ba2d84988ddfc9c58db67aada613c2dd08457941a6",
        ),
    ] {
        let iv = unhex("f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff");
        let key = CtrKey::new(cipher, &material(&iv, &unhex(key))).unwrap();
        let mut data = unhex(plain);
        key.apply(0, &mut data).unwrap();
        assert_eq!(data, unhex(sealed));
    }
}

/// RFC 4231 section 4.3. Its key is shorter than ours; HMAC fills keys up with zeroes. The
/// sequence number stands for the first four letters of its text.
#[test]
fn hmac_gives_the_answers_of_the_rfc() {
    let seq = u32::from_be_bytes(*b"what");
    for (macs, tag) in [
        (
            [Mac::HmacSha256, Mac::HmacSha256Etm],
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
        ),
        (
            [Mac::HmacSha512, Mac::HmacSha512Etm],
            "164b7a7bfcf819e2e395fbe73b56e0a387bd64222e831fd610270cd7ea250554\
             9758bf75c05a994a6d034f65f8f0e6fdcaeab1a34d4a6b4b636e070a38bce737",
        ),
    ] {
        for mac in macs {
            let mut padded = b"Jefe".to_vec();
            padded.resize(mac.key_len(), 0);
            let key = MacKey::new(mac, &padded).unwrap();
            let parts: [&[u8]; 3] = [b" do ya want", b"", b" for nothing?"];
            assert_eq!(key.tag(seq, &parts).as_slice(), unhex(tag));
            assert_eq!(key.verify(seq, &parts, &unhex(tag)), Ok(()));
        }
    }
}

/// RFC 2202 section 3, case 2.
#[test]
fn hmac_sha1_gives_the_answer_of_the_rfc() {
    let tag = hmac_sha1(b"Jefe", b"what do ya want for nothing?");
    assert_eq!(tag.to_vec(), unhex("effcdf6ae5eb2fa2d27416d5f184df9c259a7c79"));
}

#[test]
fn hashes_give_the_answers_of_fips_180() {
    for (hash, answer) in [
        (Hash::Sha256, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
        (
            Hash::Sha384,
            "cb00753f45a35e8bb5a03d699ac65007272c32ab0eded1631a8b605a43ff5bed\
             8086072ba1e7cc2358baeca134c825a7",
        ),
        (
            Hash::Sha512,
            "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a\
             2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f",
        ),
    ] {
        assert_eq!(hash.digest(&[b"a", b"", b"bc"]).as_slice(), unhex(answer));
        assert_eq!(hash.output_len(), unhex(answer).len());
    }
}

/// 150 bytes: more than two hash values, the last one cut (RFC 4253 section 7.2).
#[test]
fn derived_keys_are_extended_and_cut() {
    let (shared, exchange, session) = ([0, 0, 0, 2, 0, 0x80], count(0, 32), count(32, 32));
    for (hash, start, digest_of_all) in [
        (
            Hash::Sha256,
            "7577515577a761149ea63323aecb15684449ff76",
            "6968e720ce2e8c0b4d42da418f879d5d781bca60688dcf25f55f0532ee719dee",
        ),
        (
            Hash::Sha384,
            "d3c494992ce30c541de7b2fa92f53b97388b8734",
            "2c8cdc3917c66c811d7379155a923ce891557a0a8b733d159cf90f8b70c57779",
        ),
        (
            Hash::Sha512,
            "5efbc54392f09a7571e2ac86a9bb0cfc87bdba40",
            "df35df38c6e6d4314805bc10a807d9878bddc48a4401d3bcb2002f2e04055134",
        ),
    ] {
        let key = derive(hash, &shared, &exchange, &session, b'C', 150);
        assert_eq!(Hash::Sha256.digest(&[&key]).as_slice(), unhex(digest_of_all));
        let short = derive(hash, &shared, &exchange, &session, b'C', 20);
        assert_eq!(short.as_slice(), unhex(start));
        assert_eq!(derive(hash, &shared, &exchange, &session, b'C', 0).len(), 0);
    }
}
