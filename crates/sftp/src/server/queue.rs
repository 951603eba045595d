//! The queue: what waits, what runs, and which replies are ready, under one lock.
//!
//! A request that changes something waits for all that came before it, and everything after waits
//! for it; between two of those, requests that only look run in any order. Who looks for work says
//! what it may run: the output side all that is short, the hands all but READ and FSTAT.

use super::Setup;
use super::attributes::Wanted;
use super::handles::{Handles, Open};
use super::hands;
use super::log::Level;
use super::names::Names;
use super::paths::Start;
use super::permit;
use crate::codec::{Extended, Handle, MAX_PACKET, OpenFlags, PutFlags, Request};
use rustix::event::{EventfdFlags, eventfd};
use std::collections::VecDeque;
use std::fmt::Arguments;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};

/// Most requests that wait: two for each 32 KiB of a 32 MiB window.
const MOST_WAITING: usize = 2048;
/// Most bytes they hold. One request is at most a quarter of it.
const MOST_BYTES: usize = 4 * MAX_PACKET;
/// Most bytes of replies that nobody has fetched, when a request is taken in or by a hand: each hand
/// may add a reply.
const MOST_READY: usize = MAX_PACKET;
/// How far past its head the queue is searched for something to run.
const SEARCH: usize = 64;
/// When this much waits that the hands could run, they help.
const BACKLOG: usize = 16;

/// What the program ends with where the client broke the protocol, as sftp-server(8).
const BROKEN: u8 = 11;
/// And where it cannot serve at all.
const FAILED: u8 = 255;

/// Who looks for work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Who {
    Output,
    Hand,
}

/// A request that waits for its turn.
pub(super) struct Job {
    pub(super) id: u32,
    pub(super) request: Request,
    /// Bytes of its packet.
    size: usize,
    exclusive: bool,
    heavy: bool,
    /// What its handles meant when it came.
    names: [Option<Arc<Open>>; 2],
}

impl Job {
    fn is_read(&self) -> bool {
        matches!(self.request, Request::Read { .. })
    }

    /// Whether only the output side may run it, which keeps the order. A client looks at a file
    /// before and after it reads it: a look that a READ sent later overtakes misses a change (F9).
    fn keeps_order(&self) -> bool {
        self.is_read() || matches!(self.request, Request::Fstat(_))
    }

    /// How much of a batch's patience it takes: replies wait for what is run before they are sent.
    pub(super) fn weight(&self) -> usize {
        match &self.request {
            Request::Extended(Extended::PutFiles { .. } | Extended::GetFiles(_)) => 16,
            Request::Readdir(_) => 4,
            _ => 1,
        }
    }
}

/// Whether a request may take long: the output side has better to do.
fn is_heavy(request: &Request) -> bool {
    match request {
        Request::Extended(Extended::PutFiles { flags, .. }) => flags.has(PutFlags::FSYNC),
        Request::Extended(
            Extended::BlockHashes { .. } | Extended::CopyData { .. } | Extended::Fsync(_),
        ) => true,
        _ => false,
    }
}

/// The handles in a request.
fn handles(request: &Request) -> [Option<&Handle>; 2] {
    match request {
        Request::Close(handle)
        | Request::Read { handle, .. }
        | Request::Write { handle, .. }
        | Request::Fstat(handle)
        | Request::Fsetstat(handle, _)
        | Request::Readdir(handle)
        | Request::Extended(
            Extended::Fstatvfs(handle)
            | Extended::Fsync(handle)
            | Extended::BlockHashes { handle, .. }
            | Extended::SparseMap { handle, .. }
            | Extended::GetXattrs(handle)
            | Extended::SetXattrs(handle, _),
        ) => [Some(handle), None],
        Request::Extended(Extended::CopyData { from, to, .. }) => [Some(from), Some(to)],
        _ => [None, None],
    }
}

/// Whether a request may change a file that other handles have open: by its path, or by a handle of
/// its own.
fn is_about_any_file(request: &Request) -> bool {
    match request {
        Request::Setstat(..)
        | Request::Extended(Extended::Lsetstat(..) | Extended::CopyData { .. }) => true,
        Request::Open { flags, .. } => flags.has(OpenFlags::TRUNCATE),
        Request::Fsetstat(_, attrs) => attrs.size.is_some(),
        _ => false,
    }
}

#[derive(Default)]
pub(super) struct State {
    queue: VecDeque<Job>,
    /// Bytes of what waits and runs.
    held: usize,
    running: usize,
    /// What runs changes something, and is alone.
    exclusive: bool,
    /// Requests that may change any file and are not done.
    about_any: usize,
    /// Whole replies.
    pub(super) ready: Vec<u8>,
    /// Nothing more will come in.
    ended: bool,
    /// The input side waits for room.
    stalled: bool,
    output_sleeps: bool,
    idle_hands: usize,
    hands: usize,
}

