//! Late: what is done when every file is there: further names of files, names that were held back
//! (`--delay-updates`), and the directories' own attributes, deepest first.

use super::control::Control;
use super::copying::{Copying, Delayed};
use super::lane::At;
use super::meta::Setting;
use super::names;
use super::side::{Ask, Fault};
use crate::observe::Outcome;
use std::collections::HashMap;

pub(super) fn run(copying: &Copying<'_>, control: &mut Control<'_>) {
    let mut late = std::mem::take(&mut *copying.late());
    // Together or not at all: what is not in place now, the next run finds whole.
    if copying.report().is_complete() {
        place(copying, control, std::mem::take(&mut late.delayed));
    } else if let Some(first) = late.delayed.first() {
        let why = format!("{} files wait for the next run, as some failed", late.delayed.len());
        copying.warn(Some(&first.entry.to), &why);
    }
    link(copying, control, late.links);
    let mut directories = late.directories;
    directories.sort_by_key(|(path, _)| {
        std::cmp::Reverse(path.iter().filter(|byte| **byte == b'/').count())
    });
    let settings = directories.into_iter().filter_map(|(path, meta)| {
        let options = copying.options;
        let all = Setting::of(&meta, options.preserve, copying.privileged, copying.umask);
        let as_made = !options.preserve && meta.mode & 0o700 == 0o700;
        let ask = Ask::SetPath(path.clone(), all);
        (!path.is_empty() && !as_made).then_some((path, ask))
    });
    all(control, settings, |path, answer| {
        if let Err(fault) = answer {
            copying.fault(&path, &fault);
        }
    });
}

/// Asks for all of them, many under way together.
fn all<T>(
    control: &mut Control<'_>,
    mut asks: impl Iterator<Item = (T, Ask)>,
    mut told: impl FnMut(T, Result<(), Fault>),
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
            told(what, answer.map(drop));
        }
    }
}

/// Every finished file takes its name.
fn place(copying: &Copying<'_>, control: &mut Control<'_>, delayed: Vec<Delayed>) {
    let asks = delayed.into_iter().map(|file| {
        let ask = Ask::Rename { from: file.part.clone(), to: file.entry.to.clone() };
        (file, ask)
    });
    all(control, asks, |file, answer| match answer {
        Ok(()) => {
            let ends = (file.entry.meta.identity(), file.target);
            copying.note(|journal| journal.finish(&file.entry.to, &ends.0, &ends.1));
            copying.finished(&file.entry, Outcome::Copied, file.verified);
        }
        Err(fault) => copying.failed(&file.entry, &fault),
    });
}

/// A further name of a file is made beside it, and takes it.
fn link(copying: &Copying<'_>, control: &mut Control<'_>, links: Vec<(Vec<u8>, Vec<u8>)>) {
    let part = |to: &[u8]| names::part_beside(to, &copying.id);
    let mut linked = Vec::new();
    let asks = links.into_iter().map(|(from, to)| {
        let ask = Ask::Hardlink { from, to: part(&to) };
        (to, ask)
    });
    all(control, asks, |to, answer| match answer {
        Ok(()) => linked.push(to),
        Err(fault) => copying.fault(&to, &fault),
    });
    let asks = linked.iter().map(|to| (to, Ask::Rename { from: part(to), to: to.clone() }));
    all(control, asks, |to, answer| {
        if let Err(fault) = answer {
            copying.fault(to, &fault);
        }
    });
    // rename(2) between two names of one file does nothing: where it was linked already, the part
    // file stays.
    let asks = linked.iter().map(|to| ((), Ask::Remove(part(to))));
    all(control, asks, |(), _| {});
}
