//! Sources and targets that are both on this host: none may be its own target, or hold it.

use crate::uri::Operand;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Says which source is in the way, if one is. What cannot be found is told of by the copy.
pub(crate) fn check(sources: &[Operand], target: &Operand) -> Result<(), String> {
    let Operand::Local(target) = target else { return Ok(()) };
    let near = sources.iter().filter_map(|source| match source {
        Operand::Local(source) => Some(source),
        Operand::Remote { .. } => None,
    });
    for source in near {
        if is_own_target(source, target) {
            let name = |path: &Path| copy::shown(path.as_os_str().as_bytes());
            return Err(format!(
                "{}: would be copied into itself ({})",
                name(source),
                name(target)
            ));
        }
    }
    Ok(())
}

fn is_own_target(source: &Path, target: &Path) -> bool {
    let contents = source.as_os_str().as_bytes().ends_with(b"/.");
    // It is called there as it was called here, be that a link.
    let name = source.file_name().filter(|_| !contents);
    let (Ok(source), Some(target)) = (source.canonicalize(), real(target)) else { return false };
    let own = name.and_then(|name| target.join(name).canonicalize().ok());
    target.starts_with(&source) || own == Some(source)
}

/// Where a path really is, also if only its directory is there.
fn real(path: &Path) -> Option<PathBuf> {
    path.canonicalize().ok().or_else(|| {
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        let parent = parent.unwrap_or(Path::new(".")).canonicalize().ok()?;
        Some(parent.join(path.file_name()?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn no_source_is_its_own_target_or_holds_it() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("d/sub")).unwrap();
        fs::write(dir.path().join("file"), "x").unwrap();
        std::os::unix::fs::symlink("d", dir.path().join("link")).unwrap();
        std::os::unix::fs::symlink("d/sub", dir.path().join("current")).unwrap();
        std::os::unix::fs::symlink("../file", dir.path().join("d/file")).unwrap();
        std::os::unix::fs::symlink("../file", dir.path().join("d/other")).unwrap();
        let cases = [
            ("file", "file", true),
            ("file", ".", true),
            ("file", "new", false),
            ("file", "d", true),
            ("file", "d/sub", false),
            ("current", ".", true),
            ("d/other", ".", false),
            ("d/other", "d", true),
            ("d", "d", true),
            ("d", "d/new", true),
            ("d", "d/sub", true),
            ("d", "link/new", true),
            ("d", ".", true),
            ("d/.", ".", false),
            ("d", "d2", false),
            ("missing", "missing", false),
        ];
        for (source, target, want) in cases {
            let local = |name: &str| Operand::Local(dir.path().join(name));
            // A trailing dot is lost in a Path that is joined, so it is put back.
            let source = match source.strip_suffix("/.") {
                Some(top) => Operand::Local(format!("{}/.", dir.path().join(top).display()).into()),
                None => local(source),
            };
            let target = local(target);
            assert_eq!(
                check(std::slice::from_ref(&source), &target).is_err(),
                want,
                "{source:?} {target:?}"
            );
        }
    }
}
