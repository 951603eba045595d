//! Link: a connection before login, driven by one thread: identification, key exchange,
//! authentication, one message at a time. [`Link::into_session`] makes it a pipeline.

use crate::error::Error;
use crate::fd::{Fd, Wait};
use crate::figures::Ledger;
use crate::program::Program;
use crate::receiver::Receiver;
use crate::route::Routes;
use crate::rx::{Alive, Rx};
use crate::session::{Plan, Session};
use crate::tune::Tune;
use crate::tx::{Flush, Tx};
use packet::layout::MAX_PACKET;
use proto::{Connection, Effect, Ident, Outbox, Role, ident};
use std::io;
use std::sync::Arc;
use std::time::Instant;

/// Largest packet before login: RFC 4253 section 6.1 asks for 35000 bytes; a peer that nobody
/// knows yet gets no more (invariant B7).
const MAX_EARLY_PACKET: u32 = 64 * 1024;

/// A connection that one thread drives.
pub struct Link {
    tx: Arc<Tx>,
    receiver: Receiver,
    /// When something came last.
    heard: Instant,
}

impl Link {
    /// Over a connected socket, or anything that reads and writes.
    pub fn new(fd: Fd) -> Self {
        let fd = Arc::new(fd);
        Self::over(Arc::clone(&fd), fd)
    }

    /// Over two descriptors: the standard input and output that inetd or a ProxyCommand's
    /// starter gives.
    pub fn pair(read: Fd, write: Fd) -> Self {
        Self::over(Arc::new(read), Arc::new(write))
    }

    fn over(read: Arc<Fd>, write: Arc<Fd>) -> Self {
        let ledger = Arc::new(Ledger::default());
        Self {
            tx: Arc::new(Tx::new(write, Arc::clone(&ledger))),
            receiver: Receiver::new(read, MAX_EARLY_PACKET, ledger),
            heard: Instant::now(),
        }
    }

    /// The descriptor.
    pub fn fd(&self) -> &Fd {
        self.receiver.fd()
    }

    /// Queues bytes outside the packet protocol: the identification. They leave with the next
    /// [`Link::carry_out`].
    pub fn raw(&mut self, bytes: &[u8]) {
        self.tx.raw(bytes);
    }

    /// Carries out what the machines ask for; small messages leave in one segment. A peer that
    /// does not read cannot hold us up beyond the deadline.
    pub fn carry_out(
        &mut self,
        outbox: &mut Outbox,
        deadline: Option<Instant>,
    ) -> Result<(), Error> {
        let staged = self.stage(outbox);
        // Sealing tells why it fails to whoever receives: that is us.
        staged.map_err(|error| self.tx.take_fault().unwrap_or(error))?;
        self.flush(deadline)
    }

    fn stage(&mut self, outbox: &mut Outbox) -> Result<(), Error> {
        for effect in std::mem::take(&mut outbox.effects) {
            match effect {
                // One thread: nothing else could be staged meanwhile.
                Effect::Fence => {}
                Effect::Send(payload) => self.tx.message(&payload)?,
                Effect::SealWith(new) => {
                    self.tx.rekey(&new)?;
                }
                Effect::OpenWith(new) => {
                    self.receiver.rekey(&new)?;
                }
                Effect::Deflate => self.tx.deflate(),
                Effect::Inflate => self.receiver.inflate(),
            }
        }
        Ok(())
    }

    fn flush(&mut self, deadline: Option<Instant>) -> Result<(), Error> {
        match self.tx.flush(deadline.map_or(Flush::Wait, Flush::Until)) {
            Err(Error::Local(_, e)) if e.kind() == io::ErrorKind::TimedOut => {
                Err(Error::Timeout(self.heard.elapsed()))
            }
            done => done,
        }
    }

    /// The peer's identification (RFC 4253 section 4.2, B8).
    pub fn identification(
        &mut self,
        sender: Role,
        deadline: Option<Instant>,
    ) -> Result<Ident, Error> {
        loop {
            let found = ident::find(sender, self.receiver.slab().left_after(0));
            if let Some(found) = found.map_err(proto::Error::from)? {
                self.receiver.slab_mut().take(found.consumed);
                return Ok(found.ident);
            }
            self.fill(deadline)?;
        }
    }