impl State {
    /// Where in the queue the next job for `who` is.
    fn find(&self, who: Who) -> Option<usize> {
        // What a hand does waits for the output side: replies that nobody fetches are bounded.
        let is_full = who == Who::Hand && self.ready.len() >= MOST_READY;
        if self.exclusive || is_full {
            return None;
        }
        for (place, job) in self.queue.iter().take(SEARCH).enumerate() {
            if job.exclusive {
                let alone = place == 0 && self.running == 0;
                return (alone && self.may(who, job)).then_some(0);
            }
            if self.may(who, job) {
                return Some(place);
            }
        }
        None
    }

    fn may(&self, who: Who, job: &Job) -> bool {
        match who {
            Who::Output => !job.heavy || self.hands == 0,
            Who::Hand => !job.keeps_order(),
        }
    }

    /// Takes the next job for `who`, which from now on runs.
    fn take(&mut self, who: Who) -> Option<Job> {
        let job = self.queue.remove(self.find(who)?)?;
        self.running += 1;
        self.exclusive = job.exclusive;
        Some(job)
    }

    /// Whether hands would do better than the output side alone.
    fn wants_hands(&self) -> bool {
        let useful = |job: &&Job| job.heavy || self.queue.len() >= BACKLOG;
        self.find(Who::Hand).and_then(|place| self.queue.get(place)).filter(useful).is_some()
    }

    fn has_room(&self) -> bool {
        self.queue.len() < MOST_WAITING && self.held < MOST_BYTES && self.ready.len() < MOST_READY
    }

    fn is_over(&self) -> bool {
        self.ended && self.queue.is_empty() && self.running == 0
    }

    fn finish(&mut self, job: &Job) {
        self.running -= 1;
        self.exclusive = false;
        self.forget(job);
    }

    fn forget(&mut self, job: &Job) {
        self.held -= job.size;
        self.about_any -= usize::from(is_about_any_file(&job.request));
        job.names.iter().flatten().for_each(|open| open.end());
    }
}

/// What the threads of a session share.
pub(super) struct Shared {
    pub(super) setup: Setup,
    pub(super) start: Start,
    pub(super) handles: Handles,
    pub(super) names: Names,
    /// For files that are made under another name first.
    pub(super) umask: u32,
    state: Mutex<State>,
    output: Condvar,
    hands: Condvar,
    /// Readable after room was made for an input side that stalled.
    room: OwnedFd,
    closed: AtomicBool,
    /// What the client asked to be told, once its INIT is here.
    wanted: OnceLock<Wanted>,
    status: AtomicU8,
}

impl Shared {
    pub(super) fn new(setup: Setup) -> io::Result<Self> {
        Ok(Self {
            start: Start::of(&setup)?,
            handles: Handles::new(),
            names: Names::default(),
            umask: setup.options.umask.unwrap_or_else(crate::umask),
            state: Mutex::default(),
            output: Condvar::new(),
            hands: Condvar::new(),
            room: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
            closed: AtomicBool::new(false),
            wanted: OnceLock::new(),
            status: AtomicU8::new(0),
            setup,
        })
    }

