//! Plan: which host, which root, which names, as scp(1) means them; before anything is copied.

use super::control::Control;
use super::find::{find, homed, remote_path, stat};
use super::fleet;
use super::glob;
use super::journal::{self, Journal};
use super::lane::{At, Ends};
use super::local;
use super::meta::{Kind, Meta};
use super::names;
use super::naming::{self, Naming};
use super::route::{Direction, End, Route, Slot, Trouble};
use super::side::{Ask, Fault, Told};
use super::walk::Root;
use crate::options::{Amount, Host, Options, Place, Remote, Way};
use crate::report::{Failure, What};
use login::Log;
use std::collections::HashMap;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::sync::atomic::AtomicU32;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Bytes of a test that takes its time: more than any path carries.
const WITHOUT_END: u64 = 1 << 60;

/// Hosts that are known already: a passphrase is asked once. And where journals are kept.
pub(super) struct Hosts<'a> {
    known: Vec<(Arc<Host>, remote::Host)>,
    state: Option<&'a Path>,
}

impl<'a> Hosts<'a> {
    pub(super) fn new(state: Option<&'a Path>) -> Self {
        Self { known: Vec::new(), state }
    }

    fn get(&mut self, host: &Arc<Host>) -> std::io::Result<remote::Host> {
        if let Some((_, known)) = self.known.iter().find(|(known, _)| Arc::ptr_eq(known, host)) {
            return Ok(known.clone());
        }
        let new = match &host.way {
            Way::Ssh(conf) => {
                let log = Log::new("lhscp", conf.log_level, None)?;
                remote::Host::ssh(conf.as_ref().clone(), Arc::new(log))
            }
            Way::Program { program, args } => remote::Host::program(program, args.clone()),
        };
        self.known.push((Arc::clone(host), new.clone()));
        Ok(new)
    }
}

/// Sources that follow each other and are on the same host.
pub(super) fn legs(sources: &[Place]) -> impl Iterator<Item = &[Place]> {
    sources.chunk_by(|one, other| match (one.host(), other.host()) {
        (Some(one), Some(other)) => Arc::ptr_eq(one, other),
        (None, None) => true,
        _ => false,
    })
}

/// Sources on several hosts that would get the same name. No host is asked: with `-r` they may be
/// directories, which go together, and what patterns stand for is not known. Such files are told of
/// by the scan.
pub(super) fn clash(options: &Options) -> Option<Failure> {
    if options.recursive {
        return None;
    }
    let mut first: HashMap<Vec<u8>, (usize, &Place)> = HashMap::new();
    for (leg, sources) in legs(&options.sources).enumerate() {
        for source in sources {
            let Some(name) = plain_name(source) else { continue };
            let (other, at) = *first.entry(name.clone()).or_insert((leg, source));
            if other != leg {
                let to = names::join(&target_path(&options.target), &name);
                let to = naming::of(&options.target, &to);
                return Some(two_sources(name, to, [at, source].map(named)));
            }
        }
    }
    None
}

/// What a source is called at the target, if that can be told from its path.
fn plain_name(source: &Place) -> Option<Vec<u8>> {
    let path = match source {
        Place::Local(path) => path.as_os_str().as_bytes().to_vec(),
        Place::Remote(Remote { path, .. }) if glob::is_pattern(path) => return None,
        Place::Remote(Remote { path, .. }) => remote_path(&glob::unescaped(path)),
    };
    names::last(&path).map(<[u8]>::to_vec)
}

/// A place in the user's words.
fn named(place: &Place) -> Vec<u8> {
    let path = match place {
        Place::Local(path) => path.as_os_str().as_bytes(),
        Place::Remote(remote) => &remote.path,
    };
    naming::of(place, path)
}

fn two_sources(to: Vec<u8>, name: Vec<u8>, sources: [Vec<u8>; 2]) -> Failure {
    let [one, two] = sources.map(|source| crate::shown(&source));
    let why = format!("it would be the target of two sources: {one} and {two}");
    Failure { what: What::Path(to), name: Some(name), why }
}

