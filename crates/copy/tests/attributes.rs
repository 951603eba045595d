//! What `-p` keeps beside modes and times, through servers of ours: extended attributes, access
//! lists, further names of a file. And what is said where that is impossible.

#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use common::{Lab, Notes, here, is_root, options, ours, stock, there, tree};
use copy::list::List;
use copy::options::Options;
use copy::shard::Shard;
use copy::{Event, Observer};
use sftp::codec::Pairs;
use stand_ins::noise;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// From a source's path to a target's.
type Way = fn(&Path, &Path) -> Options;

/// Every direction through servers of ours.
fn directions() -> Vec<(&'static str, Way)> {
    vec![
        ("up", |from, to| options(here(from), there(&ours(&[]), to))),
        ("down", |from, to| options(there(&ours(&[]), from), here(to))),
        ("across", |from, to| options(there(&ours(&[]), from), there(&ours(&[]), to))),
        ("within", |from, to| {
            let host = ours(&[]);
            options(there(&host, from), there(&host, to))
        }),
        ("home", |from, to| options(here(from), here(to))),
    ]
}

fn preserving(options: Options) -> Options {
    Options { preserve: true, ..options }
}

/// An access list (acl(5)) by which user 1000 may read and write what its owner may.
fn access_list() -> Vec<u8> {
    let entry = |tag: u16, permissions: u16, id: u32| {
        [&tag.to_le_bytes()[..], &permissions.to_le_bytes(), &id.to_le_bytes()].concat()
    };
    let none = u32::MAX;
    let entries = [
        entry(1, 7, none),
        entry(2, 6, 1000),
        entry(4, 4, none),
        entry(16, 6, none),
        entry(32, 0, none),
    ];
    [2u32.to_le_bytes().to_vec(), entries.concat()].concat()
}

/// Gives a file or directory attributes; false where the file system keeps none.
fn mark(path: &Path, pairs: &[(&str, Vec<u8>)]) -> bool {
    let pairs: Pairs =
        pairs.iter().map(|(name, value)| (name.as_bytes().to_vec(), value.clone())).collect();
    sftp::xattrs::set(File::open(path).unwrap().as_fd(), &pairs).is_ok()
}

/// All attributes that tell of a copy, by path.
fn marks(root: &Path) -> BTreeMap<PathBuf, Pairs> {
    let of = |path: PathBuf| {
        let file = File::open(root.join(&path)).unwrap();
        let mut pairs = sftp::xattrs::of(file.as_fd(), |name| name != b"security.selinux").unwrap();
        pairs.sort();
        (path, pairs)
    };
    tree(root).into_keys().map(of).collect()
}

/// Small files, which travel together, a large one, one that is read-only, a directory; false
/// where their attributes cannot be set.
fn plant(root: &Path) -> bool {
    fs::create_dir_all(root.join("d/e")).unwrap();
    for (name, size) in [("small", 10), ("plain", 20), ("d/large", 3_000_000), ("d/read-only", 5)] {
        fs::write(root.join(name), noise(size, size as usize)).unwrap();
    }
    let user = |value: &str| ("user.comment", value.as_bytes().to_vec());
    let list = ("system.posix_acl_access", access_list());
    let default = ("system.posix_acl_default", access_list());
    let mut good = mark(&root.join("small"), &[user("of small"), ("user.empty", Vec::new())])
        && mark(&root.join("d/large"), &[user("of large"), list])
        && mark(&root.join("d/read-only"), &[user("of read-only")])
        && mark(&root.join("d/e"), &[user("of a directory"), default]);
    if is_root() {
        // What `setcap cap_net_raw+ep` writes.
        let capability = [0x0200_0001_u32, 1 << 13, 0, 0, 0].map(u32::to_le_bytes).concat();
        let roots = [("trusted.x", b"1".to_vec()), ("security.capability", capability)];
        good &= mark(&root.join("plain"), &roots);
    }
    for (name, mode) in [("d/read-only", 0o444), ("d/e", 0o555)] {
        fs::set_permissions(root.join(name), fs::Permissions::from_mode(mode)).unwrap();
    }
    good
}

