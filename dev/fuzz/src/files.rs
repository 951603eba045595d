//! What files and the agent say.

use crate::input::Input;
use base64ct::{Base64, Encoding};
use keys::agent::Agent;
use keys::authorized_keys;
use keys::known_hosts::{HostName, KnownHosts, Verdict};
use keys::{PrivateKey, PublicKey, SigAlg};
use std::io::{self, Cursor, Read, Write};
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::sync::LazyLock;
use std::time::SystemTime;
use wire::Reader;

/// The key that everybody has.
pub(crate) static KEY: LazyLock<PrivateKey> =
    LazyLock::new(|| PrivateKey::from_ed25519_seed(&[1; 32]).expect("a seed is a key"));

/// The base64 of [`KEY`].
fn key_text() -> String {
    Base64::encode_string(KEY.public().blob())
}

/// A host is trusted only by a file that has the very key.
pub fn known_hosts(data: &[u8]) {
    let mut known = KnownHosts::parse(Path::new("known_hosts"), data);
    known.merge(KnownHosts::parse(Path::new("second"), b""));
    let hosts = [("host", 22), ("host", 2222), ("::1", 22), ("192.0.2.7", 22), ("", 0)];
    for host in hosts.map(|(name, port)| HostName::new(name, port)) {
        known.algorithms(&host);
        if let Verdict::Trusted(_) = known.check(&host, KEY.public()) {
            let text = key_text();
            assert!(data.windows(text.len()).any(|piece| piece == text.as_bytes()));
        }
    }
}

/// A key comes only from a line that spells it; what an entry says can be asked.
pub fn authorized_keys(data: &[u8]) {
    for (number, entry) in authorized_keys::parse(data) {
        assert!(number >= 1);
        let Ok(entry) = entry else { continue };
        let text = Base64::encode_string(entry.key.blob());
        let bare = text.trim_end_matches('=').as_bytes();
        assert!(data.windows(bare.len()).any(|piece| piece == bare));
        let ip = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 7));
        authorized_keys::from_matches(&entry, ip, Some("host.example.org"));
        authorized_keys::from_matches(&entry, ip, None);
        authorized_keys::has_expired(&entry, SystemTime::UNIX_EPOCH, 3600);
    }
}

/// The first byte chooses: a whole file, or what stands in one as base64.
pub fn private_key(data: &[u8]) {
    let mut input = Input(data);
    if input.byte_or_zero() & 1 == 0 {
        let _ = PrivateKey::public_of_file(input.0);
        usable(PrivateKey::from_bytes(input.0, None).ok());
        return;
    }
    let label = match input.byte_or_zero() % 4 {
        0 => "RSA PRIVATE KEY",
        1 => "EC PRIVATE KEY",
        2 => "PRIVATE KEY",
        _ => "OPENSSH PRIVATE KEY",
    };
    let body = Base64::encode_string(input.0);
    let file = format!("-----BEGIN {label}-----\n{body}\n-----END {label}-----\n");
    let _ = PrivateKey::public_of_file(file.as_bytes());
    usable(PrivateKey::from_bytes(file.as_bytes(), None).ok());
    if few_rounds(input.0).is_some() {
        usable(PrivateKey::from_bytes(file.as_bytes(), Some("passphrase")).ok());
    }
}

/// A key that was read signs, and its public half agrees.
fn usable(key: Option<PrivateKey>) {
    let Some(key) = key else { return };
    let Some(alg) = key.public().sig_algs().first() else { return };
    if let Ok(signature) = key.sign(*alg, b"data") {
        assert!(key.public().verify(*alg, b"data", &signature).is_ok());
    }
}

/// Files may ask for minutes of key derivation; those are not for here.
fn few_rounds(container: &[u8]) -> Option<()> {
    let mut r = Reader::new(container.get(15..)?);
    r.string("").ok()?;
    r.string("").ok()?;
    let mut options = Reader::new(r.string("").ok()?);
    options.string("").ok()?;
    (options.u32("").ok()? <= 2).then_some(())
}

/// What parses comes out as it went in, as a blob and as a line; a signature over other data, or
/// of another algorithm, is never good.
pub fn public_key(data: &[u8]) {
    let mut input = Input(data);
    let kind = input.byte_or_zero();
    let (signature, rest) = (input.piece(), input.0);
    let key = match kind % 2 {
        0 => PublicKey::parse(rest).ok(),
        _ => std::str::from_utf8(rest).ok().and_then(|line| PublicKey::from_openssh(line).ok()),
    };
    let Some(key) = key else { return };
    assert!(PublicKey::parse(key.blob()).is_ok_and(|again| again == key));
    assert!(PublicKey::from_openssh(&key.to_openssh()).is_ok_and(|again| again == key));
    assert!(key.fingerprint().starts_with("SHA256:"));
    for alg in SigAlg::ALL {
        let good = key.verify(*alg, b"data", signature).is_ok();
        assert!(!good || (key.sig_algs().contains(alg) && *key.blob() == *KEY.public().blob()));
    }
}

/// An agent that says `data`, whatever it is asked.
pub fn agent(data: &[u8]) {
    for identity in Agent::new(Canned(Cursor::new(data))).identities().into_iter().flatten() {
        assert!(PublicKey::parse(identity.key.blob()).is_ok());
    }
    for alg in [SigAlg::Ed25519, SigAlg::RsaSha512] {
        let _ = Agent::new(Canned(Cursor::new(data))).sign(KEY.public(), b"data", alg);
    }
}

struct Canned<'a>(Cursor<&'a [u8]>);

impl Read for Canned<'_> {
    fn read(&mut self, area: &mut [u8]) -> io::Result<usize> {
        self.0.read(area)
    }
}

impl Write for Canned<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
