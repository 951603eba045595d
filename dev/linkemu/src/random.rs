//! A small seeded generator (splitmix64): the same seed gives the same link.

/// A sequence of random numbers.
#[derive(Debug)]
pub struct Random(u64);

impl Random {
    /// Starts the sequence that belongs to `seed`.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number above 0 and up to 1.
    fn unit(&mut self) -> f64 {
        ((self.next() >> 11) + 1) as f64 / (1u64 << 53) as f64
    }

    /// A number from 0 to `bound`, both possible.
    pub fn up_to(&mut self, bound: u64) -> u64 {
        if bound == 0 { 0 } else { self.next() % (bound + 1) }
    }

    /// How many trials fail before one succeeds, when each does with `probability`: one draw
    /// instead of one per segment.
    pub fn failures_before_success(&mut self, probability: f64) -> u64 {
        if probability <= 0.0 {
            return u64::MAX;
        }
        if probability >= 1.0 {
            return 0;
        }
        (self.unit().ln() / (1.0 - probability).ln()) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_between_successes_average_to_the_inverse_probability() {
        let mut random = Random::new(7);
        let sum: u64 = (0..100_000).map(|_| random.failures_before_success(0.001)).sum();
        let mean = sum as f64 / 100_000.0;
        assert!((mean - 999.0).abs() < 15.0, "{mean}");
    }

    #[test]
    fn bounds_are_kept_and_reached() {
        let mut random = Random::new(7);
        let drawn: Vec<u64> = (0..1000).map(|_| random.up_to(3)).collect();
        assert!((0..=3).all(|n| drawn.contains(&n)) && drawn.iter().all(|&n| n <= 3));
    }
}
