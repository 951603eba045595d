//! What is copied: a file or a tree, made once, and whether what arrived is the same.

use super::cases::Load;
use crate::lab::Lab;
use anyhow::{Context, Result, ensure};
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

/// Files of a directory.
const PER_DIRECTORY: u64 = 1000;
const SMALL: u64 = 4096;

impl Load {
    /// The same, so many times less.
    pub(crate) fn divided(self, by: u64) -> Self {
        match self {
            Self::File(size) => Self::File(size / by),
            Self::Tree(files) => Self::Tree((files / by).max(1)),
        }
    }

    /// The same, of at most so many bytes.
    pub(crate) fn within(self, bytes: u64) -> Self {
        match self {
            Self::File(size) => Self::File(size.min(bytes)),
            Self::Tree(files) => Self::Tree(files.min(bytes / SMALL)),
        }
    }

    /// Bytes of content.
    pub(crate) fn bytes(self) -> u64 {
        match self {
            Self::File(size) => size,
            Self::Tree(files) => files * SMALL,
        }
    }

    /// How many files.
    pub(crate) fn files(self) -> u64 {
        match self {
            Self::File(_) => 1,
            Self::Tree(files) => files,
        }
    }

    /// Its place on the disk, made if it is not there yet.
    pub(crate) fn source(self, lab: &Lab) -> Result<PathBuf> {
        match self {
            Self::File(size) => lab.source(size),
            Self::Tree(files) => tree(lab, files),
        }
    }
}

fn tree(lab: &Lab, files: u64) -> Result<PathBuf> {
    let top = lab.data(&format!("tree-{files}"));
    if top.exists() {
        return Ok(top);
    }
    // Under its name only when it is whole.
    let part = lab.data("part-tree");
    let mut content = Vec::new();
    crate::stream::write(&mut content, SMALL)?;
    for file in 0..files {
        let dir = part.join(format!("{:04}", file / PER_DIRECTORY));
        if file % PER_DIRECTORY == 0 {
            fs::create_dir_all(&dir)?;
        }
        content.get_mut(..8).context("no content")?.copy_from_slice(&file.to_be_bytes());
        fs::write(dir.join(format!("{file:08}")), &content)?;
    }
    fs::rename(&part, &top)?;
    Ok(top)
}

/// Compares two files or trees.
pub(crate) fn same(a: &Path, b: &Path) -> Result<()> {
    let differs = || format!("{} is not as in the source", b.display());
    if a.is_dir() {
        let mut names = 0;
        for entry in fs::read_dir(a)? {
            let name = entry?.file_name();
            same(&a.join(&name), &b.join(&name))?;
            names += 1;
        }
        ensure!(fs::read_dir(b).with_context(differs)?.count() == names, differs());
        return Ok(());
    }
    let [mut left, mut right] = [File::open(a)?, File::open(b).with_context(differs)?];
    ensure!(left.metadata()?.len() == right.metadata()?.len(), differs());
    let (mut ours, mut theirs) = (vec![0; 1 << 20], vec![0; 1 << 20]);
    loop {
        let len = left.read(&mut ours)?;
        let (ours, theirs) = (ours.split_at(len).0, theirs.split_at_mut(len).0);
        right.read_exact(theirs).with_context(differs)?;
        ensure!(ours == theirs, differs());
        if len == 0 {
            return Ok(());
        }
    }
}
