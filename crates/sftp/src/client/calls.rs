//! Calls: what a program can ask for.

use super::asked::{Expect, Get, Item, Message, Put, Waiting};
use super::ledger::{Ender, Shared};
use super::transfer::{Check, Data, Got, Target};
use super::{Error, ServerFacts, Sizes};
use crate::codec::{Extended, Handle, Reply, Request};
use std::sync::Arc;
use std::sync::mpsc;
use std::time::Duration;

/// Asks a server for things, from any thread; clones ask on the same channel. Requests leave in
/// the order in which they were asked for; answers come in the server's.
#[derive(Clone)]
pub struct Client(Arc<Last>);

/// The channel ends in good order with the last client.
struct Last(Arc<Shared>);

impl Drop for Last {
    fn drop(&mut self) {
        self.0.abandon();
    }
}

impl Client {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self(Arc::new(Last(shared)))
    }

    fn shared(&self) -> &Shared {
        &self.0.0
    }

    /// Asks; the answer comes as an event with `token`. For bulk there are [`Client::put`] and
    /// [`Client::get`].
    pub fn request(&self, request: &Request, token: u64) {
        self.ask(request, Waiting::Token(token));
    }

    /// Asks and waits for the answer. Not for the threads that drive the channel.
    ///
    /// # Errors
    /// The server said no, or the channel ended.
    pub fn call(&self, request: &Request) -> Result<Reply, Error> {
        let (tell, answer) = mpsc::sync_channel(1);
        self.ask(request, Waiting::Caller(tell));
        answer.recv().unwrap_or_else(|_| Err(Error::ended("nobody drives the channel")))
    }

    fn ask(&self, request: &Request, waiting: Waiting) {
        let request = self.shared().links().of_request(request);
        self.shared().ask(Item::Message(message(&request, waiting)));
    }

    /// Sends bytes into a file at the server from `remote` on, in WRITEs as large as the server and
    /// the packets allow: any length will do. The answer is an error if any of them fails (F5), and
    /// comes when nothing of it is under way any more.
    pub fn put(&self, handle: &Handle, remote: u64, data: Data, check: Check, token: u64) {
        let handle = handle.clone();
        self.shared().ask(Item::Put(Put { token, handle, remote, data, check }));
    }

    /// Asks for `len` bytes of a file from `remote` on, written to `target` as they come. More than
    /// [`Sizes::read`] costs further round trips.
    pub fn get(
        &self,
        handle: &Handle,
        remote: u64,
        len: u32,
        target: Target,
        check: Check,
        token: u64,
    ) {
        self.shared().ask(Item::Get(Box::new(Get {
            token,
            handle: handle.clone(),
            remote,
            len,
            target,
            hasher: check.hasher(),
            got: Got::default(),
            asked: 0,
            crumbs: 0,
            failed: None,
        })));
    }

    /// Bytes that were asked to be sent and have not left. [`Event::Room`](super::Event::Room) tells
    /// when few are left of many.
    pub fn unsent(&self) -> u64 {
        self.shared().unsent()
    }

    /// How much one request may carry, as far as is known now: what every server takes, until the
    /// server said more.
    pub fn sizes(&self) -> Sizes {
        self.shared().sizes()
    }

    /// What the server can do; waits for its word, one or two round trips after the start.
    ///
    /// # Errors
    /// The channel ended before it said anything.
    pub fn server(&self) -> Result<&ServerFacts, Error> {
        self.server_within(Duration::MAX)
    }

    /// The same, for a server that may say nothing at all: after `patience` the channel ends.
    ///
    /// # Errors
    /// The channel ended before it said anything.
    pub fn server_within(&self, patience: Duration) -> Result<&ServerFacts, Error> {
        self.shared().facts(patience)
    }

    /// Waits until the server has begun to speak SFTP on this very channel; after `patience` the
    /// channel ends.
    ///
    /// # Errors
    /// The channel ended before it did.
    pub fn begun_within(&self, patience: Duration) -> Result<(), Error> {
        self.shared().greeted(patience)
    }

    /// Ends the channel at once, whatever is under way on it.
    pub fn ender(&self) -> Ender {
        Ender(Arc::clone(&self.0.0))
    }
}

/// Encodes a request, its id still to be filled in.
pub(super) fn message(request: &Request, waiting: Waiting) -> Message {
    let mut bytes = Vec::new();
    request.encode(0, &mut bytes);
    Message { bytes, expect: expected(request), waiting }
}

/// What may answer a request beside a status that says no (draft section 7; OpenSSH PROTOCOL
/// section 4).
fn expected(request: &Request) -> Expect {
    use Extended as E;
    match request {
        Request::Open { .. } | Request::Opendir(_) => Expect::Handle,
        Request::Readdir(_) | Request::Realpath(_) | Request::Readlink(_) => Expect::Names,
        Request::Stat(_) | Request::Lstat(_) | Request::Fstat(_) => Expect::Attrs,
        Request::Read { .. } => Expect::Data,
        Request::Extended(extended) => match extended {
            E::ExpandPath(_) | E::HomeDirectory(_) => Expect::Names,
            E::PosixRename { .. }
            | E::Hardlink { .. }
            | E::Fsync(_)
            | E::Lsetstat(..)
            | E::CopyData { .. }
            | E::SetXattrs(..) => Expect::Status,
            E::Unknown { .. } => Expect::Any,
            _ => Expect::Extended,
        },
        _ => Expect::Status,
    }
}
