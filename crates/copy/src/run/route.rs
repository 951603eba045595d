//! Route: from where to where, and the connections in between. A connection that breaks is made
//! again by the first lane that needs it; the others of its slot wait for that.

use super::lane::Ends;
use super::local::Below;
use super::side::{Fault, Side, There};
use crate::report::{Failure, Through, What};
use engine::Figures;
use login::CallOff;
use remote::{Connection, Error, Host, Limit};
use sftp::client::{Client, Event};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// One end of the way.
pub(super) enum End {
    /// Files of this host, to be read.
    Here,
    /// A directory of this host, to be written below.
    Below(Vec<u8>),
    /// A host, and what stands before every path there.
    There(Host, Vec<u8>),
    /// Nothing, for tests.
    Nowhere,
}

impl End {
    fn host(&self) -> Option<&Host> {
        match self {
            Self::There(host, _) => Some(host),
            _ => None,
        }
    }
}

/// Which way made-up data goes to a host that takes and gives it by itself (`-t`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    Up,
    Down,
}

/// From where to where.
pub(super) struct Route {
    pub(super) source: End,
    pub(super) target: End,
    /// Both are the same host.
    pub(super) within: bool,
    pub(super) fsync: bool,
    /// Lanes are streams, not SFTP.
    pub(super) stream: Option<Direction>,
    /// Connections that were made.
    pub(super) connections: AtomicU32,
    /// What those did that are no more.
    pub(super) gone: Mutex<Vec<Figures>>,
}

/// Why there is no lane.
#[derive(Debug)]
pub(super) enum Trouble {
    /// The server allows no more: a limit, not an error.
    Full,
    /// Perhaps later (R4).
    Later(String),
    /// Another attempt would not help (R4): the login failed, the host key is another.
    Never(String),
    /// The directory that everything goes to cannot be used.
    Directory(Vec<u8>, String),
}

/// A place for one connection to each host of the route.
#[derive(Default)]
pub(super) struct Slot {
    source: Mutex<Option<Arc<Connection>>>,
    target: Mutex<Option<Arc<Connection>>>,
    /// Channels that were opened before anybody needed them.
    spare: Mutex<Vec<Ends>>,
}

impl Slot {
    /// One more channel, on each connection that the route needs.
    pub(super) fn open(&self, route: &Route) -> Result<Ends, Trouble> {
        self.open_unless(route, &CallOff::default())
    }

    /// The same; a login that it takes ends when `off` is called.
    pub(super) fn open_unless(&self, route: &Route, off: &CallOff) -> Result<Ends, Trouble> {
        let spare = lock(&self.spare).pop();
        match spare {
            Some(ends) => route.aim(ends),
            None => self.open_new(route, off),
        }
    }

    fn open_new(&self, route: &Route, off: &CallOff) -> Result<Ends, Trouble> {
        let (tell, events) = channel();
        let source = route.client(&route.source, &self.source, &tell, off)?;
        let target = match (&source, route.within) {
            (Some(client), true) => Some(client.clone()),
            _ => route.client(&route.target, &self.target, &tell, off)?,
        };
        let (source, target) =
            (route.side(&route.source, source)?, route.side(&route.target, target)?);
        Ok(Ends::new(source, target, (tell, events), route.within))
    }

    /// Whether the route's one host is ours and takes and gives made-up data by itself.
    pub(super) fn has_streams(&self, route: &Route) -> Result<bool, Trouble> {
        let Some((host, held)) = self.far(route) else { return Ok(false) };
        let connection = route.connection(host, held, None, &CallOff::default())?;
        connection.has_streams().map_err(|error| trouble(&error))
    }

    /// One more stream. `take` is asked for bytes that are to leave, or told of bytes that came,
    /// and answers how many of them count.
    pub(super) fn stream(
        &self,
        route: &Route,
        (direction, off): (Direction, &CallOff),
        take: impl FnMut(usize) -> usize + Send + Clone + 'static,
    ) -> Result<remote::Stream, Trouble> {
        let gone = || Trouble::Never("there is no host".to_owned());
        let (host, held) = self.far(route).ok_or_else(gone)?;
        let open = |connection: &Connection| {
            let mut take = take.clone();
            match direction {
                Direction::Up => connection.feed(Box::new(take)),
                Direction::Down => connection.drain(Box::new(move |came| take(came) == came)),
            }
        };
        let old = lock(held).clone();
        let first = old.as_ref().map(|connection| open(connection));
        match first {
            Some(Ok(stream)) => return Ok(stream),
            Some(Err(error @ (Error::Full(_) | Error::Refused { .. }))) => {
                return Err(trouble(&error));
            }
            // It broke: a new one.
            Some(Err(_)) | None => {}
        }
        let connection = route.connection(host, held, old.as_ref(), off)?;
        open(&connection).map_err(|error| trouble(&error))
    }

