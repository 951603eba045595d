//! The first channel, asked for together with the login.

use super::*;
use crate::channel::{Ahead, Request};

/// SERVICE_REQUEST, USERAUTH_REQUEST, and a session with a command.
const WITH_CHANNEL: [u8; 4] =
    [msg::SERVICE_REQUEST, msg::USERAUTH_REQUEST, msg::CHANNEL_OPEN, msg::CHANNEL_REQUEST];
const LOGIN: [u8; 2] = [msg::SERVICE_REQUEST, msg::USERAUTH_REQUEST];

const FACTS: Facts<'_> = Facts { session_id: SESSION, sig_algs: None, reads_on: false };

/// Keys that say which is the last.
struct Counted(Keys);

impl Credentials for Counted {
    fn next(&mut self, left: Option<NameList<'_>>) -> Option<Box<dyn Signer + Send>> {
        self.0.next(left)
    }

    fn is_last(&self) -> bool {
        self.0.0.is_empty()
    }
}

struct Client {
    core: super::super::client::Core<Counted>,
    draft: Draft,
}

impl Client {
    fn new(keys: impl IntoIterator<Item = TestKey>) -> Self {
        Self::wanting(b"true", keys, &FACTS)
    }

    fn wanting(command: &[u8], keys: impl IntoIterator<Item = TestKey>, facts: &Facts<'_>) -> Self {
        let credentials = Counted(Keys::new(keys));
        let mut core = super::super::client::Core::new("user".into(), credentials);
        core.ahead = Some(Ahead::session(1, 1, vec![(Request::Exec(command.to_vec()), true)]));
        let mut client = Self { core, draft: Draft::default() };
        client.core.begin(facts, &mut client.draft).unwrap();
        client
    }

    /// The numbers of what it sent since the last call.
    fn sent(&mut self) -> Vec<u8> {
        self.draft.messages.drain(..).map(|message| message[0]).collect()
    }

    fn hears(&mut self, message: &[u8]) -> Result<Option<Login>, Error> {
        self.core.handle(message, &FACTS, &mut self.draft)
    }

    fn is_accepted(&mut self) {
        let accept = Writer::message(msg::SERVICE_ACCEPT).string("ssh-userauth").take();
        self.hears(&accept).unwrap();
    }
}

fn key(seed: u8) -> TestKey {
    TestKey::new(ed25519(seed))
}

fn refusal() -> Vec<u8> {
    Writer::message(msg::USERAUTH_FAILURE).string("publickey").bool(false).take()
}

#[test]
fn the_channel_follows_the_last_signature() {
    let mut client = Client::new([key(1)]);
    assert_eq!(client.sent(), WITH_CHANNEL);
    client.is_accepted();
    assert!(client.hears(&[msg::USERAUTH_SUCCESS]).unwrap().is_some());
    assert!(client.core.asked_ahead);
}

/// RFC 4252 section 6: the server must disconnect if this key is refused, and the other would
/// lose its chance.
#[test]
fn the_channel_waits_while_there_is_another_key() {
    let mut client = Client::new([key(1), key(2)]);
    assert_eq!(client.sent(), LOGIN);
    client.is_accepted();
    assert!(client.hears(&[msg::USERAUTH_SUCCESS]).unwrap().is_some());
    assert!(!client.core.asked_ahead);
}

/// The same key may be taken by another algorithm. OpenSSH reads on after a refusal.
#[test]
fn the_channel_waits_while_the_algorithm_is_in_doubt() {
    let with = |sig_algs, reads_on| {
        let facts = Facts { sig_algs, reads_on, ..FACTS };
        Client::wanting(b"true", [TestKey::new(rsa())], &facts).sent()
    };
    assert_eq!(with(None, false), LOGIN);
    assert_eq!(with(None, true), WITH_CHANNEL);
    assert_eq!(with(Some(&[SigAlg::RsaSha256]), false), WITH_CHANNEL);
}

/// A refusal could be lost behind it.
#[test]
fn a_large_command_waits() {
    let sent = |bytes| Client::wanting(&vec![b'x'; bytes], [key(1)], &FACTS).sent();
    assert_eq!(sent(Ahead::MOST - 100), WITH_CHANNEL);
    assert_eq!(sent(Ahead::MOST), LOGIN);
}

#[test]
fn the_channel_follows_the_signature_that_the_server_was_asked_about() {
    let mut client = Client::new([TestKey { costly: true, ..key(1) }, key(2)]);
    assert_eq!(client.sent(), LOGIN);
    client.is_accepted();
    client.hears(&super::super::msg::pk_ok("ssh-ed25519", ed25519(1).public().blob())).unwrap();
    assert_eq!(client.sent(), WITH_CHANNEL[1..]);
}

/// What left with a refused request is void: nothing of it counts after another one's success.
#[test]
fn a_refusal_takes_the_channel_with_it() {
    let mut client = Client::new([TestKey { costly: true, ..key(1) }, key(2)]);
    client.is_accepted();
    client.hears(&super::super::msg::pk_ok("ssh-ed25519", ed25519(1).public().blob())).unwrap();
    assert_eq!(client.sent(), [&LOGIN, &WITH_CHANNEL[1..]].concat());
    client.hears(&refusal()).unwrap();
    assert_eq!(client.sent(), [msg::USERAUTH_REQUEST]);
    assert!(client.hears(&[msg::USERAUTH_SUCCESS]).unwrap().is_some());
    assert!(!client.core.asked_ahead && client.core.ahead.is_none());
}
