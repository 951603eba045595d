//! The source tree as the checks see it: the workspace root and its Rust files.

use anyhow::{Context, Result};
use std::fs;
use std::path::{Path, PathBuf};

/// One Rust source file, with its path relative to the root for messages.
pub(crate) struct Source {
    pub(crate) path: String,
    pub(crate) text: String,
}

/// The workspace root: two levels above this crate.
pub(crate) fn root() -> Result<PathBuf> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).map(Path::to_path_buf).context("xtask is not at dev/xtask")
}

/// Every Rust file of the workspace's crates, sorted by path.
pub(crate) fn sources(root: &Path) -> Result<Vec<Source>> {
    let mut found = Vec::new();
    for top in ["crates", "dev"] {
        collect(root, &root.join(top), &mut found)?;
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(found)
}

fn collect(root: &Path, dir: &Path, found: &mut Vec<Source>) -> Result<()> {
    let Ok(entries) = fs::read_dir(dir) else { return Ok(()) };
    for entry in entries {
        let path = entry?.path();
        if path.is_dir() {
            if path.file_name().is_some_and(|name| name != "target") {
                collect(root, &path, found)?;
            }
        } else if path.extension().is_some_and(|ext| ext == "rs") {
            found.push(read(root, &path)?);
        }
    }
    Ok(())
}

fn read(root: &Path, path: &Path) -> Result<Source> {
    let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
    let path = path.strip_prefix(root).unwrap_or(path).display().to_string();
    Ok(Source { path, text })
}
