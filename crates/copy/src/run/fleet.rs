//! Fleet: the lanes' threads. Starts them, replaces those that break (R4), and has as many as pay
//! off (`-n auto`).

use super::climb::{Climb, Shape};
use super::copying::Copying;
use super::cpu;
use super::lane::{End, Lane};
use super::retry::{Backoff, chance};
use super::route::{Route, Slot, Trouble};
use super::stream;
use crate::bwlimit::Limiter;
use crate::observe::{Event, LaneId};
use crate::options::Lanes;
use login::CallOff;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, Scope};
use std::time::{Duration, Instant};

/// Shortest time that a rate is measured over, and given to new lanes before: less is noise on a
/// machine that does other things.
const LOOK: Duration = Duration::from_millis(400);
/// Longest.
const LONG_LOOK: Duration = Duration::from_secs(2);
/// How often lanes are looked after.
const TICK: Duration = Duration::from_millis(20);

/// How a lane is, told by its thread.
#[derive(Default)]
struct State {
    retire: AtomicBool,
    phase: AtomicU8,
}

const STARTING: u8 = 0;
const WORKING: u8 = 1;
const REFUSED: u8 = 2;
const GONE: u8 = 3;

impl State {
    fn is(&self, phase: u8) -> bool {
        self.phase.load(Ordering::Acquire) == phase
    }

    fn become_(&self, phase: u8) {
        self.phase.store(phase, Ordering::Release);
    }
}

/// A lane as the fleet sees it.
struct Berth {
    connection: u32,
    channel: u32,
    state: Arc<State>,
}

/// Channels of the first connection that lanes will ask for at once.
pub(super) fn first_channels(lanes: Lanes) -> u32 {
    match lanes {
        Lanes::Fixed(lanes) => fixed(lanes.get()).channels,
        Lanes::Auto => Shape::FIRST.channels,
    }
}

fn fixed(lanes: u32) -> Shape {
    Shape::fixed(lanes, cores())
}

fn cores() -> u32 {
    let cores = thread::available_parallelism().map_or(1, |cores| cores.get());
    u32::try_from(cores).unwrap_or(u32::MAX)
}

/// What a look at all lanes showed.
struct Seen {
    /// Bytes per second, as the climb counts.
    rate: f64,
    /// This host had processor time to spare.
    idle: bool,
    /// Nine tenths of what `--bwlimit` allows were moved, or more.
    limited: bool,
}

/// All lanes of a copy.
pub(super) struct Fleet<'a> {
    copying: &'a Copying<'a>,
    route: &'a Route,
    slots: &'a [Slot],
    /// What broke last.
    why: &'a Mutex<String>,
    host: &'a str,
    berths: Vec<Berth>,
    next: u32,
    /// Ends what lanes are still logging in.
    off: CallOff,
}

impl<'a> Fleet<'a> {
    pub(super) fn new(
        copying: &'a Copying<'a>,
        route: &'a Route,
        slots: &'a [Slot],
        (host, why): (&'a str, &'a Mutex<String>),
    ) -> Self {
        let (berths, off) = (Vec::new(), CallOff::default());
        Self { copying, route, slots, why, host, berths, next: 0, off }
    }

