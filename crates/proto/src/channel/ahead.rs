//! A channel that is asked for together with the login: the server's answers to both come at once.
//!
//! RFC 4252 section 5.1: what follows the request that succeeds "MUST be passed to the service
//! being run on top of this protocol". So the channel exists by the time its first requests are
//! read. They have to name it by the server's number, which nobody has told yet: servers count
//! from 0. By section 6 a server must disconnect over such messages if the login has not succeeded,
//! so they follow only a signature after which nothing is left to lose (`auth::client`), and go to
//! servers alone that are known to count so ([`Peer::takes_requests_ahead`]).
//!
//! [`Peer::takes_requests_ahead`]: crate::Peer::takes_requests_ahead

use super::{Channels, Purpose, Request};
use crate::draft::Draft;

/// A channel, and what is requested on it, before anybody is logged in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ahead {
    what: What,
    window: u32,
    max_packet: u32,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum What {
    /// Requests, and whether a reply is wanted.
    Session(Vec<(Request, bool)>),
    DirectTcpip {
        host: String,
        port: u16,
    },
}

impl Ahead {
    /// The number of the channel at both ends: the first one.
    pub const NUMBER: u32 = 0;
    /// Most bytes that go ahead: what fits into a first congestion window with the login. A server
    /// that refuses hangs up on the rest of more, and its answer would be lost with that.
    pub const MOST: usize = 8 * 1024;

    /// A session, into which the peer may send `window` bytes and at most `max_packet` at once,
    /// with requests and whether each wants a reply.
    pub fn session(window: u32, max_packet: u32, requests: Vec<(Request, bool)>) -> Self {
        Self { what: What::Session(requests), window, max_packet }
    }

    /// A connection that the peer makes to `host` and `port`, as it reaches them.
    pub fn direct_tcpip(window: u32, max_packet: u32, host: &str, port: u16) -> Self {
        Self { what: What::DirectTcpip { host: host.to_owned(), port }, window, max_packet }
    }

    fn purpose(&self) -> Purpose<'_> {
        match &self.what {
            What::Session(_) => Purpose::Session,
            What::DirectTcpip { host, port } => Purpose::DirectTcpip { host, port: *port },
        }
    }

    fn requests(&self) -> &[(Request, bool)] {
        match &self.what {
            What::Session(requests) => requests,
            What::DirectTcpip { .. } => &[],
        }
    }

    /// All of it, unless it is too much to be sent to somebody who may not want it; whether it was
    /// sent.
    pub(crate) fn send(&self, draft: &mut Draft) -> bool {
        let open = self.purpose().open(Self::NUMBER, self.window, self.max_packet);
        let requests = self.requests().iter().map(|(what, reply)| what.write(Self::NUMBER, *reply));
        let messages: Vec<_> = std::iter::once(open).chain(requests).collect();
        let fits = messages.iter().map(Vec::len).sum::<usize>() <= Self::MOST;
        if fits {
            messages.into_iter().for_each(|message| draft.send(message));
        }
        fits
    }
}

impl Channels {
    /// Enters what left with the login as the first channel. Should the server number it in
    /// another way, nobody waits for replies to its requests: they went astray.
    pub(crate) fn asked_ahead(&mut self, ahead: &Ahead) {
        let sent = &mut Draft::default();
        let Ok(id) = self.ask_for(ahead.purpose(), ahead.window, ahead.max_packet, sent) else {
            return;
        };
        #[cfg(feature = "none")]
        for (request, _) in ahead.requests() {
            self.may_request(request.name());
        }
        if let Some(channel) = self.table.get_mut(&id.0) {
            let replies = ahead.requests().iter().filter(|(_, want_reply)| *want_reply);
            channel.awaited = u32::try_from(replies.count()).unwrap_or(u32::MAX);
        }
    }
}
