//! The core of lhscp over real connections: stock sshd and ours, few sessions, connections that are
//! killed, one machine's files over many lanes.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use copy::options::{Amount, Host, Lanes, Options, Place, Remote, Way};
use copy::report::Through;
use copy::{Event, Observer, Report};
use interop::{Kind, Lab, Server};
use nix::sys::signal::Signal;
use std::fs;
use std::num::NonZeroU32;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

struct Far {
    lab: Lab,
    server: Server,
    host: Arc<Host>,
}

/// A server with files, and a way to it.
fn far(kind: Kind, config: &[&str]) -> Option<Far> {
    if !kind.available() {
        return None;
    }
    // In the server's own process: no shell, whose start-up files may do anything when killed.
    let subsystem = "Subsystem sftp internal-sftp";
    let lab = Lab::new().unwrap();
    let server = Server::start(&lab, kind, &[&[subsystem], config].concat()).unwrap();
    let way = Way::Ssh(Box::new(server.configuration(&lab).unwrap()));
    let host = Arc::new(Host { name: "127.0.0.1".to_owned(), way });
    Some(Far { lab, server, host })
}

impl Far {
    fn there(&self, path: &Path) -> Place {
        let path = path.as_os_str().as_bytes().to_vec();
        Place::Remote(Remote { host: Arc::clone(&self.host), path })
    }

    fn up(&self) -> Options {
        let (from, to) = (Place::Local(self.lab.path("source")), self.lab.path("up"));
        options(from, self.there(&to))
    }

    fn down(&self) -> Options {
        options(self.there(&self.lab.path("source")), Place::Local(self.lab.path("down")))
    }

    fn copy(&self, options: &Options, observer: &dyn Observer) -> Report {
        copy::run_with_state(options, observer, Some(&self.lab.path("state")))
    }

    fn same(&self, target: &str) {
        let mut diff = Command::new("diff");
        diff.arg("-r").args([self.lab.path("source"), self.lab.path(target)]);
        assert!(diff.status().unwrap().success(), "{target} differs");
    }
}

/// Changes a source when its first piece has been moved, and sets its time back: it looks the same.
struct Change(PathBuf, std::sync::Once);

impl Observer for Change {
    fn observe(&self, event: &Event<'_>) {
        if let Event::Moved { .. } = event {
            self.1.call_once(|| {
                let modified = fs::metadata(&self.0).unwrap().modified().unwrap();
                let file = fs::OpenOptions::new().write(true).open(&self.0).unwrap();
                std::os::unix::fs::FileExt::write_all_at(&file, b"changed", 0).unwrap();
                file.set_modified(modified).unwrap();
            });
        }
    }
}

#[test]
fn r3_a_block_that_differs_is_moved_again_though_nothing_else_is_under_way() {
    let Some(far) = far(Kind::Ours, &[]) else { return };
    fs::write(far.lab.path("source"), vec![7; 300_000]).unwrap();
    let one = Lanes::Fixed(NonZeroU32::new(1).unwrap());
    let change = Change(far.lab.path("source"), std::sync::Once::new());
    let report = far.copy(&Options { lanes: one, ..far.down() }, &change);
    assert_eq!(report.failures, [], "{report:?}");
    assert!(report.wasted > 0, "{report:?}");
    far.same("down");
}

/// The time limit, and what is said when it has passed.
fn told_in_time(far: &Far, limit: u64, words: &str) {
    let started = std::time::Instant::now();
    let report = far.copy(&far.up(), &());
    assert!(started.elapsed().as_secs() < limit + 30, "{:?}", started.elapsed());
    assert_eq!(report.exit_code(), 255, "{report:?}");
    let why = &report.failures[0].why;
    assert!(why.contains(words), "{why}");
}

fn with_limit(far: &mut Far, seconds: u64, port: Option<u16>) {
    let Some(Host { way: Way::Ssh(conf), .. }) = Arc::get_mut(&mut far.host) else { panic!() };
    conf.connect_timeout = conf::OrNone(Some(Duration::from_secs(seconds)));
    conf.port = port.unwrap_or(conf.port);
    fs::write(far.lab.path("source"), "x").unwrap();
}

#[test]
fn a_server_that_takes_the_connection_and_says_nothing_is_told_in_time() {
    let Some(mut far) = far(Kind::OpenSsh, &[]) else { return };
    let mute = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    with_limit(&mut far, 1, Some(mute.local_addr().unwrap().port()));
    told_in_time(&far, 1, "no answer from the other side");
}

