//! The algorithms that we offer, and which of them the installed OpenSSH knows.

use crate::lab::output;
use crate::need::say;
use anyhow::Result;
use std::collections::HashSet;
use std::process::Command;

/// Key exchange methods.
pub const KEX: &[&str] = &[
    "mlkem768x25519-sha256",
    "sntrup761x25519-sha512",
    "sntrup761x25519-sha512@openssh.com",
    "curve25519-sha256",
    "curve25519-sha256@libssh.org",
    "ecdh-sha2-nistp256",
    "ecdh-sha2-nistp384",
    "ecdh-sha2-nistp521",
    "diffie-hellman-group14-sha256",
    "diffie-hellman-group16-sha512",
];

/// Ciphers that protect integrity themselves.
pub const AEAD: &[&str] =
    &["aes128-gcm@openssh.com", "aes256-gcm@openssh.com", "chacha20-poly1305@openssh.com"];

/// Ciphers that need a MAC.
pub const CTR: &[&str] = &["aes128-ctr", "aes192-ctr", "aes256-ctr"];

/// MACs.
pub const MACS: &[&str] = &[
    "hmac-sha2-256",
    "hmac-sha2-512",
    "hmac-sha2-256-etm@openssh.com",
    "hmac-sha2-512-etm@openssh.com",
];

/// Signature algorithms of host keys, with the key type of each.
pub const HOST_KEYS: &[&str] = &[
    "ssh-ed25519",
    "ecdsa-sha2-nistp256",
    "ecdsa-sha2-nistp384",
    "ecdsa-sha2-nistp521",
    "rsa-sha2-256",
    "rsa-sha2-512",
];

/// The options for every protection: each AEAD alone, each CTR cipher with each MAC.
pub fn protections() -> Vec<Vec<String>> {
    let aead = AEAD.iter().map(|cipher| vec![format!("-oCiphers={cipher}")]);
    let pairs = CTR.iter().flat_map(|cipher| MACS.iter().map(move |mac| (cipher, mac)));
    let ctr =
        pairs.map(|(cipher, mac)| vec![format!("-oCiphers={cipher}"), format!("-oMACs={mac}")]);
    aead.chain(ctr).collect()
}

/// Those of `names` that `ssh -Q kind` lists; the others are named as skipped: the installed
/// version does not have them, which is no fault of the machine's set-up.
pub fn known_to_openssh(kind: &str, names: &[&'static str]) -> Result<Vec<&'static str>> {
    let text = output(Command::new("ssh").args(["-Q", kind]))?;
    let known: HashSet<&str> = text.lines().collect();
    let (have, lack): (Vec<_>, Vec<_>) = names.iter().partition(|name| known.contains(**name));
    for name in lack {
        say(&format!("SKIPPED {name}: the installed OpenSSH does not know it"));
    }
    Ok(have)
}
