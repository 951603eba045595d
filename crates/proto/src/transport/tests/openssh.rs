//! The transport against OpenSSH's own programs, both roles: only a stranger can tell that the
//! exchange hash, the derived keys and the strict sequence numbers are right.
//!
//! A packet layer of twenty lines stands in for the real one: clear text, then ChaCha20-Poly1305,
//! whose nonce is the sequence number. Skipped by name where OpenSSH is not installed.

use crate::pair::TestKeys;
use crate::{Effect, Event, Handled, HostTrust, Ident, KexConfig, Outbox, Role, Transport, ident};
use crypt::kex::Method;
use crypt::{ChaChaKey, Cipher};
use keys::{PrivateKey, PublicKey};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;
use wire::{Reader, Writer, msg};

/// One side of a real connection.
struct Link {
    t: Transport,
    stream: TcpStream,
    seal: Option<ChaChaKey>,
    open: Option<ChaChaKey>,
    seq_out: u32,
    seq_in: u32,
    events: Vec<Event>,
    upper: Vec<Vec<u8>>,
}

impl Link {
    /// Sends identification, KEXINIT and guess in one go, then reads the peer's identification.
    fn start(mut t: Transport, mut stream: TcpStream) -> Self {
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream.write_all(&Ident::ours().to_wire()).unwrap();
        let mut out = Outbox::new();
        t.start(&mut out).unwrap();
        let (seal, open, events, upper) = (None, None, Vec::new(), Vec::new());
        let mut link = Self { t, stream, seal, open, seq_out: 0, seq_in: 0, events, upper };
        link.carry_out(out);
        let mut line = Vec::new();
        let found = loop {
            line.extend(link.take::<1>());
            if let Some(found) = ident::find(link.t.role().peer(), &line).unwrap() {
                break found;
            }
        };
        link.t.identified(found.ident);
        link
    }

    fn take<const N: usize>(&mut self) -> [u8; N] {
        let mut bytes = [0; N];
        self.stream.read_exact(&mut bytes).expect("the peer goes on talking");
        bytes
    }

    fn carry_out(&mut self, out: Outbox) {
        self.events.extend(out.events);
        for effect in out.effects {
            match effect {
                Effect::Fence | Effect::Deflate | Effect::Inflate => {}
                Effect::Send(payload) => self.write_packet(&payload),
                Effect::SealWith(keys) => {
                    self.seal = Some(ChaChaKey::new(&keys.material).unwrap());
                    self.seq_out = if keys.reset_seq { 0 } else { self.seq_out };
                }
                Effect::OpenWith(keys) => {
                    self.open = Some(ChaChaKey::new(&keys.material).unwrap());
                    self.seq_in = if keys.reset_seq { 0 } else { self.seq_in };
                }
            }
        }
    }

    /// RFC 4253 section 6; an AEAD leaves the length out of the padding.
    fn write_packet(&mut self, payload: &[u8]) {
        let length = if self.seal.is_some() { 0 } else { 4 };
        let padding = 8 - (length + 1 + payload.len()) % 8 + 8;
        let mut w = Writer::new();
        w.u32((1 + payload.len() + padding) as u32).u8(padding as u8);
        let mut packet = w.raw(payload).raw(&vec![0; padding]).take();
        if let Some(key) = &self.seal {
            let tag = key.seal(self.seq_out, &mut packet).unwrap();
            packet.extend(tag);
        }
        self.stream.write_all(&packet).unwrap();
        self.seq_out += 1;
    }

    fn read_packet(&mut self) -> Vec<u8> {
        let head = self.take::<4>();
        let length = match &self.open {
            Some(key) => key.peek_length(self.seq_in, &head),
            None => u32::from_be_bytes(head),
        };
        assert!(length < 40_000, "a length of {length}: wrong key or sequence number");
        let mut packet = head.to_vec();
        packet.resize(4 + length as usize, 0);
        self.stream.read_exact(&mut packet[4..]).unwrap();
        if self.open.is_some() {
            let tag = self.take::<16>();
            let key = self.open.as_ref().unwrap();
            key.open(self.seq_in, &mut packet, &tag).expect("the tag is right");
        }
        let end = packet.len() - usize::from(packet[4]);
        packet[5..end].to_vec()
    }

