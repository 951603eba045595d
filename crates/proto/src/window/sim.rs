//! The receiver's rule on simulated links: a sender with slow start, a link, a consumer.
//!
//! Time runs in ticks; messages sit in queues until their tick. Nothing is random.

use super::{Recv, Rule, Send};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

const MIB: f64 = 1_048_576.0;

/// What is simulated; rates in bytes per second.
#[derive(Clone, Copy)]
struct Path {
    rtt: Duration,
    rate: f64,
    /// What the consumer swallows at any speed before `consumer` applies: pipes and buffers.
    burst: f64,
    cap: u32,
    /// Without a channel window: what TCP alone would carry.
    unlimited: bool,
}

impl Path {
    fn new(rtt: Duration, megabits: f64) -> Self {
        Self { rtt, rate: megabits * 125_000.0, burst: 0.0, cap: 64 << 20, unlimited: false }
    }
}

struct Sim {
    path: Path,
    start: Instant,
    tick: Duration,
    ticks: u64,
    delay: u64,
    send: Send,
    recv: Recv,
    cwnd: f64,
    flying: f64,
    data: VecDeque<(u64, u32)>,
    acks: VecDeque<(u64, u32)>,
    grants: VecDeque<(u64, u32)>,
    /// Fractions of a byte that the link and the consumer may still move.
    link: f64,
    appetite: f64,
    taken: f64,
    highest_held: u32,
    adjusts: u64,
    /// Ticks by which the next grant is late.
    late: u64,
}

impl Sim {
    fn new(path: Path) -> Self {
        let rule = Rule::bulk(path.cap);
        let tick = (path.rtt / 200).max(Duration::from_micros(10));
        let window = if path.unlimited { u32::MAX } else { rule.initial() };
        Self {
            path,
            start: Instant::now(),
            tick,
            ticks: 0,
            delay: (path.rtt.as_nanos() / 2 / tick.as_nanos()) as u64,
            send: Send::new(window),
            recv: Recv::new(rule, window),
            cwnd: 14_600.0,
            flying: 0.0,
            data: VecDeque::new(),
            acks: VecDeque::new(),
            grants: VecDeque::new(),
            link: 0.0,
            appetite: path.burst,
            taken: 0.0,
            highest_held: 0,
            adjusts: 0,
            late: 0,
        }
    }

    /// Runs for `time` with a consumer of `consumer` bytes per second; bytes per second it took.
    fn run(&mut self, time: Duration, consumer: f64) -> f64 {
        let before = self.taken;
        let ticks = (time.as_nanos() / self.tick.as_nanos()) as u64;
        for _ in 0..ticks {
            self.ticks += 1;
            self.transmit();
            self.receive();
            self.consume(consumer);
        }
        (self.taken - before) / time.as_secs_f64()
    }

    /// The sender: as far as congestion window, channel window and link allow.
    fn transmit(&mut self) {
        while let Some(n) = due(&mut self.acks, self.ticks) {
            self.flying -= f64::from(n);
            // Slow start up to a queue of one more bandwidth-delay product.
            let most = (2.0 * self.path.rate * self.path.rtt.as_secs_f64()).max(MIB);
            self.cwnd = (self.cwnd + f64::from(n)).min(most);
        }
        while let Some(n) = due(&mut self.grants, self.ticks) {
            self.send.add(n).expect("the rule stays within 32 bits");
        }
        self.link = (self.link + self.path.rate * self.tick.as_secs_f64()).min(self.path.rate);
        let room = (self.cwnd - self.flying).min(self.link).max(0.0);
        let n = self.send.take(room as u32);
        if n > 0 {
            self.link -= f64::from(n);
            self.flying += f64::from(n);
            self.data.push_back((self.ticks + self.delay, n));
        } else {
            self.link = self.link.min(self.path.rate * self.tick.as_secs_f64());
        }
    }

    fn receive(&mut self) {
        while let Some(n) = due(&mut self.data, self.ticks) {
            self.recv.debit(n).expect("the sender stays within its window");
            self.acks.push_back((self.ticks + self.delay, n));
        }
        self.highest_held = self.highest_held.max(self.recv.held());
    }

    fn consume(&mut self, rate: f64) {
        let now = self.start + self.tick * u32::try_from(self.ticks).expect("a short run");
        let step = rate * self.tick.as_secs_f64();
        self.appetite += step;
        let n = self.appetite.min(f64::from(self.recv.held())) as u32;
        self.appetite = (self.appetite - f64::from(n)).min(step.max(self.path.burst));
        self.path.burst = (self.path.burst - f64::from(n)).max(0.0);
        self.taken += f64::from(n);
        if n > 0 {
            self.recv.consumed(n, now);
        }
        if let Some(grant) = self.recv.adjust(now).filter(|_| !self.path.unlimited) {
            self.adjusts += 1;
            let late = std::mem::take(&mut self.late);
            self.grants.push_back((self.ticks + self.delay + late, grant));
        }
    }
}

/// The next message of a queue whose time has come.
fn due(queue: &mut VecDeque<(u64, u32)>, now: u64) -> Option<u32> {
    queue.front().filter(|(at, _)| *at <= now)?;
    queue.pop_front().map(|(_, n)| n)
}

