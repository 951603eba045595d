//! `--include` and `--exclude`: rules in their order, the first that matches decides, as with
//! rsync(1). Asked by the scan for every name below a source; a directory that is left out is not
//! looked into.
//!
//! A pattern matches the end of a path, from a `/` on: `*.o`, `cache/tmp`. With a leading `/` it
//! matches from the source on; with a trailing one directories only. `*`, `?` and `[a-z]` stop at
//! `/`, a `**` between slashes is any number of directories, and `dir/***` is the directory with
//! everything in it.

use globset::{Glob, GlobBuilder, GlobSet, GlobSetBuilder};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

/// Rules in their order; without one, everything is copied.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    globs: GlobSet,
    /// What each glob of the set belongs to.
    rules: Vec<Rule>,
}

#[derive(Debug, Clone, Copy)]
struct Rule {
    include: bool,
    directories_only: bool,
}

/// A rule as the command line has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    /// `--include`, otherwise `--exclude`.
    pub include: bool,
    /// Its text.
    pub text: String,
}

impl Filter {
    /// Compiles the rules.
    ///
    /// # Errors
    /// Names the pattern that is malformed, and why.
    pub fn new(patterns: &[Pattern]) -> Result<Self, String> {
        let (mut set, mut rules) = (GlobSetBuilder::new(), Vec::new());
        for Pattern { include, text } in patterns {
            let wrong = |why: &dyn std::fmt::Display| format!("pattern '{text}': {why}");
            for (glob, directories_only) in globs(text).map_err(|why| wrong(&why))? {
                set.add(compile(&glob).map_err(|error| wrong(error.kind()))?);
                rules.push(Rule { include: *include, directories_only });
            }
        }
        let globs = set.build().map_err(|error| error.to_string())?;
        Ok(Self { globs, rules })
    }

    /// Whether there is no rule.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Whether the name is copied, and, a directory, looked into. `path` is the one below the
    /// source, without a leading `/`.
    #[must_use]
    pub fn allows(&self, path: &[u8], is_directory: bool) -> bool {
        let matching = self.globs.matches(OsStr::from_bytes(path));
        let rule = matching.into_iter().filter_map(|at| self.rules.get(at));
        let mut rule = rule.filter(|rule| is_directory || !rule.directories_only);
        rule.next().is_none_or(|rule| rule.include)
    }
}

fn compile(glob: &str) -> Result<Glob, globset::Error> {
    GlobBuilder::new(glob).literal_separator(true).backslash_escape(true).build()
}

/// The globs of a pattern, anchored at the source, and whether each is for directories only.
fn globs(text: &str) -> Result<Vec<(String, bool)>, &'static str> {
    let (body, directories_only) = match text.strip_suffix('/') {
        Some(body) => (body, true),
        None => (text, false),
    };
    let anchored = match body.strip_prefix('/') {
        Some(rest) => rest.to_owned(),
        None => format!("**/{body}"),
    };
    match anchored.strip_suffix("/***") {
        _ if body.trim_matches('/').is_empty() => Err("it matches nothing"),
        Some(top) => Ok(vec![(top.to_owned(), true), (format!("{top}/**"), false)]),
        None => Ok(vec![(anchored, directories_only)]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rules as `+pattern` and `-pattern`.
    fn filter(rules: &[&str]) -> Filter {
        let pattern =
            |rule: &&str| Pattern { include: rule.starts_with('+'), text: rule[1..].to_owned() };
        Filter::new(&rules.iter().map(pattern).collect::<Vec<_>>()).unwrap()
    }

    #[test]
    fn a_pattern_matches_as_rsyncs_do() {
        // pattern, path (a trailing slash: a directory), whether it matches
        let cases = [
            ("*.o", "a.o", true),
            ("*.o", "d/e/a.o", true),
            ("*.o", "a.c", false),
            ("*.o", ".o", true),
            ("core", "d/core", true),
            ("core", "score", false),
            ("cache/tmp", "a/cache/tmp", true),
            ("cache/tmp", "cache/x/tmp", false),
            ("/build", "build", true),
            ("/build", "d/build", false),
            ("/a/*.c", "a/x.c", true),
            ("/a/*.c", "a/b/x.c", false),
            ("/a/**/*.c", "a/b/d/x.c", true),
            ("tmp/", "d/tmp/", true),
            ("tmp/", "d/tmp", false),
            ("dir/***", "dir/", true),
            ("dir/***", "dir/a/b", true),
            ("dir/***", "dir", false),
            ("?.txt", "a.txt", true),
            ("?.txt", "ab.txt", false),
            ("[a-c].txt", "b.txt", true),
            ("[!a-c].txt", "b.txt", false),
            ("\\*.txt", "*.txt", true),
            ("\\*.txt", "a.txt", false),
        ];
        for (pattern, path, want) in cases {
            let filter = filter(&[&format!("-{pattern}")]);
            let allowed = filter.allows(path.trim_end_matches('/').as_bytes(), path.ends_with('/'));
            assert_eq!(!allowed, want, "{pattern} {path}");
        }
    }

    #[test]
    fn the_first_rule_that_matches_decides() {
        let only_c = filter(&["+*.c", "+*/", "-*"]);
        assert!(only_c.allows(b"a.c", false) && only_c.allows(b"d", true));
        assert!(!only_c.allows(b"a.h", false));
        let late = filter(&["-*", "+*.c"]);
        assert!(!late.allows(b"a.c", false));
        assert!(Filter::default().allows(b"anything", false));
    }

    #[test]
    fn names_are_bytes() {
        let filter = filter(&["-*.tmp"]);
        assert!(!filter.allows(b"\xff\n.tmp", false));
        assert!(filter.allows(b"\xff\n", false));
    }

    #[test]
    fn a_malformed_pattern_is_named() {
        for wrong in ["[a", "{a", "", "/", "a\\"] {
            let pattern = Pattern { include: false, text: wrong.to_owned() };
            let why = Filter::new(&[pattern]).unwrap_err();
            assert!(why.starts_with(&format!("pattern '{wrong}': ")), "{why}");
        }
    }
}
