//! Inject: system calls that fail because strace says so, and which ones did.

use crate::copier::{Copier, Way};
use anyhow::{Context, Result};
use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Calls by which a file is written; those that a kernel does not have are left out by strace.
pub const WRITING: &[&str] = &[
    "pwrite64",
    "pwritev",
    "pwritev2",
    "write",
    "writev",
    "copy_file_range",
    "ftruncate",
    "fallocate",
    "fsync",
    "fdatasync",
    "openat",
    "openat2",
    "rename",
    "renameat",
    "renameat2",
    "mkdir",
    "mkdirat",
    "fchmod",
    "fchmodat",
    "fchown",
    "fchownat",
    "utimensat",
    "symlink",
    "symlinkat",
    "link",
    "linkat",
];

/// The errors of issue and standard: a full disk, a full quota, a broken disk, no permission.
pub const ERRORS: &[Errno] = &[
    Errno("ENOSPC", &["No space left on device"]),
    Errno("EDQUOT", &["uota exceeded"]),
    Errno("EIO", &["Input/output error", "I/O error"]),
    Errno("EACCES", &["Permission denied"]),
];

/// An error's name, and what those who know it say.
#[derive(Debug, Clone, Copy)]
pub struct Errno(pub &'static str, pub &'static [&'static str]);

/// One call of a thread, counted from one: `when=` of strace.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Point {
    /// Its name.
    pub call: String,
    /// The how many of its thread.
    pub when: u64,
}

/// A call that was made to fail.
#[derive(Debug, Clone)]
pub struct Hit {
    /// Its name.
    pub call: String,
    /// The line of strace, which has the paths.
    pub line: String,
}

/// strace around the side that writes.
#[derive(Debug)]
pub struct Strace {
    log: PathBuf,
}

impl Strace {
    /// Around `copier` when it downloads, around its server when it uploads. `inject` is an
    /// expression of strace; without one the calls are only written down.
    pub fn around(copier: &mut Copier, way: Way, inject: Option<&str>) -> Result<Self> {
        let log = copier.scratch.join("strace");
        let names: Vec<String> = WRITING.iter().map(|name| format!("?{name}")).collect();
        let mut words: Vec<String> =
            ["strace", "-ff", "--seccomp-bpf", "-y", "-qq", "-s", "300", "-A"]
                .map(str::to_owned)
                .to_vec();
        words.extend(["-o".to_owned(), log.display().to_string()]);
        words.extend(["-e".to_owned(), format!("trace={}", names.join(","))]);
        words
            .extend(inject.iter().flat_map(|inject| ["-e".to_owned(), format!("inject={inject}")]));
        match (way, copier.server.take()) {
            (Way::Up, Some(server)) => {
                words.push(server.display().to_string());
                copier.server = Some(server);
                copier.serve_by(&words)?;
            }
            (_, server) => {
                copier.server = server;
                copier.before = words;
            }
        }
        Ok(Self { log })
    }

    /// Calls that changed something below `root`, but for writes with a number that another process
    /// gave an answer: every server that is started anew would lose its connection by it.
    pub fn points(&self, root: &Path) -> Result<Vec<Point>> {
        let root = root.display().to_string();
        let mut counts = HashMap::new();
        let (mut points, mut answers) = (Vec::new(), HashSet::new());
        for (pid, call, line) in self.log()?.lines().filter_map(split) {
            let when = counts.entry((pid.to_owned(), call.to_owned())).or_insert(0);
            *when += 1;
            let point = Point { call: call.to_owned(), when: *when };
            match changes(call, line, &root) {
                true => points.push(point),
                false if call.starts_with("write") => _ = answers.insert(point),
                false => {}
            }
        }
        points.retain(|point| !answers.contains(point));
        Ok(points)
    }

    /// Calls that were made to fail.
    pub fn hits(&self) -> Result<Vec<Hit>> {
        let text = self.log()?;
        let lines = text.lines().filter(|line| line.contains("(INJECTED)"));
        Ok(lines.filter_map(split).map(Hit::new).collect())
    }

    /// Of all processes, each line with its process. Each has a file of its own: several straces in
    /// one file write into each other's lines.
    fn log(&self) -> Result<String> {
        let directory = self.log.parent().context("a log is in a directory")?;
        let mut text = String::new();
        for entry in fs::read_dir(directory)? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            let Some(pid) = name.strip_prefix("strace.") else { continue };
            let bytes = fs::read(directory.join(&name)).with_context(|| name.clone())?;
            for line in String::from_utf8_lossy(&bytes).lines() {
                text += &format!("{pid} {line}\n");
            }
        }
        Ok(text)
    }
}

