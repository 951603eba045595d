//! Stderr: what the other end says on its standard error, shown line by line and harmless (E2).

use engine::Consumer;
use std::fs::File;
use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd};

/// Longest line that is kept together.
const LINE: usize = 1024;

/// Collects lines and says each.
pub(crate) struct Stderr {
    line: Vec<u8>,
    say: Box<dyn Fn(&str) + Send>,
    room: File,
}

impl Stderr {
    /// `say` gets each line, escaped.
    pub(crate) fn new(say: impl Fn(&str) + Send + 'static) -> io::Result<Self> {
        Ok(Self { line: Vec::new(), say: Box::new(say), room: crate::ends::always()? })
    }

    fn hear(&mut self, bytes: &[u8]) {
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            for piece in part.chunks(LINE) {
                self.line.extend_from_slice(piece);
                if self.line.ends_with(b"\n") || self.line.len() >= LINE {
                    self.speak();
                }
            }
        }
    }

    fn speak(&mut self) {
        let line = String::from_utf8_lossy(&self.line);
        let line = line.trim_end_matches(['\r', '\n']);
        if !line.is_empty() {
            (self.say)(&login::escaped(line));
        }
        self.line.clear();
    }
}

impl Consumer for Stderr {
    fn take(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        pieces.iter().for_each(|piece| self.hear(piece));
        Ok(pieces.iter().map(|piece| piece.len()).sum())
    }

    fn room(&self) -> BorrowedFd<'_> {
        self.room.as_fd()
    }

    fn end(&mut self) {
        self.speak();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};

    #[test]
    fn e2_the_other_ends_words_come_in_lines_and_cannot_drive_the_terminal() {
        let heard = Arc::new(Mutex::new(Vec::new()));
        let tell = Arc::clone(&heard);
        let mut stderr =
            Stderr::new(move |line| tell.lock().unwrap().push(line.to_owned())).unwrap();
        stderr.take(&[IoSlice::new(b"one\r\nt"), IoSlice::new(b"wo\x1b[2J\n\nth")]).unwrap();
        stderr.take(&[IoSlice::new(&[b'x'; 3000])]).unwrap();
        stderr.end();
        let heard = heard.lock().unwrap();
        assert_eq!(heard[..2], ["one", "two\\u{1b}[2J"]);
        assert!(heard.iter().all(|line| line.len() <= 2 * LINE));
        assert_eq!(heard[2..].concat(), format!("th{}", "x".repeat(3000)));
    }
}
