//! What the peer sends on the connection layer (RFC 4254), message by message.
//!
//! Invariant C3: everything but an opening is for a channel that both sides know and that the
//! peer has not closed; anything else ends the connection. Once *we* have closed, what still
//! arrives is legal and dropped.

use super::msg::{self as m, OpenReason};
use super::{Channel, Channels, Grant, Half, LocalId, Owed, Request, Stage, Step, misbehaved};
use crate::data::{self, STDERR};
use crate::draft::Draft;
use crate::window::Overrun;
use crate::{Error, Event, Role};
use wire::{Reader, msg};

/// Requests of one channel that may wait for their reply. Clients have a handful.
const MOST_OWED: usize = 256;

impl Channels {
    /// One message with a number from 80 on.
    pub(crate) fn handle(&mut self, payload: &[u8], draft: &mut Draft) -> Result<(), Error> {
        let mut r = Reader::new(payload);
        match r.u8("message number")? {
            msg::GLOBAL_REQUEST => self.global_request(&mut r, draft)?,
            msg::REQUEST_SUCCESS => self.global_reply(true, r.rest(), draft),
            msg::REQUEST_FAILURE => self.global_reply(false, &[], draft),
            msg::CHANNEL_OPEN => self.open(&mut r, draft)?,
            msg::CHANNEL_OPEN_CONFIRMATION => self.confirmed(&mut r, draft)?,
            msg::CHANNEL_OPEN_FAILURE => self.open_failed(&mut r, draft)?,
            msg::CHANNEL_WINDOW_ADJUST => self.adjusted(&mut r, draft)?,
            msg::CHANNEL_DATA | msg::CHANNEL_EXTENDED_DATA => self.data(payload, draft)?,
            msg::CHANNEL_EOF => self.ended(&mut r, draft)?,
            msg::CHANNEL_CLOSE => self.closed(&mut r, draft)?,
            msg::CHANNEL_REQUEST => self.requested(&mut r, draft)?,
            msg::CHANNEL_SUCCESS => self.replied(&mut r, true, draft)?,
            msg::CHANNEL_FAILURE => self.replied(&mut r, false, draft)?,
            n => return Err(misbehaved(format!("peer sent message {n} instead of a channel's"))),
        }
        Ok(())
    }

    /// CHANNEL_OPEN: refused here, or entered and left to the caller.
    fn open(&mut self, r: &mut Reader<'_>, draft: &mut Draft) -> Result<(), Error> {
        let open = m::Open::read(r)?;
        #[cfg(feature = "none")]
        self.check_open(open.kind)?;
        if open.kind == "session" && self.no_more_sessions {
            return Err(misbehaved("peer opened a session after it promised to open no more"));
        }
        if let Some((reason, text)) = self.refusal(&open) {
            let (recipient, reason, text) = (open.sender, reason as u32, text.to_owned());
            draft.send(m::OpenFailure { recipient, reason, text }.write());
            return Ok(());
        }
        if open.kind == "session" {
            r.end("CHANNEL_OPEN")?;
        }
        if let Some(id) = self.enter(Channel::new(Stage::Asked, open.sender, 0)) {
            let grant =
                Grant { remote: open.sender, max_packet: open.max_packet, window: open.window };
            draft.event(Event::OpenRequested { id, kind: open.kind.to_owned(), grant });
        }
        Ok(())
    }

    /// Why a channel is refused without asking anybody: C5, C2, C4.
    fn refusal(&self, open: &m::Open<'_>) -> Option<(OpenReason, &'static str)> {
        if !self.limits.accepts.contains(&open.kind) {
            Some((OpenReason::UnknownChannelType, "channel type not offered"))
        } else if open.max_packet == 0 {
            Some((OpenReason::ConnectFailed, "maximum packet of 0 bytes"))
        } else if self.table.len() >= self.limits.channels {
            Some((OpenReason::ResourceShortage, "too many channels"))
        } else {
            None
        }
    }

    fn confirmed(&mut self, r: &mut Reader<'_>, draft: &mut Draft) -> Result<(), Error> {
        let sent = m::Confirmation::read(r)?;
        let channel = self.in_stage(sent.recipient, Stage::Opening)?;
        // C2: nothing could ever be sent, and a loop that tries would spin.
        if sent.max_packet == 0 {
            return Err(misbehaved("peer opened a channel with a maximum packet of 0 bytes"));
        }
        if channel.remote != sent.sender {
            // What was requested ahead went to another number: see `ahead`.
            channel.awaited = 0;
        }
        channel.stage = Stage::Open;
        channel.remote = sent.sender;
        let grant = Grant { remote: sent.sender, max_packet: sent.max_packet, window: sent.window };
        draft.event(Event::Opened { id: LocalId(sent.recipient), grant });
        Ok(())
    }

    fn open_failed(&mut self, r: &mut Reader<'_>, draft: &mut Draft) -> Result<(), Error> {
        let failure = m::OpenFailure::read(r)?;
        self.in_stage(failure.recipient, Stage::Opening)?;
        self.table.remove(&failure.recipient);
        let (id, reason, text) = (LocalId(failure.recipient), failure.reason, failure.text);
        draft.event(Event::OpenFailed { id, reason, text });
        Ok(())
    }

    /// A WINDOW_ADJUST for a channel that is gone is dropped, as OpenSSH does: some peers credit
    /// what they read after they have sent CLOSE.
    fn adjusted(&mut self, r: &mut Reader<'_>, draft: &mut Draft) -> Result<(), Error> {
        let (recipient, credit) = m::read_adjust(r)?;
        if self.talking(recipient) {
            draft.event(Event::Adjusted { id: LocalId(recipient), credit });
        }
        Ok(())
    }

