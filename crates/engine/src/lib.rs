//! Moves bytes between files, sockets and packets: threads, queues and descriptors.
//!
//! ```text
//! link      one thread: identification, key exchange, login
//! session   the pipeline afterwards
//!   send    source -> (batch) -> tx: stage, seal, done, flush -> socket
//!   receive socket -> receiver: fill, frame, open -> rx: walk -> route -> sink (-> inlet -> pipe)
//! figures   what a connection did and waited for, and what limited it
//! tune      socket buffers and windows from what the kernel says of the path
//! workers   the same work on more cores, where cores are idle
//! ```
#![cfg_attr(not(test), deny(clippy::indexing_slicing))]

pub mod error;
pub mod fd;
pub mod figures;
mod inlet;
mod line;
pub mod link;
mod meter;
mod pace;
pub mod plan;
mod pool;
mod program;
mod receiver;
pub mod route;
pub mod rx;
pub mod session;
pub mod sink;
mod slab;
pub mod source;
mod sync;
pub mod tune;
mod tx;
mod workers;

pub use error::Error;
pub use fd::Fd;
pub use figures::Figures;
pub use link::Link;
pub use program::{Flow, Port, Program};
pub use route::{Stream, Totals};
pub use rx::{Alive, Rx};
pub use session::{Plan, Session};
pub use sink::{Consumer, Sink};
pub use source::{Producer, Source, SourceEnd};
pub use tune::{Buffers, Tune};
