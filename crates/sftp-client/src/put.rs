//! `put` and `reput`: files and trees of this side, taken to the server.

use crate::command::{Manner, Path};
use crate::convoy::{Convoy, SMALL};
use crate::escape::shown;
use crate::failure::{Failure, Result};
use crate::files::kind;
use crate::get::DEEPEST;
use crate::glob::{self, Kind};
use crate::local::{self, Here};
use crate::meter::Meter;
use crate::paths::{absolute, base, join};
use crate::session::Session;
use crate::transfer::{Moved, Span, Wrong};
use crate::upload::Upload;
use crate::words::Word;
use sftp::codec::{Attrs, Handle, OpenFlags};
use std::fs::{File, Metadata, OpenOptions};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::sync::Arc;

/// A file here, open.
pub(crate) struct Source {
    pub(crate) path: Path,
    pub(crate) file: Arc<File>,
    /// As it was when it was opened.
    pub(crate) stat: Metadata,
    /// What the file there is to be like.
    pub(crate) attrs: Attrs,
}

impl Source {
    /// `follow` a link that the user named; none that stands in a tree.
    fn open(from: &[u8], manner: Manner, follow: bool) -> Result<Self> {
        let nofollow = rustix::fs::OFlags::NOFOLLOW.bits().cast_signed();
        let mut options = OpenOptions::new();
        options.read(true).custom_flags(if follow { 0 } else { nofollow });
        let file = options.open(local::path(from));
        let file = file.map_err(|error| failed("open local", from, &error))?;
        let stat = file.metadata().map_err(|error| failed("fstat local", from, &error))?;
        if !stat.is_file() {
            let from = shown(from);
            return Err(Failure::Because(format!("local \"{from}\" is not a regular file")));
        }
        let attrs = attributes(&stat, 0o777, manner);
        Ok(Self { path: from.to_vec(), file: Arc::new(file), stat, attrs })
    }
}

impl Session {
    /// Everything that `source` stands for.
    pub(crate) fn put(
        &mut self,
        manner: Manner,
        source: &Word,
        target: Option<&[u8]>,
    ) -> Result<()> {
        let manner = manner.or(self.manner);
        let target = target.map(|target| absolute(target, &self.directory));
        let found = glob::expand(&Here, source.pattern())?;
        let mut sources: Vec<(Path, bool)> =
            found.into_iter().map(|found| (found.path, found.is_directory)).collect();
        if sources.is_empty() {
            // Whatever opening it says about that.
            sources.push((glob::plain(source.pattern()), false));
        }
        let into = target.as_ref().is_some_and(|target| self.files.is_directory(target));
        if sources.len() > 1 && target.is_some() && !into {
            let target = shown(&target.unwrap_or_default());
            return Err(Failure::Because(format!(
                "Multiple paths match, but destination \"{target}\" is not a directory"
            )));
        }
        let mut outcome = Ok(());
        for (source, is_directory) in &sources {
            if self.mover.is_interrupted() {
                return Err(Failure::Told);
            }
            let done = self.put_one(source, *is_directory, target.as_deref(), into, manner);
            outcome = self.note(done, outcome)?;
        }
        outcome
    }

    fn put_one(
        &mut self,
        source: &[u8],
        is_directory: bool,
        target: Option<&[u8]>,
        into: bool,
        manner: Manner,
    ) -> Result<()> {
        let stat = std::fs::metadata(local::path(source));
        stat.map_err(|error| Failure::local(format!("stat {}", shown(source)), &error))?;
        // The contents of `..` go into the target, not beside it.
        let name = match base(source) {
            b".." => b".",
            name => name,
        };
        let to = match target {
            Some(target) if into => join(target, name),
            Some(target) => target.to_vec(),
            None => join(&self.directory, name),
        };
        let verb = if manner.resume { "Resuming upload of" } else { "Uploading" };
        self.say(&format!("{verb} {} to {}", shown(source), shown(&to)));
        match is_directory && manner.recursive {
            true => {
                let to = self.files.realpath(&to).map_err(|failure| match failure {
                    Failure::Because(why) => Failure::Because(format!(
                        "{why}\nupload \"{}\": path canonicalization failed",
                        shown(&to)
                    )),
                    other => other,
                })?;
                let mut convoy = Convoy::default();
                let walked = self.put_directory(&mut convoy, source, &to, manner, 0);
                convoy.end(self, walked)
            }
            false => self.put_file(&Source::open(source, manner, true)?, &to, manner),
        }
    }

