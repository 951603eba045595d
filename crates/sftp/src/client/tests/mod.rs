//! The client, driven by hand: no threads, no server but what a test says.

mod malice;
mod stock;
mod tokens;

use super::*;
use crate::codec::{Handle, Reply, Request, Status};
use std::io::{IoSlice, IoSliceMut};
use std::sync::mpsc::{Receiver, channel};

/// A client whose server is the test.
struct Wire {
    client: Client,
    outgoing: Outgoing,
    incoming: Incoming,
    heard: Receiver<Event>,
}

impl Wire {
    /// Greeted by a server without extensions.
    fn new() -> Self {
        Self::with(&[])
    }

    fn with(extensions: &[&[u8]]) -> Self {
        let mut wire = Self::silent();
        assert_eq!(wire.sent(), []);
        let extensions = extensions.iter().map(|name| (name.to_vec(), b"1".to_vec())).collect();
        let mut version = Vec::new();
        crate::codec::Hello { version: 3, extensions }.encode_version(&mut version);
        wire.say(&version).unwrap();
        wire
    }

    /// Whose server has said nothing.
    fn silent() -> Self {
        let (events, heard) = channel();
        let (client, outgoing, incoming) = pair(events);
        Self { client, outgoing, incoming, heard }
    }

    /// What the client has to send now, in batches of one area; INIT is left out.
    fn sent(&mut self) -> Vec<(u32, Request)> {
        let mut all = Vec::new();
        let mut memory = vec![0; 300_000];
        loop {
            match self.outgoing.fill(&mut [IoSliceMut::new(&mut memory)]) {
                0 => return parsed(&all),
                n => all.extend_from_slice(&memory[..n]),
            }
        }
    }

    /// The server says something.
    fn say(&mut self, bytes: &[u8]) -> Result<usize, Error> {
        self.incoming.take(&[IoSlice::new(bytes)])
    }

    fn reply(&mut self, id: u32, reply: &Reply) -> Result<usize, Error> {
        let mut bytes = Vec::new();
        reply.encode(id, &mut bytes);
        self.say(&bytes)
    }

    fn status(&mut self, id: u32, code: Status) -> Result<usize, Error> {
        self.reply(id, &Reply::status(code))
    }

    fn events(&self) -> Vec<Event> {
        self.heard.try_iter().collect()
    }

    fn get(&mut self, len: u32, target: Target) -> u32 {
        self.client.get(&handle(), 0, len, target, Check::None, 7);
        self.one().0
    }

    /// The one request that is to be sent.
    fn one(&mut self) -> (u32, Request) {
        let mut sent = self.sent();
        assert_eq!(sent.len(), 1);
        sent.remove(0)
    }
}

fn parsed(mut bytes: &[u8]) -> Vec<(u32, Request)> {
    let mut requests = Vec::new();
    while let Some((length, rest)) = bytes.split_first_chunk::<4>() {
        let (packet, rest) = rest.split_at(u32::from_be_bytes(*length) as usize);
        bytes = rest;
        if packet[0] != crate::codec::kind::INIT {
            requests.push(Request::parse(packet).unwrap());
        }
    }
    requests
}

fn handle() -> Handle {
    Handle::new(*b"h").unwrap()
}

/// The answers to tokens among events, in order.
fn answers(events: Vec<Event>) -> Vec<(u64, Result<Answer, Error>)> {
    let answer = |event| match event {
        Event::Answer { token, answer } => Some((token, answer)),
        _ => None,
    };
    events.into_iter().filter_map(answer).collect()
}
