//! Queue: what is to be copied. The scan fills it, lanes empty it; neither waits for the other to
//! be through.
//!
//! ```text
//! push    scan    waits while the queue is full: memory is bounded whatever the tree
//! take    lanes   a range of a file that is under way, else the next file
//! share   lane    a file was opened: every lane may take ranges of it
//! back    lane    something it cannot do any more: others can
//! done    lane    something is in place, or has failed for good
//! ```

use super::job::{Job, Share};
use super::meta::{Identity, Meta};
use super::ranges::Ranges;
use super::walk::Root;
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Entries that wait at most: a few hundred bytes each.
const FULL: usize = 8192;

/// A file or symbolic link to be copied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    /// As the source takes it.
    pub(super) from: Vec<u8>,
    /// Below the target.
    pub(super) to: Vec<u8>,
    /// Of the source.
    pub(super) meta: Meta,
    /// This run made the directory it goes to: nothing is there.
    pub(super) fresh: bool,
    /// It changed while it was read, and is read once more (F9).
    pub(super) reread: bool,
    /// The server refused it among others: it goes by itself.
    pub(super) alone: bool,
    /// What is at the target was compared, and differs (`--verify`).
    pub(super) differs: bool,
    /// The server cannot sum it: it is read back instead (`--verify`).
    pub(super) unsummed: bool,
    /// What a lane that broke has left of it.
    pub(super) left: Option<Box<Left>>,
}

impl Entry {
    /// As the scan finds it.
    pub(super) fn new(root: Root, fresh: bool) -> Self {
        let Root { from, to, meta } = root;
        let (reread, alone, differs, unsummed) = (false, false, false, false);
        Self { from, to, meta, fresh, reread, alone, differs, unsummed, left: None }
    }
}

/// What a lane that broke has left of a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Left {
    /// What is in the part file.
    pub(super) done: Ranges,
    /// What the part file was when it was asked to be put in place: perhaps it is.
    pub(super) placed: Option<Identity>,
    /// The part file had its size, and perhaps its mode: it may be read-only.
    pub(super) ready: bool,
}

/// Something to do.
#[derive(Debug)]
pub(super) enum Work {
    /// From its beginning.
    Entry(Box<Entry>),
    /// Part of a file that a lane has opened.
    Share(Arc<Job>, Share),
}

/// The answer to who wants work.
#[derive(Debug)]
pub(super) enum Take {
    Work(Work),
    /// None now.
    Nothing,
    /// None ever again.
    Over,
}

/// The answer to who wants a batch.
#[derive(Debug)]
pub(super) enum Together {
    Entries(Vec<Entry>),
    /// Not enough of them yet.
    Later,
    /// What comes next is for no batch.
    Unfit,
}

#[derive(Default)]
struct State {
    entries: VecDeque<Box<Entry>>,
    /// Files with ranges that nobody has taken.
    shared: VecDeque<Arc<Job>>,
    /// What was pushed and is neither in place nor failed.
    open: usize,
    scanned: bool,
    stopped: bool,
}

/// The one queue of a copy.
#[derive(Default)]
pub(super) struct Queue {
    state: Mutex<State>,
    /// There is something to take, or there never will be.
    filled: Condvar,
    /// There is room for more.
    emptied: Condvar,
    /// Nothing is left to do.
    ended: Condvar,
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an entry, waiting for room; false once the copy was stopped.
    pub(super) fn push(&self, entry: Entry) -> bool {
        let mut state = self.lock();
        while state.entries.len() >= FULL && !state.stopped {
            state = self.emptied.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.entries.push_back(Box::new(entry));
        state.open += 1;
        self.filled.notify_one();
        !state.stopped
    }

    /// The scan is over.
    pub(super) fn scanned(&self) {
        self.lock().scanned = true;
        self.filled.notify_all();
        self.ended.notify_all();
    }

    /// No more of it, whatever is left.
    pub(super) fn stop(&self) {
        self.lock().stopped = true;
        self.filled.notify_all();
        self.emptied.notify_all();
        self.ended.notify_all();
    }

    /// For a thread without which the copy cannot end: if it panics, the copy is stopped.
    pub(super) fn guard(&self) -> Guard<'_> {
        Guard(self)
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.lock().stopped
    }

