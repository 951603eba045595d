//! A session with a server: where it stands, how it talks, and what its commands do.
//!
//! ```text
//! session   state, dispatch, commands of a line or two
//! ls        listings          get, put   transfers, by transfer and directory
//! ```

use crate::command::{self, Change, Command, Manner, Path};
use crate::escape::shown;
use crate::failure::{Failure, Result};
use crate::files::{Files, kind};
use crate::glob::{self, Kind};
use crate::listing;
use crate::local;
use crate::meter::Meter;
use crate::paths::absolute;
use crate::transfer::Mover;
use crate::words::Word;
use sftp::codec::{Attrs, Handle, OpenFlags};
use std::io::Write;
use std::time::Instant;

/// Whether there are more commands to come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flow {
    Go,
    Quit,
}

/// How much is said.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Talk {
    /// Only results and errors.
    pub(crate) quiet: bool,
    /// A meter for each file, on a terminal.
    pub(crate) progress: bool,
}

/// A session.
pub(crate) struct Session {
    pub(crate) files: Files,
    pub(crate) mover: Mover,
    /// The server's directory that paths begin at.
    pub(crate) directory: Path,
    /// Where the session began.
    start: Path,
    /// What all transfers do, by the command line.
    pub(crate) manner: Manner,
    talk: Talk,
    /// The first of several files that fails is the last (sftp(1)'s batches).
    pub(crate) strict: bool,
}

impl Session {
    /// Begins in the directory where the server puts us.
    pub(crate) fn begin(files: Files, mover: Mover, manner: Manner, talk: Talk) -> Result<Self> {
        let start = files.realpath(b".").map_err(|failure| match failure {
            Failure::Because(why) => Failure::Lost(format!("{why}\nNeed cwd")),
            other => other,
        })?;
        Ok(Self { files, mover, directory: start.clone(), start, manner, talk, strict: false })
    }

    /// Does what a command says.
    pub(crate) fn run(&mut self, command: Command) -> Result<Flow> {
        match command {
            Command::Quit => return Ok(Flow::Quit),
            Command::Get { manner, source, target } => self.get(manner, &source, target.as_deref()),
            Command::Put { manner, source, target } => self.put(manner, &source, target.as_deref()),
            Command::Ls { view, files } => self.ls(view, files.as_ref()),
            Command::Change { what, follow, files } => self.change(what, follow, &files),
            Command::Remove(files) => self.remove(&files),
            command => self.simple(command),
        }?;
        Ok(Flow::Go)
    }

    fn simple(&mut self, command: Command) -> Result<()> {
        match command {
            Command::Cd(path) => self.change_directory(path),
            Command::Copy { from, to } => self.copy(&self.absolute(&from), &self.absolute(&to)),
            Command::Df { path, human, inodes } => {
                let space = self.files.space(&self.absolute(&path.unwrap_or_default()))?;
                self.print(&listing::space(&space, human, inodes))
            }
            Command::HardLink { old, new } => {
                self.files.hard_link(&self.absolute(&old), &self.absolute(&new))
            }
            Command::Mkdir(path) => {
                let attrs = Attrs { mode: Some(0o777), ..Attrs::default() };
                self.files.mkdir(&self.absolute(&path), attrs)
            }
            Command::Rename { old, new, plain } => {
                self.files.rename(&self.absolute(&old), &self.absolute(&new), plain)
            }
            Command::Rmdir(path) => self.files.rmdir(&self.absolute(&path)),
            Command::SymLink { target, new } => self.files.sym_link(&target, &self.absolute(&new)),
            Command::Progress => self.toggle_progress(),
            Command::Pwd => {
                self.print(&format!("Remote working directory: {}\n", shown(&self.directory)))
            }
            Command::Version => {
                self.print(&format!("SFTP protocol version {}\n", sftp::codec::VERSION))
            }
            other => self.here(other),
        }
    }

