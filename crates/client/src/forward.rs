//! `-W`: standard input and output are those of a TCP connection that the server makes (RFC 4254
//! section 7.2). The end of either direction is passed on, and the channel closes after both, as
//! with ssh(1).

use crate::command::{Job, NOT_TAKEN, Outcome, Streams};
use crate::input::Input;
use crate::report::Replies;
use anyhow::{Context, Error, Result, anyhow};
use conf::{Client, Endpoint};
use engine::{Flow, Port, Program, Sink, Source, Stream};
use login::Log;
use proto::Event;
use proto::auth::Authenticated;
use proto::channel::{LocalId, OpenReason};
use std::fs::File;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The server's policy refuses (RFC 4254 section 5.1); sshd says no more than "open failed" then.
const PROHIBITED: u32 = OpenReason::AdministrativelyProhibited as u32;

/// What happens on the channel.
pub(crate) struct Forward<'a> {
    /// The host that connects, as the user named it.
    via: &'a str,
    to: &'a Endpoint,
    streams: Option<Streams>,
    /// The channel was asked for together with the login.
    asked: bool,
    /// Standard output is a socket, whose end only the end of this process shows: `shutdown` would
    /// end it for everybody else who holds it. A jump has one (`login::proxy`).
    ends_by_exit: bool,
    outcome: Outcome,
    /// The channel closed.
    closed: bool,
    halves: Arc<Halves>,
    input: Input,
    replies: Replies,
}

/// The directions that are over. Each is ended by another thread.
#[derive(Default)]
struct Halves {
    input: AtomicBool,
    output: AtomicBool,
}

impl Halves {
    /// Ends one direction; whether the other one is over, too. Of two threads that call this at
    /// once at least one hears yes.
    fn end(one: &AtomicBool, other: &AtomicBool) -> bool {
        one.store(true, Ordering::SeqCst);
        other.load(Ordering::SeqCst)
    }
}

impl<'a> Forward<'a> {
    pub(crate) fn new(
        to: &'a Endpoint,
        conf: &'a Client,
        log: &Log,
        replies: Replies,
    ) -> Result<Self> {
        let streams = Streams::open(conf.stdin_null).context("standard streams")?;
        let ends_by_exit = streams.stdout.is_socket();
        // The sink has the last hold on it then: its reader sees the end of the data.
        let null = File::options().write(true).open("/dev/null").context("/dev/null")?;
        rustix::stdio::dup2_stdout(null).context("standard output")?;
        Ok(Self {
            via: &conf.host,
            to,
            streams: Some(streams),
            asked: false,
            ends_by_exit,
            outcome: Outcome::Unknown,
            closed: false,
            halves: Arc::default(),
            input: Input::new(log),
            replies,
        })
    }

    fn start(&mut self, port: &mut Port<'_>, id: LocalId) -> Result<(), engine::Error> {
        let Some(Streams { stdin, stdout, .. }) = self.streams.take() else { return Ok(()) };
        if login::is_jump() {
            // Ctrl-C is for the program that we lead: lhsftp goes on after one.
            let _ = signal_hook::flag::register(signal_hook::consts::SIGINT, Arc::default());
        }
        port.attach(id, Stream::Data, Sink::fd(stdout));
        // A connection has no second stream.
        port.attach(id, Stream::Stderr, Sink::discard());
        let (input, halves) = (self.input.clone(), Arc::clone(&self.halves));
        port.session().start_source(id, Source::Fd(stdin), None, move |session, end| {
            input.ended(session, id, end);
            if Halves::end(&halves.input, &halves.output) {
                // The connection may be over already; the receiving thread says why.
                let _ = session.call(|connection, out| connection.close(id, out));
            }
        })
    }

    /// The sink ends by itself. What we send may go on, and the other end answers our CLOSE after
    /// it has taken all of it.
    fn output_ended(&mut self, port: &mut Port<'_>, id: LocalId) -> Result<Flow, engine::Error> {
        if self.ends_by_exit {
            return self.finish(port, id, Outcome::Exited(0));
        }
        if Halves::end(&self.halves.output, &self.halves.input) {
            port.call(|connection, out| connection.close(id, out))?;
        }
        Ok(Flow::On)
    }

    /// Ends the channel; what came is still written.
    fn finish(
        &mut self,
        port: &mut Port<'_>,
        id: LocalId,
        outcome: Outcome,
    ) -> Result<Flow, engine::Error> {
        (self.outcome, self.closed) = (outcome, true);
        port.session().stop_sources(id);
        port.call(|connection, out| connection.close(id, out))?;
        Ok(Flow::Finish)
    }
}

/// One line on a forward that the server does not make. Its words come from there (invariant E2).
fn refused(via: &str, to: &Endpoint, reason: u32, text: &str) -> Error {
    let Endpoint { host, port } = to;
    let policy = if reason == PROHIBITED { "administratively prohibited: " } else { "" };
    let text = login::escaped(text);
    anyhow!("{via} does not connect to {host} port {port}: {policy}{text}")
}

impl Program for Forward<'_> {
    fn event(&mut self, port: &mut Port<'_>, event: Event) -> Result<Flow, engine::Error> {
        match event {
            Event::Opened { id, .. } => self.start(port, id)?,
            Event::OpenFailed { reason, text, .. } => {
                self.outcome = Outcome::Failed(refused(self.via, self.to, reason, &text));
                return Ok(Flow::Finish);
            }
            Event::Unimplemented { .. } if self.is_unanswered() => {
                self.outcome = Outcome::Failed(anyhow!(NOT_TAKEN));
                return Ok(Flow::Finish);
            }
            Event::Eof { id } => return self.output_ended(port, id),
            Event::Closed { id } => return self.finish(port, id, Outcome::Exited(0)),
            Event::GlobalReply { ref name, ok, ref data } => self.replies.hear(name, ok, data),
            _ => {}
        }
        Ok(Flow::On)
    }

    /// Nobody reads what comes: no error, as with a reader of a command that went away.
    fn sink_broke(&mut self, port: &mut Port<'_>, id: LocalId, _: Stream, why: io::Error) -> Flow {
        let outcome = match why.kind() {
            io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset => Outcome::Exited(0),
            _ => Outcome::Failed(Error::new(why).context("write to standard output")),
        };
        self.finish(port, id, outcome).unwrap_or(Flow::Finish)
    }
}

impl Job for Forward<'_> {
    fn logged_in(&mut self, login: &Authenticated) {
        self.asked = login.has_asked_ahead();
    }

    fn is_unanswered(&self) -> bool {
        self.asked && self.streams.is_some()
    }

    fn hears_no_more(&mut self) {
        self.replies = Replies::default();
    }

    fn outcome(self) -> (Outcome, bool) {
        (self.input.judge(self.outcome), self.closed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// E2.
    #[test]
    fn a_refusal_cannot_drive_the_terminal() {
        let to = Endpoint { host: "inner".to_owned(), port: 22 };
        let said = |reason, text| refused("gate", &to, reason, text).to_string();
        assert_eq!(said(2, "no\x1b[2J"), "gate does not connect to inner port 22: no\\u{1b}[2J");
        assert!(said(1, "open failed").ends_with(": administratively prohibited: open failed"));
    }
}
