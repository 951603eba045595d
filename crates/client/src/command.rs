//! The remote command on its session channel (RFC 4254 section 6): our standard streams are its
//! own, and its exit status is ours.

use crate::clear::{self, Wish};
use crate::input::Input;
use crate::report::Replies;
use anyhow::{Context, Error, Result, anyhow};
use engine::{Fd, Flow, Port, Program, Sink, Source, Stream};
use login::Log;
use proto::auth::Authenticated;
use proto::channel::{Ahead, Grant, LocalId, Request};
use proto::{Event, Peer};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

/// How the remote command ended.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// Nobody said; the connection may have been lost.
    Unknown,
    /// With this status.
    Exited(u32),
    /// By this signal, without `SIG`.
    Killed(String),
    /// It did not start, or our side could not go on.
    Failed(Error),
}

/// Of a server that calls itself OpenSSH and is not.
pub(crate) const NOT_TAKEN: &str =
    "the server may take no channel together with the login; try -o PipelineRequests=no";

/// What lhssh does on its channel.
pub(crate) trait Job: Program {
    /// The server lets us in; nothing of the channel has been heard yet.
    fn logged_in(&mut self, login: &Authenticated);

    /// The channel was asked for together with the login, and nothing of it has been heard.
    fn is_unanswered(&self) -> bool;

    /// Nothing will come from the other end any more.
    fn hears_no_more(&mut self);

    /// How it ended, and whether its output is all there. A status may come before the last of the
    /// output: the command's pipe, or what it left running, may still hold some.
    fn outcome(self) -> (Outcome, bool);
}

/// A pipe as large as an ordinary user may have it: one of 64 KiB halves the rate.
const PIPE: usize = 1 << 20;

/// What is to be run, and how.
pub(crate) struct Task {
    /// Command, shell or subsystem.
    pub(crate) request: Request,
    /// Its environment.
    pub(crate) variables: Vec<Request>,
    /// Nothing is read from standard input.
    pub(crate) stdin_null: bool,
    /// Its data in clear text.
    pub(crate) clear: Option<Wish>,
}

impl Task {
    /// What is requested on the channel, and whether a reply is wanted.
    pub(crate) fn requests(&self) -> impl Iterator<Item = (Request, bool)> {
        let variables = self.variables.iter().map(|variable| (variable.clone(), false));
        variables.chain([(self.request.clone(), true)])
    }
}

/// What happens on the channel.
pub(crate) struct Command<'a> {
    task: Task,
    /// It was asked for together with the login.
    asked: bool,
    /// The peer knows `eow@openssh.com`.
    hears_end_of_write: bool,
    log: &'a Log,
    streams: Option<Streams>,
    outcome: Outcome,
    /// The server said that no more output follows.
    output_ended: bool,
    input: Input,
    /// Who waits for the other end's figures.
    replies: Replies,
}

/// Our own standard streams.
pub(crate) struct Streams {
    pub(crate) stdin: Fd,
    pub(crate) stdout: Fd,
    stderr: Fd,
}

impl Streams {
    pub(crate) fn open(stdin_null: bool) -> io::Result<Self> {
        let stdin: OwnedFd = if stdin_null {
            File::open("/dev/null")?.into()
        } else {
            io::stdin().as_fd().try_clone_to_owned()?
        };
        let streams = Self {
            stdin: stdin.into(),
            stdout: io::stdout().as_fd().try_clone_to_owned()?.into(),
            stderr: io::stderr().as_fd().try_clone_to_owned()?.into(),
        };
        streams.stdin.enlarge_pipe(PIPE);
        Ok(streams)
    }
}

impl<'a> Command<'a> {
    pub(crate) fn new(task: Task, log: &'a Log, replies: Replies) -> Result<Self> {
        let streams = Streams::open(task.stdin_null).context("standard streams")?;
        Ok(Self {
            task,
            asked: false,
            hears_end_of_write: false,
            log,
            streams: Some(streams),
            outcome: Outcome::Unknown,
            output_ended: false,
            input: Input::new(log),
            replies,
        })
    }