#[test]
fn a_server_that_logs_in_and_does_not_begin_sftp_is_told_in_time() {
    let Some(mut far) = far(Kind::OpenSsh, &["ForceCommand sleep 100"]) else { return };
    with_limit(&mut far, 5, None);
    told_in_time(&far, 5, "did not begin to speak SFTP within 5 s");
}

fn options(source: Place, target: Place) -> Options {
    Options { recursive: true, fsync: false, ..Options::new(vec![source], target) }
}

fn lanes(count: u32) -> Lanes {
    Lanes::Fixed(NonZeroU32::new(count).unwrap())
}

/// 400 small files and some of 1 to 40 MB.
fn plant(root: &Path) {
    fs::create_dir_all(root.join("small")).unwrap();
    for number in 0..400u32 {
        let content = number.to_le_bytes().repeat(number as usize * 3);
        fs::write(root.join(format!("small/{number}")), content).unwrap();
    }
    for (number, size) in [1 << 20, 3 << 20, 40 << 20].into_iter().enumerate() {
        let mut content = vec![0; size];
        let mut state = number as u32 + 1;
        for word in content.chunks_mut(4) {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            word.copy_from_slice(&state.to_le_bytes());
        }
        fs::write(root.join(format!("large{number}")), content).unwrap();
    }
}

#[test]
fn a_tree_goes_up_and_down_again() {
    for kind in [Kind::OpenSsh, Kind::Ours] {
        let Some(far) = far(kind, &[]) else { return };
        plant(&far.lab.path("source"));
        for (options, target) in [(far.up(), "up"), (far.down(), "down")] {
            let report = far.copy(&options, &());
            assert_eq!(report.failures, [], "{kind:?} {target}");
            assert_eq!((report.copied, report.wasted), (403, 0), "{kind:?} {target}");
            far.same(target);
            let again = far.copy(&options, &());
            assert_eq!((again.bytes, again.skipped), (0, 403), "{kind:?} {target}");
        }
    }
}

#[test]
fn r3_servers_of_ours_compare_what_arrived() {
    let Some(far) = far(Kind::Ours, &[]) else { return };
    plant(&far.lab.path("source"));
    for options in [far.up(), far.down()] {
        let report = far.copy(&options, &());
        assert!(report.verified >= 3, "{report:?}");
    }
    let verify = Options { verify: true, ..far.up() };
    let report = far.copy(&verify, &());
    assert_eq!((report.bytes, report.skipped, report.verified), (0, 403, 403), "{report:?}");
}

#[test]
fn few_sessions_are_a_limit_and_no_error() {
    for sessions in ["MaxSessions 2", "MaxSessions 3"] {
        let Some(far) = far(Kind::OpenSsh, &[sessions]) else { return };
        plant(&far.lab.path("source"));
        let report = far.copy(&Options { lanes: lanes(6), ..far.up() }, &());
        assert_eq!(report.failures, [], "{sessions}");
        far.same("up");
    }
}

#[test]
fn a_failed_login_is_said_at_once() {
    let Some(far) = far(Kind::OpenSsh, &["DenyUsers *"]) else { return };
    fs::write(far.lab.path("source"), "x").unwrap();
    let report = far.copy(&far.up(), &());
    assert_eq!(report.exit_code(), 255, "{report:?}");
    assert!(report.failures[0].why.contains("denied"), "{report:?}");
    assert_eq!(report.retries, 0);
}

/// Over the server's own subsystems, and over SFTP where those are not allowed.
#[test]
fn a_test_takes_its_time_and_no_more() {
    let time = Duration::from_millis(700);
    for config in ["TestSubsystems yes", "TestSubsystems no"] {
        let Some(far) = far(Kind::Ours, &[config]) else { return };
        let up = Options { test: Some(Amount::Time(time)), ..far.up() };
        for options in [up.clone(), up.turned()] {
            let report = far.copy(&options, &());
            assert_eq!(report.failures, [], "{config}");
            assert!(report.bytes > 0 && report.elapsed >= time, "{config}: {report:?}");
            assert!(report.elapsed < Duration::from_secs(30), "{config}: {report:?}");
            let own = matches!(report.through, Some(Through::Discard | Through::Zeros));
            assert_eq!(own, config.ends_with("yes"), "{report:?}");
        }
    }
}

