//! Questions to the user, on the terminal that controls the program.

use std::fs::OpenOptions;
use std::io::{self, BufRead, BufReader, Write};
use zeroize::Zeroizing;

/// Asks a question and reads a line, without its end.
pub(crate) fn ask(question: &str) -> io::Result<String> {
    let mut terminal = OpenOptions::new().read(true).write(true).open("/dev/tty")?;
    terminal.write_all(question.as_bytes())?;
    let mut answer = String::new();
    if BufReader::new(terminal).read_line(&mut answer)? == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(answer.trim().to_owned())
}

/// Asks for a passphrase, without echo.
pub(crate) fn passphrase(question: &str) -> io::Result<Zeroizing<String>> {
    rpassword::prompt_password(question).map(Zeroizing::new)
}
