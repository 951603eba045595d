//! Names: what a peer may call a file (invariant F1), and what a file is called until it is whole
//! (R1). Paths are bytes throughout.

pub(super) use sftp::part_name as part;
use std::collections::HashSet;

/// A name in a peer's listing that no honest peer would send.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum BadName {
    #[error("the server sent an empty name")]
    Empty,
    #[error("the server sent a name that is a path")]
    Path,
    #[error("the server sent a name with a NUL byte")]
    Nul,
    #[error("the server sent a name twice")]
    Twice,
}

/// F1: a name from a peer is one component. `.` and `..` belong into listings and are left out
/// there; anywhere else they are paths.
pub(super) fn check(name: &[u8]) -> Result<(), BadName> {
    match name {
        b"" => Err(BadName::Empty),
        b"." | b".." => Err(BadName::Path),
        name if name.contains(&b'/') => Err(BadName::Path),
        name if name.contains(&0) => Err(BadName::Nul),
        _ => Ok(()),
    }
}

/// The names of one directory: each is one component, and comes once.
#[derive(Debug, Default)]
pub(super) struct Listing {
    seen: HashSet<Vec<u8>>,
}

impl Listing {
    /// Whether to go on with `name`: not with `.` and `..`, which are in every listing.
    pub(super) fn admit(&mut self, name: &[u8]) -> Result<bool, BadName> {
        if matches!(name, b"." | b"..") {
            return Ok(false);
        }
        check(name)?;
        match self.seen.insert(name.to_vec()) {
            true => Ok(true),
            false => Err(BadName::Twice),
        }
    }
}

/// The part file's path beside `path`.
pub(super) fn part_beside(path: &[u8], id: &str) -> Vec<u8> {
    let (directory, name) = split(path);
    join(directory, &part(name, id))
}

/// Directory and last component; the directory is empty if there is none.
pub(super) fn split(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().rposition(|&byte| byte == b'/') {
        Some(0) if path.len() > 1 => path.split_at(1),
        Some(at) => (path.get(..at).unwrap_or_default(), path.get(at + 1..).unwrap_or_default()),
        None => (b"", path),
    }
}

/// The last component that is one: of `a/b/` it is `b`; of `/`, `.` and `..` there is none.
pub(super) fn last(path: &[u8]) -> Option<&[u8]> {
    let end = path.iter().rposition(|&byte| byte != b'/')? + 1;
    let name = path.get(..end).map(|path| split(path).1)?;
    check(name).is_ok().then_some(name)
}

/// `name` below `directory`; an empty directory is where one stands.
pub(super) fn join(directory: &[u8], name: &[u8]) -> Vec<u8> {
    match (directory, name) {
        (b"", name) => name.to_vec(),
        (directory, b"") => directory.to_vec(),
        (directory, name) if directory.ends_with(b"/") => [directory, name].concat(),
        (directory, name) => [directory, b"/", name].concat(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f1_a_name_from_the_peer_is_one_component() {
        for bad in [&b""[..], b".", b"..", b"/", b"a/b", b"../a", b"/etc/passwd", b"a\0b", b"a/"] {
            assert!(check(bad).is_err(), "{bad:?}");
        }
        for good in [&b"a"[..], b"...", b"..a", b"-rf", b"\xff\xfe", b"a b\n", b".a.1.part"] {
            assert_eq!(check(good), Ok(()), "{good:?}");
        }
    }

    #[test]
    fn f1_a_listing_has_each_name_once() {
        let mut listing = Listing::default();
        assert_eq!(listing.admit(b"."), Ok(false));
        assert_eq!(listing.admit(b".."), Ok(false));
        assert_eq!(listing.admit(b"a"), Ok(true));
        assert_eq!(listing.admit(b"b"), Ok(true));
        assert_eq!(listing.admit(b"a"), Err(BadName::Twice));
    }

    #[test]
    fn r1_part_names_fit_a_directory_entry() {
        assert_eq!(part(b"x", "0a1b"), b".x.0a1b.part");
        let long = vec![b'n'; 255];
        let name = part(&long, "01234567");
        assert_eq!(name.len(), 255);
        assert!(name.ends_with(b".01234567.part"));
        assert_eq!(part(&long[..239], "01234567").len(), 254);
        assert_eq!(part_beside(b"d/e/x", "1"), b"d/e/.x.1.part");
        assert_eq!(part_beside(b"/x", "1"), b"/.x.1.part");
    }

    /// Two names with one part file would put one file's bytes under the other's name.
    #[test]
    fn r1_every_name_has_a_part_file_of_its_own() {
        let id = "01234567";
        let long = |len: usize, last: u8| [vec![b'n'; len - 1], vec![last]].concat();
        assert_ne!(part(&long(255, b'a'), id), part(&long(255, b'b'), id));
        assert_ne!(part(&long(254, b'n'), id), part(&long(255, b'n'), id));
        // A name that is what another one was cut to.
        let name = part(&long(255, b'a'), id);
        let name = name.strip_prefix(b".").unwrap().strip_suffix(b".01234567.part").unwrap();
        assert_ne!(part(name, id), part(&long(255, b'a'), id));
        for len in 1..=255 {
            let name = part(&long(len, b'a'), id);
            assert!(name.len() <= 255, "{len}");
            assert_eq!(name, part(&long(len, b'a'), id), "the next run finds it");
        }
    }

    #[test]
    fn paths_come_apart_and_together() {
        assert_eq!(split(b"a/b/c"), (&b"a/b"[..], &b"c"[..]));
        assert_eq!(split(b"/c"), (&b"/"[..], &b"c"[..]));
        assert_eq!(split(b"c"), (&b""[..], &b"c"[..]));
        assert_eq!(last(b"a/b//"), Some(&b"b"[..]));
        assert_eq!(last(b"/"), None);
        assert_eq!(last(b"a/.."), None);
        assert_eq!(join(b"/", b"a"), b"/a");
        assert_eq!(join(b"", b"a"), b"a");
        assert_eq!(join(b"a", b"b"), b"a/b");
    }
}
