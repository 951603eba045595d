//! Route: from where to where, and the connections in between. A connection that breaks is made
//! again by the first lane that needs it; the others of its slot wait for that.

use super::lane::Ends;
use super::local::Below;
use super::side::{Fault, Side, There};
use crate::report::{Failure, What};
use remote::{Connection, Error, Host};
use sftp::client::{Client, Event};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, PoisonError};

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

/// From where to where.
pub(super) struct Route {
    pub(super) source: End,
    pub(super) target: End,
    /// Both are the same host.
    pub(super) within: bool,
    pub(super) fsync: bool,
    /// Connections that were made.
    pub(super) connections: AtomicU32,
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
pub(super) struct Slot(Mutex<[Option<Connection>; 2]>);

impl Slot {
    /// One more channel, on each connection that the route needs.
    pub(super) fn open(&self, route: &Route) -> Result<Ends, Trouble> {
        let (tell, events) = channel();
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let [first, second] = &mut *held;
        let source = route.client(&route.source, first, &tell)?;
        let target = match (&source, route.within) {
            (Some(client), true) => Some(client.clone()),
            _ => route.client(&route.target, second, &tell)?,
        };
        drop(held);
        let (source, target) =
            (route.side(&route.source, source)?, route.side(&route.target, target)?);
        let within = route.within && target.has().copy_data;
        Ok(Ends { source, target, events, within })
    }
}

impl Route {
    /// A channel to the host of `end`, if it is one.
    fn client(
        &self,
        end: &End,
        held: &mut Option<Connection>,
        tell: &Sender<Event>,
    ) -> Result<Option<Client>, Trouble> {
        let Some(host) = end.host() else { return Ok(None) };
        if let Some(connection) = held {
            match connection.open(tell.clone()) {
                Ok(client) => return Ok(Some(client)),
                Err(error @ (Error::Full(_) | Error::Refused { .. } | Error::Program { .. })) => {
                    return Err(trouble(&error));
                }
                // It broke: a new one, below.
                Err(_) => *held = None,
            }
        }
        let connection = host.connect().map_err(|error| trouble(&error))?;
        self.connections.fetch_add(1, Ordering::Relaxed);
        let connection = held.insert(connection);
        connection.open(tell.clone()).map(Some).map_err(|error| trouble(&error))
    }

    fn side(&self, end: &End, client: Option<Client>) -> Result<Side, Trouble> {
        Ok(match (end, client) {
            (End::There(_, root), Some(client)) => {
                Side::There(There::new(client, root).map_err(|fault| match fault {
                    Fault::Lost(why) => Trouble::Later(why),
                    fault => Trouble::Directory(root.clone(), fault.to_string()),
                })?)
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
        Error::Login(login::Error::Connect { .. }) => Trouble::Later(text),
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
            Self::Directory(root, why) => Failure { what: What::Path(root), why },
            other => Failure { what: What::Host(host.to_owned()), why: other.words() },
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
