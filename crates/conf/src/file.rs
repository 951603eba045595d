//! Configuration files with their Includes, as a tree of settings. Called by `client` and `server`.

use crate::error::Error;
use crate::expand::tilde;
use crate::line::{Origin, Setting};
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

/// How deep files may include one another.
const MAX_DEPTH: usize = 16;
/// A configuration larger than this is a mistake (a device, a disk image).
const MAX_SIZE: u64 = 16 << 20;

/// A line, or the lines of the files that an Include names.
#[derive(Debug)]
pub(crate) enum Item {
    Setting(Setting),
    Included(Vec<Item>),
}

/// What governs the reading of one file and those it includes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rules<'a> {
    /// Where relative Includes start.
    pub(crate) base: &'a Path,
    /// Home directory, where `~` in an Include is allowed.
    pub(crate) home: Option<&'a Path>,
    /// Owner whose files these must be, and writable to nobody else.
    pub(crate) owner: Option<u32>,
}

/// Reads a file; `None` when there is none.
pub(crate) fn read(path: &Path, rules: Rules<'_>) -> Result<Option<Vec<Item>>, Error> {
    read_at(path, rules, 0)
}

fn read_at(path: &Path, rules: Rules<'_>, depth: usize) -> Result<Option<Vec<Item>>, Error> {
    let name = path.display().to_string();
    let text = match text(path, rules.owner) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(e) if e.kind() == io::ErrorKind::PermissionDenied && e.raw_os_error().is_none() => {
            return Err(Error::Permissions(name));
        }
        other => other.map_err(|e| Error::File(name.clone(), e))?,
    };
    parse(&text, &name.into(), rules, depth).map(Some)
}

fn text(path: &Path, owner: Option<u32>) -> io::Result<String> {
    let mut file = File::open(path)?;
    let meta = file.metadata()?;
    if meta.is_dir() {
        return Err(io::Error::other("is a directory"));
    }
    // As OpenSSH: a user's configuration can run commands, so nobody else may write it.
    if owner.is_some_and(|uid| (meta.uid() != uid && meta.uid() != 0) || meta.mode() & 0o022 != 0) {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    let mut bytes = Vec::new();
    if (&mut file).take(MAX_SIZE + 1).read_to_end(&mut bytes)? as u64 > MAX_SIZE {
        return Err(io::Error::other("is larger than 16 MiB"));
    }
    // Bytes beyond UTF-8 can only matter inside comments and values that then do not match.
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The settings of one file's text.
pub(crate) fn parse(
    text: &str,
    name: &Arc<str>,
    rules: Rules<'_>,
    depth: usize,
) -> Result<Vec<Item>, Error> {
    let mut items = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let origin = Origin::File(Arc::clone(name), number + 1);
        let Some(setting) = Setting::parse(line, &origin)? else { continue };
        match setting.is("Include") {
            true => items.push(Item::Included(include(&setting, rules, depth + 1)?)),
            false => items.push(Item::Setting(setting)),
        }
    }
    Ok(items)
}

/// All files that the patterns of one Include line name, in lexical order; none is no error. Blocks of
/// a file end with it, not with the line.
fn include(setting: &Setting, rules: Rules<'_>, depth: usize) -> Result<Vec<Item>, Error> {
    let wrong = |why: String| Error::Line(setting.origin.clone(), why);
    if depth > MAX_DEPTH {
        return Err(wrong(format!("more than {MAX_DEPTH} files include one another")));
    }
    if setting.args.is_empty() {
        return Err(wrong("Include: missing value".to_owned()));
    }
    let mut items = Vec::new();
    for pattern in &setting.args {
        let pattern = include_pattern(pattern, rules).map_err(wrong)?;
        let paths = glob::glob(&pattern).map_err(|e| wrong(format!("Include {pattern}: {e}")))?;
        for path in paths {
            let path = path.map_err(|e| Error::File(e.path().display().to_string(), e.into()))?;
            if !is_passed_over(&path, &pattern) {
                items.push(Item::Included(read_at(&path, rules, depth)?.unwrap_or_default()));
            }
        }
    }
    Ok(items)
}

/// As with glob(3), a pattern finds no hidden names unless it begins with a dot itself (the crate's
/// own option never finds any); and what it finds may be a directory, which is a mistake where it is
/// named.
fn is_passed_over(path: &Path, pattern: &str) -> bool {
    let hidden = |part: &Component<'_>| part.as_os_str().as_encoded_bytes().starts_with(b".");
    let mut parts = path.components().zip(Path::new(pattern).components());
    let is_hidden = parts.any(|(name, pattern)| hidden(&name) && !hidden(&pattern));
    is_hidden || (pattern.contains(['*', '?', '[']) && path.is_dir())
}

fn include_pattern(pattern: &str, rules: Rules<'_>) -> Result<String, String> {
    let path = match (pattern.starts_with('~'), rules.home) {
        (true, Some(home)) => tilde(pattern, home)?,
        (true, None) => return Err(format!("Include {pattern}: '~' is for users' files only")),
        (false, _) => PathBuf::from(pattern),
    };
    let path = rules.base.join(path);
    path.into_os_string().into_string().map_err(|_| "Include: the path is not UTF-8".to_owned())
}