    /// The next thing to do for one of `lanes`. With `wait`, [`Take::Nothing`] never comes.
    pub(super) fn take(&self, lanes: usize, wait: bool) -> Take {
        let mut state = self.lock();
        loop {
            if let Some(work) = state.next(lanes) {
                self.emptied.notify_one();
                return Take::Work(work);
            }
            if state.is_over() {
                return Take::Over;
            }
            if !wait {
                return Take::Nothing;
            }
            state = self.filled.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// The next entries for which `fits` says yes, for a batch. With `whole` it is
    /// [`Together::Later`] if the queue ends before `fits` says no and the scan may bring more.
    pub(super) fn batch(&self, whole: bool, mut fits: impl FnMut(&Entry) -> bool) -> Together {
        let mut state = self.lock();
        let count = state.entries.iter().take_while(|entry| fits(entry)).count();
        if state.stopped || (count == 0 && !state.entries.is_empty()) {
            return Together::Unfit;
        }
        if count == 0 || (whole && count == state.entries.len() && !state.scanned) {
            return if state.shared.is_empty() { Together::Later } else { Together::Unfit };
        }
        self.emptied.notify_one();
        Together::Entries(state.entries.drain(..count).map(|entry| *entry).collect())
    }

    /// `job` is open: its ranges are for everyone.
    pub(super) fn share(&self, job: &Arc<Job>) {
        self.lock().shared.push_back(Arc::clone(job));
        self.filled.notify_all();
    }

    /// An entry that is to be tried again, before all others.
    pub(super) fn back(&self, entry: Entry) {
        self.lock().entries.push_front(Box::new(entry));
        self.filled.notify_one();
    }

    /// One entry is in place, or has failed for good.
    pub(super) fn done(&self) {
        let mut state = self.lock();
        state.open = state.open.saturating_sub(1);
        if state.is_over() {
            self.filled.notify_all();
            self.ended.notify_all();
        }
    }

    /// Waits for `long`, or until nothing is left to do: true then.
    pub(super) fn rest(&self, long: Duration) -> bool {
        let state = self.lock();
        let wait = self.ended.wait_timeout_while(state, long, |state| !state.is_over());
        wait.unwrap_or_else(PoisonError::into_inner).0.is_over()
    }

    /// Whether lanes beside those that there are would find something to do.
    pub(super) fn has_more(&self) -> bool {
        let state = self.lock();
        let ranges = state.shared.iter().any(|job| job.has_more());
        !state.stopped && (ranges || state.entries.len() > 1)
    }
}

/// Stops the copy when it is dropped by a panic.
pub(super) struct Guard<'a>(&'a Queue);

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.stop();
        }
    }
}

impl State {
    fn next(&mut self, lanes: usize) -> Option<Work> {
        if self.stopped {
            return None;
        }
        while let Some(job) = self.shared.front() {
            if let Some(share) = job.take(lanes) {
                return Some(Work::Share(Arc::clone(job), share));
            }
            self.shared.pop_front();
        }
        self.entries.pop_front().map(Work::Entry)
    }

    fn is_over(&self) -> bool {
        self.stopped || (self.scanned && self.open == 0)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use sftp::codec::Attrs;
    use std::thread;

    pub(in super::super) fn entry(name: &[u8], size: u64) -> Entry {
        let meta = Meta::remote(&Attrs { size: Some(size), ..Attrs::default() });
        Entry::new(Root { from: name.to_vec(), to: name.to_vec(), meta }, true)
    }

    fn name(take: Take) -> Option<Vec<u8>> {
        match take {
            Take::Work(Work::Entry(entry)) => Some(entry.to),
            _ => None,
        }
    }

    #[test]
    fn a_thread_that_panics_stops_the_copy() {
        let queue = Queue::default();
        let good = std::thread::scope(|scope| scope.spawn(|| drop(queue.guard())).join());
        assert!(good.is_ok() && !queue.is_stopped());
        let bad = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let _guard = queue.guard();
            std::panic::resume_unwind(Box::new("without a message"));
        }));
        assert!(bad.is_err() && queue.rest(Duration::ZERO));
    }

    #[test]
    fn the_scan_waits_while_the_queue_is_full() {
        let queue = Queue::default();
        thread::scope(|scope| {
            let scan = scope.spawn(|| {
                (0..2 * FULL).for_each(|_| assert!(queue.push(entry(b"x", 1))));
                queue.scanned();
            });
            while queue.lock().entries.len() < FULL {
                thread::sleep(Duration::from_millis(1));
            }
            // Time enough for one more, if it would not wait.
            thread::sleep(Duration::from_millis(30));
            let full = queue.lock().entries.len();
            for _ in 0..2 * FULL {
                assert!(name(queue.take(1, true)).is_some());
                queue.done();
            }
            scan.join().unwrap();
            // Not before: the scan would wait for ever.
            assert_eq!(full, FULL);
        });
        assert!(matches!(queue.take(1, true), Take::Over));
    }

    #[test]
    fn nothing_is_over_while_a_lane_may_give_something_back() {
        let queue = Queue::default();
        queue.push(entry(b"x", 1));
        queue.scanned();
        assert_eq!(name(queue.take(1, false)).unwrap(), b"x");
        assert!(matches!(queue.take(1, false), Take::Nothing));
        queue.back(entry(b"again", 1));
        assert_eq!(name(queue.take(1, true)).unwrap(), b"again");
        queue.done();
        assert!(matches!(queue.take(1, true), Take::Over));
    }

    #[test]
    fn a_batch_waits_until_it_is_full_or_the_scan_is_over() {
        let queue = Queue::default();
        (0..3).for_each(|_| assert!(queue.push(entry(b"x", 1))));
        let upto = |most: usize| {
            let mut count = 0;
            move |_: &Entry| {
                count += 1;
                count <= most
            }
        };
        let count = |whole, most| match queue.batch(whole, upto(most)) {
            Together::Entries(entries) => entries.len(),
            Together::Later => 0,
            Together::Unfit => panic!("they fit"),
        };
        assert_eq!(count(true, 5), 0);
        assert_eq!(count(true, 2), 2);
        assert_eq!(count(true, 5), 0);
        queue.scanned();
        assert_eq!(count(true, 5), 1);
    }

    #[test]
    fn a_stopped_copy_has_no_work() {
        let queue = Queue::default();
        queue.push(entry(b"x", 1));
        queue.stop();
        assert!(matches!(queue.take(1, true), Take::Over));
        assert!(!queue.push(entry(b"y", 1)));
    }
}
