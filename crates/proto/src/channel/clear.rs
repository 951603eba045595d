//! What a connection may carry beside its one command if its data is to travel in clear (N3):
//! nothing. Before the switch such a thing refuses the switch, afterwards it ends the connection.

use super::{Channels, misbehaved};
use crate::{Error, Role};
use crypt::Cover;

/// The client's announcement of the switch, and its confirmation (PROTOCOL.md).
pub const NONE_SWITCH: &str = "none-switch@longhaul";

/// Channel requests that give more than a command's data to whoever listens on the way.
const REQUESTS: &[&str] = &["pty-req", "x11-req", "auth-agent-req@openssh.com", "shell"];
/// What starts the one command.
const STARTS: &[&str] = &["exec", "subsystem"];
/// What makes the command another one: nothing that whoever sits on the way may say.
const DECIDES: &[&str] = &["exec", "subsystem", "env"];
/// Global requests of the same kind.
const GLOBAL: &[&str] = &["tcpip-forward", "streamlocal-forward@openssh.com"];

/// How far the channels keep to it.
#[derive(Debug, Default)]
pub(super) struct Restraint {
    /// There was something that does not go with clear text.
    spoiled: bool,
    /// From now on there must not be.
    bound: bool,
    /// The one command was asked for.
    started: bool,
    /// Nothing tells the peer's words from those of whoever sits on the way.
    bare: bool,
    /// Policy lets the client switch; with the NONE MAC, too.
    permitted: Option<bool>,
    /// The client was told so just now, with or without the NONE MAC.
    agreed: Option<bool>,
    /// The server's answer to our own announcement.
    answered: Option<bool>,
}

impl Restraint {
    fn forbids(&self, name: &str) -> bool {
        REQUESTS.contains(&name) || (self.bare && DECIDES.contains(&name))
    }

    /// Something that does not go with clear text.
    fn spoil(&mut self, what: &str) -> Result<(), Error> {
        self.spoiled = true;
        match self.bound {
            true => Err(misbehaved(format!("{what} on a connection without encryption"))),
            false => Ok(()),
        }
    }
}

impl Channels {
    /// At most one channel so far, and nothing beside its command.
    pub(crate) fn is_quiet(&self) -> bool {
        !self.restraint.spoiled && self.next <= 1
    }

    /// The command was asked for while nobody on the way could choose another one.
    pub(crate) fn has_started(&self) -> bool {
        self.restraint.started
    }

    /// Data travels like this now.
    pub(crate) fn uncover(&mut self, cover: Cover) {
        self.bind();
        self.restraint.bare = !cover.is_authenticated();
    }

    /// From now on it stays like that.
    pub(crate) fn bind(&mut self) {
        self.restraint.bound = true;
    }

    /// The switch will not come.
    pub(crate) fn unbind(&mut self) {
        self.restraint.bound = false;
    }

    /// Server: a client may ask for the switch; with the NONE MAC, too, if `mac`.
    pub(crate) fn permit_switch(&mut self, mac: bool) {
        self.restraint.permitted = Some(mac);
    }

    /// Server: what was agreed on by the message that was handled last.
    pub(crate) fn take_agreed(&mut self) -> Option<bool> {
        self.restraint.agreed.take()
    }

    /// Client: what the server said in the message that was handled last.
    pub(crate) fn take_answered(&mut self) -> Option<bool> {
        self.restraint.answered.take()
    }

    /// A channel is asked for, by either side.
    pub(super) fn check_open(&mut self, kind: &str) -> Result<(), Error> {
        match kind == "session" && self.next == 0 && self.role == Role::Server {
            true => Ok(()),
            false => self.restraint.spoil("peer asked for another channel"),
        }
    }

    /// A channel request, by its name.
    pub(super) fn check_request(&mut self, name: &str) -> Result<(), Error> {
        if self.restraint.forbids(name) {
            return self.restraint.spoil(&format!("peer asked for {name}"));
        }
        self.restraint.started |= STARTS.contains(&name);
        Ok(())
    }

    /// A request of our own; false if it may not leave.
    pub(super) fn may_request(&mut self, name: &str) -> bool {
        self.check_request(name).is_ok()
    }

    /// A channel of our own; false if it may not be. Anything but a command's is too much.
    pub(super) fn may_open(&mut self, kind: &str) -> bool {
        match kind {
            "session" => !self.restraint.bound || self.next == 0,
            _ => self.restraint.spoil("we asked for a forward").is_ok(),
        }
    }

    /// A global request, by its name.
    pub(super) fn check_global(&mut self, name: &str) -> Result<(), Error> {
        match GLOBAL.contains(&name) {
            true => self.restraint.spoil(&format!("peer asked for {name}")),
            false => Ok(()),
        }
    }

    /// A global request of our own; false if it may not leave.
    pub(super) fn may_ask(&mut self, name: &str) -> bool {
        self.check_global(name).is_ok()
    }

    /// Server: the announcement; whether it is confirmed. From then on the client is bound.
    pub(super) fn announced(&mut self, data: &[u8]) -> bool {
        let mac = match data {
            [0] => false,
            [1] => true,
            _ => return false,
        };
        let allowed = self.restraint.permitted.is_some_and(|also_mac| also_mac || !mac);
        let yes = allowed && self.is_quiet();
        if yes {
            self.restraint.agreed = Some(mac);
            self.bind();
        }
        yes
    }

    /// Client: the server's answer to our announcement.
    pub(super) fn confirmed_switch(&mut self, ok: bool) {
        self.restraint.answered = Some(ok);
    }
}
