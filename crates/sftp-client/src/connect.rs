//! The way to the server: a login, a program that is called like ssh, or a server of this host.

use crate::args::{Args, Remote, Server, is_program};
use crate::escape::shown;
use crate::failure::{Failure, Result};
use crate::words;
use conf::Level;
use login::Log;
use remote::{Host, Limit};
use sftp::client::{Client, Event};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::Arc;
use std::sync::mpsc::Sender;

/// A channel to a server, and what has to stay for it.
pub(crate) struct Connection {
    client: Client,
    greeting: String,
    /// None for a program's pipes, which close with their last client.
    login: Option<(remote::Connection, Arc<Log>)>,
}

impl Connection {
    /// Asks the server.
    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    /// Says that it is there.
    pub(crate) fn greeting(&self) -> &str {
        &self.greeting
    }

    /// Ends it in good order; with `-v`, what limited it is said.
    pub(crate) fn close(self) {
        drop(self.client);
        if let Some((login, log)) = self.login {
            if let Some(limit) = login.figures().and_then(|figures| Limit::of(&[figures])) {
                let limit = limit.said("commands, or the server's answers");
                log.debug(1, format_args!("limited by: {limit}"));
            }
            login.close();
        }
    }
}

/// Connects as the command line says; answers to tokens go to `events`.
pub(crate) fn connect(args: &Args, events: Sender<Event>) -> Result<Connection> {
    match &args.server {
        Server::Local(command) => local(command, events),
        Server::Remote(remote) => {
            let greeting = format!("Connected to {}.", remote.host);
            match &remote.program {
                Some((program, arguments)) => {
                    let client = start(through(program, arguments), events)?;
                    Ok(Connection { client, greeting, login: None })
                }
                None => log_in(remote, greeting, events),
            }
        }
    }
}

fn local(command: &OsStr, events: Sender<Event>) -> Result<Connection> {
    let because = |why: &str| Failure::Because(why.to_owned());
    let split = words::split(command.as_bytes()).map_err(|_| because("Parse -D arguments"))?;
    let mut split = split.iter().map(|word| OsString::from_vec(word.literal()));
    let program = split.next().ok_or_else(|| because("No sftp server specified via -D"))?;
    let mut command_line = Command::new(program);
    // SIGINT is for us, who stop a transfer; the server is to survive that.
    command_line.args(split).process_group(0);
    let client = start(command_line, events)?;
    let greeting = format!("Attached to {}.", shown(command.as_bytes()));
    Ok(Connection { client, greeting, login: None })
}

/// A program that may have to talk to the user, and so stays in the foreground, but does not hear
/// SIGINT: it begins as a shell that ignores it. The program and its arguments are not part of the
/// shell's text (F4).
fn through(program: &OsStr, arguments: &[OsString]) -> Command {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", "trap '' INT; exec \"$@\"", "sh"]).arg(program).args(arguments);
    command
}

fn start(command: Command, events: Sender<Event>) -> Result<Client> {
    remote::child(command, events).map_err(|error| failed(&error))
}

fn log_in(to: &Remote, greeting: String, events: Sender<Event>) -> Result<Connection> {
    let user = login::local_user().map_err(|error| Failure::local("user database", &error))?;
    let supported = login::supported();
    let loaded = conf::client::load(&to.host, &to.settings, &to.files, &supported, &user);
    let loaded = loaded.map_err(|error| {
        let hint = error.hint().map_or(String::new(), |hint| format!("\nhint: {hint}"));
        Failure::Because(format!("lhsftp: {error}{hint}"))
    })?;
    let log = Log::new("lhsftp", loaded.config.log_level, None);
    let log = log.map_err(|error| Failure::local("log", &error))?;
    for notice in &loaded.notices {
        match notice.level {
            Level::Debug => log.debug(1, format_args!("{}", notice.text)),
            Level::Warning => log.info(format_args!("lhsftp: warning: {}", notice.text)),
        }
    }
    let log = Arc::new(log);
    let login = Host::ssh(loaded.config, Arc::clone(&log)).connect();
    let login = login.map_err(|error| failed(&error))?;
    let client = match to.subsystem.as_str() {
        "sftp" => login.open(events),
        program if is_program(program) => login.open_command(program.into(), events),
        name => login.open_subsystem(name, events),
    };
    let client = client.map_err(|error| failed(&error))?;
    Ok(Connection { client, greeting, login: Some((login, log)) })
}

fn failed(error: &remote::Error) -> Failure {
    let hint = error.hint().map_or(String::new(), |hint| format!("\nhint: {hint}"));
    Failure::Because(format!("lhsftp: {error}{hint}"))
}
