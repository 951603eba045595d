//! From a configuration to a logged-in connection: shared by every program that connects.
//!
//! ```text
//! connect      name -> address -> race -> socket, or a ProxyCommand (proxy), or lhssh (jump)
//! trust        known_hosts says whether the host key is the host's; asks where it may
//! credentials  agent and key files, in the order in which they are tried (key_file)
//! setup        what this build offers, and who runs it
//! session      from a login to the running pipeline, as the configuration has it
//! call_off     ends logins that nobody needs any more
//! (here)       the two machines of `proto` over a link, one message at a time
//! ```
//! Three round trips to a server that prefers what we do, four to others: identification, KEXINIT
//! and a guessed first key exchange packet leave together, and so do NEWKEYS, the service
//! request, a signed authentication request and the first channel with its requests.
#![cfg_attr(not(test), deny(clippy::indexing_slicing))]

mod address;
mod asking;
mod call_off;
mod connect;
mod credentials;
mod error;
mod jump;
mod key_file;
mod log;
mod prompt;
mod proxy;
mod race;
mod receive_buffer;
mod session;
mod setup;
mod socket;
mod trust;

pub use asking::is_asking;
pub use call_off::CallOff;
pub use credentials::Keyring;
pub use error::Error;
pub use jump::is_jump;
pub use log::{Log, escaped};
pub use proxy::{Proxy, keep_interrupts};
pub use receive_buffer::receive_buffer_granted;
pub use session::Started;
pub use setup::{local_user, supported};
pub use socket::buffers;

use conf::Client;
use connect::Connected;
use crypt::{Cipher, Mac};
use engine::Link;
use keys::SigAlg;
use proto::auth::{Authenticated, Step};
use proto::channel::Ahead;
use proto::window::Rule;
use proto::{Compression, Event, Ident, KexConfig, Outbox, Role, Transport};
use std::sync::Arc;
use std::time::Instant;
use wire::msg;

/// A connection whose user the server knows.
pub struct LoggedIn {
    /// The connection.
    pub link: Link,
    /// Proof of login; owns the transport.
    pub authenticated: Authenticated,
    /// The ProxyCommand or jump, if there is one: it ends when this is dropped.
    pub proxy: Option<Proxy>,
}

/// What ConnectTimeout covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Limited {
    /// All until keys are exchanged, as with ssh(1).
    KeyExchange,
    /// The whole login.
    Login,
}

/// Connects to the configured host and logs in. ConnectTimeout covers all until keys are
/// exchanged, as with ssh(1).
///
/// With `ahead` the first channel is asked for together with the login where that is worth it:
/// [`Authenticated::has_asked_ahead`] tells.
pub fn log_in(conf: &Client, log: &Log, ahead: Option<AskAhead<'_>>) -> Result<LoggedIn, Error> {
    let ahead = ahead.filter(|_| conf.pipeline_requests);
    let off = CallOff::default();
    log_in_guessing(conf, log, (&Keyring::new(), &off), (Limited::KeyExchange, ahead))
}

/// Makes the first channel of a connection with this window rule.
pub type AskAhead<'a> = &'a dyn Fn(Rule) -> Ahead;

/// Connects and logs in with what earlier logins to the same host left in `ring`. ConnectTimeout
/// covers the whole login, but for what the user is asked meanwhile: nobody sits before such a
/// program who would give up. It fails, too, when `off` is called.
pub fn log_in_again(
    conf: &Client,
    log: &Log,
    ring: &Keyring,
    off: &CallOff,
) -> Result<LoggedIn, Error> {
    let logged_in = log_in_guessing(conf, log, (ring, off), (Limited::Login, None))?;
    ring.accepted(logged_in.authenticated.login().key.clone());
    Ok(logged_in)
}

