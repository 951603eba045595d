//! The server: bytes of a client in, bytes for the client out; what is between them is files.
//!
//! ```text
//! input     receiving thread   parses; WRITE goes from the pieces it lies in straight into the file
//! queue     under one lock     what waits, what runs, replies that are ready; all bounded
//! output    sending thread     READ goes from the file straight into what is sent; runs what is short
//! hands     0..3 threads       run what may take long, and help where much waits
//! run       any of the last    one request to its reply: files, look, change, dirs, small, blocks
//! ```
//! On two cores a hand-over between threads costs more than it wins, so bulk data is never handed
//! over, and short requests are run by the thread that sends their replies.
//!
//! **Order.** Replies come in any order, effects as if requests were run one by one: what only
//! looks may overtake what only looks, and nothing else overtakes anything. A WRITE is done at once
//! unless something that came before it still needs its handle as it was, or may change its file.

mod attributes;
mod blocks;
mod change;
mod dirs;
mod fault;
mod handles;
mod hands;
mod input;
mod log;
mod longname;
mod look;
mod names;
mod noreplace;
mod options;
mod output;
mod paths;
mod permit;
mod queue;
mod run;
mod small;
mod xattrs;

pub use input::Input;
pub use log::{Level, Log};
pub use options::{Action, Facility, Options, USAGE};
pub use output::Output;
pub use permit::requests;

use crate::codec::LinkOrder;
use queue::Shared;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

/// Name of the variable by which lhsshd tells an SFTP server that is a program of its own who the
/// client says it is: the software version of its identification.
pub const CLIENT: &str = "LONGHAUL_CLIENT";

/// Whom the server serves, and from where.
#[derive(Debug, Clone)]
pub struct Account {
    /// Login name.
    pub name: Vec<u8>,
    /// Home directory.
    pub home: PathBuf,
}

/// What a session needs to know besides its options.
pub struct Setup {
    /// What the command line says.
    pub options: Options,
    /// Whose session it is.
    pub account: Account,
    /// Where relative paths start, unless the options name another directory.
    pub start: PathBuf,
    /// The client's address, for the log.
    pub peer: String,
    /// In which order the client puts the arguments of SYMLINK.
    pub links: LinkOrder,
    /// Takes lines.
    pub log: Arc<dyn Log>,
}

/// A session as its owner sees it.
#[derive(Clone)]
pub struct Session(Arc<Shared>);

impl Session {
    /// The client is gone: whoever waits returns, what has not begun is dropped.
    pub fn hang_up(&self) {
        self.0.close();
    }

    /// What the program ends with: 0, or 11 where the client broke the protocol, as
    /// sftp-server(8).
    pub fn exit_status(&self) -> u8 {
        self.0.exit_status()
    }
}

/// Starts a session: its two ends, for the receiving and for the sending thread.
pub fn start(setup: Setup) -> io::Result<(Input, Output, Session)> {
    let shared = Arc::new(Shared::new(setup)?);
    shared.log_start();
    let ends = (Input::new(Arc::clone(&shared)), Output::new(Arc::clone(&shared)));
    Ok((ends.0, ends.1, Session(shared)))
}
