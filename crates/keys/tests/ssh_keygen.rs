//! Keys that `ssh-keygen` made, in every format it writes, against signatures it makes and checks.

mod common;

use base64ct::{Base64, Encoding};
use common::{KINDS, keygen, public_line, run};
use keys::{PrivateKey, PrivateKeyError, PublicKey, SigAlg, fingerprint};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use tempfile::TempDir;
use wire::{Reader, Writer};

fn load(file: &Path, passphrase: Option<&str>) -> Result<PrivateKey, PrivateKeyError> {
    PrivateKey::from_bytes(&fs::read(file).expect("key file"), passphrase)
}

#[test]
fn every_key_type_is_read_signs_and_verifies() {
    let dir = TempDir::new().expect("dir");
    for kind in KINDS {
        let file = keygen(dir.path(), kind, "", &[]);
        let key = PrivateKey::from_bytes(&fs::read(&file).expect("file"), None).expect("key");
        assert_eq!(*key.public(), public_line(&file), "{kind:?}");
        assert_eq!(key.comment(), "me@here");
        assert!(!key.public().sig_algs().is_empty());
        for alg in SigAlg::ALL {
            let fits = key.public().sig_algs().contains(alg);
            let signature = key.sign(*alg, b"data");
            assert_eq!(signature.is_ok(), fits, "{kind:?} {alg:?}");
            let Ok(signature) = signature else { continue };
            assert_eq!(key.public().verify(*alg, b"data", &signature), Ok(()), "{kind:?} {alg:?}");
            assert!(key.public().verify(*alg, b"Data", &signature).is_err());
        }
    }
}

#[test]
fn fingerprints_are_those_of_ssh_keygen() {
    let dir = TempDir::new().expect("dir");
    for kind in KINDS {
        let file = keygen(dir.path(), kind, "", &[]);
        let line = run("ssh-keygen", &["-l", "-f", file.to_str().expect("path")]);
        let key = public_line(&file);
        assert_eq!(line.split(' ').nth(1), Some(key.fingerprint().as_str()));
        assert_eq!(key.fingerprint(), fingerprint(key.blob()));
        let text = fs::read_to_string(file.with_extension("pub")).expect("public key file");
        assert!(text.starts_with(&key.to_openssh()));
    }
}

#[test]
fn encrypted_keys_need_their_passphrase() {
    let dir = TempDir::new().expect("dir");
    for kind in KINDS {
        let file = keygen(dir.path(), kind, "correct horse", &["-a", "2"]);
        let public = public_line(&file);
        let content = fs::read(&file).expect("key file");
        assert_eq!(load(&file, None).map(drop), Err(PrivateKeyError::NeedsPassphrase));
        assert_eq!(load(&file, Some("")).map(drop), Err(PrivateKeyError::NeedsPassphrase));
        assert_eq!(load(&file, Some("wrong")).map(drop), Err(PrivateKeyError::WrongPassphrase));
        let key = load(&file, Some("correct horse")).expect("key");
        assert_eq!(*key.public(), public);
        assert_eq!(PrivateKey::public_of_file(&content), Ok(public));
    }
}

#[test]
fn every_encryption_of_key_files_opens() {
    for cipher in ["aes128-ctr", "aes192-ctr", "aes256-ctr", "aes256-cbc", "aes256-gcm@openssh.com"]
    {
        let dir = TempDir::new().expect("dir");
        let file = keygen(dir.path(), KINDS[0], "secret", &["-a", "1", "-Z", cipher]);
        let opened = load(&file, Some("secret")).map(|key| key.public().clone());
        assert_eq!(opened, Ok(public_line(&file)), "{cipher}");
        let wrong = load(&file, Some("Secret")).map(drop);
        assert_eq!(wrong, Err(PrivateKeyError::WrongPassphrase), "{cipher}");
    }
}

#[test]
fn other_encryptions_are_named_with_the_remedy() {
    let dir = TempDir::new().expect("dir");
    let extra = ["-a", "1", "-Z", "chacha20-poly1305@openssh.com"];
    let file = keygen(dir.path(), KINDS[0], "secret", &extra);
    let error = load(&file, Some("secret")).expect_err("unsupported").to_string();
    assert!(error.contains("chacha20-poly1305") && error.contains("ssh-keygen -p"), "{error}");
}

