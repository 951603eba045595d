//! Room: how much may lie where sources are put. Nothing that is measured may wait for a disk, so
//! memory counts as well as the file system's own limit (a container's /dev/shm has 64 MiB).

use anyhow::{Context, Result, ensure};
use nix::sys::statvfs::statvfs;
use std::cell::Cell;
use std::fs;
use std::path::{Path, PathBuf};

/// The least that is worth measuring.
const LEAST: u64 = 1 << 20;

/// How large one source may be: half of what was free at the start, as sources of several sizes lie
/// side by side, and a copy needs its target.
pub(crate) struct Room {
    dir: PathBuf,
    most: u64,
    /// The size that was last said to be too large.
    said: Cell<u64>,
}

impl Room {
    /// Looks at the file system of `dir` and at memory.
    pub(crate) fn of(dir: &Path) -> Result<Self> {
        Ok(Self { dir: dir.to_owned(), most: free(dir)? / 2, said: Cell::new(0) })
    }

    /// `wanted` bytes, or the largest power of two that fits, and says so.
    pub(crate) fn fitting(&self, wanted: u64) -> Result<u64> {
        let size = fitting(wanted, self.most);
        if size == wanted {
            return Ok(wanted);
        }
        let (dir, mib) = (self.dir.display(), wanted >> 20);
        ensure!(size >= LEAST, "no room for {mib} MiB in {dir}: see --data");
        if self.said.replace(wanted) != wanted {
            eprintln!(
                "lhbench: warning: no room for {mib} MiB in {dir} and memory: {} MiB instead",
                size >> 20
            );
        }
        Ok(size)
    }
}

fn fitting(wanted: u64, most: u64) -> u64 {
    match most.checked_ilog2() {
        _ if wanted <= most => wanted,
        Some(power) => 1 << power,
        None => 0,
    }
}

/// Bytes that can be written below `dir` and kept in memory.
pub(crate) fn free(dir: &Path) -> Result<u64> {
    let stat = statvfs(dir).with_context(|| dir.display().to_string())?;
    let disk = stat.blocks_available() as u64 * stat.fragment_size() as u64;
    let memory = available(&fs::read_to_string("/proc/meminfo")?).context("/proc/meminfo")?;
    Ok(disk.min(memory))
}

/// Bytes in the line `MemAvailable:  123 kB`.
fn available(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    Some(line.split_whitespace().next()?.parse::<u64>().ok()? << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_the_largest_power_of_two_that_does() {
        assert_eq!(fitting(5000, 5000), 5000);
        assert_eq!(fitting(5000, 4999), 4096);
        assert_eq!(fitting(5000, 0), 0);
        assert_eq!(fitting(0, 0), 0, "a login needs none");
    }

    #[test]
    fn memory_is_counted_in_kib() {
        assert_eq!(available("MemFree: 1 kB\nMemAvailable:    2048 kB\n"), Some(2 << 20));
        assert_eq!(available("MemFree: 1 kB\n"), None);
    }

    #[test]
    fn a_place_without_room_is_refused() {
        let room = Room { dir: "/nowhere".into(), most: LEAST - 1, said: Cell::new(0) };
        assert!(room.fitting(8 << 30).unwrap_err().to_string().contains("no room for 8192 MiB"));
        assert_eq!(room.fitting(0).unwrap(), 0);
    }
}