    /// Works until there is nothing left, or nobody left to do it.
    pub(super) fn run<'s>(&mut self, scope: &'s Scope<'s, 'a>, rtt: Duration)
    where
        'a: 's,
    {
        match self.copying.options.lanes {
            Lanes::Fixed(lanes) => {
                self.become_(scope, fixed(lanes.get()), lanes.get());
                while self.goes_on(Duration::from_secs(1)) {}
            }
            Lanes::Auto => self.climb(scope, rtt),
        }
        // Nobody waits for lanes that are still on their way.
        self.off.call();
    }

    /// Adds lanes for as long as that makes all of them faster together.
    fn climb<'s>(&mut self, scope: &'s Scope<'s, 'a>, rtt: Duration)
    where
        'a: 's,
    {
        self.become_(scope, Shape::FIRST, Shape::FIRST.lanes());
        if !self.finds_more() {
            return;
        }
        if !self.falls_short(rtt) {
            return;
        }
        let mut climb = Climb::new(rtt, cores());
        let mut shape = climb.shape();
        self.become_(scope, shape, shape.lanes());
        while let Some(seen) = self.look(rtt) {
            if seen.limited || !self.copying.queue.has_more() {
                continue;
            }
            self.heed_refusals(&mut climb, shape);
            shape = climb.judge(shape, seen.rate, seen.idle);
            self.become_(scope, shape, shape.lanes());
        }
    }

    /// Waits while the first lanes move what `--bwlimit` allows: more of them would bring nothing.
    /// False if it is over.
    fn falls_short(&self, rtt: Duration) -> bool {
        if self.copying.limiter.is_none() {
            return true;
        }
        while let Some(seen) = self.look(rtt) {
            if !seen.limited && self.copying.queue.has_more() {
                return true;
            }
        }
        false
    }

    /// Gives new lanes time, then measures; none if it is over.
    fn look(&self, rtt: Duration) -> Option<Seen> {
        if !self.settles((rtt * 2).max(LOOK)) {
            return None;
        }
        let unused = || self.copying.limiter.as_ref().map(Limiter::idle);
        let (before, at) = (self.copying.pace.load(Ordering::Relaxed), Instant::now());
        let (used, left) = (cpu::Used::now(), unused());
        if !self.goes_on((rtt * 4).clamp(LOOK, LONG_LOOK)) {
            return None;
        }
        let (pace, time) = (self.copying.pace.load(Ordering::Relaxed) - before, at.elapsed());
        let limited = |(now, before): (Duration, Duration)| now.saturating_sub(before) * 10 < time;
        Some(Seen {
            rate: pace as f64 / time.as_secs_f64(),
            idle: used.left_some(),
            limited: unused().zip(left).is_some_and(limited),
        })
    }

    /// Waits until there is more to do than the first lanes took; false if it is over.
    fn finds_more(&self) -> bool {
        while !self.copying.queue.has_more() {
            if !self.goes_on(TICK) {
                return false;
            }
        }
        true
    }

    /// Waits until new lanes are at work, and then for `rest`; false if it is over.
    fn settles(&self, rest: Duration) -> bool {
        while self.berths.iter().any(|berth| berth.state.is(STARTING)) {
            if !self.goes_on(TICK) {
                return false;
            }
        }
        self.goes_on(rest)
    }

    /// Waits; false if nothing is left to do, or nobody to do it.
    fn goes_on(&self, wait: Duration) -> bool {
        let end = Instant::now() + wait;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            if self.copying.queue.rest(left.min(TICK * 5)) {
                return false;
            }
            let gone = |berth: &Berth| berth.state.is(GONE) || berth.state.is(REFUSED);
            if self.berths.iter().all(gone) {
                self.give_up();
                return false;
            }
            if left.is_zero() {
                return true;
            }
        }
    }

    /// All lanes are gone, and there is work left.
    fn give_up(&self) {
        if self.copying.queue.is_stopped() {
            return;
        }
        let why = self.why.lock().unwrap_or_else(PoisonError::into_inner).clone();
        self.copying.lost(self.host, why);
        self.copying.queue.stop();
    }

    /// A session or connection that the server refused is a limit.
    fn heed_refusals(&self, climb: &mut Climb, shape: Shape) {
        let on = |connection: u32| {
            self.berths.iter().filter(move |b| b.connection == connection && b.state.is(WORKING))
        };
        for refused in self.berths.iter().filter(|berth| berth.state.is(REFUSED)) {
            match (refused.connection, on(refused.connection).count()) {
                // The scan's channel is on the first one, whatever else is.
                (0, there) | (_, there @ 1..) => {
                    climb.channels_refused(u32::try_from(there).unwrap_or(u32::MAX));
                }
                (_, 0) => {
                    let most = (0..shape.connections).filter(|c| on(*c).next().is_some()).count();
                    climb.connections_refused(u32::try_from(most).unwrap_or(u32::MAX));
                }
            }
        }
    }

    /// Starts lanes that are missing of `shape` and retires those beyond it.
    fn become_<'s>(&mut self, scope: &'s Scope<'s, 'a>, shape: Shape, most: u32)
    where
        'a: 's,
    {
        let belongs = |b: &Berth| b.connection < shape.connections && b.channel < shape.channels;
        for berth in self.berths.iter().filter(|berth| !belongs(berth)) {
            berth.state.retire.store(true, Ordering::Relaxed);
        }
        self.berths.retain(|berth| belongs(berth) && !berth.state.is(REFUSED));
        // First one of each connection, so that no connection has less than others by two.
        for channel in 0..shape.channels {
            for connection in 0..shape.connections {
                let there = |b: &Berth| (b.connection, b.channel) == (connection, channel);
                let full = u32::try_from(self.berths.len()).unwrap_or(u32::MAX) >= most;
                if !full && !self.berths.iter().any(there) {
                    self.launch(scope, connection, channel);
                }
            }
        }
    }

    fn launch<'s>(&mut self, scope: &'s Scope<'s, 'a>, connection: u32, channel: u32)
    where
        'a: 's,
    {
        let Some(slot) = self.slots.get(connection as usize) else { return };
        // A copy has one lane at least.
        let first = (connection, channel) == (0, 0);
        let other = self.slots.last().filter(|_| first);
        let state = Arc::new(State::default());
        let id = LaneId(self.next);
        self.next += 1;
        let crew = Crew {
            copying: self.copying,
            route: self.route,
            slot,
            other,
            why: self.why,
            host: self.host,
            id,
            state: Arc::clone(&state),
            off: self.off.clone(),
            backoff: Backoff::default(),
        };
        self.berths.push(Berth { connection, channel, state });
        let named = thread::Builder::new().name(format!("lane {}", id.0));
        let started = named.spawn_scoped(scope, move || crew.run(connection, channel));
        if let (Err(error), Some(berth)) = (started, self.berths.last()) {
            berth.state.become_(GONE);
            *self.why.lock().unwrap_or_else(PoisonError::into_inner) = error.to_string();
        }
    }
}

