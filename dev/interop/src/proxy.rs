//! Proxy: a bad wire between a client and a server, and a server that is none.

use crate::checks::Pair;
use anyhow::Result;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

/// Which way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// From the client.
    Up,
    /// From the server.
    Down,
}

impl Pair {
    /// From now on the client meets `serve` at every connection, in place of its server.
    pub fn divert(&mut self, serve: impl Fn(TcpStream) + Send + 'static) -> Result<()> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        self.server.port = listener.local_addr()?.port();
        self.server.known_hosts = self.lab.know_host(self.server.port)?;
        thread::spawn(move || listener.incoming().flatten().for_each(serve));
        Ok(())
    }

    /// From now on the bit after the first `after` bytes one way arrives wrong.
    pub fn flip(&mut self, way: Way, after: u64) -> Result<()> {
        let port = self.server.port;
        self.divert(move |client| {
            let Ok(server) = TcpStream::connect((Ipv4Addr::LOCALHOST, port)) else { return };
            let (up, down) = match way {
                Way::Up => (Some(after), None),
                Way::Down => (None, Some(after)),
            };
            let (Ok(from), Ok(to)) = (client.try_clone(), server.try_clone()) else { return };
            thread::spawn(move || carry(from, to, up));
            thread::spawn(move || carry(server, client, down));
        })
    }
}

impl Pair {
    /// From now on the server hears of each connection's first `flights` flights of the client, and
    /// the answer to the last is lost: the connection ends as soon as `done` says so. Counts the
    /// connections.
    pub fn lose_answer(
        &mut self,
        flights: usize,
        done: impl Fn() -> bool + Send + 'static,
    ) -> Result<Arc<AtomicUsize>> {
        let port = self.server.port;
        let met = Arc::new(AtomicUsize::new(0));
        let connections = Arc::clone(&met);
        self.divert(move |mut client| {
            met.fetch_add(1, Ordering::SeqCst);
            let Ok(mut server) = TcpStream::connect((Ipv4Addr::LOCALHOST, port)) else { return };
            let (Ok(from), Ok(to)) = (server.try_clone(), client.try_clone()) else { return };
            let answered = Arc::new(AtomicBool::new(true));
            let muted = Arc::new(AtomicBool::new(false));
            let hears = (Arc::clone(&answered), Arc::clone(&muted));
            let down = thread::spawn(move || answers(from, to, &hears));
            let (mut bytes, mut sent) = (vec![0; 64 << 10], 0);
            while let Ok(n @ 1..) = client.read(&mut bytes) {
                sent += usize::from(answered.swap(false, Ordering::SeqCst));
                muted.store(sent == flights, Ordering::SeqCst);
                let _ = server.write_all(bytes.get(..n).unwrap_or_default());
                if sent == flights {
                    while !done() {
                        thread::sleep(Duration::from_millis(5));
                    }
                    break;
                }
            }
            let _ = (client.shutdown(Shutdown::Both), server.shutdown(Shutdown::Both));
            let _ = down.join();
        })?;
        Ok(connections)
    }
}

/// The server's bytes for the client, unless they are to be lost.
fn answers(mut from: TcpStream, mut to: TcpStream, (answered, muted): &(Flag, Flag)) {
    let mut bytes = vec![0; 64 << 10];
    while let Ok(n @ 1..) = from.read(&mut bytes) {
        if !muted.load(Ordering::SeqCst) {
            answered.store(true, Ordering::SeqCst);
            let _ = to.write_all(bytes.get(..n).unwrap_or_default());
        }
    }
}

type Flag = Arc<AtomicBool>;

/// Bytes from one to the other, with one bit flipped; the end of file too.
fn carry(mut from: TcpStream, mut to: TcpStream, flip: Option<u64>) {
    let mut bytes = vec![0; 64 << 10];
    let mut left = flip;
    while let Ok(n @ 1..) = from.read(&mut bytes) {
        if let Some(at) = left {
            let here = usize::try_from(at).ok().filter(|at| *at < n);
            if let Some(byte) = here.and_then(|at| bytes.get_mut(at)) {
                *byte ^= 1;
            }
            left = at.checked_sub(n as u64);
        }
        if to.write_all(bytes.get(..n).unwrap_or_default()).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Write);
    let _ = from.shutdown(Shutdown::Read);
}
