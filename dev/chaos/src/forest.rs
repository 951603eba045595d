//! Forest: random trees to copy, and what happens to a source while it is copied.

use crate::dice::Dice;
use anyhow::Result;
use interop::stream;
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{FileExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// How large a tree is.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    /// At most so many names in a directory.
    pub names: u64,
    /// So many directories below each other.
    pub depth: u32,
    /// With symbolic links.
    pub links: bool,
    /// At most so many bytes in the largest files, of which there are few.
    pub largest: u64,
}

impl Shape {
    /// A tree that is copied in a tenth of a second.
    pub const SMALL: Self = Self { names: 12, depth: 2, links: true, largest: 3 << 20 };
}

/// Makes a random tree at `root`, which was not there.
pub fn plant(root: &Path, shape: Shape, dice: &mut Dice) -> Result<()> {
    fs::create_dir(root)?;
    for number in 0..dice.within(1..shape.names.max(1) + 1) {
        let at = root.join(name(number, dice));
        match dice.below(10) {
            0 | 1 if shape.depth > 0 => {
                plant(&at, Shape { depth: shape.depth - 1, ..shape }, dice)?;
            }
            2 if shape.links => symlink(dice.pick(&["gone", "../up", "/etc/hostname", "."]), &at)?,
            3 => sparse(&at, shape, dice)?,
            _ => write(&at, size(shape, dice), dice.next())?,
        }
        age(&at, dice)?;
    }
    age(root, dice)
}

/// A name of a file that nobody else in its directory has: plain, long, or bytes that are no text.
fn name(number: u64, dice: &mut Dice) -> PathBuf {
    let tail: &[u8] = match dice.below(8) {
        0 => b" with spaces ",
        1 => b"\n\x1b[31m",
        2 => b"\xff\xfe\x80",
        3 => b"*?[a]'\"\\$(x);&",
        4 => &[b'n'; 240],
        5 => "\u{fc}\u{1f980}".as_bytes(),
        _ => b"",
    };
    let head = dice.pick(&["f", "-r", ".", "..", "~"]);
    let bytes = [head.as_bytes(), number.to_string().as_bytes(), tail].concat();
    PathBuf::from(OsString::from_vec(bytes))
}

fn size(shape: Shape, dice: &mut Dice) -> u64 {
    match dice.below(20) {
        0 | 1 => 0,
        2 => dice.below(shape.largest),
        3 | 4 => dice.below(shape.largest / 8),
        5 => dice.pick(&[1, 4095, 4096, 32768, 65536, 261_120, 262_144, 1 << 20]),
        _ => dice.below(8192),
    }
}

/// A file of the stream of `seed`.
pub fn write(at: &Path, size: u64, seed: u64) -> Result<()> {
    let mut file = File::create(at)?;
    stream::make(&mut file, size, seed)?;
    Ok(())
}

/// A file with more holes than data.
fn sparse(at: &Path, shape: Shape, dice: &mut Dice) -> Result<()> {
    let file = File::create(at)?;
    let size = dice.within(1..shape.largest);
    file.set_len(size)?;
    for _ in 0..dice.below(4) {
        file.write_all_at(
            &dice.next().to_le_bytes(),
            dice.below(size).min(size.saturating_sub(8)),
        )?;
    }
    Ok(())
}

/// A time in the past and some permissions: owner's always allow reading, so that a source can be
/// read by whoever runs this.
fn age(at: &Path, dice: &mut Dice) -> Result<()> {
    if at.is_symlink() {
        return Ok(());
    }
    let mode = match at.is_dir() {
        true => dice.pick(&[0o755, 0o700, 0o775]),
        false => dice.pick(&[0o644, 0o600, 0o755, 0o444, 0o664]),
    };
    let since = Duration::new(dice.within(1 << 20..1 << 30), u32::try_from(dice.below(1 << 29))?);
    File::open(at)?.set_modified(SystemTime::UNIX_EPOCH + since)?;
    fs::set_permissions(at, fs::Permissions::from_mode(mode))?;
    Ok(())
}

/// What can happen to a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// More is appended.
    Grow,
    /// It is cut.
    Shrink,
    /// Other content of the same size, in place.
    Rewrite,
    /// Another file takes the name.
    Replace,
    /// It goes away.
    Delete,
}

impl Change {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::Grow, Self::Shrink, Self::Rewrite, Self::Replace, Self::Delete];

    /// Lets it happen. The file is seconds younger afterwards: a protocol that knows no less could
    /// not tell it from the one before (docs/reliability.md). What replaces it is made `aside`.
    pub fn happen(self, to: &Path, aside: &Path, seed: u64) -> Result<()> {
        let later = fs::metadata(to)?.modified()?.max(SystemTime::now()) + Duration::from_secs(2);
        match self {
            Self::Grow => {
                let mut file = OpenOptions::new().append(true).open(to)?;
                file.write_all(&seed.to_le_bytes().repeat(1000))?;
                file.set_modified(later)?;
            }
            Self::Shrink => {
                let file = OpenOptions::new().write(true).open(to)?;
                file.set_len(file.metadata()?.len() / 2)?;
                file.set_modified(later)?;
            }
            Self::Rewrite => rewrite(to, seed, later)?,
            Self::Replace => {
                write(aside, fs::metadata(to)?.len(), seed)?;
                File::open(aside)?.set_modified(later)?;
                fs::rename(aside, to)?;
            }
            Self::Delete => fs::remove_file(to)?,
        }
        Ok(())
    }

    /// What a copy may hold after it happened to a file of this content.
    pub fn expected(self, old: &[u8], seed: u64) -> Result<Option<Vec<u8>>> {
        Ok(match self {
            Self::Grow => Some([old, &seed.to_le_bytes().repeat(1000)].concat()),
            Self::Shrink => Some(old.get(..old.len() / 2).unwrap_or_default().to_vec()),
            Self::Rewrite | Self::Replace => {
                let mut fresh = Vec::new();
                stream::make(&mut fresh, old.len() as u64, seed)?;
                Some(fresh)
            }
            Self::Delete => None,
        })
    }
}

/// From its start to its end in steps, and its time is set once more when all is written: a reader
/// that sees the same time before and after has not seen a mixture. (One write sets the time
/// before it moves its bytes, so that between the two nobody could tell.)
fn rewrite(to: &Path, seed: u64, later: SystemTime) -> Result<()> {
    let mut file = OpenOptions::new().write(true).open(to)?;
    stream::make(&mut file, fs::metadata(to)?.len(), seed)?;
    file.set_modified(later)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::snapshot::Snapshot;

    #[test]
    fn a_seed_is_a_tree() {
        let dir = tempfile::tempdir().unwrap();
        let grown = |name: &str, seed| {
            let root = dir.path().join(name);
            plant(&root, Shape::SMALL, &mut Dice::new(seed)).unwrap();
            Snapshot::of(&root).unwrap()
        };
        assert_eq!(grown("a", 5), grown("b", 5));
        assert_ne!(grown("c", 5), grown("d", 6));
    }

    #[test]
    fn changes_are_what_they_say() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("x");
        for change in Change::ALL {
            write(&file, 100_000, 1).unwrap();
            let old = fs::read(&file).unwrap();
            change.happen(&file, &dir.path().join("aside"), 2).unwrap();
            assert_eq!(fs::read(&file).ok(), change.expected(&old, 2).unwrap(), "{change:?}");
        }
    }
}
