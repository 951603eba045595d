//! The names in a directory of the server, as they come or all of them.
//!
//! What comes is taken as it comes where order allows: trees and unsorted listings cost no memory,
//! however long they are. What has to be sorted is held, up to a bound.

use crate::escape::shown;
use crate::failure::{Failure, Result};
use sftp::client::{Client, Error};
use sftp::codec::{Handle, Name, Reply, Request, Status};
use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};

/// Most memory that names to be sorted may take: half a million of middling length. A server cannot
/// fill ours by never coming to an end.
const MOST_HELD: usize = 128 << 20;

/// A directory that is being listed; closed when dropped.
pub(crate) struct Listing {
    client: Client,
    path: Vec<u8>,
    handle: Handle,
    over: bool,
}

impl Listing {
    pub(crate) fn open(client: &Client, path: &[u8]) -> Result<Self> {
        Self::ask(client, path).map_err(|error| Self::refused(path, &error))
    }

    /// The same, with the server's own answer.
    pub(crate) fn ask(client: &Client, path: &[u8]) -> std::result::Result<Self, Error> {
        match client.call(&Request::Opendir(path.to_vec()))? {
            Reply::Handle(handle) => {
                Ok(Self { client: client.clone(), path: path.to_vec(), handle, over: false })
            }
            _ => Err(Error::ended("a handle was asked for, something else came")),
        }
    }

    /// A directory that was not opened.
    pub(crate) fn refused(path: &[u8], error: &Error) -> Failure {
        Failure::asked(format!("remote readdir(\"{}\")", shown(path)), error)
    }

    /// Some more names, but those that are none; nothing at the end.
    pub(crate) fn next(&mut self) -> Result<Option<Vec<Name>>> {
        if self.over {
            return Ok(None);
        }
        match self.client.call(&Request::Readdir(self.handle.clone())) {
            // A reply without names would let a server keep us here (F6).
            Ok(Reply::Names(mut names)) if !names.is_empty() => {
                names.retain(|name| is_component(name, &self.path));
                // Nothing here asks for them, and a server may send any amount.
                names.iter_mut().for_each(|name| name.attrs.extended = Vec::new());
                return Ok(Some(names));
            }
            Ok(_) => {}
            Err(error) if error.status() == Some(Status::Eof) => {}
            Err(error) => return Err(Failure::asked("Couldn't read directory", &error)),
        }
        self.over = true;
        Ok(None)
    }

    /// The error of a directory that has a name twice.
    pub(crate) fn repeats(&self, name: &[u8]) -> Failure {
        let (name, path) = (shown(name), shown(&self.path));
        Failure::Because(format!("Couldn't read directory: \"{path}\" has \"{name}\" twice"))
    }

    /// All names there are, without the server's lines about them if nobody will see those.
    pub(crate) fn all(&mut self, lines: bool) -> Result<Vec<Name>> {
        let (mut all, mut held) = (Vec::new(), 0_usize);
        while let Some(mut names) = self.next()? {
            if !lines {
                names.iter_mut().for_each(|name| name.longname = Vec::new());
            }
            held += names.iter().map(size).sum::<usize>();
            if held > MOST_HELD {
                let (path, count) = (shown(&self.path), all.len());
                return Err(Failure::Because(format!(
                    "Couldn't read directory: \"{path}\" has more than {count} names, too many to \
                     be sorted; \"ls -1f\" shows them as they come"
                )));
            }
            all.append(&mut names);
        }
        Ok(all)
    }
}

impl Drop for Listing {
    fn drop(&mut self) {
        // All names that were wanted are here, so whether that works is the server's affair.
        _ = self.client.call(&Request::Close(self.handle.clone()));
    }
}

/// Whether a name of a directory comes for the first time: a server that repeats itself could send a
/// recursive get down the same directory for ever. Looks at the first names only, so that a directory
/// without end costs bounded memory.
#[derive(Default)]
pub(crate) struct Once {
    hashes: HashSet<u64>,
    state: RandomState,
}

impl Once {
    /// Names that are remembered.
    const MOST: usize = 64 * 1024;

    pub(crate) fn is_new(&mut self, name: &[u8]) -> bool {
        let hash = self.state.hash_one(name);
        match self.hashes.len() < Self::MOST {
            true => self.hashes.insert(hash),
            false => !self.hashes.contains(&hash),
        }
    }
}

fn size(name: &Name) -> usize {
    size_of::<Name>() + name.name.len() + name.longname.len()
}

/// F1: what is no plain name is not taken from a server.
fn is_component(entry: &Name, directory: &[u8]) -> bool {
    let name = entry.name.as_slice();
    let plain = !name.is_empty() && !name.contains(&b'/') && !name.contains(&0);
    if !plain {
        let (name, directory) = (shown(name), shown(directory));
        eprintln!("Server sent suspect path \"{name}\" during readdir of \"{directory}\"");
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_new_once_and_few_are_remembered() {
        let mut once = Once::default();
        assert!(once.is_new(b"a") && once.is_new(b"b") && !once.is_new(b"a"));
        for number in 0..2 * Once::MOST {
            assert!(once.is_new(number.to_string().as_bytes()));
        }
        assert_eq!(once.hashes.len(), Once::MOST);
        assert!(!once.is_new(b"b"));
    }
}
