//! Walk: scans the sources while lanes already work, and makes the directories of the target.
//!
//! ```text
//! directory   made at the target -> listed at the source -> its names
//! name        F1 -> filter -> directory, link, special, file -> shard -> queue
//! ```
//! Directories are under way together: a wide tree costs a few round trips, not some for each.
//! A target directory that this run made has nothing in it, so its files need not be looked for.

mod listed;

use super::control::Control;
use super::copying::Copying;
use super::lane::At;
use super::local::{self, WORKABLE};
use super::meta::{Kind, Meta, Setting};
use super::names::{self, Listing};
use super::queue::Entry;
use super::side::{Answered, Ask, Fault, Open, Told};
use super::xattrs;
use crate::observe::{Act, Event};
use sftp::codec::Xattrs;
use std::collections::hash_map::Entry::{Occupied, Vacant};
use std::collections::{HashMap, HashSet};
use std::os::unix::ffi::OsStrExt;

/// Directories inside each other: an endless tree ends somewhere.
const DEEPEST: usize = 256;
/// Names found between two reports of how many.
const REPORT: u64 = 256;
/// What has the name of a directory, and is none.
const IN_THE_WAY: &str = "is in the way: not a directory";

/// Stands for a path, in a quarter of the memory: no two paths have the same.
type Fingerprint = [u8; 16];

/// A source that was looked at, and what it is to be called.
pub(super) struct Root {
    pub(super) from: Vec<u8>,
    pub(super) to: Vec<u8>,
    pub(super) meta: Meta,
}

/// A name that the scan came by.
struct Found {
    from: Vec<u8>,
    to: Vec<u8>,
    /// Bytes of `to` before what is below the source.
    above: usize,
    /// Directories between the source and this.
    depth: usize,
    /// Nothing is there at the target, or this run made it and nothing is in it.
    fresh: bool,
}

/// A directory under way.
struct Directory {
    at: Found,
    meta: Meta,
    listing: Listing,
    /// Of the source, while it is listed.
    open: Option<Open>,
    /// The listing started again on a new connection: names come again.
    again: bool,
    /// Why it could not be made; it may be there already.
    refused: Option<Fault>,
}

impl Found {
    /// A name in this directory.
    fn inside(&self, name: &[u8]) -> Self {
        let (from, to) = (names::join(&self.from, name), names::join(&self.to, name));
        Self { from, to, above: self.above, depth: self.depth + 1, fresh: self.fresh }
    }

    /// Its path below the source.
    fn below(&self) -> &[u8] {
        let below = self.to.get(self.above..).unwrap_or_default();
        below.strip_prefix(b"/").unwrap_or(below)
    }
}

impl Directory {
    fn new(at: Found, meta: Meta) -> Self {
        let listing = Listing::default();
        Self { at, meta, listing, open: None, again: false, refused: None }
    }
}

/// What an answer is for.
enum Step {
    Made(Directory),
    There(Directory),
    /// With the mode that it had.
    Unlocked(Directory, u32),
    Opened(Directory),
    Listed(Directory),
    XattrsTold(Vec<u8>),
    Followed(Found),
    Closed,
}

pub(super) struct Walk<'c, 'a> {
    copying: &'c Copying<'a>,
    control: Control<'c>,
    /// What is called by name when it is lost.
    host: &'c str,
    steps: HashMap<u64, Step>,
    /// Directories that nothing was asked for yet, the last found first: memory is bounded by
    /// depth times width.
    waiting: Vec<Directory>,
    /// First names of files that have several.
    nodes: HashMap<(u64, u64), Vec<u8>>,
    taken: &'c mut Taken,
    found: (u64, u64),
}

/// Targets that files have, of this leg and of those before.
#[derive(Default)]
pub(super) struct Taken {
    /// One may come twice; elsewhere nothing is noted.
    repeats: bool,
    /// Sources so far with their hosts, the one that is scanned last.
    sources: Vec<String>,
    /// Targets of files, and how many sources there were by then.
    files: HashMap<Fingerprint, usize>,
}

