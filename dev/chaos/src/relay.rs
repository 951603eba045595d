//! Relay: between the copier and the server's port. It counts what passes, which is what was really
//! sent, and cuts connections as a network does that has had enough of them.

use anyhow::Result;
use socket2::SockRef;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// A port that leads to another one.
#[derive(Debug)]
pub struct Relay {
    /// Where it listens, on 127.0.0.1.
    pub port: u16,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    /// Bytes towards the server, and from it.
    passed: [AtomicU64; 2],
    open: Mutex<Vec<TcpStream>>,
}

impl Relay {
    /// Listens, and leads to `port`.
    pub fn to(port: u16) -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let own = listener.local_addr()?.port();
        let shared = Arc::new(Shared::default());
        let relay = Self { port: own, shared: Arc::clone(&shared) };
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                // A server that is away: the client meets a connection that ends at once.
                let _ = shared.take_on(client, port);
            }
        });
        Ok(relay)
    }

    /// Bytes that went to the server and came from it, SSH's share included.
    #[must_use]
    pub fn passed(&self) -> [u64; 2] {
        self.shared.passed.each_ref().map(|count| count.load(Ordering::Relaxed))
    }

    /// Ends connections with a reset: those that `choose` says yes to.
    pub fn cut(&self, mut choose: impl FnMut() -> bool) {
        let mut open = self.shared.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|stream| {
            if !choose() {
                return true;
            }
            let _ = SockRef::from(stream).set_linger(Some(Duration::ZERO));
            let _ = stream.shutdown(Shutdown::Both);
            false
        });
    }
}

impl Shared {
    fn take_on(self: &Arc<Self>, client: TcpStream, port: u16) -> Result<()> {
        let server = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
        client.set_nodelay(true)?;
        server.set_nodelay(true)?;
        self.open.lock().unwrap_or_else(PoisonError::into_inner).push(client.try_clone()?);
        for (way, from, to) in [(0, client.try_clone()?, server.try_clone()?), (1, server, client)]
        {
            let shared = Arc::clone(self);
            thread::spawn(move || shared.carry(from, to, way));
        }
        Ok(())
    }

    /// What is read is counted, whether or not it arrives: it was sent.
    fn carry(&self, mut from: TcpStream, mut to: TcpStream, way: usize) {
        let mut bytes = vec![0; 256 << 10];
        while let Ok(n @ 1..) = from.read(&mut bytes) {
            self.passed[way].fetch_add(n as u64, Ordering::Relaxed);
            if to.write_all(bytes.get(..n).unwrap_or_default()).is_err() {
                break;
            }
        }
        let _ = to.shutdown(Shutdown::Write);
        let _ = from.shutdown(Shutdown::Read);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_passes_is_counted_and_what_is_cut_ends() {
        let server = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let relay = Relay::to(server.local_addr().unwrap().port()).unwrap();
        let mut client = TcpStream::connect((Ipv4Addr::LOCALHOST, relay.port)).unwrap();
        let (mut served, _) = server.accept().unwrap();
        client.write_all(b"hello").unwrap();
        served.read_exact(&mut [0; 5]).unwrap();
        assert_eq!(relay.passed(), [5, 0]);
        relay.cut(|| true);
        assert!(matches!(client.read(&mut [0; 1]), Ok(0) | Err(_)));
        assert!(matches!(served.read(&mut [0; 1]), Ok(0) | Err(_)));
    }
}
