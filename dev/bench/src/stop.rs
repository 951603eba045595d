//! Stop: SIGINT, SIGTERM and SIGHUP lead to an orderly end, of lhbench and of what it measures.
//!
//! lhbench    asks its children (`measured`) to end; every wait for one of them returns, the next
//!            start and the next turn are refused, and the way out drops lab, link and quota
//! measured   ends everything below it, whatever group or session that is in, then itself; the
//!            same when lhbench is gone without a word
//!
//! A child is started under the lock that a signal is noted under, so none is missed.

use anyhow::{Result, bail};
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, getppid};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::collections::HashSet;
use std::fs;
use std::io::IsTerminal;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// The signal that came, if one did.
static CAUGHT: Mutex<Option<i32>> = Mutex::new(None);

/// How long what is measured may take to end before it is killed.
const PATIENCE: Duration = Duration::from_secs(1);
/// Between two looks at signals, parent and children.
const PAUSE: Duration = Duration::from_millis(50);

/// A child may be started while this is held.
pub(crate) struct Permit(#[expect(dead_code, reason = "held, not read")] Lock);

type Lock = MutexGuard<'static, Option<i32>>;

fn lock() -> Lock {
    CAUGHT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// An error once a signal has come.
pub(crate) fn check() -> Result<()> {
    permit().map(drop)
}

/// Says what went wrong, unless a signal was the reason.
pub(crate) fn complain(what: &str) {
    if check().is_ok() {
        // A line of progress may be on the screen.
        let clear = if std::io::stderr().is_terminal() { "\r" } else { "" };
        eprintln!("{clear}lhbench: {what}");
    }
}

/// What a start needs; an error once a signal has come.
pub(crate) fn permit() -> Result<Permit> {
    let caught = lock();
    if let Some(signal) = *caught {
        bail!("ended by signal {signal}");
    }
    Ok(Permit(caught))
}

/// The exit status that a signal asks for, as shells count.
pub(crate) fn status() -> Option<u8> {
    lock().and_then(|signal| u8::try_from(128 + signal).ok())
}

/// From here on signals end lhbench in order.
pub(crate) fn in_order() -> Result<()> {
    let mut signals = Signals::new(heeded())?;
    thread::spawn(move || {
        for signal in signals.forever() {
            let mut caught = lock();
            if caught.replace(signal).is_none() {
                children().into_iter().for_each(|child| _ = kill(child, Signal::SIGTERM));
            }
        }
    });
    Ok(())
}

/// From here on signals, and the end of the process `owner`, end this one with all below it.
pub(crate) fn with_family(owner: i32) -> Result<()> {
    let mut signals = Signals::new([SIGHUP, SIGINT, SIGTERM])?;
    thread::spawn(move || {
        while signals.pending().next().is_none() && getppid().as_raw() == owner {
            thread::sleep(PAUSE);
        }
        let _caught = lock(); // nothing starts any more
        end_children();
        std::process::exit(1);
    });
    Ok(())
}

/// Ends whatever is below this process, which reaps orphans: asks each once, then insists. Who
/// waits for them is another thread.
fn end_children() {
    let (start, mut asked) = (Instant::now(), HashSet::new());
    loop {
        let left = children();
        if left.is_empty() {
            return;
        }
        let insists = start.elapsed() > PATIENCE;
        for child in left {
            if insists {
                _ = kill(child, Signal::SIGKILL);
            } else if asked.insert(child) {
                _ = kill(child, Signal::SIGTERM);
            }
        }
        thread::sleep(PAUSE / 5);
    }
}

/// The living children of this process.
fn children() -> Vec<Pid> {
    let own = std::process::id();
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let is_child = |pid: &i32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        parent(&stat) == Some(own)
    };
    pids.filter(is_child).map(Pid::from_raw).collect()
}

/// The parent in a line of `/proc/PID/stat`, unless the process is dead and waits to be reaped.
fn parent(stat: &str) -> Option<u32> {
    // The name is in parentheses and may hold anything.
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_whitespace();
    match fields.next()? {
        "Z" | "X" => None,
        _ => fields.next()?.parse().ok(),
    }
}

/// Signals that whoever started lhbench did not have it ignore: nohup has it ignore SIGHUP.
fn heeded() -> Vec<i32> {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = ignored(&status);
    let all = [SIGHUP, SIGINT, SIGTERM].into_iter();
    all.filter(|signal| ignored >> (signal - 1) & 1 == 0).collect()
}

/// The mask of ignored signals in `/proc/self/status`.
fn ignored(status: &str) -> u64 {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_name_may_hold_anything() {
        assert_eq!(parent("17 (a) S 3 (b)) R 42 17 17 0"), Some(42));
        assert_eq!(parent("17 (sh) Z 42 17 17 0"), None, "dead");
        assert_eq!(parent(""), None);
    }

    #[test]
    fn ignored_signals_are_a_mask() {
        let mask = ignored("SigBlk:\t0000000000000000\nSigIgn:\t0000000000001001\n");
        assert_eq!((mask & 1, mask >> (SIGINT - 1) & 1), (1, 0));
        assert_eq!(ignored(""), 0);
    }
}
