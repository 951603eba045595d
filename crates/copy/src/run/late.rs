//! Late: what is done when every file is there: further names of files, names that were held back
//! (`--delay-updates`), and the directories' own attributes, deepest first.

use super::control::{Control, UNDER_WAY};
use super::copying::{Copying, Delayed, Late};
use super::lane::At;
use super::local::WORKABLE;
use super::meta::{Kind, Meta, Setting};
use super::names;
use super::side::{Answered, Ask, Fault, Told};
use super::xattrs::Kept;
use crate::observe::Outcome;
use crate::report::{Failure, What};
use std::collections::{HashMap, HashSet};

/// Names in a directory that is searched for part files.
const MANY: usize = 1_000_000;

pub(super) fn run(copying: &Copying<'_>, control: &mut Control<'_>) {
    let mut late = std::mem::take(&mut *copying.late());
    // Together or not at all: what is not in place now, the next run finds whole.
    let complete = copying.report().is_complete();
    match complete || !copying.options.delay_updates {
        true => {
            place(copying, control, std::mem::take(&mut late.delayed));
            // Where the copy stopped, a first name may still be that of the old file.
            if !copying.queue.is_stopped() {
                link(copying, control, late.links);
            }
        }
        false => hold_back(copying, control, &late),
    }
    sweep(copying, control, &late.orphaned);
    clear(copying, control, &late.outlived);
    keep_xattrs(copying, control, late.xattrs);
    set_directories(copying, control, late.directories, late.unlocked);
    copying.sync(&mut control.ends.target);
}

/// Modes, owners and times of directories, deepest first: a mode may leave no way in.
fn set_directories(
    copying: &Copying<'_>,
    control: &mut Control<'_>,
    directories: Vec<(Vec<u8>, Meta)>,
    unlocked: Vec<(Vec<u8>, u32)>,
) {
    let options = copying.options;
    // Other shards may still be at work in them.
    let least = if options.shard.is_some() { WORKABLE } else { 0 };
    let setting = |(path, meta): (Vec<u8>, Meta)| {
        let all = Setting::of(&meta, options.preserve, copying.privileged(), copying.umask);
        let as_made = !options.preserve && meta.mode & WORKABLE == WORKABLE;
        let all = Setting { mode: all.mode.map(|mode| mode | least), ..all };
        (!path.is_empty() && !as_made).then_some((path, all))
    };
    let mut settings: Vec<_> = directories.into_iter().filter_map(setting).collect();
    let before = |mode| Setting { mode: Some(mode | least), ..Setting::default() };
    settings.extend(unlocked.into_iter().map(|(path, mode)| (path, before(mode))));
    settings.sort_by_key(|(path, _)| {
        std::cmp::Reverse(path.iter().filter(|byte| **byte == b'/').count())
    });
    let mut without_owner = Vec::new();
    set_paths(control, settings, |path, all, fault| {
        match all.owner.is_some() && copying.goes_without_owner(&path, &fault) {
            true => without_owner.push((path, all.without_owner())),
            false => copying.fault(At::Target, &path, &fault),
        }
    });
    set_paths(control, without_owner, |path, _, fault| copying.fault(At::Target, &path, &fault));
}

fn set_paths(
    control: &mut Control<'_>,
    settings: Vec<(Vec<u8>, Setting)>,
    mut failed: impl FnMut(Vec<u8>, Setting, Fault),
) {
    let asks = settings.into_iter().map(|(path, setting)| {
        let ask = Ask::SetPath(path.clone(), setting.clone());
        ((path, setting), ask)
    });
    all(control, asks, |(path, setting), answer| {
        if let Err(fault) = answer {
            failed(path, setting, fault);
        }
    });
}

