//! Proxy: a bad wire between a client and a server, and a server that is none.

use crate::checks::Pair;
use anyhow::Result;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::thread;

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