/// What keeps a lane going, on its thread. A lane that panics ends the copy: nobody else has its
/// files.
struct Crew<'a> {
    copying: &'a Copying<'a>,
    route: &'a Route,
    slot: &'a Slot,
    /// Another connection, should this one be full.
    other: Option<&'a Slot>,
    why: &'a Mutex<String>,
    host: &'a str,
    id: LaneId,
    state: Arc<State>,
    off: CallOff,
    backoff: Backoff,
}

impl Crew<'_> {
    fn run(mut self, connection: u32, channel: u32) {
        let _guard = self.copying.queue.guard();
        while !self.copying.queue.rest(Duration::ZERO) {
            let (why, worked) = match self.work(connection, channel) {
                // It was called off, or comes too late to matter.
                Err(_) if self.copying.queue.rest(Duration::ZERO) => {
                    return self.state.become_(GONE);
                }
                Err(Trouble::Full) if let Some(other) = self.other.take() => {
                    self.slot = other;
                    continue;
                }
                Err(Trouble::Full) => return self.refused(),
                Err(trouble @ (Trouble::Never(_) | Trouble::Directory(..))) => {
                    return self.gone(trouble.words());
                }
                Err(Trouble::Later(why)) => (why, false),
                Ok(End::Over | End::Retired) => break,
                Ok(End::Broken(why)) => {
                    self.tell_failed(&why, None);
                    return self.gone(why);
                }
                Ok(End::Lost { why, worked }) => (why, worked),
            };
            if worked {
                self.backoff.succeeded();
            }
            if !self.wait(why) {
                return;
            }
        }
        self.copying.observer.observe(&Event::LaneClosed { lane: self.id });
        self.state.become_(GONE);
    }

    /// Opens a channel, and works until it ends.
    fn work(&self, connection: u32, channel: u32) -> Result<End, Trouble> {
        let retire = &self.state.retire;
        let mut is_open = false;
        let mut opened = || {
            is_open = true;
            self.open(connection, channel);
        };
        let end = match self.route.stream {
            Some(direction) => {
                let way = (self.route, self.slot, direction, &self.off);
                stream::work(self.copying, way, (self.id, retire), &mut opened)
            }
            None => self.slot.open_unless(self.route, &self.off).map(|ends| {
                opened();
                Lane::new(self.copying, self.id, ends, retire).work()
            }),
        };
        self.copying.lanes.fetch_sub(usize::from(is_open), Ordering::Relaxed);
        end
    }

    fn open(&self, connection: u32, channel: u32) {
        self.copying.opened.get_or_init(Instant::now);
        let lanes = self.copying.lanes.fetch_add(1, Ordering::Relaxed) + 1;
        let lanes = u32::try_from(lanes).unwrap_or(u32::MAX);
        {
            let mut report = self.copying.report();
            report.lanes = report.lanes.max(lanes);
        }
        self.state.become_(WORKING);
        let (lane, host) = (self.id, self.host);
        self.copying.observer.observe(&Event::LaneOpened { lane, host, connection, channel });
    }

    /// Waits before the next attempt; false if there is none.
    fn wait(&mut self, why: String) -> bool {
        let retry_in = self.backoff.next(chance());
        self.copying.report().retries += 1;
        self.tell_failed(&why, retry_in);
        match retry_in {
            None => {
                self.gone(why);
                false
            }
            // While others wait for it, a lane that starts again is at work.
            Some(wait) => {
                self.state.become_(WORKING);
                !self.copying.queue.rest(wait) || {
                    self.state.become_(GONE);
                    false
                }
            }
        }
    }

    fn tell_failed(&self, why: &str, retry_in: Option<Duration>) {
        let (lane, host) = (self.id, self.host);
        self.copying.observer.observe(&Event::LaneFailed { lane, host, why, retry_in });
    }

    /// A limit: no error, unless nobody is left.
    fn refused(&self) {
        let mut why = self.why.lock().unwrap_or_else(PoisonError::into_inner);
        if why.is_empty() {
            *why = Trouble::Full.words();
        }
        drop(why);
        self.state.become_(REFUSED);
    }

    fn gone(&self, why: String) {
        *self.why.lock().unwrap_or_else(PoisonError::into_inner) = why;
        self.state.become_(GONE);
    }
}
