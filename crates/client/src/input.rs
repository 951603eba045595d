//! Standard input as the data of a channel, of a command or of `-W`: what its end means.

use crate::command::Outcome;
use crate::run::FAILED;
use engine::{Session, SourceEnd};
use login::Log;
use proto::channel::LocalId;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// What became of our standard input, for both threads that want to know.
#[derive(Clone)]
pub(crate) struct Input {
    log: Log,
    failed: Arc<AtomicBool>,
}

impl Input {
    /// Says in `log` when it cannot be read.
    pub(crate) fn new(log: &Log) -> Self {
        Self { log: log.clone(), failed: Arc::default() }
    }

    /// On the source's thread: the other end sees the end of our input, which may not be all of it.
    pub(crate) fn ended(&self, session: &Session, id: LocalId, end: SourceEnd) {
        // Without its end no EOF: what the other end has would count as all of it.
        let failure = match end {
            // The receiving thread still hears the other end's last words.
            SourceEnd::Lost(_) => return,
            SourceEnd::Failed(why) => Some(why).filter(|why| !is_end(why)),
            SourceEnd::Eof | SourceEnd::Unwanted => None,
        };
        self.failed.store(failure.is_some(), Ordering::SeqCst);
        // The connection may be over already; the receiving thread says why.
        let _ = session.call(|connection, out| connection.eof(id, out));
        if let Some(why) = failure {
            self.log.fatal(format_args!("read from standard input: {why}"), None);
        }
    }

    /// Success that was made of a part of the input is none. The reason was told.
    pub(crate) fn judge(&self, outcome: Outcome) -> Outcome {
        match outcome {
            Outcome::Exited(0) if self.failed.load(Ordering::SeqCst) => {
                Outcome::Exited(FAILED.into())
            }
            outcome => outcome,
        }
    }
}

/// A socket whose other end was closed while we had data for it is over, not broken: so a program
/// leaves that has started us, and reads no more.
fn is_end(why: &io::Error) -> bool {
    why.kind() == io::ErrorKind::ConnectionReset
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;

    #[test]
    fn a_socket_that_is_closed_before_it_read_all_has_ended() {
        let (mut ours, mut theirs) = UnixStream::pair().unwrap();
        theirs.write_all(b"all of the input").unwrap();
        ours.write_all(b"output").unwrap();
        drop(theirs);
        let mut input = String::new();
        let why = ours.read_to_string(&mut input).map(drop);
        assert!(why.as_ref().is_err_and(is_end), "{why:?}");
        assert!(!is_end(&io::ErrorKind::IsADirectory.into()));
    }
}
