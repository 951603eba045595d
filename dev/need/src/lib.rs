//! What a test needs of the machine. Missing: skipped by name; under `LONGHAUL_CI`: failed.

mod lease;

pub use lease::{Lease, lease};

use std::io::Write;
use std::path::PathBuf;

/// Places of system programs besides `$PATH`.
const PLACES: &[&str] = &["/usr/sbin", "/usr/local/sbin", "/sbin"];

/// Whether all of `programs`, names or paths, are there; says which is not.
pub fn require(programs: &[&str]) -> bool {
    programs.iter().all(|name| have(find(name).is_some(), &format!("{name} is not installed")))
}

/// Whether a condition holds; if not, the test is skipped, or fails under CI.
#[track_caller]
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
pub fn say(line: &str) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_by_name_and_by_path() {
        let sh = find("sh").expect("there is a shell");
        assert_eq!(find(sh.to_str().expect("a plain path")), Some(sh));
        assert_eq!((find("no-such-program"), find("/no/such/program")), (None, None));
    }
}