/// A copy from one host to one host.
pub(super) struct Leg {
    pub(super) route: Route,
    pub(super) roots: Vec<Root>,
    pub(super) naming: Naming,
    /// The channel that looked, until it is for more.
    pub(super) ends: Option<Ends>,
    /// What is called by name when it is lost.
    pub(super) host: String,
    pub(super) journal: Option<Journal>,
    /// Why there is no journal.
    pub(super) warning: Option<String>,
    /// Sources that are not there.
    pub(super) failures: Vec<Failure>,
    pub(super) rtt: Duration,
}

impl Leg {
    pub(super) fn new(
        options: &Options,
        hosts: &mut Hosts<'_>,
        sources: &[Place],
        slot: &Slot,
    ) -> Result<Self, Failure> {
        let source = sources.first().and_then(Place::host);
        let target = options.target.host();
        let (end, root) = (end(hosts, source, End::Here)?, target_end(hosts, &options.target)?);
        let within = source.zip(target).is_some_and(|(one, other)| Arc::ptr_eq(one, other));
        let connections = AtomicU32::new(0);
        let (fsync, stream) = (options.fsync, None);
        let (source_end, gone) = (end, Mutex::default());
        let route =
            Route { source: source_end, target: root, within, fsync, stream, connections, gone };
        let host = source.or(target).map_or_else(String::new, |host| host.name.clone());
        let (failures, rtt) = (Vec::new(), Duration::ZERO);
        let (journal, warning) = (None, None);
        let (roots, naming, ends) = (Vec::new(), Naming::default(), None);
        let mut leg = Self { route, roots, naming, ends, host, journal, warning, failures, rtt };
        if let Some(amount) = options.test {
            leg.made_up(options, amount, slot)?;
            return Ok(leg);
        }
        leg.look(options, sources, slot, hosts.state)?;
        Ok(leg)
    }

    /// `-t`: nothing is read, nothing is written. A server of ours takes and gives made-up data by
    /// itself, if it is allowed to (`TestSubsystems`); others have devices for that.
    fn made_up(&mut self, options: &Options, amount: Amount, slot: &Slot) -> Result<(), Failure> {
        let size = match amount {
            Amount::Bytes(bytes) => bytes.get(),
            Amount::Time(_) => WITHOUT_END,
        };
        let attrs = sftp::codec::Attrs { size: Some(size), ..Default::default() };
        let (from, to) = (b"/dev/zero".to_vec(), b"dev/null".to_vec());
        let up = matches!(self.route.source, End::Here);
        if up {
            self.route.source = End::Nowhere;
        }
        match &mut self.route.target {
            End::There(_, root) => *root = b"/".to_vec(),
            other => *other = End::Nowhere,
        }
        self.roots.push(Root { from, to, meta: Meta::remote(&attrs) });
        let lost = |trouble: Trouble| trouble.failure(&self.host);
        // What is limited is content, which a stream has none of.
        let streams = options.bwlimit.is_none() && slot.has_streams(&self.route).map_err(lost)?;
        match streams {
            true => self.route.stream = Some(if up { Direction::Up } else { Direction::Down }),
            false => slot.prepare(&self.route, fleet::first_channels(options.lanes)),
        }
        self.rtt = slot.round_trip().unwrap_or_default();
        Ok(())
    }

