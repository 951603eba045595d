//! Global requests (RFC 4254 section 4), a row each, and the replies to ours.
//!
//! Every one is answered at once, so the answers are in order. A request that our caller should
//! answer one day is a row with an effect of its own.

use super::Channels;
use crate::draft::Draft;
use crate::{Error, Event, Role};
use wire::{Reader, Writer, msg};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Effect {
    /// Without effect here; refused as anything unknown is.
    Refuse,
    NoMoreSessions,
}

/// Name, who acts on it, what it does. What has no row is refused.
const ROWS: &[(&str, Role, Effect)] = &[
    // OpenSSH PROTOCOL section 2.5; learning new host keys is not ours.
    ("hostkeys-00@openssh.com", Role::Client, Effect::Refuse),
    // A failure answers it as well as a success; OpenSSH sends the same.
    ("keepalive@openssh.com", Role::Client, Effect::Refuse),
    ("keepalive@openssh.com", Role::Server, Effect::Refuse),
    // OpenSSH PROTOCOL section 2.2.
    ("no-more-sessions@openssh.com", Role::Server, Effect::NoMoreSessions),
];

impl Channels {
    pub(super) fn global_request(
        &mut self,
        r: &mut Reader<'_>,
        draft: &mut Draft,
    ) -> Result<(), Error> {
        let name = r.text("global request")?;
        let want_reply = r.bool("want reply")?;
        let row = ROWS.iter().find(|(known, role, _)| *known == name && *role == self.role);
        let answer = match row.map_or(Effect::Refuse, |(_, _, effect)| *effect) {
            Effect::Refuse => msg::REQUEST_FAILURE,
            Effect::NoMoreSessions => {
                self.no_more_sessions = true;
                msg::REQUEST_SUCCESS
            }
        };
        if want_reply {
            draft.send(vec![answer]);
        }
        Ok(())
    }

    /// RFC 4254 section 4: replies come in the order of the requests. Invariant C6: one that
    /// nobody waits for is dropped.
    pub(super) fn global_reply(&mut self, ok: bool, data: &[u8], draft: &mut Draft) {
        if let Some(name) = self.asked.pop_front() {
            draft.event(Event::GlobalReply { name, ok, data: data.to_vec() });
        }
    }

    /// Sends a global request.
    pub(crate) fn ask_globally(
        &mut self,
        name: &str,
        data: &[u8],
        want_reply: bool,
        draft: &mut Draft,
    ) {
        let mut w = Writer::message(msg::GLOBAL_REQUEST);
        draft.send(w.string(name).bool(want_reply).raw(data).take());
        if want_reply {
            self.asked.push_back(name.to_owned());
        }
    }
}
