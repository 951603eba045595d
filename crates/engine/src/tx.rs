//! Tx: staged batches to the socket, in order (RFC 4253 section 6).
//!
//! ```text
//! stage   any thread     stamps numbers under one lock, takes the next place in the order queue
//! seal    worker/caller  one pass over the batch, in place, under the key it was staged with
//! done    worker/caller  puts the sealed batch into its place
//! flush   whoever can    pops what is ready in order, one gathering write
//! ```
//! Numbers are given once and in order (P1), wire order is stamp order whoever seals first (P3),
//! and a rekey flushes nothing: key and numbers travel with the batch (P4). A thread that only
//! may not wait (the receiver, answering) leaves what the socket does not take to the tx thread,
//! so that two peers that both send at full speed never wait for each other.

mod wire;
mod writer;

pub(crate) use wire::Wire;
use writer::Writer;

use crate::error::Error;
use crate::fd::Fd;
use crate::figures::{Clock, Ledger};
use crate::line::{self, Line};
use crate::meter::Meter;
use crate::sync::{Arc, Lock, Signal};
use packet::{Batch, Deflate, SealKey, Stamp};
use proto::rekey::NO_MORE_PACKETS;
use proto::{NewKeys, RekeyLimit};
use std::collections::VecDeque;
use std::io;
use std::time::{Duration, Instant};

/// Batches between stage and socket. More than the pool holds, so bulk never waits here.
const RING: usize = 64;

/// Most memory of messages that wait for the socket. Every peer reads while it sends; one that
/// asks and asks and does not read the answers must not fill our memory.
const BACKLOG: usize = 8 << 20;

/// How often it is looked whether another thread has written what we wait for.
const MOMENT: Duration = Duration::from_millis(1);

/// A place in the order queue, and the key the batch in it is to be sealed under.
pub(crate) struct Ticket {
    place: u64,
    key: Arc<SealKey>,
    clear: bool,
}

impl Ticket {
    /// For [`Tx::flush_own`].
    pub(crate) fn place(&self) -> u64 {
        self.place
    }

    /// It leaves unencrypted.
    pub(crate) fn is_clear(&self) -> bool {
        self.clear
    }
}

/// Numbers, key and queue: everything that must change together.
struct Order {
    next: Stamp,
    key: Arc<SealKey>,
    /// Payloads become smaller before they get their numbers, in the order of these.
    deflate: Option<Box<Deflate>>,
    /// Bulk is held between our KEXINIT and our NEWKEYS (RFC 4253 section 7.1, B2).
    fenced: bool,
    meter: Meter,
    ring: VecDeque<Option<Batch>>,
    head: u64,
    /// Memory of the messages in the ring.
    backlog: usize,
    /// Whose turn it is among sources.
    line: Line,
    /// What is staged leaves unencrypted.
    clear: bool,
    broken: Option<Broken>,
}

/// Why nothing more can be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Broken {
    /// The socket took no more. What the peer said before is still to be heard.
    Unwritable(io::ErrorKind),
    /// The session is over, or a batch could not be sealed.
    Shut(io::ErrorKind),
}

impl Broken {
    fn error(self) -> Error {
        let (Self::Unwritable(kind) | Self::Shut(kind)) = self;
        Error::Local("write to the connection", kind.into())
    }
}

impl Order {
    fn full(&self) -> bool {
        self.ring.len() >= RING
    }

    fn stamp(&mut self, batch: &mut Batch) -> Result<Ticket, Error> {
        if let Some(deflate) = &mut self.deflate {
            deflate.squeeze(batch)?;
        }
        self.next = batch.stamp(self.next, self.key.layout());
        Ok(self.push(None))
    }

    /// Whether more may be sealed under this key (invariant P2).
    fn check_key(&self) -> Result<(), Error> {
        match self.next.packets < NO_MORE_PACKETS || !self.key.wears_out() {
            true => Ok(()),
            false => Err(Error::WornOut),
        }
    }

    /// The same for a message, which nothing holds back; `None` if it cannot leave any more.
    fn stamp_message(&mut self, batch: &mut Batch) -> Result<Option<Ticket>, Error> {
        if self.unwritable().is_some() {
            return Ok(None);
        }
        self.check()?;
        self.check_key()?;
        let backlog = self.backlog + batch.memory();
        if backlog > BACKLOG {
            return Err(unread());
        }
        self.backlog = backlog;
        self.stamp(batch).map(Some)
    }

