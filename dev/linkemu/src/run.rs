//! The emulator's loop: packets from one device, through the schedule, to the other.
//!
//! take_in   read what a device holds, straight into the ring; ask the schedule what becomes of it
//! let_out   write what is due, from where it lies in the ring; parts get headers of their own
//! wait      sleep a quantum after work (so that work comes in batches), else until a device
//!           has something or the next packet is due
//!
//! A packet read after such a sleep has waited for up to a quantum; one written may leave up to
//! a quantum early. The two cancel on average, and a packet on an idle link meets neither.

use std::collections::VecDeque;
use std::io::{IoSlice, PipeReader};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, read, write, writev};
use rustix::time::{ClockId, clock_gettime};
use sys::tun::Tun;

use crate::link::{Nanos, Piece, Schedule};
use crate::ring::{Ring, SLOT};
use crate::segment::{Shape, header_for};
use crate::stats::Direction;

/// Packets read from one device before the other gets its turn.
const BATCH: usize = 64;

/// What a thread of the emulator tells about itself while it runs.
#[derive(Debug, Default)]
pub struct Shared {
    /// The counters of both directions; this thread may serve only one.
    pub directions: [Direction; 2],
    /// CPU time used so far.
    pub cpu: Duration,
    /// The largest share of a core in any second.
    pub busiest_second: f64,
}

/// One direction with everything that is on its way.
pub struct Flow {
    /// 0 for a to b, 1 for b to a.
    pub index: usize,
    from: Arc<Tun>,
    to: Arc<Tun>,
    schedule: Schedule,
    ring: Ring,
    pending: VecDeque<Pending>,
    /// Whether the ring had no room for more when last tried.
    stuck: bool,
}

/// A piece in the ring.
struct Pending {
    piece: Piece,
    shape: Shape,
    at: usize,
    /// Whether the packet's place in the ring is free after this piece.
    is_last: bool,
}

impl Flow {
    /// A direction from one device to another; `memory` bytes hold what is on its way.
    pub fn new(index: usize, ends: [&Arc<Tun>; 2], schedule: Schedule, memory: usize) -> Self {
        let [from, to] = ends.map(Arc::clone);
        let ring = Ring::new(memory);
        Self { index, from, to, schedule, ring, pending: VecDeque::new(), stuck: false }
    }

    /// Reads up to a batch; returns how many packets that was.
    fn take_in(&mut self, clock: Clock, stats: &mut Direction) -> usize {
        self.stuck = false;
        for taken in 0..BATCH {
            let Some(slot) = self.ring.slot() else {
                stats.memory_full += 1;
                self.stuck = true;
                return taken;
            };
            match read(self.from.as_fd(), slot) {
                Ok(len) => self.enter(clock.now(), len, stats),
                Err(_) => return taken,
            }
        }
        BATCH
    }

    /// Puts the frame just read on its way.
    fn enter(&mut self, now: Nanos, len: usize, stats: &mut Direction) {
        let at = self.ring.commit(len);
        let shape = Shape::of(self.ring.frame(at, len));
        let before = self.pending.len();
        let pending = &mut self.pending;
        let fate = self.schedule.arrive(now, &shape, |piece| {
            pending.push_back(Pending { piece, shape, at, is_last: false });
        });
        if self.pending.len() == before {
            self.ring.uncommit(at);
        } else if let Some(last) = self.pending.back_mut() {
            last.is_last = true;
        }
        stats.packets_in += 1;
        stats.segments_in += u64::from(shape.segments);
        stats.bytes_in += shape.wire_bytes(&(0..shape.segments));
        stats.dropped_segments += u64::from(fate.dropped);
        stats.lost_segments += u64::from(fate.lost);
        stats.peak_queue_bytes = stats.peak_queue_bytes.max(fate.queued);
    }

    /// Writes everything that is due within `early` from now; returns how many pieces.
    fn let_out(&mut self, clock: Clock, early: Nanos, stats: &mut Direction) -> usize {
        let mut written = 0;
        let mut now = clock.now();
        while let Some(next) = self.pending.front() {
            if next.piece.due > now + early {
                now = clock.now();
                if next.piece.due > now + early {
                    break;
                }
            }
            let Some(next) = self.pending.pop_front() else { break };
            if written % 8 == 7 {
                now = clock.now();
            }
            stats.lateness.record(now.saturating_sub(next.piece.due));
            self.deliver(&next, stats);
            written += 1;
        }
        written
    }

    fn deliver(&mut self, pending: &Pending, stats: &mut Direction) {
        let Pending { piece: Piece { segments, .. }, shape, at, is_last } = pending;
        let frame = self.ring.frame(*at, shape.frame);
        let result = if shape.is_whole(segments) {
            write(self.to.as_fd(), frame)
        } else {
            let headers = header_for(frame, shape, segments);
            let payload = &frame[shape.payload(segments)];
            writev(self.to.as_fd(), &[IoSlice::new(headers.as_slice()), IoSlice::new(payload)])
        };
        match result {
            Ok(_) => {
                stats.packets_out += 1;
                stats.segments_out += u64::from(segments.end - segments.start);
                stats.bytes_out += shape.wire_bytes(segments);
            }
            Err(_) => stats.refused_packets += 1,
        }
        if *is_last {
            self.ring.release(*at, shape.frame);
        }
    }
}

