//! From the command line to the exit code.

use crate::args::Args;
use crate::clear::{self, Purpose};
use crate::command::{Command, Job, NOT_TAKEN, Outcome, Task};
use crate::explain;
use crate::forward::Forward;
use crate::metrics::Metrics;
use crate::print;
use crate::report::{self, Answer, Replies};
use anyhow::{Context, Error, Result, anyhow, bail};
use conf::{Client, Endpoint, Level, LogLevel, Supported};
use engine::Session;
use engine::session::MAX_DATA;
use login::{AskAhead, Log, Started};
use proto::channel::{Ahead, Request};
use proto::window::Rule;
use std::io::IsTerminal;
use std::ops::ControlFlow;
use std::process::ExitCode;
use std::sync::mpsc::{self, Receiver};
use std::time::Instant;

/// Exit code of everything that is not the remote command's own (ssh(1) EXIT STATUS).
pub(crate) const FAILED: u8 = 255;

/// Runs the command line; every failure is one line on standard error.
pub(crate) fn run(args: &Args, supported: &Supported) -> ExitCode {
    let (conf, log) = match configure(args, supported) {
        Ok(ControlFlow::Continue(ready)) => ready,
        Ok(ControlFlow::Break(dump)) => return print::answer(&dump),
        Err(error) => {
            let hint = error.downcast_ref::<conf::Error>().and_then(conf::Error::hint);
            let hint = hint.map_or(String::new(), |hint| format!("hint: {hint}\n"));
            return print::refusal(&format!("lhssh: {error:#}\n{hint}"));
        }
    };
    if let Err(error) = report::survive_questions() {
        return print::refusal(&format!("lhssh: signals: {error}\n"));
    }
    let done = match args.explain {
        Some(seconds) => explain::explain(&conf, &log, seconds).map(|()| 0),
        None => connect_and_run(args, &conf, &log),
    };
    match done {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            let login = error.downcast_ref::<login::Error>();
            if !login.is_some_and(login::Error::is_told) {
                let hint = login.and_then(login::Error::hint);
                log.fatal(format_args!("{error:#}"), hint.as_deref());
            }
            ExitCode::from(FAILED)
        }
    }
}

/// The configuration and the log; or what `-G` prints, if that was asked for.
fn configure(args: &Args, supported: &Supported) -> Result<ControlFlow<String, (Client, Log)>> {
    let local = login::local_user().context("user database")?;
    let loaded = conf::client::load(&args.host, &args.settings, &args.files, supported, &local)?;
    let conf = loaded.config;
    if args.print_config {
        return Ok(ControlFlow::Break(conf.dump()));
    }
    let log = Log::new("lhssh", conf.log_level, args.log_file.as_deref())
        .with_context(|| format!("{:?}", args.log_file.as_deref().unwrap_or("-E".as_ref())))?;
    for notice in &loaded.notices {
        match notice.level {
            Level::Debug => log.debug(1, format_args!("{}", notice.text)),
            Level::Warning => log.info(format_args!("lhssh: warning: {}", notice.text)),
        }
    }
    Ok(ControlFlow::Continue((conf, log)))
}

fn connect_and_run(args: &Args, conf: &Client, log: &Log) -> Result<u8> {
    let started = Instant::now();
    let shell = args.command.is_none() && args.forward.is_none();
    if shell && std::io::stdin().is_terminal() && !conf.stdin_null {
        bail!(
            "a login shell needs a terminal at the other end, which is not supported yet; give a command"
        );
    }
    // What can fail here comes first: the command may start before the login is answered.
    let metrics = Metrics::open(conf)?;
    let (replies, figures) = mpsc::channel();
    let replies = metrics.as_ref().map_or_else(Replies::default, |_| Replies::to(replies));
    let beside = Beside { conf, log, started, metrics, figures };
    match &args.forward {
        Some(to) => {
            clear::wish(conf, Purpose::Forward, log);
            beside.run(Forward::new(to, conf, log, replies)?, Wanted::Forward(to))
        }
        None => {
            let task = task(args, conf, log);
            let wanted = Wanted::Session(task.requests().collect(), task.clear.is_some());
            beside.run(Command::new(task, log, replies)?, wanted)
        }
    }
}

