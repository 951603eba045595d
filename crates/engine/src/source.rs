//! Source: where a channel's data comes from; its thread runs the whole send path.
//!
//! ```text
//! credit   wait until the peer's window has room
//! read     one system call into the data areas of a pooled batch
//! finish   channel-data heads in front of the data
//! stage -> seal -> done -> flush   (tx)
//! ```
//! With no idle core nothing is handed over: this thread seals and writes, too. Where nothing is to
//! be sealed, data does not come by at all: the kernel passes it from descriptor to socket.

use crate::error::Error;
use crate::fd::Fd;
use crate::figures::{Hand, Role};
use crate::session::Session;
use crate::sync::{Arc, Lock, Signal};
use packet::batch::SLOTS;
use packet::layout::DATA;
use proto::channel::{Grant, LocalId};
use proto::window;
use std::io::{self, IoSliceMut};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use wire::msg;

/// Where bytes come from.
pub enum Source {
    /// Read until its end.
    Fd(Fd),
    /// As many zero bytes as the peer takes: `zeros@longhaul`.
    Zeros,
    /// Made in this process.
    Producer(Box<dyn Producer>),
}

/// Makes a channel's data in this process, in the packets it leaves in. Called on the source's own
/// thread, which may wait.
pub trait Producer: Send {
    /// Waits until there is something to send; `false` is the end. No credit is held meanwhile.
    /// A channel that closes does not end the wait: its program does.
    fn wait(&mut self) -> bool;

