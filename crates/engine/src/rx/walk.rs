//! Walk: opened packets, in order, to where they belong.

use super::{Program, Rx};
use crate::error::Error;
use crate::figures::Hand;
use crate::receiver::{Span, Spans};
use crate::slab::Slab;
use proto::Transport;
use std::ops::Range;
use std::time::Instant;
use wire::msg;

/// Slabs that are being opened by workers at one time.
pub(super) const AHEAD: usize = 3;

/// Longest message that is copied without memory of its own; nearly all are shorter.
pub(super) const MESSAGE: usize = 1024;

impl<P: Program> Rx<P> {
    /// Everything that is whole: opened and delivered.
    pub(super) fn walk(&mut self, hand: &Hand) -> Result<(), Error> {
        if !self.take_rest() {
            return Ok(());
        }
        while !self.finished {
            let limit = if self.session.is_exchanging() { 1 } else { usize::MAX };
            if limit == 1 || self.session.workers().is_none() {
                self.collect_opened(0, hand)?;
                let Some(mut spans) = self.receiver.frame(limit)? else { break };
                hand.crypto.time(|| spans.open(self.receiver.slab_mut()));
                self.deliver(&spans, None, hand)?;
                self.receiver.recycle(spans);
            } else {
                let spans = match self.receiver.frame(limit) {
                    Ok(Some(spans)) => spans,
                    Ok(None) => break,
                    Err(error) => return self.end_by(error, hand),
                };
                let slab = self.receiver.detach();
                if let Some(workers) = self.session.workers() {
                    self.opening.push_back(workers.open(spans, slab));
                }
                self.collect_opened(AHEAD, hand)?;
            }
        }
        Ok(())
    }

    /// Delivers slabs that workers opened, in order, until at most `leave` are under way.
    pub(super) fn collect_opened(&mut self, leave: usize, hand: &Hand) -> Result<(), Error> {
        while self.opening.len() > leave {
            let Some(opened) = self.opening.pop_front() else { break };
            let (spans, slab) = hand.crypto.time(|| opened.wait()).ok_or(Error::Closed)?;
            self.deliver(&spans, Some(slab), hand)?;
            self.receiver.recycle(spans);
        }
        Ok(())
    }

    /// Nothing more can be received, for this reason, unless what workers have says otherwise: it
    /// came before.
    pub(super) fn end_by(&mut self, error: Error, hand: &Hand) -> Result<(), Error> {
        self.collect_opened(0, hand)?;
        if self.finished { Ok(()) } else { Err(error) }
    }

    /// Walks opened packets in order. `slab` is where they are if not in the receiver's own. What
    /// came before a bad packet is written.
    fn deliver(&mut self, spans: &Spans, slab: Option<Slab>, hand: &Hand) -> Result<(), Error> {
        let now = Instant::now();
        let dispatched = if self.receiver.is_compressed() {
            let dispatched = self.expand(spans, slab.as_ref(), now);
            slab.into_iter().for_each(|slab| self.receiver.give_back(slab));
            dispatched
        } else {
            let dispatched = self.dispatch(spans, slab.as_ref(), now);
            self.finish_slab(slab, now);
            dispatched
        };
        self.count(hand, now);
        dispatched.and_then(|()| spans.check())
    }

    /// Walks compressed packets: what is in them goes through slabs of its own. That one packet
    /// begins or ends compression is seen by none behind it: such packets come one at a time.
    fn expand(&mut self, spans: &Spans, slab: Option<&Slab>, now: Instant) -> Result<(), Error> {
        let mut target = self.receiver.empty();
        let mut walked = Ok(());
        for span in spans.list() {
            walked = self.expand_one(span, slab, &mut target, now);
            if walked.is_err() || self.finished {
                break;
            }
        }
        self.finish_slab(Some(target), now);
        walked
    }

    fn expand_one(
        &mut self,
        span: &Span,
        slab: Option<&Slab>,
        target: &mut Slab,
        now: Instant,
    ) -> Result<(), Error> {
        let at = match self.receiver.expand(&span.at, slab, target)? {
            Some(at) => at,
            None => {
                let next = self.receiver.empty();
                self.finish_slab(Some(std::mem::replace(target, next)), now);
                self.receiver.expand(&span.at, slab, target)?.unwrap_or_default()
            }
        };
        self.dispatch_one(span.stamp.seq, &at, Some(target), now)
    }

    /// Data to the runs of its routes, each other message to the state machine.
    fn dispatch(&mut self, spans: &Spans, slab: Option<&Slab>, now: Instant) -> Result<(), Error> {
        for span in spans.list() {
            if self.finished {
                break;
            }
            self.dispatch_one(span.stamp.seq, &span.at, slab, now)?;
        }
        Ok(())
    }

    /// One payload, at `at` of `slab` or of the receiver's own.
    fn dispatch_one(
        &mut self,
        seq: u32,
        at: &Range<usize>,
        slab: Option<&Slab>,
        now: Instant,
    ) -> Result<(), Error> {
        let bytes = slab.unwrap_or(self.receiver.slab()).bytes(at);
        let is_data =
            matches!(bytes.first(), Some(&(msg::CHANNEL_DATA | msg::CHANNEL_EXTENDED_DATA)));
        // Between the peer's KEXINIT and its NEWKEYS the state machine refuses it (B2).
        if is_data
            && (!self.session.is_exchanging() || self.session.transport(Transport::hears_data))
        {
            return self.routes.data(bytes, at.start);
        }
        let mut message = std::mem::take(&mut self.message);
        message.clear();
        message.extend_from_slice(bytes);
        if message.first() != Some(&msg::CHANNEL_WINDOW_ADJUST) {
            let slab = slab.unwrap_or(self.receiver.slab());
            self.routes.write_runs(slab, now);
        }
        // Whoever hears of a channel's end knows what became of the data before it.
        self.tell_broken()?;
        if !self.finished {
            self.message(seq, &message)?;
            message.shrink_to(MESSAGE);
            self.message = message;
        }
        Ok(())
    }

    /// Writes the runs of a slab; what sinks leave over keeps the slab alive.
    pub(super) fn finish_slab(&mut self, slab: Option<Slab>, now: Instant) {
        match slab {
            None => {
                self.routes.offer_runs(self.receiver.slab(), now);
                if self.routes.runs_need_slab() {
                    let slab = self.receiver.detach();
                    self.routes.hold_runs(&slab);
                } else {
                    self.routes.copy_runs(self.receiver.slab());
                }
            }
            Some(slab) => {
                self.routes.offer_runs(&slab, now);
                if self.routes.runs_need_slab() {
                    self.routes.hold_runs(&slab);
                } else {
                    self.routes.copy_runs(&slab);
                    self.receiver.give_back(slab);
                }
            }
        }
    }

    /// Enters the channel data of some packets, all under one key, into the ledger.
    pub(super) fn count(&self, hand: &Hand, now: Instant) {
        let received = self.routes.totals().received;
        let new = received - hand.bytes.get();
        if new == 0 {
            return;
        }
        hand.received(received);
        let counts = &self.session.ledger().received;
        counts.moved(new, now);
        counts.window.raise(self.routes.largest_window().into());
        if self.receiver.is_clear() {
            counts.clear.add(new);
        }
    }
}
