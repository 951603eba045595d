//! One side of a connection, before and after its login, and what it may never do.

use crate::files::KEY;
use crate::input::Input;
use keys::{PrivateKey, PublicKey, SigAlg};
use proto::auth::server::Rules;
use proto::auth::{Client, Credentials, Decision, Policy, Server, Signer, Step};
use proto::channel::OpenReason;
use proto::{
    Connection, Effect, Error, HostKeys, HostTrust, Ident, KexConfig, Limits, LocalId,
    MAX_IN_SESSION, Outbox, Request, Transport,
};
use std::collections::VecDeque;
use std::sync::{Arc, LazyLock};
use wire::{NameList, msg};

static HOST: LazyLock<PrivateKey> =
    LazyLock::new(|| PrivateKey::from_ed25519_seed(&[100; 32]).expect("a seed is a key"));

struct AnyHost;

impl HostTrust for AnyHost {
    fn verify(&self, key: &PublicKey) -> Result<(), String> {
        assert!(key == HOST.public(), "a host key that proved itself is the host's");
        Ok(())
    }
}

struct OneHostKey;

impl HostKeys for OneHostKey {
    fn algorithms(&self) -> Vec<SigAlg> {
        vec![SigAlg::Ed25519]
    }

    fn public(&self, _: SigAlg) -> Result<Vec<u8>, String> {
        Ok(HOST.public().blob().to_vec())
    }

    fn sign(&self, alg: SigAlg, data: &[u8]) -> Result<Vec<u8>, String> {
        HOST.sign(alg, data).map_err(|_| "cannot sign".into())
    }
}

struct UserKey;

impl Signer for UserKey {
    fn public_key(&self) -> &PublicKey {
        KEY.public()
    }

    fn sign(&mut self, alg: SigAlg, data: &[u8]) -> Result<Vec<u8>, String> {
        KEY.sign(alg, data).map_err(|_| "cannot sign".into())
    }
}

/// Gives its key once.
pub(crate) struct OneCredential(bool);

impl Credentials for OneCredential {
    fn next(&mut self, _: Option<NameList<'_>>) -> Option<Box<dyn Signer + Send>> {
        std::mem::take(&mut self.0).then(|| Box::new(UserKey) as _)
    }
}

/// Lets `user` in by [`KEY`].
pub(crate) struct OneUser;

impl Policy for OneUser {
    type Permissions = ();

    fn public_key(&mut self, user: &str, key: &PublicKey, _: SigAlg) -> Decision<()> {
        if user == "user" && key == KEY.public() { Decision::Accept(()) } else { Decision::Refuse }
    }
}

#[allow(clippy::large_enum_variant, reason = "there are two of them")]
enum End {
    /// A transport with nothing above it.
    Bare(Transport),
    Client(Client<OneCredential>),
    Server(Server<OneUser>),
    Connected(Connection),
    Over,
}

/// One side, and its messages on their way to the peer.
pub(crate) struct Side {
    end: End,
    out: Outbox,
    pub(crate) sent: VecDeque<Vec<u8>>,
    /// Sequence number of the next packet received.
    seq: u32,
    /// Between our KEXINIT and our NEWKEYS, as seen from outside.
    fenced: bool,
    session_id: Option<Vec<u8>>,
}

impl Side {
    pub(crate) fn client(cfg: KexConfig, bare: bool) -> Self {
        let transport = Transport::client(Ident::ours(), cfg, Arc::new(AnyHost));
        Self::new(match bare {
            true => End::Bare(transport),
            false => End::Client(Client::new(transport, "user", OneCredential(true))),
        })
    }

    pub(crate) fn server(cfg: KexConfig, bare: bool) -> Self {
        let transport = Transport::server(Ident::ours(), cfg, Arc::new(OneHostKey));
        let rules = Rules { sig_algs: SigAlg::ALL.to_vec(), max_tries: 3, banner: None };
        Self::new(match bare {
            true => End::Bare(transport),
            false => End::Server(Server::new(transport, OneUser, rules)),
        })
    }

    fn new(end: End) -> Self {
        let mut side = Self {
            end,
            out: Outbox::new(),
            sent: VecDeque::new(),
            seq: 0,
            fenced: false,
            session_id: None,
        };
        if let Some(transport) = side.end.before_login() {
            transport.start(&mut side.out).expect("a fresh transport starts");
            transport.identified(Ident::ours());
        }
        side.carry_out();
        side
    }

    pub(crate) fn is_over(&self) -> bool {
        matches!(self.end, End::Over)
    }

    pub(crate) fn is_connected(&self) -> bool {
        matches!(self.end, End::Connected(_))
    }

    pub(crate) fn session_id(&self) -> Option<&[u8]> {
        self.session_id.as_deref()
    }

