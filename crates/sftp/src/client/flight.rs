//! Flight: how many bytes of a channel's bulk to keep under way, found by measuring.
//!
//! What is asked for and not yet answered must cover rate x shortest answer time, or the path idles
//! between an answer and the next request. More of it fills nobody's path, only queues and memory,
//! and is what is sent twice when a server dies. So the bound is twice that product (BBR's gain, of
//! draft-ietf-ccwg-bbr section 5.6), which still covers it when answers are late now and then, but
//! never less than a floor that is lost without regret.
//!
//! ```text
//! round   from something asked to its answer, and what else was answered meanwhile: rate, time
//! lap     eight rounds; the fastest rate of this one and the last counts
//! drain   at the start and every ten seconds, all flights of a copy at once: little is under way
//!         for a round or two, so that queues of our own making are not taken for the path
//! ```

use crate::codec::MAX_DATA;
use std::time::{Duration, Instant};

/// What one channel may have under way.
#[derive(Debug)]
pub struct Flight {
    floor: u64,
    most: u64,
    piece: u64,
    /// Bytes asked for and answered so far.
    sent: u64,
    done: u64,
    round: Option<Round>,
    /// Bytes per second of the fastest round of this lap and of the last.
    fastest: [f64; 2],
    /// Rounds of this lap.
    rounds: u32,
    /// From asking to answer; `None` until something was answered.
    shortest: Option<Duration>,
    /// The rate when it last rose by a quarter, and rounds since then: while it rises, the path is
    /// not full yet.
    risen: (f64, u32),
    next_drain: Instant,
    drain: Option<Drain>,
}

/// From the first that is asked for until something that was asked for since is answered.
#[derive(Debug)]
struct Round {
    started: Instant,
    /// Of [`Flight::sent`] and [`Flight::done`] at its start.
    sent: u64,
    done: u64,
}

/// Little is under way for a while, to see how long the path itself takes.
#[derive(Debug)]
struct Drain {
    /// Left of it.
    rounds: u32,
    shortest: Option<Duration>,
}

impl Flight {
    /// What all flights of a copy may always have under way together, in bytes: 1 GB/s for 2 ms. A
    /// server that dies takes no more than about that with it where the path is short.
    pub const TOGETHER: u64 = 2 << 20;

    /// The most there ever is: 1 Gbit/s over half a second.
    pub const MOST: u64 = 64 << 20;

    /// The most to read from a server that is not ours. OpenSSH's sftp-server answers for as long as
    /// its output buffer has room, 128 MiB, and moves all of it in memory for each packet it writes:
    /// with 64 MiB under way 252 MiB of memory and 5 times the CPU time.
    pub const MOST_FROM_STOCK: u64 = 8 << 20;

    /// How often the shortest answer time is looked for again: paths change (BBR's 10 s).
    const AGAIN: Duration = Duration::from_secs(10);

    /// Rounds of a drain: the first one's answers may have queued behind what was there before.
    const DRAINED: u32 = 2;

    /// What is under way in a drain: half of what the path holds, so half a round trip each time.
    const SIP: f64 = 0.25;

    /// Rounds of a lap, and rounds without a rise after which the path counts as full.
    const LAP: u32 = 8;
    const FULL: u32 = 3;
    const RISE: f64 = 1.25;

    /// Nothing is under way.
    pub fn new(now: Instant) -> Self {
        Self::within(Self::MOST, now)
    }

    /// Nothing is under way, and never will more than `most` bytes be.
    pub fn within(most: u64, now: Instant) -> Self {
        Self {
            floor: Self::TOGETHER,
            most,
            piece: MAX_DATA.into(),
            sent: 0,
            done: 0,
            round: None,
            fastest: [0.0; 2],
            rounds: 0,
            shortest: None,
            risen: (0.0, 0),
            next_drain: now + Self::AGAIN,
            drain: Some(Drain { rounds: 1, shortest: None }),
        }
    }

    /// Drains when others do that were given the same moment, a past one: what one of them alone
    /// does not keep under way, the others queue.
    #[must_use]
    pub fn in_step_since(mut self, moment: Instant, now: Instant) -> Self {
        let past = now.saturating_duration_since(moment).as_secs() / Self::AGAIN.as_secs();
        let drains = u32::try_from(past).unwrap_or(u32::MAX).saturating_add(1);
        self.next_drain = moment + Self::AGAIN * drains;
        self
    }

    /// It is one of so many beside each other, and asks for so many bytes at once: of two pieces
    /// one is under way while the other is answered.
    pub fn beside(&mut self, flights: usize, piece: u64) {
        self.floor = (Self::TOGETHER / flights.max(1) as u64).max(2 * piece);
        self.piece = piece;
    }

