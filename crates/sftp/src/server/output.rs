//! Output: replies, filled straight into what is sent.
//!
//! A READ's data goes from the file into the packets it leaves in: room is left for the head of
//! DATA, and the head is written when it is known how much there was. A reply that does not fit
//! what is left begins the next batch; only one that does not fit an empty batch, because the
//! client's window is small, goes through a buffer. Called on the sending thread.

use super::fault::Fault;
use super::permit::Operation;
use super::queue::{Job, Shared};
use crate::codec::{DATA_HEAD, DataHead, Handle, MAX_DATA, Request};
use rustix::io::Errno;
use std::io::IoSliceMut;
use std::sync::Arc;

/// Areas that a READ is spread over: the slots of a batch.
const AREAS: usize = 16;

/// Requests run for one batch before what they gave is sent, by weight.
const RUN: usize = 32;

/// The sending end of a session.
pub struct Output {
    shared: Arc<Shared>,
    entered: bool,
    /// Replies that did not fit, from `sent` on.
    out: Vec<u8>,
    sent: usize,
    /// A READ that begins the next batch.
    next: Option<Job>,
}

/// How a READ ended.
enum Read {
    /// In the areas, or in the buffer.
    Done,
    /// There is no room for it now.
    Later,
}

impl Output {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self { shared, entered: false, out: Vec::new(), sent: 0, next: None }
    }

    /// Waits until there is something to send; `false` is the end.
    pub fn wait(&mut self) -> bool {
        if !std::mem::replace(&mut self.entered, true) {
            self.shared.enter_thread();
        }
        let waits = self.sent < self.out.len() || self.next.is_some();
        (waits && !self.shared.is_closed()) || self.shared.wait_for_output()
    }

    /// Fills the front of `areas`; the bytes filled.
    pub fn fill(&mut self, areas: &mut [IoSliceMut<'_>]) -> usize {
        let mut areas = Areas::new(areas);
        let mut done = None;
        let mut ran = 0;
        while self.put_rest(&mut areas) && ran < RUN {
            let job = match self.next.take() {
                Some(job) => job,
                None => match self.shared.next(done.take(), &mut self.out) {
                    Some(job) => job,
                    None if self.out.is_empty() => break,
                    None => continue,
                },
            };
            ran += job.weight();
            if let Read::Later = self.run(&job, &mut areas) {
                self.next = Some(job);
                break;
            }
            done = Some(job);
        }
        if let Some(job) = done {
            self.shared.done(&job);
        }
        areas.filled
    }

    /// Sends what is left over; whether it is all gone.
    fn put_rest(&mut self, areas: &mut Areas<'_, '_>) -> bool {
        self.sent += areas.put(self.out.get(self.sent..).unwrap_or_default());
        let gone = self.sent == self.out.len();
        if gone {
            self.out.clear();
            self.sent = 0;
        }
        gone
    }

    fn run(&mut self, job: &Job, areas: &mut Areas<'_, '_>) -> Read {
        let Request::Read { handle, offset, len } = &job.request else {
            self.shared.answer(job.id, &job.request).encode(job.id, &mut self.out);
            return Read::Done;
        };
        match self.read(job.id, handle, *offset, (*len).min(MAX_DATA), areas) {
            Ok(read) => read,
            Err(fault) => {
                self.shared.log_status(&fault.reply());
                fault.reply().encode(job.id, &mut self.out);
                Read::Done
            }
        }
    }

    fn read(
        &mut self,
        id: u32,
        handle: &Handle,
        offset: u64,
        len: u32,
        areas: &mut Areas<'_, '_>,
    ) -> Result<Read, Fault> {
        self.shared.permit(Operation::Read)?;
        let open = self.shared.handles.get(handle)?;
        if !open.file()?.reads() {
            return Err(Fault::handle());
        }
        let wanted = usize::try_from(len).unwrap_or(0);
        let spill = wanted + DATA_HEAD > areas.left();
        if spill && areas.filled > 0 {
            return Ok(Read::Later);
        }
        let mut buffer;
        let mut slices = std::array::from_fn::<_, AREAS, _>(|_| IoSliceMut::new(&mut []));
        let slices = if spill {
            self.out.resize(DATA_HEAD + wanted, 0);
            let data = self.out.get_mut(DATA_HEAD..).unwrap_or_default();
            buffer = [IoSliceMut::new(data)];
            &mut buffer[..]
        } else {
            let count = areas.slices(DATA_HEAD, wanted, &mut slices);
            slices.get_mut(..count).unwrap_or_default()
        };
        let read = loop {
            match rustix::io::preadv(&open, slices, offset) {
                Err(Errno::INTR) => {}
                read => break read,
            }
        };
        let read = match read {
            Ok(read) if read > 0 || wanted == 0 => read,
            nothing => {
                self.out.clear();
                return Err(nothing.map_or_else(Fault::from, |_| Fault::eof()));
            }
        };
        open.count_read(read as u64);
        let head = DataHead { id, len: u32::try_from(read).unwrap_or(len) }.encode();
        if spill {
            self.out.truncate(DATA_HEAD + read);
            self.out.iter_mut().zip(head).for_each(|(place, byte)| *place = byte);
        } else {
            areas.put(&head);
            areas.advance(read);
        }
        Ok(Read::Done)
    }
}