    /// The next message: its packet's sequence number and its payload.
    pub fn message(&mut self, deadline: Option<Instant>) -> Result<(u32, Vec<u8>), Error> {
        loop {
            if let Some(mut spans) = self.receiver.frame(1)? {
                spans.open(self.receiver.slab_mut());
                spans.check()?;
                let message = spans
                    .list()
                    .first()
                    .map(|span| (span.stamp.seq, self.receiver.slab().bytes(&span.at).to_vec()));
                self.receiver.recycle(spans);
                if let Some(message) = message {
                    return Ok(message);
                }
            }
            self.fill(deadline)?;
        }
    }

    fn fill(&mut self, deadline: Option<Instant>) -> Result<(), Error> {
        let left = deadline.map(|at| at.saturating_duration_since(Instant::now()));
        if self.receiver.fill(left.map_or(Wait::Forever, Wait::For))? {
            self.heard = Instant::now();
            self.fd().acknowledge();
            Ok(())
        } else {
            Err(Error::Timeout(self.heard.elapsed()))
        }
    }

    pub(crate) fn into_halves(mut self) -> (Arc<Tx>, Receiver) {
        self.receiver.open_up(MAX_PACKET + 1024);
        (self.tx, self.receiver)
    }

    /// Starts the pipeline of a logged-in connection. The calling thread becomes the receiver
    /// by [`Rx::run`].
    pub fn into_session<P: Program>(
        self,
        connection: Connection,
        plan: Plan,
        tune: Tune,
        alive: Option<Alive>,
        program: P,
    ) -> Result<(Session, Rx<P>), Error> {
        let rule = tune.rule();
        let (session, receiver) = Session::start(self, connection, plan, tune.send_buffer())?;
        let rx = Rx::new(session.clone(), receiver, Routes::new(rule), tune, alive, program);
        Ok((session, rx))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::fd::OwnedFd;
    use std::os::unix::net::UnixStream;
    use std::time::Duration;

    /// Before login the peer's bytes wait in its own buffers, not in our memory; after it nothing
    /// of what was taken is lost.
    #[test]
    fn b7_little_is_taken_from_the_connection_before_login() {
        let (mut peer, ours) = UnixStream::pair().unwrap();
        let mut link = Link::new(Fd::from(OwnedFd::from(ours)));
        let sent: Vec<u8> = (0..u8::MAX).cycle().take(1 << 20).collect();
        let flood = sent.clone();
        let flooding = std::thread::spawn(move || peer.write_all(&flood));
        let most = MAX_EARLY_PACKET as usize + 1024;
        let deadline = Some(Instant::now() + Duration::from_secs(10));
        while link.receiver.slab().left_after(0).len() < most {
            link.fill(deadline).unwrap();
        }
        let (_, mut receiver) = link.into_halves();
        assert_eq!(receiver.slab().left_after(0), &sent[..most]);
        assert!(receiver.fill(Wait::Forever).unwrap());
        let taken = receiver.slab().left_after(0);
        assert!(taken.len() > most);
        assert_eq!(taken, &sent[..taken.len()]);
        drop(receiver);
        let _ = flooding.join().unwrap();
    }

    /// LoginGraceTime holds for a peer that asks (PING) and does not read the answers, too.
    #[test]
    fn b7_a_peer_that_does_not_read_cannot_hold_us_beyond_the_deadline() {
        let (_peer, ours) = UnixStream::pair().unwrap();
        let mut link = Link::new(Fd::from(OwnedFd::from(ours)));
        link.raw(&vec![0; 4 << 20]);
        let deadline = Some(Instant::now() + Duration::from_millis(50));
        let end = link.carry_out(&mut Outbox::new(), deadline);
        assert!(matches!(end, Err(Error::Timeout(_))), "{end:?}");
    }
}
