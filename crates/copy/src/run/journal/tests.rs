//! Journals that were cut, changed, moved or are in use.

use super::super::meta::Time;
use super::record::{SUM, next};
use super::*;

const ENDS: &[&[u8]] = &[b"/a", b"host:/b"];

fn identity(size: u64) -> Identity {
    Identity { size, modified: Time { seconds: -5, nanos: 7 }, inode: 9 }
}

fn open(directory: &Path) -> Journal {
    Journal::open(directory, ENDS, b"boot", PATIENCE).unwrap().unwrap()
}

fn file(directory: &Path) -> PathBuf {
    directory.join(format!("{}.journal", name(&key(ENDS))))
}

fn part(path: &[u8], size: u64) -> Part {
    let paths = ([b"/from/", path].concat(), path.to_vec());
    Part { source: identity(size), paths, ..Part::default() }
}

/// A finished file, a part with 30 bytes done in three records, and a part that is ready.
fn written(directory: &Path) {
    let journal = open(directory);
    journal.finish(b"done", &identity(1), &identity(1)).unwrap();
    let begun = journal.begin(&part(b"part", 99)).unwrap();
    for start in [0, 10, 50] {
        journal.done(begun, &(start..start + 10)).unwrap();
    }
    let ready = journal.begin(&part(b"ready", 3)).unwrap();
    journal.ready(ready).unwrap();
}

#[test]
fn r2_what_was_written_in_place_is_told_apart_from_a_part_file() {
    let directory = tempfile::tempdir().unwrap();
    let in_place = Part { in_place: true, ..part(b"x", 99) };
    open(directory.path()).begin(&in_place).unwrap();
    assert!(open(directory.path()).part(b"x", &identity(99)).unwrap().in_place);
    open(directory.path()).begin(&part(b"x", 99)).unwrap();
    assert!(!open(directory.path()).part(b"x", &identity(99)).unwrap().in_place);
}

#[test]
fn r2_the_next_run_knows_what_the_last_one_did() {
    let directory = tempfile::tempdir().unwrap();
    written(directory.path());
    let journal = open(directory.path());
    assert_eq!(journal.finished(b"done"), Some((identity(1), identity(1))));
    assert_eq!(journal.finished(b"part"), None);
    let part = journal.part(b"part", &identity(99)).unwrap();
    assert_eq!(part.done, [0..20, 50..60].into_iter().collect());
    assert!(!part.ready);
    assert!(journal.part(b"ready", &identity(3)).unwrap().ready);
}

#[test]
fn r2_a_source_that_changed_has_no_part() {
    let directory = tempfile::tempdir().unwrap();
    written(directory.path());
    let journal = open(directory.path());
    assert_eq!(journal.part(b"part", &identity(98)), None);
    let moved = Identity { inode: 10, ..identity(99) };
    assert_eq!(journal.part(b"part", &moved), None);
    let touched = Time { seconds: -5, nanos: 8 };
    assert_eq!(journal.part(b"part", &Identity { modified: touched, ..identity(99) }), None);
}

#[test]
fn r2_a_part_that_became_a_file_is_no_part_any_more() {
    let directory = tempfile::tempdir().unwrap();
    written(directory.path());
    open(directory.path()).finish(b"part", &identity(99), &identity(99)).unwrap();
    let journal = open(directory.path());
    assert_eq!(journal.part(b"part", &identity(99)), None);
    assert!(journal.finished(b"part").is_some());
}

#[test]
fn r2_a_cut_journal_ends_at_its_last_whole_record() {
    let directory = tempfile::tempdir().unwrap();
    written(directory.path());
    let path = file(directory.path());
    let whole = fs::read(&path).unwrap();
    let mut most = 0;
    for len in 0..whole.len() {
        fs::write(&path, &whole[..len]).unwrap();
        let journal = open(directory.path());
        let done = journal.part(b"part", &identity(99)).map_or(0, |part| part.done.total());
        assert!(done >= most && done.is_multiple_of(10) && done <= 30, "{len}: {done}");
        most = done;
        drop(journal);
        assert!(fs::metadata(&path).unwrap().len() <= len.max(64) as u64);
    }
    assert_eq!(most, 30);
}

