//! chaos: breaks copies on purpose, and looks at what is left (docs/reliability.md).
//!
//! ```text
//! kill       client, server and connections die (relay)  copier    the program under test
//! watch      a reader looks at the target meanwhile       process   starts, watches, kills, waits
//! errors     system calls fail, disks are full            world     a run's directories, what may
//! source     the source changes meanwhile                           stand in its target
//! journal    what a stopped copy has left is damaged      forest    random trees, changes
//! random     all of these, on random trees                snapshot  our own walk and comparison
//! malicious  a server that lies (evil)                    inject    strace
//! ```
//! A scenario takes a plan, runs and seed, and returns a tally: counts and violations. It is never
//! part of the programs; it knows lhscp by its command line alone.

pub mod copier;
pub mod dice;
pub mod errors;
pub mod evil;
pub mod forest;
pub mod inject;
pub mod journal;
pub mod kill;
pub mod malicious;
pub mod process;
pub mod random;
pub mod relay;
pub mod snapshot;
pub mod source;
pub mod tally;
pub mod watch;
pub mod world;

pub use copier::Whose;
pub use tally::{Plan, Tally};
