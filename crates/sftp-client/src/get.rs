//! `get` and `reget`: files and trees of the server, brought here.

use crate::command::{Manner, Path};
use crate::convoy::{Convoy, SMALL};
use crate::directory::{self, Directory};
use crate::download::Download;
use crate::escape::shown;
use crate::failure::{Failure, Result};
use crate::files::{is_regular, kind};
use crate::glob::{self, Kind};
use crate::local;
use crate::names::Once;
use crate::paths::{absolute, base, join};
use crate::session::Session;
use crate::transfer::Span;
use crate::words::Word;
use sftp::codec::{Attrs, Handle, Name, OpenFlags};
use std::fs::File;
use std::rc::Rc;
use std::sync::Arc;

/// Deepest tree that is followed, in both directions: sftp(1)'s bound. A server could otherwise
/// send us down for ever.
pub(crate) const DEEPEST: usize = 64;

/// Where a file goes.
pub(crate) enum Place {
    /// To a path that the user named.
    Named(Path),
    /// Into a directory that we hold, under a name of one component.
    Below(Rc<Directory>, Path),
}

impl Place {
    pub(crate) fn open(&self, mode: u32, keep: bool) -> Result<File> {
        match self {
            Self::Named(path) => directory::create(path, mode, keep),
            Self::Below(directory, name) => directory.file(name, mode, keep),
        }
    }

    fn path(&self) -> Path {
        match self {
            Self::Named(path) => path.clone(),
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
        let found = glob::expand(&self.files, &pattern)?;
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
                false => self.get_file(&file.path, &file.stat, &Place::Named(to), manner),
            };
            outcome = self.note(done, outcome)?;
        }
        outcome
    }

    fn get_tree(&mut self, from: &[u8], to: &[u8], manner: Manner) -> Result<()> {
        let from = self.files.realpath(from)?;
        let attrs = self.files.stat(&from)?;
        let top = Directory::top(to, attrs.mode)?;
        let mut convoy = Convoy::default();
        let walked = self.get_directory(&mut convoy, &from, &attrs, top, manner, 0);
        convoy.end(self, walked)
    }

    /// Goes on after a file that fails. Names are taken as they come, so that a directory without
    /// end costs no memory.
    fn get_directory(
        &mut self,
        convoy: &mut Convoy,
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
        let line = format!("Retrieving {}\n", shown(from));
        convoy.then(self, move |session| session.print(&line))?;
        let to = Rc::new(to);
        let (mut listing, mut once) = (self.files.open_listing(from)?, Once::default());
        while let Some(names) = listing.next()? {
            for entry in names {
                if self.mover.is_interrupted() {
                    return Err(Failure::Told);
                }
                if !once.is_new(&entry.name) {
                    return Err(listing.repeats(&entry.name));
                }
                let done = self.get_entry(convoy, from, entry, &to, manner, depth);
                convoy.note(self, done)?;
            }
        }
        drop(listing);
        let times = attrs.times.filter(|_| manner.preserve);
        convoy.then(self, move |_| to.complete(times))
    }

    fn get_entry(
        &mut self,
        convoy: &mut Convoy,
        from: &[u8],
        entry: Name,
        to: &Rc<Directory>,
        manner: Manner,
        depth: usize,
    ) -> Result<()> {
        let Name { name, attrs, .. } = entry;
        let path = join(from, &name);
        match kind(&attrs) {
            _ if name == b"." || name == b".." => Ok(()),
            Kind::Directory => {
                let child = to.child(&name, attrs.mode)?;
                self.get_directory(convoy, &path, &attrs, child, manner, depth + 1)
            }
            Kind::Other if is_regular(&attrs) => {
                let to = Place::Below(Rc::clone(to), name);
                self.get_in_company(convoy, &path, &attrs, to, manner)
            }
            _ => convoy.then(self, move |_| {
                eprintln!("download \"{}\": not a regular file", shown(&path));
                Ok(())
            }),
        }
    }

    fn get_in_company(
        &mut self,
        convoy: &mut Convoy,
        from: &[u8],
        attrs: &Attrs,
        to: Place,
        manner: Manner,
    ) -> Result<()> {
        let size = attrs.size.unwrap_or(u64::MAX);
        if manner.resume || size > SMALL.min(self.mover.burst()) || !self.mover.is_free() {
            convoy.drain(self)?;
            return self.get_file(from, attrs, &to, manner);
        }
        convoy.make_room(self, size)?;
        let (download, token) = Download::begin(&mut self.mover, from, attrs, to, manner);
        convoy.begin(Box::new(download), token);
        Ok(())
    }

    fn get_file(&mut self, from: &[u8], attrs: &Attrs, to: &Place, manner: Manner) -> Result<()> {
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
        changed(before.as_ref(), after.as_ref(), from)?;
        finish(&local, opened(before.as_ref(), attrs), to, manner)
    }

    fn get_open(
        &mut self,
        from: &[u8],
        attrs: &Attrs,
        remote: &Handle,
        to: &Place,
        manner: Manner,
    ) -> Result<Arc<File>> {
        let local = Arc::new(to.open(attrs.mode.unwrap_or(0o666), manner.resume)?);
        let size = attrs.size.unwrap_or(0);
        let start = if manner.resume { resume_at(&local, to, size)? } else { 0 };
        let mut meter = self.meter(from, start, size);
        let span = Span { local: &local, remote, from: start, size };
        let moved = self.mover.fetch(&span, &mut meter);
        self.close_meter(meter);
        let cut = cut(&local, moved.end.max(start));
        if let Some(wrong) = moved.failed {
            let here = wrong.is_here();
            return Err(wrong.failure(|| moving(here, from, to)));
        }
        cut.map_err(|error| failed("local ftruncate", to, &error))?;
        Ok(local)
    }
}

