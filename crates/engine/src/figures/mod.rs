//! Figures: what a connection did, and what its threads waited for.
//!
//! ```text
//! ledger   the counters of a connection, touched once per batch by the threads that move data
//! (here)   a copy of them at one moment, with what the kernel says of the path; two copies give
//!          what happened in between
//! columns  the same as names and values, for the other end and for tables
//! record   and as names and values for people and logs
//! limits   from figures to what limited, and what would lift it
//! ```
//! Times are the monotonic clock's, which costs no system call on Linux, and are taken around
//! what may wait. How long a thread was on a processor the scheduler counts anyway; it is asked
//! when somebody wants figures.

pub mod columns;
mod ledger;
pub mod limits;
mod record;

pub use record::Record;

pub(crate) use ledger::{Clock, Hand, Ledger, Role};

use std::os::fd::AsFd;
use std::time::Duration;

/// What a connection did until one moment.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Figures {
    /// Since the connection was there.
    pub age: Duration,
    /// What we sent.
    pub sent: Way,
    /// What we received.
    pub received: Way,
    /// Of what we received, bytes that their consumers took.
    pub written: u64,
    /// Key exchanges after the first.
    pub rekeys: u64,
    /// The thread that sent the most.
    pub sender: Labour,
    /// The thread that receives.
    pub receiver: Labour,
    /// The threads that only seal and open: how many, and how long they did.
    pub workers: (u64, Duration),
    /// What the kernel says; `None` for anything that is not TCP.
    pub path: Option<Path>,
}

/// One direction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Way {
    /// Bytes of channel data.
    pub bytes: u64,
    /// Bytes on the wire, from the identification on.
    pub wire: u64,
    /// Packets.
    pub packets: u64,
    /// Bytes of channel data that went unencrypted.
    pub clear: u64,
    /// Bytes per second in the fastest second.
    pub peak: u64,
    /// The most that could be sent on a channel at one moment, as far as we know: what we
    /// granted, or what the peer did.
    pub window: u64,
    /// The most that our windows may grow to; 0 for the peer's, which we do not know.
    pub window_cap: u64,
}

/// What a thread did with its time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Labour {
    /// A number for the thread: figures of two threads cannot be compared.
    pub thread: u64,
    /// Bytes of channel data that it moved.
    pub bytes: u64,
    /// Since it began.
    pub age: Duration,
    /// On a processor.
    pub busy: Duration,
    /// Ready to run, while other threads had the processors.
    pub queued: Duration,
    /// Sealing or opening packets, part of `busy`.
    pub crypto: Duration,
    /// Sending: its input had nothing.
    pub input: Duration,
    /// Sending: the peer's channel window was used up.
    pub window: Duration,
    /// Sending: other threads had not sent what it gave them, or a key exchange was running.
    pub queue: Duration,
    /// Sending: in writes to the connection, waiting or not.
    pub socket: Duration,
    /// Receiving: in reads from the connection, waiting or not, between the first data and the
    /// last; the rest of the time in reads is not part of `age` either.
    pub network: Duration,
    /// Receiving: a consumer had not taken what came before.
    pub sink: Duration,
}

/// A connection's path, as the kernel of one end sees it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Path {
    /// TCP_INFO.
    pub tcp: sys::TcpInfo,
    /// SO_SNDBUF, in the kernel's count: about twice the data it holds.
    pub send_buffer: u64,
    /// SO_RCVBUF, likewise.
    pub receive_buffer: u64,
    /// The congestion control's name.
    pub congestion: String,
}

impl Path {
    /// Asks the kernel.
    pub fn of(fd: impl AsFd) -> Option<Self> {
        let fd = fd.as_fd();
        let bytes = |size: Option<usize>| size.unwrap_or(0) as u64;
        Some(Self {
            tcp: sys::tcp_info(fd)?,
            send_buffer: bytes(sys::send_buffer(fd)),
            receive_buffer: bytes(sys::receive_buffer(fd)),
            congestion: sys::congestion_control(fd).unwrap_or_default(),
        })
    }
}

impl Figures {
    /// What happened since `earlier` figures of the same connection.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            age: self.age.saturating_sub(earlier.age),
            sent: self.sent.since(&earlier.sent),
            received: self.received.since(&earlier.received),
            written: self.written.saturating_sub(earlier.written),
            rekeys: self.rekeys.saturating_sub(earlier.rekeys),
            sender: self.sender.since(&earlier.sender),
            receiver: self.receiver.since(&earlier.receiver),
            workers: (self.workers.0, self.workers.1.saturating_sub(earlier.workers.1)),
            path: match (&self.path, &earlier.path) {
                (Some(path), Some(earlier)) => Some(path.since(earlier)),
                (path, _) => path.clone(),
            },
        }
    }
}

impl Way {
    fn since(&self, earlier: &Self) -> Self {
        Self {
            bytes: self.bytes.saturating_sub(earlier.bytes),
            wire: self.wire.saturating_sub(earlier.wire),
            packets: self.packets.saturating_sub(earlier.packets),
            clear: self.clear.saturating_sub(earlier.clear),
            ..*self
        }
    }

    /// Bytes of channel data per second over `time`.
    #[must_use]
    pub fn mean(&self, time: Duration) -> u64 {
        per_second(self.bytes, time)
    }
}

impl Labour {
    fn since(&self, earlier: &Self) -> Self {
        if self.thread != earlier.thread {
            return *self;
        }
        Self {
            thread: self.thread,
            bytes: self.bytes.saturating_sub(earlier.bytes),
            age: self.age.saturating_sub(earlier.age),
            busy: self.busy.saturating_sub(earlier.busy),
            queued: self.queued.saturating_sub(earlier.queued),
            crypto: self.crypto.saturating_sub(earlier.crypto),
            input: self.input.saturating_sub(earlier.input),
            window: self.window.saturating_sub(earlier.window),
            queue: self.queue.saturating_sub(earlier.queue),
            socket: self.socket.saturating_sub(earlier.socket),
            network: self.network.saturating_sub(earlier.network),
            sink: self.sink.saturating_sub(earlier.sink),
        }
    }
}

impl Path {
    /// Counters since `earlier`; what is no counter stays as it is now.
    fn since(&self, earlier: &Self) -> Self {
        let (now, then) = (&self.tcp, &earlier.tcp);
        let tcp = sys::TcpInfo {
            busy: now.busy.saturating_sub(then.busy),
            rwnd_limited: now.rwnd_limited.saturating_sub(then.rwnd_limited),
            sndbuf_limited: now.sndbuf_limited.saturating_sub(then.sndbuf_limited),
            retransmits: now.retransmits.saturating_sub(then.retransmits),
            segments_out: now.segments_out.saturating_sub(then.segments_out),
            segments_in: now.segments_in.saturating_sub(then.segments_in),
            out_of_order: now.out_of_order.saturating_sub(then.out_of_order),
            acknowledged: now.acknowledged.saturating_sub(then.acknowledged),
            received: now.received.saturating_sub(then.received),
            ..*now
        };
        Self { tcp, ..self.clone() }
    }
}

/// Bytes per second; 0 over no time.
pub(crate) fn per_second(bytes: u64, time: Duration) -> u64 {
    let nanos = time.as_nanos();
    let rate = (u128::from(bytes) * 1_000_000_000).checked_div(nanos).unwrap_or(0);
    u64::try_from(rate).unwrap_or(u64::MAX)
}
