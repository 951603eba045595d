//! The loop that reads commands, and what the session's end means for the exit code.
//!
//! ```text
//! script      lines of a file or a pipe, echoed as they are done
//! dialogue    lines of a terminal, with completion and history (module interactive)
//! ```

use crate::args::Args;
use crate::command::{self, Command, Line};
use crate::connect;
use crate::escape::shown;
use crate::failure::{Failure, Result};
use crate::files::Files;
use crate::interactive::Dialogue;
use crate::interrupt::Interrupts;
use crate::session::{Flow, Session, Talk};
use crate::transfer::Mover;
use crate::words;
use std::fs::File;
use std::io::{BufRead, BufReader, IsTerminal};
use std::path::Path;
use std::process::ExitCode;
use wire::text::words;

/// Exit code of what ends the program by itself: sftp(1)'s.
const FATAL: u8 = 255;

/// Longest line of a script: sftp(1) takes 2 KiB.
const LONGEST: usize = 64 * 1024;

/// Runs the command line.
pub(crate) fn run(args: &Args) -> ExitCode {
    match session(args) {
        Ok(code) => code,
        Err(Failure::Told) => ExitCode::from(FATAL),
        Err(Failure::Because(why) | Failure::Lost(why)) => {
            eprintln!("{why}");
            ExitCode::from(FATAL)
        }
    }
}

fn session(args: &Args) -> Result<ExitCode> {
    let script = args.batch.as_deref().map(open).transpose()?;
    let (events_in, events) = std::sync::mpsc::channel();
    // A second Ctrl-C ends us; the first one stops a transfer, which takes the connection.
    login::keep_interrupts();
    let connection = connect::connect(args, events_in)?;
    let interrupts = Interrupts::watch()?;
    let client = connection.client().clone();
    let files = Files::new(client.clone());
    let mover = Mover::new(client, events, args.shape, interrupts.seen());
    let talk = Talk { quiet: args.quiet, progress: !args.quiet && std::io::stderr().is_terminal() };
    files.ready().map_err(|failure| match failure {
        Failure::Because(why) | Failure::Lost(why) => {
            Failure::Because(format!("{why}\nCouldn't initialise connection to server"))
        }
        told => told,
    })?;
    if !args.quiet {
        eprintln!("{}", connection.greeting());
    }
    let session = Session::begin(files, mover, args.manner, talk)?;
    let mut runner = Runner { session, interrupts, batch: args.batch.is_some() };
    let outcome = match runner.destination(args)? {
        Some(outcome) => outcome,
        None => runner.lines(script)?,
    };
    drop(runner);
    connection.close();
    Ok(outcome)
}

fn open(path: &Path) -> Result<Box<dyn BufRead>> {
    if path == "-" {
        return Ok(Box::new(std::io::stdin().lock()));
    }
    let unreadable = |error| Failure::Because(format!("{} ({}).", words(&error), path.display()));
    let file = File::open(path).map_err(unreadable)?;
    match file.metadata().map_err(unreadable)?.is_dir() {
        true => Err(unreadable(nix::errno::Errno::EISDIR.into())),
        false => Ok(Box::new(BufReader::new(file))),
    }
}

/// Runs lines in a session.
struct Runner {
    session: Session,
    interrupts: Interrupts,
    /// A failure ends it all (`-b`).
    batch: bool,
}

const FAILED: ExitCode = ExitCode::FAILURE;

impl Runner {
    /// What the destination asks for: a directory to begin in, or a file, and then that is all.
    fn destination(&mut self, args: &Args) -> Result<Option<ExitCode>> {
        let Some(path) = &args.path else { return Ok(None) };
        let path = self.session.absolute(path);
        if args.target.is_none() && self.session.files.is_directory(&path) {
            self.session.say(&format!("Changing to: {}", shown(&path)));
            return match self.session.run(Command::Cd(Some(path))) {
                Ok(_) => Ok(None),
                Err(failure) => failure.tell().map(|()| Some(FAILED)),
            };
        }
        // As a command line: a pattern, unless the user wrote it so that it is none.
        let source = words::Word::of_pattern(path);
        let got = self.session.get(args.manner, &source, args.target.as_deref());
        match got {
            Ok(()) => Ok(Some(ExitCode::SUCCESS)),
            Err(failure) => failure.tell().map(|()| Some(FAILED)),
        }
    }

    fn lines(&mut self, script: Option<Box<dyn BufRead>>) -> Result<ExitCode> {
        match script {
            Some(script) => self.script(script),
            None if std::io::stdin().is_terminal() => self.dialogue(),
            None => self.script(Box::new(std::io::stdin().lock())),
        }
    }

    fn script(&mut self, mut lines: Box<dyn BufRead>) -> Result<ExitCode> {
        loop {
            let mut text = Vec::new();
            let mut bounded = std::io::Read::take(&mut lines, LONGEST as u64);
            match bounded.read_until(b'\n', &mut text) {
                Ok(0) => return Ok(ExitCode::SUCCESS),
                Ok(_) if text.len() == LONGEST => {
                    return Err(Failure::Because("Error: input line too long".to_owned()));
                }
                Ok(_) => {}
                Err(error) => return Err(Failure::local("standard input", &error)),
            }
            let text = text.strip_suffix(b"\n").unwrap_or(&text);
            match self.line(text, true)? {
                Next::Line => {}
                Next::Quit => return Ok(ExitCode::SUCCESS),
                Next::Abort => return Ok(FAILED),
            }
        }
    }

    fn dialogue(&mut self) -> Result<ExitCode> {
        let mut dialogue = Dialogue::new(&self.session)?;
        loop {
            dialogue.follow(&self.session);
            let Some(text) = dialogue.line()? else { return Ok(ExitCode::SUCCESS) };
            if self.line(&text, false)? == Next::Quit {
                return Ok(ExitCode::SUCCESS);
            }
        }
    }

    /// Does a command. Interrupts are for the user's shell while that runs.
    fn command(&mut self, command: Command) -> Result<Flow> {
        let is_shell = matches!(command, Command::Shell(_) | Command::LocalList(_));
        if !is_shell {
            return self.session.run(command);
        }
        self.interrupts.ignore();
        let outcome = self.session.run(command);
        self.interrupts.heed()?;
        outcome
    }

    /// Does a line, and tells what comes of it for those after it.
    fn line(&mut self, text: &[u8], echo: bool) -> Result<Next> {
        self.interrupts.clear();
        let Line { may_fail, silent, command, .. } = command::parse(text);
        if echo && !silent {
            self.session.print(&format!("sftp> {}\n", shown(text)))?;
        }
        let refused = command.as_ref().err().map(|why| eprintln!("{why}"));
        self.session.strict = self.batch && !may_fail;
        let outcome = match (refused, command) {
            (None, Ok(Some(command))) => self.command(command),
            (None, Ok(None)) => Ok(Flow::Go),
            _ => Err(Failure::Told),
        };
        if self.interrupts.is_seen() {
            eprintln!("Interrupt");
        }
        match outcome {
            Ok(Flow::Go) => Ok(Next::Line),
            Ok(Flow::Quit) => Ok(Next::Quit),
            Err(failure) => {
                failure.tell()?;
                Ok(if self.session.strict { Next::Abort } else { Next::Line })
            }
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    Line,
    Quit,
    Abort,
}
