//! Call-off: ends logins from outside once nobody needs them.
//!
//! ```text
//! hold   the login's thread   its socket is known while it connects and logs in
//! call   any thread           every socket that is held is shut down, and every one to come
//! ```
//! A shutdown ends whatever the login waits for, at both ends, and nobody else's descriptor.

use rustix::net::{Shutdown, shutdown};
use std::collections::BTreeMap;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Ends the logins that were given a clone of it. What waits for a name server, or for a question to
/// the user, ends when that does.
#[derive(Debug, Clone, Default)]
pub struct CallOff(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    called: bool,
    next: u64,
    sockets: BTreeMap<u64, OwnedFd>,
}

impl CallOff {
    /// No login is needed any more.
    pub fn call(&self) {
        let mut state = self.lock();
        state.called = true;
        std::mem::take(&mut state.sockets).values().for_each(end);
    }

    /// Whether that was said.
    #[must_use]
    pub fn is_called(&self) -> bool {
        self.lock().called
    }

    /// Makes a connected or connecting socket one that [`CallOff::call`] ends. If the system has no
    /// descriptor left, the login takes the time it takes.
    pub(crate) fn hold(&self, socket: &impl AsFd) -> Held {
        let mut state = self.lock();
        let id = state.next;
        state.next += 1;
        match socket.as_fd().try_clone_to_owned() {
            Ok(socket) if state.called => end(&socket),
            Ok(socket) => drop(state.sockets.insert(id, socket)),
            Err(_) => {}
        }
        Held { off: self.clone(), id }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn end(socket: &OwnedFd) {
    // One that has ended already needs no end.
    let _ = shutdown(socket, Shutdown::Both);
}

/// A socket is held while this lives.
#[derive(Debug)]
pub(crate) struct Held {
    off: CallOff,
    id: u64,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.off.lock().sockets.remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;

    #[test]
    fn sockets_that_are_held_end_and_others_do_not() {
        let off = CallOff::default();
        let pair = || UnixStream::pair().unwrap();
        let ((mut before, _a), (mut after, _b), (mut free, mut peer)) = (pair(), pair(), pair());
        let _held = off.hold(&before);
        drop(off.hold(&free));
        assert!(!off.is_called());
        off.clone().call();
        let _late = off.hold(&after);
        assert!(off.is_called());
        assert_eq!(before.read(&mut [0]).unwrap(), 0);
        assert_eq!(after.read(&mut [0]).unwrap(), 0);
        peer.write_all(b"x").unwrap();
        assert_eq!(free.read(&mut [0]).unwrap(), 1);
    }
}