/// Asks for all of them, many under way together.
fn all<T>(
    control: &mut Control<'_>,
    mut asks: impl Iterator<Item = (T, Ask)>,
    mut told: impl FnMut(T, Answered),
) {
    let mut asked = HashMap::new();
    loop {
        while control.has_room()
            && let Some((what, ask)) = asks.next()
        {
            asked.insert(control.ask(At::Target, ask), what);
        }
        let Some((token, answer)) = control.answer() else { return };
        if let Some(what) = asked.remove(&token) {
            told(what, answer);
        }
    }
}

/// Nothing takes its name. Files are for the next run to go on with, if it knows them by a journal;
/// links are made anew.
fn hold_back(copying: &Copying<'_>, control: &mut Control<'_>, late: &Late) {
    let known = copying.journal.is_some();
    let names = late.delayed.iter().map(|file| &file.entry.to);
    let mut names = names.chain(late.links.iter().map(|(_, to)| to));
    if let Some(first) = names.next() {
        let become_ = if known { "wait for the next run" } else { "stay as they were" };
        let why = format!("{} names {become_}, as some failed", 1 + names.count());
        copying.warn(Some(first), &why);
    }
    let is_lost = |file: &&Delayed| !known || file.entry.meta.kind == Kind::Symlink;
    let lost = late.delayed.iter().filter(is_lost);
    all(control, lost.map(|file| ((), Ask::Remove(file.part.clone()))), |(), _| {});
}

/// Every finished file takes its name. A rename that a broken connection left without an answer is
/// asked for again, and finds nothing if it was done.
fn place(copying: &Copying<'_>, control: &mut Control<'_>, delayed: Vec<Delayed>) {
    let broke = control.broke;
    let names = |file: &Delayed| (file.part.clone(), file.entry.to.clone());
    let mut gone = Vec::new();
    replace(control, delayed, names, |file, answer| match answer {
        Ok(_) => placed(copying, &file),
        Err(Fault::Missing) => gone.push(file),
        Err(fault) => copying.failed(&file.entry, &fault),
    });
    let again = control.broke > broke;
    let asks = gone.into_iter().map(|file| {
        let ask = Ask::Lstat(file.entry.to.clone());
        (file, ask)
    });
    all(control, asks, |file, answer| match answer {
        Ok(Told::Meta(meta)) if again && is_it(&file, &meta) => placed(copying, &file),
        _ => copying.failed(&file.entry, &Fault::Missing),
    });
}

/// Whether what has the name now is the file that waited for it.
fn is_it(file: &Delayed, now: &Meta) -> bool {
    let is_link = now.kind == Kind::Symlink;
    now.kind == file.entry.meta.kind && (is_link || now.identity() == file.target)
}

/// Renames everything, over what has the name already. A server that refuses that has the old file
/// removed first: only then, as a rename that is asked for again may have been done, and some names
/// at a time, so that few are missing if the copy ends between the two.
fn replace<T>(
    control: &mut Control<'_>,
    files: Vec<T>,
    names: impl Fn(&T) -> (Vec<u8>, Vec<u8>),
    mut told: impl FnMut(T, Answered),
) {
    let replaces = control.ends.target.has().replaces;
    let rename = |what: T| {
        let (from, to) = names(&what);
        (what, Ask::Rename { from, to })
    };
    let mut refused = Vec::new();
    all(control, files.into_iter().map(rename), |what, answer| match answer {
        Err(Fault::Other(_)) if !replaces => refused.push(what),
        answer => told(what, answer),
    });
    while !refused.is_empty() {
        let some = refused.split_off(refused.len().saturating_sub(UNDER_WAY));
        let removes = some.iter().map(|what| ((), Ask::Remove(names(what).1)));
        all(control, removes, |(), _| {});
        all(control, some.into_iter().map(rename), &mut told);
    }
}

fn placed(copying: &Copying<'_>, file: &Delayed) {
    if file.entry.meta.kind == Kind::File {
        let ends = (file.entry.meta.identity(), file.target);
        copying.note(|journal| journal.finish(&file.entry.to, &ends.0, &ends.1));
    }
    copying.finished(&file.entry, Outcome::Copied, file.verified);
}