fn log_in_guessing(
    conf: &Client,
    log: &Log,
    (ring, off): (&Keyring, &CallOff),
    (limited, ahead): (Limited, Option<AskAhead<'_>>),
) -> Result<LoggedIn, Error> {
    let done = match attempt(conf, log, (ring, off), (true, limited, ahead)) {
        Err(Failed::OverGuess(error)) if !off.is_called() => {
            // Some servers, paramiko and asyncssh among them, do not ignore a wrong guess as RFC
            // 4253 section 7 says, and give up.
            log.debug(1, format_args!("{error}; once more without a guessed packet"));
            attempt(conf, log, (ring, off), (false, limited, ahead))
        }
        other => other,
    };
    done.map_err(|failed| if off.is_called() { Error::CalledOff } else { failed.into_error() })
}

/// Why an attempt failed.
enum Failed {
    /// The server left after a guess that was wrong, before it said anything about the login.
    OverGuess(Error),
    /// Another attempt would not help.
    Otherwise(Error),
}

impl Failed {
    fn into_error(self) -> Error {
        match self {
            Self::OverGuess(error) | Self::Otherwise(error) => error,
        }
    }
}

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        Self::Otherwise(error)
    }
}

fn attempt(
    conf: &Client,
    log: &Log,
    (ring, off): (&Keyring, &CallOff),
    (guess, limited, ahead): (bool, Limited, Option<AskAhead<'_>>),
) -> Result<LoggedIn, Failed> {
    let deadline = conf.connect_limit().map(|limit| Instant::now() + limit);
    let Connected { fd, mut proxy, port } = connect::connect(conf, log, (deadline, off))?;
    let _held = off.hold(&fd);
    let _asking = (proxy.is_some() && !conf.batch_mode).then(asking::Asking::new);
    // After FallbackPort the host's key is the one that is known for that port.
    let mut conf = conf.clone();
    conf.port = port;
    let conf = &conf;
    let trust = Arc::new(trust::Trust::new(conf, log)?);
    let mut kex = kex_config(conf, &trust.known_algorithms());
    kex.first_packet_guess = guess;
    let transport = Transport::client(Ident::ours(), kex, trust);
    let credentials = credentials::Keys::new(conf, log, ring)?;
    let mut login = Login {
        link: Link::new(fd),
        outbox: Outbox::new(),
        log,
        limited,
        deadline,
        keyed: false,
        denied: Vec::new(),
        over_guess: false,
    };
    let authenticated = login.run(transport, conf, credentials, ahead).map_err(|error| {
        login.tell_peer();
        let over_guess = login.over_guess && error.is_by_leaving();
        let via = proxy
            .as_mut()
            .filter(|_| error.is_by_silence() && !off.is_called())
            .and_then(Proxy::failed_via);
        let host = || conf.host_name.clone();
        let error = match (via, conf.connect_limit()) {
            (Some(via), _) => Error::Via { host: host(), via },
            (None, Some(limit)) if login.keyed && error.is_timeout() => {
                Error::Late { host: host(), limit }
            }
            _ => error.at(&conf.user, &conf.host_name),
        };
        if over_guess { Failed::OverGuess(error) } else { Failed::Otherwise(error) }
    })?;
    Ok(LoggedIn { link: login.link, authenticated, proxy })
}

/// What the user's lists say, as the state machine wants it.
fn kex_config(conf: &Client, known: &[SigAlg]) -> KexConfig {
    let default = KexConfig::default();
    let named = |names: &[&'static str], parse: &dyn Fn(&str) -> Option<SigAlg>| -> Vec<SigAlg> {
        names.iter().filter_map(|name| parse(name)).collect()
    };
    let mut host_key_algs = named(conf.host_key_algorithms.names(), &SigAlg::from_name);
    if !conf.host_key_algorithms.is_given() {
        // Algorithms of keys we have for this host come first, so that we meet one we can check.
        host_key_algs.sort_by_key(|alg| known.iter().position(|k| k == alg).unwrap_or(usize::MAX));
    }
    KexConfig {
        kex: conf.kex.names().to_vec(),
        host_key_algs,
        ciphers: conf.ciphers.names().iter().filter_map(|name| Cipher::from_name(name)).collect(),
        macs: conf.macs.names().iter().filter_map(|name| Mac::from_name(name)).collect(),
        compression: match conf.compression {
            true => vec![Compression::Delayed, Compression::None],
            false => vec![Compression::None, Compression::Delayed],
        },
        ..default
    }
}

/// The driver of the machines.
struct Login<'a> {
    link: Link,
    outbox: Outbox,
    log: &'a Log,
    limited: Limited,
    deadline: Option<Instant>,
    /// Keys are exchanged.
    keyed: bool,
    denied: Vec<String>,
    /// Our guess was wrong, and the server has said nothing under the new keys yet.
    over_guess: bool,
}

