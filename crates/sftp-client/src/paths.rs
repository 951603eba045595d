//! Paths as bytes: joined, made absolute, shortened.

/// A name in a directory.
pub(crate) fn join(directory: &[u8], name: &[u8]) -> Vec<u8> {
    let slash: &[u8] = if directory.ends_with(b"/") || directory.is_empty() { b"" } else { b"/" };
    [directory, slash, name].concat()
}

/// A path as seen from the directory `from`.
pub(crate) fn absolute(path: &[u8], from: &[u8]) -> Vec<u8> {
    if path.starts_with(b"/") { path.to_vec() } else { join(from, path) }
}

/// What of `path` is below `directory`; all of it, if it is elsewhere.
pub(crate) fn below<'a>(path: &'a [u8], directory: &[u8]) -> &'a [u8] {
    match path.strip_prefix(directory) {
        Some(rest) if directory.ends_with(b"/") || rest.is_empty() => rest,
        // `/dx` is not below `/d`.
        Some(rest) => rest.strip_prefix(b"/").unwrap_or(path),
        None => path,
    }
}

/// The last component, as basename(3) has it.
pub(crate) fn base(path: &[u8]) -> &[u8] {
    let end = path.iter().rposition(|&byte| byte != b'/').map_or(0, |at| at + 1);
    let path = path.get(..end).unwrap_or_default();
    if path.is_empty() {
        return b"/";
    }
    path.rsplit(|&byte| byte == b'/').next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_joined_and_taken_apart() {
        assert_eq!(join(b"a", b"b"), b"a/b");
        assert_eq!(join(b"/", b"b"), b"/b");
        assert_eq!(absolute(b"x", b"/d"), b"/d/x");
        assert_eq!(absolute(b"/x", b"/d"), b"/x");
        assert_eq!(below(b"/d/x/y", b"/d"), b"x/y");
        assert_eq!(below(b"/x", b"/"), b"x");
        assert_eq!(below(b"/e/x", b"/d"), b"/e/x");
        assert_eq!(below(b"/dx/y", b"/d"), b"/dx/y");
        assert_eq!(below(b"/d", b"/d"), b"");
        for (path, want) in [("/a/b", "b"), ("a/b//", "b"), ("a", "a"), ("/", "/"), ("..", "..")] {
            assert_eq!(base(path.as_bytes()), want.as_bytes(), "{path}");
        }
    }
}
