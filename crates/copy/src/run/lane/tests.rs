//! A lane on this host, without a fleet.

use super::super::local::{self, Below};
use super::super::naming::Naming;
use super::super::queue::Queue;
use super::super::side::Side;
use super::super::walk::Root;
use super::*;
use crate::observe::{Event, Observer};
use crate::options::{Options, Place};
use crate::report::Report;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, AtomicUsize};
use std::sync::mpsc::channel;
use std::sync::{Mutex, OnceLock};

fn copying<'a>(options: &'a Options, observer: &'a dyn Observer) -> Copying<'a> {
    Copying {
        options,
        observer,
        naming: Naming::default(),
        started: Instant::now(),
        opened: OnceLock::new(),
        queue: Queue::default(),
        journal: None,
        id: "1".to_owned(),
        limiter: None,
        umask: 0o022,
        owners: AtomicBool::new(false),
        lanes: AtomicUsize::new(1),
        pace: AtomicU64::new(0),
        report: Mutex::new(Report::default()),
        late: Mutex::default(),
        sums: None,
        warned: Mutex::default(),
    }
}

fn ends(target: &Path) -> Ends {
    let target = Below::new(target.as_os_str().as_bytes(), false).unwrap();
    Ends::new(Side::Here, Side::Below(target), channel(), false)
}

/// Wants fewer lanes when the first bytes have moved.
struct Enough<'a>(&'a AtomicBool);

impl Observer for Enough<'_> {
    fn observe(&self, event: &Event<'_>) {
        if let Event::Moved { .. } = event {
            self.0.store(true, Ordering::Relaxed);
        }
    }
}

#[test]
fn a_lane_that_is_not_wanted_any_more_leaves_the_rest_of_a_file_to_others() {
    let lab = tempfile::tempdir().unwrap();
    let (source, target) = (lab.path().join("source"), lab.path().join("target"));
    fs::write(&source, stand_ins::noise(1, 32 << 20)).unwrap();
    fs::create_dir(&target).unwrap();
    let place = |path: &Path| Place::Local(path.to_owned());
    let options = Options { fsync: false, ..Options::new(vec![place(&source)], place(&target)) };
    let (retire, stay) = (AtomicBool::new(false), AtomicBool::new(false));
    let observer = Enough(&retire);
    let copying = copying(&options, &observer);
    let from = source.as_os_str().as_bytes().to_vec();
    let meta = local::stat(&from, false).unwrap();
    copying
        .queue
        .push(super::super::queue::Entry::new(Root { from, to: b"copy".to_vec(), meta }, true));
    copying.queue.scanned();
    let end = Lane::new(&copying, LaneId(0), ends(&target), &retire).work();
    let moved = copying.report().bytes;
    assert!(matches!(end, End::Retired) && moved > 0 && moved <= 16 << 20, "{end:?} {moved}");
    let end = Lane::new(&copying, LaneId(1), ends(&target), &stay).work();
    assert!(matches!(end, End::Over), "{end:?}");
    assert_eq!(copying.report().bytes, 32 << 20);
    assert_eq!(fs::read(target.join("copy")).unwrap(), fs::read(&source).unwrap());
}
