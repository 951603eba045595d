//! What goes wrong on the way: connections that break, disks that are full, sources that change,
//! runs that were killed.

#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use common::{
    Lab, PLAIN, here, host, options, ours, ours_with_a_fuse, ours_without, parts, plant, stock,
    there, tree,
};
use copy::options::{Host, Lanes, Options};
use copy::report::What;
use copy::{Event, Observer};
use stand_ins::noise;
use std::fs;
use std::num::{NonZeroU32, NonZeroU64};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Barrier};
use std::time::{Duration, SystemTime};

/// A server whose channels break after so many reads, of at most 64 KiB, from us or to us.
fn breaks_after(upload: bool, reads: u64) -> Arc<Host> {
    let (server, dd) = (common::STOCK, format!("dd bs=64k count={reads} status=none"));
    let line = match upload {
        true => format!("{dd} | {server}"),
        // Where nobody reads any more, OpenSSH's server may poll for ever instead of ending.
        false => format!("{server} | {{ {dd}; pkill -KILL -P $$; }}"),
    };
    host("/bin/sh", &["-c", &line])
}

fn lanes(count: u32) -> Lanes {
    Lanes::Fixed(NonZeroU32::new(count).unwrap())
}

#[test]
fn r4_lanes_that_break_are_replaced_and_others_take_over() {
    for upload in [true, false] {
        let lab = Lab::new();
        fs::write(lab.path("source"), noise(1, 30_000_000)).unwrap();
        let flaky = breaks_after(upload, 140);
        let options = match upload {
            true => options(here(&lab.path("source")), there(&flaky, &lab.path("target"))),
            false => options(there(&flaky, &lab.path("source")), here(&lab.path("target"))),
        };
        let report = lab.good(&Options { lanes: lanes(2), ..options });
        assert_eq!(tree(&lab.path("source")), tree(&lab.path("target")), "upload {upload}");
        assert!(report.retries > 0, "{report:?}");
        assert_eq!(parts(lab.directory.path()), Vec::<std::path::PathBuf>::new());
    }
}

#[test]
fn r4_a_tree_survives_broken_connections() {
    for upload in [true, false] {
        let lab = Lab::new();
        plant(&lab.path("source"));
        let flaky = breaks_after(upload, 60);
        let options = match upload {
            true => options(here(&lab.path("source")), there(&flaky, &lab.path("target"))),
            false => options(there(&flaky, &lab.path("source")), here(&lab.path("target"))),
        };
        lab.good(&options);
        assert_eq!(tree(&lab.path("source")), tree(&lab.path("target")), "upload {upload}");
    }
}

#[test]
fn r4_a_server_that_never_comes_back_is_an_error_of_the_host() {
    let lab = Lab::new();
    fs::write(lab.path("source"), "x").unwrap();
    let gone = host("/nonexistent/sftp-server", &[]);
    let report = lab.copy(&options(here(&lab.path("source")), there(&gone, &lab.path("target"))));
    assert_eq!(report.exit_code(), 255, "{report:?}");
    assert!(matches!(&report.failures[0].what, What::Host(name) if name == "peer"));
}

/// The scan's connection breaks, and nobody else needs the server: it is the host that is lost, not
/// the directories that were not listed.
#[test]
fn r4_a_server_that_is_lost_while_it_is_scanned_is_an_error_of_the_host() {
    use std::os::unix::fs::PermissionsExt;
    let lab = Lab::new();
    for number in 0..400 {
        fs::create_dir_all(lab.path(&format!("source/{number}"))).unwrap();
    }
    // Who breaks takes the program away: it never starts again.
    let dd = "dd bs=64k count=12 status=none";
    let script =
        format!("#!/bin/sh\n{} | {{ {dd}; rm -f \"$0\"; pkill -KILL -P $$; }}\n", common::STOCK);
    let program = lab.path("server");
    fs::write(&program, script).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let flaky = host(program.to_str().unwrap(), &[]);
    let options = options(there(&flaky, &lab.path("source")), here(&lab.path("target")));
    let report = lab.copy(&Options { lanes: lanes(1), ..options });
    assert_eq!((report.exit_code(), report.failures.len()), (255, 1), "{report:?}");
    assert!(matches!(&report.failures[0].what, What::Host(name) if name == "peer"), "{report:?}");
}