impl Hit {
    fn new((_, call, line): (&str, &str, &str)) -> Self {
        Self { call: call.to_owned(), line: line.to_owned() }
    }

    /// Whether it was about something below `root`. The second half of a call that others interrupted
    /// has no path: it may be about any file.
    #[must_use]
    pub fn may_be_about(&self, root: &str) -> bool {
        is_about(&self.call, &self.line, root) || self.line.starts_with("<... ")
    }

    /// Which of `names` it is about: the longest of each path that the line has, with what stands
    /// behind it. Mostly one, but strace may write two calls into one line, and a rename has two.
    #[must_use]
    pub fn about<'a>(&self, names: &'a [String]) -> Vec<&'a str> {
        let longest = |part: &str| {
            let found = names.iter().filter(|name| part.contains(*name));
            found.max_by_key(|name| name.len()).map(String::as_str)
        };
        let calls = usize::from(self.line.contains("</"));
        self.line.split("</").skip(calls).filter_map(longest).collect()
    }
}

/// Whether a call is about something below `root`. A server's answers have paths in them, too: of
/// `write` and its like only the file counts, not the bytes.
fn is_about(call: &str, line: &str, root: &str) -> bool {
    let place = match call.contains("write") {
        true => line.split_once(", ").map_or(line, |(file, _)| file),
        false => line,
    };
    place.contains(root)
}

/// Whether it changes something there.
fn changes(call: &str, line: &str, root: &str) -> bool {
    is_about(call, line, root) && !line.contains("O_RDONLY") && !line.contains("O_PATH")
}

/// Thread, call and the rest of a line. A call that others interrupted comes in two lines: the
/// first has the paths and counts, unless the second says that it was made to fail.
fn split(line: &str) -> Option<(&str, &str, &str)> {
    let (pid, rest) = line.split_once(' ')?;
    let rest = rest.trim_start();
    if let Some(resumed) = rest.strip_prefix("<... ") {
        let call = resumed.split_once(' ')?.0;
        return rest.contains("(INJECTED)").then_some((pid, call, rest));
    }
    let call = rest.split_once('(')?.0;
    call.bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        .then_some((pid, call, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_that_names_the_target_is_no_call_on_it() {
        let write = r#"write(1<pipe:[7]>, "\0\0\0#h/t/to", 15) = 15"#;
        assert!(!is_about("write", write, "/t/to"));
        assert!(changes("pwrite64", r#"pwrite64(5</t/to/.a.part>, "x", 1, 0) = 1"#, "/t/to"));
        assert!(changes("rename", r#"rename("/t/to/.a.part", "/t/to/a") = 0"#, "/t/to"));
        assert!(!changes("openat", r#"openat(3, "/t/to/a", O_RDONLY) = 4"#, "/t/to"));
    }

    #[test]
    fn lines_of_strace_come_apart() {
        let line = r#"123 openat(5</t/to>, ".a.0.part", O_RDWR) = -1 ENOSPC (x) (INJECTED)"#;
        let (pid, call, rest) = split(line).unwrap();
        assert_eq!((pid, call), ("123", "openat"));
        let hit = Hit::new((pid, call, rest));
        assert_eq!(hit.about(&["a".into(), "b.txt".into()]), ["a"]);
        let merged =
            r#"9 pwritev(5</t/.first.0.part>, [{""}], 1, 2010 pwritev(5</t/.second>) (INJECTED)"#;
        let hit = Hit::new(split(merged).unwrap());
        assert_eq!(hit.about(&["t".into(), "first".into(), "second".into()]), ["first", "second"]);
        assert!(split("123 +++ exited with 0 +++").is_none());
        assert!(split("123 <... openat resumed>) = 3").is_none());
        assert_eq!(split("9 <... write resumed>) = -1 EIO (INJECTED)").unwrap().1, "write");
    }
}
