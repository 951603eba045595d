//! CPU: whether this host had processor time to spare (proc_stat(5)).

use std::fs;

/// Least part of all processor time that counts as some: a tenth of a core of eight is noise.
const SOME: f64 = 0.1;

/// Processor time of all cores so far, in ticks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Used {
    idle: u64,
    all: u64,
}

impl Used {
    /// Nothing where it cannot be read.
    pub(super) fn now() -> Self {
        fs::read_to_string("/proc/stat").map(|text| Self::of(&text)).unwrap_or_default()
    }

    /// `cpu user nice system idle iowait irq softirq steal guest guest_nice`: guests are in user
    /// and nice, and time that the hypervisor took is not ours to spare.
    fn of(text: &str) -> Self {
        let ticks = text.lines().next().unwrap_or_default().split_whitespace().skip(1).take(8);
        let ticks: Vec<u64> = ticks.filter_map(|field| field.parse().ok()).collect();
        let idle = ticks.iter().skip(3).take(2).sum();
        Self { idle, all: ticks.iter().sum() }
    }

    /// Whether some was left since; true where nothing is known.
    pub(super) fn left_some(self) -> bool {
        self.left_some_until(Self::now())
    }

    fn left_some_until(self, now: Self) -> bool {
        let all = now.all.saturating_sub(self.all);
        all == 0 || now.idle.saturating_sub(self.idle) as f64 >= SOME * all as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_for_disks_is_idle_and_stolen_time_is_not() {
        let before = Used::of("cpu  100 0 100 1000 50 0 0 10 7 0\ncpu0 1 2 3\n");
        assert_eq!(before, Used { idle: 1050, all: 1260 });
        let busy = Used::of("cpu  160 0 140 1005 54 0 0 10 7 0");
        assert!(!before.left_some_until(busy));
        let stolen = Used::of("cpu  100 0 100 1000 50 0 0 110 7 0");
        assert!(!before.left_some_until(stolen));
        let waiting = Used::of("cpu  150 0 150 1000 100 0 0 10 7 0");
        assert!(before.left_some_until(waiting));
    }

    #[test]
    fn what_is_not_known_does_not_count() {
        assert!(Used::default().left_some_until(Used::of("nothing of the kind")));
        assert!(Used::now().all > 0);
    }
}
