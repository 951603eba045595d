//! Leftovers: what a run that was killed could not take away is removed by the next one. Everything
//! that outlives a process is named after it: `lhbench-PID-...`.

use nix::unistd::{User, geteuid};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Command, id};

/// What names of this run begin with.
pub(crate) fn prefix() -> String {
    format!("lhbench-{}-", id())
}

/// Whether this is a name of a run that has ended.
pub(crate) fn is_left(name: &str) -> bool {
    owner(name).is_some_and(|pid| !Path::new("/proc").join(pid).exists())
}

/// The process id in a name.
fn owner(name: &str) -> Option<&str> {
    let pid = name.strip_prefix("lhbench-")?.split('-').next()?;
    (!pid.is_empty() && pid.bytes().all(|b| b.is_ascii_digit())).then_some(pid)
}

/// Removes our own directories of ended runs in `place`.
pub(crate) fn sweep(place: &Path) {
    for entry in fs::read_dir(place).into_iter().flatten().flatten() {
        let ours = |meta: &fs::Metadata| meta.is_dir() && meta.uid() == geteuid().as_raw();
        let is_left = entry.file_name().to_str().is_some_and(is_left);
        if is_left && entry.metadata().is_ok_and(|meta| ours(&meta)) {
            _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Removes the user `name`, if an ended run made it: its comment says so.
pub(crate) fn sweep_user(name: &str) {
    let Ok(Some(user)) = User::from_name(name) else { return };
    if user.gecos.to_str().is_ok_and(is_left) {
        remove_user(name);
    }
}

/// Removes a user and its home.
pub(crate) fn remove_user(name: &str) {
    _ = Command::new("userdel").args(["--remove", name]).output();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_an_ended_run_left_is_removed() {
        let place = tempfile::tempdir().unwrap();
        // No process has this number: the kernel's limit is 2^22.
        let left = ["lhbench-4194305-abc", "lhbench-4194305-"];
        let kept = [prefix() + "abc", "lhbench-abc".to_owned(), "other-4194305-abc".to_owned()];
        for name in left.iter().map(|name| (*name).to_owned()).chain(kept.clone()) {
            fs::create_dir_all(place.path().join(name).join("below")).unwrap();
        }
        sweep(place.path());
        let there = |name: &str| place.path().join(name).exists();
        assert!(left.iter().all(|name| !there(name)));
        assert!(kept.iter().all(|name| there(name)));
    }
}
