//! Who could have written a file: the checks of StrictModes, and those on private keys.

use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

/// Opens a regular file for reading. Of anything else there may be no end, or nobody who writes.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().read(true).custom_flags(nonblocking()).open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::Error::other("not a regular file")) }
}

fn nonblocking() -> i32 {
    i32::try_from(rustix::fs::OFlags::NONBLOCK.bits()).unwrap_or(0)
}

/// Why a file that says whom to let in is not believed; `None` if it is. The file itself and the
/// directories above it, up to `home`, must belong to the user or to root, and nobody else may
/// write to them.
pub(crate) fn strict(path: &Path, file: &Metadata, uid: u32, home: &Path) -> Option<String> {
    if !is_private(file, uid) {
        return Some(format!("bad ownership or modes for file {}", path.display()));
    }
    let Ok(real) = path.canonicalize() else {
        return Some(format!("{} cannot be resolved", path.display()));
    };
    let home = home.canonicalize().ok();
    for dir in real.ancestors().skip(1) {
        if !dir.metadata().is_ok_and(|dir| is_private(&dir, uid)) {
            return Some(format!("bad ownership or modes for directory {}", dir.display()));
        }
        if home.as_deref() == Some(dir) {
            break;
        }
    }
    None
}

fn is_private(meta: &Metadata, uid: u32) -> bool {
    (meta.uid() == 0 || meta.uid() == uid) && meta.mode() & 0o022 == 0
}

/// Why a private key is not used: others can read it. As in OpenSSH, that holds for files of
/// our own user only; who may read another's file was decided by its owner.
pub(crate) fn exposed(meta: &Metadata, uid: u32) -> Option<String> {
    let mode = meta.mode() & 0o777;
    (meta.uid() == uid && mode & 0o077 != 0)
        .then(|| format!("permissions {mode:04o} are too open, others can read the key"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{Permissions, create_dir, set_permissions, write};
    use std::os::unix::fs::PermissionsExt;

    fn chmod(path: &Path, mode: u32) {
        set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn every_step_from_the_home_to_the_file_must_be_the_users_alone() {
        let home = tempfile::tempdir().unwrap();
        let (home, uid) = (home.path(), rustix::process::geteuid().as_raw());
        let (dir, file) = (home.join(".ssh"), home.join(".ssh/authorized_keys"));
        create_dir(&dir).unwrap();
        write(&file, "").unwrap();
        let verdict = |uid| strict(&file, &file.metadata().unwrap(), uid, home);
        let cases = [
            (0o700, 0o755, 0o600, None),
            (0o755, 0o755, 0o644, None),
            (0o755, 0o755, 0o664, Some("file")),
            (0o755, 0o755, 0o602, Some("file")),
            (0o755, 0o775, 0o600, Some("directory")),
            (0o777, 0o755, 0o600, Some("directory")),
        ];
        for (of_home, of_dir, of_file, bad) in cases {
            chmod(home, of_home);
            chmod(&dir, of_dir);
            chmod(&file, of_file);
            let why = verdict(uid);
            let want = bad.map(|what| format!("bad ownership or modes for {what} "));
            match (&why, want) {
                (None, None) => {}
                (Some(why), Some(want)) if why.starts_with(&want) => {}
                other => panic!("{of_home:o} {of_dir:o} {of_file:o}: {other:?}"),
            }
        }
        chmod(home, 0o700);
    }

    #[test]
    fn a_directory_or_device_is_no_file_of_keys() {
        for path in ["/dev/null", "/dev/zero", "/"] {
            assert_eq!(open(Path::new(path)).unwrap_err().to_string(), "not a regular file");
        }
    }

    #[test]
    fn a_key_that_others_can_read_is_exposed() {
        let dir = tempfile::tempdir().unwrap();
        let (key, uid) = (dir.path().join("key"), rustix::process::geteuid().as_raw());
        write(&key, "").unwrap();
        for (mode, bad) in [(0o600, false), (0o400, false), (0o640, true), (0o604, true)] {
            chmod(&key, mode);
            assert_eq!(exposed(&key.metadata().unwrap(), uid).is_some(), bad, "{mode:o}");
        }
    }
}