impl Taken {
    pub(super) fn new(legs: usize) -> Self {
        Self { repeats: legs > 1, ..Self::default() }
    }
}

impl<'c, 'a> Walk<'c, 'a> {
    pub(super) fn new(
        copying: &'c Copying<'a>,
        control: Control<'c>,
        (host, taken): (&'c str, &'c mut Taken),
    ) -> Self {
        Self {
            copying,
            control,
            host,
            steps: HashMap::new(),
            waiting: Vec::new(),
            nodes: HashMap::new(),
            taken,
            found: (0, 0),
        }
    }

    /// All of it, then the queue knows that no more will come. Its channel is for what comes last.
    pub(super) fn run(mut self, roots: Vec<Root>) -> Control<'c> {
        self.taken.repeats |= self.copying.options.list.is_some() || overlap(&roots);
        for root in roots {
            let name = self.copying.naming.name(At::Source, &root.from);
            self.taken.sources.push(crate::shown(&name));
            self.root(root);
            self.go();
            if self.control.over().is_some() {
                break;
            }
        }
        if let Some(why) = self.control.over() {
            self.copying.lost(self.host, why.to_owned());
        }
        self.tell_found();
        self.copying.sync(&mut self.control.ends.target);
        self.copying.observer.observe(&Event::Scanned);
        self.copying.queue.scanned();
        self.control
    }

    fn root(&mut self, root: Root) {
        let Root { from, to, meta } = root;
        let at = Found { above: to.len(), from, to, depth: 0, fresh: false };
        match (meta.kind, &self.copying.options.list) {
            (Kind::Directory, Some(_)) => self.listed_names(&at.from, &at.to, &meta),
            (Kind::Directory, None) if self.copying.options.recursive => self.directory(at, meta),
            (Kind::Directory, None) => self.fault(&at.from, "not a regular file"),
            _ => self.file(at, meta),
        }
    }

    /// Asks and answers until no directory is left.
    fn go(&mut self) {
        loop {
            while self.control.has_room()
                && let Some(directory) = self.waiting.pop()
            {
                self.make(directory);
            }
            let answer = self.control.answer();
            if self.is_over() {
                return;
            }
            let Some((token, answer)) = answer else {
                if self.waiting.is_empty() {
                    return;
                }
                continue;
            };
            if let Some(step) = self.steps.remove(&token) {
                self.step(step, answer);
            }
        }
    }

    /// Nothing more can be found, or is wanted.
    fn is_over(&self) -> bool {
        self.control.over().is_some() || self.copying.queue.is_stopped()
    }

    fn ask(&mut self, at: At, ask: Ask, step: Step) {
        let token = self.control.ask(at, ask);
        self.steps.insert(token, step);
    }

    fn directory(&mut self, at: Found, meta: Meta) {
        match at.depth > DEEPEST {
            true => self.fault(&at.from, "directories too deep inside each other"),
            false => self.waiting.push(Directory::new(at, meta)),
        }
    }

    fn make(&mut self, mut directory: Directory) {
        let to = directory.at.to.clone();
        if to.is_empty() {
            // The root itself, which is there.
            directory.at.fresh = false;
            return self.list(directory);
        }
        if self.copying.options.dry_run {
            let (act, path) = (Act::MakeDirectory, to.as_slice());
            return match directory.at.fresh {
                true => {
                    self.copying.observer.observe(&Event::Would { act, path, size: 0 });
                    self.list(directory);
                }
                false => self.look(directory),
            };
        }
        let mode = (directory.meta.mode & 0o777 & !self.copying.umask) | WORKABLE;
        self.ask(At::Target, Ask::Mkdir(to, mode), Step::Made(directory));
    }

    /// What stands at the target already. F2: only what the user named may be a link to a directory.
    fn look(&mut self, directory: Directory) {
        let to = directory.at.to.clone();
        let ask = if directory.at.depth == 0 { Ask::Stat(to) } else { Ask::Lstat(to) };
        self.ask(At::Target, ask, Step::There(directory));
    }

    fn step(&mut self, step: Step, answer: Answered) {
        match (step, answer) {
            (Step::Made(mut directory), Ok(_)) => {
                directory.at.fresh = true;
                self.copying.report().directories += 1;
                self.list(directory);
            }
            (Step::Made(mut directory), Err(fault)) => {
                directory.refused = Some(fault);
                self.look(directory);
            }
            (Step::There(mut directory), Ok(Told::Meta(meta))) if meta.kind == Kind::Directory => {
                directory.at.fresh = false;
                match self.unlocking(&directory.at.to, &meta) {
                    Some(ask) => self.ask(At::Target, ask, Step::Unlocked(directory, meta.mode)),
                    None => self.list(directory),
                }
            }
            (Step::Unlocked(directory, mode), answer) => {
                self.note_unlocked(&directory.at.to, mode, &answer);
                self.list(directory);
            }
            (Step::There(mut directory), Err(Fault::Missing)) if self.copying.options.dry_run => {
                directory.at.fresh = true;
                self.make(directory);
            }
            (Step::There(directory), Ok(_)) => {
                self.copying.fault(At::Target, &directory.at.to, &Fault::other(IN_THE_WAY))
            }
            (Step::There(directory), Err(Fault::Missing)) => {
                let fault = unmade(&directory.refused.unwrap_or(Fault::Missing));
                self.copying.fault(At::Target, &directory.at.to, &fault);
            }
            (Step::There(directory), Err(fault)) => {
                self.copying.fault(At::Target, &directory.at.to, &fault)
            }
            (Step::Opened(mut directory), Ok(Told::Open(open))) => {
                if self.wants_xattrs() {
                    let told = Step::XattrsTold(directory.at.to.clone());
                    self.ask(At::Source, Ask::GetXattrs(open.clone()), told);
                }
                directory.open = Some(open);
                self.more(directory);
            }
            (Step::Listed(directory), Ok(Told::Names(names))) => self.names(directory, names),
            (Step::Listed(directory), Err(Fault::End)) => self.close(directory),
            // The connection broke: from the start, without what was seen.
            (Step::Listed(directory), Err(Fault::Lost(_))) if !directory.again => {
                self.list(Directory { again: true, open: None, ..directory });
            }
            (Step::Opened(directory) | Step::Listed(directory), other) => {
                let fault = other.err().unwrap_or_else(Fault::unfit);
                self.copying.fault(At::Source, &directory.at.from, &fault);
            }
            (Step::Followed(at), Ok(Told::Meta(meta))) => self.known(at, meta),
            (Step::Followed(at), answer) => {
                self.copying.fault(At::Source, &at.from, &answer.err().unwrap_or(Fault::Missing));
            }
            (Step::XattrsTold(to), answer) => self.note_xattrs(to, answer),
            (Step::Closed, _) => {}
        }
    }

    /// What makes a directory that is there workable, if it is not: `-p` may have made it so before.
    fn unlocking(&self, to: &[u8], meta: &Meta) -> Option<Ask> {
        let locked = meta.mode & WORKABLE != WORKABLE && !self.copying.options.dry_run;
        let setting = Setting { mode: Some(meta.mode | WORKABLE), ..Setting::default() };
        locked.then(|| Ask::SetPath(to.to_vec(), setting))
    }

    /// Where that is refused, others may work all the same. With `-p` the source's mode is set anyway.
    fn note_unlocked(&self, to: &[u8], mode: u32, answer: &Answered) {
        if answer.is_ok() && !self.copying.options.preserve {
            self.copying.late().unlocked.push((to.to_vec(), mode));
        }
    }

    /// Lists the source's directory: here at once, elsewhere some names at a time.
    fn list(&mut self, directory: Directory) {
        let late = self.copying.options.preserve || directory.at.fresh;
        if late && !directory.again && !self.copying.options.dry_run {
            let noted = (directory.at.to.clone(), directory.meta);
            self.copying.late().directories.push(noted);
        }
        if self.control.ends.source.is_remote() {
            let from = directory.at.from.clone();
            return self.ask(At::Source, Ask::Opendir(from), Step::Opened(directory));
        }
        let mut directory = directory;
        if self.wants_xattrs() {
            let told = xattrs_of(&directory.at.from);
            self.note_xattrs(directory.at.to.clone(), told);
        }
        match std::fs::read_dir(local::path(&directory.at.from)) {
            Err(error) => self.copying.fault(At::Source, &directory.at.from, &Fault::from(error)),
            Ok(names) => {
                for name in names {
                    match name {
                        Ok(name) => self.local_name(&mut directory, name.file_name().as_bytes()),
                        Err(error) => {
                            self.copying.fault(At::Source, &directory.at.from, &Fault::from(error))
                        }
                    }
                }
            }
        }
    }

    fn wants_xattrs(&self) -> bool {
        let options = self.copying.options;
        options.preserve && !options.dry_run && self.control.ends.source.has().get_xattrs
    }

    /// Set when nothing in the directory changes any more.
    fn note_xattrs(&self, to: Vec<u8>, answer: Answered) {
        let kept = self.copying.kept(&to, answer);
        if !kept.is_empty() && !to.is_empty() {
            self.copying.late().xattrs.push((to, kept));
        }
    }

    fn local_name(&mut self, directory: &mut Directory, name: &[u8]) {
        let from = names::join(&directory.at.from, name);
        match local::stat(&from, false) {
            Ok(meta) => self.name(directory, name, meta),
            Err(error) => self.copying.fault(At::Source, &from, &Fault::from(error)),
        }
    }

    fn more(&mut self, directory: Directory) {
        match directory.open.clone() {
            Some(open) => self.ask(At::Source, Ask::Readdir(open), Step::Listed(directory)),
            None => self.copying.fault(At::Source, &directory.at.from, &Fault::Missing),
        }
    }

    fn close(&mut self, directory: Directory) {
        if let Some(open) = directory.open {
            self.ask(At::Source, Ask::Close(open), Step::Closed);
        }
    }

    /// F1: what a server lists is one component each, and comes once.
    fn names(&mut self, mut directory: Directory, names: Vec<sftp::codec::Name>) {
        // No names are no answer, and the end to others as well: never a reason to ask again (F6).
        if names.is_empty() {
            return self.close(directory);
        }
        for name in names {
            match directory.listing.admit(&name.name) {
                Ok(true) => match Meta::told(&name.attrs) {
                    Some(meta) => self.name(&mut directory, &name.name, meta),
                    None => self.look_closer(&directory, &name.name),
                },
                Ok(false) => {}
                Err(names::BadName::Twice) if directory.again => {}
                Err(bad) => {
                    // Nothing else that it says of this directory is believed.
                    self.copying.fault(
                        At::Source,
                        &directory.at.from,
                        &Fault::other(bad.to_string()),
                    );
                    return self.close(directory);
                }
            }
        }
        self.more(directory);
    }

    /// A name of which the listing did not say enough.
    fn look_closer(&mut self, directory: &Directory, name: &[u8]) {
        let Some(at) = self.admitted(directory, name, false) else { return };
        let ask = if self.copying.options.preserve { Ask::Lstat } else { Ask::Stat };
        self.ask(At::Source, ask(at.from.clone()), Step::Followed(at));
    }

    /// A name in a directory, unless the user excludes it.
    fn admitted(&self, directory: &Directory, name: &[u8], is_directory: bool) -> Option<Found> {
        let at = directory.at.inside(name);
        self.copying.options.filter.allows(at.below(), is_directory).then_some(at)
    }

    /// Whether the user does not exclude a name of which it is known what it is.
    fn allows(&self, at: &Found, meta: &Meta) -> bool {
        self.copying.options.filter.allows(at.below(), meta.kind == Kind::Directory)
    }

    fn name(&mut self, directory: &mut Directory, name: &[u8], meta: Meta) {
        let admitted = self.admitted(directory, name, meta.kind == Kind::Directory);
        let Some(at) = admitted else { return };
        if meta.kind != Kind::Symlink || self.copying.options.preserve {
            return self.known(at, meta);
        }
        // Followed, as scp does.
        if self.control.ends.source.is_remote() {
            return self.ask(At::Source, Ask::Stat(at.from.clone()), Step::Followed(at));
        }
        match local::stat(&at.from, true) {
            Ok(meta) => self.known(at, meta),
            Err(error) => self.copying.fault(At::Source, &at.from, &Fault::from(error)),
        }
    }

    fn known(&mut self, at: Found, meta: Meta) {
        let ours = |shard: crate::shard::Shard| shard.holds(at.below());
        if meta.kind == Kind::Directory {
            self.directory(at, meta);
        } else if self.copying.options.shard.is_none_or(ours) {
            self.file(at, meta);
        }
    }

    fn file(&mut self, at: Found, meta: Meta) {
        if meta.kind == Kind::Special {
            return self.fault(&at.from, "not a regular file");
        }
        if self.is_taken(&at) {
            return;
        }
        let Found { from, to, fresh, .. } = at;
        let options = self.copying.options;
        // A dry run links nothing: it looks at every name.
        let linkable =
            options.preserve && !options.dry_run && self.control.ends.target.has().hardlink;
        if let (Kind::File, Some(node)) = (meta.kind, meta.linked.filter(|_| linkable)) {
            if let Some(first) = self.nodes.get(&node) {
                let link = (first.clone(), to);
                return self.copying.late().links.push(link);
            }
            self.nodes.insert(node, to.clone());
        }
        let size = if meta.kind == Kind::File { meta.size } else { 0 };
        self.found = (self.found.0 + 1, self.found.1 + size);
        if self.found.0 >= REPORT || self.found.1 > 64 << 20 {
            self.tell_found();
        }
        self.copying.queue.push(Entry::new(Root { from, to, meta }, fresh));
    }

    /// Whether a file's target was found before. From the same source it is the same file; from
    /// another one it is an error, as both would have one part file (R1).
    fn is_taken(&mut self, at: &Found) -> bool {
        if !self.taken.repeats {
            return false;
        }
        let Taken { sources, files, .. } = &mut *self.taken;
        let by = match files.entry(fingerprint(&at.to)) {
            Vacant(free) => {
                free.insert(sources.len());
                return false;
            }
            Occupied(by) => *by.get(),
        };
        if by != sources.len() {
            let other = by.checked_sub(1).and_then(|at| sources.get(at)).map_or("", String::as_str);
            let why = format!("{other} has a file with the same target");
            self.fault(&at.from, &why);
        }
        true
    }

    fn tell_found(&mut self) {
        let (files, bytes) = std::mem::take(&mut self.found);
        if files > 0 {
            self.copying.observer.observe(&Event::Found { files, bytes });
        }
    }

    /// Of a source.
    fn fault(&self, path: &[u8], why: &str) {
        self.copying.fault(At::Source, path, &Fault::other(why));
    }
}

/// Whether files of two sources may have the same target: they are called alike, or what is in one
/// goes beside the others.
fn overlap(roots: &[Root]) -> bool {
    let mut names = HashSet::new();
    roots.len() > 1 && roots.iter().any(|root| root.to.is_empty() || !names.insert(&root.to))
}

fn fingerprint(path: &[u8]) -> Fingerprint {
    let mut short = Fingerprint::default();
    blake3::Hasher::new().update(path).finalize_xof().fill(&mut short);
    short
}

/// Why a directory is not there.
fn unmade(refused: &Fault) -> Fault {
    Fault::other(format!("the directory cannot be made: {refused}"))
}

/// Of a directory of this host, as a server would tell.
fn xattrs_of(directory: &[u8]) -> Answered {
    let pairs = xattrs::of(&local::open(directory)?)?;
    Ok(Told::Extended(Xattrs(pairs).encode()))
}
