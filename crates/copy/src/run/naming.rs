//! Naming: what the user would call a path in this command, with its host and directory.

use super::lane::At;
use super::names;
use super::route::End;
use crate::options::Place;

/// What stands before paths of one leg.
#[derive(Debug, Default)]
pub(super) struct Naming {
    source: String,
    target: String,
    /// What targets are below.
    root: Vec<u8>,
}

impl Naming {
    /// Between these places; targets are below the root of `end`.
    pub(super) fn new(source: Option<&Place>, target: &Place, end: &End) -> Self {
        let host = |place: &Place| place.host().map_or_else(String::new, |host| host.name.clone());
        let root = match end {
            End::There(_, root) | End::Below(root) => root.clone(),
            End::Here | End::Nowhere => Vec::new(),
        };
        Self { source: source.map_or_else(String::new, host), target: host(target), root }
    }

    /// A path of the source as it was found, or one below the target.
    pub(super) fn name(&self, at: At, path: &[u8]) -> Vec<u8> {
        match at {
            At::Source => on(&self.source, path),
            At::Target => match names::join(&self.root, path) {
                path if path.is_empty() => on(&self.target, b"."),
                path => on(&self.target, &path),
            },
        }
    }
}

/// A path on the host that a place is on.
pub(super) fn of(place: &Place, path: &[u8]) -> Vec<u8> {
    on(place.host().map_or("", |host| host.name.as_str()), path)
}

/// A path of a host; of this one without a name.
fn on(host: &str, path: &[u8]) -> Vec<u8> {
    let (user, name) = host.split_at(host.rfind('@').map_or(0, |at| at + 1));
    match name {
        "" => path.to_vec(),
        address if address.contains(':') => {
            [user.as_bytes(), b"[", address.as_bytes(), b"]:", path].concat()
        }
        name => [user.as_bytes(), name.as_bytes(), b":", path].concat(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_named_with_host_and_directory() {
        let naming = |root: &str| {
            let (source, target) = ("::1".to_owned(), "h".to_owned());
            Naming { source, target, root: root.into() }
        };
        for (root, at, path, want) in [
            ("/data", At::Target, "dir/file", "h:/data/dir/file"),
            ("", At::Target, "file", "h:file"),
            ("", At::Target, "", "h:."),
            ("/", At::Target, "file", "h:/file"),
            ("/data", At::Source, "./a", "[::1]:./a"),
        ] {
            let name = naming(root).name(at, path.as_bytes());
            assert_eq!(name, want.as_bytes(), "{}", crate::shown(&name));
        }
        assert_eq!(on("", b"./a"), b"./a");
        assert_eq!(on("me@h", b"a"), b"me@h:a");
        assert_eq!(on("me@::1", b"a"), b"me@[::1]:a");
    }
}