    /// The one host of a test, and its connection here.
    fn far<'a>(
        &'a self,
        route: &'a Route,
    ) -> Option<(&'a Host, &'a Mutex<Option<Arc<Connection>>>)> {
        let source = route.source.host().map(|host| (host, &self.source));
        source.or_else(|| Some((route.target.host()?, &self.target)))
    }

    /// The longest round trip of its connections, as far as that is known.
    pub(super) fn round_trip(&self) -> Option<Duration> {
        let ends = [&self.source, &self.target];
        ends.iter().filter_map(|end| lock(end).as_ref()?.round_trip()).max()
    }

    /// Opens so many channels that [`Slot::open`] will not have to wait for. What cannot be opened
    /// is for `open` to tell.
    pub(super) fn prepare(&self, route: &Route, count: u32) {
        std::thread::scope(|scope| {
            for _ in 0..count {
                let open =
                    || lock(&self.spare).extend(self.open_new(route, &CallOff::default()).ok());
                let _ =
                    std::thread::Builder::new().name("open".to_owned()).spawn_scoped(scope, open);
            }
        });
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Route {
    /// A channel to the host of `end`, if it is one.
    fn client(
        &self,
        end: &End,
        held: &Mutex<Option<Arc<Connection>>>,
        tell: &Sender<Event>,
        off: &CallOff,
    ) -> Result<Option<Client>, Trouble> {
        let Some(host) = end.host() else { return Ok(None) };
        // Not under the lock: lanes of one connection open their channels in one round trip.
        let old = lock(held).clone();
        if let Some(connection) = &old {
            match connection.open(tell.clone()) {
                Ok(client) => return Ok(Some(client)),
                Err(error @ (Error::Full(_) | Error::Refused { .. } | Error::Program { .. })) => {
                    return Err(trouble(&error));
                }
                // It broke: a new one, below.
                Err(_) => {}
            }
        }
        let connection = self.connection(host, held, old.as_ref(), off)?;
        connection.open(tell.clone()).map(Some).map_err(|error| trouble(&error))
    }

    /// The connection in place of `old`; who comes first makes it, the others wait for it.
    fn connection(
        &self,
        host: &Host,
        held: &Mutex<Option<Arc<Connection>>>,
        old: Option<&Arc<Connection>>,
        off: &CallOff,
    ) -> Result<Arc<Connection>, Trouble> {
        let mut held = lock(held);
        let is_old = |new: &Arc<Connection>| old.is_some_and(|old| Arc::ptr_eq(old, new));
        if let Some(new) = held.as_ref().filter(|new| !is_old(new)) {
            return Ok(Arc::clone(new));
        }
        let gone = held.take().and_then(|connection| connection.figures());
        lock(&self.gone).extend(gone);
        let connection = host.connect_unless(off).map_err(|error| trouble(&error))?;
        self.connections.fetch_add(1, Ordering::Relaxed);
        Ok(Arc::clone(held.insert(Arc::new(connection))))
    }

    /// What limited all connections, in these slots and before them.
    pub(super) fn limit(&self, slots: &[Slot]) -> Option<Limit> {
        let mut figures = lock(&self.gone).clone();
        let held = slots.iter().flat_map(|slot| [&slot.source, &slot.target]);
        figures.extend(held.filter_map(|held| lock(held).as_ref()?.figures()));
        Limit::of(&figures)
    }

    /// What takes or gives the data of a test.
    pub(super) fn through(&self) -> Through {
        match (self.stream, &self.source) {
            (Some(Direction::Up), _) => Through::Discard,
            (Some(Direction::Down), _) => Through::Zeros,
            (None, End::Nowhere) => Through::Null,
            (None, _) => Through::Zero,
        }
    }

    /// The same channels for this route, whose target is another directory than when they were
    /// opened.
    pub(super) fn aim(&self, ends: Ends) -> Result<Ends, Trouble> {
        let client = match &ends.target {
            Side::There(there) => Some(there.client.clone()),
            _ => None,
        };
        Ok(ends.aimed(self.side(&self.target, client)?))
    }

    fn side(&self, end: &End, client: Option<Client>) -> Result<Side, Trouble> {
        Ok(match (end, client) {
            (End::There(host, root), Some(client)) => {
                Side::There(There::new(client, root, host.patience()))
            }
            (End::Below(root), _) => {
                let unusable = |error: std::io::Error| {
                    Trouble::Directory(root.clone(), Fault::from(error).to_string())
                };
                Side::Below(Below::new(root, self.fsync).map_err(unusable)?)
            }
            (End::Nowhere, _) => Side::Nowhere,
            _ => Side::Here,
        })
    }
}

/// R4: what is worth another attempt.
fn trouble(error: &Error) -> Trouble {
    let text = error.to_string();
    match error {
        Error::Full(_) => Trouble::Full,
        Error::Lost(_) => Trouble::Later(text),
        Error::Login(login::Error::Connect { .. } | login::Error::Late { .. }) => {
            Trouble::Later(text)
        }
        Error::Login(login::Error::Engine { why, .. })
            if !matches!(why, engine::Error::Protocol(_) | engine::Error::Crypt(_)) =>
        {
            Trouble::Later(text)
        }
        _ => Trouble::Never(text),
    }
}

impl Trouble {
    /// As the report has it: whether the host is at fault or a directory.
    pub(super) fn failure(self, host: &str) -> Failure {
        match self {
            Self::Directory(root, why) => Failure { what: What::Path(root), name: None, why },
            other => Failure::of_host(&[host], other.words()),
        }
    }

    pub(super) fn words(self) -> String {
        match self {
            Self::Directory(root, why) => format!("{}: {why}", crate::shown(&root)),
            Self::Full => "the server opens no more sessions".to_owned(),
            Self::Later(why) | Self::Never(why) => why,
        }
    }
}
