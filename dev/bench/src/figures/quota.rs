//! Quota: a control group for both ends, which gets a share of this machine's cores: it stands in
//! for a slower processor. cgroup v2's `cpu.max` or v1's `cpu.cfs_quota_us`, whichever there is.
//!
//! One group, so that both ends stand still at the same time, as on a slower machine. With a group
//! each they stood still in turn, and the other one waited: at 80 % of a core each, every cipher
//! gave a third of what it gives at 100 %.

use crate::leftovers;
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

/// Microseconds in which a share is counted: long beside the 5 ms that the kernel hands to each
/// core at a time, which may lie unused there.
const PERIOD: u64 = 100_000;

/// The group, which goes away when this does.
pub(crate) struct Quota {
    dir: PathBuf,
    unified: bool,
    cores: usize,
}

impl Quota {
    /// Makes the group, without a limit yet. An error says why that is not possible here.
    pub(crate) fn new() -> Result<Self> {
        let (top, unified) = hierarchy().context("no control groups for CPU time")?;
        sweep(&top);
        let dir = top.join(leftovers::prefix() + "ends");
        let cores = std::thread::available_parallelism().context("cores")?.get();
        let quota = Self { dir, unified, cores };
        fs::create_dir(&quota.dir).with_context(|| quota.dir.display().to_string())?;
        quota.set(1.0)?;
        Ok(quota)
    }

    /// The group of both ends.
    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Gives both ends together this share of all cores.
    pub(crate) fn set(&self, share: f64) -> Result<()> {
        let time = (PERIOD as f64 * share * self.cores as f64).round() as u64;
        if self.unified {
            return write(&self.dir, "cpu.max", &format!("{time} {PERIOD}"));
        }
        write(&self.dir, "cpu.cfs_period_us", &PERIOD.to_string())?;
        write(&self.dir, "cpu.cfs_quota_us", &time.to_string())
    }
}

impl Drop for Quota {
    fn drop(&mut self) {
        // The last process may take a moment to be gone.
        for _ in 0..50 {
            if fs::remove_dir(&self.dir).is_ok() || !self.dir.exists() {
                break;
            }
            sleep(Duration::from_millis(20));
        }
    }
}

/// Removes what a killed run left.
fn sweep(top: &Path) {
    for entry in fs::read_dir(top).into_iter().flatten().flatten() {
        if entry.file_name().to_str().is_some_and(leftovers::is_left) {
            _ = fs::remove_dir(entry.path());
        }
    }
}

fn write(dir: &Path, name: &str, value: &str) -> Result<()> {
    let path = dir.join(name);
    fs::write(&path, value).with_context(|| path.display().to_string())
}

/// Where groups with a CPU quota can be made, and whether that is v2.
fn hierarchy() -> Result<(PathBuf, bool)> {
    let root = Path::new("/sys/fs/cgroup");
    for name in ["cpu", "cpu,cpuacct"] {
        if root.join(name).join("cgroup.procs").exists() {
            return Ok((root.join(name), false));
        }
    }
    let controllers = fs::read_to_string(root.join("cgroup.controllers"))?;
    if !controllers.split_whitespace().any(|name| name == "cpu") {
        bail!("the cpu controller is not here");
    }
    // Already there where systemd runs; elsewhere only if no process is in the way.
    let children = root.join("cgroup.subtree_control");
    if !fs::read_to_string(&children)?.split_whitespace().any(|name| name == "cpu") {
        fs::write(&children, "+cpu").context("the cpu controller is not given to groups")?;
    }
    Ok((root.to_owned(), true))
}
