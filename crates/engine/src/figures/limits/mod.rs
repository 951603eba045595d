//! Limits: from figures to what limited a stream. Measured, not guessed.
//!
//! ```text
//! where   the thread that moved the data tells how much of its time went where; the largest
//!         part names its input, its consumer, the peer's window, the network or the processor
//! why     the network's part is told apart by what the kernel counted (TCP_INFO), a window's by
//!         its loop: bytes that are under way need a round trip, bytes that nobody takes need more
//! there   the other end's figures, where it gives them, tell what from here is only "the other end"
//! ```

mod advice;

pub use advice::{System, advice};

use super::{Figures, Labour, Path, per_second};
use std::fmt;
use std::time::Duration;

/// Less than this says nothing.
const LEAST: u64 = 64 << 10;

/// One end of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The one whose figures these are.
    Here,
    /// Its peer.
    There,
}

impl End {
    fn other(self) -> Self {
        match self {
            Self::Here => Self::There,
            Self::There => Self::Here,
        }
    }
}

/// What can limit a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// What the data comes from.
    Producer,
    /// What the data goes to.
    Consumer,
    /// The channel window that this end grants.
    Window,
    /// This end's TCP receive buffer.
    ReceiveBuffer,
    /// This end's TCP send buffer.
    SendBuffer,
    /// Sealing or opening packets.
    Cipher,
    /// A thread that is busy with everything else.
    Core,
    /// Other work that has the processors.
    Machine,
    /// This end, without more being known: it gives no figures.
    Unknown,
    /// Packets that get lost.
    Loss,
    /// The path carries no more.
    Path,
}

/// What limited a stream, and the figures that say so.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Verdict {
    /// What it was.
    pub cause: Cause,
    /// Where; of a loss or a path nothing.
    pub end: End,
    /// The stream went from here to there.
    pub sending: bool,
    /// The part of the time in which it was what the stream waited for, 0 to 1.
    pub share: f64,
    /// Bytes per second while there was something to send.
    pub rate: u64,
    /// Round trip.
    pub rtt: Duration,
    /// The window or buffer in bytes; lost segments of a million.
    pub size: u64,
}

/// What limited the direction in which more was moved; `there` are the other end's figures over
/// about the same time. `None` when too little was moved to tell.
#[must_use]
pub fn find(here: &Figures, there: Option<&Figures>) -> Option<Verdict> {
    if here.sender.bytes.max(here.receiver.bytes) < LEAST {
        return None;
    }
    if here.sender.bytes >= here.receiver.bytes {
        let verdict = sending(here);
        let theirs = there.filter(|f| f.receiver.bytes >= LEAST).map(receiving);
        Some(match (verdict.end, theirs) {
            // Where their thread only waits for data, what we see is what there is.
            (End::There, Some(theirs)) if theirs.end == End::Here => {
                Verdict { rate: verdict.rate, ..theirs.as_seen_here() }
            }
            _ => verdict,
        })
    } else {
        let verdict = receiving(here);
        let theirs = there.filter(|f| f.sender.bytes >= LEAST).map(sending);
        Some(match (verdict.cause, theirs) {
            (Cause::Unknown | Cause::Loss, Some(theirs)) => theirs.as_seen_here(),
            (Cause::Window | Cause::ReceiveBuffer, Some(theirs)) if theirs.end == End::Here => {
                theirs.as_seen_here()
            }
            _ => verdict,
        })
    }
}

impl Verdict {
    /// A verdict of the other end, seen from here.
    fn as_seen_here(self) -> Self {
        Self { end: self.end.other(), sending: !self.sending, ..self }
    }
}

/// The parts of a thread's time, the largest first.
fn largest<const N: usize>(parts: [(Part, Duration); N]) -> (Part, Duration) {
    let max = parts.into_iter().max_by_key(|(_, time)| *time);
    max.unwrap_or((Part::Busy, Duration::ZERO))
}

/// What a thread's time went into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Input,
    Window,
    Network,
    Sink,
    Busy,
    Queued,
}

/// What limited what this end sent.
fn sending(f: &Figures) -> Verdict {
    let l = &f.sender;
    let known = l.input + l.window + l.busy + l.queued;
    let network = (l.socket + l.queue).min(l.age.saturating_sub(known));
    let (part, time) = largest([
        (Part::Input, l.input),
        (Part::Window, l.window),
        (Part::Network, network),
        (Part::Busy, l.busy),
        (Part::Queued, l.queued),
    ]);
    let rate = per_second(l.bytes, l.age.saturating_sub(l.input));
    let rtt = f.path.as_ref().map_or(Duration::ZERO, |path| path.tcp.rtt);
    let told = |cause, end, size| Verdict {
        cause,
        end,
        sending: true,
        share: share(time, l.age),
        rate,
        rtt,
        size,
    };
    match part {
        Part::Input => {
            Verdict { rate: per_second(l.bytes, l.age), ..told(Cause::Producer, End::Here, 0) }
        }
        Part::Window if is_loop(f.sent.window, rate, rtt) => {
            told(Cause::Window, End::There, f.sent.window)
        }
        Part::Window => match behind_the_window(f, rate) {
            Some((cause, end, size)) => told(cause, end, size),
            None => told(Cause::Consumer, End::There, f.sent.window),
        },
        Part::Network if workers_are_busy(f, l) => told(Cause::Cipher, End::Here, f.workers.0),
        Part::Network => match &f.path {
            Some(path) => {
                let (cause, end, size) = on_the_way(path, rate);
                told(cause, end, size)
            }
            None => told(Cause::Path, End::Here, 0),
        },
        Part::Queued => told(Cause::Machine, End::Here, 0),
        Part::Busy | Part::Sink => told(busy_with(l), End::Here, f.workers.0),
    }
}

