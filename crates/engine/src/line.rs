//! Line: sources wait here for their turn to stage (under the lock of the order queue).
//!
//! ```text
//! join     a source has a batch: it stands behind those that came before
//! admits   its turn has come, and not too much bulk is in front of the socket
//! leave    it has staged, or gave up: the next one's turn
//! staged, taken   bulk that waits in the order queue
//! ```
//! First come, first served, so channels at full speed get equal shares. A batch of a few
//! kilobytes does not stand in line: a keystroke overtakes all bulk that has no numbers yet.

use packet::Batch;
use packet::batch::SLOTS;
use packet::layout::DATA;

/// A whole batch of full packets.
pub(crate) const BATCH: usize = SLOTS * DATA;

/// Bulk in the order queue while the path is fast: enough for four workers, and less than the
/// pool has, so that sources wait in line and not for whoever is quicker at the pool.
const QUEUED: usize = 6 * BATCH;

/// Payload up to which a batch is no bulk.
const SMALL: u64 = if cfg!(feature = "shuttle") { 0 } else { 4096 };

/// A place in the line.
pub(crate) struct Place(u64);

/// The line, and what is in front of it.
pub(crate) struct Line {
    next: u64,
    serving: u64,
    /// Payload of bulk that is staged and that no writer has taken.
    queued: usize,
    /// Most of it.
    most: usize,
}

impl Line {
    pub(crate) fn new() -> Self {
        Self { next: 0, serving: 0, queued: 0, most: QUEUED }
    }

    /// Bytes of a batch from now on: the fewer, the sooner a message gets out behind one.
    pub(crate) fn set_quantum(&mut self, quantum: usize) {
        self.most = if quantum < BATCH { quantum } else { QUEUED };
    }

    /// A place for a batch that is bulk.
    pub(crate) fn join(&mut self, batch: &Batch) -> Option<Place> {
        is_bulk(batch).then(|| {
            let place = Place(self.next);
            self.next += 1;
            place
        })
    }

    /// Whether who stands there may stage now.
    pub(crate) fn admits(&self, place: &Option<Place>) -> bool {
        place.as_ref().is_none_or(|place| place.0 == self.serving && self.queued < self.most)
    }

    /// Whoever stood there stands there no more.
    pub(crate) fn leave(&mut self, place: Option<Place>) {
        if place.is_some() {
            self.serving += 1;
        }
    }

    /// A batch is in the queue.
    pub(crate) fn staged(&mut self, batch: &Batch) {
        self.queued += bulk_bytes(batch);
    }

    /// ... and was taken out, to be written next.
    pub(crate) fn taken(&mut self, batch: &Batch) {
        self.queued = self.queued.saturating_sub(bulk_bytes(batch));
    }

    /// Packets that one write takes: as much as a message may have to wait for.
    pub(crate) fn packets_per_write(&self) -> usize {
        self.most.div_ceil(DATA).clamp(1, SLOTS)
    }
}

/// Whether a batch is more than a keystroke or a message.
pub(crate) fn is_bulk(batch: &Batch) -> bool {
    batch.is_bulk() && batch.payload() > SMALL
}

fn bulk_bytes(batch: &Batch) -> usize {
    if is_bulk(batch) { usize::try_from(batch.payload()).unwrap_or(BATCH) } else { 0 }
}

#[cfg(test)]
#[cfg(not(feature = "shuttle"))]
mod tests {
    use super::*;
    use std::io::IoSliceMut;

    fn batch(bytes: usize) -> Batch {
        let mut batch = Batch::bulk();
        batch.areas(bytes, DATA, &mut std::array::from_fn(|_| IoSliceMut::new(&mut [])));
        batch.finish(bytes, DATA, 0, None);
        batch
    }

    #[test]
    fn the_first_to_come_is_the_first_to_go() {
        let (mut line, bulk) = (Line::new(), batch(BATCH));
        let [first, second, third] = std::array::from_fn(|_| line.join(&bulk));
        assert!(line.admits(&first) && !line.admits(&second) && !line.admits(&third));
        line.leave(first);
        assert!(line.admits(&second) && !line.admits(&third));
        line.leave(second);
        assert!(line.admits(&third));
    }

    #[test]
    fn a_keystroke_does_not_stand_in_line() {
        let mut line = Line::new();
        let first = line.join(&batch(BATCH));
        let keystroke = line.join(&batch(1));
        assert!(keystroke.is_none() && line.admits(&keystroke));
        line.leave(keystroke);
        assert!(line.admits(&first), "and takes nobody's turn");
        assert!(line.join(&Batch::message(&[0; 5000])).is_none(), "neither does a message");
    }

    #[test]
    fn little_bulk_is_in_front_of_a_slow_path() {
        let (mut line, bulk) = (Line::new(), batch(2 * DATA));
        line.set_quantum(2 * DATA);
        let place = line.join(&bulk);
        assert!(line.admits(&place));
        line.leave(place);
        line.staged(&bulk);
        let place = line.join(&bulk);
        assert!(!line.admits(&place));
        assert!(line.admits(&None));
        line.taken(&bulk);
        assert!(line.admits(&place));
        assert_eq!(line.packets_per_write(), 2);
        line.set_quantum(BATCH);
        assert_eq!(line.packets_per_write(), SLOTS);
    }
}
