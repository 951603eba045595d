//! Connection: one login, and the channels that are opened on it.

use crate::channels::{Channels, News, Order, Orders};
use crate::ends::{Output, Replies, Requests};
use crate::stderr::Stderr;
use crate::stream::{Came, DISCARD, Drain, Next, Stream, ZEROS, Zeros};
use crate::{Error, child};
use conf::Client;
use engine::session::MAX_DATA;
use engine::{Session, Sink, Source};
use login::{Log, LoggedIn, Proxy, Started};
use proto::Peer;
use proto::channel::{LocalId, Request};
use proto::window::Rule;
use sftp::client::{self, Event, Known};
use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use wire::msg::Disconnect;

/// How long a server may take to hear that we leave.
const GOODBYE: Duration = Duration::from_millis(500);

/// A way to a host's files that is open. Ends when it is dropped, whatever is under way.
pub struct Connection(Way);

enum Way {
    Ssh(Box<Ssh>),
    Program { program: PathBuf, args: Vec<OsString> },
}

struct Ssh {
    host: String,
    session: Session,
    orders: Orders,
    /// How long the server may take to open a channel.
    patience: Duration,
    rule: Rule,
    peer: Option<Peer>,
    /// What its sftp server can do, as soon as one channel heard.
    known: Known,
    /// Nanoseconds of the quickest answer to CHANNEL_OPEN.
    quickest: AtomicU64,
    log: Arc<Log>,
    /// A second hold on the socket, to hang up with.
    socket: OwnedFd,
    receiving: Option<JoinHandle<()>>,
    _proxy: Option<Proxy>,
}

/// How a command ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finished {
    /// Its status; none if it was killed or nobody told.
    pub status: Option<u32>,
    /// What it printed.
    pub output: Vec<u8>,
}

impl Connection {
    /// Gives a logged-in connection its threads.
    pub(crate) fn start(logged_in: LoggedIn, conf: &Client, log: &Arc<Log>) -> Result<Self, Error> {
        let peer = logged_in.authenticated.transport().peer().cloned();
        let socket = logged_in.link.fd().as_fd().try_clone_to_owned().map_err(no_descriptor)?;
        let orders = Orders::new();
        let Started { session, rx, rule, proxy } =
            logged_in.start(conf, Channels(orders.clone()))?;
        let running = move || {
            let (channels, _, end) = rx.run();
            let why = match &end {
                Ok(()) => "the connection was closed".to_owned(),
                Err(error) => login::escaped(&error.to_string()),
            };
            channels.0.lose(&why);
        };
        let receiving = std::thread::Builder::new().name("rx".to_owned()).spawn(running);
        let receiving = receiving.map_err(no_descriptor)?;
        Ok(Self(Way::Ssh(Box::new(Ssh {
            host: conf.host.clone(),
            session,
            orders,
            patience: conf.connect_limit().unwrap_or(Duration::MAX),
            rule,
            known: known(peer.as_ref()),
            peer,
            quickest: AtomicU64::new(u64::MAX),
            log: Arc::clone(log),
            socket,
            receiving: Some(receiving),
            _proxy: proxy,
        }))))
    }

    /// A way through a program, which is started for each channel.
    pub(crate) fn program(program: PathBuf, args: Vec<OsString>) -> Self {
        Self(Way::Program { program, args })
    }

    /// Opens one more sftp channel; answers to its tokens go to `events`. Requests may be made as
    /// soon as it is open: nothing waits for the server's VERSION. The channel closes, in good
    /// order, after the last clone of its client is gone.
    ///
    /// # Errors
    /// [`Error::Full`] where another connection may help.
    pub fn open(&self, events: Sender<Event>) -> Result<client::Client, Error> {
        match &self.0 {
            Way::Ssh(ssh) => ssh.open(Request::Subsystem("sftp".to_owned()), events, &ssh.known),
            Way::Program { program, args } => {
                let mut command = Command::new(program);
                command.args(args);
                child(command, events)
            }
        }
    }

    /// The same with another subsystem (sftp's `-s`).
    ///
    /// # Errors
    /// Those of [`Connection::open`].
    pub fn open_subsystem(
        &self,
        name: &str,
        events: Sender<Event>,
    ) -> Result<client::Client, Error> {
        match &self.0 {
            Way::Ssh(ssh) => {
                let known = known(ssh.peer.as_ref());
                ssh.open(Request::Subsystem(name.to_owned()), events, &known)
            }
            Way::Program { .. } => Err(Error::NoCommands),
        }
    }

    /// The same with a command of the user's in place of the subsystem (sftp's `-s`).
    ///
    /// # Errors
    /// Those of [`Connection::open`].
    pub fn open_command(
        &self,
        command: Vec<u8>,
        events: Sender<Event>,
    ) -> Result<client::Client, Error> {
        match &self.0 {
            Way::Ssh(ssh) => ssh.open(Request::Exec(command), events, &known(ssh.peer.as_ref())),
            Way::Program { .. } => Err(Error::NoCommands),
        }
    }

