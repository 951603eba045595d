//! Ranges of a file: what is there, what is left. Sorted, apart, none empty.

use std::ops::Range;

/// A set of bytes of a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Ranges(Vec<Range<u64>>);

impl Ranges {
    /// One range, or none if it is empty.
    pub(super) fn of(range: Range<u64>) -> Self {
        Self((!range.is_empty()).then_some(range).into_iter().collect())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Bytes in the set.
    pub(super) fn total(&self) -> u64 {
        self.0.iter().map(|range| range.end - range.start).sum()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Range<u64>> {
        self.0.iter()
    }

    /// Adds `range`.
    pub(super) fn add(&mut self, range: Range<u64>) {
        if range.is_empty() {
            return;
        }
        let first = self.0.partition_point(|other| other.end < range.start);
        let after = self.0.partition_point(|other| other.start <= range.end);
        let touched = self.0.get(first..after).unwrap_or_default();
        let start = touched.first().map_or(range.start, |other| other.start.min(range.start));
        let end = touched.last().map_or(range.end, |other| other.end.max(range.end));
        self.0.splice(first..after, std::iter::once(start..end));
    }

    /// Takes `range` out.
    pub(super) fn remove(&mut self, range: &Range<u64>) {
        if range.is_empty() {
            return;
        }
        let first = self.0.partition_point(|other| other.end <= range.start);
        let after = self.0.partition_point(|other| other.start < range.end);
        let touched = self.0.get(first..after).unwrap_or_default();
        let before = touched.first().map(|other| other.start..range.start);
        let behind = touched.last().map(|other| range.end..other.end);
        let left: Vec<_> = before.into_iter().chain(behind).filter(|r| !r.is_empty()).collect();
        self.0.splice(first..after, left);
    }

    /// Takes the first bytes out, at most `most`, in one piece; it ends at a multiple of `grain`
    /// if it can.
    pub(super) fn take(&mut self, most: u64, grain: u64) -> Option<Range<u64>> {
        let first = self.0.first()?.clone();
        let mut end = first.end.min(first.start.saturating_add(most.max(1)));
        if end < first.end {
            let aligned = end - end % grain.max(1);
            end = if aligned > first.start { aligned } else { end };
        }
        self.remove(&(first.start..end));
        Some(first.start..end)
    }

    /// What of `self` is not in `other`.
    pub(super) fn without(&self, other: &Self) -> Self {
        let mut left = self.clone();
        other.iter().for_each(|range| left.remove(range));
        left
    }

    /// What is in both.
    pub(super) fn both(&self, other: &Self) -> Self {
        self.without(&self.without(other))
    }
}

impl FromIterator<Range<u64>> for Ranges {
    fn from_iter<I: IntoIterator<Item = Range<u64>>>(ranges: I) -> Self {
        let mut set = Self::default();
        ranges.into_iter().for_each(|range| set.add(range));
        set
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bytes(set: &Ranges) -> Vec<u64> {
        set.iter().cloned().flatten().collect()
    }

    proptest! {
        #[test]
        fn a_set_of_ranges_is_a_set_of_bytes(steps in prop::collection::vec((any::<bool>(), 0u64..60, 0u64..20), 0..40)) {
            let (mut set, mut model) = (Ranges::default(), std::collections::BTreeSet::new());
            for (add, start, len) in steps {
                if add { set.add(start..start + len) } else { set.remove(&(start..start + len)) }
                for byte in start..start + len {
                    if add { model.insert(byte); } else { model.remove(&byte); }
                }
            }
            prop_assert_eq!(bytes(&set), model.iter().copied().collect::<Vec<_>>());
            prop_assert_eq!(set.total(), model.len() as u64);
            prop_assert!(set.0.windows(2).all(|pair| pair[0].end < pair[1].start));
        }
    }

    #[test]
    fn pieces_end_at_multiples_where_they_can() {
        let mut set = Ranges::of(3..25);
        assert_eq!(set.take(10, 4), Some(3..12));
        assert_eq!(set.take(2, 4), Some(12..14));
        assert_eq!(set.take(100, 4), Some(14..25));
        assert_eq!(set.take(100, 4), None);
    }

    #[test]
    fn sets_subtract() {
        let (all, done) = (Ranges::of(0..100), [5..10, 50..100].into_iter().collect::<Ranges>());
        assert_eq!(bytes(&all.without(&done)).len(), 45);
        assert_eq!(all.both(&done), done);
    }
}