    /// What is where: one round trip for the target, one for each source.
    fn look(
        &mut self,
        options: &Options,
        sources: &[Place],
        slot: &Slot,
        state: Option<&Path>,
    ) -> Result<(), Failure> {
        let path = target_path(&options.target);
        let unusable = |path: Vec<u8>, why: &Fault| {
            let name = Some(naming::of(&options.target, &path));
            Failure { what: What::Path(path), name, why: why.to_string() }
        };
        let ends = [sources.first().and_then(Place::host), options.target.host()];
        let hosts: Vec<&str> = ends.into_iter().flatten().map(|host| host.name.as_str()).collect();
        // Until its root is known, paths of a target stand for themselves.
        let bare = match &self.route.target {
            End::There(host, _) => End::There(host.clone(), Vec::new()),
            _ => End::Here,
        };
        let below = std::mem::replace(&mut self.route.target, bare);
        let (path, old, roots, ends) = std::thread::scope(|scope| {
            let mut control = Control::open(&self.route, slot)
                .map_err(|trouble| Failure::of_host(&hosts, trouble.words()))?;
            // The first lanes' channels are opened in the round trip that the looks take.
            let route = &self.route;
            scope.spawn(move || slot.prepare(route, fleet::first_channels(options.lanes)));
            let path = match &options.target {
                Place::Local(_) => path,
                Place::Remote(_) => homed(&mut control, At::Target, path)
                    .map_err(|(path, fault)| unusable(path, &fault))?,
            };
            let asked = Instant::now();
            let old = stat(&mut control, At::Target, &path);
            let mut looks = asked.elapsed();
            let mut roots = Vec::new();
            for source in sources {
                if control.over().is_some() {
                    break;
                }
                let asked = Instant::now();
                self.failures.extend(find(&mut control, source, &mut roots));
                // One of the two is on this host.
                looks = looks.max(asked.elapsed());
            }
            let is_directory = old.as_ref().is_ok_and(|old| old.kind == Kind::Directory);
            let own = match self.route.within {
                true => own_target(&mut control, &roots, (&path, is_directory)),
                false => None,
            };
            if let Some(why) = control.over() {
                self.failures.clear();
                return Err(Failure::of_host(&hosts, why.to_owned()));
            }
            if let Some(own) = own {
                let [own_name, name] = [&own, &path].map(|path| naming::of(&options.target, path));
                let why = format!("it would be copied into itself ({})", crate::shown(&name));
                return Err(Failure { what: What::Path(own), name: Some(own_name), why });
            }
            // A program's first answer has its start in it.
            self.rtt = slot.round_trip().unwrap_or(looks);
            Ok((path, old, roots, control.ends))
        })?;
        self.ends = Some(ends);
        self.route.target = below;
        let old = match old {
            Ok(meta) => Some(meta),
            Err(Fault::Missing) => None,
            Err(fault) => return Err(unusable(path, &fault)),
        };
        if let Some(state) = state {
            match open_journal(options, sources, &path, state) {
                Ok(journal) => self.journal = journal,
                Err(why) => self.warning = Some(why),
            }
        }
        self.name(options, sources.first(), (&path, old), roots)
    }