/// Plants them for a test that is about their attributes.
fn planted(root: &Path) -> bool {
    need::have(plant(root), "extended attributes or access lists cannot be set here")
}

#[test]
fn extended_attributes_and_access_lists_arrive_in_every_direction() {
    for (direction, way) in directions() {
        for verify in [false, true] {
            let lab = Lab::new();
            if !planted(&lab.path("source")) {
                return;
            }
            let options = preserving(way(&lab.path("source"), &lab.path("target")));
            let notes = Notes::default();
            let options = Options { verify, ..options };
            let report = lab.watch(&options, &notes);
            assert_eq!(report.failures, [], "{direction}");
            assert_eq!(marks(&lab.path("source")), marks(&lab.path("target")), "{direction}");
            assert_eq!(
                common::exact(&lab.path("source"), true),
                common::exact(&lab.path("target"), true),
                "{direction}"
            );
            let notes = notes.0.lock().unwrap();
            assert!(!notes.iter().any(|note| note.contains("Warned")), "{direction}: {notes:?}");
        }
    }
}

/// Changes modes, owners and extended attributes of files, and with `times` a time; how many files
/// lack something then.
fn disturb(target: &Path, times: bool, marks: bool) -> u64 {
    let mode = |name: &str, mode| {
        fs::set_permissions(target.join(name), fs::Permissions::from_mode(mode)).unwrap();
    };
    mode("d/large", 0o711);
    let mut lacking = 3;
    if marks {
        // Nothing but these.
        for name in ["small", "d/read-only"] {
            mode(name, 0o644);
            assert!(mark(&target.join(name), &[("user.comment", b"of somebody else".to_vec())]));
        }
        mode("d/read-only", 0o444);
    } else {
        mode("small", 0o600);
        mode("d/read-only", 0o400);
    }
    if is_root() {
        std::os::unix::fs::chown(target.join("plain"), Some(1000), Some(1000)).unwrap();
        lacking += 1;
    }
    if times {
        let large = File::open(target.join("d/large")).unwrap();
        large.set_modified(std::time::UNIX_EPOCH).unwrap();
    }
    lacking
}

/// Copies, disturbs the target, and copies twice more: attributes come back, and nothing else is
/// touched.
fn comes_back(direction: &str, options: &Options, lab: &Lab, (nanoseconds, kept): (bool, bool)) {
    let (source, target) = (lab.path("source"), lab.path("target"));
    let copied = lab.good(options).copied;
    let inode = |name: &str| fs::metadata(target.join(name)).unwrap().ino();
    let files = ["small", "plain", "d/large", "d/read-only"];
    let inodes = files.map(inode);
    let lacking = disturb(&target, options.verify, kept);
    let notes = Notes::default();
    assert_eq!(lab.watch(&Options { dry_run: true, ..options.clone() }, &notes).failures, []);
    let sets = notes.0.lock().unwrap().iter().filter(|note| note.contains("Set")).count() as u64;
    let seen = if kept { lacking - 2 } else { lacking };
    assert!(sets == seen || options.verify, "{direction}: {sets} of {lacking}");
    for (round, lacking) in [lacking, 0].into_iter().enumerate() {
        let report = lab.good(options);
        let told = (report.bytes, report.skipped, report.attributes, report.copied);
        assert_eq!(told, (0, copied, lacking, 0), "{direction} {round}: {report:?}");
        assert_eq!(report.verified, if options.verify { copied } else { 0 }, "{direction}");
        let exact = |root: &Path| common::exact(root, nanoseconds);
        assert_eq!(exact(&source), exact(&target), "{direction} {round}");
        assert!(!kept || marks(&source) == marks(&target), "{direction} {round}");
        assert_eq!(files.map(inode), inodes, "{direction}: it is the same file");
        for name in files {
            let owner = |root: &Path| fs::metadata(root.join(name)).unwrap().uid();
            assert_eq!(owner(&source), owner(&target), "{direction}: {name}");
        }
    }
}