/// Small files that are in place are asked once more what they became, for the journal. A lane that
/// breaks just then has nothing to give back of them: counted twice, they would end the copy before
/// other files are there.
#[test]
fn r6_a_batch_that_is_in_place_when_its_lane_breaks_is_counted_once() {
    let lab = Lab::new();
    fs::create_dir(lab.path("source")).unwrap();
    for number in 0..40 {
        fs::write(lab.path(&format!("source/{number}")), noise(number, 100)).unwrap();
    }
    fs::write(lab.path("source/large"), noise(41, 32 << 20)).unwrap();
    // The second death meets what was given back after the first one.
    fs::write(lab.path("fuse"), "xx").unwrap();
    let target = there(&ours_with_a_fuse(&lab.path("fuse")), &lab.path("target"));
    let options = Options { lanes: lanes(1), ..options(here(&lab.path("source")), target) };
    let notes = common::Notes::default();
    let report = lab.watch(&options, &notes);
    assert_eq!((report.exit_code(), &report.failures), (0, &Vec::new()));
    assert_eq!(tree(&lab.path("source")), tree(&lab.path("target")));
    assert!(report.retries > 0, "{report:?}");
    let notes = notes.0.lock().unwrap();
    let finished = notes.iter().filter(|note| note.starts_with("Finished")).count();
    assert_eq!((report.copied, finished), (41, 41), "{report:?}");
}

/// Ends the process, as `kill -9` would, after so many bytes.
struct Stop(AtomicU64);

impl Observer for Stop {
    fn observe(&self, event: &Event<'_>) {
        if let Event::Moved { bytes, .. } = event
            && self.0.fetch_sub(*bytes, Ordering::SeqCst) < *bytes
        {
            // Only in the process that the test started for it.
            std::process::abort();
        }
    }
}

/// Runs `test` of this program in a process of its own, where it ends itself.
fn in_a_process_that_dies(test: &str, lab: &Path) {
    let status = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env("LHSCP_TEST_LAB", lab)
        .output()
        .unwrap()
        .status;
    assert!(!status.success(), "it should have died");
}

fn both_ways(lab: &Lab, upload: bool) -> Options {
    let (from, to) = (lab.path("source"), lab.path("target"));
    match upload {
        true => options(here(&from), there(&stock(), &to)),
        false => options(there(&stock(), &from), here(&to)),
    }
}

fn killed_and_resumed(test: &str, upload: bool) {
    if let Some(directory) = std::env::var_os("LHSCP_TEST_LAB") {
        let directory = std::path::PathBuf::from(directory);
        let (from, to) = (directory.join("source"), directory.join("target"));
        let options = match upload {
            true => options(here(&from), there(&stock(), &to)),
            false => options(there(&stock(), &from), here(&to)),
        };
        let stop = Stop(AtomicU64::new(25_000_000));
        copy::run_with_state(&options, &stop, Some(&directory.join("state")));
        return;
    }
    let lab = Lab::new();
    fs::write(lab.path("source"), noise(3, 60_000_000)).unwrap();
    in_a_process_that_dies(test, lab.directory.path());
    assert!(!lab.path("target").exists(), "R1: nothing stands under the name");
    assert_eq!(parts(lab.directory.path()).len(), 1);
    let report = lab.good(&both_ways(&lab, upload));
    assert_eq!(tree(&lab.path("source")), tree(&lab.path("target")));
    assert!(report.bytes < 40_000_000, "it goes on: {report:?}");
    assert_eq!(parts(lab.directory.path()).len(), 0);
}

#[test]
fn r2_an_upload_that_was_killed_goes_on_where_it_stopped() {
    killed_and_resumed("r2_an_upload_that_was_killed_goes_on_where_it_stopped", true);
}

#[test]
fn r2_a_download_that_was_killed_goes_on_where_it_stopped() {
    killed_and_resumed("r2_a_download_that_was_killed_goes_on_where_it_stopped", false);
}

/// The end of a request to open a part file that is new, with SFTP's flags for it.
const NEW_PART: &str = ".part\\0\\0\\0+";

