//! A session process: one connection from its first byte to its last.
//!
//! ```text
//! greet    identification and KEXINIT leave before anything is read or looked up
//! log_in   one thread: messages to the login machine, against the clock of LoginGraceTime
//! serve    the pipeline, with this thread as the receiver                    (channels)
//! ```
//! Started by the listener with the connection as standard input and a socket pair as standard
//! output: on it comes the configuration, and its end tells the listener that the client has
//! logged in.

mod words;

use crate::account::Account;
use crate::args::Args;
use crate::authorize::{Granted, KeyFiles};
use crate::channels::{Channels, Served};
use crate::endpoint::Endpoints;
use crate::hostkeys::HostKeys;
use crate::hostname::HostName;
use crate::log::Log;
use crate::setup::Loaded;
use crate::{account, handover, requests, setup, socket};
use anyhow::{Context, Result};
use conf::Server;
use conf::server::Visitor;
use engine::{Alive, Error, Fd, Link, Plan, Tune, plan};
use nix::sys::signal::SigSet;
use proto::auth::server::Rules;
use proto::auth::{self, Authenticated, Step};
use proto::channel::Limits;
use proto::window::Rule;
use proto::{Connection, Event, Ident, Outbox, Peer, Role, Transport};
use std::ffi::OsString;
use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;
use words::Traffic;

/// First argument of a session process.
pub(crate) const ROLE: &str = "--session";
/// Second one: the log is the system's.
pub(crate) const TO_SYSTEM: &str = "--syslog";

/// The process that the listener started.
pub(crate) fn run(args: &[OsString]) -> Result<ExitCode> {
    // No terminal of the listener's is the commands' terminal.
    let _ = rustix::process::setsid();
    // What the listener reads from a descriptor, commands are to get as signals.
    SigSet::empty().thread_set_mask().context("signals")?;
    let connection = take(std::io::stdin().as_fd(), |null| rustix::stdio::dup2_stdin(null))?;
    let listener = take(std::io::stdout().as_fd(), |null| rustix::stdio::dup2_stdout(null))?;
    let mut listener = File::from(listener);
    let config = handover::take(&mut listener)?;
    let system = args.iter().any(|arg| arg == TO_SYSTEM);
    let log = if system { Log::system(config.log_level) } else { Log::stderr(config.log_level) };
    Ok(serve(connection.into(), None, config, log, Some(listener)))
}

/// inetd gives the connection as standard error, too. Whatever is written there from now on, from
/// a wrong configuration to a log where the system has none, would reach the client in the clear.
pub(crate) fn keep_stderr_from_client() {
    let stat = |fd: std::os::fd::BorrowedFd<'_>| rustix::fs::fstat(fd).ok();
    let (Some(input), Some(errors)) = (stat(rustix::stdio::stdin()), stat(rustix::stdio::stderr()))
    else {
        return;
    };
    let kind = rustix::fs::FileType::from_raw_mode(input.st_mode);
    let same = (input.st_dev, input.st_ino) == (errors.st_dev, errors.st_ino);
    if kind == rustix::fs::FileType::Socket
        && same
        && let Ok(null) = File::options().write(true).open("/dev/null")
    {
        let _ = rustix::stdio::dup2_stderr(&null);
    }
}

/// `-i`: the connection is standard input, and output where that is another pipe.
pub(crate) fn inetd(args: &Args, loaded: Loaded) -> Result<ExitCode> {
    let log = Log::open(args, loaded.config.log_level)?;
    let mut config = loaded.log(&log);
    let usable = setup::keep_usable_host_keys(&mut config, |why| log.error(format_args!("{why}")));
    if let Err(error) = usable {
        log.error(format_args!("{error:#}"));
        return Ok(ExitCode::from(crate::FAILED));
    }
    let input = take(std::io::stdin().as_fd(), |null| rustix::stdio::dup2_stdin(null))?;
    let output = take(std::io::stdout().as_fd(), |null| rustix::stdio::dup2_stdout(null))?;
    let input = Fd::from(input);
    let output = (!input.is_socket()).then(|| Fd::from(output));
    Ok(serve(input, output, config, log, None))
}

/// A descriptor of our own in place of a standard one, which becomes `/dev/null`.
fn take(
    fd: std::os::fd::BorrowedFd<'_>,
    replace: impl FnOnce(&File) -> rustix::io::Result<()>,
) -> Result<OwnedFd> {
    let own = fd.try_clone_to_owned().context("standard input and output")?;
    let null = File::options().read(true).write(true).open("/dev/null").context("/dev/null")?;
    replace(&null).context("standard input and output")?;
    Ok(own)
}

