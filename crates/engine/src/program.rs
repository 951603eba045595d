//! Program: what is done with a connection, and what it may do with it: the line between the
//! engine and lhssh, lhsshd and lhscp.

use crate::error::Error;
use crate::route::{Routes, Stream, Totals};
use crate::session::{MAX_DATA, Session};
use crate::sink::Sink;
use proto::channel::{Grant, LocalId};
use proto::{Event, Outbox};

/// What a program does with a connection: called on the receiving thread, must not wait.
pub trait Program {
    /// An event that the engine does not deal with itself.
    fn event(&mut self, port: &mut Port<'_>, event: Event) -> Result<Flow, Error>;

    /// A channel's sink broke: nobody reads what the peer sends on this stream any more.
    fn sink_broke(
        &mut self,
        port: &mut Port<'_>,
        id: LocalId,
        stream: Stream,
        why: std::io::Error,
    ) -> Flow;

    /// Nothing more will be received. Sinks still get what they hold: what reads from them and
    /// never ends by itself should be told now.
    fn over(&mut self) {}
}

/// Whether the session goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    /// It does.
    On,
    /// Write what sinks still hold, say goodbye, end.
    Finish,
}

/// What a [`Program`] may do while an event is handled.
pub struct Port<'a> {
    pub(crate) session: &'a Session,
    pub(crate) routes: &'a mut Routes,
    pub(crate) outbox: &'a mut Outbox,
}

impl Port<'_> {
    /// The session, for starting sources and for other threads. Its own calls wait for the
    /// socket: use [`Port::call`] here.
    pub fn session(&self) -> &Session {
        self.session
    }

    /// Calls into the connection's state machine.
    pub fn call<T>(
        &mut self,
        f: impl FnOnce(&mut proto::Connection, &mut Outbox) -> Result<T, proto::Error>,
    ) -> Result<T, Error> {
        self.session.stage_call(self.outbox, f)
    }

    /// Accepts a channel the peer asked for (`Event::OpenRequested`). Its data waits, within the
    /// window, for [`Port::attach`].
    pub fn accept(&mut self, id: LocalId, grant: Grant) -> Result<(), Error> {
        let window = self.routes.rule().initial();
        self.call(|connection, out| {
            connection.accept(id, window, MAX_DATA, out)?;
            connection.route(id);
            Ok(())
        })?;
        self.routes.open(id, grant.remote, window);
        self.session.opened(id, grant);
        Ok(())
    }

    /// Where a channel's data goes from now on, what waited included.
    pub fn attach(&mut self, id: LocalId, stream: Stream, sink: Sink) {
        self.routes.attach(id, stream, sink);
    }

    /// What the connection did so far, and what it waited for.
    pub fn figures(&self) -> crate::Figures {
        self.session.figures()
    }

    /// Bytes received on all channels so far.
    pub fn totals(&self) -> Totals {
        self.routes.totals()
    }
}