    /// scp's rule: into a directory, or under the target's own name.
    fn name(
        &mut self,
        options: &Options,
        source: Option<&Place>,
        (path, old): (&[u8], Option<Meta>),
        roots: Vec<(Vec<u8>, Meta)>,
    ) -> Result<(), Failure> {
        let is_tree = |(_, meta): &(Vec<u8>, Meta)| meta.kind == Kind::Directory;
        let file = roots.iter().find(|root| options.list.is_some() && !is_tree(root));
        if let Some((path, _)) = file {
            let why = "not a directory, as --files-from needs it".to_owned();
            let name = source.map(|source| naming::of(source, path));
            return Err(Failure { what: What::Path(path.clone()), name, why });
        }
        let is_directory = old.is_some_and(|old| old.kind == Kind::Directory);
        // Names that were found and cannot be looked at count: one file is no new name for several.
        let found = roots.len() + self.failures.len();
        let several = options.sources.len() > 1 || found > 1;
        let failed = |why: &str| Failure {
            what: What::Path(path.to_vec()),
            name: Some(naming::of(&options.target, path)),
            why: why.to_owned(),
        };
        if (several || path.ends_with(b"/")) && !is_directory {
            let one_tree = !several && roots.iter().all(is_tree);
            match old {
                Some(_) => return Err(failed("Not a directory")),
                None if !one_tree => return Err(failed("No such file or directory")),
                None => {}
            }
        }
        let journal = self.journal.as_ref();
        let made_by_us = journal.is_some_and(Journal::made_target) && !several;
        let inside = is_directory && !made_by_us;
        let (root, name) = match inside {
            true => (path.to_vec(), None),
            false => {
                let name = names::last(path).ok_or_else(|| failed("has no name"))?;
                let trimmed = path.get(..path.iter().rposition(|b| *b != b'/').unwrap_or(0) + 1);
                let parent = names::split(trimmed.unwrap_or(path)).0;
                (parent.to_vec(), Some(name.to_vec()))
            }
        };
        // Without -r a directory is an error, and makes none.
        let trees = !roots.is_empty() && roots.iter().all(is_tree);
        let copied = options.recursive || options.list.is_some();
        let makes = name.is_some() && old.is_none() && trees && copied && !options.dry_run;
        if let Some(journal) = journal.filter(|_| makes) {
            // The same command means the same, though its target is there by then.
            let _ = journal.note_made_target();
        }
        match &mut self.route.target {
            End::There(_, at) | End::Below(at) => *at = root,
            _ => {}
        }
        let called = |(from, meta): (Vec<u8>, Meta)| {
            let to = match (&name, &options.list, inside) {
                (_, Some(_), true) => Vec::new(),
                (Some(name), ..) => name.clone(),
                (None, ..) => names::last(&from).unwrap_or_default().to_vec(),
            };
            Root { from, to, meta }
        };
        self.naming = Naming::new(source, &options.target, &self.route.target);
        self.roots = distinct(&self.naming, roots.into_iter().map(called))?;
        Ok(())
    }
}

/// Sources without those that are named twice. Two that would get the same name are refused, as
/// they would share a part file (R1). Directories may: what is in them goes together, and the scan
/// tells which files collide.
fn distinct(naming: &Naming, roots: impl Iterator<Item = Root>) -> Result<Vec<Root>, Failure> {
    let mut distinct: Vec<Root> = Vec::new();
    let mut first: HashMap<Vec<u8>, usize> = HashMap::new();
    for root in roots {
        let at = *first.entry(root.to.clone()).or_insert(distinct.len());
        match distinct.get(at) {
            Some(other) if other.from == root.from => continue,
            Some(other) if [other.meta.kind, root.meta.kind] != [Kind::Directory; 2] => {
                let both = [&other.from, &root.from].map(|from| naming.name(At::Source, from));
                let name = naming.name(At::Target, &root.to);
                return Err(two_sources(root.to, name, both));
            }
            _ => distinct.push(root),
        }
    }
    Ok(distinct)
}

fn end(hosts: &mut Hosts<'_>, host: Option<&Arc<Host>>, here: End) -> Result<End, Failure> {
    let Some(host) = host else { return Ok(here) };
    let found =
        hosts.get(host).map_err(|error| Failure::of_host(&[&host.name], error.to_string()))?;
    Ok(End::There(found, Vec::new()))
}

fn target_end(hosts: &mut Hosts<'_>, target: &Place) -> Result<End, Failure> {
    end(hosts, target.host(), End::Below(Vec::new()))
}

fn target_path(target: &Place) -> Vec<u8> {
    match target {
        Place::Local(path) => path.as_os_str().as_bytes().to_vec(),
        Place::Remote(remote) => remote_path(&remote.path),
    }
}

