//! Whether a stranger can find out who has an account (invariant A9): what a refusal says, byte
//! for byte, and how long it takes.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod common;

use common::{Server, Site, user, write};
use engine::{Fd, Link};
use keys::{PrivateKey, PublicKey, SigAlg};
use proto::auth::{Client, Credentials, Signer, Step};
use proto::{Ident, KexConfig, Outbox, Role, Transport};
use rustix::fs::OFlags;
use stand_ins::AnyHost;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use wire::{NameList, msg};

/// Lines of authorized_keys: reading them must be what a refusal's time consists of.
const LINES: u32 = 100;

/// Requests per connection.
const TRIES: usize = 25;

/// Times that each case is met, in turns: whatever else the machine does meets all.
const ROUNDS: usize = 4;

/// As many on a machine that is too busy to tell after [`ROUNDS`].
const MOST_ROUNDS: usize = 20;

fn key(seed: u32) -> PublicKey {
    let mut bytes = [7; 32];
    bytes[..4].copy_from_slice(&seed.to_be_bytes());
    PrivateKey::from_ed25519_seed(&bytes).unwrap().public().clone()
}

/// Asks about one key again and again, and notes when.
struct Curious {
    key: PublicKey,
    asked: Arc<Mutex<Vec<Instant>>>,
}

impl Credentials for Curious {
    fn next(&mut self, _: Option<NameList<'_>>) -> Option<Box<dyn Signer + Send>> {
        let mut asked = self.asked.lock().unwrap();
        asked.push(Instant::now());
        (asked.len() <= TRIES).then(|| Box::new(PublicHalf(self.key.clone())) as _)
    }
}

struct PublicHalf(PublicKey);

impl Signer for PublicHalf {
    fn public_key(&self) -> &PublicKey {
        &self.0
    }

    fn is_costly(&self) -> bool {
        true
    }

    fn sign(&mut self, _: SigAlg, _: &[u8]) -> Result<Vec<u8>, String> {
        Err("there is no private half".to_owned())
    }
}

/// What the server answers to `user` with `key`, and how long each answer takes.
fn refusals(server: &Server, user: &str, key: &PublicKey) -> (Vec<Vec<u8>>, Vec<Duration>) {
    ask(server.connect().into(), user, key, usize::MAX)
}

/// The same over any connection, and for no more answers than `most`.
fn ask(
    connection: OwnedFd,
    user: &str,
    key: &PublicKey,
    most: usize,
) -> (Vec<Vec<u8>>, Vec<Duration>) {
    let mut link = Link::new(Fd::from(connection));
    let transport = Transport::client(Ident::ours(), KexConfig::default(), Arc::new(AnyHost));
    let asked = Arc::new(Mutex::new(Vec::new()));
    let curious = Curious { key: key.clone(), asked: Arc::clone(&asked) };
    let mut client = Client::new(transport, user, curious);
    let (mut out, mut answers) = (Outbox::new(), Vec::new());
    let deadline = Some(Instant::now() + common::PATIENCE);
    link.raw(&Ident::ours().to_wire());
    client.transport_mut().start(&mut out).unwrap();
    link.carry_out(&mut out, deadline).unwrap();
    client.transport_mut().identified(link.identification(Role::Server, deadline).unwrap());
    loop {
        let (seq, message) = link.message(deadline).unwrap();
        if let [msg::SERVICE_ACCEPT | msg::USERAUTH_REQUEST..80, ..] = message[..] {
            answers.push(message.clone());
        }
        if answers.len() == most {
            break;
        }
        match client.handle(seq, &message, &mut out) {
            Ok(Step::Pending(next)) => client = next,
            Ok(Step::Done(_)) => panic!("{user} is in"),
            Err(_) => break,
        }
        link.carry_out(&mut out, deadline).unwrap();
    }
    let asked = asked.lock().unwrap();
    (answers, asked.windows(2).map(|pair| pair[1] - pair[0]).collect())
}

/// Lines in the log differ by the user: the answer does not wait for one.
#[test]
fn a9_the_answer_leaves_before_the_log_is_written() {
    let site = Site::new();
    let (_reader, writer) = std::io::pipe().unwrap();
    fill(&writer);
    let mut inetd = site.lhsshd(&["LogLevel=VERBOSE"]);
    let (ours, theirs) = UnixStream::pair().unwrap();
    inetd.args(["-i", "-e"]).stdin(OwnedFd::from(theirs)).stdout(Stdio::null()).stderr(writer);
    let mut child = inetd.spawn().unwrap();
    ours.set_read_timeout(Some(common::PATIENCE)).unwrap();
    let (answers, _) = ask(ours.into(), "no-such-user", &key(1), 2);
    assert_eq!(answers.len(), 2, "SERVICE_ACCEPT and a refusal");
    child.kill().unwrap();
    child.wait().unwrap();
}

/// From now on who writes to the pipe waits.
fn fill(pipe: &std::io::PipeWriter) {
    let flags = rustix::fs::fcntl_getfl(pipe).unwrap();
    rustix::fs::fcntl_setfl(pipe, flags | OFlags::NONBLOCK).unwrap();
    while (&mut &*pipe).write(&[0; 4096]).is_ok() {}
    rustix::fs::fcntl_setfl(pipe, flags).unwrap();
}

/// The fastest quarter of all is not slower than this.
fn quartile(times: &[Duration]) -> Duration {
    let mut times = times.to_vec();
    times.sort();
    times[times.len() / 4]
}

/// Whether the cases take the same time. Not to read the file for somebody whom nobody knows makes
/// one of them 30 times faster.
fn alike(times: &[Vec<Duration>]) -> bool {
    let quartiles: Vec<_> = times.iter().map(|times| quartile(times)).collect();
    let [slowest, fastest] = [quartiles.iter().max(), quartiles.iter().min()].map(Option::unwrap);
    *slowest < *fastest * 3
}

#[test]
fn a9_refusals_say_the_same_and_take_the_same_time_whoever_asks() {
    let site = Site::new();
    let lines: Vec<String> = (0..LINES).map(|seed| key(seed).to_openssh() + "\n").collect();
    write(&site.path("authorized_keys"), &lines.concat());
    let server = site.serve(&["MaxAuthTries=1000", "LogLevel=VERBOSE"]);
    let (listed, unlisted) = (key(LINES - 1), key(LINES));
    let own = user();
    let cases = [
        ("a wrong key", own.as_str(), &unlisted),
        ("an unknown user", "no-such-user", &unlisted),
        ("another user", "daemon", &unlisted),
        ("an unknown user with a good key", "no-such-user", &listed),
        ("another user with a good key", "daemon", &listed),
    ];
    let mut times = cases.map(|_| Vec::new());
    let mut first = None;
    for round in 1..=MOST_ROUNDS {
        for ((what, user, key), times) in cases.iter().zip(&mut times) {
            let (answers, took) = refusals(&server, user, key);
            assert_eq!(answers.len(), TRIES + 1, "{what}: {}", server.log());
            assert_eq!(&answers, first.get_or_insert_with(|| answers.clone()), "{what}");
            times.extend(took);
        }
        if round >= ROUNDS && alike(&times) {
            return;
        }
    }
    let quartiles = times.iter().map(|times| quartile(times));
    panic!("{:?}", cases.iter().map(|(what, ..)| what).zip(quartiles).collect::<Vec<_>>());
}
