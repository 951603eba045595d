//! TCP_INFO, and socket buffers beyond what autotuning may reach (tcp(7), socket(7)).

use rustix::net::sockopt;
use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;

/// What the kernel knows of a connection's path.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TcpInfo {
    /// Smoothed round trip; zero before the first sample.
    pub rtt: Duration,
    /// The receiver's own estimate of the round trip; zero where nothing was received.
    pub receive_rtt: Duration,
    /// Time with data to send.
    pub busy: Duration,
    /// Of it, time the peer's receive window was what limited.
    pub rwnd_limited: Duration,
    /// Of it, time our send buffer was what limited.
    pub sndbuf_limited: Duration,
    /// Segments sent again.
    pub retransmits: u32,
    /// Congestion window, in segments.
    pub congestion_window: u32,
    /// Segments sent and not acknowledged.
    pub unacknowledged: u32,
    /// Bytes of a segment.
    pub segment: u32,
    /// Bytes handed to the socket and not sent.
    pub not_sent: u32,
    /// By how many bits windows that we offer are shifted.
    pub receive_scale: u8,
    /// Bytes per second that lately reached the peer.
    pub delivery_rate: u64,
    /// The shortest round trip of the last minutes; zero before the first sample.
    pub shortest_rtt: Duration,
    /// Segments of data sent.
    pub segments_out: u32,
    /// Segments of data received.
    pub segments_in: u32,
    /// Segments received out of order: others before them were lost, or overtaken.
    pub out_of_order: u32,
    /// Bytes the peer acknowledged.
    pub acknowledged: u64,
    /// Bytes received.
    pub received: u64,
    /// The peer's receive window; 0 where the kernel does not tell (before Linux 5.4).
    pub peer_window: u32,
    /// Our receive window; 0 where the kernel does not tell (before Linux 6.2).
    pub our_window: u32,
}

/// TCP_INFO of a socket; `None` for anything that is not TCP.
pub fn tcp_info(fd: impl AsFd) -> Option<TcpInfo> {
    // SAFETY: tcp_info is plain numbers, for which all zeroes are valid.
    let mut info: libc::tcp_info = unsafe { std::mem::zeroed() };
    let mut len = libc::socklen_t::try_from(size_of::<libc::tcp_info>()).ok()?;
    // SAFETY: `info` and `len` live through the call, and `len` is the size of `info`; the
    // kernel writes at most that much.
    let result = unsafe {
        libc::getsockopt(
            fd.as_fd().as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            (&raw mut info).cast(),
            &raw mut len,
        )
    };
    let micros = |value: u64| Duration::from_micros(value);
    (result == 0).then(|| TcpInfo {
        rtt: micros(info.tcpi_rtt.into()),
        receive_rtt: micros(info.tcpi_rcv_rtt.into()),
        busy: micros(info.tcpi_busy_time),
        rwnd_limited: micros(info.tcpi_rwnd_limited),
        sndbuf_limited: micros(info.tcpi_sndbuf_limited),
        retransmits: info.tcpi_total_retrans,
        congestion_window: info.tcpi_snd_cwnd,
        unacknowledged: info.tcpi_unacked,
        segment: info.tcpi_snd_mss,
        not_sent: info.tcpi_notsent_bytes,
        // Two bit fields in one byte: ours is the second.
        receive_scale: if cfg!(target_endian = "little") {
            info.tcpi_snd_rcv_wscale >> 4
        } else {
            info.tcpi_snd_rcv_wscale & 0xf
        },
        delivery_rate: info.tcpi_delivery_rate,
        // The kernel's "no sample yet" is the largest number.
        shortest_rtt: micros(if info.tcpi_min_rtt == u32::MAX {
            0
        } else {
            info.tcpi_min_rtt.into()
        }),
        segments_out: info.tcpi_data_segs_out,
        segments_in: info.tcpi_data_segs_in,
        out_of_order: info.tcpi_rcv_ooopack,
        acknowledged: info.tcpi_bytes_acked,
        received: info.tcpi_bytes_received,
        peer_window: info.tcpi_snd_wnd,
        our_window: info.tcpi_rcv_wnd,
    })
}

/// Whether a connected socket is one of multipath TCP (RFC 8684) and its peer knows that, too:
/// the kernel makes plain TCP of it otherwise.
pub fn is_multipath(fd: impl AsFd) -> bool {
    /// linux/mptcp.h: the level of MPTCP's options, `MPTCP_INFO`, its size in the first kernels
    /// that had it, and where its `flags` are, one of which is "fell back to TCP".
    const LEVEL: libc::c_int = 284;
    const INFO: libc::c_int = 1;
    const FLAGS: usize = 2;
    const FELL_BACK: u32 = 1;
    let mut info = [0u32; 16];
    let Ok(mut len) = libc::socklen_t::try_from(size_of_val(&info)) else { return false };
    // SAFETY: `info` and `len` live through the call, and `len` is the size of `info`; the kernel
    // writes at most that much of a structure of plain numbers.
    let result = unsafe {
        libc::getsockopt(
            fd.as_fd().as_raw_fd(),
            LEVEL,
            INFO,
            info.as_mut_ptr().cast(),
            &raw mut len,
        )
    };
    result == 0 && info[FLAGS] & FELL_BACK == 0
}