#[test]
fn pem_keys_are_read_unless_encrypted() {
    for kind in KINDS {
        for format in ["PEM", "PKCS8"] {
            let dir = TempDir::new().expect("dir");
            if kind.0 == "ed25519" {
                continue; // ssh-keygen writes these in its own format whatever -m says
            }
            let file = keygen(dir.path(), kind, "", &["-m", format]);
            let read = load(&file, None).map(|key| key.public().clone());
            assert_eq!(read, Ok(public_line(&file)), "{kind:?} {format}");

            let dir = TempDir::new().expect("dir");
            let file = keygen(dir.path(), kind, "secret", &["-m", format]);
            let error = load(&file, Some("secret")).expect_err("encrypted").to_string();
            assert!(error.contains("ssh-keygen -p"), "{error}");
        }
    }
}

#[test]
fn dsa_and_short_rsa_keys_are_refused_by_name() {
    for (kind, text) in [(("dsa", "1024"), "ssh-dss"), (("rsa", "1024"), "1024 bits")] {
        let dir = TempDir::new().expect("dir");
        let file = keygen(dir.path(), kind, "", &[]);
        let error = load(&file, None).expect_err("refused").to_string();
        assert!(error.contains(text), "{error}");
    }
}

#[test]
fn a_public_key_given_as_private_is_called_so() {
    let dir = TempDir::new().expect("dir");
    for kind in &KINDS[..5] {
        let file = keygen(dir.path(), *kind, "", &[]);
        let error = load(&file.with_extension("pub"), None).expect_err("public").to_string();
        assert!(error.contains("public key"), "{error}");
    }
}

#[test]
fn a_key_file_cut_anywhere_is_an_error() {
    let dir = TempDir::new().expect("dir");
    for (kind, passphrase) in [(KINDS[0], ""), (KINDS[1], ""), (KINDS[4], ""), (KINDS[0], "p")] {
        let dir = TempDir::new_in(dir.path()).expect("dir");
        let file = keygen(dir.path(), kind, passphrase, &["-a", "1"]);
        let content = fs::read(&file).expect("key file");
        let end = content.len() - "-----\n".len();
        let step = if passphrase.is_empty() { 1 } else { 7 };
        for len in (0..end).step_by(step) {
            assert!(PrivateKey::from_bytes(&content[..len], Some("p")).is_err(), "{len}");
        }
        rewrap_cut(&content);
    }
}

/// Private numbers that do not fit the public ones could leak the key by a wrong signature.
#[test]
fn a_damaged_key_file_gives_the_same_key_or_none() {
    let dir = TempDir::new().expect("dir");
    for (kind, step) in [(KINDS[0], 1), (KINDS[1], 1), (KINDS[3], 5), (KINDS[4], 17)] {
        let file = keygen(dir.path(), kind, "", &[]);
        let content = fs::read(&file).expect("key file");
        let text = std::str::from_utf8(&content).expect("text");
        let body: String = text.lines().filter(|line| !line.starts_with("---")).collect();
        let mut bytes = Base64::decode_vec(&body).expect("base64");
        let mut refused = 0;
        for at in (0..bytes.len()).step_by(step) {
            bytes[at] ^= 0x10;
            match PrivateKey::from_bytes(wrap(&bytes).as_bytes(), None) {
                Ok(key) => assert_eq!(*key.public(), public_line(&file), "{kind:?} {at}"),
                Err(_) => refused += step,
            }
            bytes[at] ^= 0x10;
        }
        assert!(refused > bytes.len() / 2, "{kind:?}: {refused} of {}", bytes.len());
    }
}

fn wrap(bytes: &[u8]) -> String {
    let body = Base64::encode_string(bytes);
    format!("-----BEGIN OPENSSH PRIVATE KEY-----\n{body}\n-----END OPENSSH PRIVATE KEY-----\n")
}

