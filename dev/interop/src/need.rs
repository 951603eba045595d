//! What a test needs of the machine. Missing: skipped by name; under `LONGHAUL_CI`: failed.

use std::io::Write;
use std::path::{Path, PathBuf};

/// Places of system programs besides `$PATH`.
const PLACES: &[&str] = &["/usr/sbin", "/usr/local/sbin", "/sbin"];

/// Whether all of `programs` are there; says which is not.
pub fn require(programs: &[&str]) -> bool {
    programs.iter().all(|name| have(find(name).is_some(), &format!("{name} is not installed")))
}

/// Whether the tests run as root; says when not.
pub fn require_root() -> bool {
    have(nix::unistd::geteuid().is_root(), "not root")
}

/// Whether a condition holds; if not, the test is skipped, or fails under CI.
pub fn have(condition: bool, otherwise: &str) -> bool {
    if !condition {
        let thread = std::thread::current();
        let test = thread.name().unwrap_or("a test");
        say(&format!("SKIPPED {test}: {otherwise}"));
        assert!(std::env::var_os("LONGHAUL_CI").is_none(), "{test}: {otherwise}");
    }
    condition
}

/// A line that a passing test may print: past the capture that `println!` goes into.
pub(crate) fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// Where a program is. Names with a slash are paths already.
pub fn find(name: &str) -> Option<PathBuf> {
    if name.contains('/') {
        return Some(PathBuf::from(name)).filter(|path| path.exists());
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let places = std::env::split_paths(&path).chain(PLACES.iter().map(PathBuf::from));
    places.map(|place| place.join(name)).find(|path| path.is_file())
}

/// The Python environment that scripts/venv makes.
pub fn python() -> PathBuf {
    root().join("target/interop-venv/bin/python")
}

/// The workspace's root.
pub fn root() -> &'static Path {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).unwrap_or(here)
}