fn task(args: &Args, conf: &Client, log: &Log) -> Task {
    let purpose = if args.command.is_some() { Purpose::Command } else { Purpose::Shell };
    Task {
        request: first_request(args),
        variables: variables(conf),
        stdin_null: conf.stdin_null,
        clear: clear::wish(conf, purpose, log),
    }
}

/// The channel of a job.
enum Wanted<'a> {
    /// With requests, and whether each wants a reply; its data may go in clear text.
    Session(Vec<(Request, bool)>, bool),
    Forward(&'a Endpoint),
}

impl Wanted<'_> {
    /// Whether it may be asked for together with the login: a switch to clear text comes between
    /// the opening of a channel and its data.
    fn may_go_ahead(&self) -> bool {
        !matches!(self, Self::Session(_, true))
    }

    fn ahead(&self, rule: Rule) -> Ahead {
        match self {
            Self::Session(requests, _) => {
                Ahead::session(rule.initial(), MAX_DATA, requests.clone())
            }
            Self::Forward(to) => Ahead::direct_tcpip(rule.initial(), MAX_DATA, &to.host, to.port),
        }
    }

    fn open(&self, session: &Session, rule: Rule) -> Result<(), engine::Error> {
        match self {
            Self::Session(..) => session.open_session(rule),
            Self::Forward(to) => session.open_direct_tcpip(rule, &to.host, to.port),
        }
        .map(drop)
    }
}

/// What goes on beside the one channel: figures for signals and for files.
struct Beside<'a> {
    conf: &'a Client,
    log: &'a Log,
    started: Instant,
    metrics: Option<Metrics>,
    figures: Receiver<Answer>,
}

impl Beside<'_> {
    /// From the login to the exit code.
    fn run<J: Job>(self, mut job: J, wanted: Wanted<'_>) -> Result<u8> {
        let (conf, log) = (self.conf, self.log);
        let ahead = |rule| wanted.ahead(rule);
        let ahead: Option<AskAhead<'_>> = wanted.may_go_ahead().then_some(&ahead);
        let logged_in = login::log_in(conf, log, ahead)?;
        tell_of_login(&logged_in.authenticated, conf, log);
        job.logged_in(&logged_in.authenticated);
        let asked = logged_in.authenticated.has_asked_ahead();
        let begun = logged_in.start(conf, job)?;
        if !asked {
            wanted.open(&begun.session, begun.rule)?;
        }
        self.serve(begun)
    }

    /// Serves the connection to its end; the exit code.
    fn serve<J: Job>(self, begun: Started<J>) -> Result<u8> {
        let Self { conf, log, started, metrics, figures } = self;
        let Started { session, rx, rule: _, proxy } = begun;
        let (job, totals, end) = std::thread::scope(|scope| -> Result<_> {
            let watch = report::on_signal(scope, &session, proxy.as_ref(), log, started);
            let _watch = watch.context("signals")?;
            if let Some(metrics) = metrics {
                let session = &session;
                scope.spawn(move || metrics.run(session, &figures, log));
            }
            let (mut job, totals, end) = rx.run();
            job.hears_no_more();
            Ok((job, totals, end))
        })?;
        let sent = session.sent();
        if log.level() >= LogLevel::Debug1 {
            report::lines(&session, started)
                .iter()
                .for_each(|line| log.debug(1, format_args!("{line}")));
        }
        // sshd just hangs up where it lets nobody in after all.
        let said_no = matches!(&end, Err(engine::Error::Disconnected(..)));
        let not_taken = said_no && job.is_unanswered();
        let (outcome, output_ended) = job.outcome();
        match &outcome {
            Outcome::Killed(signal) => {
                log.debug(1, format_args!("the command was killed by signal {signal}"));
            }
            Outcome::Unknown if end.is_ok() => {
                log.debug(1, format_args!("no exit status was sent"));
            }
            _ => {}
        }
        let lost = |error| {
            let lost = lost(&error, &conf.host_name, sent, totals.received, totals.written);
            if not_taken { anyhow!("{lost}; {NOT_TAKEN}") } else { lost }
        };
        ending(outcome, output_ended, end.map_err(lost))
    }
}

