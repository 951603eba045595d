//! Keys that `ssh-keygen` made, in every format it writes, against signatures it makes and checks.

use keys::{PrivateKey, PublicKey, SigAlg};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// Type and size of every kind of key we read.
const KINDS: [(&str, &str); 7] = [
    ("ed25519", "256"),
    ("ecdsa", "256"),
    ("ecdsa", "384"),
    ("ecdsa", "521"),
    ("rsa", "2048"),
    ("rsa", "3072"),
    ("rsa", "4096"),
];

/// Runs a program that must succeed; its output.
fn run(program: &str, args: &[&str]) -> String {
    let out = Command::new(program).args(args).output().expect(program);
    assert!(out.status.success(), "{program} {args:?}: {}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).expect("text")
}

fn keygen(dir: &Path, kind: (&str, &str), passphrase: &str, extra: &[&str]) -> PathBuf {
    let file = dir.join(format!("{}-{}", kind.0, kind.1));
    let path = file.to_str().expect("path");
    let mut args = vec!["-q", "-t", kind.0, "-b", kind.1, "-N", passphrase, "-C", "me@here"];
    args.extend(["-f", path]);
    args.extend(extra);
    run("ssh-keygen", &args);
    file
}

fn public_line(file: &Path) -> PublicKey {
    let line = fs::read_to_string(file.with_extension("pub")).expect("public key file");
    PublicKey::from_openssh(&line).expect("public key")
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
