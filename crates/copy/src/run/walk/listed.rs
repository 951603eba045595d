//! Listed: `--files-from`, names below the one source in the list's order, with the directories that
//! lead to them.

use super::super::lane::At;
use super::super::local::WORKABLE;
use super::super::meta::{Kind, Meta};
use super::super::names;
use super::super::side::{Answered, Ask, Fault, Told};
use super::{Found, IN_THE_WAY, Walk, unmade, xattrs_of};
use crate::list::Wrong;
use crate::observe::{Act, Event};
use crate::report::{Failure, What};
use std::collections::HashMap;

impl Walk<'_, '_> {
    pub(super) fn listed_names(&mut self, from: &[u8], to: &[u8], meta: &Meta) {
        let Some(list) = &self.copying.options.list else { return };
        let names = match list.open() {
            Ok(names) => names,
            Err(error) => return self.unread(list.name(), error),
        };
        let mut made = HashMap::new();
        // F2: only what the user named may be a link to a directory.
        if !self.make_listed(&mut made, (from, to), meta, Ask::Stat) {
            return;
        }
        for name in names {
            if self.is_over() {
                return;
            }
            match name {
                Ok(name) => self.listed_name(&mut made, (from, to), &name),
                Err(Wrong::Name(name, why)) => self.listed_fault(from, &name, &Fault::other(why)),
                Err(Wrong::Unread(error)) => return self.unread(list.name(), error),
            }
        }
    }

    fn listed_name(
        &mut self,
        made: &mut HashMap<Vec<u8>, bool>,
        (root, target): (&[u8], &[u8]),
        name: &[u8],
    ) {
        for (at, _) in name.iter().enumerate().filter(|(_, byte)| **byte == b'/') {
            let directory = name.get(..at).unwrap_or_default();
            if !self.copying.options.filter.allows(directory, true) {
                return;
            }
            let to = names::join(target, directory);
            let is_there = match made.get(&to) {
                Some(is_there) => *is_there,
                None => {
                    let from = names::join(root, directory);
                    match self.control.call(At::Source, Ask::Stat(from.clone())) {
                        Ok(Told::Meta(meta)) => {
                            self.make_listed(made, (&from, &to), &meta, Ask::Lstat)
                        }
                        other => {
                            let fault = other.err().unwrap_or(Fault::Missing);
                            return self.listed_fault(root, name, &fault);
                        }
                    }
                }
            };
            if !is_there {
                let fault = Fault::other("the directory that it belongs into is not there");
                return self.listed_fault(root, name, &fault);
            }
        }
        let (from, to) = (names::join(root, name), names::join(target, name));
        let at = Found { from, to, above: target.len(), depth: 1, fresh: false };
        let ask = match self.copying.options.preserve {
            true => Ask::Lstat(at.from.clone()),
            false => Ask::Stat(at.from.clone()),
        };
        match self.control.call(At::Source, ask) {
            Ok(Told::Meta(meta)) if !self.allows(&at, &meta) => {}
            Ok(Told::Meta(meta)) if meta.kind == Kind::Directory => {
                if !self.copying.options.recursive {
                    self.make_listed(made, (&at.from, &at.to), &meta, Ask::Lstat);
                    return;
                }
                self.directory(at, meta);
                self.go();
            }
            Ok(Told::Meta(meta)) => self.known(at, meta),
            other => self.listed_fault(root, name, &other.err().unwrap_or(Fault::Missing)),
        }
    }

    /// A name of the list, below the source, that cannot be copied.
    fn listed_fault(&self, root: &[u8], name: &[u8], fault: &Fault) {
        let from = names::join(root, name);
        self.copying.fault_about(name, (At::Source, &from), fault);
    }

    /// The list itself is on this host, whatever the source.
    fn unread(&self, list: &[u8], error: std::io::Error) {
        let (what, why) = (What::Path(list.to_vec()), Fault::from(error).to_string());
        self.copying.tell(Failure { what, name: None, why });
    }

    /// Makes a directory that leads to listed names, once; whether it is there. `look` is how to see
    /// what is there already.
    fn make_listed(
        &mut self,
        made: &mut HashMap<Vec<u8>, bool>,
        (from, to): (&[u8], &[u8]),
        meta: &Meta,
        look: fn(Vec<u8>) -> Ask,
    ) -> bool {
        if to.is_empty() {
            return true;
        }
        if let Some(is_there) = made.get(to) {
            return *is_there;
        }
        if self.copying.options.dry_run {
            let is_there = self.would_be_there(to, look);
            made.insert(to.to_vec(), is_there);
            return is_there;
        }
        let mode = (meta.mode & 0o777 & !self.copying.umask) | WORKABLE;
        let refused = self.control.call(At::Target, Ask::Mkdir(to.to_vec(), mode)).err();
        let fresh = refused.is_none();
        let is_there = refused.is_none_or(|why| self.is_directory(to, look, why));
        made.insert(to.to_vec(), is_there);
        if !is_there {
            return false;
        }
        self.copying.report().directories += u64::from(fresh);
        if fresh || self.copying.options.preserve {
            self.copying.late().directories.push((to.to_vec(), *meta));
        }
        if self.wants_xattrs() {
            let told = self.listed_xattrs(from);
            self.note_xattrs(to.to_vec(), told);
        }
        true
    }

    /// Whether a directory is there or would be made (`--dry-run`), which is told.
    fn would_be_there(&mut self, to: &[u8], look: fn(Vec<u8>) -> Ask) -> bool {
        let fault = match self.control.call(At::Target, look(to.to_vec())) {
            Ok(Told::Meta(meta)) if meta.kind == Kind::Directory => return true,
            Err(Fault::Missing) => {
                let (act, path) = (Act::MakeDirectory, to);
                self.copying.observer.observe(&Event::Would { act, path, size: 0 });
                return true;
            }
            Ok(_) => Fault::other(IN_THE_WAY),
            Err(fault) => fault,
        };
        self.copying.fault(At::Target, to, &fault);
        false
    }

    /// Whether what could not be made is there already; if not, that is told.
    fn is_directory(&mut self, to: &[u8], look: fn(Vec<u8>) -> Ask, refused: Fault) -> bool {
        let fault = match self.control.call(At::Target, look(to.to_vec())) {
            Ok(Told::Meta(meta)) if meta.kind == Kind::Directory => {
                if let Some(ask) = self.unlocking(to, &meta) {
                    let answer = self.control.call(At::Target, ask);
                    self.note_unlocked(to, meta.mode, &answer);
                }
                return true;
            }
            Ok(_) => Fault::other(IN_THE_WAY),
            Err(Fault::Missing) => unmade(&refused),
            Err(fault) => fault,
        };
        self.copying.fault(At::Target, to, &fault);
        false
    }

    fn listed_xattrs(&mut self, from: &[u8]) -> Answered {
        if !self.control.ends.source.is_remote() {
            return xattrs_of(from);
        }
        let Told::Open(open) = self.control.call(At::Source, Ask::Opendir(from.to_vec()))? else {
            return Err(Fault::Missing);
        };
        let told = self.control.call(At::Source, Ask::GetXattrs(open.clone()));
        let _ = self.control.call(At::Source, Ask::Close(open));
        told
    }
}
