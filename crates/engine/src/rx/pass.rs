//! Pass: channel data without cipher and MAC goes from the socket to a pipe within the kernel.
//!
//! ```text
//! head     the head of the next packet alone is received: data for a pipe stays in the socket
//! splice   socket -> pipe, as much as both have and take at once
//! rest     what the pipe does not take comes into a slab, as everything else does
//! ```
//! So a reader that lags is waited for and held back as with any other data, and whatever is not
//! data for a pipe is received as usual.

use super::wait::PATIENCE;
use super::{Program, Rx};
use crate::error::Error;
use crate::fd::Wait;
use crate::figures::Hand;
use crate::receiver::Rest;
use rustix::event::PollFlags;
use std::io;
use std::time::{Duration, Instant};

/// Least data of a packet for which two more system calls are cheaper than the copies.
const LEAST: usize = 16 << 10;

impl<P: Program> Rx<P> {
    /// Whether what comes next may go past memory.
    pub(super) fn passes(&self) -> bool {
        match self.receiver.rest().filter(|rest| rest.data > 0) {
            Some(rest) => self.routes.passes(rest.recipient),
            None => {
                self.receiver.is_bare() && self.routes.any_passes() && !self.session.is_exchanging()
            }
        }
    }

    /// Receives the head of a packet, or moves data of one; false when the time was over.
    pub(super) fn pass(&mut self, wait: Wait, hand: &Hand) -> Result<bool, Error> {
        self.session.never_wait();
        let Some(rest) = self.receiver.rest().filter(|rest| rest.data > 0) else {
            return self.receive_head(wait);
        };
        let now = Instant::now();
        match self.routes.pass(rest.recipient, self.session.fd(), rest.data, now) {
            Ok(Some(0)) => Err(Error::Closed),
            Ok(Some(bytes)) => {
                self.receiver.passed(bytes);
                self.count(hand, now);
                Ok(true)
            }
            Ok(None) => self.wait_to_pass(rest, wait),
            Err(error) => Err(receiving(error)),
        }
    }

    fn receive_head(&mut self, wait: Wait) -> Result<bool, Error> {
        if !self.receiver.fill_head(wait)? {
            return Ok(false);
        }
        // Only padding can be left of the packet before.
        self.take_rest();
        match self.receiver.data_ahead() {
            Some((recipient, len)) if len >= LEAST && self.routes.passes(recipient) => {
                self.receiver.take_head()?;
                self.routes.expect(recipient, len)?;
                Ok(true)
            }
            None if self.receiver.lacks_head() => Ok(true),
            _ => self.receiver.fill(wait),
        }
    }

    /// The socket has nothing, or the pipe is full, or nobody reads from it any more.
    fn wait_to_pass(&mut self, rest: Rest, wait: Wait) -> Result<bool, Error> {
        let Some(pipe) = self.routes.pipe(rest.recipient) else { return Ok(true) };
        let has_room = |patience| pipe.wait(PollFlags::OUT, Some(patience));
        let behind = |e| Error::Local("wait for a sink", e);
        if has_room(Duration::ZERO).map_err(behind)? {
            return self.session.fd().wait_for(wait).map_err(receiving);
        }
        if has_room(PATIENCE).map_err(behind)? {
            return Ok(true);
        }
        self.receiver.fill(wait)
    }

    /// What is in the slab of a packet whose head was taken alone; whether that was all of it.
    pub(super) fn take_rest(&mut self) -> bool {
        if let Some((recipient, data)) = self.receiver.take_rest()
            && !data.is_empty()
        {
            self.routes.expected(recipient, data);
            self.finish_slab(None, Instant::now());
        }
        self.receiver.rest().is_none()
    }
}

fn receiving(error: io::Error) -> Error {
    Error::Local("read from the connection", error)
}
