//! Ledger: the counters behind [`Figures`](super::Figures). One per connection; a hand per thread
//! that moves data, so that a stream that idles does not dilute the one that works.

use super::{Figures, Labour, Path, Way, per_second};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use sys::{ThreadId, ThreadTime};

/// What peaks are averages over.
const PEAK: Duration = Duration::from_secs(1);

/// Nobody holds one of these over anything that waits.
#[derive(Debug, Default)]
struct Guarded<T>(Mutex<T>);

impl<T> Guarded<T> {
    fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A number that threads add to.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self, n: u64) {
        self.0.fetch_add(n, Ordering::Relaxed);
    }

    /// The number becomes at least `n`.
    pub(crate) fn raise(&self, n: u64) {
        if n > self.get() {
            self.0.fetch_max(n, Ordering::Relaxed);
        }
    }

    /// For a number that one thread keeps by itself.
    pub(crate) fn set(&self, n: u64) {
        self.0.store(n, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Time spent on one thing. What still goes on counts.
#[derive(Debug, Default)]
pub(crate) struct Clock(Guarded<Spent>);

#[derive(Debug, Default)]
struct Spent {
    before: Duration,
    running: Option<Instant>,
}

impl Clock {
    /// Does it and counts the time. One thread at a time.
    pub(crate) fn time<T>(&self, f: impl FnOnce() -> T) -> T {
        let began = Instant::now();
        self.0.lock().running = Some(began);
        let value = f();
        let took = began.elapsed();
        let mut spent = self.0.lock();
        spent.running = None;
        spent.before += took;
        value
    }

    fn get(&self) -> Duration {
        let spent = self.0.lock();
        spent.before + spent.running.map_or(Duration::ZERO, |began| began.elapsed())
    }
}

/// Bytes, second by second.
#[derive(Debug, Default)]
struct Seconds {
    since: Option<Instant>,
    bytes: u64,
    peak: u64,
}

impl Seconds {
    fn count(&mut self, bytes: u64, now: Instant) {
        let since = *self.since.get_or_insert(now);
        self.bytes += bytes;
        let span = now.saturating_duration_since(since);
        if span >= PEAK {
            self.peak = self.peak.max(per_second(self.bytes, span));
            (self.since, self.bytes) = (Some(now), 0);
        }
    }

    /// Of what was over before a second was, as if it had taken one.
    fn peak(&self) -> u64 {
        self.peak.max(self.bytes)
    }
}

/// The counters of one direction.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) bytes: Counter,
    pub(crate) wire: Counter,
    pub(crate) packets: Counter,
    pub(crate) clear: Counter,
    pub(crate) window: Counter,
    pub(crate) window_cap: Counter,
    seconds: Guarded<Seconds>,
}

impl Counts {
    /// Channel data, at `now`.
    pub(crate) fn moved(&self, bytes: u64, now: Instant) {
        self.bytes.add(bytes);
        self.seconds.lock().count(bytes, now);
    }

    fn way(&self) -> Way {
        Way {
            bytes: self.bytes.get(),
            wire: self.wire.get(),
            packets: self.packets.get(),
            clear: self.clear.get(),
            peak: self.seconds.lock().peak(),
            window: self.window.get(),
            window_cap: self.window_cap.get(),
        }
    }
}

/// What a thread is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    Sending,
    Receiving,
}

/// What one thread does with its time; the clocks mean what [`Labour`]'s fields do.
#[derive(Debug)]
pub(crate) struct Hand {
    number: u64,
    role: Role,
    thread: ThreadId,
    began: Instant,
    /// What the thread had done before.
    before: ThreadTime,
    pub(crate) bytes: Counter,
    pub(crate) crypto: Clock,
    pub(crate) input: Clock,
    pub(crate) window: Clock,
    pub(crate) queue: Clock,
    pub(crate) socket: Clock,
    pub(crate) network: Clock,
    pub(crate) sink: Clock,
    /// What `network` was when the first and the last data came: a command that is not there yet,
    /// or has nothing more to say, limits no transfer.
    first: Counter,
    last: Counter,
}

