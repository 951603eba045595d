//! Dice: randomness that can be had again. A run is its seed: what it found, the same seed finds.

/// SplitMix64.
#[derive(Debug, Clone)]
pub struct Dice(u64);

impl Dice {
    /// The dice of `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Dice for run `run` of many, which do not depend on how much the runs before it threw.
    #[must_use]
    pub fn of_run(seed: u64, run: u64) -> Self {
        let mut dice = Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ run);
        dice.next();
        dice
    }

    /// Any number.
    #[expect(clippy::should_implement_trait, reason = "dice never end")]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `end`; zero if that is zero.
    pub fn below(&mut self, end: u64) -> u64 {
        self.next().checked_rem(end).unwrap_or(0)
    }

    /// A number from `range`.
    pub fn within(&mut self, range: std::ops::Range<u64>) -> u64 {
        range.start + self.below(range.end.saturating_sub(range.start))
    }

    /// True in so many of a hundred cases.
    pub fn percent(&mut self, of_hundred: u64) -> bool {
        self.below(100) < of_hundred
    }

    /// One of them. The list is not empty.
    pub fn pick<T: Clone>(&mut self, of: &[T]) -> T {
        let at = usize::try_from(self.below(of.len() as u64)).unwrap_or(0);
        of[at].clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_has_the_same_dice_whatever_came_before_it() {
        let throws = |run| {
            std::array::from_fn::<u64, 4, _>({
                let mut dice = Dice::of_run(7, run);
                move |_| dice.next()
            })
        };
        assert_eq!(throws(3), throws(3));
        assert_ne!(throws(3), throws(4));
    }

    #[test]
    fn numbers_stay_where_they_were_asked_for() {
        let mut dice = Dice::new(1);
        assert!((0..1000).all(|_| (5..9).contains(&dice.within(5..9))));
        assert_eq!(dice.below(0), 0);
    }
}