/// Part files of these files that servers have left which were lost: by their own names for them
/// (`.<name>.<hex>-<hex>.part`) where they put files in place for us, and by ours, as a server whose
/// connection is gone may still do what it was asked before. Not ours if anything failed: then they
/// may be what the next run goes on with.
fn sweep(copying: &Copying<'_>, control: &mut Control<'_>, orphaned: &[Vec<u8>]) {
    let complete = copying.report().is_complete();
    let is_part = |name: &[u8], part: &[u8]| {
        is_servers_part(name, part) || (complete && part == names::part(name, &copying.id))
    };
    let mut directories: Vec<_> = orphaned.iter().map(|path| names::split(path).0).collect();
    directories.sort_unstable();
    directories.dedup();
    for directory in directories {
        let ours = |part: &[u8]| {
            let of = |path: &Vec<u8>| {
                names::split(path).0 == directory && is_part(names::split(path).1, part)
            };
            orphaned.iter().any(of)
        };
        // What cannot be listed has none.
        let names = control.list(At::Target, directory, MANY).unwrap_or_default();
        let found: Vec<_> = names.into_iter().filter(|name| ours(name)).collect();
        let asks = found.iter().map(|name| ((), Ask::Remove(names::join(directory, name))));
        all(control, asks, |(), _| {});
    }
}

/// Part files of earlier runs whose sources are no more, or whose files are there: nobody else comes
/// by there.
fn clear(copying: &Copying<'_>, control: &mut Control<'_>, outlived: &HashSet<Vec<u8>>) {
    let Some(journal) = &copying.journal else { return };
    let mut gone = Vec::new();
    for (from, to) in journal.abandoned() {
        // A source that is merely not among those of this run may be in the next one's.
        let is_gone = outlived.contains(&to)
            || matches!(control.call(At::Source, Ask::Lstat(from)), Err(Fault::Missing));
        if is_gone {
            gone.push(to);
        }
    }
    let part = |to: &[u8]| names::part_beside(to, &copying.id);
    let asks = gone.into_iter().map(|to| {
        let ask = Ask::Remove(part(&to));
        (to, ask)
    });
    all(control, asks, |to, answer| match answer {
        Ok(_) | Err(Fault::Missing) => copying.note(|journal| journal.clear(&to)),
        // It costs room, and no more.
        Err(fault) => copying.warn(Some(&part(&to)), &format!("it stays there: {fault}")),
    });
}

fn is_servers_part(name: &[u8], part: &[u8]) -> bool {
    let front = part.strip_suffix(b".part");
    let id = front.and_then(|front| front.rsplit(|byte| *byte == b'.').next());
    let id = id.and_then(|id| std::str::from_utf8(id).ok());
    id.is_some_and(|id| {
        id.contains('-')
            && id.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-')
            && names::part(name, id) == part
    })
}

/// Directories that are open at the same time while their attributes are set.
const OPEN: usize = 128;

/// Extended attributes of directories: before their modes, which may leave no way in.
fn keep_xattrs(
    copying: &Copying<'_>,
    control: &mut Control<'_>,
    directories: Vec<(Vec<u8>, Kept)>,
) {
    if !control.ends.target.has().set_xattrs {
        for (path, kept) in directories {
            kept.iter().for_each(|(class, _)| copying.not_kept(&path, *class, &Fault::Unsupported));
        }
        return;
    }
    for some in directories.chunks(OPEN) {
        let mut open = Vec::new();
        let asks = some.iter().map(|one| (one, Ask::Opendir(one.0.clone())));
        all(control, asks, |(path, kept), answer| match answer {
            Ok(Told::Open(directory)) => open.push((path, kept, directory)),
            Ok(_) => {}
            Err(fault) => copying.fault(At::Target, path, &fault),
        });
        let asks = open.iter().flat_map(|(path, kept, directory)| {
            kept.iter().map(move |(class, pairs)| {
                ((path, class), Ask::SetXattrs(directory.clone(), pairs.clone()))
            })
        });
        all(control, asks, |(path, class), answer| match answer {
            Ok(_) => {}
            Err(fault @ (Fault::Lost(_) | Fault::Broken(_))) => {
                copying.fault(At::Target, path, &fault)
            }
            Err(why) => copying.not_kept(path, *class, &why),
        });
        let asks = open.into_iter().map(|(_, _, directory)| ((), Ask::Close(directory)));
        all(control, asks, |(), _| {});
    }
}