impl Hand {
    fn new(number: u64, role: Role) -> Self {
        let thread = ThreadId::current();
        Self {
            number,
            role,
            thread,
            began: Instant::now(),
            before: thread.time(),
            bytes: Counter::default(),
            crypto: Clock::default(),
            input: Clock::default(),
            window: Clock::default(),
            queue: Clock::default(),
            socket: Clock::default(),
            network: Clock::default(),
            sink: Clock::default(),
            first: Counter::default(),
            last: Counter::default(),
        }
    }

    /// Data has come, `bytes` of it in all.
    pub(crate) fn received(&self, bytes: u64) {
        let waited = u64::try_from(self.network.get().as_nanos()).unwrap_or(u64::MAX);
        if self.bytes.get() == 0 {
            self.first.set(waited);
        }
        self.last.set(waited);
        self.bytes.set(bytes);
    }

    fn labour(&self) -> Labour {
        let time = self.thread.time();
        let (all, [first, last]) = (
            self.network.get(),
            [&self.first, &self.last].map(|at| Duration::from_nanos(at.get())),
        );
        let network = last.saturating_sub(first);
        let idle = match self.role {
            Role::Sending => Duration::ZERO,
            Role::Receiving => all.saturating_sub(network),
        };
        Labour {
            thread: self.number,
            bytes: self.bytes.get(),
            age: self.began.elapsed().saturating_sub(idle),
            busy: time.busy.saturating_sub(self.before.busy),
            queued: time.queued.saturating_sub(self.before.queued),
            crypto: self.crypto.get(),
            input: self.input.get(),
            window: self.window.get(),
            queue: self.queue.get(),
            socket: self.socket.get(),
            network,
            sink: self.sink.get(),
        }
    }
}

/// A thread's hand until the thread ends.
pub(crate) struct Enlisted {
    hand: Arc<Hand>,
    ledger: Arc<Ledger>,
}

impl std::ops::Deref for Enlisted {
    type Target = Hand;

    fn deref(&self) -> &Hand {
        &self.hand
    }
}

impl Drop for Enlisted {
    fn drop(&mut self) {
        // On the thread itself, while it can still be asked about.
        self.ledger.hands.lock().leave(&self.hand);
    }
}

#[derive(Debug, Default)]
struct Hands {
    living: Vec<Arc<Hand>>,
    count: u64,
    /// Of the threads that have ended, the one of each role that moved the most.
    sender: Option<Labour>,
    receiver: Option<Labour>,
}

impl Hands {
    fn leave(&mut self, hand: &Arc<Hand>) {
        let done = hand.labour();
        let best = match hand.role {
            Role::Sending => &mut self.sender,
            Role::Receiving => &mut self.receiver,
        };
        if best.is_none_or(|best| best.bytes <= done.bytes) {
            *best = Some(done);
        }
        self.living.retain(|other| !Arc::ptr_eq(other, hand));
    }

    /// Of all threads of a role, the one that moved the most.
    fn most(&self, role: Role) -> Labour {
        let ended = match role {
            Role::Sending => self.sender,
            Role::Receiving => self.receiver,
        };
        let living = self.living.iter().filter(|hand| hand.role == role);
        let best = living.max_by_key(|hand| hand.bytes.get());
        match (best, ended) {
            (Some(hand), Some(ended)) if hand.bytes.get() < ended.bytes => ended,
            (Some(hand), _) => hand.labour(),
            (None, ended) => ended.unwrap_or_default(),
        }
    }
}

/// The counters of a connection.
#[derive(Debug)]
pub(crate) struct Ledger {
    began: Instant,
    pub(crate) sent: Counts,
    pub(crate) received: Counts,
    pub(crate) written: Counter,
    pub(crate) exchanges: Counter,
    pub(crate) workers: Counter,
    /// Nanoseconds of all workers.
    pub(crate) worked: Counter,
    hands: Guarded<Hands>,
}

