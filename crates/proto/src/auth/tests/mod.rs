//! Both auth machines back to back, without a transport between them.

mod ahead;
mod client;
mod invariants;

use super::client::Facts;
use super::server::Rules;
use super::*;
use crate::draft::Draft;
use crate::{Error, Event};
use keys::{PrivateKey, PublicKey, SigAlg};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use wire::{NameList, Writer, msg};

const SESSION: &[u8] = b"session identifier";

fn ed25519(seed: u8) -> PrivateKey {
    PrivateKey::from_ed25519_seed(&[seed; 32]).unwrap()
}

fn rsa() -> PrivateKey {
    PrivateKey::from_bytes(include_bytes!("rsa_2048"), None).unwrap()
}

/// A key that may refuse to sign, or cost a passphrase; counts its signatures.
struct TestKey {
    key: PrivateKey,
    costly: bool,
    broken: bool,
    signed: Arc<Mutex<Vec<SigAlg>>>,
}

impl TestKey {
    fn new(key: PrivateKey) -> Self {
        Self { key, costly: false, broken: false, signed: Arc::default() }
    }
}

impl Signer for TestKey {
    fn public_key(&self) -> &PublicKey {
        self.key.public()
    }

    fn is_costly(&self) -> bool {
        self.costly
    }

    fn sign(&mut self, alg: SigAlg, data: &[u8]) -> Result<Vec<u8>, String> {
        if self.broken {
            return Err("agent refused operation".into());
        }
        self.signed.lock().unwrap().push(alg);
        self.key.sign(alg, data).map_err(|_| "cannot sign".into())
    }
}

struct Keys(VecDeque<TestKey>);

impl Keys {
    fn new(keys: impl IntoIterator<Item = TestKey>) -> Self {
        Self(keys.into_iter().collect())
    }
}

impl Credentials for Keys {
    fn next(&mut self, _: Option<NameList<'_>>) -> Option<Box<dyn Signer + Send>> {
        Some(Box::new(self.0.pop_front()?))
    }
}

/// Lets `user` in by `keys`; permissions are the number of the key. Remembers what it was asked.
#[derive(Default)]
struct Book {
    keys: Vec<PublicKey>,
    asked: Vec<String>,
}

impl Policy for Book {
    type Permissions = usize;

    fn public_key(&mut self, user: &str, key: &PublicKey, _: SigAlg) -> Decision<usize> {
        self.asked.push(user.to_owned());
        match self.keys.iter().position(|known| known == key) {
            Some(n) if user == "user" => Decision::Accept(n),
            _ => Decision::Refuse,
        }
    }
}

fn rules() -> Rules {
    Rules { sig_algs: SigAlg::ALL.to_vec(), max_tries: 6, banner: None }
}

type ServerCore = super::server::Core<Book>;

fn server(keys: &[&PrivateKey]) -> ServerCore {
    let keys = keys.iter().map(|key| key.public().clone()).collect();
    ServerCore::new(Book { keys, asked: vec![] }, rules())
}

/// A server that is past SERVICE_REQUEST.
fn serving(keys: &[&PrivateKey]) -> (ServerCore, Draft) {
    let (mut core, mut draft) = (server(keys), Draft::default());
    core.handle(&super::msg::service_request(), SESSION, &mut draft).unwrap();
    draft.messages.clear();
    (core, draft)
}

type Outcome = Result<Option<(Login, usize)>, Error>;

/// What one request leads to: the message numbers of the answer, or the error.
fn answer(core: &mut ServerCore, draft: &mut Draft, request: &[u8]) -> (Vec<u8>, Outcome) {
    let outcome = core.handle(request, SESSION, draft);
    (draft.messages.drain(..).map(|message| message[0]).collect(), outcome)
}

fn signed(user: &str, key: &PrivateKey, alg: SigAlg) -> Vec<u8> {
    let mut request = super::msg::key_request(user, alg, key.public().blob());
    let data = super::msg::to_be_signed(SESSION, request.as_slice());
    request.string(key.sign(alg, &data).unwrap()).take()
}

fn query(user: &str, key: &PrivateKey, alg: SigAlg) -> Vec<u8> {
    super::msg::key_query(user, alg, key.public().blob())
}

/// A whole login: its end on the client, the events there, and the messages of the client.
struct Run {
    login: Result<Login, Error>,
    permissions: Option<usize>,
    events: Vec<Event>,
    sent: Vec<u8>,
    /// How often the client had to wait for the server.
    turns: usize,
}

fn run(keys: Keys, mut server: ServerCore, told: Option<&[SigAlg]>) -> Run {
    let mut client = super::client::Core::new("user".into(), keys);
    let (mut c, mut s) = (Draft::default(), Draft::default());
    let mut run = Run {
        login: Err(Error::Local("nothing".into())),
        permissions: None,
        events: vec![],
        sent: vec![],
        turns: 0,
    };
    client.begin(&Facts { session_id: SESSION, sig_algs: None, reads_on: false }, &mut c).unwrap();
    while !c.messages.is_empty() {
        run.turns += 1;
        for message in std::mem::take(&mut c.messages) {
            run.sent.push(message[0]);
            match server.handle(&message, SESSION, &mut s) {
                Ok(done) => run.permissions = done.map(|(_, permissions)| permissions),
                Err(error) => run.login = Err(error),
            }
        }
        for message in std::mem::take(&mut s.messages) {
            let facts = Facts { session_id: SESSION, sig_algs: told, reads_on: false };
            match client.handle(&message, &facts, &mut c) {
                Ok(None) => {}
                Ok(Some(login)) => run.login = Ok(login),
                Err(error) => run.login = Err(error),
            }
        }
        run.events.append(&mut c.events);
    }
    run
}
