//! Known: what a journal's records say, read from its beginning to the first that is none.

use super::super::meta::Identity;
use super::super::ranges::Ranges;
use super::record::{
    BEGIN, CLEARED, DONE, FINISHED, MADE, PART, PathHash, READY, next, read_identity,
};
use std::collections::HashMap;
use std::fs::File;
use std::io;
use wire::{Malformed, Reader};

/// A file that a stopped run has left.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in super::super) struct Part {
    /// Of the source when it was begun.
    pub(in super::super) source: Identity,
    /// It was written under its own name (`--inplace`); there is no part file of it.
    pub(in super::super) in_place: bool,
    /// What is in the part file, or in the file.
    pub(in super::super) done: Ranges,
    /// All of it is, and it waits for its name (`--delay-updates`).
    pub(in super::super) ready: bool,
    /// The source's path, and the path below the target.
    pub(in super::super) paths: (Vec<u8>, Vec<u8>),
}

/// What earlier runs have left, by the path below the target.
#[derive(Debug, Default)]
pub(super) struct Known {
    pub(super) boot: Vec<u8>,
    pub(super) parts: HashMap<PathHash, Part>,
    pub(super) finished: HashMap<PathHash, (Identity, Identity)>,
    /// Which part a number is.
    pub(super) numbers: HashMap<u32, PathHash>,
    /// The target is a tree that this copy made.
    pub(super) made: bool,
    records: usize,
}

impl Known {
    /// Records that say nothing any more.
    pub(super) fn stale(&self) -> usize {
        let ranges: usize = self.parts.values().map(|part| 1 + part.done.iter().count()).sum();
        self.records
            .saturating_sub(ranges + self.finished.len())
            .saturating_sub(self.finished.len())
    }

    pub(super) fn learn(&mut self, kind: u8, payload: &[u8]) -> Result<(), Malformed> {
        let mut r = Reader::new(payload);
        match kind {
            BEGIN => {
                // A crash came between: what was written before it may be lost.
                let boot = r.rest().to_vec();
                if std::mem::replace(&mut self.boot, boot.clone()) != boot {
                    self.parts.clear();
                }
            }
            PART => self.learn_part(&mut r)?,
            DONE => {
                let number = r.u32("number")?;
                let range = r.u64("start")?..r.u64("end")?;
                if let Some(part) = self.numbered(number) {
                    part.done.add(range);
                }
            }
            READY => {
                if let Some(part) = self.numbered(r.u32("number")?) {
                    part.ready = true;
                }
            }
            FINISHED => {
                let hash = *r.array("hash")?;
                let ends = (read_identity(&mut r)?, read_identity(&mut r)?);
                self.finished.insert(hash, ends);
                self.parts.remove(&hash);
            }
            MADE => self.made = true,
            CLEARED => drop(self.parts.remove(r.array::<16>("hash")?)),
            _ => return Err(Malformed("kind")),
        }
        self.records += 1;
        Ok(())
    }

    fn learn_part(&mut self, r: &mut Reader<'_>) -> Result<(), Malformed> {
        let number = r.u32("number")?;
        let source = read_identity(r)?;
        let hash = *r.array("hash")?;
        let paths = (r.string("source's path")?.to_vec(), r.string("path")?.to_vec());
        let in_place = r.bool("in place")?;
        self.numbers.insert(number, hash);
        self.parts.insert(hash, Part { source, paths, in_place, ..Part::default() });
        Ok(())
    }

    fn numbered(&mut self, number: u32) -> Option<&mut Part> {
        self.parts.get_mut(self.numbers.get(&number)?)
    }
}

/// Everything up to the first record that is none, and where that is.
pub(super) fn load(file: &mut File, key: &[u8; 32]) -> io::Result<(Known, u64)> {
    let mut input = io::BufReader::new(file);
    let (mut known, mut end) = (Known::default(), 0);
    while let Some((kind, payload, len)) = next(&mut input, key, end)? {
        if known.learn(kind, &payload).is_err() {
            break;
        }
        end += len;
    }
    Ok((known, end))
}
