//! Made-up files of every kind, the same in every run, and what is different between two trees.

use anyhow::{Context, Result, bail, ensure};
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Metadata};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, symlink};
use std::path::Path;

/// Names that programs stumble over: of a shell, of a pattern, of an option, of no character set.
pub(crate) const ODD_NAMES: &[&[u8]] = &[
    b"with blank",
    b" ",
    b"-dash",
    b"--",
    b"new\nline",
    b"tab\tand\rreturn",
    b"\xff\xfe no utf-8",
    b"\x1b[31m",
    b"quote'\"`$(x);&|<>",
    b"*?[a]{b,c}",
    b"back\\slash",
    b"colon:here",
    b"%41%00",
    b"~",
    b"...",
    b".hidden",
    b".hidden.0.part",
    "größe-名前".as_bytes(),
];

/// Content that does not compress and tells where it belongs.
pub(crate) fn bytes(len: usize, seed: u64) -> Vec<u8> {
    let mut out = vec![0; len];
    blake3::Hasher::new().update(&seed.to_le_bytes()).finalize_xof().fill(&mut out);
    out
}

/// A file of made-up content.
pub(crate) fn file(path: &Path, len: usize) -> Result<()> {
    fs::write(path, bytes(len, len as u64)).with_context(|| path.display().to_string())
}

/// A file of `len` bytes with data in its first and last 64 KiB, and a hole between.
pub(crate) fn sparse(path: &Path, len: u64) -> Result<()> {
    let data = bytes(64 << 10, len);
    let file = File::create(path)?;
    file.write_all_at(&data, 0)?;
    file.write_all_at(&data, len - data.len() as u64)?;
    Ok(())
}

/// `count` files of a few KiB in some directories.
pub(crate) fn many(dir: &Path, count: usize) -> Result<()> {
    for number in 0..count {
        let sub = dir.join(format!("d{}", number % 7));
        fs::create_dir_all(&sub)?;
        fs::write(sub.join(format!("f{number}")), bytes(number * 37 % 8192, number as u64))?;
    }
    Ok(())
}

/// A tree with something of everything that is a file or a directory.
pub(crate) fn mixed(dir: &Path) -> Result<()> {
    many(dir, 40)?;
    fs::create_dir_all(dir.join("deep/er/and/deeper"))?;
    fs::create_dir(dir.join("empty directory"))?;
    file(&dir.join("deep/er/and/deeper/large"), 5 << 20)?;
    file(&dir.join("empty"), 0)?;
    file(&dir.join("exactly 32 KiB"), 32 << 10)?;
    fs::set_permissions(dir.join("empty"), PermissionsExt::from_mode(0o640))?;
    for (number, name) in ODD_NAMES.iter().enumerate() {
        file(&dir.join(OsStr::from_bytes(name)), number * 100)?;
    }
    Ok(())
}

/// Links to a file, to a directory, and to nowhere.
pub(crate) fn links(dir: &Path) -> Result<()> {
    fs::create_dir_all(dir.join("d"))?;
    file(&dir.join("d/file"), 1000)?;
    symlink("d/file", dir.join("to a file"))?;
    symlink("d", dir.join("to a directory"))?;
    symlink("no/where", dir.join("to nowhere"))?;
    Ok(())
}

/// What is compared beside names, kinds and content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Attributes {
    Any,
    /// Modes, and times to the second.
    Same,
}

/// An error names the first thing that differs.
pub(crate) fn same(a: &Path, b: &Path, attributes: Attributes) -> Result<()> {
    let [found, copied] =
        [a, b].map(|path| fs::symlink_metadata(path).with_context(|| path.display().to_string()));
    let (found, copied) = (found?, copied?);
    let name = || format!("{:?}", b.file_name().unwrap_or_default());
    ensure!(found.file_type() == copied.file_type(), "{}: another kind of file", name());
    if attributes == Attributes::Same {
        same_attributes(&found, &copied).with_context(name)?;
    }
    match &found {
        found if found.is_dir() => same_entries(a, b, attributes),
        found if found.is_symlink() => {
            ensure!(fs::read_link(a)? == fs::read_link(b)?, "{}: another target", name());
            Ok(())
        }
        _ => same_content(a, b).with_context(name),
    }
}

fn same_attributes(a: &Metadata, b: &Metadata) -> Result<()> {
    if !a.is_symlink() {
        ensure!(a.mode() == b.mode(), "mode {:o} and not {:o}", b.mode(), a.mode());
        ensure!(a.mtime() == b.mtime(), "time {} and not {}", b.mtime(), a.mtime());
    }
    Ok(())
}