/// The exit code. A connection that was lost before the end of the output is a failure, even if
/// the command's status came in before: the output may lack its end.
fn ending(outcome: Outcome, output_ended: bool, end: Result<()>) -> Result<u8> {
    match (outcome, end) {
        (Outcome::Failed(error), _) => Err(error),
        (Outcome::Unknown, Err(error)) => Err(error),
        (Outcome::Exited(_) | Outcome::Killed(_), Err(error)) if !output_ended => Err(error),
        (Outcome::Exited(status), _) => Ok(u8::try_from(status & 0xff).unwrap_or(FAILED)),
        (Outcome::Killed(_), _) | (Outcome::Unknown, Ok(())) => Ok(FAILED),
    }
}

/// One line on a lost connection. The error may hold text of the server (invariant E2).
fn lost(error: &engine::Error, host: &str, sent: u64, received: u64, written: u64) -> Error {
    let error = login::escaped(&error.to_string());
    anyhow!("{host}: {error}; {sent} bytes sent, {received} bytes received and {written} written")
}

fn tell_of_login(authenticated: &proto::auth::Authenticated, conf: &Client, log: &Log) {
    if log.level() < LogLevel::Debug1 {
        return;
    }
    if let Some(negotiated) = authenticated.transport().negotiated() {
        log.debug(1, format_args!("negotiated {negotiated:?}"));
    }
    log.debug(1, format_args!("logged in to {} as {}", conf.host_name, authenticated.login()));
    if authenticated.has_asked_ahead() {
        log.debug(1, format_args!("the channel was asked for together with the login"));
    }
}

fn first_request(args: &Args) -> Request {
    match &args.command {
        None => Request::Shell,
        Some(name) if args.subsystem => {
            Request::Subsystem(String::from_utf8_lossy(name).into_owned())
        }
        Some(command) => Request::Exec(command.clone()),
    }
}

/// SetEnv, and what SendEnv picks of our own environment; the first of a name counts.
fn variables(conf: &Client) -> Vec<Request> {
    use std::os::unix::ffi::OsStrExt;
    let set = conf.set_env.iter().map(|(name, value)| (name.to_owned(), value.as_bytes().to_vec()));
    let ours = std::env::vars_os().filter_map(|(name, value)| {
        let name = name.to_str().filter(|name| conf.send_env.matches(name))?.to_owned();
        Some((name, value.as_bytes().to_vec()))
    });
    let mut seen = Vec::new();
    set.chain(ours)
        .filter(|(name, _)| {
            let new = !seen.contains(name);
            seen.push(name.clone());
            new
        })
        .map(|(name, value)| Request::Env { name: name.into_bytes(), value })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn broke() -> Result<()> {
        Err(anyhow!("connection closed"))
    }

    #[test]
    fn a_status_does_not_count_while_output_may_be_missing() {
        assert!(ending(Outcome::Exited(0), false, broke()).is_err());
        assert!(ending(Outcome::Killed("TERM".into()), false, broke()).is_err());
        assert_eq!(ending(Outcome::Exited(3), true, broke()).unwrap(), 3);
        assert_eq!(ending(Outcome::Exited(3), false, Ok(())).unwrap(), 3);
        assert!(ending(Outcome::Unknown, true, broke()).is_err());
    }

    /// E2.
    #[test]
    fn a_servers_goodbye_cannot_drive_the_terminal() {
        let error = engine::Error::Disconnected(2, "\u{1b}[2J".to_owned());
        let text = lost(&error, "host", 1, 2, 3).to_string();
        assert!(text.contains("\\u{1b}[2J") && !text.contains('\u{1b}'), "{text}");
    }
}
