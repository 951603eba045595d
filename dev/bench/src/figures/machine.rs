//! Machine: what a reader of a picture needs to know of where and when it was measured.

use crate::{loopback, quiet};
use std::fs;
use std::thread::available_parallelism;
use std::time::{SystemTime, UNIX_EPOCH};

/// `AMD EPYC 9R14, 2 cores, Linux 6.18.2`: what a distribution calls its kernel says nothing here.
pub(crate) fn line() -> String {
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpuinfo.lines().find_map(|line| line.strip_prefix("model name"));
    let model = model.map_or("unknown processor", |line| line.trim_start_matches([' ', '\t', ':']));
    let model = model.replace("(R)", "").replace("(TM)", "");
    let cores = available_parallelism().map_or(1, usize::from);
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let kernel = kernel.trim().split('-').next().unwrap_or_default();
    format!("{}, {cores} cores, Linux {kernel}", model.trim())
}

/// What makes figures worse than they are.
pub(crate) fn remarks() -> Vec<String> {
    let debug =
        cfg!(debug_assertions).then(|| "unoptimised build: longhaul's rates are low".to_owned());
    let root = nix::unistd::geteuid().is_root().then(|| "as root".to_owned());
    let loopback = format!("loopback with {}", loopback::current());
    debug.into_iter().chain(root).chain([loopback]).chain(quiet::warnings()).collect()
}

/// Day and minute, UTC.
pub(crate) fn now() -> String {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
    stamp(seconds)
}

/// Howard Hinnant's days-to-civil: years begin in March, so that leap days come last.
fn stamp(seconds: u64) -> String {
    let days = seconds / 86_400 + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let (day, month) = (day - (153 * month + 2) / 5 + 1, (month + 2) % 12 + 1);
    let year = year + era * 400 + u64::from(month <= 2);
    let minute = seconds / 60 % 1440;
    format!("{year}-{month:02}-{day:02} {:02}:{:02}", minute / 60, minute % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_become_dates() {
        assert_eq!(stamp(0), "1970-01-01 00:00");
        assert_eq!(stamp(951_782_399), "2000-02-28 23:59");
        assert_eq!(stamp(951_782_400), "2000-02-29 00:00");
        assert_eq!(stamp(1_795_316_700), "2026-11-22 03:05");
    }

    #[test]
    fn this_machine_has_a_line() {
        assert!(line().contains("cores, Linux"));
    }
}
