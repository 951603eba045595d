//! Up, down, across and at home: the same trees arrive, by the same rules.

#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use common::{Lab, exact, here, options, ours, parts, plant, stock, there, tree};
use copy::options::{Amount, Lanes, Options};
use copy::report::Through;
use stand_ins::noise;
use std::fs;
use std::num::{NonZeroU32, NonZeroU64};
use std::path::Path;
use std::time::Duration;

/// From a source's path to a target's.
type Way = fn(&Path, &Path) -> Options;

/// Every direction.
fn directions() -> Vec<(&'static str, Way)> {
    vec![
        ("up", |from, to| options(here(from), there(&stock(), to))),
        ("down", |from, to| options(there(&stock(), from), here(to))),
        ("across", |from, to| options(there(&stock(), from), there(&stock(), to))),
        ("ours to stock", |from, to| options(there(&ours(&[]), from), there(&stock(), to))),
        ("stock to ours", |from, to| options(there(&stock(), from), there(&ours(&[]), to))),
        ("within", |from, to| {
            let host = stock();
            options(there(&host, from), there(&host, to))
        }),
        ("home", |from, to| options(here(from), here(to))),
    ]
}

#[test]
fn a_tree_arrives_whole_in_every_direction() {
    for (direction, way) in directions() {
        let lab = Lab::new();
        plant(&lab.path("source"));
        let options = way(&lab.path("source"), &lab.path("target"));
        let report = lab.good(&options);
        assert_eq!(tree(&lab.path("source")), tree(&lab.path("target")), "{direction}");
        assert_eq!((report.copied, report.skipped), (69, 0), "{direction}");
        assert_eq!(report.bytes, 9_308_504, "{direction}");
    }
}

#[test]
fn a_second_run_of_a_finished_copy_sends_no_data() {
    for preserve in [false, true] {
        for (direction, way) in directions() {
            let lab = Lab::new();
            plant(&lab.path("source"));
            let options = Options { preserve, ..way(&lab.path("source"), &lab.path("target")) };
            lab.good(&options);
            let again = lab.good(&options);
            let what = format!("{direction}, preserve {preserve}");
            assert_eq!((again.bytes, again.copied, again.skipped), (0, 0, 69), "{what}");
            assert_eq!(tree(&lab.path("source")), tree(&lab.path("target")), "{what}");
        }
    }
}

#[test]
fn what_changed_at_either_end_is_copied_again_and_nothing_else() {
    for (direction, way) in directions() {
        let lab = Lab::new();
        plant(&lab.path("source"));
        let options = way(&lab.path("source"), &lab.path("target"));
        lab.good(&options);
        std::thread::sleep(std::time::Duration::from_millis(1100));
        fs::write(lab.path("source/x"), "changed").unwrap();
        let same_size = vec![0; fs::metadata(lab.path("target/a/y")).unwrap().len() as usize];
        fs::write(lab.path("target/a/y"), same_size).unwrap();
        fs::remove_file(lab.path("target/a/b/z")).unwrap();
        let again = lab.good(&options);
        assert_eq!((again.copied, again.skipped), (3, 66), "{direction}");
        assert_eq!(tree(&lab.path("source")), tree(&lab.path("target")), "{direction}");
    }
}

#[test]
fn preserved_attributes_arrive_in_every_direction() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    for (direction, way) in directions() {
        let lab = Lab::new();
        let source = lab.path("source");
        plant(&source);
        symlink("nowhere", source.join("dangling")).unwrap();
        symlink("a/b", source.join("link")).unwrap();
        fs::hard_link(source.join("large"), source.join("a/twin")).unwrap();
        for (path, mode) in [("x", 0o640), ("a/y", 0o444), ("a", 0o750), ("empty", 0o500)] {
            fs::set_permissions(source.join(path), fs::Permissions::from_mode(mode)).unwrap();
        }
        let old = std::time::UNIX_EPOCH + std::time::Duration::new(1_000_000_000, 0);
        for path in ["x", "a/b", "a", "large"] {
            fs::File::open(source.join(path)).unwrap().set_modified(old).unwrap();
        }
        let options = Options { preserve: true, ..way(&source, &lab.path("target")) };
        lab.good(&options);
        let nanoseconds = direction == "home";
        assert_eq!(
            exact(&source, nanoseconds),
            exact(&lab.path("target"), nanoseconds),
            "{direction}"
        );
        use std::os::unix::fs::MetadataExt;
        let inode = |path: &str| fs::metadata(lab.path(path)).unwrap().ino();
        if matches!(direction, "up" | "home") {
            assert_eq!(inode("target/large"), inode("target/a/twin"), "{direction}");
        }
        assert_eq!(lab.good(&options).bytes, 0, "{direction}");
    }
}