/// What limited what this end received.
fn receiving(f: &Figures) -> Verdict {
    let l = &f.receiver;
    let known = l.sink + l.busy + l.queued;
    let (part, time) = largest([
        (Part::Sink, l.sink),
        (Part::Network, l.network.min(l.age.saturating_sub(known))),
        (Part::Busy, l.busy),
        (Part::Queued, l.queued),
    ]);
    let rate = per_second(l.bytes, l.age);
    let rtt = f.path.as_ref().map_or(Duration::ZERO, round_trip);
    let told = |cause, end, size| Verdict {
        cause,
        end,
        sending: false,
        share: share(time, l.age),
        rate,
        rtt,
        size,
    };
    match part {
        Part::Sink => told(Cause::Consumer, End::Here, 0),
        Part::Network => {
            let (cause, end, size) = before_us(f, rate, rtt);
            told(cause, end, size)
        }
        Part::Queued => told(Cause::Machine, End::Here, 0),
        _ => told(busy_with(l), End::Here, f.workers.0),
    }
}

/// What keeps data that another thread still has to write: then the window is used up before the
/// socket has it. A consumer that is slow leaves TCP idle most of the time.
fn behind_the_window(f: &Figures, rate: u64) -> Option<(Cause, End, u64)> {
    let path = f.path.as_ref().filter(|path| share(path.tcp.busy, f.sender.age) >= 0.7)?;
    Some(on_the_way(path, rate)).filter(|(cause, ..)| *cause != Cause::Path)
}

/// Whether the bytes that a window lets through were on their way rather than at their end: one
/// window per round trip or little more, as half of it is granted at once. The last millisecond
/// is what scheduling and batches take where there is no round trip to speak of.
fn is_loop(window: u64, rate: u64, rtt: Duration) -> bool {
    let loops = seconds(window, rate);
    loops <= rtt.as_secs_f64() * 2.5 + 0.001
}

/// What keeps a sender that waits for its socket, by the kernel's own account of the time in
/// which it had something to send.
fn on_the_way(path: &Path, rate: u64) -> (Cause, End, u64) {
    /// Of the time: more than start-up takes. The kernel counts a full send buffer only while
    /// nothing of it is left to be sent, which on a busy machine is half of what it costs.
    const MUCH: f64 = 0.2;
    const FULL: f64 = 0.15;
    let tcp = &path.tcp;
    let (peer, ours) = (share(tcp.rwnd_limited, tcp.busy), share(tcp.sndbuf_limited, tcp.busy));
    let flight = in_flight(rate, tcp.shortest_rtt);
    let peer_window = u64::from(tcp.peer_window);
    if peer >= MUCH && peer >= ours {
        // A window that is smaller than what the path holds, or one that nobody empties.
        let small = peer_window > 0 && flight >= peer_window / 4;
        return if small {
            (Cause::ReceiveBuffer, End::There, peer_window)
        } else {
            (Cause::Core, End::There, 0)
        };
    }
    // What is on its way stays in the buffer until it is acknowledged. Autotuning keeps the buffer
    // at three to five times that, in the kernel's count, as long as it may.
    let full = flight >= path.send_buffer / 5 * 2;
    // The peer's autotuning keeps its window at twice that, likewise.
    let filled = flight >= peer_window / 5 * 3 && !has_losses(path) && !has_queue(path);
    if filled && peer_window > 0 && !full {
        return (Cause::ReceiveBuffer, End::There, peer_window);
    }
    if ours >= FULL || (full && !has_losses(path) && !has_queue(path)) {
        return (Cause::SendBuffer, End::Here, path.send_buffer / 2);
    }
    if has_losses(path) && !has_queue(path) {
        return (Cause::Loss, End::Here, per_million(tcp.retransmits, tcp.segments_out));
    }
    (Cause::Path, End::Here, 0)
}

