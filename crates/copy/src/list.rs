//! `--files-from`: names below the one source, one a line, or one before each NUL byte (`-0`).
//! Read by the scan while lanes work already, so that a list as long as it likes costs no memory.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::PathBuf;

/// A list that was not read yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct List {
    /// Its file; standard input if there is none.
    pub file: Option<PathBuf>,
    /// Names end in NUL, not in a newline.
    pub nul: bool,
}

impl List {
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
    type Item = io::Result<Vec<u8>>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let mut name = Vec::new();
            match self.input.read_until(self.end, &mut name) {
                Err(error) => return Some(Err(error)),
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
fn tidy(name: &[u8]) -> io::Result<Vec<u8>> {
    let refused = |why| Err(io::Error::new(io::ErrorKind::InvalidData, why));
    let parts = name.split(|&byte| byte == b'/');
    let parts: Vec<&[u8]> = parts.filter(|part| !part.is_empty() && *part != b".").collect();
    match parts {
        _ if name.contains(&0) => refused("a name holds NUL; --from0 is for lists with NUL"),
        parts if parts.contains(&b"..".as_slice()) => refused("a name goes through '..'"),
        parts => Ok(parts.join(&b'/')),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &[u8], end: u8) -> Vec<Result<Vec<u8>, String>> {
        let names = Names { input: text, end };
        names.map(|name| name.map_err(|error| error.to_string())).collect()
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
        assert!(names(b"a\0b\n", b'\n')[0].as_ref().unwrap_err().contains("--from0"));
    }

    #[test]
    fn f1_a_listed_name_does_not_leave_the_source() {
        for wrong in [&b".."[..], b"a/../b", b"../x", b"a/.."] {
            assert!(names(wrong, b'\n')[0].as_ref().unwrap_err().contains(".."));
        }
        assert_eq!(good(b"..a\n...\n", b'\n'), [&b"..a"[..], b"..."]);
    }
}