/// Where to go on: at the end of what is there.
fn resume_at(local: &File, to: &Place, size: u64) -> Result<u64> {
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
pub(crate) fn cut(local: &File, end: u64) -> std::io::Result<()> {
    if local.metadata()?.is_file() && local.metadata()?.len() > end {
        local.set_len(end)?;
    }
    Ok(())
}

/// F9: a file that changed between two looks has come as a mixture. A server that does not tell
/// leaves it at that.
pub(crate) fn changed(before: Option<&Attrs>, after: Option<&Attrs>, from: &[u8]) -> Result<()> {
    let mtime = |attrs: &Attrs| {
        let below = attrs.nanoseconds().map(|(_, mtime)| mtime);
        attrs.times.map(|(_, mtime)| (mtime, below))
    };
    let key = |attrs: &Attrs| (attrs.size, mtime(attrs));
    match before.zip(after) {
        Some((before, after)) if key(before) != key(after) => {
            let from = shown(from);
            Err(Failure::Because(format!("remote \"{from}\" changed while it was read")))
        }
        _ => Ok(()),
    }
}

/// What the file was like when it was read, or else what the listing had: it may have been replaced
/// in between.
pub(crate) fn opened<'a>(look: Option<&'a Attrs>, listed: &'a Attrs) -> &'a Attrs {
    look.filter(|look| look.times.is_some() && look.mode.is_some()).unwrap_or(listed)
}

/// Mode, times, and all on disk, as far as asked for; and what the file system reports only when
/// the file is closed. Attributes that cannot be kept are told, as sftp(1) does it: the content is
/// there.
pub(crate) fn finish(local: &File, attrs: &Attrs, to: &Place, manner: Manner) -> Result<()> {
    if manner.preserve {
        if let Some(mode) = attrs.mode {
            let mode = rustix::fs::Mode::from_raw_mode(mode & 0o777);
            let set = rustix::fs::fchmod(local, mode);
            set.or_else(|error| failed("local chmod", to, &error.into()).tell())?;
        }
        if let Some(times) = attrs.times {
            let set = rustix::fs::futimens(local, &directory::timestamps(times));
            set.or_else(|error| failed("local set times", to, &error.into()).tell())?;
        }
    }
    if manner.sync {
        local.sync_all().map_err(|error| failed("local sync", to, &error))?;
    }
    sftp::flush(local).map_err(|error| failed("local close", to, &error.into()))
}

pub(crate) fn failed(what: &str, to: &Place, error: &std::io::Error) -> Failure {
    Failure::local(format!("{what} \"{}\"", shown(&to.path())), error)
}

/// What failed when content came: the writing `here`, or the reading there.
pub(crate) fn moving(here: bool, from: &[u8], to: &Place) -> String {
    match here {
        true => format!("write local \"{}\"", shown(&to.path())),
        false => format!("read remote \"{}\" ", shown(from)),
    }
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