    /// Handles messages until `done`.
    fn until(&mut self, done: impl Fn(&Self) -> bool) {
        while !done(self) {
            let payload = self.read_packet();
            let mut out = Outbox::new();
            let handled = self.t.handle(self.seq_in, &payload, &mut out);
            self.seq_in += 1;
            self.carry_out(out);
            if handled.unwrap_or_else(|why| panic!("{why}")) == Handled::Upper {
                self.upper.push(payload);
            }
            let gone = self.events.iter().find(|e| matches!(e, Event::Disconnected { .. }));
            assert_eq!(gone, None);
        }
    }

    fn exchanges(&self) -> usize {
        self.events.iter().filter(|e| matches!(e, Event::Exchanged { .. })).count()
    }

    fn call(&mut self, f: impl FnOnce(&mut Transport, &mut Outbox) -> Result<(), crate::Error>) {
        let mut out = Outbox::new();
        f(&mut self.t, &mut out).unwrap();
        self.carry_out(out);
    }

    /// A rekey of ours.
    fn rekey(&mut self) {
        let before = self.exchanges();
        self.call(|t, out| t.rekey(out));
        self.until(|link| link.exchanges() > before);
    }
}

/// Expects one key.
struct Exactly(PublicKey);

impl HostTrust for Exactly {
    fn verify(&self, key: &PublicKey) -> Result<(), String> {
        if *key == self.0 { Ok(()) } else { Err("another key".to_owned()) }
    }
}

/// Ends its process with the test.
struct Reaped(Child);

impl Drop for Reaped {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn cfg() -> KexConfig {
    KexConfig { ciphers: vec![Cipher::ChaCha20Poly1305], ..KexConfig::default() }
}

fn new_key(dir: &Path, kind: &str) -> (PathBuf, PrivateKey) {
    let file = dir.join(kind);
    let status =
        Command::new("ssh-keygen").args(["-q", "-N", "", "-t", kind, "-f"]).arg(&file).status();
    assert!(status.unwrap().success());
    let key = PrivateKey::from_bytes(&std::fs::read(&file).unwrap(), None).unwrap();
    (file, key)
}

/// What `program` lists for `-Q kex`, of those we know.
fn common_methods() -> Vec<&'static str> {
    let output = Command::new("ssh").args(["-Q", "kex"]).output().unwrap();
    let theirs = String::from_utf8(output.stdout).unwrap();
    let known = Method::NAMES.iter().map(|(name, _)| *name);
    known.filter(|name| theirs.lines().any(|line| line == *name)).collect()
}

fn installed() -> bool {
    // sshd wants that directory, empty.
    need::require(&["ssh", "ssh-keygen", "/usr/sbin/sshd", "/run/sshd"])
}

/// `sshd -i` behind one end of a connection.
fn sshd(host_key: &Path) -> (Reaped, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let ours = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (theirs, _) = listener.accept().unwrap();
    let theirs: std::os::fd::OwnedFd = theirs.into();
    let child = Command::new("/usr/sbin/sshd")
        .args(["-i", "-f", "/dev/null", "-o", "UsePAM=no", "-o", "StrictModes=no", "-o"])
        .arg(format!("AuthorizedKeysFile={}.pub", host_key.display()))
        .arg("-h")
        .arg(host_key)
        .stdin(Stdio::from(theirs.try_clone().unwrap()))
        .stdout(Stdio::from(theirs))
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    (Reaped(child), ours)
}

