//! What the program tells its user: standard error or the file of `-E`, by LogLevel.

use conf::LogLevel;
use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::Stdio;
use std::sync::{Arc, Mutex};

pub use wire::text::visible as escaped;

/// Where messages go and which. Clones are the same log.
#[derive(Clone)]
pub struct Log {
    name: &'static str,
    level: LogLevel,
    file: Option<Arc<Mutex<File>>>,
}

impl Log {
    /// Messages of `name` at `level` or more important, to standard error or appended to `file`.
    pub fn new(name: &'static str, level: LogLevel, file: Option<&Path>) -> io::Result<Self> {
        let open = |path| OpenOptions::new().append(true).create(true).mode(0o600).open(path);
        let file = file.map(open).transpose()?.map(|file| Arc::new(Mutex::new(file)));
        Ok(Self { name, level, file })
    }

    /// `-v`: level 1 to 3.
    pub fn debug(&self, level: u8, message: fmt::Arguments<'_>) {
        let needed = match level {
            0 | 1 => LogLevel::Debug1,
            2 => LogLevel::Debug2,
            _ => LogLevel::Debug3,
        };
        if self.level >= needed {
            self.line(format_args!("debug{level}: {message}"));
        }
    }

    /// What every user wants to know, unless `-q`.
    pub fn info(&self, message: fmt::Arguments<'_>) {
        if self.level >= LogLevel::Info {
            self.line(message);
        }
    }

    /// What a user must not miss, whatever LogLevel says but `-q`.
    pub fn warn(&self, message: fmt::Arguments<'_>) {
        if self.level > LogLevel::Quiet {
            self.line(message);
        }
    }

    /// What went wrong, unless `-q`.
    pub fn error(&self, message: fmt::Arguments<'_>) {
        if self.level >= LogLevel::Error {
            self.line(format_args!("{}: {message}", self.name));
        }
    }

    /// What ends the program; `-q` does not silence it.
    pub fn fatal(&self, message: fmt::Arguments<'_>, hint: Option<&str>) {
        self.line(format_args!("{}: {message}", self.name));
        if let Some(hint) = hint.filter(|_| self.level > LogLevel::Quiet) {
            self.line(format_args!("hint: {hint}"));
        }
    }

    /// The server's words for the user (RFC 4252 section 5.4), made harmless.
    pub fn banner(&self, text: &str) {
        if self.level >= LogLevel::Info {
            for line in text.trim_end_matches('\n').split('\n') {
                self.line(format_args!("{}", escaped(line.trim_end_matches('\r'))));
            }
        }
    }

    /// The program that says all this.
    pub(crate) fn name(&self) -> &'static str {
        self.name
    }

    /// Where a program of our own that we start has to say things: beside ours.
    pub(crate) fn for_child(&self) -> io::Result<Stdio> {
        let file = self.file.as_ref().and_then(|file| file.lock().ok());
        file.map_or(Ok(Stdio::inherit()), |file| file.try_clone().map(Stdio::from))
    }

    /// Whether `-v` of this level is on.
    pub fn level(&self) -> LogLevel {
        self.level
    }

    /// One write per line, so that concurrent programs do not mix theirs.
    fn line(&self, message: fmt::Arguments<'_>) {
        let line = format!("{message}\n");
        // A log that cannot be written must not end the work.
        let _ = match &self.file {
            None => io::stderr().write_all(line.as_bytes()),
            Some(file) => match file.lock() {
                Ok(mut file) => file.write_all(line.as_bytes()),
                Err(_) => Ok(()),
            },
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// E2.
    #[test]
    fn text_of_the_server_cannot_drive_the_terminal() {
        assert_eq!(escaped("ok \x1b[2J\r\u{202e}x\u{9b}"), "ok \\u{1b}[2J\\r\\u{202e}x\\u{9b}");
        assert_eq!(escaped("Grüße, 世界"), "Grüße, 世界");
    }
}
