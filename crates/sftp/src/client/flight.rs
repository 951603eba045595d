//! Flight: how many bytes of a channel's bulk to keep under way, found by measuring.
//!
//! What is asked for and not yet answered must cover rate x round trip, or the path idles between
//! an answer and the next request; far more only fills memory. Nobody knows either in advance, so
//! the bound starts at 1 MiB and doubles per round trip for as long as that makes more come through.

use std::time::{Duration, Instant};

/// What one channel may have under way.
///
/// A round lasts until something that was asked for after its start is answered: a round trip and
/// whatever the path queues. After a round in which the bound was reached, it doubles if more came
/// through than in any round before. If that brings no more, it goes back to what sufficed for the
/// best round, and tries again now and then: a round may be slow for other reasons, and a path may
/// become faster.
#[derive(Debug)]
pub struct Flight {
    bound: u64,
    most: u64,
    /// Bytes asked for and answered so far.
    sent: u64,
    done: u64,
    round: Round,
    /// Bytes per second of the best round, and the bound in it.
    best: f64,
    proven: u64,
    /// Rounds since then, or since the bound was tried again.
    flat: u32,
}

#[derive(Debug)]
struct Round {
    started: Instant,
    /// Of [`Flight::sent`] and [`Flight::done`] at its start.
    sent: u64,
    done: u64,
    /// The bound was reached.
    bounded: bool,
}

impl Flight {
    /// The bound at the start.
    pub const START: u64 = 1 << 20;

    /// The most there ever is: 1 Gbit/s over half a second.
    pub const MOST: u64 = 64 << 20;

    /// The most to read from a server that is not ours. OpenSSH's sftp-server answers for as long as
    /// its output buffer has room, 128 MiB, and moves all of it in memory for each packet it writes:
    /// with 64 MiB under way 252 MiB of memory and 5 times the CPU time.
    pub const MOST_FROM_STOCK: u64 = 8 << 20;

    /// Growth by less than this is none: a sixteenth.
    const RISE: f64 = 1.0625;

    /// Rounds without more after which a larger bound is given up: what it brings is answered in
    /// the second.
    const TRIES: u32 = 3;

    /// Rounds without more after which it is tried again.
    const REST: u32 = 24;

    /// Nothing is under way.
    pub fn new(now: Instant) -> Self {
        Self::within(Self::MOST, now)
    }

    /// Nothing is under way, and never will more than `most` bytes be.
    pub fn within(most: u64, now: Instant) -> Self {
        let round = Round { started: now, sent: 0, done: 0, bounded: false };
        Self {
            bound: Self::START.min(most),
            most,
            sent: 0,
            done: 0,
            round,
            best: 0.0,
            proven: Self::START,
            flat: 0,
        }
    }

    /// Bytes that may be asked for now.
    pub fn room(&self) -> u64 {
        self.bound.saturating_sub(self.under_way())
    }

    /// Bytes that are under way.
    pub fn under_way(&self) -> u64 {
        self.sent - self.done
    }

    /// The bound as it is now.
    pub fn bound(&self) -> u64 {
        self.bound
    }

    /// Bytes were asked for, more than [`Flight::room`] if need be.
    pub fn sent(&mut self, bytes: u64, now: Instant) {
        if self.under_way() == 0 {
            // The path was idle: time before this says nothing.
            self.begin_round(now);
        }
        self.sent += bytes;
        // What is left is less than what is asked for at once.
        self.round.bounded |= self.room() < bytes;
    }

    /// Bytes were answered, well or not.
    pub fn done(&mut self, bytes: u64, now: Instant) {
        self.done += bytes.min(self.under_way());
        if self.done > self.round.sent {
            self.end_round(now);
            self.begin_round(now);
        }
    }

    fn begin_round(&mut self, now: Instant) {
        self.round = Round { started: now, sent: self.sent, done: self.done, bounded: false };
    }

