//! `--files-from`: names below the one source, one a line, or one before each NUL byte (`-0`).
//! Read by the scan while lanes work already, so that a list as long as it likes costs no memory.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// A list that was not read yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct List {
    /// Its file; standard input if there is none.
    pub file: Option<PathBuf>,
    /// Names end in NUL, not in a newline.
    pub nul: bool,
}

/// Why there is no next name.
#[derive(Debug)]
pub enum Wrong {
    /// A name that is refused; others may follow.
    Name(Vec<u8>, &'static str),
    /// The list cannot be read any further.
    Unread(io::Error),
}

impl List {
    /// What it is called.
    #[must_use]
    pub fn name(&self) -> &[u8] {
        self.file.as_ref().map_or(b"-", |path| path.as_os_str().as_bytes())
    }

    /// Opens it.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn open(&self) -> io::Result<Names<Box<dyn BufRead + Send>>> {
        let input: Box<dyn BufRead + Send> = match &self.file {
            Some(path) => Box::new(BufReader::new(File::open(path)?)),
            None => Box::new(BufReader::new(io::stdin())),
        };
        Ok(Names { input, end: if self.nul { 0 } else { b'\n' } })
    }
}

/// The names of a list in their order, checked: relative, without `.` and `..`.
#[derive(Debug)]
pub struct Names<R> {
    input: R,
    end: u8,
}

impl<R: BufRead> Iterator for Names<R> {
    type Item = Result<Vec<u8>, Wrong>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let mut name = Vec::new();
            match self.input.read_until(self.end, &mut name) {
                Err(error) => return Some(Err(Wrong::Unread(error))),
                Ok(0) => return None,
                Ok(_) => {}
            }
            name.pop_if(|last| *last == self.end);
            match tidy(&name) {
                Ok(name) if name.is_empty() => {}
                other => return Some(other),
            }
        }
    }
}

/// Without leading, doubled and trailing slashes and `.`, as rsync takes them; `..` is refused.
fn tidy(name: &[u8]) -> Result<Vec<u8>, Wrong> {
    if let Some(at) = name.iter().position(|byte| *byte == 0) {
        // All that follows may be the rest of the list.
        let first = name.get(..at).unwrap_or_default().to_vec();
        return Err(Wrong::Name(first, "the name holds NUL; --from0 is for lists with NUL"));
    }
    let parts = name.split(|&byte| byte == b'/');
    let parts: Vec<&[u8]> = parts.filter(|part| !part.is_empty() && *part != b".").collect();
    match parts.contains(&b"..".as_slice()) {
        true => Err(Wrong::Name(name.to_vec(), "the name goes through '..'")),
        false => Ok(parts.join(&b'/')),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &[u8], end: u8) -> Vec<Result<Vec<u8>, String>> {
        let names = Names { input: text, end };
        let told = |wrong| match wrong {
            Wrong::Name(name, why) => format!("{}: {why}", crate::shown(&name)),
            Wrong::Unread(error) => error.to_string(),
        };
        names.map(|name| name.map_err(told)).collect()
    }

    fn good(text: &[u8], end: u8) -> Vec<Vec<u8>> {
        names(text, end).into_iter().map(Result::unwrap).collect()
    }

    #[test]
    fn names_are_lines_of_any_bytes() {
        assert_eq!(good(b"a\nb/c\n\xff d", b'\n'), [&b"a"[..], b"b/c", b"\xff d"]);
        assert_eq!(good(b"\n\n./a//b/\n/etc/x\n", b'\n'), [&b"a/b"[..], b"etc/x"]);
        assert!(good(b"", b'\n').is_empty());
    }

    #[test]
    fn with_nul_a_name_may_hold_newlines() {
        assert_eq!(good(b"a\nb\0c\0", 0), [&b"a\nb"[..], b"c"]);
        let wrong = names(b"a\0b\nc\n", b'\n');
        let why = wrong[0].as_ref().unwrap_err();
        assert!(why.starts_with("a: ") && why.contains("--from0"), "{why}");
        assert_eq!(wrong[1].as_deref(), Ok(&b"c"[..]));
    }

    #[test]
    fn f1_a_listed_name_does_not_leave_the_source() {
        for wrong in [&b".."[..], b"a/../b", b"../x", b"a/.."] {
            assert!(names(wrong, b'\n')[0].as_ref().unwrap_err().contains(".."));
        }
        assert_eq!(good(b"..a\n...\n", b'\n'), [&b"..a"[..], b"..."]);
    }
}