#[test]
fn a_large_file_goes_over_many_lanes() {
    for (direction, way) in directions() {
        let lab = Lab::new();
        fs::write(lab.path("source"), noise(1, 70_000_000)).unwrap();
        let lanes = Lanes::Fixed(NonZeroU32::new(6).unwrap());
        let options = Options { lanes, ..way(&lab.path("source"), &lab.path("target")) };
        let report = lab.good(&options);
        assert_eq!(tree(&lab.path("source")), tree(&lab.path("target")), "{direction}");
        assert!(report.lanes > 1, "{direction}: {report:?}");
        assert_eq!((report.bytes, report.wasted), (70_000_000, 0), "{direction}");
    }
}

#[test]
fn verified_copies_are_compared_at_both_ends() {
    for (direction, way) in directions() {
        let lab = Lab::new();
        plant(&lab.path("source"));
        let options = Options { verify: true, ..way(&lab.path("source"), &lab.path("target")) };
        let report = lab.good(&options);
        assert_eq!(tree(&lab.path("source")), tree(&lab.path("target")), "{direction}");
        assert_eq!(report.verified, report.copied, "{direction}");
    }
}

#[test]
fn a_target_that_is_there_is_replaced_and_keeps_its_mode() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    for (direction, way) in directions() {
        let lab = Lab::new();
        fs::write(lab.path("source"), "new").unwrap();
        fs::write(lab.path("target"), "a longer old one").unwrap();
        fs::set_permissions(lab.path("target"), fs::Permissions::from_mode(0o600)).unwrap();
        lab.good(&way(&lab.path("source"), &lab.path("target")));
        assert_eq!(fs::read(lab.path("target")).unwrap(), b"new", "{direction}");
        assert_eq!(fs::metadata(lab.path("target")).unwrap().mode() & 0o777, 0o600, "{direction}");
    }
}

#[test]
fn in_place_writes_into_the_file_that_is_there() {
    use std::os::unix::fs::MetadataExt;
    for (direction, way) in directions() {
        let lab = Lab::new();
        fs::write(lab.path("source"), noise(1, 5_000_000)).unwrap();
        fs::write(lab.path("target"), noise(2, 6_000_000)).unwrap();
        let inode = fs::metadata(lab.path("target")).unwrap().ino();
        let options = Options { inplace: true, ..way(&lab.path("source"), &lab.path("target")) };
        lab.good(&options);
        assert_eq!(tree(&lab.path("source")), tree(&lab.path("target")), "{direction}");
        assert_eq!(fs::metadata(lab.path("target")).unwrap().ino(), inode, "{direction}");
    }
}

#[test]
fn in_place_a_link_is_replaced_and_not_written_through() {
    use std::os::unix::fs::symlink;
    for (direction, way) in directions_and_batches() {
        for referent in ["outside", "nowhere"] {
            let lab = Lab::new();
            fs::write(lab.path("source"), noise(1, 300_000)).unwrap();
            fs::write(lab.path("outside"), "theirs").unwrap();
            symlink(lab.path(referent), lab.path("target")).unwrap();
            let way = way(&lab.path("source"), &lab.path("target"));
            let report = lab.good(&Options { inplace: true, ..way });
            assert_eq!(report.copied, 1, "{direction}: {report:?}");
            assert_eq!(tree(&lab.path("source")), tree(&lab.path("target")), "{direction}");
            assert_eq!(fs::read(lab.path("outside")).unwrap(), b"theirs", "{direction}");
            assert!(!lab.path("nowhere").exists(), "{direction}");
        }
    }
}

