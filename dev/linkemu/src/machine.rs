//! What the rest of the machine did meanwhile: idle and stolen time from `/proc/stat`.

use std::fs;

/// The machine's CPU time so far, in clock ticks of all cores together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CpuTimes {
    total: u64,
    idle: u64,
    stolen: u64,
}

impl CpuTimes {
    /// Reads the counters; zeros where there are none.
    pub fn now() -> Self {
        fs::read_to_string("/proc/stat").ok().and_then(|s| Self::parse(&s)).unwrap_or_default()
    }

    /// The first line: user, nice, system, idle, iowait, irq, softirq, steal, then guest times
    /// that the first two contain already.
    fn parse(stat: &str) -> Option<Self> {
        let row = stat.lines().next()?.strip_prefix("cpu ")?;
        let ticks: Vec<u64> =
            row.split_whitespace().take(8).map(str::parse).collect::<Result<_, _>>().ok()?;
        let [.., idle, iowait, _, _, stolen] = ticks[..] else { return None };
        Some(Self { total: ticks.iter().sum(), idle: idle + iowait, stolen })
    }

    /// The shares of idle and stolen time since `earlier`.
    pub fn shares_since(self, earlier: Self) -> (f64, f64) {
        let total = self.total.saturating_sub(earlier.total).max(1) as f64;
        let share = |now: u64, then: u64| now.saturating_sub(then) as f64 / total;
        (share(self.idle, earlier.idle), share(self.stolen, earlier.stolen))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_and_stolen_shares_come_from_the_first_line() {
        let earlier = CpuTimes::parse("cpu  10 0 10 60 10 0 0 10 0 0\ncpu0 1 2").unwrap();
        let later = CpuTimes::parse("cpu  60 0 10 90 10 0 0 30 0 0\n").unwrap();
        assert_eq!(later.shares_since(earlier), (0.3, 0.2));
        assert_eq!(CpuTimes::parse("intr 5"), None);
    }
}
