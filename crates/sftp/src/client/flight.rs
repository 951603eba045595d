//! Flight: how many bytes of a channel's bulk to keep under way, found by measuring.
//!
//! What is asked for and not yet answered must cover rate x round trip, or the path idles between
//! an answer and the next request; far more only fills memory. Nobody knows either in advance, so
//! the bound starts at 1 MiB and doubles per round trip for as long as that makes more come through.

use std::time::{Duration, Instant};

/// What one channel may have under way.
///
/// A round is the time in which everything that was under way at its start is answered: one round
/// trip and whatever the path queues. After each round that was bounded by us, the bound doubles if
/// more came through than in any round before, and else stays.
#[derive(Debug)]
pub struct Flight {
    bound: u64,
    under_way: u64,
    round: Round,
    /// Bytes per second of the best round.
    best: f64,
    /// Rounds since the bound last grew that brought no more.
    flat: u32,
}

#[derive(Debug)]
struct Round {
    started: Instant,
    /// Bytes answered in it.
    done: u64,
    /// Bytes that are answered when it ends.
    ends: u64,
    /// The bound was reached.
    bounded: bool,
}

impl Flight {
    /// The bound at the start.
    pub const START: u64 = 1 << 20;

    /// The most there ever is: 1 Gbit/s over half a second.
    pub const MOST: u64 = 64 << 20;

    /// Growth by less than this is none: a sixteenth.
    const RISE: f64 = 1.0625;

    /// Rounds without more that are tried before a bound counts as enough.
    const TRIES: u32 = 2;

    /// Nothing is under way.
    pub fn new(now: Instant) -> Self {
        let round = Round { started: now, done: 0, ends: 0, bounded: false };
        Self { bound: Self::START, under_way: 0, round, best: 0.0, flat: 0 }
    }

    /// Bytes that may be asked for now.
    pub fn room(&self) -> u64 {
        self.bound.saturating_sub(self.under_way)
    }

    /// Bytes that are under way.
    pub fn under_way(&self) -> u64 {
        self.under_way
    }

    /// The bound as it is now.
    pub fn bound(&self) -> u64 {
        self.bound
    }

    /// Bytes were asked for, more than [`Flight::room`] if need be.
    pub fn sent(&mut self, bytes: u64, now: Instant) {
        if self.under_way == 0 {
            // The path was idle: time before this says nothing.
            self.round = Round { started: now, done: 0, ends: 0, bounded: false };
        }
        self.under_way += bytes;
        if self.round.ends == 0 {
            self.round.ends = bytes;
        }
        // What is left is less than what is asked for at once.
        self.round.bounded |= self.room() < bytes;
    }

    /// Bytes were answered, well or not.
    pub fn done(&mut self, bytes: u64, now: Instant) {
        self.under_way = self.under_way.saturating_sub(bytes);
        self.round.done += bytes;
        if self.round.done >= self.round.ends {
            self.end_round(now);
        }
    }

    fn end_round(&mut self, now: Instant) {
        let took = now.saturating_duration_since(self.round.started);
        let bounded = self.round.bounded;
        let rate = self.round.done as f64 / took.max(Duration::from_micros(1)).as_secs_f64();
        self.round = Round { started: now, done: 0, ends: self.under_way, bounded: false };
        if rate > self.best * Self::RISE {
            self.best = rate;
            self.flat = 0;
        } else {
            self.flat += 1;
        }
        if bounded && self.flat < Self::TRIES {
            self.bound = (self.bound * 2).min(Self::MOST);
        }
    }
}
