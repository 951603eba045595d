//! `get` and `reget`: files and trees of the server, brought here.

use crate::command::{Manner, Path};
use crate::directory::{self, Directory};
use crate::escape::shown;
use crate::failure::{Failure, Result};
use crate::files::{is_regular, kind};
use crate::glob::{self, Kind};
use crate::local;
use crate::paths::{absolute, base, join};
use crate::session::Session;
use crate::transfer::{Moved, Span};
use crate::words::Word;
use sftp::codec::{Attrs, Handle, OpenFlags};
use std::fs::File;
use std::sync::Arc;

/// Deepest tree that is followed, in both directions: sftp(1)'s bound. A server could otherwise
/// send us down for ever.
pub(crate) const DEEPEST: usize = 64;

/// Where a file goes.
enum Place<'a> {
    /// To a path that the user named.
    Named(&'a [u8]),
    /// Into a directory that we hold, under a name of one component.
    Below(&'a Directory, &'a [u8]),
}

impl Place<'_> {
    fn open(&self, mode: u32, keep: bool) -> Result<File> {
        match self {
            Self::Named(path) => directory::create(path, mode, keep),
            Self::Below(directory, name) => directory.file(name, mode, keep),
        }
    }

    fn path(&self) -> Path {
        match self {
            Self::Named(path) => path.to_vec(),
            Self::Below(directory, name) => join(directory.name(), name),
        }
    }
}

impl Session {
    /// Everything that `source` stands for.
    pub(crate) fn get(
        &mut self,
        manner: Manner,
        source: &Word,
        target: Option<&[u8]>,
    ) -> Result<()> {
        let manner = manner.or(self.manner);
        let pattern = self.pattern(source);
        let found = glob::expand(&self.files, &pattern);
        if found.is_empty() {
            let plain = shown(&glob::plain(&pattern));
            return Err(Failure::Because(format!("File \"{plain}\" not found.")));
        }
        let into = target.is_some_and(local::is_directory);
        if found.len() > 1 && target.is_some() && !into {
            let target = shown(target.unwrap_or_default());
            return Err(Failure::Because(format!(
                "Multiple source paths, but destination \"{target}\" is not a directory"
            )));
        }
        let mut outcome = Ok(());
        for file in &found {
            if self.mover.is_interrupted() {
                return Err(Failure::Told);
            }
            let to = destination(&file.path, target, into);
            let verb = if manner.resume { "Resuming" } else { "Fetching" };
            self.say(&format!("{verb} {} to {}", shown(&file.path), shown(&to)));
            let done = match file.is_directory && manner.recursive {
                true => self.get_tree(&file.path, &to, manner),
                false => self.get_file(&file.path, &file.stat, &Place::Named(&to), manner),
            };
            outcome = self.note(done, outcome)?;
        }
        outcome
    }

    fn get_tree(&mut self, from: &[u8], to: &[u8], manner: Manner) -> Result<()> {
        let from = self.files.realpath(from)?;
        let attrs = self.files.stat(&from)?;
        let top = Directory::top(to, attrs.mode)?;
        self.get_directory(&from, &attrs, top, manner, 0)
    }

    /// Goes on after a file that fails; the outcome says that one did.
    fn get_directory(
        &mut self,
        from: &[u8],
        attrs: &Attrs,
        to: Directory,
        manner: Manner,
        depth: usize,
    ) -> Result<()> {
        if depth >= DEEPEST {
            let levels = format!("Maximum directory depth exceeded: {depth} levels");
            return Err(Failure::Because(levels));
        }
        self.print(&format!("Retrieving {}\n", shown(from)))?;
        let mut outcome = Ok(());
        for entry in self.files.list(from)? {
            if self.mover.is_interrupted() {
                return Err(Failure::Told);
            }
            let (name, path) = (entry.name.as_slice(), join(from, &entry.name));
            if name == b"." || name == b".." {
                continue;
            }
            let done = match kind(&entry.attrs) {
                Kind::Directory => to.child(name, entry.attrs.mode).and_then(|child| {
                    self.get_directory(&path, &entry.attrs, child, manner, depth + 1)
                }),
                Kind::Other if is_regular(&entry.attrs) => {
                    self.get_file(&path, &entry.attrs, &Place::Below(&to, name), manner)
                }
                _ => {
                    eprintln!("download \"{}\": not a regular file", shown(&path));
                    Ok(())
                }
            };
            outcome = self.note(done, outcome)?;
        }
        let complete = to.complete(attrs.times.filter(|_| manner.preserve));
        self.note(complete, outcome)?
    }

