//! Snapshot: what is below a directory, by our own walk; and how two differ. Nothing of the copier
//! is used here, so that it cannot vouch for itself.

use anyhow::{Context, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs::{self, File, Metadata};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// A path below the root; any bytes.
pub type Name = Vec<u8>;

/// Content by its hash.
pub type Hash = [u8; 32];

/// What is below a directory; the directory itself has the empty name.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Snapshot(pub BTreeMap<Name, Item>);

/// One name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// What it is.
    pub kind: Kind,
    /// Permissions.
    pub mode: u32,
    /// Modified: seconds and nanoseconds.
    pub modified: (i64, i64),
}

/// What a name is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// A directory.
    Directory,
    /// A file with this content.
    File {
        /// Bytes.
        size: u64,
        /// Of the content.
        hash: Hash,
    },
    /// A symbolic link to there.
    Link(Vec<u8>),
    /// Anything else.
    Special,
}

/// How exactly two trees are to be equal; kinds, content and links' targets always.
#[derive(Debug, Clone, Copy, Default)]
pub struct Exactly {
    /// Permissions and times, to the second.
    pub attributes: bool,
    /// Times to the nanosecond.
    pub nanoseconds: bool,
}

impl Snapshot {
    /// Of everything below `root`; empty where there is nothing. What goes away meanwhile is left
    /// out, so that it can be taken while a copy runs.
    pub fn of(root: &Path) -> Result<Self> {
        let mut items = BTreeMap::new();
        match fs::symlink_metadata(root) {
            Ok(_) => walk(root, root, &mut items).with_context(|| root.display().to_string())?,
            Err(_) => return Ok(Self::default()),
        }
        Ok(Self(items))
    }

    /// All but these paths below `root` and the directories above them.
    #[must_use]
    pub fn without(mut self, root: &Path, paths: &[PathBuf]) -> Self {
        let below = paths.iter().filter_map(|path| path.strip_prefix(root).ok());
        for path in below.flat_map(Path::ancestors) {
            self.0.remove(path.as_os_str().as_bytes());
        }
        self
    }

    /// Names in `self` that are missing or different in `other`, a line each.
    #[must_use]
    pub fn missing_in(&self, other: &Self, exactly: Exactly) -> Vec<String> {
        let lines = self.0.iter().filter_map(|(name, item)| {
            let why = match other.0.get(name) {
                None => "missing".to_owned(),
                Some(there) => item.differs(there, exactly)?,
            };
            Some(format!("{}: {why}", shown(name)))
        });
        lines.collect()
    }

    /// Names that `other` has beyond `self`.
    #[must_use]
    pub fn beyond(&self, other: &Self) -> BTreeSet<Name> {
        other.0.keys().filter(|name| !self.0.contains_key(*name)).cloned().collect()
    }

    /// Names that look like files under way.
    #[must_use]
    pub fn parts(&self) -> Vec<String> {
        let part = |name: &&Name| {
            let last = name.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
            last.starts_with(b".") && last.ends_with(b".part")
        };
        self.0.keys().filter(part).map(|name| shown(name)).collect()
    }

    /// Every file's content.
    pub fn files(&self) -> impl Iterator<Item = (&Name, Hash)> {
        self.0.iter().filter_map(|(name, item)| match item.kind {
            Kind::File { hash, .. } => Some((name, hash)),
            _ => None,
        })
    }
}

impl Item {
    /// How another differs, or nothing.
    fn differs(&self, there: &Self, exactly: Exactly) -> Option<String> {
        match (&self.kind, &there.kind) {
            (Kind::File { size, .. }, Kind::File { size: other, .. }) if size != other => {
                return Some(format!("{other} bytes, not {size}"));
            }
            (Kind::File { .. }, Kind::File { .. }) if self.kind != there.kind => {
                return Some("other content of the same size".to_owned());
            }
            (one, other) if one != other => return Some(format!("{other:?}, not {one:?}")),
            _ => {}
        }
        // A link's permissions are always all, and old protocols cannot set its times.
        if !exactly.attributes || matches!(self.kind, Kind::Link(_)) {
            return None;
        }
        if self.mode != there.mode {
            return Some(format!("mode {:o}, not {:o}", there.mode, self.mode));
        }
        let same = match exactly.nanoseconds {
            true => self.modified == there.modified,
            false => self.modified.0 == there.modified.0,
        };
        (!same).then(|| format!("modified {:?}, not {:?}", there.modified, self.modified))
    }
}

