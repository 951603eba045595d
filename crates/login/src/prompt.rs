//! Questions to the user, on the terminal that controls the program.
//!
//! A passphrase is typed without echo. A program that ^C kills meanwhile would leave the terminal
//! like that, and some shells do not put it right. So ^C and ^Z end the line instead of sending
//! their signal (ISIG, VEOL of termios(3)); the terminal gets its settings back, and then everybody
//! in its foreground gets the signal, as they would have.

use crate::asking::Asking;
use rustix::process::Signal;
use rustix::termios::{self, LocalModes, OptionalActions, SpecialCodeIndex, SpecialCodes, Termios};
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Write};
use zeroize::Zeroizing;

/// Longest passphrase, in bytes; longer lines than 4095 bytes no terminal passes.
const LONGEST: usize = 4096;

/// Asks a question and reads a line, without its end.
pub(crate) fn ask(question: &str) -> io::Result<String> {
    let _asking = Asking::new();
    let mut terminal = terminal()?;
    terminal.write_all(question.as_bytes())?;
    let mut answer = String::new();
    if BufReader::new(terminal).read_line(&mut answer)? == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(answer.trim().to_owned())
}

/// Asks for a passphrase, without echo.
pub(crate) fn passphrase(question: &str) -> io::Result<Zeroizing<String>> {
    let _asking = Asking::new();
    let terminal = terminal()?;
    loop {
        match secret(&terminal, question)? {
            Typed::Line(passphrase) => return Ok(passphrase),
            Typed::Signal(signal) => {
                let foreground = termios::tcgetpgrp(&terminal)?;
                rustix::process::kill_process_group(foreground, signal)?;
                if signal == Signal::INT {
                    return Err(io::ErrorKind::Interrupted.into());
                }
            }
        }
    }
}

fn terminal() -> io::Result<File> {
    OpenOptions::new().read(true).write(true).open("/dev/tty")
}

/// What a user answers with.
enum Typed {
    Line(Zeroizing<String>),
    /// A key that is to send this.
    Signal(Signal),
}

/// Keys that end the line here, the signal of each, and what makes them end a line.
const SIGNALS: [(SpecialCodeIndex, Signal, SpecialCodeIndex); 2] = [
    (SpecialCodeIndex::VINTR, Signal::INT, SpecialCodeIndex::VEOL),
    (SpecialCodeIndex::VSUSP, Signal::TSTP, SpecialCodeIndex::VEOL2),
];

/// One line, typed without echo.
fn secret(terminal: &File, question: &str) -> io::Result<Typed> {
    let quiet = Quiet::new(terminal)?;
    (&*terminal).write_all(question.as_bytes())?;
    let mut line = Zeroizing::new([0; LONGEST]);
    let len = (&*terminal).read(&mut *line)?;
    (&*terminal).write_all(b"\n")?;
    let typed = line.get(..len).unwrap_or_default();
    let Some((&end, content)) = typed.split_last() else {
        return Err(io::ErrorKind::UnexpectedEof.into());
    };
    if let Some(signal) = quiet.signal(end) {
        return Ok(Typed::Signal(signal));
    }
    let content = if end == b'\n' { content } else { typed };
    let text = str::from_utf8(content).map_err(|_| io::ErrorKind::InvalidData)?;
    Ok(Typed::Line(Zeroizing::new(text.to_owned())))
}

/// A terminal without echo, for as long as this lives.
struct Quiet<'a> {
    terminal: &'a File,
    before: Termios,
}

impl<'a> Quiet<'a> {
    fn new(terminal: &'a File) -> io::Result<Self> {
        let before = termios::tcgetattr(terminal)?;
        let mut quiet = before.clone();
        quiet.local_modes.remove(LocalModes::ECHO | LocalModes::ISIG);
        quiet.local_modes.insert(LocalModes::ICANON);
        for (key, _, ends_line) in SIGNALS {
            quiet.special_codes[ends_line] = before.special_codes[key];
        }
        // What was typed before the question was not meant for it.
        termios::tcsetattr(terminal, OptionalActions::Flush, &quiet)?;
        Ok(Self { terminal, before })
    }

    fn signal(&self, byte: u8) -> Option<Signal> {
        let codes: &SpecialCodes = &self.before.special_codes;
        SIGNALS.iter().find(|(key, ..)| codes[*key] == byte).map(|(_, signal, _)| *signal)
    }
}

impl Drop for Quiet<'_> {
    fn drop(&mut self) {
        let _ = termios::tcsetattr(self.terminal, OptionalActions::Flush, &self.before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    use std::os::fd::OwnedFd;

    /// A terminal, and who sits in front of it.
    fn pair() -> (File, File) {
        let user: OwnedFd = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&user).unwrap();
        unlockpt(&user).unwrap();
        let name = ptsname(&user, Vec::new()).unwrap().into_string().unwrap();
        let flags = rustix::fs::OFlags::RDWR | rustix::fs::OFlags::NOCTTY;
        let terminal = rustix::fs::open(name, flags, rustix::fs::Mode::empty()).unwrap();
        (user.into(), terminal.into())
    }

    /// What comes of `keys` typed at a question, and all that the user then sees.
    fn type_in(keys: &[u8]) -> (io::Result<Typed>, String) {
        let (mut user, terminal) = pair();
        let echoes = || termios::tcgetattr(&terminal).unwrap().local_modes;
        let before = echoes();
        let typed = std::thread::scope(|scope| {
            let asking = scope.spawn(|| secret(&terminal, "Passphrase: "));
            let mut question = [0; 12];
            user.read_exact(&mut question).unwrap();
            assert!(!echoes().contains(LocalModes::ECHO));
            user.write_all(keys).unwrap();
            asking.join().unwrap()
        });
        assert_eq!(echoes(), before, "the terminal is as it was");
        let mut seen = [0; 100];
        let len = user.read(&mut seen).unwrap();
        (typed, String::from_utf8_lossy(&seen[..len]).into_owned())
    }

    #[test]
    fn a_passphrase_is_not_echoed_and_can_be_corrected() {
        let (typed, seen) = type_in(b"sesamy\x7fe !\n");
        assert!(matches!(typed, Ok(Typed::Line(line)) if *line == "sesame !"));
        assert_eq!(seen, "\r\n");
    }

    #[test]
    fn keys_that_send_signals_give_the_terminal_back_first() {
        assert!(matches!(type_in(b"ses\x03").0, Ok(Typed::Signal(Signal::INT))));
        assert!(matches!(type_in(b"\x1a").0, Ok(Typed::Signal(Signal::TSTP))));
    }

    #[test]
    fn no_answer_is_an_error() {
        let end = type_in(b"\x04").0.err().map(|e| e.kind());
        assert_eq!(end, Some(io::ErrorKind::UnexpectedEof));
    }
}