    fn unwritable(&self) -> Option<Error> {
        self.broken.filter(|broken| matches!(broken, Broken::Unwritable(_))).map(Broken::error)
    }

    fn push(&mut self, batch: Option<Batch>) -> Ticket {
        let place = self.head + self.ring.len() as u64;
        self.ring.push_back(batch);
        Ticket { place, key: Arc::clone(&self.key), clear: self.clear }
    }

    fn bulk_is_ready(&self) -> bool {
        matches!(self.ring.front(), Some(Some(batch)) if line::is_bulk(batch))
    }

    fn pop_ready(&mut self) -> Option<Batch> {
        let batch = self.ring.front_mut()?.take()?;
        self.ring.pop_front();
        self.head += 1;
        self.line.taken(&batch);
        if !batch.is_bulk() {
            self.backlog = self.backlog.saturating_sub(batch.memory());
        }
        Some(batch)
    }
}

/// How far a flush goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flush {
    /// The caller may wait for the socket.
    Wait,
    /// The same, but not beyond this.
    Until(Instant),
    /// The caller must go on receiving; the tx thread finishes.
    Now,
}

/// The sending half of a connection.
pub(crate) struct Tx<W = Fd> {
    wire: Arc<W>,
    order: Lock<Order>,
    /// Room in the ring, end of a fence, or the end of everything.
    moved: Signal,
    writer: Lock<Writer>,
    /// Where the data of the one batch of heads comes from.
    passing: Lock<Option<Arc<Fd>>>,
    /// Why the data of a packet did not come whose head is out: nothing can follow that.
    cut: Lock<Option<io::Error>>,
    fault: Lock<Option<Error>>,
    leftover: Lock<bool>,
    leftover_there: Signal,
    pool: crate::pool::Pool,
    ledger: std::sync::Arc<Ledger>,
}

impl<W: Wire> Tx<W> {
    /// A sending half over `wire`, unprotected until the first [`Tx::rekey`].
    pub(crate) fn new(wire: Arc<W>, ledger: std::sync::Arc<Ledger>) -> Self {
        Self {
            wire,
            ledger,
            order: Lock::new(Order {
                next: Stamp::default(),
                key: Arc::new(SealKey::plain()),
                deflate: None,
                fenced: false,
                meter: Meter::new(),
                ring: VecDeque::with_capacity(RING),
                head: 0,
                backlog: 0,
                line: Line::new(),
                clear: false,
                broken: None,
            }),
            moved: Signal::new(),
            writer: Lock::new(Writer { batches: VecDeque::with_capacity(RING), skip: 0 }),
            passing: Lock::new(None),
            cut: Lock::new(None),
            fault: Lock::new(None),
            leftover: Lock::new(false),
            leftover_there: Signal::new(),
            pool: crate::pool::Pool::new(),
        }
    }

    /// Where what is sent is counted.
    pub(crate) fn ledger(&self) -> &std::sync::Arc<Ledger> {
        &self.ledger
    }

    /// The pool that bulk batches come from and return to.
    pub(crate) fn pool(&self) -> &crate::pool::Pool {
        &self.pool
    }

    /// Gives a bulk batch its numbers; waits for its turn, and while a key exchange holds bulk
    /// back, for as long as `queue` then tells. The second value says that the key has now sealed
    /// as much as it should: start a rekey, which is asked for once per exchange. `None` if the
    /// batch is not `wanted` any more, asked in the same breath: nothing follows a channel's CLOSE.
    pub(crate) fn stage(
        &self,
        batch: &mut Batch,
        wanted: impl Fn() -> bool,
        queue: &Clock,
    ) -> Result<Option<(Ticket, bool)>, Error> {
        // What follows may be work: compression.
        let mut order = queue.time(|| {
            let mut order = self.order.lock();
            let place = order.line.join(batch);
            let mut order = self.moved.wait_until(order, |o| {
                (!o.fenced && !o.full() && o.line.admits(&place)) || o.broken.is_some()
            });
            order.line.leave(place);
            order
        });
        self.moved.notify_all();
        order.check()?;
        if !wanted() {
            return Ok(None);
        }
        order.check_key()?;
        let ticket = order.stamp(batch)?;
        order.line.staged(batch);
        order.meter.count(batch.payload(), batch.len() as u64);
        let due = order.meter.is_due();
        Ok(Some((ticket, due)))
    }