#[test]
fn in_place_nothing_old_is_left_where_the_source_has_holes() {
    use std::os::unix::fs::FileExt;
    for (direction, way) in directions() {
        let lab = Lab::new();
        let file = fs::File::create(lab.path("source")).unwrap();
        file.write_all_at(b"in the middle", 2 << 20).unwrap();
        file.set_len(5 << 20).unwrap();
        fs::write(lab.path("target"), noise(2, 6_000_000)).unwrap();
        let options = Options { inplace: true, ..way(&lab.path("source"), &lab.path("target")) };
        lab.good(&options);
        assert_eq!(tree(&lab.path("source")), tree(&lab.path("target")), "{direction}");
    }
}

#[test]
fn delayed_updates_are_put_in_place_together_at_the_end() {
    for (direction, way) in directions() {
        let lab = Lab::new();
        plant(&lab.path("source"));
        fs::create_dir(lab.path("target")).unwrap();
        fs::write(lab.path("source/unreadable"), "").unwrap();
        let target = lab.path("target/source");
        let options =
            Options { delay_updates: true, ..way(&lab.path("source"), &lab.path("target")) };
        // A directory in the way of one file: nothing takes its name.
        fs::create_dir_all(target.join("unreadable/x")).unwrap();
        let report = lab.copy(&options);
        assert_eq!(report.failures.len(), 1, "{direction}: {report:?}");
        assert!(!target.join("x").exists() && !target.join("large").exists(), "{direction}");
        fs::remove_dir_all(target.join("unreadable")).unwrap();
        let again = lab.good(&options);
        assert_eq!(tree(&lab.path("source")), tree(&target), "{direction}");
        // Where the source cannot be asked, it is read once more to be compared.
        assert!(again.bytes < 1000 || direction == "stock to ours", "{direction}: {again:?}");
    }
}

#[test]
fn holes_stay_holes_on_the_way_up() {
    use std::os::unix::fs::{FileExt, MetadataExt};
    for direction in ["up", "home"] {
        let lab = Lab::new();
        let file = fs::File::create(lab.path("source")).unwrap();
        file.write_all_at(b"in the middle", 20 << 20).unwrap();
        file.set_len(50 << 20).unwrap();
        let target = lab.path("target");
        let to = if direction == "up" { there(&stock(), &target) } else { here(&target) };
        let report = lab.good(&options(here(&lab.path("source")), to));
        assert_eq!(tree(&lab.path("source")), tree(&target));
        assert!(fs::metadata(&target).unwrap().blocks() < 1000, "{direction}");
        assert!(report.bytes < 1 << 20 && report.spared > 49 << 20, "{direction}: {report:?}");
    }
}

#[test]
fn names_are_taken_as_scp_takes_them() {
    let lab = Lab::new();
    fs::write(lab.path("one"), "1").unwrap();
    fs::write(lab.path("two"), "2").unwrap();
    fs::create_dir(lab.path("into")).unwrap();
    lab.good(&options(here(&lab.path("one")), there(&stock(), &lab.path("into"))));
    assert!(lab.path("into/one").exists());
    lab.good(&options(there(&stock(), &lab.path("o*e")), here(&lab.path("into/renamed"))));
    assert!(lab.path("into/renamed").exists());
    let both = |target| {
        let mut both = options(here(&lab.path("one")), target);
        both.sources.push(there(&stock(), &lab.path("two")));
        both
    };
    lab.good(&both(here(&lab.path("into"))));
    assert!(lab.path("into/two").exists());
    let report = lab.copy(&both(here(&lab.path("nowhere"))));
    assert_eq!(report.exit_code(), 1, "{report:?}");
    assert!(!lab.path("nowhere").exists());
    let flat = Options {
        recursive: false,
        ..options(here(&lab.path("into")), there(&stock(), &lab.path("no")))
    };
    assert_eq!(lab.copy(&flat).exit_code(), 1);
}