impl Default for Ledger {
    fn default() -> Self {
        Self {
            began: Instant::now(),
            sent: Counts::default(),
            received: Counts::default(),
            written: Counter::default(),
            exchanges: Counter::default(),
            workers: Counter::default(),
            worked: Counter::default(),
            hands: Guarded::default(),
        }
    }
}

impl Ledger {
    /// A hand for the calling thread.
    pub(crate) fn enlist(self: &Arc<Self>, role: Role) -> Enlisted {
        let mut hands = self.hands.lock();
        hands.count += 1;
        let hand = Arc::new(Hand::new(hands.count, role));
        hands.living.push(Arc::clone(&hand));
        Enlisted { hand, ledger: Arc::clone(self) }
    }

    /// All of it now, with the path of `fd`.
    pub(crate) fn figures(&self, fd: impl AsFd) -> Figures {
        let (sender, receiver) = {
            let hands = self.hands.lock();
            (hands.most(Role::Sending), hands.most(Role::Receiving))
        };
        Figures {
            age: self.began.elapsed(),
            sent: self.sent.way(),
            received: self.received.way(),
            written: self.written.get(),
            rekeys: self.exchanges.get().saturating_sub(1),
            sender,
            receiver,
            workers: (self.workers.get(), Duration::from_nanos(self.worked.get())),
            path: Path::of(fd),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peak_is_the_fastest_second() {
        let start = Instant::now();
        let mut seconds = Seconds::default();
        let at = |ms: u64| start + Duration::from_millis(ms);
        for ms in (0..=1000).step_by(100) {
            seconds.count(100, at(ms));
        }
        for ms in (1100..=2000).step_by(100) {
            seconds.count(700, at(ms));
        }
        for ms in (2100..=5000).step_by(100) {
            seconds.count(1, at(ms));
        }
        assert_eq!(seconds.peak(), 7000);
    }

    #[test]
    fn what_still_waits_counts_and_so_does_what_has_ended() {
        let clock = Arc::new(Clock::default());
        let (go, wait) = std::sync::mpsc::channel::<()>();
        let other = Arc::clone(&clock);
        let thread = std::thread::spawn(move || other.time(|| wait.recv().is_ok()));
        let until = Instant::now() + Duration::from_secs(10);
        while clock.get() < Duration::from_millis(20) {
            assert!(Instant::now() < until);
        }
        drop(go);
        thread.join().unwrap();
        let all = clock.get();
        assert!(all >= Duration::from_millis(20));
        std::thread::sleep(Duration::from_millis(5));
        assert_eq!(clock.get(), all);
    }

    #[test]
    fn a_command_that_is_not_there_yet_limits_nothing() {
        let ledger = Arc::new(Ledger::default());
        let hand = ledger.enlist(Role::Receiving);
        let wait = || hand.network.time(|| std::thread::sleep(Duration::from_millis(30)));
        wait();
        hand.received(10);
        wait();
        hand.received(20);
        let labour = hand.labour();
        wait();
        let later = hand.labour();
        assert!(labour.network >= Duration::from_millis(30) && labour.bytes == 20);
        assert_eq!(later.network, labour.network);
        assert!(labour.age + Duration::from_millis(30) <= hand.began.elapsed());
    }

    #[test]
    fn an_idle_stream_does_not_hide_the_one_that_works() {
        let ledger = Arc::new(Ledger::default());
        let busy = ledger.enlist(Role::Sending);
        busy.bytes.add(1000);
        let idle = ledger.enlist(Role::Sending);
        let receiving = ledger.enlist(Role::Receiving);
        receiving.bytes.add(5000);
        let most = || ledger.hands.lock().most(Role::Sending);
        assert_eq!((most().thread, most().bytes), (busy.number, 1000));
        let number = busy.number;
        drop(busy);
        assert_eq!((most().thread, most().bytes), (number, 1000), "it may have ended");
        idle.bytes.add(2000);
        assert_eq!(most().bytes, 2000);
    }
}