    /// Bytes that may be asked for now.
    pub fn room(&self) -> u64 {
        self.bound().saturating_sub(self.under_way())
    }

    /// Bytes that are under way.
    pub fn under_way(&self) -> u64 {
        self.sent - self.done
    }

    /// The bound as it is now.
    pub fn bound(&self) -> u64 {
        let [this, last] = self.fastest;
        let held = this.max(last) * self.shortest.unwrap_or_default().as_secs_f64();
        // While the rate rises, what was measured is behind what there is: BBR's gain then is 2.89.
        let gain = if self.risen.1 < Self::FULL { 3.0 } else { 2.0 };
        let bound = gain * held;
        match self.drain {
            None => (bound as u64).max(self.floor).min(self.most),
            Some(_) => ((Self::SIP * bound) as u64).max(self.piece).min(self.most),
        }
    }

    /// Bytes were asked for, more than [`Flight::room`] if need be.
    pub fn sent(&mut self, bytes: u64, now: Instant) {
        let (sent, done) = (self.sent, self.done);
        self.round.get_or_insert(Round { started: now, sent, done });
        self.sent += bytes;
    }

    /// Bytes that were to be asked for were not needed: that says nothing about the path.
    pub fn spared(&mut self, bytes: u64) {
        self.sent = self.sent.saturating_sub(bytes).max(self.done);
        self.round = None;
    }

    /// Bytes were answered, well or not.
    pub fn done(&mut self, bytes: u64, now: Instant) {
        self.done += bytes.min(self.under_way());
        // More was answered than had been asked for at its start: so something asked for since.
        if let Some(round) = self.round.take_if(|round| self.done > round.sent) {
            self.end_round(&round, now);
        }
    }