    /// Data of a channel that is not routed, or that the caller of a routed one passed on.
    fn data(&mut self, payload: &[u8], draft: &mut Draft) -> Result<(), Error> {
        let head = data::split(payload)?;
        let body = payload.get(head.body).unwrap_or_default();
        let len = u32::try_from(body.len()).unwrap_or(u32::MAX);
        let role = self.role;
        let channel = self.receiving(head.recipient, Step::Data)?;
        channel.debit(len)?;
        if channel.sent == Half::Closed || len == 0 {
            return Ok(());
        }
        let (id, code) = (LocalId(head.recipient), head.code);
        if is_wanted(role, code) || channel.window.is_none() {
            draft.event(Event::Data { id, code, data: body.to_vec() });
        } else {
            // C7: what is thrown away is credited all the same, or the channel would dry up.
            self.credit(id, len, draft);
        }
        Ok(())
    }

    fn ended(&mut self, r: &mut Reader<'_>, draft: &mut Draft) -> Result<(), Error> {
        let recipient = m::read_short(r)?;
        if self.has_ended(recipient) {
            return Ok(());
        }
        let channel = self.receiving(recipient, Step::Eof)?;
        if channel.sent != Half::Closed {
            draft.event(Event::Eof { id: LocalId(recipient) });
        }
        Ok(())
    }

    /// Whether the peer has said EOF, and no CLOSE. RFC 4254 does not say what a second EOF is; Go's
    /// SFTP client sends one when it closes what its user has closed, and OpenSSH takes no notice.
    fn has_ended(&self, recipient: u32) -> bool {
        let channel = self.table.get(&recipient);
        channel.is_some_and(|c| c.stage == Stage::Open && c.received == Half::Eof)
    }

    /// Our own CLOSE is for the caller to send, after its senders have stopped.
    fn closed(&mut self, r: &mut Reader<'_>, draft: &mut Draft) -> Result<(), Error> {
        let id = LocalId(m::read_short(r)?);
        self.receiving(id.0, Step::Close)?;
        self.forget_if_gone(id);
        draft.event(Event::Closed { id });
        Ok(())
    }

    fn requested(&mut self, r: &mut Reader<'_>, draft: &mut Draft) -> Result<(), Error> {
        let recipient = r.u32("recipient channel")?;
        let name = r.text("channel request")?;
        let want_reply = r.bool("want reply")?;
        #[cfg(feature = "none")]
        self.check_request(name)?;
        let role = self.role;
        let channel = self.receiving(recipient, Step::Talk)?;
        let request = Request::read(role, name, r)?;
        if channel.sent == Half::Closed {
            return Ok(());
        }
        let id = LocalId(recipient);
        match request {
            Some(Request::ExitStatus(status)) => draft.event(Event::ExitStatus { id, status }),
            Some(Request::ExitSignal { name, core, text }) => {
                draft.event(Event::ExitSignal { id, name, core, text });
            }
            Some(Request::EndOfWrite) => draft.event(Event::EndOfWrite { id }),
            Some(Request::Keepalive) | None => {}
            Some(request) => {
                draft.event(Event::Request { id, request, want_reply });
                return channel.owe(want_reply, Owed::ByCaller);
            }
        }
        // What asks for nothing that is ours to decide is refused, in its turn.
        channel.owe(want_reply, Owed::Refusal)?;
        channel.send_refusals(draft);
        Ok(())
    }

    /// C6: a reply that nobody waits for is dropped.
    fn replied(&mut self, r: &mut Reader<'_>, ok: bool, draft: &mut Draft) -> Result<(), Error> {
        let recipient = m::read_short(r)?;
        if !self.talking(recipient) {
            return Ok(());
        }
        if let Some(channel) = self.table.get_mut(&recipient).filter(|c| c.awaited > 0) {
            channel.awaited = channel.awaited.saturating_sub(1);
            draft.event(Event::Reply { id: LocalId(recipient), ok });
        }
        Ok(())
    }

    /// The channel, if the peer may take `step` on it; it has been taken.
    fn receiving(&mut self, recipient: u32, step: Step) -> Result<&mut Channel, Error> {
        let channel = self.in_stage(recipient, Stage::Open)?;
        channel.received = channel.received.after(step).ok_or_else(|| {
            misbehaved(format!("peer sent {step:?} on channel {recipient} after ending it"))
        })?;
        Ok(channel)
    }

    fn in_stage(&mut self, recipient: u32, stage: Stage) -> Result<&mut Channel, Error> {
        self.table.get_mut(&recipient).filter(|channel| channel.stage == stage).ok_or_else(|| {
            misbehaved(format!("peer spoke on channel {recipient}, which is not open"))
        })
    }

    /// Whether neither side has closed this channel.
    fn talking(&self, recipient: u32) -> bool {
        self.table.get(&recipient).is_some_and(|c| {
            c.stage == Stage::Open && c.sent != Half::Closed && c.received != Half::Closed
        })
    }
}

impl Channel {
    /// C1: not a byte beyond the window, while it is ours to count.
    fn debit(&mut self, len: u32) -> Result<(), Overrun> {
        if let Some(left) = &mut self.window {
            *left = left.checked_sub(len).ok_or(Overrun(len.saturating_sub(*left)))?;
        }
        Ok(())
    }

    fn owe(&mut self, want_reply: bool, owed: Owed) -> Result<(), Error> {
        if want_reply {
            self.owed.push_back(owed);
        }
        if self.owed.len() > MOST_OWED {
            return Err(misbehaved("peer sent too many requests without waiting for replies"));
        }
        Ok(())
    }
}

/// Plain data, and a session's standard error where it flows: to the client.
fn is_wanted(role: Role, code: Option<u32>) -> bool {
    code.is_none() || (role == Role::Client && code == Some(STDERR))
}