    fn get_file(
        &mut self,
        from: &[u8],
        attrs: &Attrs,
        to: &Place<'_>,
        manner: Manner,
    ) -> Result<()> {
        if !is_regular(attrs) {
            return Err(Failure::Because(format!("download {}: not a regular file", shown(from))));
        }
        let remote = self.files.open("remote", from, OpenFlags::READ, Attrs::default())?;
        let before = self.mover.look(&remote);
        let done = self.get_open(from, attrs, &remote, to, manner);
        let after = self.mover.look(&remote);
        let closed = self.files.close(remote);
        let (before, after) = (self.mover.seen(&before), self.mover.seen(&after));
        let local = done?;
        closed?;
        if changed(before.as_ref(), after.as_ref()) {
            let from = shown(from);
            return Err(Failure::Because(format!("remote \"{from}\" changed while it was read")));
        }
        finish(&local, attrs, to, manner)
    }

    fn get_open(
        &mut self,
        from: &[u8],
        attrs: &Attrs,
        remote: &Handle,
        to: &Place<'_>,
        manner: Manner,
    ) -> Result<Arc<File>> {
        let local = Arc::new(to.open(attrs.mode.unwrap_or(0o666), manner.resume)?);
        let size = attrs.size.unwrap_or(0);
        let start = if manner.resume { resume_at(&local, to, size)? } else { 0 };
        let mut meter = self.meter(from, start, size);
        let span = Span { local: &local, remote, from: start, size };
        let moved = self.mover.fetch(&span, &mut meter);
        self.close_meter(meter);
        let cut = cut(&local, &moved, start);
        if let Some(wrong) = moved.failed {
            return Err(wrong.failure(|| format!("read remote \"{}\" ", shown(from))));
        }
        cut.map_err(|error| failed("local ftruncate", to, &error))?;
        Ok(local)
    }
}

/// Where to go on: at the end of what is there.
fn resume_at(local: &File, to: &Place<'_>, size: u64) -> Result<u64> {
    let there = local.metadata().map_err(|error| failed("stat local", to, &error))?.len();
    if there > size {
        return Err(Failure::Because(format!(
            "Unable to resume download of \"{}\": local file is larger than remote",
            shown(&to.path())
        )));
    }
    if there == size {
        eprintln!("File \"{}\" was not modified", shown(&to.path()));
    }
    Ok(there)
}

/// Cuts the file to what is whole of it: past a gap there is nothing that `reget` could use.
fn cut(local: &File, moved: &Moved, start: u64) -> std::io::Result<()> {
    let end = moved.end.max(start);
    if local.metadata()?.is_file() && local.metadata()?.len() > end {
        local.set_len(end)?;
    }
    Ok(())
}

/// F9: a file that changed between two looks has come as a mixture. A server that does not tell
/// leaves it at that.
fn changed(before: Option<&Attrs>, after: Option<&Attrs>) -> bool {
    match before.zip(after) {
        Some((before, after)) => {
            before.size != after.size
                || before.times.map(|(_, mtime)| mtime) != after.times.map(|(_, mtime)| mtime)
        }
        None => false,
    }
}

/// Mode, times, and all on disk, as far as asked for.
fn finish(local: &File, attrs: &Attrs, to: &Place<'_>, manner: Manner) -> Result<()> {
    if manner.preserve {
        if let Some(mode) = attrs.mode {
            let mode = rustix::fs::Mode::from_raw_mode(mode & 0o777);
            let set = rustix::fs::fchmod(local, mode);
            set.map_err(|error| failed("local chmod", to, &error.into()))?;
        }
        if let Some(times) = attrs.times {
            let set = rustix::fs::futimens(local, &directory::timestamps(times));
            set.map_err(|error| failed("local set times", to, &error.into()))?;
        }
    }
    if manner.sync {
        local.sync_all().map_err(|error| failed("local sync", to, &error))?;
    }
    Ok(())
}

fn failed(what: &str, to: &Place<'_>, error: &std::io::Error) -> Failure {
    Failure::local(format!("{what} \"{}\"", shown(&to.path())), error)
}

/// Where a source goes: into the target if that is a directory, else to it.
fn destination(source: &[u8], target: Option<&[u8]>, into: bool) -> Path {
    // The contents of `..` go into the target, not beside it.
    let name = match base(source) {
        b".." => b".",
        name => name,
    };
    match target {
        Some(target) if into => join(target, name),
        Some(target) => target.to_vec(),
        None => name.to_vec(),
    }
}

impl Session {
    /// The pattern of a word, made absolute; the current directory in it stands for itself.
    pub(crate) fn pattern(&self, word: &Word) -> Path {
        absolute(word.pattern(), &glob::protect(&self.directory))
    }
}