#[test]
fn a_file_whose_content_is_there_gets_the_attributes_that_it_lacks() {
    for (direction, way) in directions() {
        for verify in [false, true] {
            let lab = Lab::new();
            if !planted(&lab.path("source")) {
                return;
            }
            let options = preserving(way(&lab.path("source"), &lab.path("target")));
            comes_back(direction, &Options { verify, ..options }, &lab, (true, true));
        }
    }
}

#[test]
fn modes_and_owners_come_back_at_servers_that_are_not_ours() {
    for verify in [false, true] {
        for upload in [true, false] {
            let lab = Lab::new();
            let (source, target) = (lab.path("source"), lab.path("target"));
            plant(&source);
            // It would be told of, and is not what this is about.
            for name in ["small", "plain", "d/large", "d/read-only", "d/e"] {
                let all =
                    sftp::xattrs::of(File::open(source.join(name)).unwrap().as_fd(), |_| true);
                for (name_of, _) in all.unwrap() {
                    let name_of = std::str::from_utf8(&name_of).unwrap();
                    rustix::fs::removexattr(source.join(name), name_of).unwrap();
                }
            }
            let options = match upload {
                true => options(here(&source), there(&stock(), &target)),
                false => options(there(&stock(), &source), here(&target)),
            };
            let options = Options { verify, ..preserving(options) };
            comes_back(&format!("upload {upload}"), &options, &lab, (false, false));
        }
    }
}

#[test]
fn without_p_no_extended_attribute_is_copied() {
    for (direction, way) in directions() {
        let lab = Lab::new();
        if planted(&lab.path("source")) {
            lab.good(&way(&lab.path("source"), &lab.path("target")));
            let marks = marks(&lab.path("target"));
            assert!(marks.values().all(Vec::is_empty), "{direction}: {marks:?}");
        }
    }
}

#[test]
fn a_server_that_takes_no_attributes_is_told_of_once_for_each_kind() {
    for host in [stock(), ours(&["-P", "set-xattrs"])] {
        let lab = Lab::new();
        if !planted(&lab.path("source")) {
            return;
        }
        let notes = Notes::default();
        let target = there(&host, &lab.path("target"));
        let report = lab.watch(&preserving(options(here(&lab.path("source")), target)), &notes);
        assert_eq!((report.exit_code(), report.failures), (0, Vec::new()));
        let notes = notes.0.lock().unwrap();
        let warned: Vec<_> = notes.iter().filter(|note| note.contains("Warned")).collect();
        assert_eq!(warned.len(), if is_root() { 4 } else { 2 }, "{warned:?}");
        assert_eq!(tree(&lab.path("source")), tree(&lab.path("target")));
    }
}

#[test]
fn names_of_one_file_stay_names_of_one_file_in_every_direction() {
    for (direction, way) in directions() {
        for size in [10, 2_000_000] {
            let lab = Lab::new();
            let (source, target) = (lab.path("source"), lab.path("target"));
            fs::create_dir_all(source.join("d")).unwrap();
            fs::write(source.join("one"), noise(1, size)).unwrap();
            fs::write(source.join("other"), noise(2, size)).unwrap();
            fs::hard_link(source.join("one"), source.join("two")).unwrap();
            fs::hard_link(source.join("one"), source.join("d/three")).unwrap();
            let options = preserving(way(&source, &target));
            for _ in 0..2 {
                lab.good(&options);
                let meta = |name: &str| fs::metadata(target.join(name)).unwrap();
                let one = meta("one");
                let same = |name: &str| meta(name).ino() == one.ino();
                assert!(same("two") && same("d/three") && !same("other"), "{direction}");
                assert_eq!(one.nlink(), 3, "{direction}");
                assert_eq!(tree(&source), tree(&target), "{direction}");
            }
            // Without -p each is a file of its own.
            lab.good(&way(&source, &lab.path("copies")));
            assert_eq!(fs::metadata(lab.path("copies/one")).unwrap().nlink(), 1, "{direction}");
        }
    }
}

