//! Run: the copy itself.
//!
//! ```text
//! find      what sources stand for: homes, patterns
//! plan      hosts, roots, names                        then, all at the same time:
//! walk      scan thread: sources -> queue, directories made          (control: its channel)
//! lane      one thread per channel: queue -> bytes under way -> files in place
//! fleet     this thread: lanes replaced, added, retired              (climb, retry, route)
//! late      at the end: links, held back names, directories' times
//! stream    `-t` to a server of ours: a lane without files
//! ```
//! `side` makes this host and others look the same to a lane, so uploads, downloads, copies from
//! one server to another and at home are one code. `job` is a file shared by lanes, `ranges` which
//! bytes of it; `journal` is what the next run knows. `naming` says what the user calls a path.
//!
//! Names, in the order in which a byte meets them:
//!
//! ```text
//! Leg          the copy from one host to one host; sources on several hosts make several
//! Route, Slot  the two ends of a leg; a place for one connection to each of them
//! Root         a source as it was named, and what it is to be called
//! Entry        a file or link in the queue
//! Lane, Side   a thread with a channel to each end; one of these ends
//! Berth, Crew  a lane as the fleet sees it; what keeps it going when its channel breaks
//! Job          an open file, for every lane that moves a part of it
//! Share        what one lane takes of a job: 4 to 64 MiB
//! Span         a share on its lane, as far as it is
//! Piece        what one request moves
//! Left         what an earlier attempt has moved of a file
//! Rest, Stand  what is left of a job; how far bytes that may be there are believed
//! Proof        how both ends compare what arrived
//! ```

mod climb;
mod control;
mod copying;
mod cpu;
mod fault;
mod find;
mod fleet;
mod glob;
mod job;
mod journal;
mod lane;
mod late;
mod local;
mod meta;
mod names;
mod naming;
mod plan;
mod queue;
mod ranges;
mod retry;
mod route;
mod side;
mod stream;
mod sums;
mod walk;
mod xattrs;

pub use retry::{RETRIES, Retries};

use crate::bwlimit::Limiter;
use crate::observe::{Event, Observer};
use crate::options::{Amount, Options, Place};
use crate::report::{Failure, Report};
use control::Control;
use copying::{Copying, Late};
use fleet::Fleet;
use lane::Ends;
use plan::Leg;
use route::Slot;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};
use walk::{Taken, Walk};

/// Connections that a copy may have: those that lanes are divided over, and one more for the first
/// lane where the scan's channel is all that a connection carries (`MaxSessions 1`).
const SLOTS: usize = 8 + 1;

/// Copies, and says what became of it. Journals are kept in `$XDG_STATE_HOME/longhaul`, or
/// `~/.local/state/longhaul`.
pub fn run(options: &Options, observer: &dyn Observer) -> Report {
    run_with_state(options, observer, state_directory().as_deref())
}

/// Where journals are kept; `None` without a home.
#[must_use]
pub fn state_directory() -> Option<PathBuf> {
    journal::directory()
}

/// The same with journals in `state`; without it nothing is remembered.
pub fn run_with_state(options: &Options, observer: &dyn Observer, state: Option<&Path>) -> Report {
    Copies::new(state).run(options, observer)
}

/// Copies one after the other, for which a passphrase is asked once.
pub struct Copies<'a>(plan::Hosts<'a>);

impl<'a> Copies<'a> {
    /// With journals in `state`.
    #[must_use]
    pub fn new(state: Option<&'a Path>) -> Self {
        Self(plan::Hosts::new(state))
    }

    /// The next one.
    pub fn run(&mut self, options: &Options, observer: &dyn Observer) -> Report {
        let started = Instant::now();
        let mut total = Report::default();
        if let Some(failure) = plan::clash(options) {
            observer.observe(&Event::Failed(&failure));
            total.failures.push(failure);
            return total;
        }
        let mut taken = Taken::new(plan::legs(&options.sources).count());
        for sources in plan::legs(&options.sources) {
            let report = Mutex::new(std::mem::take(&mut total));
            let slots: Vec<Slot> = (0..SLOTS).map(|_| Slot::default()).collect();
            let failed =
                leg(options, observer, &mut self.0, (sources, &slots), (&report, &mut taken));
            total = report.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
            if let Some(failure) = failed {
                observer.observe(&Event::Failed(&failure));
                total.failures.push(failure);
            }
        }
        if options.test.is_none() {
            total.elapsed = started.elapsed();
        }
        total
    }
}

