//! What a TCP receiver may offer its peer (tcp(7), socket(7)): the window's scale, which is settled
//! with the first segment, and a larger buffer on a connection that is there already.
//!
//! ```text
//! offer_scale   listener    connections may be given windows of this size one day
//! autotuned     accepted    ... and begin as any other connection does
//! grow          connection  a larger buffer now; autotuning may go on above it
//! ```
//! Linux scales windows by the larger of `tcp_rmem[2]`, `net.core.rmem_max` and the listener's own
//! buffer: 512 KiB where both are 256 KiB, whatever buffer a connection gets later. So a listener
//! that may (CAP_NET_ADMIN) has a large buffer of its own, which costs nothing.

use crate::tcp::{
    autotuned_receive_buffer, initial_receive_buffer, most_receive_buffer, raise_receive_buffer,
    receive_buffer,
};
use rustix::io::Errno;
use rustix::net::sockopt;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

/// asm-generic/socket.h: which buffers autotuning leaves alone (from Linux 5.14 on).
const SO_BUF_LOCK: libc::c_int = 72;
/// The receive buffer's bit of it.
const RECEIVE: libc::c_int = 2;
/// What a listener is given at most: its connections' windows can be twice as large, 128 MiB.
const LARGE: usize = 64 << 20;
/// Largest window before it is scaled (RFC 7323 section 2.2).
const UNSCALED: u64 = 65_535;

/// Before a socket listens: its connections' windows may become `bytes` large. Whether this was
/// needed and allowed; if so, each accepted connection is to be [`autotuned`].
pub fn offer_scale(listener: impl AsFd, bytes: usize) -> bool {
    let bytes = bytes.min(LARGE);
    scaled_by_limits() < bytes && scale_for(listener.as_fd(), bytes)
}

fn scale_for(listener: BorrowedFd<'_>, bytes: usize) -> bool {
    let set = sockopt::set_socket_recv_buffer_size_force(listener, bytes);
    set.is_ok() && unlock(listener).is_ok()
}

/// The largest window of the scale that the system's limits lead to.
fn scaled_by_limits() -> usize {
    let limit = autotuned_receive_buffer().max(most_receive_buffer());
    limit.checked_ilog2().map_or(0, |bits| 2 << bits)
}

/// Gives an accepted connection the receive buffer that it would have had, to grow from there.
pub fn autotuned(connection: impl AsFd) {
    let fd = connection.as_fd();
    let Some(initial) = initial_receive_buffer() else { return };
    // The kernel doubles what it is asked for.
    if receive_buffer(fd).is_some_and(|size| size > initial)
        && sockopt::set_socket_recv_buffer_size(fd, initial / 2).is_ok()
    {
        let _ = clamp(fd, initial / 2);
        let _ = unlock(fd);
    }
}

/// A receive buffer for `bytes` of data on a connection, as far as the kernel or a privilege
/// allows, at once and not by autotuning, which may go on above it. How large a window can be now.
pub fn grow_receive_buffer(connection: impl AsFd, bytes: usize) -> Option<u64> {
    let fd = connection.as_fd();
    let before = receive_buffer(fd)?;
    if bytes > before / 2 && raise_receive_buffer(fd, bytes).is_some() {
        // A window is clamped to the buffer that the connection began with.
        let _ = clamp(fd, bytes);
        if bytes < autotuned_receive_buffer() {
            let _ = unlock(fd);
        }
    }
    let half = u64::try_from(receive_buffer(fd)? / 2).ok()?;
    Some(half.min(UNSCALED << crate::tcp_info(fd)?.receive_scale))
}

/// Keeps the bytes that were written and not sent under `bytes`, as far as writing goes: a writer
/// waits while there are more. `None` is no such limit.
pub fn limit_unsent(connection: impl AsFd, bytes: Option<u32>) -> Result<(), Errno> {
    let bytes = bytes.map_or(0, |bytes| libc::c_int::try_from(bytes).unwrap_or(libc::c_int::MAX));
    set(connection.as_fd(), libc::IPPROTO_TCP, libc::TCP_NOTSENT_LOWAT, bytes)
}

/// Bounds the bytes per second that a socket sends (SO_MAX_PACING_RATE), whatever its congestion
/// control would allow. `None` is no such limit, as are 4.29 GB/s and more.
pub fn limit_rate(socket: impl AsFd, bytes_per_second: Option<u64>) -> Result<(), Errno> {
    let rate = bytes_per_second.map_or(u32::MAX, |rate| u32::try_from(rate).unwrap_or(u32::MAX));
    // The kernel reads the same bits without a sign.
    let rate = libc::c_int::from_ne_bytes(rate.to_ne_bytes());
    set(socket.as_fd(), libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE, rate)
}

