//! Once a stream runs, nothing is allocated: neither side, no thread, window adjusts included.
#![allow(clippy::unwrap_used, reason = "a test")]

mod ends;

use ends::{Ends, Way};
use engine::{Session, Sink, Source};
use std::fs::File;
use std::io::{PipeReader, Read, pipe};
use std::os::fd::OwnedFd;
use std::thread::{sleep, spawn};
use std::time::{Duration, Instant};

#[global_allocator]
static MEMORY: sys::alloc::Counting = sys::alloc::Counting::new();

/// Passed before counting starts: pools are filled, lists have their size.
const WARM_UP: u64 = 64 << 20;

/// Passed between two counts: 32 full batches.
const LAP: u64 = 16 << 20;

/// Laps in which something could be allocated. In most of them nothing is: what pools still come to
/// is spread over some.
const LAPS: usize = 48;

/// What both sides' pools may still come to: 8 bulk batches and as many small ones, each in
/// two pieces. Threads that get in each other's way use more of them at once, so some are made late.
const GROWTH: u64 = 2 * (8 + 8) * 2;

/// For a sink that waits: what it holds beyond three slabs is allocated, which must stay rare.
const HELD: u64 = LAPS as u64 * 32 / 4;

/// Waits, without allocating, until `session` has sent `bytes`.
fn wait_for(session: &Session, bytes: u64) {
    let deadline = Instant::now() + Duration::from_secs(120);
    while session.sent() < bytes {
        assert!(Instant::now() < deadline, "{} of {bytes} bytes", session.sent());
        sleep(Duration::from_millis(1));
    }
}

/// Counts the whole process's allocations lap by lap while `ends` stream to each other.
fn count(what: &str, ends: &Ends, most: u64) {
    let mut counts = [0; LAPS];
    let senders = ends.senders();
    senders.iter().for_each(|sender| wait_for(sender, WARM_UP));
    for place in &mut counts {
        let before = MEMORY.count();
        for sender in &senders {
            wait_for(sender, sender.sent() + LAP);
        }
        *place = MEMORY.count() - before;
    }
    println!("{what}: {counts:?}");
    assert!(counts.iter().sum::<u64>() <= most, "{what}: {counts:?}");
    // What is allocated per batch, or per window adjust, is allocated in every lap.
    let without = counts.iter().filter(|count| **count == 0).count();
    assert!(most > GROWTH || without >= LAPS / 2, "{what}: {counts:?}");
}

/// Takes everything through one buffer; every `pause` MiB it falls behind.
fn read(mut from: PipeReader, pause: u64) {
    let mut buffer = vec![0; 256 * 1024];
    let mut since = 0;
    while let Ok(n @ 1..) = from.read(&mut buffer) {
        since += n as u64;
        if pause > 0 && since >= pause << 20 {
            since = 0;
            sleep(Duration::from_millis(5));
        }
    }
}

fn to_pipe(pause: u64) -> Sink {
    let (reader, writer) = pipe().unwrap();
    spawn(move || read(reader, pause));
    let fd = engine::Fd::from(OwnedFd::from(writer));
    fd.enlarge_pipe(1 << 20);
    Sink::fd(fd)
}

fn zeros_file() -> Source {
    Source::Fd(OwnedFd::from(File::open("/dev/zero").unwrap()).into())
}

/// One test, as the count is the whole process's.
#[test]
fn no_batch_allocates_in_steady_state() {
    type Case = (&'static str, u64, fn() -> Way, fn() -> Way);
    let nothing = || Way { source: None, sink: Sink::discard() };
    let down = || Way { source: Some(Source::Zeros), sink: Sink::discard() };
    let up = || Way { source: Some(zeros_file()), sink: Sink::discard() };
    let pipe = || Way { source: Some(zeros_file()), sink: to_pipe(0) };
    let lagging = || Way { source: Some(zeros_file()), sink: to_pipe(4) };
    let cases: [Case; 4] = [
        ("zeros to discard", GROWTH, nothing, down),
        ("both ways at once", GROWTH, up, down),
        ("to a pipe", HELD, nothing, pipe),
        ("to a pipe whose reader lags", HELD, nothing, lagging),
    ];
    for (what, most, up, down) in cases {
        let ends = Ends::connect(up(), down());
        count(what, &ends, most);
        ends.end();
    }
}