fn walk(root: &Path, at: &Path, items: &mut BTreeMap<Name, Item>) -> Result<()> {
    let Ok(met) = fs::symlink_metadata(at) else { return Ok(()) };
    let Some(item) = look(at, &met)? else { return Ok(()) };
    let below = item.kind == Kind::Directory;
    let name = at.strip_prefix(root).unwrap_or(at);
    items.insert(name.as_os_str().as_bytes().to_vec(), item);
    if below {
        for entry in fs::read_dir(at).into_iter().flatten().flatten() {
            walk(root, &entry.path(), items)?;
        }
    }
    Ok(())
}

fn look(at: &Path, met: &Metadata) -> Result<Option<Item>> {
    let kind = match met.file_type() {
        kind if kind.is_dir() => Kind::Directory,
        kind if kind.is_symlink() => match fs::read_link(at) {
            Ok(target) => Kind::Link(target.into_os_string().into_vec()),
            Err(_) => return Ok(None),
        },
        kind if kind.is_file() => match content(at) {
            Ok((size, hash)) => Kind::File { size, hash },
            Err(why) if why.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(why) => return Err(why).with_context(|| at.display().to_string()),
        },
        kind => {
            debug_assert!(
                kind.is_fifo()
                    || kind.is_socket()
                    || kind.is_block_device()
                    || kind.is_char_device()
            );
            Kind::Special
        }
    };
    let modified = (met.mtime(), met.mtime_nsec());
    Ok(Some(Item { kind, mode: met.mode() & 0o7777, modified }))
}

/// Size and hash of a file's content.
pub fn content(at: &Path) -> std::io::Result<(u64, Hash)> {
    let mut hasher = blake3::Hasher::new();
    let size = std::io::copy(&mut File::open(at)?, &mut hasher)?;
    Ok((size, *hasher.finalize().as_bytes()))
}

/// A name for people.
#[must_use]
pub fn shown(name: &[u8]) -> String {
    format!("{:?}", OsStr::from_bytes(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trees_that_differ_in_anything_are_told_apart() {
        let dir = tempfile::tempdir().unwrap();
        let [a, b] = ["a", "b"].map(|name| dir.path().join(name));
        for root in [&a, &b] {
            fs::create_dir_all(root.join("d")).unwrap();
            fs::write(root.join("d/x"), "same").unwrap();
            std::os::unix::fs::symlink("gone", root.join("l")).unwrap();
        }
        let differences = || {
            let (a, b) = (Snapshot::of(&a).unwrap(), Snapshot::of(&b).unwrap());
            (a.missing_in(&b, Exactly::default()).len(), a.beyond(&b).len())
        };
        assert_eq!(differences(), (0, 0));
        fs::write(b.join("d/x"), "SAME").unwrap();
        assert_eq!(differences(), (1, 0));
        fs::remove_file(b.join("l")).unwrap();
        fs::write(b.join("l"), "gone").unwrap();
        assert_eq!(differences(), (2, 0));
        fs::write(b.join(".x.0.part"), "").unwrap();
        assert_eq!(differences(), (2, 1));
        assert_eq!(Snapshot::of(&b).unwrap().parts(), ["\".x.0.part\""]);
    }

    #[test]
    fn attributes_count_where_they_are_to() {
        let item = |mode, modified| Item { kind: Kind::Directory, mode, modified };
        let (one, other) = (item(0o755, (1, 2)), item(0o755, (1, 3)));
        let exactly = |nanoseconds| Exactly { attributes: true, nanoseconds };
        assert!(one.differs(&other, exactly(false)).is_none());
        assert!(one.differs(&other, exactly(true)).is_some());
        assert!(one.differs(&item(0o700, (1, 2)), exactly(false)).is_some());
        assert!(one.differs(&item(0o700, (9, 2)), Exactly::default()).is_none());
    }
}
