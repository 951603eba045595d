//! A TCP socket before it connects or listens: what must be set by then, as the window's scale is
//! agreed on with the first segment (RFC 7323 section 2.2).

use super::Buffers;
use rustix::net::{self, AddressFamily, SocketFlags, SocketType, ipproto, sockopt};
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// The largest buffer that the kernel can be asked for.
const LARGEST: usize = 1 << 30;

/// What the user set about sockets.
#[derive(Debug, Clone, Copy)]
pub struct Options<'a> {
    /// `TcpRcvBuf` and `TcpSndBuf`, among others.
    pub buffers: Buffers,
    /// `TCPKeepAlive`.
    pub keep_alive: bool,
    /// `CongestionControl`: the kernel's name of it.
    pub congestion: Option<&'a str>,
}

/// A socket of the address's family. `multipath` is MPTCP (RFC 8684) where this kernel has it; a
/// peer without it makes TCP of the connection.
pub fn open(address: &SocketAddr, multipath: bool) -> io::Result<OwnedFd> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let (kind, flags) = (SocketType::STREAM, SocketFlags::CLOEXEC);
    let open = |protocol| net::socket_with(family, kind, flags, Some(protocol));
    if multipath && let Ok(socket) = open(ipproto::MPTCP) {
        return Ok(socket);
    }
    Ok(open(ipproto::TCP)?)
}

/// Sets the options, and no waiting for fuller segments; tells which keyword could not be
/// honoured. Connections inherit all of it from the socket they were accepted on.
pub fn prepare(socket: impl AsFd, options: &Options<'_>) -> Result<(), (&'static str, io::Error)> {
    let socket = socket.as_fd();
    let set = sockopt::set_tcp_nodelay(socket, true);
    set.map_err(|why| ("TCP_NODELAY", why.into()))?;
    let set = sockopt::set_socket_keepalive(socket, options.keep_alive);
    set.map_err(|why| ("TCPKeepAlive", why.into()))?;
    if let Some(bytes) = options.buffers.receive {
        fix_receive_buffer(socket, bytes).map_err(|why| ("TcpRcvBuf", why.into()))?;
    }
    if let Some(bytes) = options.buffers.send {
        fix_send_buffer(socket, bytes).map_err(|why| ("TcpSndBuf", why.into()))?;
    }
    if let Some(name) = options.congestion {
        let set = sockopt::set_tcp_congestion(socket, name).map_err(io::Error::from);
        let named = |why: io::Error| io::Error::other(format!("{name}: {why}"));
        set.map_err(|why| ("CongestionControl", named(why)))?;
    }
    Ok(())
}

/// Fixes the receive buffer at `bytes` of data, as far as a privilege (SO_RCVBUFFORCE) or
/// `net.core.rmem_max` allows.
fn fix_receive_buffer(socket: BorrowedFd<'_>, bytes: usize) -> rustix::io::Result<()> {
    let bytes = bytes.min(LARGEST);
    let (most, autotuned) = (sys::most_receive_buffer(), sys::autotuned_receive_buffer());
    match sockopt::set_socket_recv_buffer_size_force(socket, bytes) {
        Err(_) if is_gain(bytes, most, autotuned) => {
            sockopt::set_socket_recv_buffer_size(socket, bytes)
        }
        _ => Ok(()),
    }
}

/// The same for the send buffer (SO_SNDBUFFORCE, `net.core.wmem_max`).
fn fix_send_buffer(socket: BorrowedFd<'_>, bytes: usize) -> rustix::io::Result<()> {
    let bytes = bytes.min(LARGEST);
    let (most, autotuned) = (sys::most_send_buffer(), sys::autotuned_send_buffer());
    match sockopt::set_socket_send_buffer_size_force(socket, bytes) {
        Err(_) if is_gain(bytes, most, autotuned) => {
            sockopt::set_socket_send_buffer_size(socket, bytes)
        }
        _ => Ok(()),
    }
}

/// Whether an ordinary user should set a buffer to `bytes`, which ends its autotuning. The kernel
/// cuts the figure to `most` without an error, and doubles it for its own bookkeeping, which is
/// part of `autotuned` already: less than was asked for is still welcome, but not where it is less
/// than autotuning would reach.
fn is_gain(bytes: usize, most: usize, autotuned: usize) -> bool {
    bytes <= most || most.saturating_mul(2) >= autotuned
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With the limits that Linux comes with, 208 KiB for users and 6 MiB for autotuning.
    #[test]
    fn a_buffer_that_is_not_allowed_is_left_to_autotuning_where_that_reaches_more() {
        let (most, autotuned) = (208 << 10, 6 << 20);
        assert!(is_gain(64 << 10, most, autotuned), "as small as it was asked for");
        assert!(is_gain(most, most, autotuned));
        assert!(!is_gain(16 << 20, most, autotuned), "416 KiB instead of 6 MiB");
        assert!(is_gain(16 << 20, 8 << 20, autotuned), "the most there is");
    }

    #[test]
    fn a_socket_is_of_the_family_of_its_address() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let address: SocketAddr = address.parse().unwrap();
            for multipath in [false, true] {
                let Ok(socket) = open(&address, multipath) else { continue };
                let family = sockopt::socket_domain(&socket).unwrap();
                assert_eq!(family == AddressFamily::INET, address.is_ipv4());
            }
        }
    }
}