#[test]
fn one_name_of_a_pattern_that_leads_nowhere_ends_nothing() {
    let lab = Lab::new();
    for directory in ["d", "t/d1", "t/d2", "t/d3"] {
        fs::create_dir_all(lab.path(directory)).unwrap();
    }
    for file in ["d/a", "d/c", "t/d2/conf", "t/file"] {
        fs::write(lab.path(file), file).unwrap();
    }
    std::os::unix::fs::symlink("nowhere", lab.path("d/b")).unwrap();
    for host in [stock(), ours(&[])] {
        for (pattern, copied, failed) in [
            ("d/*", &["a", "c"][..], Some("d/b")),
            // Names that are not there are none that it stands for.
            ("t/*/conf", &["conf"], None),
            ("t/*/none", &[], Some("t/*/none")),
        ] {
            let target = lab.path("target");
            fs::create_dir(&target).unwrap();
            let report = lab.copy(&options(there(&host, &lab.path(pattern)), here(&target)));
            let told: Vec<_> = report.failures.iter().map(|failure| &failure.what).collect();
            let path = |name: &str| lab.path(name).into_os_string().into_encoded_bytes();
            let expected = failed.map(|name| copy::report::What::Path(path(name)));
            assert_eq!(told, expected.iter().collect::<Vec<_>>(), "{pattern}");
            let found = tree(&target).into_keys().skip(1).collect::<Vec<_>>();
            assert_eq!(
                found,
                copied.iter().map(std::path::PathBuf::from).collect::<Vec<_>>(),
                "{pattern}"
            );
            fs::remove_dir_all(&target).unwrap();
        }
        fs::remove_file(lab.path("d/c")).unwrap();
        let report = lab.copy(&options(there(&host, &lab.path("d/*")), here(&lab.path("new"))));
        assert_eq!((report.exit_code(), lab.path("new").exists()), (1, false), "{report:?}");
        fs::write(lab.path("d/c"), "d/c").unwrap();
    }
}

#[test]
fn another_users_home_is_where_the_server_says() {
    use copy::options::{Place, Remote};
    let lab = Lab::new();
    fs::create_dir(lab.path("home")).unwrap();
    fs::write(lab.path("home/file"), "content").unwrap();
    let home = format!("HOME={}", lab.path("home").display());
    let program = common::ours(&[]);
    let copy::options::Way::Program { program, .. } = &program.way else { panic!() };
    // Our example server's user is called so, and at home there.
    let host = common::host("env", &[&home, program.to_str().unwrap()]);
    let at = |path: &str| {
        Place::Remote(Remote { host: std::sync::Arc::clone(&host), path: path.into() })
    };
    for (number, source) in ["~tester/file", "~tester/f*"].into_iter().enumerate() {
        let target = lab.path(&number.to_string());
        lab.good(&options(at(source), here(&target)));
        assert_eq!(fs::read(target).unwrap(), b"content", "{source}");
    }
    lab.good(&options(here(&lab.path("0")), at("~tester/up")));
    assert_eq!(fs::read(lab.path("home/up")).unwrap(), b"content");
    for nobody in ["~no-such-user/x", "~no-such-user"] {
        assert_eq!(lab.copy(&options(at(nobody), here(&lab.path("x")))).exit_code(), 1);
        assert_eq!(lab.copy(&options(here(&lab.path("0")), at(nobody))).exit_code(), 1);
    }
    // A stock server knows users, too; a path of this host is taken as it is.
    let bin = Place::Remote(Remote { host: stock(), path: b"~bin/true".to_vec() });
    lab.good(&options(bin, here(&lab.path("true"))));
    fs::write(lab.path("~tester"), "here").unwrap();
    lab.good(&options(here(&lab.path("~tester")), at("~tester/literal")));
    assert_eq!(fs::read(lab.path("home/literal")).unwrap(), b"here");
}

/// When bytes were said to have moved.
#[derive(Default)]
struct Moves(std::sync::Mutex<Vec<std::time::Instant>>);

impl copy::Observer for Moves {
    fn observe(&self, event: &copy::Event<'_>) {
        if let copy::Event::Moved { .. } = event {
            self.0.lock().unwrap().push(std::time::Instant::now());
        }
    }
}

