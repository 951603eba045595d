//! Sockets: where to listen, and the options of listening and connected ones.

use anyhow::{Context, Result, bail};
use conf::{AddressFamily, Server};
use engine::Buffers;
use engine::tune::socket::{self, Options};
use socket2::Socket;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, ToSocketAddrs};
use std::os::fd::AsFd;

/// Connections that may wait to be accepted.
const BACKLOG: i32 = 128;

/// Listens wherever the configuration says; addresses that cannot be had are told to `skipped`,
/// and none at all is an error.
pub(crate) fn listen(config: &Server, mut skipped: impl FnMut(String)) -> Result<Vec<TcpListener>> {
    let mut listeners = Vec::new();
    for (host, port) in config.listen() {
        for address in addresses(host, port, config.address_family)? {
            match listen_on(address, config) {
                Ok(listener) => listeners.push(listener),
                Err(error) => skipped(format!("listen on {address}: {error}")),
            }
        }
    }
    if listeners.is_empty() {
        bail!("cannot listen on any address");
    }
    Ok(listeners)
}

fn addresses(host: Option<&str>, port: u16, family: AddressFamily) -> Result<Vec<SocketAddr>> {
    let all = match host {
        None => vec![
            SocketAddr::from((Ipv4Addr::UNSPECIFIED, port)),
            SocketAddr::from((Ipv6Addr::UNSPECIFIED, port)),
        ],
        Some(host) => (host, port)
            .to_socket_addrs()
            .with_context(|| format!("ListenAddress {host}"))?
            .collect(),
    };
    let wanted = |address: &SocketAddr| match family {
        AddressFamily::Any => true,
        AddressFamily::Inet => address.is_ipv4(),
        AddressFamily::Inet6 => address.is_ipv6(),
    };
    Ok(all.into_iter().filter(wanted).collect())
}

fn listen_on(address: SocketAddr, config: &Server) -> io::Result<TcpListener> {
    let socket = Socket::from(socket::open(&address, config.use_mptcp)?);
    socket.set_reuse_address(true)?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    // Before the handshake: the window's scale is settled there.
    tune(&socket, config)?;
    offer_scale(&socket, config);
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    socket.set_nonblocking(true)?;
    Ok(socket.into())
}

/// Windows that can be as large as MaxSockBuf, for clients that will ask for them, also where the
/// system's limits are small. A fixed buffer is its own limit.
fn offer_scale(socket: &Socket, config: &Server) {
    if config.tcp_rcv_buf.0.is_none() && !config.use_mptcp {
        // It takes a privilege, without which windows are as the system's limits have them.
        let _ = sys::offer_scale(socket, buffers(config).most);
    }
}

/// A connection that was just accepted: its receive buffer is autotuning's, not the listener's.
pub(crate) fn accepted(connection: impl AsFd, config: &Server) {
    if config.tcp_rcv_buf.0.is_none() {
        sys::autotuned(connection);
    }
}

/// TcpRcvBuf, TcpSndBuf, CongestionControl, TCPKeepAlive.
pub(crate) fn tune(fd: impl AsFd, config: &Server) -> io::Result<()> {
    let options = Options {
        buffers: buffers(config),
        keep_alive: config.tcp_keep_alive,
        congestion: config.congestion_control.as_deref(),
    };
    let named = |(keyword, why)| io::Error::other(format!("{keyword}: {why}"));
    socket::prepare(fd, &options).map_err(named)
}

/// Socket buffers and windows as configured.
pub(crate) fn buffers(config: &Server) -> Buffers {
    let default = Buffers::default();
    Buffers {
        receive: config.tcp_rcv_buf.bytes(),
        send: config.tcp_snd_buf.bytes(),
        most: config.max_sock_buf.bytes().unwrap_or(default.most),
        window: config.max_window.window().unwrap_or(default.window),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use conf::Setting;
    use conf::server::ConfigFile;
    use rustix::net::sockopt;
    use socket2::{Domain, Protocol, Type};

    fn config(settings: &[&str]) -> Server {
        let given: Vec<_> = settings.iter().map(|s| Setting::option(s).unwrap()).collect();
        conf::server::load(&given, &ConfigFile::None, &crate::setup::supported()).unwrap().config
    }

    /// Effect of TCPKeepAlive, TcpRcvBuf, TcpSndBuf, CongestionControl (D6).
    #[test]
    fn options_of_sockets_have_their_effect() {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        tune(&socket, &config(&["TCPKeepAlive=no", "TcpRcvBuf=64K", "TcpSndBuf=32K"])).unwrap();
        assert!(!sockopt::socket_keepalive(&socket).unwrap());
        assert!(sockopt::tcp_nodelay(&socket).unwrap());
        // The kernel counts its own bookkeeping in.
        assert_eq!(sockopt::socket_recv_buffer_size(&socket).unwrap(), 128 << 10);
        assert_eq!(sockopt::socket_send_buffer_size(&socket).unwrap(), 64 << 10);
        tune(&socket, &config(&["CongestionControl=reno"])).unwrap();
        assert!(sockopt::socket_keepalive(&socket).unwrap());
        assert_eq!(sockopt::tcp_congestion(&socket).unwrap(), "reno");
        let unknown = tune(&socket, &config(&["CongestionControl=no-such"])).unwrap_err();
        assert!(unknown.to_string().starts_with("CongestionControl: no-such: "), "{unknown}");
    }

    /// Effect of MaxSockBuf (D6), with the engine's own test of what it does with the figure.
    #[test]
    fn buffers_grow_no_further_than_configured() {
        let most = |setting| buffers(&config(&[setting])).most;
        assert_eq!(most("MaxSockBuf=3M"), 3 << 20);
        assert_eq!(most("MaxSockBuf=auto"), Buffers::default().most);
    }

    /// Effect of UseMPTCP (D6); a client without it is served, too.
    #[test]
    fn a_listener_takes_multipath_connections_where_the_kernel_can() {
        let can = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::MPTCP)).is_ok();
        for (setting, served) in [("UseMPTCP=yes", can), ("UseMPTCP=no", false)] {
            let at = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
            let listener = listen_on(at, &config(&[setting])).unwrap();
            listener.set_nonblocking(false).unwrap();
            let at = listener.local_addr().unwrap();
            for protocol in [Protocol::TCP, Protocol::MPTCP] {
                let Ok(client) = Socket::new(Domain::IPV4, Type::STREAM, Some(protocol)) else {
                    continue;
                };
                client.connect(&at.into()).unwrap();
                let (connection, _) = listener.accept().unwrap();
                let both = served && protocol == Protocol::MPTCP;
                assert_eq!(sys::is_multipath(&connection), both, "{setting} {protocol:?}");
            }
        }
    }

    /// Effect of AddressFamily (D6).
    #[test]
    fn addresses_are_those_of_the_family() {
        for (family, count) in [("any", 2), ("inet", 1), ("inet6", 1)] {
            let family = config(&[&format!("AddressFamily={family}")]).address_family;
            assert_eq!(addresses(None, 22, family).unwrap().len(), count);
        }
        assert_eq!(addresses(Some("::1"), 22, AddressFamily::Inet).unwrap(), []);
    }
}
