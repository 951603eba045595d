//! What our caller wants of channels. A call for a channel that is gone, or that comes after our
//! own CLOSE, does nothing: the peer may have been faster.

use super::msg::{self as m, OpenReason};
use super::{Ahead, Channel, Channels, LocalId, Owed, Purpose, Request, Stage, Step};
use crate::draft::Draft;
use wire::msg;

impl Channels {
    /// Asks for a channel; the error says in words why it cannot be.
    pub(crate) fn ask_for(
        &mut self,
        purpose: Purpose<'_>,
        window: u32,
        max_packet: u32,
        draft: &mut Draft,
    ) -> Result<LocalId, &'static str> {
        #[cfg(feature = "none")]
        if !self.may_open(purpose.kind()) {
            return Err("clear text was agreed on: it goes with one session and nothing else (N3)");
        }
        let id = self.enter(Channel::new(Stage::Opening, Ahead::NUMBER, window));
        let id = id.ok_or("too many channels on one connection")?;
        draft.send(purpose.open(id.0, window, max_packet));
        Ok(id)
    }

    /// Lets the peer have the channel that it asked for.
    pub(crate) fn accept(&mut self, id: LocalId, window: u32, max_packet: u32, draft: &mut Draft) {
        let Some(channel) = self.table.get_mut(&id.0).filter(|c| c.stage == Stage::Asked) else {
            return;
        };
        channel.stage = Stage::Open;
        channel.window = Some(window);
        let recipient = channel.remote;
        draft.send(m::Confirmation { recipient, sender: id.0, window, max_packet }.write());
    }

    /// Refuses the channel that the peer asked for.
    pub(crate) fn reject(&mut self, id: LocalId, why: OpenReason, text: &str, draft: &mut Draft) {
        let asked = self.table.get(&id.0).filter(|c| c.stage == Stage::Asked);
        let Some(recipient) = asked.map(|channel| channel.remote) else { return };
        self.table.remove(&id.0);
        let (reason, text) = (why as u32, text.to_owned());
        draft.send(m::OpenFailure { recipient, reason, text }.write());
    }

    /// Sends a request.
    pub(crate) fn request(
        &mut self,
        id: LocalId,
        request: &Request,
        want_reply: bool,
        draft: &mut Draft,
    ) {
        #[cfg(feature = "none")]
        if !self.may_request(request.name()) {
            return;
        }
        if let Some(channel) = self.sending(id, Step::Talk) {
            channel.awaited = channel.awaited.saturating_add(u32::from(want_reply));
            draft.send(request.write(channel.remote, want_reply));
        }
    }

    /// Answers the oldest request that waits for it, and the refusals that waited behind it
    /// (RFC 4254 section 5.4: a reply has no number, only its place in the order).
    pub(crate) fn reply(&mut self, id: LocalId, ok: bool, draft: &mut Draft) {
        let Some(channel) = self.sending(id, Step::Talk) else { return };
        if channel.owed.pop_front() == Some(Owed::ByCaller) {
            let number = if ok { msg::CHANNEL_SUCCESS } else { msg::CHANNEL_FAILURE };
            draft.send(m::short(number, channel.remote));
        }
        channel.send_refusals(draft);
    }

    /// Lets the peer send `bytes` more.
    pub(crate) fn credit(&mut self, id: LocalId, bytes: u32, draft: &mut Draft) {
        if let Some(channel) = self.sending(id, Step::Talk).filter(|_| bytes > 0) {
            channel.window = channel.window.map(|window| window.saturating_add(bytes));
            draft.send(m::adjust(channel.remote, bytes));
        }
    }

    /// From now on somebody else takes this channel's data and keeps count of its window; what
    /// is left of it.
    pub(crate) fn route(&mut self, id: LocalId) -> Option<u32> {
        let channel = self.table.get_mut(&id.0).filter(|c| c.stage == Stage::Open)?;
        channel.window.take()
    }

    /// No more data of ours follows.
    pub(crate) fn eof(&mut self, id: LocalId, draft: &mut Draft) {
        if let Some(channel) = self.sending(id, Step::Eof) {
            draft.send(m::short(msg::CHANNEL_EOF, channel.remote));
        }
    }

    /// Nothing of ours follows.
    pub(crate) fn close(&mut self, id: LocalId, draft: &mut Draft) {
        if let Some(channel) = self.sending(id, Step::Close) {
            channel.owed.clear();
            draft.send(m::short(msg::CHANNEL_CLOSE, channel.remote));
        }
        self.forget_if_gone(id);
    }

    /// The channel, if our side may take `step` on it; it has been taken.
    fn sending(&mut self, id: LocalId, step: Step) -> Option<&mut Channel> {
        let channel = self.table.get_mut(&id.0).filter(|c| c.stage == Stage::Open)?;
        channel.sent = channel.sent.after(step)?;
        Some(channel)
    }
}

impl Channel {
    /// Sends the refusals that stand first in the order.
    pub(super) fn send_refusals(&mut self, draft: &mut Draft) {
        while self.owed.front() == Some(&Owed::Refusal) {
            self.owed.pop_front();
            draft.send(m::short(msg::CHANNEL_FAILURE, self.remote));
        }
    }
}