    /// One message comes in.
    pub(crate) fn gets(&mut self, payload: &[u8]) {
        let (seq, out) = (self.seq, &mut self.out);
        self.seq = self.seq.wrapping_add(1);
        let bare = matches!(self.end, End::Bare(_));
        let next = std::mem::replace(&mut self.end, End::Over).handle(seq, payload, out);
        let failed = next.is_err();
        self.end = next.unwrap_or(End::Over);
        let last = self.out.effects.last();
        let told = matches!(last, Some(Effect::Send(m)) if m.first() == Some(&msg::DISCONNECT));
        assert!(!failed || bare || told, "the peer is told of a violation");
        self.carry_out();
    }

    /// Does something of its own accord; `input` says what.
    pub(crate) fn acts(&mut self, input: &mut Input<'_>) {
        let done = match &mut self.end {
            End::Connected(connection) => act(connection, input, &mut self.out),
            End::Bare(transport) => transport.rekey(&mut self.out),
            _ => Ok(()),
        };
        if done.is_err() {
            self.end = End::Over;
        }
        self.carry_out();
    }

    /// Looks at what leaves.
    fn carry_out(&mut self) {
        self.out.events.clear();
        let mut last = 0;
        for effect in std::mem::take(&mut self.out.effects) {
            match effect {
                Effect::Fence => self.fenced = true,
                Effect::Send(payload) => {
                    last = *payload.first().expect("a message has a number");
                    let kex = matches!(last, 1..=4 | 20..=49);
                    assert!(!self.fenced || kex, "{last} left during a key exchange (B2)");
                    self.sent.push_back(payload);
                }
                Effect::SealWith(_) => {
                    assert_eq!(last, msg::NEWKEYS, "new keys directly after NEWKEYS");
                    self.fenced = false;
                }
                Effect::OpenWith(keys) if keys.reset_seq => self.seq = 0,
                Effect::OpenWith(_) | Effect::Deflate | Effect::Inflate => {}
            }
        }
        let Some(transport) = self.end.transport() else { return };
        assert!(transport.held_bytes() <= MAX_IN_SESSION);
        let now = transport.session_id().map(<[u8]>::to_vec);
        let same = self.session_id.is_none() || self.session_id == now;
        assert!(same, "a session identifier never changes");
        self.session_id = now;
    }
}

impl End {
    /// To start it.
    fn before_login(&mut self) -> Option<&mut Transport> {
        match self {
            Self::Bare(transport) => Some(transport),
            Self::Client(client) => Some(client.transport_mut()),
            Self::Server(server) => Some(server.transport_mut()),
            Self::Connected(_) | Self::Over => None,
        }
    }

    fn transport(&mut self) -> Option<&Transport> {
        match self {
            Self::Bare(transport) => Some(transport),
            Self::Client(client) => Some(client.transport_mut()),
            Self::Server(server) => Some(server.transport_mut()),
            Self::Connected(connection) => Some(connection.transport()),
            Self::Over => None,
        }
    }

    fn handle(self, seq: u32, payload: &[u8], out: &mut Outbox) -> Result<Self, Error> {
        Ok(match self {
            Self::Bare(mut transport) => {
                let _ = transport.handle(seq, payload, out)?;
                Self::Bare(transport)
            }
            Self::Client(client) => match client.handle(seq, payload, out)? {
                Step::Pending(client) => Self::Client(client),
                Step::Done(login) => {
                    Self::Connected(Connection::new(login, Limits::client().answering(&["a@b"])))
                }
            },
            Self::Server(server) => match server.handle(seq, payload, out)? {
                Step::Pending(server) => Self::Server(server),
                Step::Done(login) => {
                    assert_eq!(login.login().user, "user");
                    let (login, ()) = login.split();
                    Self::Connected(Connection::new(login, Limits::server(4).answering(&["a@b"])))
                }
            },
            Self::Connected(mut connection) => {
                connection.handle(seq, payload, out)?;
                assert!(connection.channels() <= 64);
                Self::Connected(connection)
            }
            Self::Over => Self::Over,
        })
    }
}

/// Something that a program might ask of its connection.
fn act(connection: &mut Connection, input: &mut Input<'_>, out: &mut Outbox) -> Result<(), Error> {
    let what = input.byte_or_zero();
    let number = input.byte_or_zero();
    let id = LocalId(u32::from(number % 4));
    let window = 1 << (number % 32);
    match what % 14 {
        0 => connection.rekey(out),
        1 => connection.open_session(window, window, out).map(drop).or(Ok(())),
        2 => connection.accept(id, window, window, out),
        3 => connection.reject(id, OpenReason::AdministrativelyProhibited, "no", out),
        4 => connection.request(id, &Request::Exec(input.piece().to_vec()), number > 127, out),
        5 => connection.request(id, &Request::ExitStatus(window), number > 127, out),
        6 => connection.reply(id, number > 127, out),
        7 => connection.credit(id, window, out),
        8 => connection.eof(id, out),
        9 => connection.close(id, out),
        10 => connection.keepalive(out),
        11 => connection.global_request("a@b", input.piece(), number > 127, out).map(drop),
        12 => connection.answer((number > 127).then(|| input.piece()), out),
        _ => {
            connection.route(id);
            Ok(())
        }
    }
}