/// Who runs the tests, and may log in to a server that they started.
fn user() -> String {
    let output = Command::new("id").arg("-un").output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// A signed request (RFC 4252 section 7).
fn login_request(session_id: &[u8], key: &PrivateKey) -> Vec<u8> {
    let alg = key.public().sig_algs()[0];
    let mut w = Writer::message(msg::USERAUTH_REQUEST);
    w.string(user()).string("ssh-connection").string("publickey").bool(true);
    let request = w.string(alg.name()).string(key.public().blob()).take();
    let signed = Writer::new().string(session_id).raw(&request).take();
    Writer::new().raw(&request).string(key.sign(alg, &signed).unwrap()).take()
}

/// Exchange, login, two rekeys of ours, and a message each way under the last keys.
fn client_against_sshd(cfg: KexConfig, host_key: &(PathBuf, PrivateKey)) {
    let (_sshd, stream) = sshd(&host_key.0);
    let trust = Arc::new(Exactly(host_key.1.public().clone()));
    let mut link = Link::start(Transport::client(Ident::ours(), cfg, trust), stream);
    link.until(|link| link.t.server_sig_algs().is_some());
    assert!(link.t.is_strict() && link.t.peer().unwrap().is_openssh_from(8, 9));

    let service = Writer::message(msg::SERVICE_REQUEST).string("ssh-userauth").take();
    let login = login_request(link.t.session_id().unwrap(), &host_key.1);
    link.call(|t, out| t.send(service, out).and_then(|()| t.send(login, out)));
    link.until(|link| link.upper.len() == 2);
    assert_eq!([link.upper[0][0], link.upper[1][0]], [msg::SERVICE_ACCEPT, msg::USERAUTH_SUCCESS]);
    link.t.logged_in(&mut Outbox::new());

    link.rekey();
    link.rekey();
    let mut w = Writer::message(msg::GLOBAL_REQUEST);
    let request = w.string("keepalive@longhaul").bool(true).take();
    link.call(|t, out| t.send(request, out));
    link.until(|link| link.upper.last().is_some_and(|last| last[0] == msg::REQUEST_FAILURE));
}

#[test]
fn a_client_exchanges_keys_with_sshd_by_every_method() {
    if !installed() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let host_key = new_key(dir.path(), "ed25519");
    let methods = common_methods();
    assert!(methods.len() >= 8, "{methods:?}");
    for name in methods {
        println!("{name}");
        client_against_sshd(KexConfig { kex: vec![name], ..cfg() }, &host_key);
    }
}

#[test]
fn sshd_proves_every_kind_of_host_key() {
    if !installed() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    for kind in ["ed25519", "ecdsa", "rsa"] {
        let host_key = new_key(dir.path(), kind);
        for alg in host_key.1.public().sig_algs() {
            client_against_sshd(KexConfig { host_key_algs: vec![*alg], ..cfg() }, &host_key);
        }
    }
}

/// sshd's first method and host key algorithm are these: the guess is right. With all defaults
/// it is wrong, and sshd ignores one packet.
#[test]
fn sshd_takes_a_right_guess_and_ignores_a_wrong_one() {
    if !installed() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let host_key = new_key(dir.path(), "ed25519");
    for first in common_methods() {
        let mut kex = cfg().kex;
        kex.sort_by_key(|name| *name != first);
        client_against_sshd(KexConfig { kex, ..cfg() }, &host_key);
    }
}

/// `ssh` to a server of ours that goes as far as the opening of a channel.
fn server_against_ssh(method: &str, host_key: PrivateKey) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    let kex = format!("KexAlgorithms={method}");
    let ssh = Command::new("ssh")
        .args(["-F", "/dev/null", "-p", &port, "-o", &kex, "-o", "StrictHostKeyChecking=no"])
        .args(["-o", "UserKnownHostsFile=/dev/null", "-o", "BatchMode=yes", "127.0.0.1", "true"])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let _ssh = Reaped(ssh.unwrap());
    let (stream, _) = listener.accept().unwrap();
    let server = Transport::server(Ident::ours(), cfg(), Arc::new(TestKeys(vec![host_key])));
    assert_eq!(server.role(), Role::Server);
    let mut link = Link::start(server, stream);
    link.until(|link| !link.upper.is_empty());
    assert!(link.t.is_strict());
    let mut r = Reader::new(&link.upper[0][1..]);
    assert_eq!(r.text("service"), Ok("ssh-userauth"));

    let accept = Writer::message(msg::SERVICE_ACCEPT).string("ssh-userauth").take();
    link.call(|t, out| t.send(accept, out));
    link.until(|link| link.upper.len() > 1);
    assert_eq!(link.upper[1][0], msg::USERAUTH_REQUEST);
    link.call(|t, out| t.send(vec![msg::USERAUTH_SUCCESS], out));
    link.t.logged_in(&mut Outbox::new());
    link.rekey();
    link.rekey();
    link.until(|link| link.upper.iter().any(|message| message[0] == msg::CHANNEL_OPEN));
}

#[test]
fn ssh_exchanges_keys_with_a_server_by_every_method() {
    if !installed() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    for (count, name) in common_methods().into_iter().enumerate() {
        println!("{name}");
        let sub = dir.path().join(count.to_string());
        std::fs::create_dir(&sub).unwrap();
        let kind = ["ed25519", "ecdsa", "rsa"][count % 3];
        server_against_ssh(name, new_key(&sub, kind).1);
    }
}
