//! What the tests against OpenSSH's programs share.
#![allow(dead_code, unreachable_pub, reason = "each test binary uses its own part")]

use keys::PublicKey;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

/// Type and size of every kind of key we read.
pub const KINDS: [(&str, &str); 7] = [
    ("ed25519", "256"),
    ("ecdsa", "256"),
    ("ecdsa", "384"),
    ("ecdsa", "521"),
    ("rsa", "2048"),
    ("rsa", "3072"),
    ("rsa", "4096"),
];

/// Runs a program that must succeed; its output.
pub fn run(program: &str, args: &[&str]) -> String {
    let out = Command::new(program).args(args).output().expect(program);
    assert!(out.status.success(), "{program} {args:?}: {}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).expect("text")
}

/// A key file and its `.pub`.
type Files = (Vec<u8>, Vec<u8>);

/// A key of this kind; made once for all tests of a program, RSA takes its time.
fn made(kind: (&str, &str)) -> Files {
    static MADE: Mutex<BTreeMap<String, Files>> = Mutex::new(BTreeMap::new());
    let name = format!("{}-{}", kind.0, kind.1);
    let mut all = MADE.lock().expect("no test panics in here");
    let make = || {
        let dir = tempfile::TempDir::new().expect("dir");
        let file = dir.path().join(&name);
        let path = file.to_str().expect("path");
        let args = ["-q", "-t", kind.0, "-b", kind.1, "-N", "", "-C", "me@here", "-f", path];
        run("ssh-keygen", &args);
        let read = |file: &Path| fs::read(file).expect("key file");
        (read(&file), read(&file.with_extension("pub")))
    };
    all.entry(name.clone()).or_insert_with(make).clone()
}

/// Has `ssh-keygen` write a key, with these options and this passphrase; the private half's file.
pub fn keygen(dir: &Path, kind: (&str, &str), passphrase: &str, extra: &[&str]) -> PathBuf {
    let file = dir.join(format!("{}-{}", kind.0, kind.1));
    let (private, public) = made(kind);
    fs::write(&file, private).expect("write");
    fs::write(file.with_extension("pub"), public).expect("write");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).expect("mode");
    if !passphrase.is_empty() || !extra.is_empty() {
        let path = file.to_str().expect("path");
        let args = ["-q", "-p", "-P", "", "-N", passphrase, "-f", path];
        run("ssh-keygen", &[&args, extra].concat());
    }
    file
}

/// The public half of a key file, from its `.pub`.
pub fn public_line(file: &Path) -> PublicKey {
    let line = fs::read_to_string(file.with_extension("pub")).expect("public key file");
    PublicKey::from_openssh(&line).expect("public key")
}