#[test]
fn r2_from_a_flipped_bit_on_nothing_is_believed() {
    let directory = tempfile::tempdir().unwrap();
    written(directory.path());
    let path = file(directory.path());
    let whole = fs::read(&path).unwrap();
    for bit in (0..whole.len() * 8).step_by(7) {
        let mut bytes = whole.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        fs::write(&path, &bytes).unwrap();
        let journal = open(directory.path());
        // The last record says that `ready` is: one of the records up to it is damaged.
        assert!(journal.part(b"ready", &identity(3)).is_none_or(|part| !part.ready), "{bit}");
        let done = journal.part(b"part", &identity(99)).map_or(0, |part| part.done.total());
        assert!(done.is_multiple_of(10) && done <= 30);
    }
}

#[test]
fn r2_records_of_a_foreign_journal_or_another_place_are_none() {
    let directory = tempfile::tempdir().unwrap();
    written(directory.path());
    let whole = fs::read(file(directory.path())).unwrap();
    let other = Journal::open(directory.path(), &[b"/a", b"host:/c"], b"boot", Duration::ZERO)
        .unwrap()
        .unwrap();
    let path = directory.path().join(format!("{}.journal", name(&other.key)));
    drop(other);
    fs::write(&path, &whole).unwrap();
    let other = Journal::open(directory.path(), &[b"/a", b"host:/c"], b"boot", Duration::ZERO)
        .unwrap()
        .unwrap();
    assert_eq!(other.finished(b"done"), None);
    // The first record, repeated at the end: it is not at its place.
    let first = 5 + 4 + SUM;
    let mut known = Known::default();
    let twice = [&whole[..first], &whole[..first]].concat();
    let mut input = &twice[..];
    let (kind, payload, len) = next(&mut input, &key(ENDS), 0).unwrap().unwrap();
    known.learn(kind, &payload).unwrap();
    assert_eq!(len, first as u64);
    assert!(next(&mut input, &key(ENDS), len).unwrap().is_none());
}

#[test]
fn a_crash_of_this_host_takes_its_part_files_but_not_what_was_finished() {
    let directory = tempfile::tempdir().unwrap();
    written(directory.path());
    let journal = Journal::open(directory.path(), ENDS, b"next", PATIENCE).unwrap().unwrap();
    assert_eq!(journal.part(b"part", &identity(99)), None);
    assert!(journal.finished(b"done").is_some());
    drop(journal);
    let journal = Journal::open(directory.path(), ENDS, b"next", PATIENCE).unwrap().unwrap();
    assert_eq!(journal.part(b"part", &identity(99)), None);
}

#[test]
fn a_part_that_nobody_came_by_is_known_until_it_is_cleared() {
    let directory = tempfile::tempdir().unwrap();
    written(directory.path());
    let journal = open(directory.path());
    assert!(journal.has_abandoned());
    journal.begin(&part(b"part", 99)).unwrap();
    assert_eq!(journal.abandoned(), [(b"/from/ready".to_vec(), b"ready".to_vec())]);
    journal.clear(b"ready").unwrap();
    drop(journal);
    let journal = open(directory.path());
    assert_eq!(journal.part(b"ready", &identity(3)), None);
    journal.finish(b"part", &identity(99), &identity(99)).unwrap();
    assert!(!journal.has_abandoned());
}

