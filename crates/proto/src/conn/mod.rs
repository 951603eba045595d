//! A logged-in connection: the transport and its channels (RFC 4254).
//!
//! The engine's control side calls it, one thread at a time: received messages into
//! [`Connection::handle`], its own wishes into the other methods. Data of routed channels never
//! comes here.

#[cfg(feature = "none")]
mod none;
#[cfg(test)]
#[cfg(feature = "none")]
mod tests;

#[cfg(feature = "none")]
pub use none::NoSwitch;

use crate::auth::Authenticated;
use crate::channel::{Channels, Limits, LocalId, OpenReason, Purpose, Request};
use crate::draft::Draft;
use crate::{Error, Handled, Outbox, Transport};
use wire::msg::Disconnect;

/// The connection protocol on top of a transport whose user is known (invariant A2): the only
/// way to have one is an [`Authenticated`], and the only way to have that is a login.
///
/// Calls for a channel that is gone do nothing: the peer may have closed it a moment ago.
pub struct Connection {
    transport: Transport,
    channels: Channels,
    draft: Draft,
    #[cfg(feature = "none")]
    switch: none::Switch,
}

impl Connection {
    /// Takes over after login. What was asked for together with it is channel 0.
    pub fn new(login: Authenticated, limits: Limits) -> Self {
        let (transport, ahead) = login.into_parts();
        let mut connection = Self::over(transport, limits);
        ahead.iter().for_each(|ahead| connection.channels.asked_ahead(ahead));
        connection
    }

    fn over(transport: Transport, limits: Limits) -> Self {
        let channels = Channels::new(transport.role(), limits);
        Self {
            transport,
            channels,
            draft: Draft::default(),
            #[cfg(feature = "none")]
            switch: none::Switch::default(),
        }
    }

    /// One received message; `seq` is the sequence number of its packet. After an error the
    /// outbox ends with the DISCONNECT that tells the peer.
    pub fn handle(&mut self, seq: u32, payload: &[u8], out: &mut Outbox) -> Result<(), Error> {
        self.advance(seq, payload, out).inspect_err(|error| {
            self.transport.fail(error, out);
        })
    }

    fn advance(&mut self, seq: u32, payload: &[u8], out: &mut Outbox) -> Result<(), Error> {
        #[cfg(feature = "none")]
        self.look_at_channels();
        if self.transport.handle(seq, payload, out)? == Handled::Upper {
            self.channels.handle(payload, &mut self.draft)?;
            self.leave(out)?;
        }
        #[cfg(feature = "none")]
        self.go_on_switching(out)?;
        Ok(())
    }

    /// Asks for a session; [`Event::Opened`](crate::Event::Opened) or `OpenFailed` answers.
    pub fn open_session(
        &mut self,
        window: u32,
        max_packet: u32,
        out: &mut Outbox,
    ) -> Result<LocalId, Error> {
        self.ask_for(Purpose::Session, window, max_packet, out)
    }

    /// Asks the peer to connect to `host`, as it resolves it, and to pass on the data of the
    /// channel; answered as [`Connection::open_session`]. It goes with no switch to clear text
    /// (N3).
    pub fn open_direct_tcpip(
        &mut self,
        host: &str,
        port: u16,
        window: u32,
        max_packet: u32,
        out: &mut Outbox,
    ) -> Result<LocalId, Error> {
        self.ask_for(Purpose::DirectTcpip { host, port }, window, max_packet, out)
    }

    fn ask_for(
        &mut self,
        purpose: Purpose<'_>,
        window: u32,
        max_packet: u32,
        out: &mut Outbox,
    ) -> Result<LocalId, Error> {
        let id = self.channels.ask_for(purpose, window, max_packet, &mut self.draft);
        self.leave(out)?;
        id.map_err(|why| Error::Local(why.to_owned()))
    }

    /// Answers `OpenRequested`: the peer may send `window` bytes, at most `max_packet` at once.
    pub fn accept(
        &mut self,
        id: LocalId,
        window: u32,
        max_packet: u32,
        out: &mut Outbox,
    ) -> Result<(), Error> {
        self.channels.accept(id, window, max_packet, &mut self.draft);
        self.leave(out)
    }

