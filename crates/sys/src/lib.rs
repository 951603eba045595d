//! System calls that rustix, nix and socket2 lack: the only crate with unsafe code.

#[cfg(feature = "test-alloc")]
pub mod alloc;
mod clock;
mod descriptors;
mod names;
pub mod ns;
pub mod sched;
mod signals;
mod tcp;
mod thread;
pub mod tun;
mod window;

pub use clock::utc_offset;
pub use descriptors::keep_descriptors_to_ourselves;
pub use names::verified_host_name;
pub use signals::{forget_ignored_signals, hear_of_children, is_ignored};
pub use tcp::{
    TcpInfo, autotuned_receive_buffer, autotuned_send_buffer, congestion_control, is_multipath,
    most_receive_buffer, most_send_buffer, raise_receive_buffer, raise_send_buffer, receive_buffer,
    receive_buffers, send_buffer, send_buffers, tcp_info,
};
pub use thread::{ThreadId, ThreadTime};
pub use window::{autotuned, grow_receive_buffer, limit_rate, limit_unsent, offer_scale};
