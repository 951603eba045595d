//! Channels: what happens on the channels of a connection, on its receiving thread.
//!
//! ```text
//! ordered    open_session was sent; the order lies ready              calling thread
//! opened     request, sinks and source at once                       here
//! closed     or refused, or the connection is lost: who waits is told
//! ```

use crate::Error;
use engine::{Flow, Port, Program, Session, Sink, Source, SourceEnd, Stream};
use proto::Event;
use proto::channel::{LocalId, OpenReason, Request};
use sftp::client::{self, Ender};
use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What somebody who ordered a channel gets to know.
pub(crate) enum News {
    /// It is open, and the request has left.
    Opened,
    /// The server does what was asked for.
    Granted,
    /// Of a stream: as much came as was wanted.
    Enough,
    /// It will not be what was ordered.
    Failed(Error),
    /// It is closed; the command's status, if it was told.
    Closed(Option<u32>),
}

/// A channel that somebody wants.
pub(crate) struct Order {
    pub(crate) request: Request,
    pub(crate) output: Option<Sink>,
    pub(crate) stderr: Option<Sink>,
    /// None sends EOF at once.
    pub(crate) input: Option<Source>,
    pub(crate) ender: Option<Ender>,
    pub(crate) news: Sender<News>,
    pub(crate) status: Option<u32>,
}

impl Order {
    /// It came to nothing, or to its end: everybody is told. The first reason counts.
    fn fail(&self, error: Error) {
        if let Some(ender) = &self.ender {
            ender.end(client::Error::ended(error.to_string()));
        }
        // Whoever only wanted it opened has gone on.
        let _ = self.news.send(News::Failed(error));
    }
}

/// The orders of a connection, shared with the threads that order.
#[derive(Clone)]
pub(crate) struct Orders {
    state: Arc<Mutex<State>>,
    /// The connection is over: its channels are ended by whoever knows why.
    over: Arc<AtomicBool>,
}

#[derive(Default)]
struct State {
    orders: HashMap<LocalId, Order>,
    lost: Option<String>,
}

impl Orders {
    pub(crate) fn new() -> Self {
        Self { state: Arc::default(), over: Arc::default() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Set once no channel gets more.
    pub(crate) fn over(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.over)
    }

    /// Puts an order down for a channel that is being asked for; an order that comes too late fails
    /// at once.
    pub(crate) fn put(&self, id: LocalId, order: Order) {
        let mut state = self.lock();
        match &state.lost {
            Some(why) => order.fail(Error::Lost(why.clone())),
            None => drop(state.orders.insert(id, order)),
        }
    }

    /// Channels that are open or asked for.
    pub(crate) fn len(&self) -> usize {
        self.lock().orders.len()
    }

    /// The connection is over, for this reason: everybody who waits is told.
    pub(crate) fn lose(&self, why: &str) {
        self.over.store(true, Ordering::SeqCst);
        let mut state = self.lock();
        state.lost.get_or_insert_with(|| why.to_owned());
        let orders = std::mem::take(&mut state.orders);
        drop(state);
        orders.into_values().for_each(|order| order.fail(Error::Lost(why.to_owned())));
    }

    fn take(&self, id: LocalId) -> Option<Order> {
        self.lock().orders.remove(&id)
    }
}

/// The receiving thread's side.
pub(crate) struct Channels(pub(crate) Orders);

impl Channels {
    fn opened(&self, port: &mut Port<'_>, id: LocalId) -> Result<(), engine::Error> {
        let mut state = self.0.lock();
        let Some(order) = state.orders.get_mut(&id) else { return Ok(()) };
        let (request, input) = (order.request.clone(), order.input.take());
        let sinks = [(Stream::Data, order.output.take()), (Stream::Stderr, order.stderr.take())];
        let _ = order.news.send(News::Opened);
        drop(state);
        let no_input = input.is_none();
        port.call(|connection, out| {
            connection.request(id, &request, true, out)?;
            if no_input { connection.eof(id, out) } else { Ok(()) }
        })?;
        for (stream, sink) in sinks {
            port.attach(id, stream, sink.unwrap_or_else(Sink::discard));
        }
        match input {
            Some(input) => port.session().start_source(id, input, None, move |session, end| {
                input_ended(session, id, &end);
            }),
            None => Ok(()),
        }
    }

