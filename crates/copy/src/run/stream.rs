//! Stream: a lane of `-t` to or from a server that takes and gives made-up data by itself. The
//! connection's own threads fill packets, or drop them; this thread looks on.
//!
//! ```text
//! take     queue                  the job that all lanes have, or a share of it
//! cart     connection's threads   how much of its shares this lane has moved; takes further ones
//! look     this thread            tells what was moved; ends the channel when it is time
//! ```

use super::copying::Copying;
use super::job::{After, Job, Rest, Share};
use super::lane::End;
use super::queue::{Entry, Take, Work};
use super::ranges::Ranges;
use super::route::{Direction, Route, Slot, Trouble};
use crate::observe::{LaneId, Outcome};
use login::CallOff;
use remote::StreamEnd;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How often a lane tells what it has moved.
const LOOK: Duration = Duration::from_millis(50);

/// A lane's part of the job.
struct Cart {
    job: Arc<Job>,
    /// What it has not moved of the share it has.
    left: Range<u64>,
    /// Shares of which it has moved all.
    emptied: u32,
    /// Moved and not told yet.
    moved: u64,
    lanes: usize,
    /// Nothing more is to be moved from then on.
    until: Option<Instant>,
}

impl Cart {
    fn new(job: Arc<Job>, share: Share) -> Self {
        Self { job, left: share.range, emptied: 0, moved: 0, lanes: 1, until: None }
    }

    /// Whether there is anything left for this lane.
    fn has_more(&mut self) -> bool {
        if self.until.is_some_and(|until| Instant::now() >= until) {
            return false;
        }
        if !self.left.is_empty() {
            return true;
        }
        let next = self.job.take(self.lanes);
        self.emptied += u32::from(next.is_some());
        self.left = next.map_or(self.left.end..self.left.end, |share| share.range);
        !self.left.is_empty()
    }

    /// Takes up to `most` bytes that are to be moved now, or were.
    fn take(&mut self, most: usize) -> usize {
        let mut taken = 0;
        while taken < most && self.has_more() {
            let part = (self.left.end - self.left.start).min((most - taken) as u64);
            self.left.start += part;
            taken += usize::try_from(part).unwrap_or(most);
        }
        self.moved += taken as u64;
        taken
    }

    /// The lane is through: its shares are there, and what it did not move is for others.
    fn unload(&mut self) -> After {
        // Whoever still asks gets nothing.
        self.until = Some(Instant::now());
        for _ in 0..std::mem::take(&mut self.emptied) {
            self.job.settle();
        }
        let left = Ranges::of(std::mem::replace(&mut self.left, 0..0));
        self.job.give_back(&Rest { unmoved: left, ..Rest::default() })
    }
}

fn lock(cart: &Mutex<Cart>) -> MutexGuard<'_, Cart> {
    cart.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A lane's work; `opened` is told when its channel is.
pub(super) fn work(
    copying: &Copying<'_>,
    (route, slot, direction, off): (&Route, &Slot, Direction, &CallOff),
    (id, retire): (LaneId, &AtomicBool),
    opened: impl FnOnce(),
) -> Result<End, Trouble> {
    let mut opened = Some(opened);
    loop {
        let cart = match copying.queue.take(copying.lanes(), true) {
            Take::Work(Work::Entry(entry)) => begin(copying, *entry),
            Take::Work(Work::Share(job, share)) => Some(Cart::new(job, share)),
            Take::Nothing | Take::Over => None,
        };
        let Some(cart) = cart else { return Ok(End::Over) };
        let cart = Arc::new(Mutex::new(cart));
        let asking = Arc::clone(&cart);
        let asked = move |most| lock(&asking).take(most);
        let stream =
            slot.stream(route, (direction, off), asked).inspect_err(|_| unload(copying, &cart))?;
        opened.take().into_iter().for_each(|opened| opened());
        let end = look(copying, &cart, (&stream, direction), (id, retire));
        drop(stream);
        tell(copying, &cart, id);
        unload(copying, &cart);
        // What another lane has given back meanwhile is for this one, too.
        if !matches!(end, End::Over) {
            return Ok(end);
        }
    }
}

/// The whole test, of which this lane has the first share.
fn begin(copying: &Copying<'_>, entry: Entry) -> Option<Cart> {
    let rest = Rest { unmoved: Ranges::of(0..entry.meta.size), ..Rest::default() };
    let job = Arc::new(Job::new(entry, 1, rest));
    let share = job.take(copying.lanes())?;
    copying.queue.share(&job);
    Some(Cart::new(job, share))
}

/// Looks on until the lane's channel has ended, or is to.
fn look(
    copying: &Copying<'_>,
    cart: &Mutex<Cart>,
    (stream, direction): (&remote::Stream, Direction),
    (id, retire): (LaneId, &AtomicBool),
) -> End {
    let mut worked = false;
    loop {
        let leaves = retire.load(Ordering::Relaxed);
        lock(cart).until = if leaves { Some(Instant::now()) } else { copying.until() };
        lock(cart).lanes = copying.lanes();
        let ended = stream.ended_within(LOOK);
        worked |= tell(copying, cart, id);
        let late = leaves || copying.is_late();
        let over = if leaves { End::Retired } else { End::Over };
        let why = match ended {
            Some(StreamEnd::Enough) => return over,
            Some(StreamEnd::Closed) if late || lock(cart).left.is_empty() => return over,
            Some(StreamEnd::Closed) => "the server closed the channel".to_owned(),
            Some(StreamEnd::Broke(why)) => why.to_string(),
            // What was sent is waited for, what comes is not.
            None if late && direction == Direction::Down => return over,
            None => continue,
        };
        return End::Lost { why, worked };
    }
}

/// Tells what was moved since it last told; whether that is anything.
fn tell(copying: &Copying<'_>, cart: &Mutex<Cart>, id: LaneId) -> bool {
    let moved = std::mem::take(&mut lock(cart).moved);
    if moved > 0 {
        copying.moved(id, moved);
    }
    moved > 0
}

fn unload(copying: &Copying<'_>, cart: &Mutex<Cart>) {
    let mut cart = lock(cart);
    let after = cart.unload();
    if copying.is_late() {
        copying.queue.stop();
    } else if after == After::Whole {
        copying.finished(&cart.job.entry, Outcome::Copied, false);
    } else if cart.job.has_any() {
        copying.queue.share(&cart.job);
    }
}
