//! Tune: looks at what the kernel knows of the path now and then, feeds the windows, and gives a
//! socket more buffer when its own buffer is what limits it.
//!
//! Autotuning is the floor, never the ceiling: a buffer is only ever raised above what autotuning
//! may reach, and only where the kernel or a privilege allows.

pub mod socket;

use crate::fd::Fd;
use crate::route::Routes;
use proto::window::Rule;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

/// How often the kernel is asked.
const EVERY: Duration = Duration::from_millis(50);

/// What the user set about socket buffers and windows, in bytes.
#[derive(Debug, Clone, Copy)]
pub struct Buffers {
    /// `TcpRcvBuf`: fixed receive buffer.
    pub receive: Option<usize>,
    /// `TcpSndBuf`: fixed send buffer.
    pub send: Option<usize>,
    /// `MaxSockBuf`: most a buffer grows to by itself.
    pub most: usize,
    /// `MaxWindow`: most a channel's window grows to.
    pub window: u32,
}

impl Default for Buffers {
    fn default() -> Self {
        Self { receive: None, send: None, most: 128 << 20, window: 128 << 20 }
    }
}

/// The observer of one connection.
#[derive(Debug)]
pub struct Tune {
    buffers: Buffers,
    rule: Rule,
    receive: ReceiveBuffer,
    looked: Option<Instant>,
}

impl Tune {
    /// `rule` bounds the windows (`proto::window::Rule`).
    pub fn new(buffers: Buffers, rule: Rule) -> Self {
        let most = if buffers.receive.is_none() { buffers.most } else { 0 };
        Self { buffers, rule, receive: ReceiveBuffer { most, seen: None }, looked: None }
    }

    pub(crate) fn rule(&self) -> Rule {
        self.rule
    }

    /// Asks the kernel if it is time to.
    pub(crate) fn look(&mut self, fd: &Fd, routes: &mut Routes, now: Instant) {
        if self.looked.is_some_and(|at| now.saturating_duration_since(at) < EVERY) {
            return;
        }
        self.looked = Some(now);
        let Some(path) = sys::tcp_info(fd) else { return };
        self.receive.look(fd, &path, now);
        let receive = sys::receive_buffer(fd).unwrap_or(0);
        routes.note(path.rtt, u32::try_from(receive).unwrap_or(u32::MAX));
    }

    /// The watcher of the send buffer, for the threads that send.
    pub(crate) fn send_buffer(&self) -> SendBuffer {
        let open = self.buffers.send.is_none();
        SendBuffer { most: if open { self.buffers.most } else { 0 }, looked: None }
    }
}

/// Raises a receive buffer that is what limits, once autotuning has given all that it may: what is
/// set then is more than it would ever have reached.
#[derive(Debug)]
struct ReceiveBuffer {
    /// The most it may grow to; 0 once there is nothing to gain.
    most: usize,
    /// When it was looked at last, and the bytes received until then.
    seen: Option<(Instant, u64)>,
}

impl ReceiveBuffer {
    /// Doubles the buffer if it limited for the last two round trips.
    fn look(&mut self, fd: &Fd, path: &sys::TcpInfo, now: Instant) {
        let elapsed = self.seen.map(|(at, _)| now.saturating_duration_since(at));
        if self.most == 0 || elapsed.is_some_and(|elapsed| elapsed < path.shortest_rtt * 2) {
            return;
        }
        let seen = self.seen.replace((now, path.received));
        let Some((elapsed, (_, before))) = elapsed.zip(seen) else { return };
        let Some(size) = sys::receive_buffer(fd) else { return };
        let filled = fills_window(path, path.received.saturating_sub(before), elapsed);
        if filled && size >= sys::autotuned_receive_buffer() / 10 * 9 {
            self.raise(fd, size);
        }
    }

    /// Doubles a buffer of `size`, as far as it may grow.
    fn raise(&mut self, fd: impl AsFd, size: usize) {
        let fd = fd.as_fd();
        // As for the send buffer: the kernel's figure is twice what it is asked for.
        let wanted = size.min(self.most);
        let _ = sys::grow_receive_buffer(fd, wanted);
        let raised = sys::receive_buffer(fd).unwrap_or(0);
        if raised <= size || raised >= self.most {
            self.most = 0;
        }
    }
}

/// Whether `received` bytes in `elapsed` are what our window lets through per round trip: neither
/// the path, whose queues would make its round trips longer, nor a consumer is slower.
fn fills_window(path: &sys::TcpInfo, received: u64, elapsed: Duration) -> bool {
    let trips = elapsed.as_secs_f64() / path.shortest_rtt.as_secs_f64().max(1e-6);
    path.our_window > 0 && received as f64 >= trips * f64::from(path.our_window) * 0.85
}