/// Time since the link came up.
#[derive(Debug, Clone, Copy)]
pub struct Clock(Instant);

impl Clock {
    /// Starts at zero.
    pub fn start() -> Self {
        Self(Instant::now())
    }

    fn now(self) -> Nanos {
        self.0.elapsed().as_nanos() as Nanos
    }
}

/// One thread of the emulator.
pub struct Pump {
    /// The directions it serves.
    pub flows: Vec<Flow>,
    /// The least time between two rounds of work.
    pub quantum: Duration,
    /// The links' common zero.
    pub clock: Clock,
    /// Its counters.
    pub shared: Arc<Mutex<Shared>>,
    /// Ends the loop; the pipe closes to wake it.
    pub stop: Arc<AtomicBool>,
    /// See `stop`.
    pub wake: PipeReader,
}

impl Pump {
    /// Moves packets until told to stop.
    pub fn run(mut self) {
        // Both are improvements, not conditions: lateness is measured and judged anyway.
        let _ = sys::sched::precise_timers();
        let _ = sys::sched::realtime();
        let mut meter = Meter::start();
        while !self.stop.load(Ordering::Relaxed) {
            let work = self.round(&mut meter);
            if work == Work::None || self.quantum.is_zero() {
                self.wait();
            } else if work == Work::Some {
                thread::sleep(self.quantum);
            }
        }
        meter.finish(&mut lock(&self.shared));
    }

    fn round(&mut self, meter: &mut Meter) -> Work {
        let shared = &mut *lock(&self.shared);
        let early = self.quantum.as_nanos() as Nanos;
        let mut work = Work::None;
        for flow in &mut self.flows {
            let taken = flow.take_in(self.clock, &mut shared.directions[flow.index]);
            work = work.max(if taken == BATCH { Work::More } else { Work::of(taken) });
        }
        for flow in &mut self.flows {
            let written = flow.let_out(self.clock, early, &mut shared.directions[flow.index]);
            work = work.max(Work::of(written));
        }
        meter.tick(shared);
        work
    }

    fn wait(&self) {
        let due = self.flows.iter().filter_map(|f| f.pending.front()).map(|p| p.piece.due).min();
        let timeout = due.map(|due| {
            let wait = due.saturating_sub(self.clock.now());
            Timespec {
                tv_sec: (wait / 1_000_000_000) as i64,
                tv_nsec: (wait % 1_000_000_000) as i64,
            }
        });
        let mut fds = vec![PollFd::new(&self.wake, PollFlags::IN)];
        let open = self.flows.iter().filter(|flow| !flow.stuck);
        fds.extend(open.map(|flow| PollFd::new(&*flow.from, PollFlags::IN)));
        match poll(&mut fds, timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => thread::sleep(Duration::from_millis(1)),
        }
    }
}

/// What a round of the loop found to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Work {
    None,
    Some,
    More,
}

impl Work {
    fn of(packets: usize) -> Self {
        if packets == 0 { Self::None } else { Self::Some }
    }
}

/// Takes the thread's CPU time, second by second.
struct Meter {
    since: Instant,
    cpu: Duration,
}

impl Meter {
    fn start() -> Self {
        Self { since: Instant::now(), cpu: thread_cpu() }
    }

    fn tick(&mut self, shared: &mut Shared) {
        if self.since.elapsed() >= Duration::from_secs(1) {
            self.finish(shared);
        }
    }

    fn finish(&mut self, shared: &mut Shared) {
        let (wall, cpu) = (self.since.elapsed(), thread_cpu());
        if wall >= Duration::from_millis(500) {
            let share = (cpu - self.cpu).as_secs_f64() / wall.as_secs_f64();
            shared.busiest_second = shared.busiest_second.max(share);
        }
        shared.cpu = cpu;
        *self = Self { since: Instant::now(), cpu };
    }
}

fn thread_cpu() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// The counters, whatever became of the thread that held them last.
pub fn lock(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Memory for everything that a direction may hold: its queue and what is propagating, with
/// room for small packets that are padded.
pub fn memory_for(path: &crate::link::Path) -> usize {
    const LEAST: u64 = 64 * SLOT as u64;
    const UNLIMITED: u64 = 40_000_000_000;
    let rate = u128::from(path.rate.unwrap_or(UNLIMITED));
    let flight = rate * u128::from(path.delay + path.jitter + 10_000_000) / 8_000_000_000;
    let queue = if path.rate.is_some() { path.queue } else { 0 };
    ((flight as u64 + queue) * 3 / 2 + LEAST) as usize
}