fn same_entries(a: &Path, b: &Path, attributes: Attributes) -> Result<()> {
    let (found, copied) = (names(a)?, names(b)?);
    if let Some(name) = found.symmetric_difference(&copied).next() {
        bail!(
            "{name:?} is only in {}",
            if found.contains(name) { "the source" } else { "the copy" }
        );
    }
    found.iter().try_for_each(|name| same(&a.join(name), &b.join(name), attributes))
}

fn names(dir: &Path) -> Result<BTreeSet<OsString>> {
    let entries = fs::read_dir(dir).with_context(|| dir.display().to_string())?;
    entries.map(|entry| Ok(entry?.file_name())).collect()
}

fn same_content(a: &Path, b: &Path) -> Result<()> {
    let [mut a, mut b] = [File::open(a)?, File::open(b)?];
    let lens = [&a, &b].map(|file| file.metadata().map(|meta| meta.len()));
    let [before, after] = lens;
    let (before, after) = (before?, after?);
    ensure!(before == after, "{after} bytes and not {before}");
    let (mut left, mut right) = (vec![0; 1 << 20], vec![0; 1 << 20]);
    let mut at = 0;
    while at < before {
        let len = usize::try_from(before - at).unwrap_or(usize::MAX).min(left.len());
        let (left, right) = (left.split_at_mut(len).0, right.split_at_mut(len).0);
        a.read_exact(left)?;
        b.read_exact(right)?;
        if left != right {
            let equal = left.iter().zip(right.iter()).take_while(|(l, r)| l == r).count() as u64;
            bail!("content differs from byte {} on", at + equal);
        }
        at += len as u64;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair() -> (tempfile::TempDir, [std::path::PathBuf; 2]) {
        let dir = tempfile::tempdir().unwrap();
        let trees = ["a", "b"].map(|name| dir.path().join(name));
        for tree in &trees {
            fs::create_dir(tree).unwrap();
            mixed(tree).unwrap();
        }
        (dir, trees)
    }

    fn difference(spoil: impl FnOnce(&Path), attributes: Attributes) -> String {
        let (_dir, [a, b]) = pair();
        spoil(&b);
        same(&a, &b, attributes)
            .map(|()| String::new())
            .unwrap_or_else(|error| format!("{error:#}"))
    }

    #[test]
    fn equal_trees_are_the_same() {
        assert_eq!(difference(|_| {}, Attributes::Any), "");
    }

    #[test]
    fn every_difference_is_seen() {
        let large = "deep/er/and/deeper/large";
        let flip = |tree: &Path| {
            let file = File::options().read(true).write(true).open(tree.join(large)).unwrap();
            let mut byte = [0];
            file.read_exact_at(&mut byte, 3 << 20).unwrap();
            file.write_all_at(&[!byte[0]], 3 << 20).unwrap();
        };
        assert!(difference(flip, Attributes::Any).contains("from byte 3145728 on"));
        let cut = |tree: &Path| fs::write(tree.join(large), b"").unwrap();
        assert!(difference(cut, Attributes::Any).contains("0 bytes and not 5242880"));
        let remove = |tree: &Path| fs::remove_file(tree.join("-dash")).unwrap();
        assert!(difference(remove, Attributes::Any).contains("only in the source"));
        let add = |tree: &Path| fs::write(tree.join(".x.part"), b"").unwrap();
        assert!(difference(add, Attributes::Any).contains("only in the copy"));
        let kind = |tree: &Path| {
            fs::remove_file(tree.join("empty")).unwrap();
            fs::create_dir(tree.join("empty")).unwrap();
        };
        assert!(difference(kind, Attributes::Any).contains("another kind"));
    }

    #[test]
    fn modes_and_times_are_seen_where_asked() {
        let dir = tempfile::tempdir().unwrap();
        let [a, b] = ["a", "b"].map(|name| dir.path().join(name));
        file(&a, 10).unwrap();
        fs::copy(&a, &b).unwrap();
        let time = fs::metadata(&a).unwrap().modified().unwrap();
        let set = |time| File::open(&b).unwrap().set_modified(time).unwrap();
        set(time - std::time::Duration::from_secs(2));
        let why = |attributes| same(&a, &b, attributes).map_err(|error| format!("{error:#}"));
        assert_eq!(why(Attributes::Any), Ok(()));
        assert!(why(Attributes::Same).unwrap_err().contains("time"));
        set(time);
        assert_eq!(why(Attributes::Same), Ok(()));
        fs::set_permissions(&b, PermissionsExt::from_mode(0o600)).unwrap();
        assert!(why(Attributes::Same).unwrap_err().contains("mode"));
    }
}