    fn refused(&self, id: LocalId, reason: u32, text: &str) {
        let Some(order) = self.0.take(id) else { return };
        let text = match login::escaped(text) {
            text if text.is_empty() => format!("reason {reason}"),
            text => text,
        };
        let unknown = reason == OpenReason::UnknownChannelType as u32;
        order.fail(if unknown {
            Error::Refused { what: "session".to_owned(), why: text }
        } else {
            Error::Full(text)
        });
    }

    fn granted(&self, id: LocalId) {
        if let Some(order) = self.0.lock().orders.get(&id) {
            // Whoever only wanted it opened has gone on.
            let _ = order.news.send(News::Granted);
        }
    }

    /// The server does not do what the channel is for.
    fn no(&self, port: &mut Port<'_>, id: LocalId) -> Result<(), engine::Error> {
        if let Some(order) = self.0.take(id) {
            let what = match &order.request {
                Request::Subsystem(name) => format!("subsystem {name}"),
                other => format!("{} request", other.name()),
            };
            order.fail(Error::Refused { what, why: "request failed".to_owned() });
        }
        port.session().stop_sources(id);
        port.call(|connection, out| connection.close(id, out))
    }

    fn closed(&self, port: &mut Port<'_>, id: LocalId) -> Result<(), engine::Error> {
        if let Some(order) = self.0.take(id) {
            if let Some(ender) = &order.ender {
                ender.end(client::Error::ended(match order.status {
                    Some(status @ 1..) => format!("the server ended with status {status}"),
                    _ => "the server closed the channel".to_owned(),
                }));
            }
            let _ = order.news.send(News::Closed(order.status));
        }
        port.session().stop_sources(id);
        port.call(|connection, out| connection.close(id, out))
    }

    fn told_status(&self, id: LocalId, status: u32) {
        if let Some(order) = self.0.lock().orders.get_mut(&id) {
            order.status = Some(status);
        }
    }
}

/// On the source's thread: nothing more will be asked.
fn input_ended(session: &Session, id: LocalId, end: &SourceEnd) {
    if !matches!(end, SourceEnd::Lost(_)) {
        // The connection may be over already; the receiving thread says why.
        let _ = session.call(|connection, out| connection.eof(id, out));
    }
}

impl Program for Channels {
    fn event(&mut self, port: &mut Port<'_>, event: Event) -> Result<Flow, engine::Error> {
        match event {
            Event::Opened { id, .. } => self.opened(port, id)?,
            Event::OpenFailed { id, reason, text } => self.refused(id, reason, &text),
            Event::Reply { id, ok: false } => self.no(port, id)?,
            Event::Reply { id, ok: true } => self.granted(id),
            Event::ExitStatus { id, status } => self.told_status(id, status),
            Event::EndOfWrite { id } => port.session().stop_sources(id),
            Event::Closed { id } => self.closed(port, id)?,
            _ => {}
        }
        Ok(Flow::On)
    }

    /// The server broke the SFTP protocol, or a command prints too much: that channel ends.
    fn sink_broke(
        &mut self,
        port: &mut Port<'_>,
        id: LocalId,
        stream: Stream,
        why: io::Error,
    ) -> Flow {
        if stream == Stream::Data {
            if let Some(order) = self.0.take(id) {
                order.fail(match why.kind() {
                    io::ErrorKind::FileTooLarge => Error::TooMuch(crate::ends::Output::MOST),
                    _ => Error::Lost(login::escaped(&why.to_string())),
                });
            }
            port.session().stop_sources(id);
            if port.call(|connection, out| connection.close(id, out)).is_err() {
                return Flow::Finish;
            }
        }
        Flow::On
    }

    fn over(&mut self) {
        self.0.over.store(true, Ordering::SeqCst);
    }
}

/// However the receiving thread ends, nobody waits for it any longer.
impl Drop for Channels {
    fn drop(&mut self) {
        self.0.lose("the connection ended");
    }
}