    /// Commands that the server does not hear of.
    fn here(&mut self, command: Command) -> Result<()> {
        match command {
            Command::LocalCd(path) => local::change_directory(path.as_deref()),
            Command::LocalList(arguments) => local::shell(&[b"ls ", &arguments[..]].concat()),
            Command::LocalMkdir(path) => local::make_directory(&path),
            Command::LocalPwd => {
                let directory = local::directory()?;
                self.print(&format!("Local working directory: {}\n", shown(&directory)))
            }
            Command::Shell(text) => local::shell(&text),
            Command::Umask(mask) => {
                rustix::process::umask(rustix::fs::Mode::from_raw_mode(mask));
                self.print(&format!("Local umask: {mask:03o}\n"))
            }
            _ => self.print(&command::help()),
        }
    }

    /// A path of the server, as seen from its current directory.
    pub(crate) fn absolute(&self, path: &[u8]) -> Path {
        match path {
            b"" => self.directory.clone(),
            path => absolute(path, &self.directory),
        }
    }

    fn change_directory(&mut self, path: Option<Path>) -> Result<()> {
        let path = path.filter(|path| !path.is_empty()).unwrap_or_else(|| self.start.clone());
        let to = self.files.realpath(&self.absolute(&path))?;
        let attrs = self.files.stat(&to)?;
        if attrs.mode.is_none() {
            let why = "Can't change directory: Can't check target";
            return Err(Failure::Because(why.to_owned()));
        }
        if kind(&attrs) != Kind::Directory {
            let why = format!("Can't change directory: \"{}\" is not a directory", shown(&to));
            return Err(Failure::Because(why));
        }
        self.directory = to;
        Ok(())
    }

    /// All files of a pattern; without any, the name itself, for the server to complain about.
    fn expand(&self, files: &Word) -> Result<Vec<Path>> {
        let pattern = self.pattern(files);
        let found = glob::expand(&self.files, &pattern)?;
        if found.is_empty() {
            return Ok(vec![glob::plain(&pattern)]);
        }
        let unmarked = |path: Path| match path.strip_suffix(b"/") {
            Some(path) if !path.is_empty() => path.to_vec(),
            _ => path,
        };
        Ok(found.into_iter().map(|found| unmarked(found.path)).collect())
    }

    fn remove(&mut self, files: &Word) -> Result<()> {
        let mut outcome = Ok(());
        for path in self.expand(files)? {
            if self.mover.is_interrupted() {
                return Err(Failure::Told);
            }
            self.say(&format!("Removing {}", shown(&path)));
            let removed = self.files.remove(&path);
            outcome = self.note(removed, outcome)?;
            if self.is_enough(&outcome) {
                break;
            }
        }
        outcome
    }

    fn change(&mut self, what: Change, follow: bool, files: &Word) -> Result<()> {
        let mut outcome = Ok(());
        for path in self.expand(files)? {
            if self.mover.is_interrupted() {
                return Err(Failure::Told);
            }
            let changed = self.change_one(what, follow, &path);
            outcome = self.note(changed, outcome)?;
            if self.is_enough(&outcome) {
                break;
            }
        }
        outcome
    }

    /// Whether a file that failed ends its command.
    fn is_enough(&self, outcome: &Result<()>) -> bool {
        self.strict && outcome.is_err()
    }

    fn change_one(&mut self, what: Change, follow: bool, path: &[u8]) -> Result<()> {
        let (verb, attrs) = match what {
            Change::Mode(mode) => ("mode", Attrs { mode: Some(mode), ..Attrs::default() }),
            Change::Owner(owner) => {
                let (_, group) = self.owner(path, follow)?;
                ("owner", Attrs { owner: Some((owner, group)), ..Attrs::default() })
            }
            Change::Group(group) => {
                let (owner, _) = self.owner(path, follow)?;
                ("group", Attrs { owner: Some((owner, group)), ..Attrs::default() })
            }
        };
        self.say(&format!("Changing {verb} on {}", shown(path)));
        self.files.set(path, attrs, follow)
    }

    fn owner(&self, path: &[u8], follow: bool) -> Result<(u32, u32)> {
        let attrs = if follow { self.files.stat(path)? } else { self.files.lstat(path)? };
        attrs.owner.ok_or_else(|| {
            let path = shown(path);
            Failure::Because(format!("Can't get current ownership of remote file \"{path}\""))
        })
    }

