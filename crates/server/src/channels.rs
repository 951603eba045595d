//! What a logged-in client's channels do: the engine's program of a session process. Called on
//! the receiving thread, must not wait.

use crate::account::Account;
use crate::endpoint::Endpoints;
use crate::environment::Facts;
use crate::job::{self, Job, Wanted};
use crate::log::Log;
use crate::process::Process;
use crate::refusal::{NOLOGIN, Refusal};
use crate::requests;
use engine::{Error, Flow, Port, Program, Sink, Source, Stream};
use keys::authorized_keys::Options;
use proto::channel::{LocalId, Request};
use proto::{Connection, Event, Outbox};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;
use std::sync::Arc;

/// Variables that a client may set per channel.
const MAX_VARIABLES: usize = 128;

/// What all channels of a connection have in common.
pub(crate) struct Served {
    pub(crate) account: Arc<Account>,
    pub(crate) config: Arc<conf::Server>,
    pub(crate) ends: Endpoints,
    /// Of the key whose signature completed the login (A4).
    pub(crate) options: Options,
    pub(crate) log: Arc<Log>,
    /// What the client says it is, if it has ways of its own with us: the software version of its
    /// identification.
    pub(crate) software: String,
    /// The peer knows `eow@openssh.com`.
    pub(crate) knows_eow: bool,
}

enum Channel {
    /// Nothing runs yet; what the client wants in its environment.
    Quiet(Vec<(OsString, OsString)>),
    /// A command, and whether the client may send it signals.
    Running(Arc<Process>, bool),
    /// `discard@longhaul`: ends with the client's EOF.
    Discarding,
    /// `zeros@longhaul`.
    Zeros,
    /// `internal-sftp`.
    Sftp(sftp::server::Session),
    /// Says why nothing runs.
    Refused,
}

impl Channel {
    /// The client is gone: what still runs loses its terminal, so to speak.
    fn hang_up(&self) {
        match self {
            Self::Running(process, _) => process.hang_up(),
            Self::Sftp(session) => session.hang_up(),
            Self::Quiet(_) | Self::Discarding | Self::Zeros | Self::Refused => {}
        }
    }
}

/// The channels of a connection.
pub(crate) struct Channels {
    served: Served,
    table: BTreeMap<u32, Channel>,
}

impl Channels {
    pub(crate) fn new(served: Served) -> Self {
        Self { served, table: BTreeMap::new() }
    }

    /// One request; its answer goes out before anything it starts can speak.
    fn request(
        &mut self,
        port: &mut Port<'_>,
        id: LocalId,
        request: Request,
        want_reply: bool,
    ) -> Result<(), Error> {
        let wanted = match request {
            Request::Exec(command) => Wanted::Exec(command),
            Request::Shell => Wanted::Shell,
            Request::Subsystem(name) => Wanted::Subsystem(name),
            other => {
                let ok = self.setting(id, other);
                return reply(port, id, ok, want_reply);
            }
        };
        let Some(Channel::Quiet(variables)) = self.table.get_mut(&id.0) else {
            return reply(port, id, false, want_reply);
        };
        let variables = std::mem::take(variables);
        let Served { account, options, config, log, .. } = &self.served;
        // The administrator's word counts before that of the key's owner, as in sshd.
        let forced = config.force_command().or(options.command.as_deref());
        let job = match Refusal::nologin(account, Path::new(NOLOGIN)) {
            None => job::decide(wanted, forced, config),
            Some(refusal) => {
                let user = &account.name;
                log.info(format_args!("User {user} not allowed because {NOLOGIN} exists"));
                Ok(Job::Refuse(refusal))
            }
        };
        match job {
            Err(why) => {
                log.info(format_args!("request refused: {why}"));
                reply(port, id, false, want_reply)
            }
            Ok(job) => self.start(port, id, job, &variables, want_reply),
        }
    }

    fn start(
        &mut self,
        port: &mut Port<'_>,
        id: LocalId,
        job: Job,
        variables: &[(OsString, OsString)],
        want_reply: bool,
    ) -> Result<(), Error> {
        let channel = match job {
            Job::Run(script) => {
                let facts = self.served.facts(variables, &script);
                // The answer is staged first; a command that cannot be started has a status.
                reply(port, id, true, want_reply)?;
                match Process::start(job::command(&script, &facts), id, port, &self.served.log) {
                    Ok(process) => Channel::Running(process, script.takes_signals()),
                    Err(error) => {
                        self.served.log.error(format_args!("{error:#}"));
                        return port.call(|c, out| finish(c, id, 255, out));
                    }
                }
            }
            Job::Discard => {
                reply(port, id, true, want_reply)?;
                discard(port, id);
                Channel::Discarding
            }
            Job::Zeros => {
                reply(port, id, true, want_reply)?;
                discard(port, id);
                port.session().start_source(id, Source::Zeros, None, move |session, _| {
                    let _ = session.call(|c, out| finish(c, id, 0, out));
                })?;
                Channel::Zeros
            }
            Job::Sftp(options) => {
                reply(port, id, true, want_reply)?;
                match crate::sftp::start(*options, &self.served, id, port) {
                    Ok(session) => Channel::Sftp(session),
                    Err(error) => {
                        self.served.log.error(format_args!("{error:#}"));
                        return port.call(|c, out| finish(c, id, 255, out));
                    }
                }
            }
            Job::Refuse(refusal) => {
                reply(port, id, true, want_reply)?;
                discard(port, id);
                refusal.tell(id, port)?;
                Channel::Refused
            }
        };
        self.table.insert(id.0, channel);
        Ok(())
    }

