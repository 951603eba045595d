//! An emulated network link between two namespaces, with the kernel's own TCP at both ends.
//!
//! spec     what the link is to be like
//! up       namespaces, devices, addresses; the handle that runs things at either end
//! run      the loop that moves packets
//! segment  how super-packets divide into what a wire would carry
//! link     rate, queue, delay, jitter and loss as a calculation
//! machine  what other work the machine had meanwhile
//! stats    what happened, and whether the emulator kept up

pub mod link;
pub mod machine;
pub mod random;
pub mod ring;
pub mod run;
pub mod segment;
pub mod spec;
pub mod stats;
pub mod up;

pub use spec::Spec;
pub use stats::{Stats, Verdict};
pub use up::{Error, Link, Side};
