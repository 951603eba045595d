//! What is printed where there is no log yet: answers on standard output, refusals on standard
//! error. Whoever reads it may have left, which is no reason to panic.

use crate::run::FAILED;
use std::io::{self, ErrorKind, Write};
use std::process::ExitCode;

/// All that was asked for. A reader that had enough of it is no error.
pub(crate) fn answer(text: &str) -> ExitCode {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(why) if why.kind() != ErrorKind::BrokenPipe => {
            refusal(&format!("lhssh: write to standard output: {why}\n"))
        }
        _ => ExitCode::SUCCESS,
    }
}

/// Why there is nothing to be done.
pub(crate) fn refusal(text: &str) -> ExitCode {
    note(text);
    ExitCode::from(FAILED)
}

/// Text for standard error, as far as that takes it.
pub(crate) fn note(text: &str) {
    let _ = io::stderr().write_all(text.as_bytes());
}
