//! What the copy's tests have in common: trees that are made and compared, and copies over an
//! `sftp-server` on pipes.
#![allow(dead_code, reason = "each test program uses a part of it")]
#![allow(clippy::unwrap_used, reason = "tests")]

use copy::options::{Host, Lanes, Options, Place, Remote, Way};
use copy::{Event, Observer, Report};
use stand_ins::noise;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::num::NonZeroU32;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// Debian's; other systems have it elsewhere.
pub(crate) const STOCK: &str = "/usr/lib/openssh/sftp-server";

/// A directory with room for sources, targets and journals.
pub(crate) struct Lab {
    pub(crate) directory: tempfile::TempDir,
}

impl Lab {
    pub(crate) fn new() -> Self {
        Self { directory: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Copies with a journal of this lab's own.
    pub(crate) fn copy(&self, options: &Options) -> Report {
        self.watch(options, &())
    }

    pub(crate) fn watch(&self, options: &Options, observer: &dyn Observer) -> Report {
        copy::run_with_state(options, observer, Some(&self.path("state")))
    }

    /// As [`Lab::copy`]; it must succeed.
    pub(crate) fn good(&self, options: &Options) -> Report {
        let report = self.copy(options);
        assert_eq!(report.failures, [], "{report:?}");
        report
    }
}

/// A host that is this one, through a program.
pub(crate) fn host(program: &str, args: &[&str]) -> Arc<Host> {
    let args = args.iter().map(OsString::from).collect();
    Arc::new(Host { name: "peer".to_owned(), way: Way::Program { program: program.into(), args } })
}

pub(crate) fn stock() -> Arc<Host> {
    host(STOCK, &[])
}

/// The server of `examples/ours.rs`, which cargo builds for tests.
pub(crate) fn ours(args: &[&str]) -> Arc<Host> {
    host(&our_program(), args)
}

/// The same, which dies when it is asked for `get-files@longhaul`: once for each byte of `fuse`.
pub(crate) fn ours_with_a_fuse(fuse: &Path) -> Arc<Host> {
    let fuse = format!("LHSCP_TEST_FUSE={}", fuse.display());
    host("/usr/bin/env", &[&fuse, &our_program()])
}

/// The same, which dies when it has done the first thing that has `word` in it, without an answer.
pub(crate) fn ours_that_dies_after(word: &str, fuse: &Path) -> Arc<Host> {
    fs::write(fuse, "x").unwrap();
    let (fuse, word) =
        (format!("LHSCP_TEST_FUSE={}", fuse.display()), format!("LHSCP_TEST_WORD={word}"));
    host("/usr/bin/env", &[&fuse, &word, &our_program()])
}

/// What makes ours a server that compares no content, as stock ones are.
pub(crate) const PLAIN: &str = "block-hashes,put-files,get-files";

/// The same without these requests. Without a fuse it lives.
pub(crate) fn ours_without(denied: &str, word: &str, fuse: &Path) -> Arc<Host> {
    let (fuse, word) =
        (format!("LHSCP_TEST_FUSE={}", fuse.display()), format!("LHSCP_TEST_WORD={word}"));
    host("/usr/bin/env", &[&fuse, &word, &our_program(), "-P", denied])
}

pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Who owns what no user does.
pub(crate) const NOBODY: u32 = 65534;

/// A server that is not root's, where this is: `program` with `args`, in a lab that it may enter.
pub(crate) fn as_nobody(lab: &Lab, program: &str, args: &[&str]) -> Arc<Host> {
    let all = fs::Permissions::from_mode(0o755);
    fs::set_permissions(lab.directory.path(), all).unwrap();
    let who = ["--reuid=65534", "--regid=65534", "--clear-groups", program];
    host("/usr/bin/setpriv", &[&who, args].concat())
}

pub(crate) fn our_program() -> String {
    let tests = std::env::current_exe().unwrap();
    let program = tests.parent().unwrap().parent().unwrap().join("examples/ours");
    program.to_str().unwrap().to_owned()
}

pub(crate) fn there(host: &Arc<Host>, path: &Path) -> Place {
    let path = path.as_os_str().as_bytes().to_vec();
    Place::Remote(Remote { host: Arc::clone(host), path })
}

pub(crate) fn here(path: &Path) -> Place {
    Place::Local(path.to_owned())
}

/// Recursive, two lanes, without fsync: tests wait for no disk.
pub(crate) fn options(source: Place, target: Place) -> Options {
    let lanes = Lanes::Fixed(NonZeroU32::new(2).unwrap());
    Options { recursive: true, lanes, fsync: false, ..Options::new(vec![source], target) }
}

/// Some directories, empty, small, middling and large files, names of odd bytes.
pub(crate) fn plant(root: &Path) {
    fs::create_dir_all(root.join("a/b/c")).unwrap();
    fs::create_dir_all(root.join("empty")).unwrap();
    for (number, name) in ["x", "a/y", "a/b/z", "a/b/c/deep", "-rf", "sp ace\n"].iter().enumerate()
    {
        fs::write(root.join(name), noise(number as u64, 100 * number * number)).unwrap();
    }
    let odd = std::ffi::OsStr::from_bytes(b"\xff\xfe\x80");
    fs::write(root.join(odd), "odd").unwrap();
    fs::write(root.join("a/middling"), noise(7, 300_000)).unwrap();
    fs::write(root.join("large"), noise(8, 9_000_001)).unwrap();
    for number in 0..60 {
        fs::write(root.join(format!("a/b/{number}")), noise(number, 50)).unwrap();
    }
}

/// What a test compares: everything below `root`, by path.
pub(crate) fn tree(root: &Path) -> BTreeMap<PathBuf, String> {
    let mut found = BTreeMap::new();
    let mut waiting = vec![root.to_owned()];
    while let Some(path) = waiting.pop() {
        let meta = fs::symlink_metadata(&path).unwrap();
        let what = if meta.is_dir() {
            waiting.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
            "directory".to_owned()
        } else if meta.is_symlink() {
            format!("link to {:?}", fs::read_link(&path).unwrap())
        } else {
            let content = fs::read(&path).unwrap();
            format!("{} bytes {}", content.len(), blake3::hash(&content))
        };
        found.insert(path.strip_prefix(root).unwrap().to_owned(), what);
    }
    found
}

/// The same with mode and modification time to the nanosecond (or to the second).
pub(crate) fn exact(root: &Path, nanoseconds: bool) -> BTreeMap<PathBuf, String> {
    let with = |(path, what): (PathBuf, String)| {
        let meta = fs::symlink_metadata(root.join(&path)).unwrap();
        let nanos = if nanoseconds { meta.mtime_nsec() } else { 0 };
        let mode = if meta.is_symlink() { 0 } else { meta.mode() };
        let what = format!("{what} {mode:o} {}.{nanos}", meta.mtime());
        (path, what)
    };
    tree(root).into_iter().map(with).collect()
}

/// Part files below `root`.
pub(crate) fn parts(root: &Path) -> Vec<PathBuf> {
    let is_part = |path: &PathBuf| path.as_os_str().as_bytes().ends_with(b".part");
    tree(root).into_keys().filter(is_part).collect()
}

/// Remembers events in words.
#[derive(Default)]
pub(crate) struct Notes(pub(crate) Mutex<Vec<String>>);

impl Observer for Notes {
    fn observe(&self, event: &Event<'_>) {
        self.0.lock().unwrap().push(format!("{event:?}"));
    }
}

/// A tmpfs of so many MiB, if this user may mount one.
pub(crate) struct Small(PathBuf);

impl Small {
    pub(crate) fn mount(at: &Path, mib: u32) -> Option<Self> {
        fs::create_dir_all(at).ok()?;
        let mut mount = std::process::Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &format!("size={mib}m"), "tmpfs"]).arg(at);
        mount.status().ok()?.success().then(|| Self(at.to_owned()))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount").arg("-l").arg(&self.0).status();
    }
}