const FAST: f64 = 1e12;
const SLOW: f64 = 1e6;

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// The channel's window grows fast enough never to be the limit before TCP's own is.
#[test]
fn a_fast_consumer_gets_what_slow_start_alone_would_give() {
    for (rtt, megabits) in [(100, 1_000.0), (240, 1_000.0), (25, 1_000.0), (10, 10_000.0)] {
        let path = Path { cap: 256 << 20, ..Path::new(ms(rtt), megabits) };
        let free = Sim::new(Path { unlimited: true, ..path }).run(ms(20 * rtt), FAST);
        let ours = Sim::new(path).run(ms(20 * rtt), FAST);
        println!("{rtt} ms {megabits} Mbit/s: {:.3}", ours / free);
        assert!(ours / free > 0.95, "{rtt} ms: {:.3} of {free:.0}", ours / free);
    }
}

/// A thread that wakes up late, a segment that is lost: the start goes on all the same.
#[test]
fn a_first_grant_that_is_late_by_a_round_trip_stops_nobody() {
    for rtt in [25, 100, 240] {
        let path = Path { burst: MIB, ..Path::new(ms(rtt), 1_000.0) };
        let free = Sim::new(Path { unlimited: true, ..path }).run(ms(8 * rtt), FAST);
        let mut sim = Sim::new(path);
        sim.late = 2 * sim.delay;
        let share = sim.run(ms(8 * rtt), FAST) / free;
        assert!(share > 0.99, "{rtt} ms: {share:.3}");
    }
}

#[test]
fn at_full_rate_the_window_is_never_the_limit() {
    let mut sim = Sim::new(Path::new(ms(100), 1_000.0));
    sim.run(ms(1_500), FAST);
    let share = sim.run(ms(5_000), FAST) / sim.path.rate;
    assert!(share > 0.99, "{share:.3}, target {}", sim.recv.target());
}

#[test]
fn under_the_cap_for_openssh_most_of_a_gigabit_over_100_ms_is_used() {
    let mut sim = Sim::new(Path { cap: Rule::OPENSSH_CAP, ..Path::new(ms(100), 1000.0) });
    sim.run(ms(2_000), FAST);
    let share = sim.run(ms(5_000), FAST) / sim.path.rate;
    assert!(share > 0.95, "{share:.3}");
    assert!(sim.recv.exposure() <= Rule::OPENSSH_CAP);
}

/// The bar: a receiver's memory under 8 MiB over idle with a consumer of 1 MB/s.
#[test]
fn a_slow_consumer_bounds_what_is_held() {
    for rtt in [ms(100), ms(1), Duration::from_micros(50)] {
        for burst in [0.0, 1.0 * MIB, 2.0 * MIB] {
            let mut sim = Sim::new(Path { burst, ..Path::new(rtt, 1_000.0) });
            sim.recv.note_rcvbuf(64 << 20);
            sim.run(ms(3_000), SLOW);
            assert!(sim.highest_held <= 4 << 20, "{rtt:?} {burst}: {}", sim.highest_held);
            assert!(sim.recv.exposure() <= 4 << 20, "{rtt:?} {burst}");
        }
    }
}

#[test]
fn a_consumer_that_turns_slow_gives_memory_back() {
    let mut sim = Sim::new(Path::new(ms(100), 1_000.0));
    sim.run(ms(2_000), FAST);
    assert!(sim.recv.target() >= 24 << 20, "{}", sim.recv.target());
    sim.run(ms(70_000), SLOW);
    assert_eq!(sim.recv.target(), 2 << 20);
    assert!(sim.recv.exposure() <= 2 << 20, "{}", sim.recv.exposure());
}

#[test]
fn a_consumer_that_stalls_and_resumes_is_soon_at_full_rate_again() {
    let mut sim = Sim::new(Path::new(ms(100), 1_000.0));
    sim.run(ms(2_000), FAST);
    sim.run(ms(5_000), 0.0);
    assert!(sim.highest_held <= 64 << 20);
    sim.run(ms(600), FAST);
    let share = sim.run(ms(1_000), FAST) / sim.path.rate;
    assert!(share > 0.95, "{share:.3}");
}

#[test]
fn a_source_that_pauses_keeps_its_window() {
    let mut sim = Sim::new(Path::new(ms(100), 1_000.0));
    sim.run(ms(2_000), FAST);
    let (target, rate) = (sim.recv.target(), sim.path.rate);
    sim.path.rate = 0.0;
    sim.run(ms(10_000), FAST);
    sim.path.rate = rate;
    sim.run(ms(500), FAST);
    assert!(sim.recv.target() >= target, "{} after {target}", sim.recv.target());
}

#[test]
fn on_loopback_the_window_outgrows_batches_and_adjusts_stay_rare() {
    let mut sim = Sim::new(Path::new(Duration::from_micros(50), 24_000.0));
    sim.run(ms(100), FAST);
    let before = sim.adjusts;
    let rate = sim.run(ms(400), FAST);
    assert!(rate / sim.path.rate > 0.99, "{:.3}", rate / sim.path.rate);
    assert!(sim.recv.target() >= 16 << 20, "{}", sim.recv.target());
    let per_adjust = rate * 0.4 / (sim.adjusts - before) as f64;
    assert!(per_adjust >= 4.0 * MIB, "{per_adjust:.0} bytes per WINDOW_ADJUST");
}