    /// Goes on after a file that fails.
    fn put_directory(
        &mut self,
        convoy: &mut Convoy,
        from: &[u8],
        to: &[u8],
        manner: Manner,
        depth: usize,
    ) -> Result<()> {
        if depth >= DEEPEST {
            let levels = format!("Maximum directory depth exceeded: {depth} levels");
            return Err(Failure::Because(levels));
        }
        let stat = std::fs::metadata(local::path(from));
        let stat = stat.map_err(|error| failed("stat local", from, &error))?;
        let line = format!("Entering {}\n", shown(from));
        convoy.then(self, move |session| session.print(&line))?;
        let attrs = attributes(&stat, 0o1777, manner);
        self.make_directory(to, &attrs)?;
        let entries = std::fs::read_dir(local::path(from));
        for entry in entries.map_err(|error| failed("local opendir", from, &error))? {
            if self.mover.is_interrupted() {
                return Err(Failure::Told);
            }
            let entry = entry.map_err(|error| failed("local readdir", from, &error))?;
            let name = entry.file_name().into_vec();
            let (from, to) = (join(from, &name), join(to, &name));
            let done = self.put_entry(convoy, &from, &to, manner, depth);
            convoy.note(self, done)?;
        }
        let to = to.to_vec();
        // As sftp(1): a directory of somebody else's is filled all the same.
        convoy.then(self, move |session| session.files.set(&to, attrs, true).or_else(Failure::tell))
    }

    fn put_entry(
        &mut self,
        convoy: &mut Convoy,
        from: &[u8],
        to: &[u8],
        manner: Manner,
        depth: usize,
    ) -> Result<()> {
        let stat = std::fs::symlink_metadata(local::path(from));
        let stat = stat.map_err(|error| failed("local lstat", from, &error))?;
        if stat.is_dir() {
            return self.put_directory(convoy, from, to, manner, depth + 1);
        }
        if !stat.is_file() {
            let name = shown(base(from));
            return convoy.then(self, move |_| {
                eprintln!("{name}: not a regular file");
                Ok(())
            });
        }
        let source = Source::open(from, manner, false)?;
        let small = SMALL.min(self.mover.burst());
        if manner.resume || source.stat.len() > small || !self.mover.is_free() {
            convoy.drain(self)?;
            return self.put_file(&source, to, manner);
        }
        convoy.make_room(self, source.stat.len())?;
        let can_sync = self.files.can_sync();
        let (upload, token) = Upload::begin(&mut self.mover, source, to, manner, can_sync);
        convoy.begin(Box::new(upload), token);
        Ok(())
    }

    /// Servers have no word for "is there already": a look tells. While it is filled, its owner can
    /// write to it.
    fn make_directory(&mut self, to: &[u8], attrs: &Attrs) -> Result<()> {
        let mut first = attrs.clone();
        first.mode = first.mode.map(|mode| mode | 0o300);
        let Err(why) = self.files.mkdir(to, first) else { return Ok(()) };
        match (why, self.files.stat(to)) {
            (lost @ Failure::Lost(_), _) => Err(lost),
            (_, Ok(attrs)) if kind(&attrs) == Kind::Directory => Ok(()),
            (_, Ok(_)) => {
                let to = shown(to);
                Err(Failure::Because(format!("\"{to}\" exists but is not a directory")))
            }
            (why, Err(_)) => Err(why),
        }
    }