/// What keeps data from coming to a receiver that could take more.
fn before_us(f: &Figures, rate: u64, rtt: Duration) -> (Cause, End, u64) {
    let unknown = (Cause::Unknown, End::There, 0);
    let Some(path) = &f.path else { return unknown };
    let way = &f.received;
    if way.window >= way.window_cap && is_loop(way.window, rate, rtt) {
        return (Cause::Window, End::Here, way.window);
    }
    let window = match u64::from(path.tcp.our_window) {
        0 => path.receive_buffer / 2,
        window => window,
    };
    if in_flight(rate, rtt) >= window / 2 {
        return (Cause::ReceiveBuffer, End::Here, window);
    }
    let lost = per_million(path.tcp.out_of_order, path.tcp.segments_in);
    if path.tcp.out_of_order >= 3 && lost >= 20 {
        return (Cause::Loss, End::Here, lost);
    }
    unknown
}

/// The round trip as a receiver knows it: what it sends itself is little, and acknowledged late.
fn round_trip(path: &Path) -> Duration {
    let known = [path.tcp.shortest_rtt, path.tcp.rtt, path.tcp.receive_rtt];
    known.into_iter().find(|rtt| !rtt.is_zero()).unwrap_or_default()
}

/// Enough segments were sent again to keep congestion control small.
fn has_losses(path: &Path) -> bool {
    let tcp = &path.tcp;
    tcp.retransmits >= 3 && per_million(tcp.retransmits, tcp.segments_out) >= 20
}

/// Our own data fills a queue on the path: losses are then the path's way to say "full".
fn has_queue(path: &Path) -> bool {
    let (now, least) = (path.tcp.rtt, path.tcp.shortest_rtt);
    now > least.mul_f64(1.5) + Duration::from_millis(3)
}

/// More than half of a busy thread's work.
fn busy_with(l: &Labour) -> Cause {
    if l.crypto * 2 >= l.busy { Cause::Cipher } else { Cause::Core }
}

/// The threads that seal for a sender have nothing to spare.
fn workers_are_busy(f: &Figures, l: &Labour) -> bool {
    let (count, worked) = f.workers;
    count > 0 && worked.as_secs_f64() >= 0.7 * count as f64 * l.age.as_secs_f64()
}

fn share(part: Duration, whole: Duration) -> f64 {
    let whole = whole.as_secs_f64();
    if whole > 0.0 { (part.as_secs_f64() / whole).min(1.0) } else { 0.0 }
}

fn seconds(bytes: u64, rate: u64) -> f64 {
    bytes as f64 / rate.max(1) as f64
}

/// Bytes between two ends that are `rtt` apart.
fn in_flight(rate: u64, rtt: Duration) -> u64 {
    (rate as f64 * rtt.as_secs_f64()) as u64
}

fn per_million(part: u32, of: u32) -> u64 {
    (u64::from(part) * 1_000_000).checked_div(of.into()).unwrap_or(0)
}

/// As it stands behind `limited by: `.
impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = match self.end {
            End::Here => "here",
            End::There => "at the other end",
        };
        match self.cause {
            Cause::Producer => write!(f, "a slow producer {place}")?,
            Cause::Consumer => write!(f, "a slow consumer {place}")?,
            Cause::Window => match self.end {
                End::Here => write!(f, "our channel window of {}", Bytes(self.size))?,
                End::There => write!(f, "the peer's {} channel window", Bytes(self.size))?,
            },
            Cause::ReceiveBuffer => {
                write!(f, "the TCP receive buffer {place}, a window of {}", Bytes(self.size))?;
            }
            Cause::SendBuffer => {
                write!(f, "the TCP send buffer {place}, about {} of data", Bytes(self.size))?;
            }
            Cause::Cipher => write!(f, "the cipher {place}")?,
            Cause::Core => write!(f, "one core {place}")?,
            Cause::Machine => write!(f, "other work on the processors {place}")?,
            Cause::Unknown => write!(f, "something {place}, which gives no figures")?,
            Cause::Loss => write!(f, "packet loss on the path, {} of a million", self.size)?,
            Cause::Path => write!(f, "the path, which carries no more")?,
        }
        let percent = self.share * 100.0;
        write!(f, " ({percent:.0} % of the time; {}", Rate(self.rate))?;
        if !self.rtt.is_zero() {
            write!(f, ", round trip {:.1} ms", self.rtt.as_secs_f64() * 1e3)?;
        }
        write!(f, ")")
    }
}

/// A size for people, in powers of two.
pub struct Bytes(pub u64);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [(&str, u64); 3] = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
        let unit = UNITS.into_iter().find(|(_, size)| self.0 >= *size);
        match unit {
            Some((name, size)) => write!(f, "{:.1} {name}", self.0 as f64 / size as f64),
            None => write!(f, "{} bytes", self.0),
        }
    }
}

/// Bytes per second for people, in powers of ten.
pub struct Rate(pub u64);

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [(&str, u64); 3] =
            [("GB/s", 1_000_000_000), ("MB/s", 1_000_000), ("kB/s", 1_000)];
        let unit = UNITS.into_iter().find(|(_, size)| self.0 >= *size);
        match unit {
            Some((name, size)) => write!(f, "{:.1} {name}", self.0 as f64 / size as f64),
            None => write!(f, "{} B/s", self.0),
        }
    }
}

#[cfg(test)]
mod tests;
