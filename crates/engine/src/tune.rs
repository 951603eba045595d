//! Tune: looks at what the kernel knows of the path now and then, feeds the windows, and gives a
//! socket more buffer when its own buffer is what limits it.
//!
//! Autotuning is the floor, never the ceiling: a buffer is only ever raised above what autotuning
//! may reach, and only where the kernel or a privilege allows.

use crate::fd::Fd;
use crate::route::Routes;
use proto::window::Rule;
use rustix::net::sockopt;
use std::io;
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

/// Sets what must be set before a socket connects or listens, as the window scale is agreed on
/// with the first packet; tells which keyword could not be honoured.
pub fn prepare(
    socket: impl AsFd,
    buffers: &Buffers,
    congestion: Option<&str>,
) -> Result<(), (&'static str, io::Error)> {
    let socket = socket.as_fd();
    let set = sockopt::set_tcp_nodelay(socket, true);
    set.map_err(|e| ("TCP_NODELAY", e.into()))?;
    if let Some(bytes) = buffers.receive {
        // Less than was asked for is still the most there is.
        let _ = sys::raise_receive_buffer(socket, bytes);
    }
    if let Some(bytes) = buffers.send {
        let _ = sys::raise_send_buffer(socket, bytes);
    }
    if let Some(name) = congestion {
        let set = sockopt::set_tcp_congestion(socket, name);
        set.map_err(|e| ("CongestionControl", e.into()))?;
    }
    Ok(())
}

/// The observer of one connection.
#[derive(Debug)]
pub struct Tune {
    buffers: Buffers,
    rule: Rule,
    looked: Option<Instant>,
    send: Growth,
}

/// Where a buffer stands that grows when it limits.
#[derive(Debug, Default)]
struct Growth {
    size: usize,
    limited: Duration,
    busy: Duration,
    refused: bool,
}

impl Tune {
    /// `rule` bounds the windows, see PEERS' limits in `proto`.
    pub fn new(buffers: Buffers, rule: Rule) -> Self {
        Self { buffers, rule, looked: None, send: Growth::default() }
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
        let receive = sys::receive_buffer(fd).unwrap_or(0);
        routes.note(path.rtt, u32::try_from(receive).unwrap_or(u32::MAX));
        if self.buffers.send.is_none() {
            self.grow_send(fd, &path);
        }
    }

    /// More send buffer when most of the time since the last look was spent waiting for it.
    fn grow_send(&mut self, fd: &Fd, path: &sys::TcpInfo) {
        let limited = path.sndbuf_limited.saturating_sub(self.send.limited);
        let busy = path.busy.saturating_sub(self.send.busy);
        self.send.limited = path.sndbuf_limited;
        self.send.busy = path.busy;
        if self.send.refused || busy.is_zero() || limited * 4 < busy {
            return;
        }
        let size = sys::send_buffer(fd).unwrap_or(0);
        let wanted = (size.max(self.send.size) * 2).min(self.buffers.most);
        if wanted <= size {
            return;
        }
        let autotuned = sys::autotuned_send_buffer();
        let got = sys::raise_send_buffer(fd, wanted.max(autotuned * 2).min(self.buffers.most));
        self.send.refused = got.is_none_or(|got| got <= size);
        self.send.size = got.unwrap_or(size);
    }
}