impl Login<'_> {
    fn run(
        &mut self,
        transport: Transport,
        conf: &Client,
        credentials: credentials::Keys,
        ahead: Option<AskAhead<'_>>,
    ) -> Result<Authenticated, Error> {
        let mut client = proto::auth::Client::new(transport, &conf.user, credentials);
        self.link.raw(&Ident::ours().to_wire());
        client.transport_mut().start(&mut self.outbox)?;
        self.link.carry_out(&mut self.outbox, self.deadline)?;
        let theirs = self.link.identification(Role::Server, self.deadline)?;
        self.log.debug(1, format_args!("remote software version {}", theirs.software()));
        client.transport_mut().identified(theirs);
        let peer = client.transport_mut().peer().filter(|peer| peer.takes_requests_ahead());
        let rule = peer.map(|peer| Rule::towards(Some(peer), buffers(conf).window));
        if let (Some(ahead), Some(rule)) = (ahead, rule) {
            client.ask_ahead(ahead(rule));
        }
        loop {
            let (seq, message) = self.link.message(self.deadline)?;
            let asked = Instant::now();
            let step = client.handle(seq, &message, &mut self.outbox)?;
            // The user may have been asked: that time is not the server's.
            self.deadline = self.deadline.map(|deadline| deadline + asked.elapsed());
            self.events()?;
            if matches!(message.first(), Some(&(msg::SERVICE_ACCEPT | msg::USERAUTH_REQUEST..))) {
                self.over_guess = false;
            }
            if matches!(&step, Step::Pending(client) if client.has_asked_ahead()) {
                // The server may run the command: nobody tries again.
                self.over_guess = false;
            }
            self.link.carry_out(&mut self.outbox, self.deadline)?;
            client = match step {
                Step::Pending(client) => client,
                Step::Done(authenticated) => return Ok(authenticated),
            };
            self.keyed = client.transport_mut().session_id().is_some();
            if self.keyed && self.limited == Limited::KeyExchange {
                self.deadline = None;
            }
        }
    }

    /// The DISCONNECT that the machines left in the outbox, as far as the peer still listens.
    fn tell_peer(&mut self) {
        let _ = self.link.carry_out(&mut self.outbox, self.deadline);
    }

    fn events(&mut self) -> Result<(), Error> {
        for event in std::mem::take(&mut self.outbox.events) {
            match event {
                Event::Disconnected { code, text } => {
                    return Err(engine::Error::Disconnected(code, escaped(&text)).into());
                }
                Event::Banner { text } => self.log.banner(&text),
                Event::Debug { text, .. } => {
                    self.log.debug(1, format_args!("remote: {}", escaped(&text)));
                }
                Event::AuthRefused { method, key, left, .. } => {
                    let key = key.unwrap_or_default();
                    self.log.debug(1, format_args!("{method} {key} refused; can go on: {left}"));
                    self.denied.push(key);
                }
                Event::AuthUnusable { key, why } => {
                    self.log.error(format_args!("sign with {key}: {}", escaped(&why)));
                }
                Event::GuessedWrong => self.over_guess = true,
                Event::Exchanged { first: true } => {
                    self.log.debug(1, format_args!("keys exchanged"))
                }
                _ => {}
            }
        }
        Ok(())
    }
}