/// The cut test with an intact frame: the bytes under the base64 are cut.
fn rewrap_cut(content: &[u8]) {
    let text = std::str::from_utf8(content).expect("text");
    let body: String = text.lines().filter(|line| !line.starts_with("---")).collect();
    let bytes = Base64::decode_vec(&body).expect("base64");
    for len in 0..bytes.len() {
        assert!(PrivateKey::from_bytes(wrap(&bytes[..len]).as_bytes(), None).is_err(), "{len}");
    }
}

/// What `ssh-keygen -Y` signs: OpenSSH PROTOCOL.sshsig, without and with the outer frame.
fn sshsig_preimage(data: &[u8]) -> Vec<u8> {
    let digest = crypt::Hash::Sha512.digest(&[data]);
    let mut w = Writer::new();
    w.raw(b"SSHSIG").string("file").string("").string("sha512").string(digest.as_slice());
    w.finish()
}

fn sshsig_armor(key: &PublicKey, signature: &[u8]) -> String {
    let mut w = Writer::new();
    w.raw(b"SSHSIG").u32(1).string(key.blob());
    w.string("file").string("").string("sha512").string(signature);
    let body = Base64::encode_string(w.as_slice());
    let lines: Vec<&str> =
        body.as_bytes().chunks(70).filter_map(|line| std::str::from_utf8(line).ok()).collect();
    format!("-----BEGIN SSH SIGNATURE-----\n{}\n-----END SSH SIGNATURE-----\n", lines.join("\n"))
}

#[test]
fn ssh_keygen_verifies_what_we_sign() {
    let dir = TempDir::new().expect("dir");
    let path = |name: &str| dir.path().join(name).to_str().expect("path").to_owned();
    for kind in KINDS {
        let key = load(&keygen(dir.path(), kind, "", &[]), None).expect("key");
        fs::write(path("signers"), format!("me {}\n", key.public().to_openssh())).expect("write");
        fs::write(path("data"), "data").expect("write");
        for alg in key.public().sig_algs() {
            let signature = key.sign(*alg, &sshsig_preimage(b"data")).expect("signature");
            let armor = sshsig_armor(key.public(), &signature);
            fs::write(path("sig"), armor).expect("write");
            let status = Command::new("ssh-keygen")
                .args(["-Y", "verify", "-f", &path("signers"), "-I", "me", "-n", "file"])
                .args(["-s", &path("sig")])
                .stdin(fs::File::open(path("data")).expect("data"))
                .stdout(Stdio::null())
                .status()
                .expect("ssh-keygen");
            assert!(status.success(), "{kind:?} {alg:?}");
        }
    }
}

#[test]
fn we_verify_what_ssh_keygen_signs() {
    let dir = TempDir::new().expect("dir");
    let data = dir.path().join("data");
    fs::write(&data, "data").expect("write");
    for kind in KINDS {
        let file = keygen(dir.path(), kind, "", &[]);
        let sig = data.with_extension("sig");
        let _ = fs::remove_file(&sig);
        let (file_arg, data_arg) = (file.to_str().expect("path"), data.to_str().expect("path"));
        run("ssh-keygen", &["-q", "-Y", "sign", "-f", file_arg, "-n", "file", data_arg]);
        let armor = fs::read_to_string(&sig).expect("signature");
        let body: String = armor.lines().filter(|line| !line.starts_with("---")).collect();
        let frame = Base64::decode_vec(&body).expect("base64");
        let mut r = Reader::new(&frame);
        r.take(10, "magic and version").expect("frame");
        let key = PublicKey::parse(r.string("key").expect("frame")).expect("key");
        for _ in ["namespace", "reserved", "hash"] {
            r.string("field").expect("frame");
        }
        let signature = r.string("signature").expect("frame");
        let name = Reader::new(signature).text("algorithm").expect("name");
        let alg = SigAlg::from_name(name).expect("algorithm");
        assert_eq!(key, public_line(&file));
        assert_eq!(key.verify(alg, &sshsig_preimage(b"data"), signature), Ok(()), "{kind:?}");
        assert!(key.verify(alg, &sshsig_preimage(b"date"), signature).is_err());
    }
}