    fn end_round(&mut self, now: Instant) {
        let took = now.saturating_duration_since(self.round.started);
        let came = (self.done - self.round.done) as f64;
        let rate = came / took.max(Duration::from_micros(1)).as_secs_f64();
        if rate > self.best * Self::RISE {
            (self.best, self.proven, self.flat) = (rate, self.bound, 0);
        } else if self.round.bounded {
            self.flat += 1;
        }
        match self.flat {
            _ if !self.round.bounded => {}
            0 => self.double(),
            Self::TRIES => self.bound = self.proven,
            Self::REST => {
                self.flat = 0;
                self.double();
            }
            _ => {}
        }
    }

    fn double(&mut self) {
        self.bound = (self.bound * 2).min(self.most);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;

    const PIECE: u64 = 255 * 1024;

    /// A path of so many bytes per second that takes so long, and a clock of its own.
    struct Path {
        rate: f64,
        round_trip: Duration,
        now: Instant,
        free_at: Instant,
        under_way: VecDeque<Instant>,
    }

    impl Path {
        fn new(rate: f64, round_trip: Duration) -> Self {
            let now = Instant::now();
            Self { rate, round_trip, now, free_at: now, under_way: VecDeque::new() }
        }

        /// Runs for a while; the bytes that came through.
        fn run(&mut self, flight: &mut Flight, time: Duration) -> u64 {
            let (end, before) = (self.now + time, flight.done);
            while self.now < end {
                while flight.room() >= PIECE {
                    flight.sent(PIECE, self.now);
                    let took = Duration::from_secs_f64(PIECE as f64 / self.rate);
                    self.free_at = self.free_at.max(self.now) + took;
                    self.under_way.push_back(self.free_at + self.round_trip);
                }
                self.now = self.under_way.pop_front().unwrap();
                flight.done(PIECE, self.now);
            }
            flight.done - before
        }
    }

    /// 1 Gbit/s and 100 ms hold 12.5 MB; 32 MiB is the next power of two after that is known.
    #[test]
    fn a_long_fat_path_is_filled_in_a_second_and_not_flooded() {
        let mut path = Path::new(125e6, Duration::from_millis(100));
        let mut flight = Flight::new(path.now);
        path.run(&mut flight, Duration::from_secs(1));
        let second = path.run(&mut flight, Duration::from_secs(1));
        assert!(second as f64 > 0.97 * 125e6, "{second}");
        path.run(&mut flight, Duration::from_secs(2));
        assert!((16 << 20..=32 << 20).contains(&flight.bound()), "{}", flight.bound());
    }

    #[test]
    fn a_short_path_needs_little() {
        let mut path = Path::new(1e9, Duration::from_micros(100));
        let mut flight = Flight::new(path.now);
        let came = path.run(&mut flight, Duration::from_secs(1));
        assert!(came as f64 > 0.99e9, "{came}");
        assert!(flight.bound() <= 8 << 20, "{}", flight.bound());
    }

    #[test]
    fn a_path_that_becomes_faster_is_noticed() {
        let mut path = Path::new(10e6, Duration::from_millis(50));
        let mut flight = Flight::new(path.now);
        path.run(&mut flight, Duration::from_secs(5));
        assert!(flight.bound() <= 4 << 20, "{}", flight.bound());
        path.rate = 100e6;
        path.run(&mut flight, Duration::from_secs(5));
        let second = path.run(&mut flight, Duration::from_secs(1));
        assert!(second as f64 > 95e6, "{second}");
    }

    #[test]
    fn who_asks_for_little_gets_no_larger_bound() {
        let mut flight = Flight::new(Instant::now());
        let mut now = Instant::now();
        for _ in 0..100 {
            flight.sent(1000, now);
            now += Duration::from_millis(10);
            flight.done(1000, now);
        }
        assert_eq!((flight.bound(), flight.under_way()), (Flight::START, 0));
    }
}
