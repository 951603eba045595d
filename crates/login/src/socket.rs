//! A TCP or MPTCP socket with everything set that must be before it connects.

use crate::Error;
use conf::Client;
use engine::tune::{self, Buffers};
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};

/// Socket buffers as configured.
pub fn buffers(conf: &Client) -> Buffers {
    let bytes = |size: conf::Size| size.0.and_then(|n| usize::try_from(n).ok());
    let default = Buffers::default();
    Buffers {
        receive: bytes(conf.tcp_rcv_buf),
        send: bytes(conf.tcp_snd_buf),
        most: bytes(conf.max_sock_buf).unwrap_or(default.most),
        window: bytes(conf.max_window)
            .map_or(default.window, |n| u32::try_from(n).unwrap_or(u32::MAX)),
    }
}

/// A socket that may be connected to `address`, without waiting for it.
pub(crate) fn open(conf: &Client, address: &SocketAddr) -> Result<Socket, Error> {
    let option = |option| move |why| Error::Option { option, why };
    let socket = stream(Domain::for_address(*address), conf.use_mptcp).map_err(option("socket"))?;
    if let Some(local) = &conf.bind_address {
        let found = (local.as_str(), 0).to_socket_addrs().map_err(option("BindAddress"))?;
        let mut same = found.filter(|a| a.is_ipv4() == address.is_ipv4());
        let local = same.next().ok_or(io::ErrorKind::AddrNotAvailable.into());
        let local = SockAddr::from(local.map_err(option("BindAddress"))?);
        socket.bind(&local).map_err(option("BindAddress"))?;
    }
    if conf.tcp_keep_alive {
        socket.set_keepalive(true).map_err(option("TCPKeepAlive"))?;
    }
    tune::prepare(&socket, &buffers(conf), conf.congestion_control.as_deref())
        .map_err(|(keyword, why)| Error::Option { option: keyword, why })?;
    socket.set_nonblocking(true).map_err(option("socket"))?;
    Ok(socket)
}

/// UseMPTCP: plain TCP where this kernel has no MPTCP (RFC 8684), or was told not to. A peer
/// without it makes TCP of the connection by itself.
fn stream(domain: Domain, multipath: bool) -> io::Result<Socket> {
    let open = |protocol| Socket::new(domain, Type::STREAM, Some(protocol));
    if multipath && let Ok(socket) = open(Protocol::MPTCP) {
        return Ok(socket);
    }
    open(Protocol::TCP)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::setup::configured;
    use std::net::Ipv4Addr;

    /// Effect of MaxSockBuf (D6), with the engine's own test of what it does with the figure.
    #[test]
    fn buffers_grow_no_further_than_configured() {
        let most = |setting| buffers(&configured("host", &[setting])).most;
        assert_eq!(most("MaxSockBuf=3M"), 3 << 20);
        assert_eq!(most("MaxSockBuf=auto"), Buffers::default().most);
    }

    #[test]
    fn an_option_that_cannot_be_had_is_named() {
        let server = SocketAddr::from((Ipv4Addr::LOCALHOST, 22));
        for (setting, keyword) in [
            ("CongestionControl=no-such", "CongestionControl"),
            // RFC 5737: an address of documentation, which no machine has.
            ("BindAddress=192.0.2.1", "BindAddress"),
            ("BindAddress=::1", "BindAddress"),
        ] {
            let opened = open(&configured("host", &[setting]), &server);
            let error = opened.map(drop).unwrap_err();
            assert!(matches!(error, Error::Option { option, .. } if option == keyword), "{error}");
        }
    }
}