/// The session is over with its sending end, whatever is still to come in.
impl Drop for Output {
    fn drop(&mut self) {
        self.shared.close();
        self.shared.log_end();
    }
}

/// Fills areas from the front.
struct Areas<'a, 'b> {
    areas: &'a mut [IoSliceMut<'b>],
    /// The first that has room, and where in it.
    first: usize,
    at: usize,
    filled: usize,
    room: usize,
}

impl<'a, 'b> Areas<'a, 'b> {
    fn new(areas: &'a mut [IoSliceMut<'b>]) -> Self {
        let room = areas.iter().map(|area| area.len()).sum();
        Self { areas, first: 0, at: 0, filled: 0, room }
    }

    fn left(&self) -> usize {
        self.room - self.filled
    }

    /// Copies the front of `bytes`; how many fitted.
    fn put(&mut self, bytes: &[u8]) -> usize {
        let mut put = 0;
        while let Some(area) = self.areas.get_mut(self.first) {
            let from = bytes.get(put..).unwrap_or_default();
            let to = area.get_mut(self.at..).unwrap_or_default();
            let step = from.len().min(to.len());
            if let (Some(to), Some(from)) = (to.get_mut(..step), from.get(..step)) {
                to.copy_from_slice(from);
            }
            put += step;
            self.advance(step);
            if put == bytes.len() {
                break;
            }
        }
        put
    }

    /// Passes over bytes that were filled.
    fn advance(&mut self, bytes: usize) {
        self.filled += bytes;
        self.at += bytes;
        while let Some(area) = self.areas.get(self.first).filter(|area| self.at >= area.len()) {
            self.at -= area.len();
            self.first += 1;
        }
    }

    /// The room from `skip` bytes on, at most `most` bytes of it, as slices; how many.
    fn slices<'s>(
        &'s mut self,
        mut skip: usize,
        mut most: usize,
        slices: &mut [IoSliceMut<'s>],
    ) -> usize {
        skip += self.at;
        let mut slices = slices.iter_mut();
        let mut count = 0;
        for area in self.areas.iter_mut().skip(self.first) {
            let passed = skip.min(area.len());
            skip -= passed;
            let end = area.len().min(passed.saturating_add(most));
            let part = area.get_mut(passed..end).unwrap_or_default();
            if part.is_empty() {
                continue;
            }
            most -= part.len();
            let Some(slice) = slices.next() else { break };
            *slice = IoSliceMut::new(part);
            count += 1;
        }
        count
    }
}