/// A source that is its own target, or holds it, on the one host that both are on.
fn own_target(
    control: &mut Control<'_>,
    roots: &[(Vec<u8>, Meta)],
    (path, is_directory): (&[u8], bool),
) -> Option<Vec<u8>> {
    let target = real(control, path)?;
    let is_own = |(from, _): &&(Vec<u8>, Meta)| {
        let Some(source) = real(control, from) else { return false };
        let below = target.strip_prefix(source.as_slice());
        let holds = below.is_some_and(|below| below.is_empty() || below.starts_with(b"/"));
        let contents = from.ends_with(b"/.");
        // It is called there as it is called here, be that a link.
        let name = names::last(from).filter(|_| !contents && is_directory);
        let own = |name| real(control, &names::join(&target, name)) == Some(source);
        holds || name.is_some_and(own)
    };
    roots.iter().find(is_own).map(|(from, _)| from.clone())
}

/// Where a path really is, also if only its directory is there.
fn real(control: &mut Control<'_>, path: &[u8]) -> Option<Vec<u8>> {
    let mut ask = |path: &[u8]| match control.call(At::Source, Ask::Realpath(path.to_vec())) {
        Ok(Told::Names(names)) => Some(names.into_iter().next()?.name),
        _ => None,
    };
    ask(path).or_else(|| {
        let directory = path.get(..path.len() - names::split(path).1.len())?;
        let directory = if directory.is_empty() { b"." } else { directory };
        Some(names::join(&ask(directory)?, names::last(path)?))
    })
}

/// The journal of this very copy; without one it works all the same, and is told why.
fn open_journal(
    options: &Options,
    sources: &[Place],
    target: &[u8],
    state: &Path,
) -> Result<Option<Journal>, String> {
    if options.dry_run && !state.exists() {
        return Ok(None);
    }
    let mut ends: Vec<Vec<u8>> = sources.iter().map(called).collect();
    ends.push(match &options.target {
        Place::Local(_) => absolute(target),
        place => called(place),
    });
    ends.push(journal::ourselves());
    // Parts of one tree may be copied by one host at the same time.
    let shard = options.shard.filter(|_| !depends_on_the_first_run(options));
    ends.extend(shard.map(|shard| format!("shard {shard}").into_bytes()));
    let ends: Vec<&[u8]> = ends.iter().map(Vec::as_slice).collect();
    let boot = if options.target.host().is_none() { journal::boot() } else { Vec::new() };
    let lost = |why: &str| format!("no journal, so a stopped copy cannot go on: {why}");
    match Journal::open(state, &ends, &boot, journal::PATIENCE) {
        Ok(Some(journal)) => Ok(Some(journal)),
        Ok(None) => Err(lost("another run of the same command has it")),
        Err(error) => Err(lost(&format!("{}: {error}", state.display()))),
    }
}

/// Whether the target becomes a copy of the one source, or gets one inside, by what made it: then
/// all parts of the tree must know. With `tree/.` both are the same.
fn depends_on_the_first_run(options: &Options) -> bool {
    let [source] = options.sources.as_slice() else { return false };
    let path = match source {
        Place::Local(path) => path.as_os_str().as_bytes(),
        Place::Remote(Remote { path, .. }) => path,
    };
    !matches!(path, b"." | [.., b'/', b'.'])
}

/// What a place is called whatever directory the command is given in.
fn called(place: &Place) -> Vec<u8> {
    match place {
        Place::Local(path) => absolute(path.as_os_str().as_bytes()),
        Place::Remote(Remote { host, path }) => {
            let way = match &host.way {
                Way::Ssh(conf) => format!("{}@{}:{}:", conf.user, conf.host_name, conf.port),
                Way::Program { program, .. } => {
                    let from = std::env::current_dir().unwrap_or_default();
                    format!("{}:{}:{}:", host.name, program.display(), from.display())
                }
            };
            [way.as_bytes(), &remote_path(path)].concat()
        }
    }
}

pub(super) fn absolute(path: &[u8]) -> Vec<u8> {
    let absolute = std::path::absolute(Path::new(local::path(path)));
    absolute.map_or_else(|_| path.to_vec(), |path| path.into_os_string().into_vec())
}