    pub(super) fn log(&self, level: Level, line: Arguments<'_>) {
        if level <= self.setup.options.level {
            self.setup.log.line(level, line);
        }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the client is gone: long work stops.
    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Relaxed)
    }

    /// The first word counts.
    pub(super) fn want(&self, wanted: Wanted) {
        let _ = self.wanted.set(wanted);
    }

    pub(super) fn wanted(&self) -> Wanted {
        self.wanted.get().copied().unwrap_or_default()
    }

    pub(super) fn exit_status(&self) -> u8 {
        self.status.load(Ordering::Relaxed)
    }

    /// The client is gone.
    pub(super) fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
        let mut state = self.lock();
        state.ended = true;
        for job in std::mem::take(&mut state.queue) {
            state.forget(&job);
        }
        self.wake_all(&mut state);
    }

    /// Nothing more comes in; what has come is done and answered.
    pub(super) fn end(&self) {
        let mut state = self.lock();
        state.ended = true;
        self.wake_all(&mut state);
    }

    /// The client broke the protocol: what was right before is done and answered.
    pub(super) fn break_off(&self) {
        self.status.store(BROKEN, Ordering::Relaxed);
        self.end();
    }

    /// The session cannot go on at this end.
    pub(super) fn fail(&self) {
        self.status.store(FAILED, Ordering::Relaxed);
        self.close();
    }

    fn wake_all(&self, state: &mut State) {
        self.output.notify_all();
        self.hands.notify_all();
        self.make_room(state);
    }

    fn make_room(&self, state: &mut State) {
        if std::mem::take(&mut state.stalled) {
            let _ = rustix::io::write(&self.room, &1u64.to_ne_bytes());
        }
    }

    fn wake_output(&self, state: &mut State) {
        if std::mem::take(&mut state.output_sleeps) {
            self.output.notify_one();
        }
    }

    // The input side.

    /// Readable once there is room again.
    pub(super) fn room(&self) -> BorrowedFd<'_> {
        self.room.as_fd()
    }

    /// Whether one more request may come; if not, `room` will tell.
    pub(super) fn has_room(&self) -> bool {
        let mut state = self.lock();
        let room = state.has_room();
        if !room {
            self.stall(&mut state);
        }
        room
    }

    /// Whether data may be written to `open` now; if not, `room` will tell.
    pub(super) fn may_write(&self, open: &Open) -> bool {
        let mut state = self.lock();
        let may = open.is_idle() && state.about_any == 0;
        if !may {
            self.stall(&mut state);
        }
        may
    }

    fn stall(&self, state: &mut State) {
        state.stalled = true;
        let mut count = [0; 8];
        let _ = rustix::io::read(&self.room, &mut count);
    }

    /// A request arrived.
    pub(super) fn push(self: &Arc<Self>, id: u32, request: Request, size: usize) {
        let names = handles(&request).map(|handle| self.handles.get(handle?).ok());
        names.iter().flatten().for_each(|open| open.begin());
        let (exclusive, heavy) = (permit::changes(&request), is_heavy(&request));
        let mut state = self.lock();
        state.held += size;
        state.about_any += usize::from(is_about_any_file(&request));
        state.queue.push_back(Job { id, request, size, exclusive, heavy, names });
    }

    /// All of a receive was parsed: `replies` to what was done at once are ready, and what arrived
    /// may be run.
    pub(super) fn flush(self: &Arc<Self>, replies: &mut Vec<u8>) {
        let mut state = self.lock();
        state.ready.append(replies);
        self.distribute(&mut state);
    }

    // Whoever runs requests.

    /// Wakes those who have something to do now.
    fn distribute(self: &Arc<Self>, state: &mut State) {
        if state.wants_hands() {
            if state.idle_hands > 0 {
                self.hands.notify_one();
            } else if state.hands < hands::MOST {
                state.hands += 1;
                if hands::start(self).is_err() {
                    state.hands -= 1;
                }
            }
        }
        if !state.ready.is_empty() || state.find(Who::Output).is_some() || state.is_over() {
            self.wake_output(state);
        }
        if state.is_over() {
            self.hands.notify_all();
        }
    }

    /// Room was made: by a job that is done, or replies that were fetched.
    fn progress(self: &Arc<Self>, state: &mut State) {
        self.distribute(state);
        self.make_room(state);
    }

    /// The output side: the job it had is done; the replies that are ready, or else its next job.
    pub(super) fn next(self: &Arc<Self>, done: Option<Job>, out: &mut Vec<u8>) -> Option<Job> {
        let mut state = self.lock();
        let freed = done.map(|job| state.finish(&job)).is_some();
        let fetched = !state.ready.is_empty();
        let job = if fetched {
            std::mem::swap(&mut state.ready, out);
            None
        } else {
            state.take(Who::Output)
        };
        if freed || fetched {
            self.progress(&mut state);
        }
        job
    }

    /// The output side has done its job, and looks for no other now.
    pub(super) fn done(self: &Arc<Self>, job: &Job) {
        let mut state = self.lock();
        state.finish(job);
        self.progress(&mut state);
    }

    /// The output side waits until it has something to do; `false` when it never will have.
    pub(super) fn wait_for_output(&self) -> bool {
        let mut state = self.lock();
        loop {
            if self.is_closed() {
                return false;
            }
            if !state.ready.is_empty() || state.find(Who::Output).is_some() {
                return true;
            }
            if state.is_over() {
                return false;
            }
            state.output_sleeps = true;
            state = self.output.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.output_sleeps = false;
        }
    }

    /// A hand: the job it had is done and `reply` its reply. Waits for the next; `None` at the end.
    pub(super) fn work(self: &Arc<Self>, done: Option<(Job, Vec<u8>)>) -> Option<Job> {
        let mut state = self.lock();
        if let Some((job, mut reply)) = done {
            state.ready.append(&mut reply);
            state.finish(&job);
            self.progress(&mut state);
        }
        loop {
            if self.is_closed() || state.is_over() {
                state.hands -= 1;
                return None;
            }
            if state.wants_hands() {
                let job = state.take(Who::Hand);
                self.distribute(&mut state);
                return job;
            }
            state.idle_hands += 1;
            state = self.hands.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.idle_hands -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(request: Request) -> Job {
        Job { id: 0, request, size: 0, exclusive: false, heavy: false, names: [None, None] }
    }

    #[test]
    fn f9_a_look_at_a_file_is_not_overtaken_by_reads_sent_after_it() {
        let handle = Handle::new(*b"h").unwrap();
        let mut state = State::default();
        state.queue.push_back(job(Request::Fstat(handle.clone())));
        state.queue.push_back(job(Request::Read { handle, offset: 0, len: 1 }));
        assert_eq!((state.find(Who::Hand), state.find(Who::Output)), (None, Some(0)));
    }
}
