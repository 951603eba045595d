//! The umask of this process, for ends that make files with a mode of their own.

/// The umask of the process, which the system tells only to those who read it (proc(5)).
#[must_use]
pub fn umask() -> u32 {
    umask_in(&std::fs::read_to_string("/proc/self/status").unwrap_or_default())
}

/// Where nobody tells, as in a change of root without /proc, files are their owner's alone: the
/// real one could be as strict.
fn umask_in(status: &str) -> u32 {
    const STRICT: u32 = 0o077;
    let line = status.lines().find_map(|line| line.strip_prefix("Umask:"));
    line.and_then(|mask| u32::from_str_radix(mask.trim(), 8).ok()).unwrap_or(STRICT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f3_an_unknown_umask_is_a_strict_one() {
        assert_eq!(umask_in("Name:\tx\nUmask:\t0022\n"), 0o022);
        assert_eq!(umask_in(""), 0o077);
    }
}
