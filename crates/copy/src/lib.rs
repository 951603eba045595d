//! lhscp's parts below its command line: what to copy, how, what became of it.
//!
//! ```text
//! options   everything the command line can say, resolved
//! filter    which names below a source are copied     shard   which of them on this host
//! observe   what happens meanwhile, as events         report  what became of it in the end
//! bwlimit   how fast, all lanes together
//! run       the copy itself
//! ```

#![cfg_attr(not(test), deny(clippy::indexing_slicing))]

pub mod bwlimit;
mod escape;
pub mod filter;
pub mod list;
pub mod observe;
pub mod options;
pub mod report;
mod run;
pub mod shard;

pub use escape::shown;
pub use observe::{Event, Observer};
pub use options::Options;
pub use report::Report;
pub use run::{Copies, RETRIES, Retries, run, run_with_state, state_directory};
