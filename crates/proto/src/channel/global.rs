//! Global requests (RFC 4254 section 4) and the replies to them, both ways.
//!
//! ```text
//! ours     ask_globally      -> a place in `asked`    reply -> Event::GlobalReply
//! theirs   a row, or unknown -> answered here
//!          one of `answers`  -> Event::GlobalRequest  answer_globally -> reply
//! ```
//! A reply has no number, only its place in the order, so an answer that is ready waits in `due`
//! behind one that our caller has not given yet.

use super::{Channels, misbehaved};
use crate::draft::Draft;
use crate::{Error, Event, Role};
use wire::{Reader, Writer, msg};

/// Requests that may wait for our caller. Programs answer on the spot.
const MOST_DUE: usize = 64;

/// Requests of ours that may wait for the peer. Whoever asks again and again while it is mute would
/// otherwise ask for ever.
const MOST_ASKED: usize = 64;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Effect {
    /// Without effect here; refused as anything unknown is.
    Refuse,
    NoMoreSessions,
    #[cfg(feature = "none")]
    NoneSwitch,
}

/// Name, who acts on it, what it does. What has no row and no caller that answers it is refused.
const ROWS: &[(&str, Role, Effect)] = &[
    // OpenSSH PROTOCOL section 2.5; learning new host keys is not ours.
    ("hostkeys-00@openssh.com", Role::Client, Effect::Refuse),
    // A failure answers it as well as a success; OpenSSH sends the same.
    ("keepalive@openssh.com", Role::Client, Effect::Refuse),
    ("keepalive@openssh.com", Role::Server, Effect::Refuse),
    // OpenSSH PROTOCOL section 2.2.
    ("no-more-sessions@openssh.com", Role::Server, Effect::NoMoreSessions),
    #[cfg(feature = "none")]
    (super::NONE_SWITCH, Role::Server, Effect::NoneSwitch),
];

/// A reply that has not been sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Due {
    /// Our caller decides.
    ByCaller,
    /// This message, as soon as its turn comes.
    Ready(u8),
}

impl Channels {
    pub(super) fn global_request(
        &mut self,
        r: &mut Reader<'_>,
        draft: &mut Draft,
    ) -> Result<(), Error> {
        let name = r.text("global request")?;
        let want_reply = r.bool("want reply")?;
        #[cfg(feature = "none")]
        self.check_global(name)?;
        if want_reply && self.due.len() >= MOST_DUE {
            return Err(misbehaved("peer sent too many global requests without waiting"));
        }
        let due = if self.limits.answers.contains(&name) {
            let (name, data) = (name.to_owned(), r.rest().to_vec());
            draft.event(Event::GlobalRequest { name, data, want_reply });
            Due::ByCaller
        } else {
            Due::Ready(self.take_effect(name, r.rest()))
        };
        if want_reply {
            self.due.push_back(due);
            self.send_ready(draft);
        }
        Ok(())
    }

    /// What a row says; the number of the reply.
    #[cfg_attr(not(feature = "none"), allow(unused_variables, reason = "no other row reads it"))]
    fn take_effect(&mut self, name: &str, data: &[u8]) -> u8 {
        let row = ROWS.iter().find(|(known, role, _)| *known == name && *role == self.role);
        match row.map_or(Effect::Refuse, |(_, _, effect)| *effect) {
            Effect::Refuse => msg::REQUEST_FAILURE,
            Effect::NoMoreSessions => {
                self.no_more_sessions = true;
                msg::REQUEST_SUCCESS
            }
            #[cfg(feature = "none")]
            Effect::NoneSwitch if self.announced(data) => msg::REQUEST_SUCCESS,
            #[cfg(feature = "none")]
            Effect::NoneSwitch => msg::REQUEST_FAILURE,
        }
    }

    /// The replies that nothing keeps back.
    fn send_ready(&mut self, draft: &mut Draft) {
        while let Some(Due::Ready(number)) = self.due.front() {
            draft.send(vec![*number]);
            self.due.pop_front();
        }
    }

    /// Answers the oldest request that waits for it: `None` is no. Does nothing if none does.
    pub(crate) fn answer_globally(&mut self, answer: Option<&[u8]>, draft: &mut Draft) {
        if self.due.front() != Some(&Due::ByCaller) {
            return;
        }
        self.due.pop_front();
        draft.send(match answer {
            Some(data) => Writer::message(msg::REQUEST_SUCCESS).raw(data).take(),
            None => vec![msg::REQUEST_FAILURE],
        });
        self.send_ready(draft);
    }

    /// RFC 4254 section 4: replies come in the order of the requests. Invariant C6: one that
    /// nobody waits for is dropped.
    pub(super) fn global_reply(&mut self, ok: bool, data: &[u8], draft: &mut Draft) {
        if let Some(name) = self.asked.pop_front() {
            #[cfg(feature = "none")]
            if name == super::NONE_SWITCH {
                return self.confirmed_switch(ok);
            }
            draft.event(Event::GlobalReply { name, ok, data: data.to_vec() });
        }
    }

    /// Sends a global request; false if it may not leave.
    pub(crate) fn ask_globally(
        &mut self,
        name: &str,
        data: &[u8],
        want_reply: bool,
        draft: &mut Draft,
    ) -> bool {
        #[cfg(feature = "none")]
        if !self.may_ask(name) {
            return false;
        }
        if want_reply && self.asked.len() >= MOST_ASKED {
            return false;
        }
        let mut w = Writer::message(msg::GLOBAL_REQUEST);
        draft.send(w.string(name).bool(want_reply).raw(data).take());
        if want_reply {
            self.asked.push_back(name.to_owned());
        }
        true
    }
}
