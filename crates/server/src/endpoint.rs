//! The two ends of a connection, as the log and the commands' environment name them.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsFd;

/// Where a connection comes from and where it arrived; unknown for pipes.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Endpoints {
    peer: Option<SocketAddr>,
    local: Option<SocketAddr>,
}

impl Endpoints {
    /// Asks the socket, if it is one.
    pub(crate) fn of(fd: impl AsFd) -> Self {
        let fd = fd.as_fd();
        let socket = socket2::SockRef::from(&fd);
        let address = |a: std::io::Result<socket2::SockAddr>| Some(canonical(a.ok()?.as_socket()?));
        Self { peer: address(socket.peer_addr()), local: address(socket.local_addr()) }
    }

    /// The client's address and port as the log has them.
    pub(crate) fn peer(&self) -> (String, u16) {
        (ip(self.peer), port(self.peer))
    }

    /// The client's address.
    pub(crate) fn peer_ip(&self) -> Option<IpAddr> {
        self.peer.map(|peer| peer.ip())
    }

    /// Where the client connected to.
    pub(crate) fn local(&self) -> Option<SocketAddr> {
        self.local
    }

    /// `SSH_CLIENT`: client's address and port, our port.
    pub(crate) fn ssh_client(&self) -> String {
        format!("{} {}", words(self.peer), port(self.local))
    }

    /// `SSH_CONNECTION`: client's address and port, our address and port.
    pub(crate) fn ssh_connection(&self) -> String {
        format!("{} {}", words(self.peer), words(self.local))
    }
}

/// `192.0.2.7 port 50022`: the client, as sshd's log has it.
impl fmt::Display for Endpoints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} port {}", ip(self.peer), port(self.peer))
    }
}

/// What sshd puts where there is no socket.
const UNKNOWN: (&str, u16) = ("UNKNOWN", 65535);

fn ip(address: Option<SocketAddr>) -> String {
    address.map_or_else(|| UNKNOWN.0.to_owned(), |address| address.ip().to_string())
}

fn port(address: Option<SocketAddr>) -> u16 {
    address.map_or(UNKNOWN.1, |address| address.port())
}

fn words(address: Option<SocketAddr>) -> String {
    format!("{} {}", ip(address), port(address))
}

/// An IPv4 client of an IPv6 socket is an IPv4 client.
fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ends_are_named_as_sshd_names_them() {
        let ends = Endpoints {
            peer: Some(canonical("[::ffff:192.0.2.7]:50022".parse().unwrap())),
            local: "192.0.2.1:22".parse().ok(),
        };
        assert_eq!(ends.to_string(), "192.0.2.7 port 50022");
        assert_eq!(ends.ssh_client(), "192.0.2.7 50022 22");
        assert_eq!(ends.ssh_connection(), "192.0.2.7 50022 192.0.2.1 22");
    }

    #[test]
    fn without_a_socket_the_ends_are_unknown() {
        let ends = Endpoints::of(std::fs::File::open("/dev/null").unwrap());
        assert_eq!(ends.to_string(), "UNKNOWN port 65535");
        assert_eq!(ends.peer_ip(), None);
    }
}