/// A limit so low that even a machine which stands still for half a second reaches it.
#[test]
fn what_bwlimit_stops_is_not_given_more_lanes() {
    let Some(far) = far(Kind::OpenSsh, &[]) else { return };
    let test = Some(Amount::Time(Duration::from_secs(3)));
    let up = Options { test, bwlimit: std::num::NonZeroU64::new(8 << 10), ..far.up() };
    let fixed = Options { lanes: lanes(4), ..up.clone() };
    assert_eq!(far.copy(&fixed, &()).lanes, 4);
    for options in [up.clone(), up.turned()] {
        let report = far.copy(&options, &());
        assert_eq!(report.failures, []);
        assert_eq!((report.lanes, report.connections), (2, 1), "{report:?}");
    }
}

/// Kills a connection's process of the server now and then.
struct Kill<'a> {
    server: &'a Server,
    moved: AtomicU64,
    every: u64,
    left: AtomicU64,
}

impl Observer for Kill<'_> {
    fn observe(&self, event: &Event<'_>) {
        let Event::Moved { bytes, .. } = event else { return };
        let before = self.moved.fetch_add(*bytes, Ordering::SeqCst);
        let due = before / self.every != (before + bytes) / self.every;
        if due
            && self
                .left
                .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1))
                .is_ok()
        {
            let children = children(self.server.pid());
            if let Some(child) = children.get(before as usize % children.len().max(1)) {
                let child = nix::unistd::Pid::from_raw(*child);
                let _ = nix::sys::signal::kill(child, Signal::SIGKILL);
            }
        }
    }
}

fn children(of: u32) -> Vec<i32> {
    let path = PathBuf::from(format!("/proc/{of}/task/{of}/children"));
    let list = fs::read_to_string(path).unwrap_or_default();
    list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect()
}

/// Most that may be moved again for each connection that dies: four times what all lanes may always
/// have under way (docs/copy.md). They have twice that while they start or the machine stutters, more
/// where it is slow to answer (5 MB were lost to each death beside six busy loops on two cores), and
/// small files come on top. If what was acknowledged were not believed, each death would cost what
/// was moved until then: 8, 16, 24 and 32 MiB.
const LOST: u64 = 4 * (2 << 20);

#[test]
fn r4_connections_that_are_killed_cost_little() {
    for (kind, up) in [(Kind::OpenSsh, true), (Kind::OpenSsh, false), (Kind::Ours, true)] {
        let Some(far) = far(kind, &["MaxStartups 100"]) else { return };
        plant(&far.lab.path("source"));
        let options = Options { lanes: lanes(8), ..if up { far.up() } else { far.down() } };
        let kill = Kill {
            server: &far.server,
            moved: AtomicU64::new(0),
            every: 8 << 20,
            left: AtomicU64::new(4),
        };
        let report = far.copy(&options, &kill);
        assert_eq!(report.failures, [], "{kind:?} up {up}: {report:?}");
        assert!(report.retries > 0, "{kind:?}: {report:?}");
        let killed = 4 - kill.left.into_inner();
        assert!(report.wasted <= killed * LOST, "{kind:?} up {up}: {killed} killed: {report:?}");
        far.same(if up { "up" } else { "down" });
        let parts = Command::new("find").arg(far.lab.path("")).args(["-name", "*.part"]).output();
        assert_eq!(parts.unwrap().stdout, b"", "{kind:?} up {up}");
    }
}

/// A sum is over all bytes, and so is what is read back where there is none: what ends in a hole, or
/// is shorter than the file that it replaces, has its size before.
#[test]
fn a_file_has_its_size_before_its_content_is_compared() {
    for config in [&[][..], &["ForceCommand internal-sftp"]] {
        let Some(far) = far(Kind::OpenSsh, config) else { return };
        let file = fs::File::create(far.lab.path("source")).unwrap();
        file.write_all_at(&[7; 3 << 20], 0).unwrap();
        file.set_len(8 << 20).unwrap();
        for inplace in [false, true] {
            if inplace {
                fs::write(far.lab.path("up"), vec![1; 9 << 20]).unwrap();
            }
            let options = Options { verify: true, inplace, ..far.up() };
            let report = far.copy(&options, &());
            assert!(report.failures.is_empty(), "{config:?} {inplace}: {report:?}");
            assert_eq!(report.verified, 1, "{config:?} {inplace}: {report:?}");
            far.same("up");
        }
    }
}