    /// Runs a command without input and waits for its end. Never make one of a path (F4).
    ///
    /// # Errors
    /// It did not start, its output is too long, or the connection was lost.
    pub fn run(&self, command: Vec<u8>) -> Result<Finished, Error> {
        match &self.0 {
            Way::Ssh(ssh) => ssh.run(command),
            Way::Program { .. } => Err(Error::NoCommands),
        }
    }

    /// Runs a command that the caller feeds and reads, through pipes; its words are dropped. Never
    /// make one of a path (F4).
    ///
    /// # Errors
    /// It did not start, or the connection was lost.
    pub fn pipe(&self, command: Vec<u8>) -> Result<(OwnedFd, OwnedFd), Error> {
        match &self.0 {
            Way::Ssh(ssh) => ssh.pipe(command),
            Way::Program { .. } => Err(Error::NoCommands),
        }
    }

    /// Whether the server is one of ours that takes and gives made-up data (`TestSubsystems`).
    ///
    /// # Errors
    /// It could not be asked.
    pub fn has_streams(&self) -> Result<bool, Error> {
        let Way::Ssh(ssh) = &self.0 else { return Ok(false) };
        if !ssh.peer.as_ref().is_some_and(Peer::is_longhaul) {
            return Ok(false);
        }
        let (news, heard) = channel();
        match ssh.stream(DISCARD, (None, None), (news, heard)) {
            Ok(_) => Ok(true),
            Err(Error::Refused { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Sends made-up data to a server that [`Connection::has_streams`], as much as `next` says.
    ///
    /// # Errors
    /// Those of [`Connection::open`].
    pub fn feed(&self, next: Next) -> Result<Stream, Error> {
        let Way::Ssh(ssh) = &self.0 else { return Err(Error::NoCommands) };
        let input = Source::Producer(Box::new(Zeros::new(next)));
        ssh.stream(DISCARD, (Some(input), None), channel())
    }

    /// Takes made-up data from a server that [`Connection::has_streams`], for as long as `came`
    /// wants more.
    ///
    /// # Errors
    /// Those of [`Connection::open`].
    pub fn drain(&self, came: Came) -> Result<Stream, Error> {
        let Way::Ssh(ssh) = &self.0 else { return Err(Error::NoCommands) };
        let (news, heard) = channel();
        let drain = Drain::new(came, news.clone()).map_err(no_descriptor)?;
        ssh.stream(ZEROS, (None, Some(Sink::consumer(Box::new(drain)))), (news, heard))
    }

    /// Channels that are open.
    pub fn channels(&self) -> usize {
        match &self.0 {
            Way::Ssh(ssh) => ssh.orders.len(),
            Way::Program { .. } => 0,
        }
    }

    /// How long the server took to answer when a channel was opened, at best: nothing is started
    /// for that, so it is the path's round trip. None through a program.
    pub fn round_trip(&self) -> Option<Duration> {
        match &self.0 {
            Way::Ssh(ssh) => match ssh.quickest.load(Ordering::Relaxed) {
                u64::MAX => None,
                nanos => Some(Duration::from_nanos(nanos)),
            },
            Way::Program { .. } => None,
        }
    }

    /// What it did so far, and what its threads waited for. None through a program.
    pub fn figures(&self) -> Option<engine::Figures> {
        match &self.0 {
            Way::Ssh(ssh) => Some(ssh.session.figures()),
            Way::Program { .. } => None,
        }
    }

    /// Who the server says it is.
    pub fn peer(&self) -> Option<&Peer> {
        match &self.0 {
            Way::Ssh(ssh) => ssh.peer.as_ref(),
            Way::Program { .. } => None,
        }
    }

    /// Says goodbye and waits until the connection's threads have ended. Tokens that still wait are
    /// answered by an error.
    pub fn close(self) {
        drop(self);
    }
}

impl Ssh {
    fn open(
        &self,
        request: Request,
        events: Sender<Event>,
        known: &Known,
    ) -> Result<client::Client, Error> {
        let (client, outgoing, incoming) = client::pair_knowing(events, known);
        let (news, heard) = channel();
        let replies = Replies::new(incoming, self.orders.over()).map_err(no_descriptor)?;
        self.order(Order {
            request,
            output: Some(Sink::consumer(Box::new(replies))),
            stderr: Some(self.stderr()?),
            input: Some(Source::Producer(Box::new(Requests(outgoing)))),
            ender: Some(client.ender()),
            news,
            status: None,
        })?;
        self.opened(&heard)?;
        Ok(client)
    }

    /// A channel to a subsystem that the server must grant before it is told of.
    fn stream(
        &self,
        subsystem: &str,
        (input, output): (Option<Source>, Option<Sink>),
        (news, heard): (Sender<News>, Receiver<News>),
    ) -> Result<Stream, Error> {
        let id = self.order(Order {
            request: Request::Subsystem(subsystem.to_owned()),
            output,
            stderr: Some(self.stderr()?),
            input,
            ender: None,
            news,
            status: None,
        })?;
        let stream = Stream::new(self.session.clone(), id, heard);
        self.opened(stream.heard())?;
        self.granted(stream.heard())?;
        Ok(stream)
    }

    fn run(&self, command: Vec<u8>) -> Result<Finished, Error> {
        let (news, heard) = channel();
        let output = Output::default();
        let collector = output.collector().map_err(no_descriptor)?;
        self.order(Order {
            request: Request::Exec(command),
            output: Some(Sink::consumer(Box::new(collector))),
            stderr: Some(self.stderr()?),
            input: None,
            ender: None,
            news,
            status: None,
        })?;
        self.opened(&heard)?;
        loop {
            match heard.recv() {
                Ok(News::Closed(status)) => {
                    return Ok(Finished { status, output: output.take() });
                }
                Ok(News::Failed(error)) => return Err(error),
                Ok(News::Opened | News::Granted | News::Enough) => {}
                Err(_) => return Err(lost()),
            }
        }
    }

    fn pipe(&self, command: Vec<u8>) -> Result<(OwnedFd, OwnedFd), Error> {
        let (read, input) = io::pipe().map_err(no_descriptor)?;
        let (output, write) = io::pipe().map_err(no_descriptor)?;
        let (news, heard) = channel();
        self.order(Order {
            request: Request::Exec(command),
            output: Some(Sink::fd(OwnedFd::from(write).into())),
            stderr: None,
            input: Some(Source::Fd(OwnedFd::from(read).into())),
            ender: None,
            news,
            status: None,
        })?;
        self.opened(&heard)?;
        Ok((input.into(), output.into()))
    }

    /// Asks for a channel. The order lies ready before the server can answer.
    fn order(&self, order: Order) -> Result<LocalId, Error> {
        let window = self.rule.initial();
        let orders = self.orders.clone();
        let asked = self.session.call(|connection, out| {
            let id = connection.open_session(window, MAX_DATA, out)?;
            orders.put(id, order);
            Ok(id)
        });
        asked.map_err(|error| match error {
            engine::Error::Protocol(proto::Error::Local(why)) => Error::Full(why),
            other => Error::Lost(login::escaped(&other.to_string())),
        })
    }

    /// Waits until a channel is open. Nothing is started for that, so it takes a round trip.
    fn opened(&self, heard: &Receiver<News>) -> Result<(), Error> {
        let asked = Instant::now();
        self.hears(heard, "opened no channel")?;
        let nanos = u64::try_from(asked.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.quickest.fetch_min(nanos, Ordering::Relaxed);
        Ok(())
    }

    /// Waits until the server does what the channel is for.
    fn granted(&self, heard: &Receiver<News>) -> Result<(), Error> {
        self.hears(heard, "did not answer a request")
    }

    /// Waits for good news.
    fn hears(&self, heard: &Receiver<News>, not: &str) -> Result<(), Error> {
        match heard.recv_timeout(self.patience) {
            Ok(News::Opened | News::Granted | News::Enough) => Ok(()),
            Ok(News::Failed(error)) => Err(error),
            Err(RecvTimeoutError::Timeout) => {
                let seconds = self.patience.as_secs();
                Err(Error::Lost(format!("the server {not} within {seconds} s")))
            }
            Ok(News::Closed(_)) | Err(RecvTimeoutError::Disconnected) => Err(lost()),
        }
    }

    fn stderr(&self) -> Result<Sink, Error> {
        let (log, host) = (Arc::clone(&self.log), self.host.clone());
        let stderr = Stderr::new(move |line| log.info(format_args!("{host}: {line}")));
        Ok(Sink::consumer(Box::new(stderr.map_err(no_descriptor)?)))
    }
}

/// What a server's identification tells about its sftp server.
fn known(peer: Option<&Peer>) -> Known {
    peer.map_or_else(Known::default, |peer| Known::of(peer.ident().software()))
}

fn lost() -> Error {
    Error::Lost("the connection ended".to_owned())
}

/// The system gives no descriptor or thread.
fn no_descriptor(why: io::Error) -> Error {
    Error::Lost(why.to_string())
}

impl Drop for Ssh {
    fn drop(&mut self) {
        // A server that reads nothing must not keep us: it is told as far as it listens.
        let (said, goodbye) = channel();
        let session = self.session.clone();
        let saying = move || {
            let _ = session.call(|connection, out| {
                connection.disconnect(Disconnect::ByApplication, "disconnected by user", out);
                Ok(())
            });
            let _ = said.send(());
        };
        let _ = std::thread::Builder::new().name("goodbye".to_owned()).spawn(saying);
        let _ = goodbye.recv_timeout(GOODBYE);
        // Wakes every thread that waits for the socket.
        let _ = rustix::net::shutdown(&self.socket, rustix::net::Shutdown::Both);
        let _ = self.receiving.take().map(JoinHandle::join);
    }
}