    fn put_file(&mut self, source: &Source, to: &[u8], manner: Manner) -> Result<()> {
        let Source { path: from, file: local, stat, attrs } = source;
        let start = if manner.resume { self.reput_at(from, to, stat.len())? } else { 0 };
        let flags = OpenFlags::WRITE | OpenFlags::CREATE;
        let flags = if manner.resume { flags } else { flags | OpenFlags::TRUNCATE };
        let remote = self.files.open("dest", to, flags, attrs.clone())?;
        let mut meter = self.meter(from, start, stat.len());
        let span = Span { local, remote: &remote, from: start, size: stat.len() };
        let moved = self.send(source, span, &mut meter);
        self.close_meter(meter);
        let done = match moved.failed {
            None => unchanged(local, stat, from)
                .and_then(|()| self.finish_put(&remote, attrs.clone(), manner)),
            Some(wrong) => {
                let failure = wrong.failure(|| format!("write remote \"{}\"", shown(to)));
                self.cut(&remote, moved.end.max(start), &failure);
                Err(failure)
            }
        };
        let closed = self.files.close(remote);
        done.and(closed)
    }

    /// The source up to its end. One that has less than it says, and is as it was, never had more
    /// (/sys has sizes of a page): it is read to its end then, wherever that is.
    fn send(&mut self, source: &Source, span: Span<'_>, meter: &mut Meter) -> Moved {
        let moved = self.mover.send(&span, meter);
        let is_shrunk = moved.failed.as_ref().is_some_and(Wrong::is_shrunk);
        if !is_shrunk || unchanged(&source.file, &source.stat, &source.path).is_err() {
            return moved;
        }
        let end = moved.end.max(span.from);
        self.mover.send(&Span { from: end, size: end, ..span }, meter)
    }

    /// Past a gap there is nothing that `reput` could use.
    fn cut(&self, remote: &Handle, end: u64, failure: &Failure) {
        if !matches!(failure, Failure::Lost(_)) {
            let attrs = Attrs { size: Some(end), ..Attrs::default() };
            // What failed has been said; a server that does not allow this leaves what there is.
            _ = self.files.fset(remote, attrs);
        }
    }

    fn reput_at(&self, from: &[u8], to: &[u8], size: u64) -> Result<u64> {
        let there = self.files.stat(to)?.size.unwrap_or(0);
        if there >= size {
            return Err(Failure::Because(format!(
                "resume \"{}\": destination file same size or larger",
                shown(from)
            )));
        }
        Ok(there)
    }

    fn finish_put(&self, remote: &Handle, attrs: Attrs, manner: Manner) -> Result<()> {
        if manner.preserve {
            // As sftp(1): the content is there, and a server that keeps no attributes says so.
            self.files.fset(remote, attrs).or_else(Failure::tell)?;
        }
        if manner.sync {
            self.files.sync(remote)?;
        }
        Ok(())
    }
}

/// F9: a file that changed while it was read has gone as a mixture.
pub(crate) fn unchanged(local: &File, before: &Metadata, from: &[u8]) -> Result<()> {
    let after = local.metadata().map_err(|error| failed("fstat local", from, &error))?;
    let key = |stat: &Metadata| (stat.len(), stat.mtime(), stat.mtime_nsec());
    if key(before) == key(&after) {
        return Ok(());
    }
    Err(Failure::Because(format!("local \"{}\" changed while it was sent", shown(from))))
}

/// What a new file or directory is to be like.
fn attributes(stat: &Metadata, mask: u32, manner: Manner) -> Attrs {
    let time =
        |seconds: i64| u32::try_from(seconds).unwrap_or(if seconds < 0 { 0 } else { u32::MAX });
    let times = (time(stat.atime()), time(stat.mtime()));
    Attrs {
        mode: Some(stat.mode() & mask),
        times: manner.preserve.then_some(times),
        ..Attrs::default()
    }
}

fn failed(what: &str, path: &[u8], error: &std::io::Error) -> Failure {
    Failure::local(format!("{what} \"{}\"", shown(path)), error)
}