#[test]
fn r2_of_a_part_that_is_made_anew_nothing_old_is_known() {
    let directory = tempfile::tempdir().unwrap();
    written(directory.path());
    let journal = open(directory.path());
    assert!(journal.part(b"part", &identity(99)).is_some());
    journal.begin_anew(b"part").unwrap();
    assert_eq!(journal.part(b"part", &identity(99)), None, "in this run");
    assert_eq!(journal.abandoned().len(), 1, "nor is it left behind");
    drop(journal);
    let journal = open(directory.path());
    assert_eq!(journal.part(b"part", &identity(99)), None, "nor in the next");
    // Of what was begun in the same run, either.
    let begun = journal.begin(&part(b"part", 99)).unwrap();
    journal.done(begun, &(0..10)).unwrap();
    journal.begin_anew(b"part").unwrap();
    drop(journal);
    let journal = open(directory.path());
    assert_eq!(journal.part(b"part", &identity(99)), None);
    // What nothing is noted of costs nothing.
    let len = fs::metadata(file(directory.path())).unwrap().len();
    journal.begin_anew(b"part").unwrap();
    assert_eq!(fs::metadata(file(directory.path())).unwrap().len(), len);
}

#[test]
fn r2_a_part_that_was_finished_has_left_nothing() {
    let directory = tempfile::tempdir().unwrap();
    written(directory.path());
    let journal = open(directory.path());
    journal.finish(b"part", &identity(99), &identity(99)).unwrap();
    assert_eq!(journal.part(b"part", &identity(99)), None);
}

/// A run that tidies the journal puts another file in its place: whoever has waited for the old one
/// has waited for nothing.
#[test]
fn a_lock_of_a_journal_that_was_replaced_is_none() {
    let directory = tempfile::tempdir().unwrap();
    written(directory.path());
    let path = file(directory.path());
    let lock = |path: &Path| locked(path, Duration::ZERO).unwrap().unwrap();
    let (old, fresh) = (lock(&path), directory.path().join("fresh"));
    let is_open = |fd: &fs::DirEntry| fs::read_link(fd.path()).is_ok_and(|open| open == path);
    let opened = || fs::read_dir("/proc/self/fd").unwrap().flatten().filter(is_open).count();
    std::thread::scope(|scope| {
        let patience = Duration::from_millis(700);
        let at = directory.path();
        let waiting = scope.spawn(move || Journal::open(at, ENDS, b"boot", patience).unwrap());
        while opened() < 2 && !waiting.is_finished() {}
        fs::copy(&path, &fresh).unwrap();
        let new = lock(&fresh);
        assert!(is_at(&old, &path).unwrap());
        fs::rename(&fresh, &path).unwrap();
        assert!(!is_at(&old, &path).unwrap());
        drop(old);
        assert!(waiting.join().unwrap().is_none(), "somebody else has the journal");
        drop(new);
    });
    assert!(open(directory.path()).finished(b"done").is_some());
}

#[test]
fn a_journal_of_a_run_that_is_dying_is_waited_for() {
    let directory = tempfile::tempdir().unwrap();
    let dying = open(directory.path());
    std::thread::scope(|scope| {
        scope.spawn(move || {
            sleep(Duration::from_millis(100));
            drop(dying);
        });
        let next = Journal::open(directory.path(), ENDS, b"boot", Duration::from_secs(60));
        assert!(next.unwrap().is_some());
    });
}

#[test]
fn a_journal_in_use_is_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let first = open(directory.path());
    assert!(Journal::open(directory.path(), ENDS, b"boot", Duration::ZERO).unwrap().is_none());
    drop(first);
    open(directory.path());
}

#[test]
fn a_journal_that_says_little_in_many_records_is_written_anew() {
    let directory = tempfile::tempdir().unwrap();
    let journal = open(directory.path());
    for round in 0..2 * WORTH_TIDYING as u64 {
        journal.finish(b"same", &identity(round), &identity(round)).unwrap();
    }
    drop(journal);
    let before = fs::metadata(file(directory.path())).unwrap().len();
    let journal = open(directory.path());
    assert!(fs::metadata(file(directory.path())).unwrap().len() < before / 1000);
    let last = identity(2 * WORTH_TIDYING as u64 - 1);
    assert_eq!(journal.finished(b"same"), Some((last, last)));
    drop(journal);
    assert_eq!(open(directory.path()).finished(b"same"), Some((last, last)));
}