/// All sources on one host.
fn leg(
    options: &Options,
    observer: &dyn Observer,
    hosts: &mut plan::Hosts<'_>,
    (sources, slots): (&[Place], &[Slot]),
    (report, taken): (&Mutex<Report>, &mut Taken),
) -> Option<Failure> {
    let [first, ..] = slots else { return None };
    let mut leg = match Leg::new(options, hosts, sources, first) {
        Ok(leg) => leg,
        Err(failure) => return Some(failure),
    };
    let roots = std::mem::take(&mut leg.roots);
    let id = leg.journal.as_ref().map_or_else(random_id, journal::Journal::id);
    let copying = Copying {
        options,
        observer,
        naming: std::mem::take(&mut leg.naming),
        started: Instant::now(),
        opened: OnceLock::new(),
        queue: queue::Queue::default(),
        journal: leg.journal.take(),
        id,
        limiter: options.bwlimit.map(Limiter::new),
        umask: sftp::umask(),
        owners: AtomicBool::new(rustix::process::geteuid().is_root()),
        lanes: AtomicUsize::new(0),
        pace: AtomicU64::new(0),
        report: Mutex::new(std::mem::take(&mut *lock(report))),
        late: Mutex::new(Late::default()),
        warned: Mutex::default(),
        sums: sums_of(options, &leg.route),
    };
    if let Some(why) = &leg.warning {
        copying.warn(None, why);
    }
    leg.failures.drain(..).for_each(|failure| copying.tell(failure));
    let ends = leg.ends.take();
    let failure = match options.test {
        Some(_) => try_out(&copying, &leg, roots, slots),
        None => carry_out(&copying, &leg, (roots, ends, taken), slots),
    };
    copying.report().connections += leg.route.connections.load(Ordering::Relaxed);
    if let Some(limit) = leg.route.limit(slots) {
        let idle = if options.bwlimit.is_some() { "--bwlimit" } else { "the server's answers" };
        copying.report().limited_by = Some(limit.said(idle));
    }
    *lock(report) = std::mem::take(&mut *copying.report());
    failure
}

/// Who compares content at the target by its sums; `None` where nobody can.
fn sums_of(options: &Options, route: &route::Route) -> Option<sums::Sums> {
    match (&route.source, &route.target) {
        (route::End::Here, route::End::There(host, _))
            if options.verify && host.runs_commands() =>
        {
            sums::Sums::new(host.clone()).ok()
        }
        _ => None,
    }
}

fn lock(report: &Mutex<Report>) -> std::sync::MutexGuard<'_, Report> {
    report.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Scans and copies, then does what comes last.
fn carry_out(
    copying: &Copying<'_>,
    leg: &Leg,
    (roots, ends, taken): (Vec<walk::Root>, Option<Ends>, &mut Taken),
    slots: &[Slot],
) -> Option<Failure> {
    let lost = |trouble: route::Trouble| Some(trouble.failure(&leg.host));
    let first = slots.first()?;
    let open = || Control::open(&leg.route, first);
    let aimed = |ends| Ok(Control::with(leg.route.aim(ends)?, &leg.route, first));
    let control = match ends.map_or_else(open, aimed) {
        Ok(mut control) => {
            control.tell_start(copying);
            control
        }
        Err(trouble) => return lost(trouble),
    };
    let (why, host) = (Mutex::new(String::new()), leg.host.as_str());
    let walked = std::thread::scope(|scope| {
        let walk = scope.spawn(move || {
            let _guard = copying.queue.guard();
            Walk::new(copying, control, (host, taken)).run(roots)
        });
        Fleet::new(copying, &leg.route, slots, (host, &why)).run(scope, leg.rtt);
        walk.join()
    });
    let mut control = walked.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    let abandoned = copying.journal.as_ref().is_some_and(|journal| journal.has_abandoned());
    if copying.options.dry_run || (copying.late().is_empty() && !abandoned) {
        return None;
    }
    // Where every lane gave up, the scan's channel is gone as well: one attempt, not R4's many.
    let is_gone = copying.queue.is_stopped() || control.over().is_some();
    match is_gone.then(open) {
        None => late::run(copying, &mut control),
        Some(Ok(mut control)) => late::run(copying, &mut control),
        // The scan may have the only session that the server opens on a connection.
        Some(Err(route::Trouble::Full)) if control.over().is_none() => {
            late::run(copying, &mut control);
        }
        Some(Err(trouble @ route::Trouble::Directory(..))) => return lost(trouble),
        Some(Err(trouble)) => copying.lost(host, trouble.words()),
    }
    None
}

/// `-t`: there is nothing to scan, and nothing comes last.
fn try_out(
    copying: &Copying<'_>,
    leg: &Leg,
    roots: Vec<walk::Root>,
    slots: &[Slot],
) -> Option<Failure> {
    for root in roots {
        if let Some(Amount::Bytes(bytes)) = copying.options.test {
            copying.observer.observe(&Event::Found { files: 1, bytes: bytes.get() });
            copying.observer.observe(&Event::Scanned);
        }
        copying.queue.push(queue::Entry::new(root, true));
    }
    copying.queue.scanned();
    let why = Mutex::new(String::new());
    std::thread::scope(|scope| {
        Fleet::new(copying, &leg.route, slots, (&leg.host, &why)).run(scope, leg.rtt);
    });
    let mut report = copying.report();
    report.elapsed = copying.opened.get().map_or(Duration::ZERO, Instant::elapsed);
    report.through = Some(leg.route.through());
    None
}

/// For a run without a journal: nobody else's part files have it.
fn random_id() -> String {
    let mut bytes = [0; 4];
    // Without randomness another run's part file of the same name is in the way, and is replaced.
    let _ = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty());
    format!("{:08x}", u32::from_le_bytes(bytes))
}