#[test]
fn with_a_limit_what_has_arrived_is_told_when_it_has() {
    for upload in [true, false] {
        let lab = Lab::new();
        fs::write(lab.path("source"), noise(1, 3_000_000)).unwrap();
        let (from, to) = (lab.path("source"), lab.path("target"));
        let options = match upload {
            true => options(here(&from), there(&common::ours(&[]), &to)),
            false => options(there(&common::ours(&[]), &from), here(&to)),
        };
        let bwlimit = NonZeroU64::new(2_000_000);
        let (began, moves) = (std::time::Instant::now(), Moves::default());
        let report = lab.watch(&Options { bwlimit, ..options }, &moves);
        assert_eq!(report.failures, [], "upload {upload}");
        let moves = moves.0.lock().unwrap();
        let (first, last) = (moves[0] - began, moves[moves.len() - 1] - began);
        assert!(first < last / 2, "upload {upload}: {first:?} of {last:?}");
    }
}

/// Load only makes it slower.
#[test]
fn what_is_read_back_counts_towards_the_limit() {
    let lab = Lab::new();
    fs::write(lab.path("source"), noise(1, 2_000_000)).unwrap();
    let options = options(here(&lab.path("source")), there(&stock(), &lab.path("target")));
    let bwlimit = NonZeroU64::new(4_000_000);
    let report = lab.good(&Options { bwlimit, verify: true, ..options });
    assert_eq!(report.verified, 1, "{report:?}");
    // Half a second there and half a second back, less the bucket.
    assert!(report.elapsed > Duration::from_millis(900), "{report:?}");
}

#[test]
fn special_files_are_reported() {
    let lab = Lab::new();
    fs::create_dir(lab.path("source")).unwrap();
    fs::write(lab.path("source/x"), "x").unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(lab.path("source/socket")).unwrap();
    let report =
        lab.copy(&options(here(&lab.path("source")), there(&stock(), &lab.path("target"))));
    assert_eq!(report.failures.len(), 1, "{report:?}");
    assert!(report.failures[0].why.contains("not a regular file"));
    assert!(lab.path("target/x").exists());
}

/// Every direction, and those in which small files go together.
fn directions_and_batches() -> Vec<(&'static str, Way)> {
    let mut all = directions();
    all.push(("up to ours", |from, to| options(here(from), there(&ours(&[]), to))));
    all.push(("down from ours", |from, to| options(there(&ours(&[]), from), here(to))));
    all
}

#[test]
fn a_file_that_says_it_is_empty_is_read_to_its_end() {
    // What the kernel makes while it is read: short, and of more than one block.
    let mut sleeper = std::process::Command::new("sleep");
    let sleeper = sleeper.envs((0..15).map(|at| (at.to_string(), "x".repeat(100_000))));
    let mut sleeper = sleeper.arg("1000").spawn().unwrap();
    let long = format!("/proc/{}/environ", sleeper.id());
    let made = ["/proc/version", &long].map(Path::new);
    for (direction, way) in directions_and_batches() {
        for (source, [verify, inplace, preserve, delay_updates]) in [
            (made[0], [false; 4]),
            (made[1], [false; 4]),
            (made[0], [true, false, true, false]),
            (made[0], [false, true, false, false]),
            (made[0], [false, false, false, true]),
        ] {
            let (lab, content) = (Lab::new(), fs::read(source).unwrap());
            let plain = way(source, &lab.path("target"));
            let options = Options { verify, inplace, preserve, delay_updates, ..plain };
            // It takes the place of what is longer, and is not believed to be there.
            fs::write(lab.path("target"), noise(1, 100_000)).unwrap();
            for _ in 0..2 {
                let report = lab.good(&options);
                let moved = (report.copied, report.verified, report.bytes);
                assert_eq!(moved, (1, 0, content.len() as u64), "{direction}: {report:?}");
                assert!(fs::read(lab.path("target")).unwrap() == content, "{direction}");
            }
        }
    }
    sleeper.kill().unwrap();
    sleeper.wait().unwrap();
}

