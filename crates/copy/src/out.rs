//! Out: lines on standard output, for programs and for whoever reads what a dry run would do. The
//! first that could not be written is kept: what is missing there would look as if it were not.

use copy::report::{Failure, What};
use std::io::{self, ErrorKind, Write};
use std::sync::OnceLock;
use wire::text::words;

static FAILED: OnceLock<io::Error> = OnceLock::new();

/// Writes a line. A reader that is gone has what it wanted, and does not end the copy.
pub(crate) fn line(text: &str) {
    let mut out = io::stdout().lock();
    let written = out.write_all(format!("{text}\n").as_bytes()).and_then(|()| out.flush());
    if let Err(error) = written
        && error.kind() != ErrorKind::BrokenPipe
    {
        FAILED.get_or_init(|| error);
    }
}

/// What was not written, if anything.
pub(crate) fn failure() -> Option<Failure> {
    let why = words(FAILED.get()?);
    Some(Failure { what: What::Path(b"standard output".to_vec()), name: None, why })
}
