//! Paths that a pattern stands for, here or at the server.
//!
//! ```text
//! braces    {a,b} -> one pattern each (ls only, as in sftp(1))
//! walk      component by component: plain ones are appended, patterns are looked up
//! ```
//! A name from a listing is taken only if it is one component that the pattern asks for (F1).

use crate::failure::Result;
use crate::pattern::Pattern;

/// What a name stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Directory,
    Link,
    Other,
}

/// Where patterns are looked up.
pub(crate) trait Tree {
    /// What is known about a file.
    type Stat: Clone;
    /// The names in a directory; none in one that is not there or must not be read. Any other error
    /// would make a pattern stand for less than it should.
    fn names(&self, directory: &[u8]) -> Result<Vec<Vec<u8>>>;
    /// The file itself, a symbolic link not followed.
    fn lstat(&self, path: &[u8]) -> Result<Option<Self::Stat>>;
    /// The file, links followed.
    fn stat(&self, path: &[u8]) -> Result<Option<Self::Stat>>;
    /// What kind of file that is.
    fn kind(stat: &Self::Stat) -> Kind;
}

/// A path that is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Found<S> {
    /// The path; a directory's ends in `/`.
    pub(crate) path: Vec<u8>,
    /// The file; what a link points to, if it points to anything.
    pub(crate) stat: S,
    /// It is a directory, or a link to one.
    pub(crate) is_directory: bool,
}

/// All paths that fit, in the order of their bytes.
pub(crate) fn expand<T: Tree>(tree: &T, pattern: &[u8]) -> Result<Vec<Found<T::Stat>>> {
    let mut found = unsorted(tree, pattern, Dots::Skipped)?;
    found.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(found)
}

/// All paths that fit one of the alternatives in braces, as the listings have them.
pub(crate) fn expand_braces<T: Tree>(tree: &T, pattern: &[u8]) -> Result<Vec<Found<T::Stat>>> {
    let mut found = Vec::new();
    for pattern in braces(pattern) {
        found.append(&mut unsorted(tree, &pattern, Dots::Listed)?);
    }
    Ok(found)
}

/// The path that a pattern without a match stands for.
pub(crate) fn plain(pattern: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(pattern.len());
    let mut bytes = pattern.iter().copied();
    while let Some(byte) = bytes.next() {
        out.push(if byte == b'\\' { bytes.next().unwrap_or(byte) } else { byte });
    }
    out
}

/// `path`, so that it stands for itself in a pattern.
pub(crate) fn protect(path: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(path.len());
    for &byte in path {
        if matches!(byte, b'?' | b'*' | b'[' | b']' | b'\\' | b'{' | b'}') {
            out.push(b'\\');
        }
        out.push(byte);
    }
    out
}

/// What becomes of `.` and `..` in listings. Only `ls .*` shows them; a copy of `.*` that took
/// the parent directory along would be a surprise.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Dots {
    Skipped,
    Listed,
}

fn unsorted<T: Tree>(tree: &T, pattern: &[u8], dots: Dots) -> Result<Vec<Found<T::Stat>>> {
    let mut found = Vec::new();
    let mut open: Vec<(Vec<u8>, &[u8])> = vec![(Vec::new(), pattern)];
    while let Some((path, rest)) = open.pop() {
        if rest.is_empty() {
            found.extend(look(tree, path)?);
            continue;
        }
        let (component, slashes, after) = first_component(rest);
        let pattern = Pattern::new(component);
        let step = |name: &[u8]| ([path.as_slice(), name, slashes].concat(), after);
        match pattern.literal() {
            Some(name) => open.push(step(&name)),
            None => {
                let fits = |name: &Vec<u8>| {
                    pattern.matches(name)
                        && (dots == Dots::Listed || (name != b"." && name != b".."))
                };
                let names = tree.names(if path.is_empty() { b"." } else { &path })?;
                // The last in is the first out.
                open.extend(names.iter().rev().filter(|name| fits(name)).map(|name| step(name)));
            }
        }
    }
    Ok(found)
}

/// A component, the slashes after it, and the rest.
fn first_component(pattern: &[u8]) -> (&[u8], &[u8], &[u8]) {
    let end = pattern.iter().position(|&b| b == b'/').unwrap_or(pattern.len());
    let (component, rest) = pattern.split_at(end);
    let slashes = rest.iter().take_while(|&&b| b == b'/').count();
    let (slashes, rest) = rest.split_at(slashes);
    (component, slashes, rest)
}

fn look<T: Tree>(tree: &T, mut path: Vec<u8>) -> Result<Option<Found<T::Stat>>> {
    let Some(own) = tree.lstat(&path)? else { return Ok(None) };
    let marked = path.ends_with(b"/");
    let target = if T::kind(&own) == Kind::Link && !marked { tree.stat(&path)? } else { None };
    let stat = target.unwrap_or(own);
    let is_directory = T::kind(&stat) == Kind::Directory;
    if is_directory && !marked {
        path.push(b'/');
    }
    Ok(Some(Found { path, stat, is_directory }))
}

/// Most patterns that one with braces may become: 16 pairs make 65,536 already.
const MOST_ALTERNATIVES: usize = 4096;

/// A pattern with braces as those that it stands for, in their order.
fn braces(pattern: &[u8]) -> Vec<Vec<u8>> {
    let mut done = Vec::new();
    let mut open = vec![pattern.to_vec()];
    while let Some(pattern) = open.pop() {
        match first_braces(&pattern) {
            Some((before, inner, after)) if open.len() + done.len() < MOST_ALTERNATIVES => {
                let parts = alternatives(inner);
                open.extend(parts.iter().rev().map(|part| [before, part, after].concat()));
            }
            _ => done.push(pattern),
        }
    }
    done
}