fn to_plain(lab: &Path) -> Options {
    let server = ours_without(PLAIN, NEW_PART, &lab.join("fuse"));
    options(here(&lab.join("source")), there(&server, &lab.join("target")))
}

/// The part file of the killed run is gone, and the lane that made a new one died before anything
/// was in it. What the old one had is not in the new one, and nobody would compare.
#[test]
fn r2_a_part_file_that_was_made_anew_is_not_taken_for_the_old_one() {
    let test = "r2_a_part_file_that_was_made_anew_is_not_taken_for_the_old_one";
    if let Some(lab) = std::env::var_os("LHSCP_TEST_LAB") {
        let lab = std::path::PathBuf::from(lab);
        let stop = Stop(AtomicU64::new(10_000_000));
        copy::run_with_state(&to_plain(&lab), &stop, Some(&lab.join("state")));
        return;
    }
    let lab = Lab::new();
    fs::write(lab.path("source"), noise(3, 20_000_000)).unwrap();
    in_a_process_that_dies(test, lab.directory.path());
    let part = parts(lab.directory.path()).pop().unwrap();
    fs::remove_file(lab.path(part.to_str().unwrap())).unwrap();
    fs::write(lab.path("fuse"), "x").unwrap();
    let report = lab.good(&to_plain(lab.directory.path()));
    assert_eq!(fs::read_to_string(lab.path("fuse")).unwrap(), "", "the lane died");
    assert_eq!(tree(&lab.path("source")), tree(&lab.path("target")));
    assert_eq!(report.bytes, 20_000_000, "{report:?}");
}

fn from_plain(lab: &Path, denied: &str) -> Options {
    let server = ours_without(denied, NEW_PART, &lab.join("none"));
    options(there(&server, &lab.join("source")), here(&lab.join("target")))
}

#[test]
fn r2_a_part_outlives_a_run_that_cannot_open_the_source() {
    let test = "r2_a_part_outlives_a_run_that_cannot_open_the_source";
    if let Some(lab) = std::env::var_os("LHSCP_TEST_LAB") {
        let lab = std::path::PathBuf::from(lab);
        let stop = Stop(AtomicU64::new(10_000_000));
        copy::run_with_state(&from_plain(&lab, PLAIN), &stop, Some(&lab.join("state")));
        return;
    }
    let lab = Lab::new();
    fs::write(lab.path("source"), noise(3, 20_000_000)).unwrap();
    in_a_process_that_dies(test, lab.directory.path());
    let report = lab.copy(&from_plain(lab.directory.path(), "open"));
    assert_eq!((report.exit_code(), report.failures.len()), (1, 1), "{report:?}");
    assert_eq!(parts(lab.directory.path()).len(), 1);
    let report = lab.good(&from_plain(lab.directory.path(), PLAIN));
    assert_eq!(tree(&lab.path("source")), tree(&lab.path("target")));
    assert!(report.bytes < 15_000_000, "it goes on: {report:?}");
}

/// The lane dies when all is there but the name: who puts it in place counts nothing again.
#[test]
fn what_was_lost_is_tried_once_and_holes_are_counted_once() {
    let lab = Lab::new();
    let source = fs::File::create(lab.path("source")).unwrap();
    source.set_len(8 << 20).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&source, &noise(1, 1 << 20), 4 << 20).unwrap();
    fs::write(lab.path("fuse"), "x").unwrap();
    let server = ours_without(PLAIN, "fsync@openssh.com", &lab.path("fuse"));
    let options = options(here(&lab.path("source")), there(&server, &lab.path("target")));
    let report = lab.good(&Options { lanes: lanes(1), fsync: true, ..options });
    assert_eq!(tree(&lab.path("source")), tree(&lab.path("target")));
    let counted = (report.retries, report.bytes, report.spared);
    assert_eq!(counted, (1, 1 << 20, 7 << 20), "{report:?}");
}

fn in_place(lab: &Path, upload: bool) -> Options {
    let (from, to) = (lab.join("source"), lab.join("target"));
    let options = match upload {
        true => options(here(&from), there(&ours(&[]), &to)),
        false => options(there(&ours(&[]), &from), here(&to)),
    };
    Options { inplace: true, ..options }
}