/// Serves one connection; errors are logged. `starting` is closed at login.
pub(crate) fn serve(
    input: Fd,
    output: Option<Fd>,
    config: Server,
    log: Log,
    starting: Option<File>,
) -> ExitCode {
    let began = Instant::now();
    let ends = Endpoints::of(&input);
    if input.is_socket()
        && ends.peer_ip().is_some()
        && let Err(error) = socket::tune(&input, &config)
    {
        log.error(format_args!("{error}"));
    }
    let link = match output {
        Some(output) => Link::pair(input, output),
        None => Link::new(input),
    };
    let visit = Visit {
        config: Arc::new(config),
        ends,
        log: Arc::new(log),
        began,
        tries: Tries::default(),
    };
    match visit.receive(link, starting) {
        Ok(()) => ExitCode::SUCCESS,
        Err(()) => ExitCode::from(crate::FAILED),
    }
}

/// One client's visit.
struct Visit {
    config: Arc<Server>,
    ends: Endpoints,
    log: Arc<Log>,
    began: Instant,
    tries: Tries,
}

/// What was tried before login, for the log.
#[derive(Default)]
struct Tries {
    /// Requests that were refused and count (`none` does not).
    refused: u32,
    /// Who the last one was for, as the log has it.
    user: String,
}

impl Visit {
    /// `Err` has been logged.
    fn receive(mut self, mut link: Link, starting: Option<File>) -> Result<(), ()> {
        let login = self.log_in(&mut link);
        let login = login.map_err(|failure| self.log_failure(&failure))?;
        drop(starting);
        let (account, authenticated) = login;
        let user = authenticated.login().user.clone();
        let (traffic, end) = self.session(link, account, authenticated);
        self.log_end(&user, traffic, end)
    }

    fn log_in(&mut self, link: &mut Link) -> Result<Login, Failure> {
        let grace = self.config.login_grace_time;
        let deadline = (!grace.is_zero()).then(|| self.began + grace);
        let hostname = self.ends.peer_ip().filter(|_| self.config.use_dns);
        let mut hostname = hostname.map(|ip| HostName::of(ip, deadline));
        let mut outbox = Outbox::new();
        let transport = self.greet(link, &mut outbox, deadline)?;
        let theirs = link.identification(Role::Client, deadline)?;
        self.log.debug(format_args!("client is {}", theirs.as_str()));
        let account = Arc::new(Account::current().map_err(Failure::Local)?);
        if self.config.has_blocks() {
            self.apply_blocks(&account, hostname.as_mut()).map_err(Failure::Local)?;
        }
        let policy = KeyFiles::new(
            Arc::clone(&account),
            Arc::clone(&self.config),
            self.ends,
            Arc::clone(&self.log),
            hostname,
        );
        let mut server = auth::Server::new(transport, policy, self.rules());
        server.transport_mut().identified(theirs);
        loop {
            let (seq, payload) = link.message(deadline)?;
            let step = server.handle(seq, &payload, &mut outbox);
            // Before anything that depends on the user's name, such as lines in the log (A9). After
            // an error this is the DISCONNECT, which the client may not wait for.
            let carried = link.carry_out(&mut outbox, deadline);
            self.note(&mut outbox, &account)?;
            match step.map_err(engine::Error::from)? {
                Step::Pending(next) => server = next,
                Step::Done(authenticated) => {
                    carried?;
                    return Ok((account, authenticated));
                }
            }
            carried?;
        }
    }

    /// From here on what Match blocks say of this connection counts. Only the account that is
    /// served can log in, so its name stands for whatever the client will give: nobody learns from
    /// another behaviour who that is (A9).
    fn apply_blocks(&mut self, account: &Account, name: Option<&mut HostName>) -> Result<()> {
        let name = name.filter(|_| self.config.matches_hosts()).and_then(HostName::get);
        let address = self.ends.peer_ip();
        let visitor = Visitor {
            user: Some(account.name.clone()),
            groups: Vec::new(),
            host: name.map(str::to_owned).or_else(|| address.map(|ip| ip.to_string())),
            address,
            local_address: self.ends.local().map(|local| local.ip()),
            local_port: self.ends.local().map(|local| local.port()),
        };
        let grouped = self.config.matches_groups();
        let visitor = if grouped { account::in_groups(visitor) } else { visitor };
        let config = setup::matched(&self.config, visitor)?;
        self.log = Arc::new(self.log.at_level(config.log_level));
        self.config = Arc::new(config);
        Ok(())
    }