/// What is before the first pair of braces, in it, and after it. `{}` stands for itself.
fn first_braces(pattern: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let mut from = 0;
    loop {
        let start = from + unprotected(pattern.get(from..)?, |b, _| b == b'{')?;
        let inner = pattern.get(start + 1..)?;
        let length = unprotected(inner, |b, depth| b == b'}' && depth == 0)?;
        if length > 0 {
            return Some((pattern.get(..start)?, inner.get(..length)?, inner.get(length + 1..)?));
        }
        from = start + 2;
    }
}

fn alternatives(inner: &[u8]) -> Vec<&[u8]> {
    let mut parts = Vec::new();
    let mut rest = inner;
    while let Some(comma) = unprotected(rest, |b, depth| b == b',' && depth == 0) {
        let (part, after) = rest.split_at(comma);
        parts.push(part);
        rest = after.get(1..).unwrap_or_default();
    }
    parts.push(rest);
    parts
}

/// Where the first byte stands that is `wanted`, given it and how many braces are open around it.
fn unprotected(text: &[u8], wanted: impl Fn(u8, usize) -> bool) -> Option<usize> {
    let mut depth = 0_usize;
    let mut bytes = text.iter().copied().enumerate();
    while let Some((at, byte)) = bytes.next() {
        if wanted(byte, depth) {
            return Some(at);
        }
        match byte {
            b'\\' => drop(bytes.next()),
            b'{' => depth += 1,
            b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// Paths to kinds; a link points to a directory when its name says so.
    struct Made(BTreeMap<&'static str, Kind>);

    impl Made {
        fn new() -> Self {
            use Kind::{Directory, Link, Other};
            Self(BTreeMap::from([
                ("a", Directory),
                ("a/one", Other),
                ("a/two", Other),
                ("a/.hidden", Other),
                ("b", Directory),
                ("b/one", Other),
                ("link", Link),
                ("dirlink", Link),
                ("st*r", Other),
                ("file", Other),
            ]))
        }
    }

    impl Tree for Made {
        type Stat = Kind;
        fn names(&self, directory: &[u8]) -> Result<Vec<Vec<u8>>> {
            let prefix = match directory {
                b"." => String::new(),
                path => String::from_utf8(path.to_vec()).unwrap(),
            };
            let mut names = vec![b".".to_vec(), b"..".to_vec()];
            let inside = self.0.keys().filter_map(|path| path.strip_prefix(prefix.as_str()));
            names.extend(inside.filter(|n| !n.contains('/')).map(|n| n.as_bytes().to_vec()));
            Ok(names)
        }
        fn lstat(&self, path: &[u8]) -> Result<Option<Kind>> {
            let path = std::str::from_utf8(path).unwrap();
            Ok(self.0.get(path.trim_end_matches('/')).copied())
        }
        fn stat(&self, path: &[u8]) -> Result<Option<Kind>> {
            Ok(match (self.lstat(path)?, path) {
                (Some(Kind::Link), b"dirlink") => Some(Kind::Directory),
                (Some(Kind::Link), _) => None,
                (kind, _) => kind,
            })
        }
        fn kind(stat: &Kind) -> Kind {
            *stat
        }
    }

    fn paths(found: Vec<Found<Kind>>) -> Vec<String> {
        found.into_iter().map(|found| String::from_utf8(found.path).unwrap()).collect()
    }

    #[test]
    fn patterns_are_looked_up_component_by_component() {
        let cases: [(&str, &[&str]); 10] = [
            ("a/*", &["a/one", "a/two"]),
            ("*/one", &["a/one", "b/one"]),
            ("a/.*", &["a/.hidden"]),
            ("?", &["a/", "b/"]),
            ("a", &["a/"]),
            ("a/", &["a/"]),
            ("dir*", &["dirlink/"]),
            ("link", &["link"]),
            ("st\\*r", &["st*r"]),
            ("none*", &[]),
        ];
        for (pattern, want) in cases {
            assert_eq!(paths(expand(&Made::new(), pattern.as_bytes()).unwrap()), want, "{pattern}");
        }
    }

    #[test]
    fn braces_name_alternatives() {
        let cases: [(&str, &[&str]); 6] = [
            ("{a,b}/one", &["a/one", "b/one"]),
            ("{b,a}/{two,one}", &["b/two", "b/one", "a/two", "a/one"]),
            ("x{a,{b,c}}", &["xa", "xb", "xc"]),
            ("{}", &["{}"]),
            ("a\\{b,c}", &["a\\{b,c}"]),
            ("{a", &["{a"]),
        ];
        for (pattern, want) in cases {
            let got = braces(pattern.as_bytes());
            assert_eq!(got, want.iter().map(|w| w.as_bytes().to_vec()).collect::<Vec<_>>());
        }
        assert_eq!(paths(expand_braces(&Made::new(), b"{b,a}/one").unwrap()), ["b/one", "a/one"]);
        assert!(braces("{a,b}".repeat(30).as_bytes()).len() <= MOST_ALTERNATIVES + 1);
    }

    #[test]
    fn protected_paths_stand_for_themselves() {
        let path = b"a*[b]{c,d}\\e?";
        assert_eq!(plain(&protect(path)), path);
        assert_eq!(braces(&protect(path)).len(), 1);
    }
}