/// What was written under the final name counts, once it was compared: somebody else may have
/// written there meanwhile.
fn killed_in_place_and_resumed(test: &str, upload: bool) {
    if let Some(lab) = std::env::var_os("LHSCP_TEST_LAB") {
        let lab = std::path::PathBuf::from(lab);
        let stop = Stop(AtomicU64::new(25_000_000));
        copy::run_with_state(&in_place(&lab, upload), &stop, Some(&lab.join("state")));
        return;
    }
    let lab = Lab::new();
    fs::write(lab.path("source"), noise(3, 60_000_000)).unwrap();
    in_a_process_that_dies(test, lab.directory.path());
    let target = fs::OpenOptions::new().write(true).open(lab.path("target")).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&target, b"somebody else", 1_000_000).unwrap();
    let report = lab.good(&in_place(lab.directory.path(), upload));
    assert_eq!(tree(&lab.path("source")), tree(&lab.path("target")));
    assert!(report.bytes < 40_000_000, "it goes on: {report:?}");
    assert!(report.spared > 10_000_000, "what is there and right is not moved: {report:?}");
}

#[test]
fn in_place_an_upload_that_was_killed_goes_on_after_a_comparison() {
    let name = "in_place_an_upload_that_was_killed_goes_on_after_a_comparison";
    killed_in_place_and_resumed(name, true);
}

#[test]
fn in_place_a_download_that_was_killed_goes_on_after_a_comparison() {
    let name = "in_place_a_download_that_was_killed_goes_on_after_a_comparison";
    killed_in_place_and_resumed(name, false);
}

/// Changes the source once, after some bytes.
struct Change<'a>(&'a Path, AtomicU64);

impl Observer for Change<'_> {
    fn observe(&self, event: &Event<'_>) {
        if let Event::Moved { .. } = event
            && self.1.fetch_add(1, Ordering::SeqCst) == 3
        {
            std::thread::sleep(Duration::from_millis(1100));
            fs::write(self.0, noise(99, 12_345_678)).unwrap();
        }
    }
}

#[test]
fn f9_a_source_that_changes_is_read_again() {
    for upload in [true, false] {
        let lab = Lab::new();
        fs::write(lab.path("source"), noise(1, 20_000_000)).unwrap();
        let source = lab.path("source");
        let change = Change(&source, AtomicU64::new(0));
        let report = lab.watch(&both_ways(&lab, upload), &change);
        assert_eq!(report.failures, [], "upload {upload}");
        assert_eq!(tree(&source), tree(&lab.path("target")), "upload {upload}");
    }
}

/// Puts another file of the same size in the source's place once its first bytes have moved, and
/// lets all lanes but the first begin only then.
struct Replace<'a> {
    source: &'a Path,
    lanes: AtomicU64,
    pieces: AtomicU64,
    replaced: Barrier,
}

impl Observer for Replace<'_> {
    fn observe(&self, event: &Event<'_>) {
        match event {
            Event::LaneOpened { .. } if self.lanes.fetch_add(1, Ordering::SeqCst) == 1 => {
                self.replaced.wait();
            }
            Event::Moved { .. } if self.pieces.fetch_add(1, Ordering::SeqCst) == 0 => {
                let aside = self.source.with_extension("aside");
                fs::write(&aside, noise(99, 20_000_000)).unwrap();
                let later = SystemTime::now() + Duration::from_secs(2);
                fs::File::open(&aside).unwrap().set_modified(later).unwrap();
                fs::rename(&aside, self.source).unwrap();
                self.replaced.wait();
            }
            _ => {}
        }
    }
}

#[test]
fn f9_a_source_that_is_replaced_between_two_lanes_is_read_again() {
    for upload in [true, false] {
        let lab = Lab::new();
        fs::write(lab.path("source"), noise(1, 20_000_000)).unwrap();
        let source = lab.path("source");
        let replaced = Barrier::new(2);
        let (lanes, pieces) = (AtomicU64::new(0), AtomicU64::new(0));
        let observer = Replace { source: &source, lanes, pieces, replaced };
        let options = Options {
            lanes: self::lanes(2),
            bwlimit: NonZeroU64::new(20_000_000),
            ..both_ways(&lab, upload)
        };
        let report = lab.watch(&options, &observer);
        assert_eq!(report.failures, [], "upload {upload}");
        assert_eq!(tree(&source), tree(&lab.path("target")), "upload {upload}");
    }
}

