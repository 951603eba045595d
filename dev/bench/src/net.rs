//! Net: where the two ends are, and how a command is started at each.

use crate::Options;
use crate::cases::Path;
use anyhow::{Result, bail};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};

/// A place for a client and a place for a server.
pub(crate) struct Net {
    /// Words before a command at the client's place.
    pub(crate) client: Vec<String>,
    /// Words before a command at the server's place.
    pub(crate) server: Vec<String>,
    /// The server's address.
    pub(crate) address: IpAddr,
}

impl Net {
    /// Loopback, or the emulated link of a case.
    pub(crate) fn up(_options: &Options, path: Option<Path>) -> Result<Self> {
        match path {
            None => Ok(Self::loopback()),
            Some(_) => bail!("lhbench link needs linkemu"),
        }
    }

    fn loopback() -> Self {
        Self { client: Vec::new(), server: Vec::new(), address: Ipv4Addr::LOCALHOST.into() }
    }

    /// An address at the server's place with a port nobody has now.
    pub(crate) fn free(&self) -> Result<SocketAddr> {
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port();
        Ok(SocketAddr::new(self.address, port))
    }
}
