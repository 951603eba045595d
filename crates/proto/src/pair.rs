//! Two transports back to back, for tests: no packets, no ciphers, no clock. What would be
//! sealed is checked instead: both ends must hold the same keys, change them at the same message
//! and agree on sequence numbers.

use crate::{Effect, Error, Event, Handled, HostKeys, HostTrust, Ident, KexConfig, NewKeys};
use crate::{Outbox, Role, Transport};
use keys::{PrivateKey, PublicKey, SigAlg};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use wire::msg::{self, Disconnect};

/// One message on its way.
#[derive(Debug, Clone)]
pub(crate) struct Packet {
    pub(crate) seq: u32,
    /// How often the sender had changed its key.
    epoch: usize,
    pub(crate) payload: Vec<u8>,
}

/// One side, with what it did so far.
pub(crate) struct End {
    pub(crate) t: Transport,
    /// What it sent and nobody received yet.
    pub(crate) out: VecDeque<Packet>,
    pub(crate) events: Vec<Event>,
    /// Messages for the layer above.
    pub(crate) upper: Vec<Vec<u8>>,
    /// Numbers of all messages sent; 0 is a fence, 255 a change of keys, 254 and 253 the beginning
    /// of compression.
    pub(crate) log: Vec<u8>,
    seal: Vec<NewKeys>,
    open: Vec<NewKeys>,
    seq_out: u32,
    seq_in: u32,
}

pub(crate) const FENCE: u8 = 0;
pub(crate) const SEAL: u8 = 255;
pub(crate) const DEFLATE: u8 = 254;
pub(crate) const INFLATE: u8 = 253;

impl End {
    pub(crate) fn new(t: Transport) -> Self {
        Self {
            t,
            out: VecDeque::new(),
            events: Vec::new(),
            upper: Vec::new(),
            log: Vec::new(),
            seal: Vec::new(),
            open: Vec::new(),
            seq_out: 0,
            seq_in: 0,
        }
    }

    /// Calls the machine and carries out what it asks for.
    pub(crate) fn call<T>(&mut self, f: impl FnOnce(&mut Transport, &mut Outbox) -> T) -> T {
        let mut out = Outbox::new();
        let result = f(&mut self.t, &mut out);
        self.events.extend(out.events);
        out.effects.into_iter().for_each(|effect| self.carry_out(effect));
        result
    }

    fn carry_out(&mut self, effect: Effect) {
        match effect {
            Effect::Fence => self.log.push(FENCE),
            Effect::Send(payload) => {
                self.log.push(payload[0]);
                let (seq, epoch) = (self.seq_out, self.seal.len());
                self.out.push_back(Packet { seq, epoch, payload });
                self.seq_out = self.seq_out.wrapping_add(1);
            }
            Effect::SealWith(keys) => {
                assert_eq!(self.log.last(), Some(&msg::NEWKEYS));
                self.log.push(SEAL);
                self.seq_out = if keys.reset_seq { 0 } else { self.seq_out };
                self.seal.push(*keys);
            }
            Effect::OpenWith(keys) => {
                self.seq_in = if keys.reset_seq { 0 } else { self.seq_in };
                self.open.push(*keys);
            }
            Effect::Deflate => self.log.push(DEFLATE),
            Effect::Inflate => self.log.push(INFLATE),
        }
    }

    /// One message of the peer, as its packet layer would bring it.
    pub(crate) fn receive(&mut self, packet: Packet) -> Result<(), Error> {
        assert_eq!(packet.epoch, self.open.len(), "sealed and opened with different keys");
        assert_eq!(packet.seq, self.seq_in, "sequence numbers apart");
        self.inject(&packet.payload)
    }

    /// A message that nobody sent, with the next sequence number.
    pub(crate) fn inject(&mut self, payload: &[u8]) -> Result<(), Error> {
        let seq = self.seq_in;
        self.seq_in = self.seq_in.wrapping_add(1);
        if self.call(|t, out| t.handle(seq, payload, out))? == Handled::Upper {
            self.upper.push(payload.to_vec());
        }
        Ok(())
    }