    /// Requests that start nothing; whether they are granted.
    fn setting(&mut self, id: LocalId, request: Request) -> bool {
        match (request, self.table.get_mut(&id.0)) {
            (Request::Env { name, value }, Some(Channel::Quiet(variables))) => {
                let allowed = std::str::from_utf8(&name)
                    .is_ok_and(|name| self.served.config.accept_env.matches(name));
                let sane = !name.is_empty() && !name.contains(&b'=') && !has_nul(&name, &value);
                let granted = allowed && sane && variables.len() < MAX_VARIABLES;
                if granted {
                    variables.push((OsString::from_vec(name), OsString::from_vec(value)));
                }
                granted
            }
            (Request::Signal(name), Some(Channel::Running(process, true))) => process.signal(&name),
            // There are no terminals.
            _ => false,
        }
    }

    fn ended(&mut self, port: &mut Port<'_>, id: LocalId) -> Result<(), Error> {
        match self.table.get(&id.0) {
            Some(Channel::Discarding) => port.call(|c, out| finish(c, id, 0, out)),
            _ => Ok(()),
        }
    }

    /// The client closed: so do we.
    fn closed(&mut self, port: &mut Port<'_>, id: LocalId) -> Result<(), Error> {
        if let Some(channel) = self.table.remove(&id.0) {
            channel.hang_up();
        }
        port.call(|c, out| c.close(id, out))
    }
}

impl Served {
    fn facts<'a>(
        &'a self,
        variables: &'a [(OsString, OsString)],
        script: &'a job::Script,
    ) -> Facts<'a> {
        Facts {
            account: &self.account,
            config: &self.config,
            ends: self.ends,
            software: &self.software,
            options: &self.options,
            client: variables,
            original: script.original.as_deref(),
        }
    }
}

impl Program for Channels {
    fn event(&mut self, port: &mut Port<'_>, event: Event) -> Result<Flow, Error> {
        match event {
            Event::OpenRequested { id, grant, .. } => {
                port.accept(id, grant)?;
                self.table.insert(id.0, Channel::Quiet(Vec::new()));
            }
            Event::Request { id, request, want_reply } => {
                self.request(port, id, request, want_reply)?;
            }
            Event::Eof { id } => self.ended(port, id)?,
            Event::EndOfWrite { id } => {
                port.session().stop_output(id);
                // Without replies there is nothing to be served.
                if let Some(channel @ Channel::Sftp(_)) = self.table.get(&id.0) {
                    channel.hang_up();
                }
            }
            Event::Closed { id } => self.closed(port, id)?,
            Event::GlobalRequest { name, data, want_reply } => {
                requests::answer(port, &self.served.config, &name, &data, want_reply)?;
            }
            Event::Uncovered { cover } => {
                let Served { account, ends, log, .. } = &self.served;
                let (user, mac) = (&account.name, cover.mac_name().unwrap_or("none"));
                log.info(format_args!(
                    "NONE cipher for user {user} from {ends}: data is unencrypted both ways, MAC {mac}"
                ));
            }
            Event::Debug { text, .. } => self.served.log.debug(format_args!("client: {text}")),
            _ => {}
        }
        Ok(Flow::On)
    }

    fn sink_broke(
        &mut self,
        port: &mut Port<'_>,
        id: LocalId,
        stream: Stream,
        why: io::Error,
    ) -> Flow {
        let Served { log, knows_eow, .. } = &self.served;
        log.debug(format_args!("channel {}: command reads no more: {why}", id.0));
        if *knows_eow && stream == Stream::Data {
            let told = port.call(|c, out| c.request(id, &Request::EndOfWrite, false, out));
            if let Err(error) = told {
                log.debug(format_args!("end of write: {error}"));
            }
        }
        Flow::On
    }

    fn over(&mut self) {
        self.table.values().for_each(Channel::hang_up);
    }
}

/// Data of either kind is taken and dropped, so that its window does not close (C7).
fn discard(port: &mut Port<'_>, id: LocalId) {
    for stream in [Stream::Data, Stream::Stderr] {
        port.attach(id, stream, Sink::discard());
    }
}

fn reply(port: &mut Port<'_>, id: LocalId, ok: bool, wanted: bool) -> Result<(), Error> {
    if wanted { port.call(|c, out| c.reply(id, ok, out)) } else { Ok(()) }
}

/// EOF, status and CLOSE of what is not a process.
pub(crate) fn finish(
    connection: &mut Connection,
    id: LocalId,
    status: u32,
    out: &mut Outbox,
) -> Result<(), proto::Error> {
    connection.eof(id, out)?;
    connection.request(id, &Request::ExitStatus(status), false, out)?;
    connection.close(id, out)
}

fn has_nul(name: &[u8], value: &[u8]) -> bool {
    name.contains(&0) || value.contains(&0)
}
