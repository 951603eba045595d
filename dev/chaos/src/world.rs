//! World: the directories of one run, which go away with it, and what may stand in its target.

use crate::copier::{Copier, Served, Way, Whose};
use crate::snapshot::{Hash, Kind, Name, Snapshot, shown};
use anyhow::Result;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

/// The directories of one run.
#[derive(Debug)]
pub struct World {
    dir: tempfile::TempDir,
    /// What is copied.
    pub from: PathBuf,
    /// Where it goes to.
    pub to: PathBuf,
}

impl World {
    /// A fresh one; the source is not there yet, the target's directory is.
    pub fn new() -> Result<Self> {
        let dir = tempfile::Builder::new().prefix("chaos-").tempdir()?;
        let (from, to) = (dir.path().join("from/tree"), dir.path().join("to"));
        fs::create_dir(dir.path().join("from"))?;
        fs::create_dir(&to)?;
        Ok(Self { dir, from, to })
    }

    /// `name` in the run's own directory.
    #[must_use]
    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// What the source becomes: `cp -r tree to` makes `to/tree`.
    #[must_use]
    pub fn arrived(&self) -> PathBuf {
        self.to.join("tree")
    }

    /// A copier whose home is here.
    pub fn copier(&self, whose: Whose, served: Served) -> Result<Copier> {
        Copier::new(whose, &self.path("home"), served)
    }
}

/// What may stand under a name: whatever was whole there or at the source at some time (R1, F9).
#[derive(Debug, Default, Clone)]
pub struct Whole {
    ever: BTreeMap<Name, BTreeSet<Hash>>,
    always: BTreeSet<Name>,
}

impl Whole {
    /// What stood in the target before: it may be replaced, it may not go away.
    pub fn before(target: &Snapshot) -> Self {
        let mut whole = Self::default();
        whole.admit(target);
        whole.always = target.files().map(|(name, _)| name.clone()).collect();
        whole
    }

    /// From now on all of `snapshot` may stand there too.
    pub fn admit(&mut self, snapshot: &Snapshot) {
        for (name, hash) in snapshot.files() {
            self.ever.entry(name.clone()).or_default().insert(hash);
        }
    }

    /// Files in the target that are neither old nor new, or gone; a line each. Names that are for
    /// files under way are not looked at.
    #[must_use]
    pub fn broken(&self, target: &Snapshot) -> Vec<String> {
        let parts: BTreeSet<String> = target.parts().into_iter().collect();
        let torn = target.0.iter().filter_map(|(name, item)| {
            let Kind::File { size, hash } = item.kind else { return None };
            let known = self.ever.get(name).is_some_and(|hashes| hashes.contains(&hash));
            let fine = known || parts.contains(&shown(name));
            (!fine).then(|| format!("{}: {size} bytes that were never whole", shown(name)))
        });
        let gone = self.always.iter().filter(|name| !target.0.contains_key(*name));
        torn.chain(gone.map(|name| format!("{}: the old one is gone", shown(name)))).collect()
    }
}

/// Both ways with both servers, over and over.
#[must_use]
pub fn turn(run: u64) -> (Way, Served) {
    let way = if run.is_multiple_of(2) { Way::Up } else { Way::Down };
    let served = if (run / 2).is_multiple_of(2) { Served::Ours } else { Served::OpenSsh };
    (way, served)
}