    /// Whether data may go from its descriptor to the socket without coming by: once neither
    /// cipher nor MAC nor compression wants to see it, and that stays so (N4).
    pub(crate) fn is_bare(&self) -> bool {
        let order = self.order.lock();
        order.key.is_bare() && order.deflate.is_none()
    }

    /// The data of the batch of heads that is staged next comes from here. Whoever says so has the
    /// one batch of heads ([`Pool::heads`](crate::pool::Pool::heads)), so there is no other.
    pub(crate) fn pass_from(&self, fd: Arc<Fd>) {
        *self.passing.lock() = Some(fd);
    }

    /// Nothing more can be sent, for a reason that only a sending thread knows: whoever receives
    /// says it.
    pub(crate) fn fail(&self, why: Error) {
        self.fault.lock().get_or_insert(why);
        self.shut(io::ErrorKind::Other);
        self.wire.end();
    }

    /// Nothing is sent any more, and it was not the socket that said so.
    pub(crate) fn is_shut(&self) -> bool {
        matches!(self.order.lock().broken, Some(Broken::Shut(_)))
    }

    /// Why nothing more could be sent, if that is why the connection ended.
    pub(crate) fn take_fault(&self) -> Option<Error> {
        self.fault.lock().take()
    }

    /// What became of the input that was passed on when the connection ended, if that is why.
    pub(crate) fn take_cut(&self) -> Option<io::Error> {
        self.cut.lock().take()
    }

    /// A batch that is written, or that nobody wants any more.
    pub(crate) fn give_back(&self, batch: Batch) {
        if batch.is_heads() {
            *self.passing.lock() = None;
        }
        self.pool.put(batch);
    }

    /// Stages and seals one message; never waits, and fails when too many wait already. During a
    /// key exchange the state machine holds back what may not leave, so the fence is not asked.
    /// After a failed write it is dropped: whoever needs it to arrive flushes, and hears of that.
    pub(crate) fn message(&self, payload: &[u8]) -> Result<(), Error> {
        let mut batch = Batch::message(payload);
        let ticket = self.order.lock().stamp_message(&mut batch)?;
        ticket.map_or(Ok(()), |ticket| self.seal(ticket, batch))
    }

    /// Why the socket takes nothing any more, if that is so.
    pub(crate) fn unwritable(&self) -> Option<Error> {
        self.order.lock().unwritable()
    }

    /// Stages one message unless a key exchange is running; whether it need not be thought of any
    /// more. One that is not `wanted` any more, asked in the same breath, is dropped.
    pub(crate) fn message_unless_fenced(
        &self,
        payload: &[u8],
        wanted: impl Fn() -> bool,
    ) -> Result<bool, Error> {
        let mut batch = self.pool.small(payload);
        let ticket = {
            let mut order = self.order.lock();
            if order.fenced {
                return Ok(false);
            }
            if !wanted() {
                return Ok(true);
            }
            order.stamp_message(&mut batch)?
        };
        ticket.map_or(Ok(()), |ticket| self.seal(ticket, batch))?;
        Ok(true)
    }

    /// Bytes outside the packet protocol: the identification string.
    pub(crate) fn raw(&self, bytes: &[u8]) {
        let batch = Batch::raw(bytes);
        self.order.lock().push(Some(batch));
    }

    /// Seals a staged batch and puts it into its place.
    pub(crate) fn seal(&self, ticket: Ticket, mut batch: Batch) -> Result<(), Error> {
        if let Err(error) = ticket.key.seal(&mut batch) {
            self.fail(error.into());
            return Err(Error::Closed);
        }
        self.done(ticket, batch);
        Ok(())
    }

    fn done(&self, ticket: Ticket, batch: Batch) {
        let mut order = self.order.lock();
        let index = usize::try_from(ticket.place.wrapping_sub(order.head)).unwrap_or(usize::MAX);
        if let Some(place) = order.ring.get_mut(index) {
            *place = Some(batch);
        }
    }

    /// From here on bulk waits, until [`Tx::rekey`].
    pub(crate) fn fence(&self) {
        self.order.lock().fenced = true;
    }

    /// Everything staged from here on is sealed with these (directly after our NEWKEYS).
    pub(crate) fn rekey(&self, new: &NewKeys) -> Result<(), Error> {
        let mut order = self.order.lock();
        let key = order.key.rekeyed(new.cover, &new.material)?;
        order.next = order.next.rekeyed(new.reset_seq);
        order.key = Arc::new(key);
        order.fenced = false;
        order.deflate = new.compress.then(Box::default);
        order.clear = new.cover.is_clear();
        order.meter.renew(new.cover);
        drop(order);
        self.moved.notify_all();
        Ok(())
    }

