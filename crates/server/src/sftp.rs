//! `internal-sftp`: a channel whose two ends are an SFTP server in this process.
//!
//! ```text
//! receiving thread   takes the client's bytes where they lie; WRITE goes to the file from there
//! source's thread    fills replies into the packets they leave in; READ comes from the file there
//! ```

use crate::channels::{Served, finish};
use crate::log::Log;
use anyhow::{Context, Result};
use conf::LogLevel;
use engine::{Consumer, Port, Producer, Sink, Source, Stream};
use proto::channel::LocalId;
use sftp::codec::LinkOrder;
use sftp::server::{Account, Input, Level, Options, Output, Session, Setup};
use std::fmt::Arguments;
use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::sync::Arc;

/// Starts a server on channel `id`; it ends by itself after the client's EOF.
pub(crate) fn start(
    options: Options,
    served: &Served,
    id: LocalId,
    port: &mut Port<'_>,
) -> Result<Session> {
    let (input, output, session) = sftp::server::start(setup(options, served)).context("sftp")?;
    port.attach(id, Stream::Data, Sink::consumer(Box::new(Incoming(input))));
    port.attach(id, Stream::Stderr, Sink::discard());
    let status = session.clone();
    let source = Source::Producer(Box::new(Outgoing(output)));
    port.session().start_source(id, source, None, move |connection, _| {
        let status = status.exit_status().into();
        // The channel may be closed already, or the connection gone.
        let _ = connection.call(|c, out| finish(c, id, status, out));
    })?;
    Ok(session)
}

fn setup(options: Options, served: &Served) -> Setup {
    let account = &served.account;
    let start = if account.home.is_dir() { account.home.as_path() } else { Path::new("/") };
    let log = served.log.of("internal-sftp", level(options.level), options.facility.0);
    Setup {
        account: Account { name: account.name.clone().into_bytes(), home: account.home.clone() },
        start: start.to_owned(),
        peer: served.ends.peer_ip().map_or_else(|| "UNKNOWN".to_owned(), |ip| ip.to_string()),
        links: LinkOrder::of_client(&served.software),
        log: Arc::new(Lines(log)),
        options,
    }
}

fn level(level: Level) -> LogLevel {
    match level {
        Level::Quiet => LogLevel::Quiet,
        Level::Fatal => LogLevel::Fatal,
        Level::Error => LogLevel::Error,
        Level::Info => LogLevel::Info,
        Level::Verbose => LogLevel::Verbose,
        Level::Debug => LogLevel::Debug1,
    }
}

struct Lines(Log);

impl sftp::server::Log for Lines {
    fn line(&self, at: Level, line: Arguments<'_>) {
        self.0.write(level(at), line);
    }
}

struct Incoming(Input);

impl Consumer for Incoming {
    fn take(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        self.0.take(pieces)
    }

    fn room(&self) -> BorrowedFd<'_> {
        self.0.room()
    }

    fn end(&mut self) {
        self.0.end();
    }
}

struct Outgoing(Output);

impl Producer for Outgoing {
    fn wait(&mut self) -> bool {
        self.0.wait()
    }

    fn fill(&mut self, areas: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        Ok(self.0.fill(areas))
    }
}