    fn end_round(&mut self, round: &Round, now: Instant) {
        let took = now.saturating_duration_since(round.started).max(Duration::from_micros(1));
        let rate = (self.done - round.done) as f64 / took.as_secs_f64();
        if rate > self.risen.0 * Self::RISE {
            self.risen = (rate, 0);
        } else {
            self.risen.1 = self.risen.1.saturating_add(1);
        }
        if self.rounds == Self::LAP {
            (self.rounds, self.fastest) = (0, [0.0, self.fastest[0]]);
        }
        self.rounds += 1;
        self.fastest[0] = self.fastest[0].max(rate);
        let shorter = |known: Option<Duration>| Some(known.map_or(took, |known| known.min(took)));
        self.shortest = shorter(self.shortest);
        match &mut self.drain {
            Some(drain) => {
                drain.rounds -= 1;
                drain.shortest = shorter(drain.shortest);
                if drain.rounds == 0 {
                    self.shortest = drain.shortest;
                    self.drain = None;
                }
            }
            None if now >= self.next_drain => {
                while self.next_drain <= now {
                    self.next_drain += Self::AGAIN;
                }
                self.drain = Some(Drain { rounds: Self::DRAINED, shortest: None });
            }
            None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;

    const PIECE: u64 = 128 << 10;

    /// A path of so many bytes per second that takes so long, and a clock of its own.
    struct Path {
        rate: f64,
        round_trip: Duration,
        now: Instant,
        free_at: Instant,
        /// When each piece is answered, and whose it is.
        under_way: VecDeque<(Instant, usize)>,
        /// For the jitter of machines that do other things as well.
        dice: u64,
        jitter: f64,
    }

    impl Path {
        fn new(rate: f64, round_trip: Duration) -> Self {
            let now = Instant::now();
            let under_way = VecDeque::new();
            Self { rate, round_trip, now, free_at: now, under_way, dice: 1, jitter: 0.0 }
        }

        /// What a piece takes: up to `jitter` times longer, mostly not.
        fn takes(&mut self) -> Duration {
            self.dice = self.dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let chance = (self.dice >> 40) as f64 / f64::from(1 << 24);
            let longer = 1.0 + self.jitter * chance.powi(4);
            Duration::from_secs_f64(PIECE as f64 / self.rate * longer)
        }

        fn fill(&mut self, flights: &mut [Flight], who: usize) {
            while flights[who].room() > 0 {
                flights[who].sent(PIECE, self.now);
                self.free_at = self.free_at.max(self.now) + self.takes();
                self.under_way.push_back((self.free_at + self.round_trip, who));
            }
        }

        /// Runs for a while; the bytes that came through.
        fn run(&mut self, flights: &mut [Flight], time: Duration) -> u64 {
            let (end, mut came) = (self.now + time, 0);
            (0..flights.len()).for_each(|who| self.fill(flights, who));
            while self.now < end {
                let (at, who) = self.under_way.pop_front().unwrap();
                self.now = at;
                flights[who].done(PIECE, at);
                came += PIECE;
                self.fill(flights, who);
            }
            came
        }
    }

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn eight(now: Instant) -> Vec<Flight> {
        let one = || {
            let mut flight = Flight::new(now);
            flight.beside(8, PIECE);
            flight
        };
        (0..8).map(|_| one()).collect()
    }

    fn total(flights: &[Flight]) -> u64 {
        flights.iter().map(Flight::bound).sum()
    }

    /// 1 Gbit/s and 100 ms hold 12.5 MB.
    #[test]
    fn a_long_fat_path_is_filled_in_a_second_and_not_flooded() {
        let mut path = Path::new(125e6, Duration::from_millis(100));
        let mut flight = [Flight::new(path.now)];
        let first = path.run(&mut flight, seconds(1));
        assert!(first as f64 > 0.4 * 125e6, "{first}");
        let second = path.run(&mut flight, seconds(1));
        assert!(second as f64 > 0.97 * 125e6, "{second}");
        path.run(&mut flight, seconds(2));
        let bound = flight[0].bound();
        assert!((16 << 20..=32 << 20).contains(&bound), "{bound}");
    }

    #[test]
    fn looking_for_the_shortest_time_again_costs_little_and_does_not_drift() {
        let mut path = Path::new(125e6, Duration::from_millis(100));
        let mut flight = [Flight::new(path.now)];
        path.run(&mut flight, seconds(2));
        let minute = path.run(&mut flight, seconds(60));
        assert!(minute as f64 > 0.97 * 60.0 * 125e6, "{minute}");
        let bound = flight[0].bound();
        assert!((16 << 20..=32 << 20).contains(&bound), "{bound}");
    }

    #[test]
    fn eight_beside_each_other_fill_a_long_path_together_and_do_not_drift() {
        let mut path = Path::new(125e6, Duration::from_millis(100));
        let mut flights = eight(path.now);
        path.run(&mut flights, seconds(1));
        let minute = path.run(&mut flights, seconds(60));
        assert!(minute as f64 > 0.97 * 60.0 * 125e6, "{minute}");
        assert!((13 << 20..=48 << 20).contains(&total(&flights)), "{}", total(&flights));
    }

    /// What a server that dies takes with it.
    #[test]
    fn eight_on_a_short_path_have_little_under_way_whatever_the_jitter() {
        for jitter in [0.0, 5.0, 50.0] {
            let mut path = Path::new(1e9, Duration::from_micros(200));
            path.jitter = jitter;
            let mut flights = eight(path.now);
            let mut most = 0;
            for _ in 0..300 {
                path.run(&mut flights, Duration::from_millis(50));
                most = most.max(total(&flights));
            }
            assert!(most <= 6 << 20, "{jitter}: {most}");
        }
    }

    #[test]
    fn a_short_path_needs_little() {
        let mut path = Path::new(1e9, Duration::from_micros(100));
        let mut flight = [Flight::new(path.now)];
        let came = path.run(&mut flight, seconds(1));
        assert!(came as f64 > 0.99e9, "{came}");
        assert!(flight[0].bound() <= 2 << 20, "{}", flight[0].bound());
    }

    #[test]
    fn a_path_that_becomes_faster_is_noticed() {
        let mut path = Path::new(10e6, Duration::from_millis(50));
        let mut flight = [Flight::new(path.now)];
        path.run(&mut flight, seconds(5));
        assert!(flight[0].bound() <= 4 << 20, "{}", flight[0].bound());
        path.rate = 100e6;
        path.run(&mut flight, seconds(2));
        let second = path.run(&mut flight, seconds(1));
        assert!(second as f64 > 95e6, "{second}");
    }

    #[test]
    fn a_path_that_becomes_longer_is_filled_again() {
        let mut path = Path::new(100e6, Duration::from_millis(20));
        let mut flight = [Flight::new(path.now)];
        path.run(&mut flight, seconds(5));
        path.round_trip = Duration::from_millis(200);
        path.run(&mut flight, seconds(12));
        let second = path.run(&mut flight, seconds(1));
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
        assert_eq!((flight.bound(), flight.under_way()), (Flight::TOGETHER, 0));
    }

    #[test]
    fn what_was_not_needed_says_nothing_about_the_path() {
        let mut path = Path::new(125e6, Duration::from_millis(100));
        let mut flight = [Flight::new(path.now)];
        path.run(&mut flight, seconds(3));
        let bound = flight[0].bound();
        flight[0].sent(1000, path.now);
        flight[0].spared(1000);
        assert_eq!(flight[0].bound(), bound);
        let second = path.run(&mut flight, seconds(1));
        assert!(second as f64 > 0.97 * 125e6, "{second}");
    }
}
