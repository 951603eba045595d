//! Median and spread of a few runs. The median, because one disturbed run must not move it.

use serde::Serialize;

/// Median, least and greatest of some figures.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
}

/// The spread of `figures`, or nothing when there are none.
pub(crate) fn spread(figures: impl IntoIterator<Item = f64>) -> Option<Spread> {
    let mut sorted: Vec<f64> = figures.into_iter().collect();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    let (min, max) = (*sorted.first()?, *sorted.last()?);
    let upper = *sorted.get(middle)?;
    let even = sorted.len().is_multiple_of(2);
    let lower = if even { *sorted.get(middle - 1)? } else { upper };
    Some(Spread { median: f64::midpoint(lower, upper), min, max })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_odd_and_even_counts() {
        let of = |figures: &[f64]| spread(figures.iter().copied());
        assert_eq!(of(&[3.0, 1.0, 2.0]), Some(Spread { median: 2.0, min: 1.0, max: 3.0 }));
        assert_eq!(of(&[4.0, 1.0, 2.0, 3.0]).map(|s| s.median), Some(2.5));
        assert_eq!(of(&[]), None);
    }
}