/// TCP_WINDOW_CLAMP.
fn clamp(fd: BorrowedFd<'_>, bytes: usize) -> Result<(), Errno> {
    let bytes = libc::c_int::try_from(bytes).unwrap_or(libc::c_int::MAX);
    set(fd, libc::IPPROTO_TCP, libc::TCP_WINDOW_CLAMP, bytes)
}

/// Lets autotuning have a receive buffer that was set.
fn unlock(fd: BorrowedFd<'_>) -> Result<(), Errno> {
    let locked = get(fd, libc::SOL_SOCKET, SO_BUF_LOCK)?;
    set(fd, libc::SOL_SOCKET, SO_BUF_LOCK, locked & !RECEIVE)
}

fn set(
    fd: BorrowedFd<'_>,
    level: libc::c_int,
    option: libc::c_int,
    value: libc::c_int,
) -> Result<(), Errno> {
    let len = libc::socklen_t::try_from(size_of_val(&value)).map_err(|_| Errno::INVAL)?;
    // SAFETY: `value` lives through the call, and `len` is its size.
    let result =
        unsafe { libc::setsockopt(fd.as_raw_fd(), level, option, (&raw const value).cast(), len) };
    if result == 0 { Ok(()) } else { Err(last_error()) }
}

fn get(fd: BorrowedFd<'_>, level: libc::c_int, option: libc::c_int) -> Result<libc::c_int, Errno> {
    let mut value: libc::c_int = 0;
    let mut len = libc::socklen_t::try_from(size_of_val(&value)).map_err(|_| Errno::INVAL)?;
    // SAFETY: `value` and `len` live through the call, and `len` is the size of `value`.
    let result = unsafe {
        libc::getsockopt(fd.as_raw_fd(), level, option, (&raw mut value).cast(), &raw mut len)
    };
    if result == 0 { Ok(value) } else { Err(last_error()) }
}

fn last_error() -> Errno {
    Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::INVAL)
}

#[cfg(test)]
mod tests {
    use super::*;
    use socket2::{Domain, Socket, Type};
    use std::net::{SocketAddr, TcpStream};

    fn pair(prepare: impl FnOnce(&Socket)) -> (TcpStream, Socket) {
        let listener = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        prepare(&listener);
        listener.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).unwrap();
        listener.listen(1).unwrap();
        let at = listener.local_addr().unwrap().as_socket().unwrap();
        let client = TcpStream::connect(at).unwrap();
        (client, listener.accept().unwrap().0)
    }

    #[test]
    fn a_connection_of_a_listener_that_offers_scale_begins_as_any_other() {
        let (_client, plain) = pair(|_| {});
        let mut offered = false;
        let (_other, connection) = pair(|listener| offered = scale_for(listener.as_fd(), 64 << 20));
        if !offered {
            return; // it takes a privilege
        }
        let size = || receive_buffer(&connection).unwrap();
        assert!(size() >= 128 << 20);
        assert!(crate::tcp_info(&connection).unwrap().receive_scale >= 10);
        autotuned(&connection);
        assert_eq!(size(), receive_buffer(&plain).unwrap());
        assert_eq!(get(connection.as_fd(), libc::SOL_SOCKET, SO_BUF_LOCK), Ok(0));
    }

    #[test]
    fn a_connection_is_given_what_it_asks_for_as_far_as_allowed() {
        let mut offered = false;
        let (_client, connection) =
            pair(|listener| offered = scale_for(listener.as_fd(), 64 << 20));
        autotuned(&connection);
        let small = grow_receive_buffer(&connection, 1).unwrap();
        let some = grow_receive_buffer(&connection, 1 << 20).unwrap();
        assert!(small <= some);
        if offered {
            assert_eq!(some, 1 << 20);
            assert_eq!(grow_receive_buffer(&connection, 32 << 20), Some(32 << 20));
            assert_eq!(grow_receive_buffer(&connection, 1 << 20), Some(32 << 20), "never shrinks");
        }
    }

    #[test]
    fn a_writer_waits_while_too_much_is_unsent() {
        let (client, _connection) = pair(|_| {});
        limit_unsent(&client, Some(16 << 10)).unwrap();
        assert_eq!(get(client.as_fd(), libc::IPPROTO_TCP, libc::TCP_NOTSENT_LOWAT), Ok(16 << 10));
        limit_unsent(&client, None).unwrap();
        assert!(limit_unsent(std::fs::File::open("/dev/null").unwrap(), None).is_err());
    }

    #[test]
    fn a_rate_has_all_its_bits() {
        let (client, _connection) = pair(|_| {});
        let bound = || get(client.as_fd(), libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE);
        limit_rate(&client, Some(1 << 20)).unwrap();
        assert_eq!(bound(), Ok(1 << 20));
        limit_rate(&client, Some(3 << 30)).unwrap();
        assert_eq!(bound().map(|rate| u32::from_ne_bytes(rate.to_ne_bytes())), Ok(3 << 30));
        limit_rate(&client, None).unwrap();
        assert_eq!(bound(), Ok(-1), "all ones: no bound");
    }
}
