//! Job: a file under way. Its ranges are shared by all lanes; whoever settles the last one puts
//! it in place.

use super::journal::Number;
use super::meta::Meta;
use super::queue::Entry;
use super::ranges::Ranges;
use super::side::Fault;
use super::sums::Verdict;
use super::xattrs::Kept;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// Least of a file that is worth a request to open it on another lane.
const LEAST: u64 = 4 << 20;
/// Most that one lane takes at once: it is lost to the others while that lane is slow.
const MOST: u64 = 64 << 20;

/// A piece of a file that a lane has taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Share {
    pub(super) range: Range<u64>,
    pub(super) stand: Stand,
}

/// How far the bytes of a share are. Those that may be at the target are compared, and moved if
/// they are not what they should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stand {
    /// They are to be moved.
    Unmoved,
    /// This run has moved them.
    Moved,
    /// This run has sent them, and had no answer when the lane broke.
    Sent,
    /// An earlier run has moved them, or may have.
    Found,
}

/// What is left to be done about a file's bytes, by how far they are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Rest {
    pub(super) unmoved: Ranges,
    pub(super) moved: Ranges,
    pub(super) sent: Ranges,
    pub(super) found: Ranges,
}

impl Rest {
    fn is_empty(&self) -> bool {
        let Self { unmoved, moved, sent, found } = self;
        [unmoved, moved, sent, found].iter().all(|ranges| ranges.is_empty())
    }

    pub(super) fn of(&mut self, stand: Stand) -> &mut Ranges {
        match stand {
            Stand::Unmoved => &mut self.unmoved,
            Stand::Moved => &mut self.moved,
            Stand::Sent => &mut self.sent,
            Stand::Found => &mut self.found,
        }
    }

    /// What comes next: what was sent last of all, so that a server which still has some of it in
    /// hand is through with it.
    fn next(&self) -> Stand {
        match self {
            Self { unmoved, .. } if !unmoved.is_empty() => Stand::Unmoved,
            Self { moved, .. } if !moved.is_empty() => Stand::Moved,
            Self { found, .. } if !found.is_empty() => Stand::Found,
            _ => Stand::Sent,
        }
    }

    /// Nobody can be asked what has arrived: what had no answer is sent again, and what had one, too,
    /// unless it is `believed`.
    pub(super) fn send_again(&mut self, believed: bool) {
        let moved = std::mem::take(&mut self.moved);
        let sent = std::mem::take(&mut self.sent);
        let again = moved.iter().filter(|_| !believed).chain(sent.iter());
        again.for_each(|range| self.unmoved.add(range.clone()));
    }

    fn add(&mut self, other: &Self) {
        let Self { unmoved, moved, sent, found } = other;
        unmoved.iter().for_each(|range| self.unmoved.add(range.clone()));
        moved.iter().for_each(|range| self.moved.add(range.clone()));
        sent.iter().for_each(|range| self.sent.add(range.clone()));
        found.iter().for_each(|range| self.found.add(range.clone()));
    }
}

/// Under which name a file is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// A part file's, until it is whole.
    Part,
    /// Its own, since that was asked for.
    InPlace,
    /// Its own, since it is a device or pipe: it has no attributes to be set.
    Device,
    /// Not at all: what is there is compared with the source (`--verify`).
    Compare,
}

impl Way {
    pub(super) fn is_in_place(self) -> bool {
        self != Self::Part
    }

    /// Whether what a run that broke off has written counts.
    pub(super) fn is_resumable(self) -> bool {
        matches!(self, Self::Part | Self::InPlace)
    }
}

/// What follows from giving a share up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum After {
    /// Others have work on it.
    Going,
    /// Every byte is there: the caller puts the file in place.
    Whole,
    /// Nobody works on it any more, and it has failed: the caller tells.
    Failed,
}

/// A file under way.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) entry: Entry,
    /// What is written: the part file, or the final name.
    pub(super) part: Vec<u8>,
    pub(super) way: Way,
    /// The file that is replaced or written into: its mode stays unless the source's is kept.
    pub(super) old: Option<Meta>,
    /// The part file is only open for reading, as all of it is there.
    pub(super) read_only: bool,
    /// What the target will have, in bytes: the source may have more than it tells.
    pub(super) size: u64,
    /// In the journal, if it is noted there.
    pub(super) number: Option<Number>,
    /// Shares end at multiples of it: the block that is hashed.
    pub(super) block: u64,
    /// Of the source, as far as they are kept; once they are known.
    pub(super) xattrs: OnceLock<Kept>,
    /// Its content is compared as a whole, when all of it is there.
    pub(super) summed: bool,
    /// How that came out.
    pub(super) sum: OnceLock<Verdict>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// Nobody has taken it.
    rest: Rest,
    /// Shares that lanes have.
    out: usize,
    fault: Option<Fault>,
    over: bool,
}

