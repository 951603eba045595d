//! Span: a share of a file on this lane, cut into pieces: which are under way, which are there.

use super::super::copying::Copying;
use super::super::job::{Rest, Share, Stand};
use super::super::ranges::Ranges;
use super::super::side::Side;
use super::{Ends, File};
use crate::options::Lanes;
use sftp::client::Flight;
use std::collections::BTreeMap;
use std::ops::Range;

/// Least that `block-hashes@longhaul` takes for a block.
pub(super) const LEAST_BLOCK: u64 = 64 << 10;
/// A piece between two files of this host.
const HOME_BLOCK: u64 = 1 << 20;

pub(super) type Hash = [u8; 32];

/// A piece of a span.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) span: u64,
    pub(super) range: Range<u64>,
}

impl Piece {
    pub(super) fn len(&self) -> u64 {
        self.range.end - self.range.start
    }
}

/// A share of a file, as far as it is.
pub(super) struct Span {
    pub(super) id: u64,
    pub(super) range: Range<u64>,
    /// How far its bytes were when it was taken.
    pub(super) stand: Stand,
    /// They are to be compared before any is moved.
    pub(super) compare_only: bool,
    /// Where the next piece starts.
    pub(super) next: u64,
    /// Pieces that are moved once more, before others.
    pub(super) again: Vec<u64>,
    pub(super) flying: u64,
    pub(super) done: Ranges,
    pub(super) source: BTreeMap<u64, Hash>,
    pub(super) target: BTreeMap<u64, Hash>,
    /// Answers that the proof waits for.
    pub(super) waits: u32,
    pub(super) tries: u32,
}

/// The size of a piece, in bytes: one READ or WRITE of the largest size the server takes, unless two
/// pieces on each of many lanes would be more than they are to have under way together.
pub(super) fn block(ends: &Ends, copying: &Copying<'_>, hashed: bool) -> u64 {
    let most = match (&ends.source, &ends.target) {
        (Side::There(from), _) => u64::from(from.client.sizes().read),
        (_, Side::There(to)) => u64::from(to.client.sizes().write),
        _ => HOME_BLOCK,
    };
    let lanes = match copying.options.lanes {
        Lanes::Fixed(lanes) => lanes.get().into(),
        Lanes::Auto => 1,
    };
    let share = Flight::TOGETHER / 2 / lanes;
    let most = most.min(share - share % LEAST_BLOCK).max(LEAST_BLOCK);
    let least = if hashed { LEAST_BLOCK } else { 4 << 10 };
    let limit = copying.limiter.as_ref().map_or(u64::MAX, |limiter| limiter.piece() as u64);
    most.min(limit.max(least))
}

impl Span {
    pub(super) fn new(id: u64, share: Share) -> Self {
        let Share { range, stand } = share;
        let there = stand != Stand::Unmoved;
        let done = if there { Ranges::of(range.clone()) } else { Ranges::default() };
        Self {
            id,
            next: if there { range.end } else { range.start },
            compare_only: there,
            stand,
            range,
            again: Vec::new(),
            flying: 0,
            done,
            source: BTreeMap::new(),
            target: BTreeMap::new(),
            waits: 0,
            tries: 0,
        }
    }

    /// Bytes that are still to be asked for.
    pub(super) fn promised(&self) -> u64 {
        self.range.end - self.next
    }

    pub(super) fn piece(&self, start: u64, block: u64) -> Range<u64> {
        start..self.range.end.min(start.saturating_add(block))
    }

    pub(super) fn pieces(&self, block: u64) -> impl Iterator<Item = Range<u64>> + use<> {
        let range = self.range.clone();
        let step = usize::try_from(block).unwrap_or(usize::MAX).max(1);
        range
            .clone()
            .step_by(step)
            .map(move |start| start..range.end.min(start.saturating_add(block)))
    }

    /// The next piece to move.
    pub(super) fn cut(&mut self, block: u64) -> Option<Range<u64>> {
        let start = match self.again.pop() {
            Some(start) => start,
            None if self.next < self.range.end => {
                let start = self.next;
                self.next = self.piece(start, block).end;
                start
            }
            None => return None,
        };
        self.flying += 1;
        Some(self.piece(start, block))
    }

    pub(super) fn is_cut(&self) -> bool {
        self.again.is_empty() && self.next >= self.range.end
    }

    pub(super) fn is_moved(&self) -> bool {
        self.is_cut() && self.flying == 0
    }

    /// A piece that was cut never left.
    pub(super) fn recall(&mut self, start: u64) {
        self.flying = self.flying.saturating_sub(1);
        self.again.push(start);
    }

    /// For others, when the lane breaks. What was under way may have arrived, or not.
    pub(super) fn rest(&self, block: u64) -> Rest {
        let mut rest = Rest::default();
        if matches!(self.stand, Stand::Sent | Stand::Found) {
            // Not compared yet.
            rest.of(self.stand).add(self.range.clone());
            return rest;
        }
        rest.unmoved.add(self.next..self.range.end);
        self.again.iter().for_each(|start| rest.unmoved.add(self.piece(*start, block)));
        let cut = Ranges::of(self.range.start..self.next).without(&rest.unmoved);
        Rest { sent: cut.without(&self.done), moved: self.done.clone(), ..rest }
    }
}

impl File {
    pub(super) fn span(&mut self, id: u64) -> Option<&mut Span> {
        self.spans.iter_mut().find(|span| span.id == id)
    }
}