    /// As the layers above do.
    pub(crate) fn send(&mut self, payload: &[u8]) -> Result<(), Error> {
        self.call(|t, out| t.send(payload.to_vec(), out))
    }

    pub(crate) fn rekey(&mut self) {
        self.call(|t, out| t.rekey(out)).unwrap();
    }

    /// Exchanges over in both directions.
    pub(crate) fn exchanges(&self) -> usize {
        self.events.iter().filter(|e| matches!(e, Event::Exchanged { .. })).count()
    }
}

/// Two ends that are connected.
pub(crate) struct Pair {
    pub(crate) client: End,
    pub(crate) server: End,
}

impl Pair {
    /// Not started, identified.
    pub(crate) fn new(client: KexConfig, server: KexConfig, keys: TestKeys) -> Self {
        Self::with_trust(client, server, Arc::new(keys), Arc::new(Anyone::default()))
    }

    pub(crate) fn with_trust(
        client: KexConfig,
        server: KexConfig,
        keys: Arc<dyn HostKeys + Send + Sync>,
        trust: Arc<dyn HostTrust + Send + Sync>,
    ) -> Self {
        let ident = |sender, text: &str| Ident::parse(sender, text.as_bytes()).unwrap();
        let ours = ident(Role::Client, "SSH-2.0-longhaul_client");
        let theirs = ident(Role::Server, "SSH-2.0-longhaul_server");
        let mut c = Transport::client(ours.clone(), client, trust);
        c.identified(theirs.clone());
        let mut s = Transport::server(theirs, server, keys);
        s.identified(ours);
        Self { client: End::new(c), server: End::new(s) }
    }

    /// With everything default, started and through the first exchange.
    pub(crate) fn connected() -> Self {
        Self::connected_by(quick(), quick())
    }

    pub(crate) fn connected_by(client: KexConfig, server: KexConfig) -> Self {
        let mut pair = Self::new(client, server, TestKeys::ed25519());
        pair.start();
        pair.run().unwrap();
        pair
    }

    /// The same, with the user logged in.
    pub(crate) fn session() -> Self {
        Self::session_by(quick(), quick())
    }

    pub(crate) fn session_by(client: KexConfig, server: KexConfig) -> Self {
        let mut pair = Self::connected_by(client, server);
        pair.log_in();
        pair
    }