impl Job {
    pub(super) fn new(entry: Entry, block: u64, rest: Rest) -> Self {
        let state = State { rest, out: 0, fault: None, over: false };
        let state = Mutex::new(state);
        Self {
            part: entry.to.clone(),
            size: entry.meta.size,
            entry,
            way: Way::Part,
            old: None,
            read_only: false,
            number: None,
            block,
            xattrs: OnceLock::new(),
            summed: false,
            sum: OnceLock::new(),
            state,
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A share for one of `lanes`: large ones first, smaller ones towards the end, so that all
    /// lanes end together.
    pub(super) fn take(&self, lanes: usize) -> Option<Share> {
        let mut state = self.lock();
        if state.fault.is_some() {
            return None;
        }
        let stand = state.rest.next();
        let from = state.rest.of(stand);
        let even = from.total() / (lanes.max(1) as u64 * 4);
        let range = from.take(even.clamp(LEAST, MOST), self.block)?;
        state.out += 1;
        Some(Share { range, stand })
    }

    pub(super) fn has_more(&self) -> bool {
        let state = self.lock();
        state.fault.is_none() && state.rest.unmoved.total() > LEAST
    }

    /// Whether anything is left to be taken.
    pub(super) fn has_any(&self) -> bool {
        let state = self.lock();
        state.fault.is_none() && !state.rest.is_empty()
    }

    /// Whether all of it was there, or failed, and somebody was told.
    pub(super) fn is_over(&self) -> bool {
        self.lock().over
    }

    /// Whether there is nothing to take and nothing taken, from the start: an empty file, or one
    /// that an earlier run has moved. Then the caller puts it in place.
    pub(super) fn is_whole(&self) -> bool {
        let mut state = self.lock();
        state.over |= state.out == 0 && state.rest.is_empty();
        state.over && state.fault.is_none()
    }

    /// A share is there.
    pub(super) fn settle(&self) -> After {
        self.end(|_| {})
    }

    /// A share that a lane could not do: what others have to do about it.
    pub(super) fn give_back(&self, rest: &Rest) -> After {
        self.end(|state| state.rest.add(rest))
    }

    /// The file has failed, whatever else comes.
    pub(super) fn fail(&self, fault: Fault) -> After {
        self.end(|state| {
            state.fault.get_or_insert(fault);
        })
    }

    /// Why it failed.
    pub(super) fn fault(&self) -> Option<Fault> {
        self.lock().fault.clone()
    }

    fn end(&self, how: impl FnOnce(&mut State)) -> After {
        let mut state = self.lock();
        how(&mut state);
        state.out = state.out.saturating_sub(1);
        let idle = state.out == 0 && !state.over;
        let whole = state.rest.is_empty();
        let after = match (&state.fault, idle) {
            (Some(_), true) => After::Failed,
            (None, true) if whole => After::Whole,
            _ => After::Going,
        };
        state.over |= after != After::Going;
        after
    }
}

#[cfg(test)]
mod tests {
    use super::super::queue::tests::entry;
    use super::*;

    fn job(size: u64, block: u64) -> Job {
        Job::new(entry(b"x", size), block, unmoved(0..size))
    }

    fn unmoved(range: Range<u64>) -> Rest {
        Rest { unmoved: Ranges::of(range), ..Rest::default() }
    }

    #[test]
    fn shares_cover_the_file_once_and_get_smaller_towards_the_end() {
        let job = job(1 << 30, 1000);
        let mut all = Ranges::default();
        let mut sizes = Vec::new();
        while let Some(share) = job.take(8) {
            assert_eq!(share.range.start % 1000, 0);
            sizes.push(share.range.end - share.range.start);
            all.add(share.range);
        }
        assert_eq!(all, Ranges::of(0..1 << 30));
        assert_eq!(sizes.iter().sum::<u64>(), 1 << 30);
        assert!(sizes[0] > 4 * sizes[sizes.len() - 2]);
    }

    #[test]
    fn the_last_share_makes_it_whole_once() {
        let job = job(9 << 20, 1 << 20);
        let shares: Vec<_> = std::iter::from_fn(|| job.take(8)).collect();
        assert_eq!(shares.len(), 3);
        assert_eq!(job.settle(), After::Going);
        assert_eq!(job.give_back(&unmoved(shares[1].range.clone())), After::Going);
        assert_eq!(job.settle(), After::Going);
        assert_eq!(job.take(8).unwrap(), shares[1]);
        assert_eq!(job.settle(), After::Whole);
    }

    #[test]
    fn what_may_be_there_already_comes_last() {
        let job = job(8 << 20, 1 << 20);
        job.take(1).unwrap();
        let (moved, sent) = (Ranges::of(0..1 << 20), Ranges::of(1 << 20..2 << 20));
        let unmoved = Ranges::of(2 << 20..4 << 20);
        assert_eq!(job.give_back(&Rest { unmoved, moved, sent, ..Rest::default() }), After::Going);
        let stands: Vec<_> = std::iter::from_fn(|| job.take(1)).map(|share| share.stand).collect();
        assert_eq!(stands, [Stand::Unmoved, Stand::Unmoved, Stand::Moved, Stand::Sent]);
    }

    #[test]
    fn what_nobody_can_compare_is_sent_again_unless_it_is_believed() {
        let (moved, sent) = (Ranges::of(0..10), Ranges::of(10..20));
        let unmoved = Ranges::of(20..30);
        let rest = Rest { unmoved, moved, sent, ..Rest::default() };
        for (believed, from) in [(true, 10), (false, 0)] {
            let mut rest = rest.clone();
            rest.send_again(believed);
            assert_eq!(rest, self::unmoved(from..30));
        }
    }

    #[test]
    fn f5_one_failed_write_fails_the_file_whatever_comes_later() {
        let job = job(9 << 20, 1 << 20);
        job.take(8).unwrap();
        job.take(8).unwrap();
        assert_eq!(job.fail(Fault::other("no")), After::Going);
        assert!(job.take(8).is_none());
        assert_eq!(job.settle(), After::Failed);
        assert_eq!(job.fault().unwrap().to_string(), "no");
    }
}