#[test]
fn where_no_links_can_be_made_every_name_is_a_file() {
    let lab = Lab::new();
    let (source, target) = (lab.path("source"), lab.path("target"));
    fs::create_dir(&source).unwrap();
    fs::write(source.join("one"), "content").unwrap();
    fs::hard_link(source.join("one"), source.join("two")).unwrap();
    let host = ours(&["-P", "hardlink"]);
    lab.good(&preserving(options(here(&source), there(&host, &target))));
    assert_eq!(tree(&source), tree(&target));
}

/// Notes the mode of a directory whenever something happens.
struct Modes(PathBuf, Mutex<BTreeSet<u32>>);

impl Observer for Modes {
    fn observe(&self, event: &Event<'_>) {
        if let (Event::Started { .. }, Ok(meta)) = (event, fs::metadata(&self.0)) {
            self.1.lock().unwrap().insert(meta.permissions().mode() & 0o777);
        }
    }
}

/// Root could write in any of them: what counts is the mode while files are copied.
#[test]
fn a_directory_without_write_permission_is_workable_while_it_is_copied_into() {
    for (at, preserve) in [(0, true), (1, true), (2, true), (0, false), (1, false), (2, false)] {
        let lab = Lab::new();
        fs::create_dir_all(lab.path("source/d")).unwrap();
        fs::create_dir_all(lab.path("target/d")).unwrap();
        fs::write(lab.path("source/d/file"), "changed").unwrap();
        fs::write(lab.path("list"), "d/file\n").unwrap();
        let locked = |name: &str| {
            fs::set_permissions(lab.path(name), fs::Permissions::from_mode(0o557)).unwrap();
        };
        locked("source/d");
        locked("target/d");
        let target = match at {
            0 => there(&stock(), &lab.path("target")),
            _ => here(&lab.path("target")),
        };
        let list = List { file: Some(lab.path("list")), nul: false };
        let list = (at == 2).then_some(list);
        let source = here(&lab.path(if at == 2 { "source" } else { "source/." }));
        let modes = Modes(lab.path("target/d"), Mutex::default());
        let options = Options { preserve, list, ..options(source, target) };
        let report = lab.watch(&options, &modes);
        assert_eq!((report.exit_code(), report.copied), (0, 1), "{at} {preserve}: {report:?}");
        let during = modes.1.into_inner().unwrap();
        assert_eq!(during, BTreeSet::from([0o757]), "{at} {preserve}");
        let after = fs::metadata(lab.path("target/d")).unwrap().permissions().mode() & 0o777;
        assert_eq!(after, 0o557, "{at} {preserve}");
    }
}

#[test]
fn a_directory_stays_workable_for_other_shards() {
    let lab = Lab::new();
    fs::create_dir_all(lab.path("source/d")).unwrap();
    fs::write(lab.path("source/d/file"), "x").unwrap();
    fs::set_permissions(lab.path("source/d"), fs::Permissions::from_mode(0o555)).unwrap();
    let target = there(&stock(), &lab.path("target"));
    let options = Options { preserve: true, ..options(here(&lab.path("source")), target) };
    let mode = || fs::metadata(lab.path("target/d")).unwrap().permissions().mode() & 0o777;
    let shard = Shard::parse("1/1").ok();
    lab.good(&Options { shard, ..options.clone() });
    assert_eq!(mode(), 0o755);
    lab.good(&options);
    assert_eq!(mode(), 0o555);
}