    /// All keys that came into force at either side.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &NewKeys> {
        [&self.client, &self.server].into_iter().flat_map(|end| end.seal.iter().chain(&end.open))
    }

    pub(crate) fn log_in(&mut self) {
        self.client.call(Transport::logged_in);
        self.server.call(Transport::logged_in);
    }

    pub(crate) fn start(&mut self) {
        self.client.call(|t, out| t.start(out)).unwrap();
        self.server.call(|t, out| t.start(out)).unwrap();
    }

    pub(crate) fn end(&mut self, role: Role) -> &mut End {
        match role {
            Role::Client => &mut self.client,
            Role::Server => &mut self.server,
        }
    }

    /// Brings the next message of `sender` over; false when there is none.
    pub(crate) fn step(&mut self, sender: Role) -> Result<bool, Error> {
        let Some(packet) = self.end(sender).out.pop_front() else { return Ok(false) };
        self.end(sender.peer()).receive(packet).map(|()| true)
    }

    /// Brings messages over until there are none.
    pub(crate) fn run(&mut self) -> Result<(), Error> {
        while self.step(Role::Client)? | self.step(Role::Server)? {}
        self.check();
        Ok(())
    }

    /// One round trip: what is under way in both directions arrives, and no more.
    pub(crate) fn half_round(&mut self) -> Result<(), Error> {
        let (to_server, to_client) = (self.client.out.len(), self.server.out.len());
        (0..to_server).try_for_each(|_| self.step(Role::Client).map(|_| ()))?;
        (0..to_client).try_for_each(|_| self.step(Role::Server).map(|_| ()))
    }

    /// Both ends have the same keys, in both directions.
    pub(crate) fn check(&self) {
        for (sealing, opening) in [(&self.client, &self.server), (&self.server, &self.client)] {
            assert_eq!(sealing.seal.len(), opening.open.len());
            for (seal, open) in sealing.seal.iter().zip(&opening.open) {
                assert!(seal.material == open.material, "different keys");
                assert_eq!(seal.cover, open.cover);
                assert_eq!(seal.reset_seq, open.reset_seq);
                assert_eq!(seal.material.key.len(), seal.cover.key_len());
                assert_eq!(seal.material.mac.len(), seal.cover.mac_key_len());
            }
        }
        assert_eq!(self.client.t.session_id(), self.server.t.session_id());
    }

    /// The next message from `sender` is refused with this code; gives the error's text.
    pub(crate) fn refused(&mut self, sender: Role, code: Disconnect) -> String {
        let error = self.step(sender).expect_err("must be refused");
        let end = self.end(sender.peer());
        assert_eq!(error.disconnect_code(), code, "{error}");
        assert!(end.t.is_closed());
        end.call(|t, out| t.fail(&error, out));
        assert_eq!(end.log.last(), Some(&msg::DISCONNECT));
        error.to_string()
    }

    /// `payload` from `sender` out of turn is refused as a protocol error; gives the error.
    pub(crate) fn refuses(&mut self, sender: Role, payload: &[u8]) -> Error {
        let end = self.end(sender.peer());
        let error = end.inject(payload).expect_err("must be refused");
        assert!(end.t.is_closed());
        error
    }
}

/// Defaults with the method that costs least.
pub(crate) fn quick() -> KexConfig {
    KexConfig { kex: vec!["curve25519-sha256"], ..KexConfig::default() }
}

/// A client that trusts whatever it is shown, and counts how often it was asked.
#[derive(Default)]
pub(crate) struct Anyone {
    pub(crate) asked: Mutex<Vec<PublicKey>>,
}

impl HostTrust for Anyone {
    fn verify(&self, key: &PublicKey) -> Result<(), String> {
        self.asked.lock().unwrap().push(key.clone());
        Ok(())
    }
}

/// Host keys of a test server.
pub(crate) struct TestKeys(pub(crate) Vec<PrivateKey>);

impl TestKeys {
    pub(crate) fn ed25519() -> Self {
        Self(vec![seed(7)])
    }

    /// One of every type.
    pub(crate) fn every() -> Self {
        let files: [&[u8]; 4] = [
            include_bytes!("../testdata/ecdsa256"),
            include_bytes!("../testdata/ecdsa384"),
            include_bytes!("../testdata/ecdsa521"),
            include_bytes!("../testdata/rsa2048"),
        ];
        let files = files.iter().map(|file| PrivateKey::from_bytes(file, None).unwrap());
        Self(std::iter::once(seed(7)).chain(files).collect())
    }

    fn of(&self, alg: SigAlg) -> Result<&PrivateKey, String> {
        let found = self.0.iter().find(|key| key.public().key_type() == alg.key_type());
        found.ok_or_else(|| format!("no key for {}", alg.name()))
    }
}

/// An Ed25519 key that depends on `byte` alone.
pub(crate) fn seed(byte: u8) -> PrivateKey {
    PrivateKey::from_ed25519_seed(&[byte; 32]).unwrap()
}

impl HostKeys for TestKeys {
    fn algorithms(&self) -> Vec<SigAlg> {
        self.0.iter().flat_map(|key| key.public().sig_algs()).copied().collect()
    }

    fn public(&self, alg: SigAlg) -> Result<Vec<u8>, String> {
        Ok(self.of(alg)?.public().blob().to_vec())
    }

    fn sign(&self, alg: SigAlg, data: &[u8]) -> Result<Vec<u8>, String> {
        self.of(alg)?.sign(alg, data).map_err(|why| why.to_string())
    }
}
