//! Outgoing: from the queue into packets, on the sending thread.
//!
//! ```text
//! request   copied; what does not fit goes into the next packets
//! READ      a head of a few bytes
//! WRITE     file data read into its place, then the head in front of it
//! ```
//! Data is read before its head is written, so that a head never announces bytes that a file does
//! not have any more (F9). A put is cut into WRITEs at what the batch has room for: the peer's
//! window is used to its last byte, and nothing is copied.

use super::areas::Areas;
use super::asked::{Get, Item, Message, Owed, Put};
use super::ledger::Shared;
use super::transfer::Data;
use super::{Error, Sizes};
use crate::codec::{
    Handle, Hello, LINKED_WANTED, NANOSECONDS_WANTED, Request, VERSION, WRITE_HEAD, WriteHead,
    XATTRS_WANTED,
};
use std::io::{self, IoSliceMut};
use std::sync::Arc;

/// A WRITE that is smaller for want of room waits for the next batch, if this one has something.
const WORTHWHILE: usize = 16 * 1024;

/// In a batch of less room than this a WRITE is not cut to size but continued in the next ones.
const NARROW: usize = 4 * 1024;

/// Where a request has its id: behind length and type.
const ID: std::ops::Range<usize> = 5..9;

/// Most data of a WRITE that is continued, and so copied.
const CONTINUED: usize = 32 * 1024;

/// Fills packets; owned by the sending thread.
pub struct Outgoing {
    shared: Arc<Shared>,
    /// What did not fit into the last batch, from a position on.
    rest: Vec<u8>,
    at: usize,
    put: Option<Cutting>,
    /// The head of a WRITE, while it is made.
    head: Vec<u8>,
    sizes: Sizes,
}

/// A put that is being cut into WRITEs.
struct Cutting {
    number: u64,
    data: Data,
    /// Of the next WRITE.
    head: WriteHead,
    /// Bytes that have left.
    done: u64,
    hasher: Option<Box<blake3::Hasher>>,
}

impl Outgoing {
    /// Begins with INIT (draft section 4).
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        let wanted = [NANOSECONDS_WANTED, LINKED_WANTED, XATTRS_WANTED];
        let extensions = wanted.map(|name| (name.to_vec(), b"1".to_vec())).to_vec();
        let mut rest = Vec::new();
        Hello { version: VERSION, extensions }.encode_init(&mut rest);
        let sizes = Sizes::default();
        Self { shared, rest, at: 0, put: None, head: Vec::with_capacity(WRITE_HEAD), sizes }
    }

    /// Waits until there is something to send; false is the end of the channel, or of its clients.
    pub fn wait(&mut self) -> bool {
        if self.at < self.rest.len() || self.put.is_some() {
            return !self.shared.is_ended();
        }
        self.shared.wait()
    }

    /// Fills the front of `areas`; the bytes filled. None means "not now": [`Outgoing::wait`] tells
    /// when again.
    pub fn fill(&mut self, areas: &mut [IoSliceMut<'_>]) -> usize {
        let mut areas = Areas::new(areas);
        self.sizes = self.shared.sizes();
        self.at += areas.copy(self.rest.get(self.at..).unwrap_or_default());
        while self.at >= self.rest.len() && areas.left() > 0 {
            if let Some(cutting) = self.put.take() {
                if !self.cut(cutting, &mut areas) {
                    break;
                }
                continue;
            }
            match self.shared.take() {
                None => break,
                Some(Item::Message(message)) => self.message(message, &mut areas),
                Some(Item::Get(get)) => self.read(get, &mut areas),
                Some(Item::Put(put)) => self.begin(put),
            }
        }
        areas.filled()
    }

    /// Copies a whole message, what does not fit into `rest`.
    fn copy(&mut self, message: &[u8], areas: &mut Areas<'_, '_>) {
        let copied = areas.copy(message);
        self.rest.clear();
        self.rest.extend_from_slice(message.get(copied..).unwrap_or_default());
        self.at = 0;
    }

    fn message(&mut self, message: Message, areas: &mut Areas<'_, '_>) {
        let Message { mut bytes, expect, waiting } = message;
        let Some(id) = self.shared.owe(Owed::Request(expect, waiting)) else { return };
        if let Some(place) = bytes.get_mut(ID) {
            place.copy_from_slice(&id.to_be_bytes());
        }
        self.copy(&bytes, areas);
    }

    fn read(&mut self, mut get: Box<Get>, areas: &mut Areas<'_, '_>) {
        if get.len == 0 {
            return self.shared.got(*get);
        }
        get.asked = (get.len - get.got.len).min(self.sizes.read);
        let offset = get.remote.saturating_add(get.got.len.into());
        let request = Request::Read { handle: get.handle.clone(), offset, len: get.asked };
        let Some(id) = self.shared.owe(Owed::Read(get)) else { return };
        let mut bytes = Vec::with_capacity(64);
        request.encode(id, &mut bytes);
        self.copy(&bytes, areas);
    }

    fn begin(&mut self, put: Put) {
        let Some(number) = self.shared.begin_put(put.token, put.data.len()) else { return };
        let Put { handle, remote: offset, data, check, .. } = put;
        let head = WriteHead { id: 0, handle, offset, len: 0 };
        self.put = Some(Cutting { number, data, head, done: 0, hasher: check.hasher() });
    }

    /// One WRITE of the put; false when it has to wait for the next batch.
    fn cut(&mut self, mut cutting: Cutting, areas: &mut Areas<'_, '_>) -> bool {
        let most = usize::try_from(cutting.left().min(self.sizes.write.into())).unwrap_or(0);
        let len = most.min(areas.left().saturating_sub(cutting.head_len()));
        if len < most.min(WORTHWHILE) && areas.filled() > 0 {
            self.put = Some(cutting);
            return false;
        }
        let cut = if len < most.min(NARROW) {
            self.cut_to_continue(&mut cutting, most.min(CONTINUED), areas)
        } else {
            cutting.next(&self.shared, len, areas, &mut self.head)
        };
        match cut {
            Ok(true) if cutting.left() > 0 => self.put = Some(cutting),
            Ok(_) => self.end(cutting, None),
            Err(why) => self.end(cutting, Some(why)),
        }
        true
    }

    /// A WRITE that this batch has no room for: made aside, and copied in pieces.
    fn cut_to_continue(
        &mut self,
        cutting: &mut Cutting,
        len: usize,
        areas: &mut Areas<'_, '_>,
    ) -> Result<bool, Error> {
        self.rest.resize(cutting.head_len() + len, 0);
        self.at = self.rest.len();
        let mut aside = [IoSliceMut::new(&mut self.rest)];
        let wanted =
            cutting.next(&self.shared, len, &mut Areas::new(&mut aside), &mut self.head)?;
        if wanted {
            self.at = areas.copy(&self.rest);
        }
        Ok(wanted)
    }

    fn end(&mut self, cutting: Cutting, why: Option<Error>) {
        let left = cutting.left();
        let hash = cutting.hasher.map(|hasher| hasher.finalize().into());
        self.shared.end_put(cutting.number, left, why.map_or(Ok(hash), Err));
    }
}