    /// Everything staged from here on is compressed.
    pub(crate) fn deflate(&self) {
        self.order.lock().deflate = Some(Box::default());
    }

    /// A key exchange is over: one that became due while it ran may be started now.
    pub(crate) fn exchanged(&self) {
        self.order.lock().meter.ask_again();
    }

    /// How long and how much a key may serve.
    pub(crate) fn set_rekey_limit(&self, limit: RekeyLimit) {
        self.order.lock().meter.set_limit(limit);
    }

    /// Bytes that a batch should have from now on (see [`Line::set_quantum`]).
    pub(crate) fn set_quantum(&self, quantum: usize) {
        self.order.lock().line.set_quantum(quantum);
        self.moved.notify_all();
    }

    /// Writes what is ready. Whoever holds the writer looks again after letting go, so a batch
    /// that another thread put in meanwhile is never left behind.
    pub(crate) fn flush(&self, flush: Flush) -> Result<(), Error> {
        self.flush_up_to(flush, None)
    }

    /// The same for a source whose batch has this place: other sources' bulk behind it is left to
    /// the tx thread, or it would go on writing for them and read nothing itself.
    pub(crate) fn flush_own(&self, place: u64) -> Result<(), Error> {
        self.flush_up_to(Flush::Wait, Some(place))
    }

    fn flush_up_to(&self, flush: Flush, own: Option<u64>) -> Result<(), Error> {
        if let Some(error) = self.unwritable() {
            return if flush == Flush::Wait { Err(error) } else { Ok(()) };
        }
        loop {
            let left = match self.writer.try_lock() {
                Some(mut writer) => {
                    let left = self.write_ready(&mut writer, flush, own)?;
                    drop(writer);
                    if left {
                        self.leave_to_tx_thread();
                    }
                    left
                }
                // Whoever has it writes ours, too: only the last words are waited for.
                None => true,
            };
            match flush {
                // What another thread still seals is ahead of them.
                Flush::Until(deadline)
                    if (left || self.has_staged()) && Instant::now() < deadline =>
                {
                    std::thread::sleep(MOMENT);
                }
                _ if left || !self.head_ready() => return Ok(()),
                _ => {}
            }
        }
    }

    fn has_staged(&self) -> bool {
        !self.order.lock().ring.is_empty()
    }

    fn head_ready(&self) -> bool {
        matches!(self.order.lock().ring.front(), Some(Some(_)))
    }

    fn leave_to_tx_thread(&self) {
        *self.leftover.lock() = true;
        self.leftover_there.notify_all();
    }

    /// The tx thread: writes what others may not wait for, and in threaded folds everything.
    pub(crate) fn run(&self) -> Result<(), Error> {
        loop {
            let mut left = self.leftover_there.wait_until(self.leftover.lock(), |left| *left);
            *left = false;
            drop(left);
            if self.order.lock().broken.is_some() {
                return Ok(());
            }
            // Whoever has the writer instead writes it all, or leaves it to us again.
            self.flush(Flush::Wait)?;
        }
    }

    /// Wakes the tx thread to write what is ready.
    pub(crate) fn wake(&self) {
        self.leave_to_tx_thread();
    }

    /// Nothing more can be sent: every waiting thread returns with an error.
    pub(crate) fn shut(&self, why: io::ErrorKind) {
        self.end(Broken::Shut(why));
    }

    fn end(&self, why: Broken) {
        self.order.lock().broken.get_or_insert(why);
        self.moved.notify_all();
        self.pool.shut();
        self.leave_to_tx_thread();
    }
}

impl Order {
    fn check(&self) -> Result<(), Error> {
        self.broken.map_or(Ok(()), |broken| Err(broken.error()))
    }
}

fn unread() -> Error {
    let what = "peer does not read the answers to what it asks";
    Error::Protocol(proto::Misbehaved::Upper(what.to_owned()).into())
}

#[cfg(test)]
#[cfg(feature = "shuttle")]
mod schedules;

#[cfg(test)]
#[cfg(not(feature = "shuttle"))]
mod turns;

#[cfg(test)]
#[cfg(not(feature = "shuttle"))]
mod tests;
