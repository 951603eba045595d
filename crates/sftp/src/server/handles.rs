//! Handles: what a session has open (F7): opaque, per session, capped.

use super::fault::Fault;
use crate::codec::{Handle, OpenFlags, Status};
use rustix::fs::Dir;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Descriptors of the process that are not for files of clients.
const SPARE: u64 = 32;

/// Most handles of a session whatever the system allows.
const MOST: u64 = 65_536;

/// What is behind a handle.
pub(super) enum What {
    /// As it was opened.
    File(OpenFlags),
    Directory(Mutex<Dir>),
}

/// An open file or directory.
pub(super) struct Open {
    pub(super) path: Vec<u8>,
    /// Of a directory, a second one that is not read from.
    fd: OwnedFd,
    pub(super) what: What,
    /// Requests that name this handle and are not done.
    pending: AtomicUsize,
    read: AtomicU64,
    written: AtomicU64,
}

impl Open {
    pub(super) fn new(path: Vec<u8>, fd: OwnedFd, what: What) -> Self {
        let (read, written) = (AtomicU64::new(0), AtomicU64::new(0));
        Self { path, fd, what, pending: AtomicUsize::new(0), read, written }
    }

    /// The flags of a file; a directory is none.
    pub(super) fn file(&self) -> Result<OpenFlags, Fault> {
        match &self.what {
            What::File(flags) => Ok(*flags),
            What::Directory(_) => Err(Fault::handle()),
        }
    }

    /// What closing a file that was opened for writing reports; its descriptor is closed when the
    /// last request that names it has ended.
    pub(super) fn flush(&self) -> Result<(), Fault> {
        match &self.what {
            What::File(flags) if flags.has(OpenFlags::WRITE) => Ok(crate::flush(&self.fd)?),
            _ => Ok(()),
        }
    }

    pub(super) fn count_read(&self, bytes: u64) {
        self.read.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(super) fn count_written(&self, bytes: u64) {
        self.written.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Bytes read and written so far.
    pub(super) fn moved(&self) -> (u64, u64) {
        (self.read.load(Ordering::Relaxed), self.written.load(Ordering::Relaxed))
    }

    /// A request that names it arrives.
    pub(super) fn begin(&self) {
        self.pending.fetch_add(1, Ordering::SeqCst);
    }

    /// It is done.
    pub(super) fn end(&self) {
        self.pending.fetch_sub(1, Ordering::SeqCst);
    }

    /// Whether nothing that came before is still to be done with it.
    pub(super) fn is_idle(&self) -> bool {
        self.pending.load(Ordering::SeqCst) == 0
    }
}

impl AsFd for Open {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Counts what is opened, in all sessions of the process: the handle of a closed file never means
/// another one, nor one of another session.
static GENERATION: AtomicU32 = AtomicU32::new(0);

#[derive(Default)]
struct Place {
    generation: u32,
    open: Option<Arc<Open>>,
}

#[derive(Default)]
struct Table {
    places: Vec<Place>,
    free: Vec<usize>,
}

/// The handles of a session.
pub(super) struct Handles {
    table: Mutex<Table>,
    most: usize,
}

impl Handles {
    /// As many as the process may have descriptors (two for a directory), less a few.
    pub(super) fn new() -> Self {
        let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
        let most = limit.unwrap_or(MOST).saturating_sub(SPARE).clamp(8, MOST);
        Self { table: Mutex::default(), most: usize::try_from(most).unwrap_or(8) }
    }

    /// Most there may be.
    pub(super) fn most(&self) -> usize {
        self.most
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives what was opened a handle.
    pub(super) fn add(&self, open: Open) -> Result<Handle, Fault> {
        let mut table = self.lock();
        let place = match table.free.pop() {
            Some(place) => place,
            None if table.places.len() < self.most => {
                table.places.push(Place::default());
                table.places.len() - 1
            }
            None => return Err(Fault::new(Status::Failure, "Too many open handles")),
        };
        let Some(entry) = table.places.get_mut(place) else { return Err(Fault::handle()) };
        entry.generation = GENERATION.fetch_add(1, Ordering::Relaxed);
        entry.open = Some(Arc::new(open));
        let number = u32::try_from(place).unwrap_or(u32::MAX);
        let bytes = [number.to_be_bytes(), entry.generation.to_be_bytes()].concat();
        Handle::new(bytes).map_err(|_| Fault::handle())
    }

    /// What a handle means, while it is open.
    pub(super) fn get(&self, handle: &Handle) -> Result<Arc<Open>, Fault> {
        let (place, generation) = parts(handle).ok_or_else(Fault::handle)?;
        let table = self.lock();
        let entry = table.places.get(place).filter(|entry| entry.generation == generation);
        entry.and_then(|entry| entry.open.clone()).ok_or_else(Fault::handle)
    }

    /// From now on the handle means nothing.
    pub(super) fn remove(&self, handle: &Handle) -> Result<Arc<Open>, Fault> {
        let (place, generation) = parts(handle).ok_or_else(Fault::handle)?;
        let mut table = self.lock();
        let entry = table.places.get_mut(place).filter(|entry| entry.generation == generation);
        let open = entry.and_then(|entry| entry.open.take()).ok_or_else(Fault::handle)?;
        table.free.push(place);
        Ok(open)
    }

    /// All that is still open.
    pub(super) fn drain(&self) -> Vec<Arc<Open>> {
        let mut table = self.lock();
        let all = std::mem::take(&mut table.places);
        table.free.clear();
        all.into_iter().filter_map(|place| place.open).collect()
    }
}

fn parts(handle: &Handle) -> Option<(usize, u32)> {
    let (place, generation) = handle.as_bytes().split_first_chunk::<4>()?;
    let generation: [u8; 4] = generation.try_into().ok()?;
    Some((usize::try_from(u32::from_be_bytes(*place)).ok()?, u32::from_be_bytes(generation)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open() -> Open {
        let fd = std::fs::File::open("/dev/null").unwrap().into();
        Open::new(b"/dev/null".to_vec(), fd, What::File(OpenFlags::READ))
    }

    #[test]
    fn f7_the_handle_of_a_closed_file_never_means_another_one() {
        let handles = Handles::new();
        let first = handles.add(open()).unwrap();
        assert!(handles.get(&first).is_ok());
        assert!(handles.remove(&first).is_ok());
        assert!(handles.get(&first).is_err() && handles.remove(&first).is_err());
        let second = handles.add(open()).unwrap();
        assert_ne!(first, second);
        assert!(handles.get(&first).is_err() && handles.get(&second).is_ok());
    }

    #[test]
    fn f7_handles_are_capped_and_made_up_ones_mean_nothing() {
        let mut handles = Handles::new();
        handles.most = 2;
        let one = handles.add(open()).unwrap();
        handles.add(open()).unwrap();
        assert!(handles.add(open()).is_err());
        handles.remove(&one).unwrap();
        assert!(handles.add(open()).is_ok());
        for bytes in [&b""[..], b"x", &[0; 8], &[0xff; 8], &[0; 9], &[0; 256]] {
            assert!(handles.get(&Handle::new(bytes).unwrap()).is_err(), "{bytes:?}");
        }
    }
}