    /// Fills the front of `areas`, which are at most what the peer takes now and hold at least one
    /// byte; the bytes filled. None is no end, but "not now": `wait` is asked again.
    fn fill(&mut self, areas: &mut [IoSliceMut<'_>]) -> io::Result<usize>;
}

/// Least that is worth passing on without reading it.
const PASS: usize = 16 << 10;

/// Most of it in one packet: each costs two system calls at either end. Peers that take the NONE
/// MAC take packets of 256 KiB.
const PASSED: usize = 128 << 10;

/// What one read gave.
enum Read {
    Bytes(usize),
    NotNow,
    End,
}

/// How often a source that waits for its input looks whether anybody still wants it: what a command
/// has left behind may hold its output for ever.
const LOOK: Duration = Duration::from_secs(5);

/// What waiting for input came to.
enum Waited {
    There,
    NotYet,
    End,
}

impl Source {
    /// Waits until there is something to read, and no longer than [`LOOK`] for a descriptor.
    fn wait(&mut self) -> io::Result<Waited> {
        let there = match self {
            Self::Fd(fd) if !fd.wait_readable(LOOK)? => return Ok(Waited::NotYet),
            Self::Fd(_) | Self::Zeros => true,
            Self::Producer(producer) => producer.wait(),
        };
        Ok(if there { Waited::There } else { Waited::End })
    }

    fn read(&mut self, areas: &mut [IoSliceMut<'_>]) -> io::Result<Read> {
        let read = match self {
            Self::Fd(fd) => match fd.read(areas)? {
                0 => Read::End,
                bytes => Read::Bytes(bytes),
            },
            Self::Zeros => {
                areas.iter_mut().for_each(|area| area.fill(0));
                Read::Bytes(areas.iter().map(|area| area.len()).sum())
            }
            Self::Producer(producer) => match producer.fill(areas)? {
                0 => Read::NotNow,
                bytes => Read::Bytes(bytes),
            },
        };
        Ok(read)
    }
}

/// How a source ended.
#[derive(Debug)]
pub enum SourceEnd {
    /// The descriptor's end.
    Eof,
    /// The channel closed or nobody wants more: the rest was not read.
    Unwanted,
    /// Reading failed.
    Failed(io::Error),
    /// The connection is over.
    Lost(Error),
}

struct Credit {
    window: window::Send,
    /// Sources are to stop.
    closed: bool,
    /// The one without a code is to stop.
    output_unwanted: bool,
    /// Our CLOSE is about to be staged, or was: nothing of ours may follow.
    over: bool,
}

impl Credit {
    /// Whether the source of data with this code is to stop.
    fn is_refused(&self, code: Option<u32>) -> bool {
        self.closed || (self.output_unwanted && code.is_none())
    }
}

/// The peer's side of a channel, as sources see it: how much it still takes.
pub(crate) struct Sender {
    pub(crate) id: LocalId,
    remote: u32,
    max_packet: usize,
    /// The same for data that goes past memory.
    max_passed: usize,
    credit: Lock<Credit>,
    changed: Signal,
    /// What it sends comes from a descriptor.
    outside: AtomicBool,
}

impl Sender {
    pub(crate) fn new(id: LocalId, grant: Grant) -> Self {
        Self {
            id,
            remote: grant.remote,
            max_packet: usize::try_from(grant.max_packet).unwrap_or(DATA).min(DATA),
            max_passed: usize::try_from(grant.max_packet).unwrap_or(DATA).min(PASSED),
            credit: Lock::new(Credit {
                window: window::Send::new(grant.window),
                closed: false,
                output_unwanted: false,
                over: false,
            }),
            changed: Signal::new(),
            outside: AtomicBool::new(false),
        }
    }

    /// What it sends is not made in this process.
    pub(crate) fn set_outside(&self) {
        self.outside.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_outside(&self) -> bool {
        self.outside.load(Ordering::Relaxed)
    }

    /// WINDOW_ADJUST came; beyond 2^32 - 1 is the peer's fault (RFC 4254 section 5.2, C1). What
    /// may be sent now.
    pub(crate) fn add(&self, bytes: u32) -> Result<u32, window::Overflow> {
        let now = {
            let mut credit = self.credit.lock();
            credit.window.add(bytes)?;
            credit.window.credit()
        };
        self.changed.notify_all();
        Ok(now)
    }

    /// No more data may be sent on this channel.
    pub(crate) fn close(&self) {
        self.credit.lock().closed = true;
        self.changed.notify_all();
    }

    /// Nobody reads data without a code any more; its source stops.
    pub(crate) fn close_output(&self) {
        self.credit.lock().output_unwanted = true;
        self.changed.notify_all();
    }

    /// Our CLOSE comes next: no WINDOW_ADJUST either may follow it (RFC 4254 section 5.3).
    pub(crate) fn finish(&self) {
        self.credit.lock().over = true;
        self.close();
    }

    /// Whether our CLOSE was staged.
    pub(crate) fn is_over(&self) -> bool {
        self.credit.lock().over
    }

    /// Whether `message` is our CLOSE of this channel.
    pub(crate) fn is_closed_by(&self, message: &[u8]) -> bool {
        message.split_first() == Some((&msg::CHANNEL_CLOSE, &self.remote.to_be_bytes()[..]))
    }

    /// Whether data with this code may not leave any more.
    pub(crate) fn refuses(&self, code: Option<u32>) -> bool {
        self.credit.lock().is_refused(code)
    }

    /// Waits for credit and takes up to `wanted` of it for data with this code; `None` once that
    /// may not leave.
    fn take(&self, wanted: usize, code: Option<u32>, hand: &Hand) -> Option<usize> {
        let ready = |c: &mut Credit| c.is_refused(code) || c.window.credit() > 0;
        let mut credit = self.credit.lock();
        if !ready(&mut credit) {
            credit = hand.window.time(|| self.changed.wait_until(credit, ready));
        }
        if credit.is_refused(code) {
            return None;
        }
        let wanted = u32::try_from(wanted).unwrap_or(u32::MAX);
        usize::try_from(credit.window.take(wanted)).ok()
    }

    /// Credit that was not needed. Another stream of the channel may wait for it, and the peer
    /// need not send more before it gets some data.
    fn put_back(&self, bytes: usize) {
        self.credit.lock().window.put_back(u32::try_from(bytes).unwrap_or(0));
        self.changed.notify_all();
    }
}

/// Sends until the source or the channel ends.
pub(crate) fn run(
    session: &Session,
    sender: &Arc<Sender>,
    source: &mut Source,
    code: Option<u32>,
) -> SourceEnd {
    let hand = session.ledger().enlist(Role::Sending);
    loop {
        match turn(session, sender, source, code, &hand) {
            Ok(None) => {}
            Ok(Some(end)) => return end,
            Err(error) => return SourceEnd::Lost(session.blame(error)),
        }
    }
}

/// One batch of heads, whose data goes from `fd` to the socket within the kernel; false if there is
/// too little for that.
fn pass(
    session: &Session,
    sender: &Sender,
    fd: &Fd,
    code: Option<u32>,
    hand: &Hand,
) -> Result<bool, Error> {
    let Some(mut batch) = hand.queue.time(|| session.tx().pool().heads()) else {
        return Err(Error::Closed);
    };
    // From here on nothing of this descriptor is still to be passed on: our caller may read it.
    let there = fd.passable();
    let wanted = there.min(session.quantum()).min(SLOTS * sender.max_passed);
    let from = if there < PASS { None } else { fd.try_clone().ok() };
    let ready = from.and_then(|from| Some((from, sender.take(wanted, code, hand)?)));
    let Some((from, bytes)) = ready else {
        session.tx().pool().put(batch);
        return Ok(false);
    };
    session.tx().pass_from(Arc::new(from));
    batch.finish(bytes, sender.max_passed, sender.remote, code);
    if !session.send(sender, code, batch, bytes, hand)? {
        sender.put_back(bytes);
    }
    Ok(true)
}

/// One batch from source to socket.
fn turn(
    session: &Session,
    sender: &Sender,
    source: &mut Source,
    code: Option<u32>,
    hand: &Hand,
) -> Result<Option<SourceEnd>, Error> {
    // Credit is shared with the channel's other streams: none is reserved while nothing comes.
    match hand.input.time(|| source.wait()) {
        Ok(Waited::There) => {}
        Ok(Waited::NotYet) => return Ok(sender.refuses(code).then_some(SourceEnd::Unwanted)),
        Ok(Waited::End) => return Ok(Some(SourceEnd::Eof)),
        Err(error) => return Ok(Some(SourceEnd::Failed(error))),
    }
    if let Source::Fd(fd) = source
        && session.passes()
        && pass(session, sender, fd, code, hand)?
    {
        return Ok(None);
    }
    let Some(credit) = sender.take(session.quantum(), code, hand) else {
        return Ok(Some(SourceEnd::Unwanted));
    };
    let Some(mut batch) = hand.queue.time(|| session.tx().pool().bulk()) else {
        return Err(Error::Closed);
    };
    let filled = {
        let mut areas: [IoSliceMut<'_>; SLOTS] = std::array::from_fn(|_| IoSliceMut::new(&mut []));
        let count = batch.areas(credit, sender.max_packet, &mut areas);
        source.read(areas.get_mut(..count).unwrap_or_default())
    };
    let filled = match filled {
        Ok(Read::Bytes(filled)) => filled.min(credit),
        nothing => {
            sender.put_back(credit);
            session.tx().pool().put(batch);
            return Ok(match nothing {
                Ok(Read::End) => Some(SourceEnd::Eof),
                Ok(_) => None,
                Err(error) => Some(SourceEnd::Failed(error)),
            });
        }
    };
    if filled < credit {
        sender.put_back(credit - filled);
    }
    batch.finish(filled, sender.max_packet, sender.remote, code);
    if !session.send(sender, code, batch, filled, hand)? {
        sender.put_back(filled);
        return Ok(Some(SourceEnd::Unwanted));
    }
    Ok(None)
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use super::*;
    use crate::line::BATCH;
    use std::sync::mpsc;
    use std::time::Duration;
    use wire::Writer;

    fn hand() -> impl std::ops::Deref<Target = Hand> {
        std::sync::Arc::new(crate::figures::Ledger::default()).enlist(Role::Sending)
    }

    #[test]
    fn nothing_follows_our_close_of_a_channel() {
        let grant = Grant { remote: 7, max_packet: 1000, window: 1000 };
        let sender = Sender::new(LocalId(3), grant);
        let close = |id: u32| Writer::message(msg::CHANNEL_CLOSE).u32(id).take();
        assert!(sender.is_closed_by(&close(7)));
        assert!(!sender.is_closed_by(&close(3)));
        assert!(!sender.is_closed_by(&Writer::message(msg::CHANNEL_EOF).u32(7).take()));
        sender.close();
        assert!(!sender.is_over(), "a peer that wants no more of our data still gets credit");
        sender.finish();
        assert!(sender.is_over() && sender.refuses(None));
        assert_eq!(sender.take(1, None, &hand()), None);
    }

    #[test]
    fn output_that_nobody_reads_takes_no_credit_from_standard_error() {
        let grant = Grant { remote: 0, max_packet: 32768, window: 1000 };
        let sender = Sender::new(LocalId(0), grant);
        sender.close_output();
        assert!(sender.refuses(None) && !sender.refuses(Some(1)));
        assert_eq!(sender.take(BATCH, None, &hand()), None);
        assert_eq!(sender.take(BATCH, Some(1), &hand()), Some(1000));
    }

    /// stderr's source takes all credit, finds the end of file, and puts it back; stdout's waits
    /// meanwhile.
    #[test]
    fn credit_that_one_stream_puts_back_wakes_the_other() {
        let grant = Grant { remote: 0, max_packet: 32768, window: 1000 };
        let sender = Arc::new(Sender::new(LocalId(0), grant));
        assert_eq!(sender.take(BATCH, None, &hand()), Some(1000));
        let (told, taken) = mpsc::channel();
        let other = Arc::clone(&sender);
        std::thread::spawn(move || told.send(other.take(BATCH, None, &hand())));
        let asleep = taken.recv_timeout(Duration::from_millis(100));
        assert_eq!(asleep, Err(mpsc::RecvTimeoutError::Timeout));
        sender.put_back(1000);
        assert_eq!(taken.recv_timeout(Duration::from_secs(10)), Ok(Some(1000)));
    }
}
