//! `-W`: standard input and output are those of a TCP connection that the server makes (RFC 4254
//! section 7.2). It passes the end of our input on, and is over when the other end ends its data
//! or the channel, as with ssh(1).

use crate::command::{Input, Job, Outcome, Streams};
use crate::report::Replies;
use anyhow::{Context, Error, Result, anyhow};
use conf::{Client, Endpoint};
use engine::{Flow, Port, Program, Sink, Source, SourceEnd, Stream};
use proto::Event;
use proto::channel::{LocalId, OpenReason};
use std::io;
use std::sync::Arc;

/// The server's policy refuses (RFC 4254 section 5.1); sshd says no more than "open failed" then.
const PROHIBITED: u32 = OpenReason::AdministrativelyProhibited as u32;

/// What happens on the channel.
pub(crate) struct Forward<'a> {
    /// The host that connects, as the user named it.
    via: &'a str,
    to: &'a Endpoint,
    streams: Option<Streams>,
    outcome: Outcome,
    /// The other end said that no more follows.
    ended: bool,
    input: Input,
    replies: Replies,
}

impl<'a> Forward<'a> {
    pub(crate) fn new(to: &'a Endpoint, conf: &'a Client, replies: Replies) -> Result<Self> {
        let streams = Streams::open(conf.stdin_null).context("standard streams")?;
        let (via, outcome) = (conf.host.as_str(), Outcome::Unknown);
        let input = Input::default();
        Ok(Self { via, to, streams: Some(streams), outcome, ended: false, input, replies })
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
        let input = self.input.clone();
        port.session().start_source(id, Source::Fd(stdin), None, move |session, end| {
            input.ended(session, id, &unless_left(end));
        })
    }

    /// Ends the channel; what came is still written.
    fn finish(
        &mut self,
        port: &mut Port<'_>,
        id: LocalId,
        outcome: Outcome,
    ) -> Result<Flow, engine::Error> {
        (self.outcome, self.ended) = (outcome, true);
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

/// Input from a socket whose other end was closed while it had data for it is over, not broken: so
/// a client leaves that we are the proxy of.
fn unless_left(end: SourceEnd) -> SourceEnd {
    match end {
        SourceEnd::Failed(why) if why.kind() == io::ErrorKind::ConnectionReset => SourceEnd::Eof,
        end => end,
    }
}

impl Program for Forward<'_> {
    fn event(&mut self, port: &mut Port<'_>, event: Event) -> Result<Flow, engine::Error> {
        match event {
            Event::Opened { id, .. } => self.start(port, id)?,
            Event::OpenFailed { reason, text, .. } => {
                self.outcome = Outcome::Failed(refused(self.via, self.to, reason, &text));
                return Ok(Flow::Finish);
            }
            Event::Eof { id } | Event::Closed { id } => {
                return self.finish(port, id, Outcome::Exited(0));
            }
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
    fn hears_no_more(&mut self) {
        self.replies = Replies::default();
    }

    fn outcome(self) -> (Outcome, bool) {
        (self.input.judge(self.outcome), self.ended)
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