/// A further name of a file: the first, and the one to be made.
type Link = (Vec<u8>, Vec<u8>);

/// Further names of files. Those that are refused are tried once more: a run that was killed, or a
/// connection that broke, may have left a part file in the way, which is gone then.
fn link(copying: &Copying<'_>, control: &mut Control<'_>, links: Vec<Link>) {
    let (links, orphans) = firsts_that_are_there(copying, links);
    for (first, to) in orphans {
        let first = crate::shown(&copying.naming.name(At::Target, &first));
        let why = format!("it is another name of {first}, which was not copied");
        copying.fault(At::Target, &to, &Fault::other(why));
    }
    let refused = link_once(copying, control, links);
    let again = refused.into_iter().map(|(link, _)| link).collect();
    for ((_, to), fault) in link_once(copying, control, again) {
        copying.fault(At::Target, &to, &fault);
    }
}

/// Further names of files that were copied, and of those that failed: what has the first name then
/// is another file.
fn firsts_that_are_there(copying: &Copying<'_>, links: Vec<Link>) -> (Vec<Link>, Vec<Link>) {
    let report = copying.report();
    let path = |failure: &'_ Failure| match &failure.what {
        What::Path(path) => Some(path.clone()),
        _ => None,
    };
    let failed: HashSet<_> = report.failures.iter().filter_map(path).collect();
    links.into_iter().partition(|(first, _)| !failed.contains(first))
}

/// Each is made beside its name, and takes it. Those that could not be come back, and nothing is
/// left beside any.
fn link_once(
    copying: &Copying<'_>,
    control: &mut Control<'_>,
    links: Vec<Link>,
) -> Vec<(Link, Fault)> {
    let part = |to: &[u8]| names::part_beside(to, &copying.id);
    let (mut linked, mut refused) = (Vec::new(), Vec::new());
    let asks = links.into_iter().map(|link| {
        let ask = Ask::Hardlink { from: link.0.clone(), to: part(&link.1) };
        (link, ask)
    });
    all(control, asks, |link, answer| match answer {
        Ok(_) => linked.push(link),
        Err(fault) => refused.push((link, fault)),
    });
    let mut parts: Vec<_> = refused.iter().map(|((_, to), _)| part(to)).collect();
    parts.extend(linked.iter().map(|(_, to)| part(to)));
    let names = |link: &Link| (part(&link.1), link.1.clone());
    replace(control, linked, names, |link, answer| {
        if let Err(fault) = answer {
            refused.push((link, fault));
        }
    });
    // rename(2) between two names of one file does nothing: where it was linked already, the part
    // file stays.
    all(control, parts.into_iter().map(|part| ((), Ask::Remove(part))), |(), _| {});
    refused
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_servers_own_part_of_that_very_file_is_swept() {
        assert!(is_servers_part(b"109", b".109.409d-5c.part"));
        for other in [&b".109.01234567.part"[..], b".1090.409d-5c.part", b"109", b".109.x-y.part"] {
            assert!(!is_servers_part(b"109", other), "{other:?}");
        }
        // Names that had to be cut, however long the server's number is.
        let long = |last| [[b'n'; 254].as_slice(), &[last]].concat();
        for id in ["1-0", "3d0900-ffff"] {
            assert!(is_servers_part(&long(b'a'), &names::part(&long(b'a'), id)));
            assert!(!is_servers_part(&long(b'b'), &names::part(&long(b'a'), id)));
        }
    }
}
