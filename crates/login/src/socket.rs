//! A TCP or MPTCP socket with everything set that must be before it connects.

use crate::Error;
use conf::Client;
use engine::tune::Buffers;
use engine::tune::socket::{self, Options};
use socket2::{SockAddr, Socket};
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};

/// Socket buffers as configured.
pub fn buffers(conf: &Client) -> Buffers {
    let default = Buffers::default();
    Buffers {
        receive: conf.tcp_rcv_buf.bytes(),
        send: conf.tcp_snd_buf.bytes(),
        most: conf.max_sock_buf.bytes().unwrap_or(default.most),
        window: conf.max_window.window().unwrap_or(default.window),
    }
}

/// A socket that may be connected to `address`, without waiting for it.
pub(crate) fn open(conf: &Client, address: &SocketAddr) -> Result<Socket, Error> {
    let option = |option| move |why| Error::Option { option, why };
    let socket = socket::open(address, conf.use_mptcp).map_err(option("socket"))?;
    let socket = Socket::from(socket);
    if let Some(local) = &conf.bind_address {
        let found = (local.as_str(), 0).to_socket_addrs().map_err(option("BindAddress"))?;
        let mut same = found.filter(|a| a.is_ipv4() == address.is_ipv4());
        let local = same.next().ok_or(io::ErrorKind::AddrNotAvailable.into());
        let local = SockAddr::from(local.map_err(option("BindAddress"))?);
        socket.bind(&local).map_err(option("BindAddress"))?;
    }
    let options = Options {
        buffers: buffers(conf),
        keep_alive: conf.tcp_keep_alive,
        congestion: conf.congestion_control.as_deref(),
    };
    socket::prepare(&socket, &options).map_err(|(option, why)| Error::Option { option, why })?;
    socket.set_nonblocking(true).map_err(option("socket"))?;
    Ok(socket)
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

    /// Effect of MaxWindow (D6).
    #[test]
    fn a_window_grows_no_further_than_configured() {
        let most = |setting| buffers(&configured("host", &[setting])).window;
        assert_eq!(most("MaxWindow=3M"), 3 << 20);
        assert_eq!(most("MaxWindow=auto"), 128 << 20);
        assert_eq!(most("MaxWindow=8G"), u32::MAX);
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
