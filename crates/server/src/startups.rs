//! MaxStartups (sshd_config(5)): which connections are dropped while many have not logged in.

use conf::MaxStartups;

/// Whether a new connection is dropped when `waiting` others have not logged in. `dice` is a
/// random number below 100.
pub(crate) fn is_dropped(limits: MaxStartups, waiting: u32, dice: u32) -> bool {
    let MaxStartups { start, rate, full } = limits;
    if waiting < start {
        return false;
    }
    if waiting >= full || rate >= 100 {
        return true;
    }
    // From `rate` at `start` in a straight line to 100 at `full`.
    let span = u64::from(full - start).max(1);
    let chance = u64::from(rate) + u64::from(100 - rate) * u64::from(waiting - start) / span;
    u64::from(dice) < chance
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chance_grows_from_rate_to_certainty() {
        let limits = MaxStartups { start: 10, rate: 30, full: 100 };
        let dropped = |waiting| (0..100).filter(|dice| is_dropped(limits, waiting, *dice)).count();
        assert_eq!([9, 10, 55, 99, 100, 1000].map(dropped), [0, 30, 65, 99, 100, 100]);
    }

    #[test]
    fn one_number_is_a_hard_limit() {
        let limits = MaxStartups { start: 3, rate: 100, full: 3 };
        assert!(!is_dropped(limits, 2, 0));
        assert!(is_dropped(limits, 3, 99));
    }
}
