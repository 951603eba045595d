//! Quota: a control group for each end, which gets a share of one core: it stands in for a slower
//! processor. cgroup v2's `cpu.max` or v1's `cpu.cfs_quota_us`, whichever this machine has.

use crate::leftovers;
use crate::net::Place;
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

/// Microseconds in which a share is counted: short, so that buffers do not hide it.
const PERIOD: u64 = 10_000;

/// Two groups, which go away when this does.
pub(crate) struct Quota {
    dirs: [PathBuf; 2],
    unified: bool,
}

impl Quota {
    /// Makes the groups, without a limit yet. An error says why that is not possible here.
    pub(crate) fn new() -> Result<Self> {
        let (top, unified) = hierarchy().context("no control groups for CPU time")?;
        sweep(&top);
        let dirs = ["client", "server"].map(|end| top.join(leftovers::prefix() + end));
        let quota = Self { dirs, unified };
        for dir in &quota.dirs {
            fs::create_dir(dir).with_context(|| dir.display().to_string())?;
        }
        quota.set(1.0)?;
        Ok(quota)
    }

    /// The group of one end.
    pub(crate) fn dir(&self, place: Place) -> &Path {
        let [client, server] = &self.dirs;
        match place {
            Place::Client => client,
            Place::Server => server,
        }
    }

    /// Gives each end this share of one core.
    pub(crate) fn set(&self, share: f64) -> Result<()> {
        let time = (PERIOD as f64 * share).round() as u64;
        for dir in &self.dirs {
            match self.unified {
                true => write(dir, "cpu.max", &format!("{time} {PERIOD}"))?,
                false => {
                    write(dir, "cpu.cfs_period_us", &PERIOD.to_string())?;
                    write(dir, "cpu.cfs_quota_us", &time.to_string())?;
                }
            }
        }
        Ok(())
    }
}

impl Drop for Quota {
    fn drop(&mut self) {
        for dir in &self.dirs {
            // The last process may take a moment to be gone.
            for _ in 0..50 {
                if fs::remove_dir(dir).is_ok() || !dir.exists() {
                    break;
                }
                sleep(Duration::from_millis(20));
            }
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