    /// Answers `OpenRequested`: no. The channel leaves no trace.
    pub fn reject(
        &mut self,
        id: LocalId,
        reason: OpenReason,
        text: &str,
        out: &mut Outbox,
    ) -> Result<(), Error> {
        self.channels.reject(id, reason, text, &mut self.draft);
        self.leave(out)
    }

    /// Sends a request; with `want_reply` an `Event::Reply` answers, in order.
    pub fn request(
        &mut self,
        id: LocalId,
        request: &Request,
        want_reply: bool,
        out: &mut Outbox,
    ) -> Result<(), Error> {
        self.channels.request(id, request, want_reply, &mut self.draft);
        self.leave(out)
    }

    /// Answers the oldest `Event::Request` that wants a reply and has none.
    pub fn reply(&mut self, id: LocalId, ok: bool, out: &mut Outbox) -> Result<(), Error> {
        self.channels.reply(id, ok, &mut self.draft);
        self.leave(out)
    }

    /// WINDOW_ADJUST: the peer may send `bytes` more.
    pub fn credit(&mut self, id: LocalId, bytes: u32, out: &mut Outbox) -> Result<(), Error> {
        self.channels.credit(id, bytes, &mut self.draft);
        self.leave(out)
    }

    /// From now on the caller keeps this channel's data and window to itself (with
    /// [`data::split`](crate::data::split) and [`window::Recv`](crate::window::Recv)) and passes
    /// everything else here. Returns what is left of the window; `None` when the channel is gone
    /// or routed already.
    pub fn route(&mut self, id: LocalId) -> Option<u32> {
        self.channels.route(id)
    }

    /// EOF: no more of our data follows. The caller has sent it all.
    pub fn eof(&mut self, id: LocalId, out: &mut Outbox) -> Result<(), Error> {
        self.channels.eof(id, &mut self.draft);
        self.leave(out)
    }

    /// CLOSE: nothing of ours follows. Also owed after `Event::Closed`, once the caller's
    /// senders have stopped (RFC 4254 section 5.3).
    pub fn close(&mut self, id: LocalId, out: &mut Outbox) -> Result<(), Error> {
        self.channels.close(id, &mut self.draft);
        self.leave(out)
    }

    /// Sends a global request; with `want_reply` an `Event::GlobalReply` answers, in order. False
    /// if it did not leave, because 64 of ours wait for their answers already, or for what it asks
    /// beside a switch to clear text.
    pub fn global_request(
        &mut self,
        name: &str,
        data: &[u8],
        want_reply: bool,
        out: &mut Outbox,
    ) -> Result<bool, Error> {
        let left = self.channels.ask_globally(name, data, want_reply, &mut self.draft);
        self.leave(out).map(|()| left)
    }

    /// Answers the oldest `Event::GlobalRequest` that wants a reply and has none: `None` is no,
    /// anything else yes, with what the request's definition says comes with it.
    pub fn answer(&mut self, answer: Option<&[u8]>, out: &mut Outbox) -> Result<(), Error> {
        self.channels.answer_globally(answer, &mut self.draft);
        self.leave(out)
    }

    /// A request that every peer answers, if only with a failure. Does nothing while 64 wait.
    pub fn keepalive(&mut self, out: &mut Outbox) -> Result<(), Error> {
        self.global_request("keepalive@openssh.com", &[], true, out).map(drop)
    }

    /// Starts a key exchange, unless one is running.
    pub fn rekey(&mut self, out: &mut Outbox) -> Result<(), Error> {
        #[cfg(feature = "none")]
        self.look_at_channels();
        self.transport.rekey(out)
    }

    /// Ends the connection.
    pub fn disconnect(&mut self, code: Disconnect, text: &str, out: &mut Outbox) {
        self.transport.disconnect(code, text, out);
    }

    /// Channels of any kind and state. Tests and fuzz targets hold them to their bound (C4).
    pub fn channels(&self) -> usize {
        self.channels.len()
    }

    /// The transport, to look at.
    pub fn transport(&self) -> &Transport {
        &self.transport
    }

    /// The transport, to make it break rules.
    #[cfg(all(test, feature = "none"))]
    fn transport_mut(&mut self) -> &mut Transport {
        &mut self.transport
    }

    fn leave(&mut self, out: &mut Outbox) -> Result<(), Error> {
        self.draft.leave(&mut self.transport, out)
    }
}
