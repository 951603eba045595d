//! A client and a server in one process: logged in over a socket pair, one channel.
#![allow(dead_code, reason = "every test file uses its own part")]

use crypt::Cipher;
use engine::{
    Buffers, Error, Fd, Flow, Link, Plan, Port, Program, Session, Sink, Source, Stream, Tune,
};
use keys::{PublicKey, SigAlg};
use proto::auth::server::Rules;
use proto::auth::{Client, Decision, Policy, Server, Step};
use proto::channel::{Limits, LocalId};
use proto::window::Rule;
use proto::{Connection, Event, Ident, KexConfig, Outbox, RekeyLimit, Role, Transport};
use stand_ins::{AnyHost, OneCredential, OneHostKey, key};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::thread::{JoinHandle, spawn};

/// Far larger than a batch, far less than a lap: adjusts keep coming.
const WINDOW: u32 = 4 << 20;

struct AnyUser;

impl Policy for AnyUser {
    type Permissions = ();

    fn public_key(&mut self, _: &str, _: &PublicKey, _: SigAlg) -> Decision<()> {
        Decision::Accept(())
    }
}

fn kex() -> KexConfig {
    KexConfig { ciphers: vec![Cipher::Aes128Gcm], ..KexConfig::default() }
}

/// Identifications, and what both sides say first.
fn greet(link: &mut Link, transport: &mut Transport, outbox: &mut Outbox, peer: Role) {
    link.raw(&Ident::ours().to_wire());
    transport.start(outbox).unwrap();
    link.carry_out(outbox, None).unwrap();
    transport.identified(link.identification(peer, None).unwrap());
}

fn client(link: &mut Link) -> Connection {
    let mut out = Outbox::new();
    let mut transport = Transport::client(Ident::ours(), kex(), Arc::new(AnyHost));
    greet(link, &mut transport, &mut out, Role::Server);
    let mut client = Client::new(transport, "user", OneCredential::new(key(1)));
    loop {
        let (seq, payload) = link.message(None).unwrap();
        let step = client.handle(seq, &payload, &mut out).unwrap();
        link.carry_out(&mut out, None).unwrap();
        match step {
            Step::Pending(next) => client = next,
            Step::Done(login) => return Connection::new(login, Limits::client()),
        }
    }
}

fn server(link: &mut Link) -> Connection {
    let mut out = Outbox::new();
    let mut transport = Transport::server(Ident::ours(), kex(), Arc::new(OneHostKey(key(2))));
    greet(link, &mut transport, &mut out, Role::Client);
    let rules = Rules { sig_algs: SigAlg::ALL.to_vec(), max_tries: 6, banner: None };
    let mut server = Server::new(transport, AnyUser, rules);
    loop {
        let (seq, payload) = link.message(None).unwrap();
        let step = server.handle(seq, &payload, &mut out).unwrap();
        link.carry_out(&mut out, None).unwrap();
        match step {
            Step::Pending(next) => server = next,
            Step::Done(login) => return Connection::new(login.split().0, Limits::server(1)),
        }
    }
}

/// A client and a server that have just logged in, and the wire between them.
pub(crate) fn logged_in() -> ([UnixStream; 2], [(Link, Connection); 2]) {
    let (one, other) = UnixStream::pair().unwrap();
    let wires = [one.try_clone().unwrap(), other.try_clone().unwrap()];
    let link = |stream: UnixStream| Link::new(Fd::from(OwnedFd::from(stream)));
    let (mut ours, mut theirs) = (link(one), link(other));
    let serving = spawn(move || {
        let connection = server(&mut theirs);
        (theirs, connection)
    });
    let connection = client(&mut ours);
    (wires, [(ours, connection), serving.join().unwrap()])
}

/// What one side sends, and where goes what the other side takes of it.
pub(crate) struct Way {
    pub(crate) source: Option<Source>,
    pub(crate) sink: Sink,
}

/// One side's half of both ways.
struct Half {
    source: Option<Source>,
    sink: Option<Sink>,
}

impl Half {
    fn start(&mut self, port: &mut Port<'_>, id: LocalId) -> Result<(), Error> {
        if let Some(sink) = self.sink.take() {
            port.attach(id, Stream::Data, sink);
        }
        match self.source.take() {
            Some(source) => port.session().start_source(id, source, None, |_, _| {}),
            None => Ok(()),
        }
    }
}

impl Program for Half {
    fn event(&mut self, port: &mut Port<'_>, event: Event) -> Result<Flow, Error> {
        match event {
            Event::OpenRequested { id, grant, .. } => {
                port.accept(id, grant)?;
                self.start(port, id)?;
            }
            Event::Opened { id, .. } => self.start(port, id)?,
            _ => {}
        }
        Ok(Flow::On)
    }

    fn sink_broke(&mut self, _: &mut Port<'_>, _: LocalId, _: Stream, _: std::io::Error) -> Flow {
        Flow::Finish
    }
}

type Running = JoinHandle<Result<(), Error>>;

/// Both sides, streaming.
pub(crate) struct Ends {
    sides: [(Session, Running, bool); 2],
    wires: [UnixStream; 2],
}

impl Ends {
    /// Logs in and opens a channel: `up` from client to server, `down` back.
    pub(crate) fn connect(up: Way, down: Way) -> Self {
        let (wires, [(ours, connection), (theirs, served)]) = logged_in();
        let near = Half { source: up.source, sink: Some(down.sink) };
        let far = Half { source: down.source, sink: Some(up.sink) };
        let sides = [run(ours, connection, near), run(theirs, served, far)];
        let [(client, ..), _] = &sides;
        client.open_session(Rule::bulk(WINDOW)).unwrap();
        Self { sides, wires }
    }

    /// The sessions that send.
    pub(crate) fn senders(&self) -> Vec<Session> {
        let sending = self.sides.iter().filter(|(.., sends)| *sends);
        sending.map(|(session, ..)| session.clone()).collect()
    }

    /// Cuts the wire and waits for both sides.
    pub(crate) fn end(self) {
        for wire in &self.wires {
            let _ = wire.shutdown(std::net::Shutdown::Both);
        }
        for (_, running, _) in self.sides {
            let end = running.join().unwrap();
            let cut = matches!(end, Err(Error::Closed | Error::Local(..)));
            assert!(cut, "{end:?}");
        }
    }
}

/// A side with no workers: its receiver on a thread of its own.
fn run(link: Link, connection: Connection, half: Half) -> (Session, Running, bool) {
    let plan = Plan { workers: 0, rekey: RekeyLimit::default() };
    let tune = Tune::new(Buffers::default(), Rule::bulk(WINDOW));
    let sends = half.source.is_some();
    let (session, rx) = link.into_session(connection, plan, tune, None, half).unwrap();
    (session, spawn(move || rx.run().2), sends)
}