/// Raises a send buffer that is what limits. Sources ask after each batch, as nobody else wakes
/// up often enough on a path whose window is large.
#[derive(Debug)]
pub(crate) struct SendBuffer {
    /// The most it may grow to; 0 once there is nothing to gain.
    most: usize,
    looked: Option<Instant>,
}

impl SendBuffer {
    /// Asks the kernel if it is time to; doubles the buffer while it limits.
    pub(crate) fn look(&mut self, fd: &Fd) {
        let now = Instant::now();
        let soon = self.looked.is_some_and(|at| now.saturating_duration_since(at) < EVERY);
        if self.most == 0 || soon {
            return;
        }
        self.looked = Some(now);
        let (Some(path), Some(size)) = (sys::tcp_info(fd), sys::send_buffer(fd)) else {
            self.most = 0;
            return;
        };
        if limits(&path, size) {
            self.raise(fd, size);
        }
    }

    /// Doubles a buffer of `size`, as far as it may grow.
    fn raise(&mut self, fd: impl AsFd, size: usize) {
        let wanted = size.min(self.most);
        // The kernel's figure is twice what it is asked for: to ask for less would take some away.
        let raised = (wanted > size / 2).then(|| sys::raise_send_buffer(fd, wanted)).flatten();
        if raised.is_none_or(|raised| raised <= size || raised >= self.most) {
            self.most = 0;
        }
    }
}

/// Whether a buffer of `size` (the kernel's figure, which counts its own bookkeeping, too) is what
/// keeps a path from carrying more: it is filled, autotuning has ended, and yet the congestion
/// window has room.
fn limits(path: &sys::TcpInfo, size: usize) -> bool {
    let queued =
        u64::from(path.unacknowledged) * u64::from(path.segment) + u64::from(path.not_sent);
    let filled = queued >= size as u64 / 3;
    let room = u64::from(path.unacknowledged) * 8 < u64::from(path.congestion_window) * 7;
    filled && room && size >= sys::autotuned_send_buffer() / 10 * 9
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Effect of MaxSockBuf (D6).
    #[test]
    fn a_buffer_grows_to_what_is_allowed_and_never_shrinks() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let grown = |most: usize| {
            let socket = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let size = || sys::send_buffer(&socket).unwrap();
            let before = size();
            let mut buffer = SendBuffer { most, looked: None };
            for _ in 0..20 {
                buffer.raise(&socket, size());
            }
            assert!(size() >= before, "{most}: {before} became {}", size());
            assert!(size() == before || size() <= 2 * most, "{most}: {}", size());
            size()
        };
        let small = grown(64 << 10);
        assert_eq!(grown(128 << 10), small, "both below what the socket has");
        // The rest takes a privilege, or a kernel that is set up for it.
        let socket = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        if sys::raise_send_buffer(&socket, 64 << 20).is_some_and(|size| size >= 64 << 20) {
            let [some, more] = [16 << 20, 64 << 20].map(grown);
            assert!(small < some && some < more, "{small} {some} {more}");
        }
    }

    /// Effect of MaxSockBuf on receivers (D6), where the buffer may grow at all.
    #[test]
    fn a_receive_buffer_grows_to_what_is_allowed_and_never_shrinks() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        for most in [64 << 10, 1 << 20, 16 << 20] {
            let socket = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let size = || sys::receive_buffer(&socket).unwrap();
            let before = size();
            let mut buffer = ReceiveBuffer { most, seen: None };
            while buffer.most > 0 {
                buffer.raise(&socket, size());
            }
            assert!(size() >= before, "{most}: {before} became {}", size());
            assert!(size() == before || size() <= 2 * most, "{most}: {}", size());
        }
    }

    #[test]
    fn a_window_limits_when_each_round_trip_brings_as_much() {
        let trip = Duration::from_millis(100);
        let path = sys::TcpInfo { shortest_rtt: trip, our_window: 128 << 10, ..Default::default() };
        assert!(fills_window(&path, 250 << 10, 2 * trip));
        assert!(!fills_window(&path, 100 << 10, 2 * trip), "somebody else is slower");
        let unknown = sys::TcpInfo { our_window: 0, ..path };
        assert!(!fills_window(&unknown, 250 << 10, 2 * trip), "an old kernel does not tell");
    }

    fn path(unacknowledged: u32, congestion_window: u32) -> sys::TcpInfo {
        sys::TcpInfo { unacknowledged, congestion_window, segment: 1448, ..Default::default() }
    }

    #[test]
    fn a_buffer_limits_when_it_is_full_and_the_congestion_window_is_not() {
        let size = sys::autotuned_send_buffer().max(1 << 20);
        let full = u32::try_from(size / 1448 / 2).unwrap();
        assert!(limits(&path(full, full * 2), size));
        assert!(!limits(&path(full, full), size), "the path is what limits");
        assert!(!limits(&path(full / 10, full * 2), size), "the producer is what limits");
        assert!(!limits(&path(full / 4, full), size / 4), "autotuning still goes on");
    }
}
