//! The first channel, asked for together with the login.

use super::*;
use crate::channel::{Ahead, Request};

/// SERVICE_REQUEST, USERAUTH_REQUEST, and a session with a command.
const WITH_CHANNEL: [u8; 4] =
    [msg::SERVICE_REQUEST, msg::USERAUTH_REQUEST, msg::CHANNEL_OPEN, msg::CHANNEL_REQUEST];
const LOGIN: [u8; 2] = [msg::SERVICE_REQUEST, msg::USERAUTH_REQUEST];

const FACTS: Facts<'_> = Facts { session_id: SESSION, sig_algs: None };

/// Keys of which the first `sure` stand for the whole login.
struct Sure {
    keys: Keys,
    sure: usize,
    given: usize,
}

impl Credentials for Sure {
    fn next(&mut self, left: Option<NameList<'_>>) -> Option<Box<dyn Signer + Send>> {
        self.given += 1;
        self.keys.next(left)
    }

    fn is_sure(&self) -> bool {
        self.given <= self.sure
    }
}

struct Client {
    core: super::super::client::Core<Sure>,
    draft: Draft,
}

impl Client {
    fn new(keys: impl IntoIterator<Item = TestKey>, sure: usize) -> Self {
        let credentials = Sure { keys: Keys::new(keys), sure, given: 0 };
        let mut core = super::super::client::Core::new("user".into(), credentials);
        core.ahead = Some(Ahead::session(1, 1, vec![(Request::Exec(b"true".to_vec()), true)]));
        let mut client = Self { core, draft: Draft::default() };
        client.core.begin(&FACTS, &mut client.draft).unwrap();
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

#[test]
fn the_channel_follows_a_signature_that_stands_for_the_login() {
    let mut client = Client::new([key(1)], 1);
    assert_eq!(client.sent(), WITH_CHANNEL);
    client.is_accepted();
    assert!(client.hears(&[msg::USERAUTH_SUCCESS]).unwrap().is_some());
    assert!(client.core.asked_ahead);
}

/// RFC 4252 section 6: a server may disconnect over it, and lose the other keys their chance.
#[test]
fn the_channel_waits_while_there_is_another_key() {
    let mut client = Client::new([key(1), key(2)], 0);
    assert_eq!(client.sent(), LOGIN);
    client.is_accepted();
    assert!(client.hears(&[msg::USERAUTH_SUCCESS]).unwrap().is_some());
    assert!(!client.core.asked_ahead);
}

#[test]
fn the_channel_follows_the_signature_that_the_server_was_asked_about() {
    let mut client = Client::new([TestKey { costly: true, ..key(1) }, key(2)], 0);
    assert_eq!(client.sent(), LOGIN);
    client.is_accepted();
    client.hears(&super::super::msg::pk_ok("ssh-ed25519", ed25519(1).public().blob())).unwrap();
    assert_eq!(client.sent(), WITH_CHANNEL[1..]);
}

/// What left with a refused request is void: nothing of it counts after another one's success.
#[test]
fn a_refusal_takes_the_channel_with_it() {
    let mut client = Client::new([key(1), key(2)], 2);
    assert_eq!(client.sent(), WITH_CHANNEL);
    client.is_accepted();
    let refused = Writer::message(msg::USERAUTH_FAILURE).string("publickey").bool(false).take();
    client.hears(&refused).unwrap();
    assert_eq!(client.sent(), [msg::USERAUTH_REQUEST]);
    assert!(client.hears(&[msg::USERAUTH_SUCCESS]).unwrap().is_some());
    assert!(!client.core.asked_ahead && client.core.ahead.is_none());
}