/// The kernel's name of a connection's congestion control; `None` for anything that is not TCP.
pub fn congestion_control(fd: impl AsFd) -> Option<String> {
    sockopt::tcp_congestion(fd).ok()
}

/// Bytes of receive buffer: on Linux what it may grow to now, twice what was asked for.
pub fn receive_buffer(fd: impl AsFd) -> Option<usize> {
    sockopt::socket_recv_buffer_size(fd).ok()
}

/// Bytes of send buffer, likewise.
pub fn send_buffer(fd: impl AsFd) -> Option<usize> {
    sockopt::socket_send_buffer_size(fd).ok()
}

/// Asks for a send buffer of `bytes` of data, by privilege (SO_SNDBUFFORCE) or up to
/// `net.core.wmem_max`; what the buffer is now. The kernel doubles the figure for its own
/// bookkeeping.
pub fn raise_send_buffer(fd: impl AsFd, bytes: usize) -> Option<usize> {
    let fd = fd.as_fd();
    if sockopt::set_socket_send_buffer_size_force(fd, bytes).is_err() {
        // Setting a buffer ends its autotuning: only if the limit is above what it has.
        let most = limit("/proc/sys/net/core/wmem_max", 0)?;
        if most * 2 <= send_buffer(fd)? {
            return None;
        }
        sockopt::set_socket_send_buffer_size(fd, bytes.min(most)).ok()?;
    }
    send_buffer(fd)
}

/// The same for the receive buffer (SO_RCVBUFFORCE, `net.core.rmem_max`).
pub fn raise_receive_buffer(fd: impl AsFd, bytes: usize) -> Option<usize> {
    let fd = fd.as_fd();
    if sockopt::set_socket_recv_buffer_size_force(fd, bytes).is_err() {
        let most = limit("/proc/sys/net/core/rmem_max", 0)?;
        if most * 2 <= receive_buffer(fd)? {
            return None;
        }
        sockopt::set_socket_recv_buffer_size(fd, bytes.min(most)).ok()?;
    }
    receive_buffer(fd)
}

/// The most an ordinary user may set a receive buffer to: `net.core.rmem_max`.
pub fn most_receive_buffer() -> usize {
    limit("/proc/sys/net/core/rmem_max", 0).unwrap_or(0)
}

/// The most an ordinary user may set a send buffer to: `net.core.wmem_max`.
pub fn most_send_buffer() -> usize {
    limit("/proc/sys/net/core/wmem_max", 0).unwrap_or(0)
}

/// What autotuning may give a send buffer: the third figure of `net.ipv4.tcp_wmem`.
pub fn autotuned_send_buffer() -> usize {
    limit("/proc/sys/net/ipv4/tcp_wmem", 2).unwrap_or(0)
}

/// What autotuning may give a receive buffer: the third figure of `net.ipv4.tcp_rmem`.
pub fn autotuned_receive_buffer() -> usize {
    limit("/proc/sys/net/ipv4/tcp_rmem", 2).unwrap_or(0)
}

/// `net.ipv4.tcp_wmem` in bytes: the least that a send buffer has, what it begins with, and the most
/// that autotuning gives it.
pub fn send_buffers() -> Option<[usize; 3]> {
    figures("/proc/sys/net/ipv4/tcp_wmem")
}

/// `net.ipv4.tcp_rmem` in bytes, the same of a receive buffer.
pub fn receive_buffers() -> Option<[usize; 3]> {
    figures("/proc/sys/net/ipv4/tcp_rmem")
}

fn figures(path: &str) -> Option<[usize; 3]> {
    Some([limit(path, 0)?, limit(path, 1)?, limit(path, 2)?])
}

/// What autotuning begins with: the second figure of `net.ipv4.tcp_rmem`.
pub(crate) fn initial_receive_buffer() -> Option<usize> {
    limit("/proc/sys/net/ipv4/tcp_rmem", 1)
}

fn limit(path: &str, field: usize) -> Option<usize> {
    std::fs::read_to_string(path).ok()?.split_whitespace().nth(field)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn a_tcp_socket_has_information_and_a_file_has_none() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let info = tcp_info(&stream).unwrap();
        assert!(info.rtt < Duration::from_secs(1));
        assert!(info.congestion_window > 0);
        assert!(info.shortest_rtt <= info.rtt);
        assert!(congestion_control(&stream).is_some());
        assert!(tcp_info(std::fs::File::open("/dev/null").unwrap()).is_none());
    }

    #[test]
    fn a_raised_buffer_is_never_smaller_than_before() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let before = send_buffer(&stream).unwrap();
        if let Some(after) = raise_send_buffer(&stream, 64 << 20) {
            assert!(after >= before);
        }
        assert!(send_buffer(&stream).unwrap() >= before);
    }
}
