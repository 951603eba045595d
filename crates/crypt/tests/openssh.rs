//! Every method of key exchange against OpenSSH's sshd: its signature over the exchange hash is
//! right only when the shared secret and its encoding are.
//!
//! Only the clear part of a connection is played, by hand: identification, KEXINIT, the exchange.
//! Methods this sshd does not offer are named in the output; without one the test is skipped.

use crypt::kex::{Initiator, Method};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use wire::{Reader, Writer};

const OURS: &str = "SSH-2.0-longhaul_test";
const SSHD: &str = "/usr/sbin/sshd";
const KEXINIT: u8 = 20;

/// One sshd that speaks to us through a socket pair.
struct Peer {
    sshd: Child,
    from: BufReader<UnixStream>,
    to: UnixStream,
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.sshd.kill().ok();
        self.sshd.wait().ok();
    }
}

impl Peer {
    fn start(host_key: &Path) -> Self {
        let (to, theirs) = UnixStream::pair().expect("a socket pair");
        let sshd = Command::new(SSHD)
            .args(["-i", "-e", "-f", "/dev/null", "-h"])
            .arg(host_key)
            .stdin(Stdio::from(std::os::fd::OwnedFd::from(theirs.try_clone().expect("a copy"))))
            .stdout(Stdio::from(std::os::fd::OwnedFd::from(theirs)))
            .stderr(Stdio::null())
            .spawn()
            .expect("sshd starts");
        let from = BufReader::new(to.try_clone().expect("a copy"));
        Self { sshd, from, to }
    }

    fn identify(&mut self) -> String {
        writeln!(self.to, "{OURS}\r").expect("sent");
        let mut line = String::new();
        self.from.read_line(&mut line).expect("identification");
        line.trim_end().to_owned()
    }

    /// RFC 4253 section 6, without encryption: padded to a multiple of eight.
    fn send(&mut self, payload: &[u8]) {
        let padding = 4 + (8 - (5 + payload.len() + 4) % 8) % 8;
        let mut packet = Writer::new();
        packet.u32((1 + payload.len() + padding) as u32).u8(padding as u8).raw(payload);
        packet.raw(&vec![0; padding]);
        self.to.write_all(packet.as_slice()).expect("sent");
    }

    fn receive(&mut self) -> Vec<u8> {
        let mut head = [0; 5];
        self.from.read_exact(&mut head).expect("a packet");
        let [a, b, c, d, padding] = head;
        let mut body = vec![0; u32::from_be_bytes([a, b, c, d]) as usize - 1];
        self.from.read_exact(&mut body).expect("the rest of it");
        body.truncate(body.len() - usize::from(padding));
        body
    }
}

fn kexinit(method: &str) -> Vec<u8> {
    let mut message = Writer::message(KEXINIT);
    message.raw(&[7; 16]).names(&[method]).names(&["ssh-ed25519"]);
    message.names(&["aes128-ctr"]).names(&["aes128-ctr"]);
    message.names(&["hmac-sha2-256"]).names(&["hmac-sha2-256"]);
    message.names(&["none"]).names(&["none"]).string("").string("").bool(false).u32(0);
    message.finish()
}

fn public_value(message: &mut Writer, method: Method, value: &[u8]) {
    if method.is_dh() {
        message.positive_mpint(value)
    } else {
        message.string(value)
    };
}

/// Whether sshd offers `name`; if so, the whole exchange has succeeded.
fn exchange(name: &str, method: Method, host_key: &Path) -> bool {
    let mut peer = Peer::start(host_key);
    let their_ident = peer.identify();
    let (ours, theirs) = (kexinit(name), peer.receive());
    let mut offer = Reader::new(&theirs[17..]);
    if !offer.names("kex").expect("a list").contains(name) {
        return false;
    }
    peer.send(&ours);
    let (own, public) = Initiator::start(method).expect("starts");
    let mut init = Writer::message(30);
    public_value(&mut init, method, &public);
    peer.send(init.as_slice());

    let reply = peer.receive();
    let mut reply = Reader::new(&reply);
    assert_eq!(reply.u8("reply"), Ok(31), "{name}");
    let blob = reply.string("host key").expect("a host key");
    let answer = match method.is_dh() {
        true => reply.positive_mpint("f").expect("a number"),
        false => reply.string("public").expect("a value"),
    };
    let signature = reply.string("signature").expect("a signature");
    let secret = own.finish(answer).expect("agrees");

    let mut hashed = Writer::new();
    hashed.string(OURS).string(&their_ident).string(&ours).string(&theirs).string(blob);
    public_value(&mut hashed, method, &public);
    public_value(&mut hashed, method, answer);
    hashed.raw(secret.encoded());
    let hash = method.hash().digest(&[hashed.as_slice()]);
    assert!(is_signed(blob, hash.as_slice(), signature), "{name}");
    true
}

/// RFC 8709: both are a name and a string.
fn is_signed(blob: &[u8], data: &[u8], signature: &[u8]) -> bool {
    let second = |bytes| {
        let mut reader = Reader::new(bytes);
        reader.string("name").and_then(|_| reader.string("value")).expect("two strings").to_vec()
    };
    use aws_lc_rs::signature::{ED25519, UnparsedPublicKey};
    UnparsedPublicKey::new(&ED25519, second(blob)).verify(data, &second(signature)).is_ok()
}

fn host_key(dir: &Path) -> PathBuf {
    let file = dir.join("host_key");
    let made = Command::new("ssh-keygen")
        .args(["-q", "-t", "ed25519", "-N", "", "-f"])
        .arg(&file)
        .status()
        .expect("ssh-keygen runs");
    assert!(made.success());
    file
}

#[test]
fn shared_secrets_agree_with_those_of_sshd() {
    if !need::require(&[SSHD, "ssh-keygen"]) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let key = host_key(dir.path());
    for (name, method) in Method::NAMES {
        // Three times: encodings differ with the first bit of the secret.
        if !(0..3).all(|_| exchange(name, *method, &key)) {
            need::say(&format!("not offered by this sshd: {name}"));
        }
    }
}