impl Cutting {
    fn left(&self) -> u64 {
        self.data.len() - self.done
    }

    fn head_len(&self) -> usize {
        WRITE_HEAD - Handle::MAX + self.head.handle.as_bytes().len()
    }

    /// Puts a WRITE of `len` bytes into `areas`, which have room for it; false when nobody wants the
    /// rest, as something failed.
    fn next(
        &mut self,
        shared: &Shared,
        len: usize,
        areas: &mut Areas<'_, '_>,
        head: &mut Vec<u8>,
    ) -> Result<bool, Error> {
        if len == 0 {
            return Ok(true);
        }
        let head_len = self.head_len();
        let read = areas.read(head_len, len, |done, places| self.read(done, places));
        let read = read.map_err(|why| Error::local("read", why))?;
        if read < len {
            let Data::File { offset, .. } = self.data else { return Ok(false) };
            return Err(Error::Shrunk { at: offset + self.done + read as u64 });
        }
        let Some(id) = shared.owe_write(self.number, len as u64) else { return Ok(false) };
        if let Some(hasher) = &mut self.hasher {
            areas.look(head_len, len, |piece| {
                hasher.update(piece);
            });
        }
        self.head.id = id;
        self.head.len = u32::try_from(len).unwrap_or(0);
        head.clear();
        self.head.encode(head);
        areas.finish(head, len);
        self.head.offset = self.head.offset.saturating_add(len as u64);
        self.done += len as u64;
        Ok(true)
    }

    /// Reads from `skip` bytes behind what has left; 0 is the end.
    fn read(&self, skip: usize, places: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        let at = self.done + skip as u64;
        match &self.data {
            Data::File { file, offset, .. } => {
                Ok(rustix::io::preadv(file, places, offset.saturating_add(at))?)
            }
            Data::Bytes(bytes) => {
                let from = usize::try_from(at).ok().and_then(|at| bytes.get(at..));
                Ok(Areas::new(places).copy(from.unwrap_or_default()))
            }
            Data::Zeros(_) => {
                places.iter_mut().for_each(|place| place.fill(0));
                Ok(places.iter().map(|place| place.len()).sum())
            }
        }
    }
}
