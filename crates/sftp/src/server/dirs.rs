//! Directories: OPENDIR and READDIR.

use super::attributes;
use super::change::{open_directory, shown};
use super::fault::Fault;
use super::handles::{Open, What};
use super::log::Level;
use super::longname::longname;
use super::paths::NOFOLLOW;
use super::queue::Shared;
use crate::codec::{Attrs, Handle, Name, Reply};
use crate::longname::now;
use rustix::fs::Dir;
use std::sync::{Mutex, PoisonError};

/// Bytes of names in a reply, after which no more are added: with one more of the longest there
/// is, a packet still holds them.
const ENOUGH: usize = 128 * 1024;

/// What an entry takes besides its names.
const ENTRY: usize = 128;

impl Shared {
    pub(super) fn opendir(&self, path: &[u8]) -> Result<Reply, Fault> {
        self.log(Level::Info, format_args!("opendir \"{}\"", shown(path)));
        let fd = open_directory(&self.start, path)?;
        let names = Dir::read_from(&fd)?;
        let open = Open::new(path.to_vec(), fd, What::Directory(Mutex::new(names)));
        self.handles.add(open).map(Reply::Handle)
    }

    /// The next names, `.` and `..` included, with what a LSTAT of each says.
    pub(super) fn readdir(&self, handle: &Handle) -> Result<Reply, Fault> {
        let open = self.handles.get(handle)?;
        let What::Directory(dir) = &open.what else { return Err(Fault::handle()) };
        let mut dir = dir.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut names, mut bytes, now) = (Vec::new(), 0, now());
        while bytes < ENOUGH {
            let Some(entry) = dir.read() else { break };
            let Some(name) = self.entry(&open, entry?.file_name().to_bytes(), now) else {
                continue;
            };
            bytes += name.name.len() + name.longname.len() + ENTRY;
            names.push(name);
        }
        if names.is_empty() { Err(Fault::eof()) } else { Ok(Reply::Names(names)) }
    }

    /// `None` for a name that is gone again.
    fn entry(&self, open: &Open, name: &[u8], now: i64) -> Option<Name> {
        let (longname, attrs) = match rustix::fs::statat(open, name, NOFOLLOW) {
            Ok(stat) => {
                (longname(name, &stat, &self.names, now), attributes::of(&stat, self.wanted()))
            }
            Err(rustix::io::Errno::NOENT) => return None,
            // Seen but not to be looked at: a directory that may be read but not searched.
            Err(_) => (name.to_vec(), Attrs::default()),
        };
        Some(Name { name: name.to_vec(), longname, attrs })
    }
}