    /// Requests, if they have not left with the login, and the first data leave together: the
    /// peer's answer is not waited for.
    fn start(
        &mut self,
        port: &mut Port<'_>,
        id: LocalId,
        grant: Grant,
    ) -> Result<(), engine::Error> {
        if !(self.asked && grant.remote == Ahead::NUMBER) {
            port.call(|connection, out| {
                let mut requests = self.task.requests();
                requests
                    .try_for_each(|(request, reply)| connection.request(id, &request, reply, out))
            })?;
        }
        if let Some(wish) = self.task.clear {
            // What was said so far, command and environment, leaves encrypted.
            clear::ask(wish, port, self.log)?;
        }
        let Some(Streams { stdin, stdout, stderr }) = self.streams.take() else { return Ok(()) };
        port.attach(id, Stream::Data, Sink::fd(stdout));
        port.attach(id, Stream::Stderr, Sink::fd(stderr));
        let input = self.input.clone();
        port.session().start_source(id, Source::Fd(stdin), None, move |session, end| {
            input.ended(session, id, end);
        })
    }

    fn fail(
        &mut self,
        port: &mut Port<'_>,
        id: LocalId,
        error: Error,
    ) -> Result<Flow, engine::Error> {
        if !matches!(self.outcome, Outcome::Failed(_)) {
            self.outcome = Outcome::Failed(error);
        }
        port.call(|connection, out| connection.close(id, out))?;
        Ok(Flow::Finish)
    }
}

impl Job for Command<'_> {
    fn logged_in(&mut self, login: &Authenticated) {
        self.asked = login.has_asked_ahead();
        self.hears_end_of_write = login.transport().peer().is_some_and(Peer::knows_end_of_write);
    }

    fn is_unanswered(&self) -> bool {
        self.asked && self.streams.is_some()
    }

    fn hears_no_more(&mut self) {
        self.replies = Replies::default();
    }

    fn outcome(self) -> (Outcome, bool) {
        (self.input.judge(self.outcome), self.output_ended)
    }
}

impl Program for Command<'_> {
    fn event(&mut self, port: &mut Port<'_>, event: Event) -> Result<Flow, engine::Error> {
        match event {
            Event::Opened { id, grant } => self.start(port, id, grant)?,
            Event::OpenFailed { text, .. } => {
                let text = login::escaped(&text);
                self.outcome = Outcome::Failed(anyhow!("the server opens no session: {text}"));
                return Ok(Flow::Finish);
            }
            Event::Reply { id, ok: false } => {
                let name = self.task.request.name();
                return self.fail(port, id, anyhow!("the server refuses the {name} request"));
            }
            Event::Unimplemented { .. } if self.is_unanswered() => {
                self.outcome = Outcome::Failed(anyhow!(NOT_TAKEN));
                return Ok(Flow::Finish);
            }
            Event::GlobalReply { ref name, ok, ref data } => {
                self.replies.hear(name, ok, data);
                if let Some(granted) = login::receive_buffer_granted(&event) {
                    self.log.debug(1, format_args!("{granted}"));
                }
            }
            Event::Uncovered { .. } | Event::StillSealed { .. } => {
                clear::tell(&event, self.task.clear, self.log);
            }
            Event::ExitStatus { status, .. } => self.outcome = Outcome::Exited(status),
            Event::ExitSignal { name, .. } => {
                self.outcome = Outcome::Killed(login::escaped(&name));
            }
            Event::Eof { .. } => self.output_ended = true,
            Event::EndOfWrite { id } => port.session().stop_sources(id),
            Event::Closed { id } => {
                self.output_ended = true;
                port.session().stop_sources(id);
                port.call(|connection, out| connection.close(id, out))?;
                return Ok(Flow::Finish);
            }
            _ => {}
        }
        Ok(Flow::On)
    }

    /// Standard output or error takes no more. A reader that went away is no error, but the
    /// command should hear of it; a full disk is one.
    fn sink_broke(
        &mut self,
        port: &mut Port<'_>,
        id: LocalId,
        stream: Stream,
        why: io::Error,
    ) -> Flow {
        let quiet = why.kind() == io::ErrorKind::BrokenPipe;
        let done = match stream {
            Stream::Stderr => Ok(Flow::On),
            Stream::Data if quiet && self.hears_end_of_write => {
                let said = port.call(|connection, out| {
                    connection.request(id, &Request::EndOfWrite, false, out)
                });
                said.map(|()| Flow::On)
            }
            Stream::Data if quiet => {
                port.call(|connection, out| connection.close(id, out)).map(|()| Flow::Finish)
            }
            Stream::Data => {
                self.fail(port, id, Error::new(why).context("write to standard output"))
            }
        };
        done.unwrap_or(Flow::Finish)
    }
}