    /// What can be said without knowing the client.
    fn greet(
        &self,
        link: &mut Link,
        outbox: &mut Outbox,
        deadline: Option<Instant>,
    ) -> Result<Transport, Failure> {
        let keys = HostKeys::find(&self.config.host_keys(), |why| {
            self.log.debug(format_args!("{why}"));
        });
        let ours = match self.config.identify_as_openssh {
            true => Ident::ours_as_openssh(),
            false => Ident::ours(),
        };
        link.raw(&ours.to_wire());
        let kex = setup::kex_config(&self.config);
        let mut transport = Transport::server(ours, kex, Arc::new(keys));
        transport.start(outbox).map_err(engine::Error::from)?;
        link.carry_out(outbox, deadline)?;
        Ok(transport)
    }

    fn rules(&self) -> Rules {
        let banner = self.config.banner().and_then(|path| match std::fs::read(path) {
            Ok(text) => Some(String::from_utf8_lossy(&text).into_owned()),
            Err(error) => {
                self.log.error(format_args!("Banner {}: {error}", path.display()));
                None
            }
        });
        Rules {
            sig_algs: setup::sig_algs(&self.config.pubkey_algorithms),
            max_tries: self.config.max_auth_tries,
            banner,
        }
    }

    /// Events before login.
    fn note(&mut self, outbox: &mut Outbox, account: &Account) -> Result<(), Failure> {
        for event in outbox.events.drain(..) {
            match event {
                Event::AuthRefused { user, method, key, .. } => {
                    self.log_refusal(&user, &method, key.as_deref(), user == account.name);
                    self.tries.refused += u32::from(method != "none");
                }
                Event::Disconnected { code, text } => {
                    return Err(Failure::Engine(Error::Disconnected(code, text)));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// The pipeline, until the client is gone.
    fn session(
        &self,
        link: Link,
        account: Arc<Account>,
        authenticated: Authenticated<Granted>,
    ) -> (Traffic, Result<(), Error>) {
        let (authenticated, Granted { options, key }) = authenticated.split();
        self.log_login(&authenticated, &key);
        let plan = self.plan(authenticated.transport());
        let buffers = socket::buffers(&self.config);
        let sessions = usize::try_from(self.config.max_sessions).unwrap_or(usize::MAX);
        let peer = authenticated.transport().peer();
        let rule = Rule::towards(peer, buffers.window);
        let knows_eow = peer.is_some_and(Peer::knows_end_of_write);
        // Who takes us for OpenSSH keeps to OpenSSH's ways.
        let peer = peer.filter(|_| !self.config.identify_as_openssh);
        let software = peer.map_or_else(String::new, |peer| peer.ident().software().to_owned());
        let limits = Limits::server(sessions).answering(requests::NAMES);
        let connection = self.with_policy(Connection::new(authenticated, limits));
        let channels = Channels::new(Served {
            account,
            config: Arc::clone(&self.config),
            ends: self.ends,
            options,
            log: Arc::clone(&self.log),
            software,
            knows_eow,
        });
        let tune = Tune::new(buffers, rule);
        match link.into_session(connection, plan, tune, self.alive(), channels) {
            Err(error) => (Traffic::default(), Err(error)),
            Ok((session, rx)) => {
                let (_, _, end) = rx.run();
                (Traffic::of(&session), end)
            }
        }
    }

    /// N1: what policy says of this user at this address.
    #[cfg(feature = "none")]
    fn with_policy(&self, mut connection: Connection) -> Connection {
        if self.config.none_enabled {
            connection.permit_none(self.config.none_mac_enabled);
        }
        connection
    }

    #[cfg(not(feature = "none"))]
    fn with_policy(&self, connection: Connection) -> Connection {
        connection
    }

    fn plan(&self, transport: &Transport) -> Plan {
        let workers = plan::workers(self.config.crypto_workers.count(), transport);
        Plan { workers, rekey: setup::rekey_limit(&self.config) }
    }

    /// ClientAlive*.
    fn alive(&self) -> Option<Alive> {
        let interval = self.config.client_alive_interval;
        let count = match self.config.client_alive_count_max {
            0 => u32::MAX,
            count => count,
        };
        (!interval.is_zero()).then_some(Alive { interval, count })
    }
}

type Login = (Arc<Account>, Authenticated<Granted>);

/// Why nobody logged in.
enum Failure {
    Engine(Error),
    Local(anyhow::Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Engine(error)
    }
}