/// Changes the source again and again.
struct Restless<'a>(&'a Path, AtomicU64);

impl Observer for Restless<'_> {
    fn observe(&self, event: &Event<'_>) {
        if let Event::Moved { .. } = event {
            let turn = self.1.fetch_add(1, Ordering::SeqCst);
            let old = std::time::UNIX_EPOCH + Duration::from_secs(turn + 1_000_000_000);
            fs::File::open(self.0).unwrap().set_modified(old).unwrap();
        }
    }
}

#[test]
fn f9_a_source_that_goes_on_changing_is_an_error_and_never_a_mixed_file() {
    for upload in [true, false] {
        let lab = Lab::new();
        fs::write(lab.path("source"), noise(1, 20_000_000)).unwrap();
        fs::write(lab.path("target"), "old").unwrap();
        let source = lab.path("source");
        let report = lab.watch(&both_ways(&lab, upload), &Restless(&source, AtomicU64::new(0)));
        assert_eq!(report.exit_code(), 1, "{report:?}");
        assert!(report.failures[0].why.contains("changed"), "{report:?}");
        let host = if upload { "" } else { "peer:" };
        let name = format!("{host}{}", source.display());
        assert_eq!(report.failures[0].name(), name.as_bytes(), "{report:?}");
        assert_eq!(fs::read(lab.path("target")).unwrap(), b"old");
    }
}

#[test]
fn r6_what_cannot_be_read_or_written_is_an_error_and_the_rest_arrives() {
    let lab = Lab::new();
    plant(&lab.path("source"));
    fs::create_dir_all(lab.path("target/source/x/in the way")).unwrap();
    let report =
        lab.copy(&options(here(&lab.path("source")), there(&stock(), &lab.path("target"))));
    assert_eq!(report.exit_code(), 1);
    assert_eq!(report.failures.len(), 1, "{report:?}");
    assert!(matches!(&report.failures[0].what, What::Path(path) if path == b"source/x"));
    assert_eq!(report.copied, 68);
}

#[test]
fn r6_a_source_that_is_not_there_is_an_error() {
    for (source, target) in [
        (here(Path::new("/nonexistent/a")), there(&stock(), Path::new("/tmp"))),
        (there(&stock(), Path::new("/nonexistent/a")), here(Path::new("/tmp"))),
        (there(&stock(), Path::new("/nonexistent/*")), here(Path::new("/tmp"))),
    ] {
        let report = Lab::new().copy(&options(source, target));
        assert_eq!(report.exit_code(), 1);
        assert!(report.failures[0].why.contains("No such file"), "{report:?}");
    }
}

#[test]
fn r1_a_reader_sees_the_old_file_or_the_whole_new_one() {
    let lab = Lab::new();
    let (old, new) = (noise(1, 3_000_000), noise(2, 40_000_000));
    fs::write(lab.path("target"), &old).unwrap();
    fs::write(lab.path("source"), &new).unwrap();
    let over = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut seen = 0;
            while !over.load(Ordering::SeqCst) {
                let read = fs::read(lab.path("target")).unwrap();
                assert!(read == old || read == new, "{} bytes", read.len());
                seen += 1;
            }
            seen
        });
        lab.good(&both_ways(&lab, true));
        over.store(true, Ordering::SeqCst);
        assert!(reader.join().unwrap() > 0);
    });
}

#[test]
fn a_part_file_of_a_killed_run_is_no_obstacle() {
    let lab = Lab::new();
    plant(&lab.path("source"));
    let options = both_ways(&lab, true);
    lab.good(&options);
    // What the same command would have left: found by its own name for it.
    let journal = fs::read_dir(lab.path("state")).unwrap().next().unwrap().unwrap().file_name();
    let id = journal.to_str().unwrap()[..8].to_owned();
    fs::write(lab.path(&format!("target/.x.{id}.part")), "rest").unwrap();
    fs::write(lab.path("source/x"), "changed again").unwrap();
    lab.good(&options);
    assert_eq!(tree(&lab.path("source")), tree(&lab.path("target")));
}