#[test]
fn an_empty_target_is_not_what_a_file_without_a_size_has() {
    for (direction, way) in directions_and_batches() {
        let lab = Lab::new();
        fs::write(lab.path("target"), "").unwrap();
        let source = Path::new("/proc/version");
        lab.good(&Options { verify: true, ..way(source, &lab.path("target")) });
        assert_eq!(fs::read(lab.path("target")).unwrap(), fs::read(source).unwrap(), "{direction}");
    }
}

#[test]
fn made_up_data_touches_no_disk() {
    let lab = Lab::new();
    for (source, target) in [
        (here(Path::new("x")), there(&stock(), Path::new("y"))),
        (there(&stock(), Path::new("x")), here(Path::new("y"))),
    ] {
        let bytes = NonZeroU64::new(30_000_000).map(Amount::Bytes);
        let options = Options { test: bytes, ..options(source, target) };
        let report = lab.good(&options);
        assert_eq!(report.bytes, 30_000_000);
        assert!(matches!(report.through, Some(Through::Null | Through::Zero)), "{report:?}");
    }
    assert_eq!(tree(lab.directory.path()).len(), 1);
}

#[test]
fn made_up_data_of_a_while_ends_whatever_is_under_way() {
    let lab = Lab::new();
    let time = Duration::from_millis(300);
    let up = options(here(Path::new("x")), there(&stock(), Path::new("y")));
    let up = Options { test: Some(Amount::Time(time)), ..up };
    for options in [up.clone(), up.turned()] {
        let report = lab.good(&options);
        assert!(report.bytes > 0 && report.elapsed >= time, "{report:?}");
        assert!(report.elapsed < Duration::from_secs(20), "{report:?}");
    }
}

#[test]
fn a_dry_run_touches_nothing_and_says_what_would_be() {
    let lab = Lab::new();
    plant(&lab.path("source"));
    let dry = Options {
        dry_run: true,
        ..options(here(&lab.path("source")), there(&stock(), &lab.path("target")))
    };
    let notes = common::Notes::default();
    let report = lab.watch(&dry, &notes);
    assert_eq!(report.failures, []);
    assert!(!lab.path("target").exists());
    let would = notes.0.lock().unwrap().iter().filter(|note| note.contains("Would")).count();
    assert_eq!(would, 69 + 5);
}

#[test]
fn no_part_file_is_left_of_a_good_copy() {
    for (_, way) in directions() {
        let lab = Lab::new();
        plant(&lab.path("source"));
        lab.good(&way(&lab.path("source"), &lab.path("target")));
        assert_eq!(parts(&lab.path("target")), Vec::<std::path::PathBuf>::new());
    }
}

#[test]
fn nothing_is_copied_into_itself_on_one_host() {
    for (source, target, refused) in [
        ("d", "d/sub", true),
        ("d", "d/new", true),
        ("d", "d", true),
        ("d", "link/new", true),
        ("d", "", true),
        ("d/", "", true),
        ("d/file", "d/file", true),
        ("d/file", "d", true),
        ("current", "", true),
        ("d/other", "", false),
        ("d/other", "d", true),
        ("d/.", "new", false),
        ("d", "d2", false),
        ("d/file", "d/third", false),
    ] {
        let lab = Lab::new();
        fs::create_dir_all(lab.path("root/d/sub")).unwrap();
        fs::write(lab.path("root/d/file"), "x").unwrap();
        fs::write(lab.path("root/file"), "x").unwrap();
        std::os::unix::fs::symlink("d", lab.path("root/link")).unwrap();
        std::os::unix::fs::symlink("d/sub", lab.path("root/current")).unwrap();
        std::os::unix::fs::symlink("../file", lab.path("root/d/other")).unwrap();
        let before = tree(&lab.path("root"));
        let (host, root) = (stock(), lab.path("root"));
        let at = |name: &str| there(&host, Path::new(&format!("{}/{name}", root.display())));
        let report = lab.copy(&options(at(source), at(target)));
        assert_eq!(report.exit_code(), u8::from(refused), "{source} {target}: {report:?}");
        if refused {
            assert!(report.failures[0].why.contains("into itself"), "{report:?}");
            assert_eq!(tree(&root), before, "{source} {target}");
        }
    }
}