    /// A copy at the server; no byte comes here.
    fn copy(&self, from: &[u8], to: &[u8]) -> Result<()> {
        self.files.need_copy_data()?;
        let attrs = self.files.stat(from)?;
        if !crate::files::is_regular(&attrs) {
            return Err(Failure::Because(format!("Cannot copy non-regular file: {}", shown(from))));
        }
        self.refuse_same(from, to)?;
        let source = self.files.open("remote", from, OpenFlags::READ, Attrs::default())?;
        let mode = Attrs { mode: attrs.mode.map(|mode| mode & 0o777), ..Attrs::default() };
        // Not cut yet: it could be the source by another name.
        let flags = OpenFlags::WRITE | OpenFlags::CREATE;
        let target = match self.files.open("remote", to, flags, mode) {
            Ok(target) => target,
            Err(failure) => return self.files.close(source).and(Err(failure)),
        };
        let what = format!("Couldn't copy file \"{}\" to \"{}\"", shown(from), shown(to));
        let copied = self.copy_open(&source, &target, &what);
        let closed = self.files.close(source).and(self.files.close(target));
        copied.and(closed)
    }

    /// A target that was not emptied has its old end where the source became shorter (F9).
    fn copy_open(&self, source: &Handle, target: &Handle, what: &str) -> Result<()> {
        let left = self.files.empty_if_another(source, target)?;
        let copied = self.files.copy_data(source.clone(), target.clone());
        copied.map_err(|error| Failure::asked(what, &error))?;
        if left.is_some_and(|size| size > 0) && self.files.size(source)? < left {
            return Err(Failure::Because(format!("{what}: it changed meanwhile")));
        }
        Ok(())
    }

    /// A target that leads to the source.
    fn refuse_same(&self, from: &[u8], to: &[u8]) -> Result<()> {
        match (self.files.realpath(from), self.files.realpath(to)) {
            (Err(lost @ Failure::Lost(_)), _) | (_, Err(lost @ Failure::Lost(_))) => Err(lost),
            (Ok(from), Ok(to)) if from == to => {
                Err(Failure::Because(format!("Cannot copy \"{}\" to itself", shown(&from))))
            }
            // One that cannot be resolved is not there yet.
            _ => Ok(()),
        }
    }

    fn toggle_progress(&mut self) -> Result<()> {
        self.talk.progress = !self.talk.progress;
        let state = if self.talk.progress { "enabled" } else { "disabled" };
        self.print(&format!("Progress meter {state}\n"))
    }

    /// A result.
    pub(crate) fn print(&self, text: &str) -> Result<()> {
        let mut out = std::io::stdout().lock();
        let done = out.write_all(text.as_bytes()).and_then(|()| out.flush());
        done.map_err(|error| Failure::Lost(format!("standard output: {error}")))
    }

    /// What goes on, for those who want to know.
    pub(crate) fn say(&self, text: &str) {
        if !self.talk.quiet {
            // Whoever does not read it does not miss it.
            _ = self.print(&format!("{text}\n"));
        }
    }

    /// What one of several steps came to, told at once; the outcome of all is the worst.
    pub(crate) fn note(&self, step: Result<()>, outcome: Result<()>) -> Result<Result<()>> {
        let Err(failure) = step else { return Ok(outcome) };
        failure.tell()?;
        Ok(Err(Failure::Told))
    }

    /// A meter for a file, seen on a terminal only.
    pub(crate) fn meter(&self, name: &[u8], start: u64, size: u64) -> Meter {
        Meter::new(name, start, size, self.talk.progress.then(columns).flatten())
    }

    /// A file of `size` bytes that went in company is through up to `end`.
    pub(crate) fn show_done(&self, name: &[u8], size: u64, end: u64, began: Instant) {
        let mut meter = self.meter(name, 0, size).since(began);
        meter.jump(end);
        meter.finish();
    }

    /// The file is through, or not.
    pub(crate) fn close_meter(&self, meter: Meter) {
        meter.finish();
    }
}

/// The width of the terminal that results go to, if it is one.
pub(crate) fn columns() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(std::io::stdout()).ok()?;
    Some(if size.ws_col == 0 { 80 } else { size.ws_col.into() })
}
