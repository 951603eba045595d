//! Find: what a source's path stands for on its host: homes, patterns, and what is there.

use super::control::Control;
use super::glob;
use super::lane::At;
use super::meta::Meta;
use super::names;
use super::naming;
use super::side::{Ask, Fault, Told};
use crate::options::{Place, Remote};
use crate::report::{Failure, What};
use std::os::unix::ffi::OsStrExt;

/// Names in a directory that a pattern is matched with.
const MANY: usize = 100_000;

/// Servers start at home: `~/x` is `x`. Empty is where they start.
pub(super) fn remote_path(path: &[u8]) -> Vec<u8> {
    match path {
        b"" | b"~" => b".".to_vec(),
        [b'~', b'/', rest @ ..] => {
            let name = rest.iter().position(|byte| *byte != b'/').unwrap_or(rest.len());
            rest.get(name..).filter(|rest| !rest.is_empty()).unwrap_or(b".").to_vec()
        }
        path => path.to_vec(),
    }
}

/// Where `~user/x` of another host is: its server knows (`expand-path@openssh.com`), as with scp(1).
/// Other paths stay as they are; with an error the path comes back.
pub(super) fn homed(
    control: &mut Control<'_>,
    at: At,
    path: Vec<u8>,
) -> Result<Vec<u8>, (Vec<u8>, Fault)> {
    if path.first() != Some(&b'~') {
        return Ok(path);
    }
    let end = path.iter().position(|byte| *byte == b'/').unwrap_or(path.len());
    let (user, rest) = path.split_at(end);
    match control.call(at, Ask::ExpandPath(user.to_vec())) {
        Ok(Told::Names(names)) => match names.into_iter().next() {
            Some(home) if home.name.starts_with(b"/") => Ok([home.name.as_slice(), rest].concat()),
            _ => Err((path, Fault::other("the server says nothing that is a path"))),
        },
        Ok(_) => Err((path, Fault::unfit())),
        Err(fault) => Err((path, fault)),
    }
}

pub(super) fn stat(control: &mut Control<'_>, at: At, path: &[u8]) -> Result<Meta, Fault> {
    match control.call(at, Ask::Stat(path.to_vec()))? {
        Told::Meta(meta) => Ok(meta),
        _ => Err(Fault::Missing),
    }
}

/// Finds a source, all that a pattern stands for; what is missing is told, each by its name.
pub(super) fn find(
    control: &mut Control<'_>,
    source: &Place,
    roots: &mut Vec<(Vec<u8>, Meta)>,
) -> Vec<Failure> {
    let failed = |path: &[u8], fault: &Fault| Failure {
        what: What::Path(path.to_vec()),
        name: Some(naming::of(source, path)),
        why: fault.to_string(),
    };
    let pattern = match source {
        Place::Remote(Remote { path, .. }) if glob::is_pattern(path) => Some(path),
        _ => None,
    };
    let paths = match (source, pattern) {
        (Place::Local(path), _) => Ok(vec![path.as_os_str().as_bytes().to_vec()]),
        (_, Some(path)) => {
            expand(control, &remote_path(path)).map_err(|fault| failed(path, &fault))
        }
        (Place::Remote(Remote { path, .. }), None) => {
            homed(control, At::Source, remote_path(&glob::unescaped(path)))
                .map(|path| vec![path])
                .map_err(|(path, fault)| failed(&path, &fault))
        }
    };
    let paths = match paths {
        Ok(paths) => paths,
        Err(failure) => return vec![failure],
    };
    let (before, mut failures) = (roots.len(), Vec::new());
    for path in paths {
        match stat(control, At::Source, &path) {
            Ok(meta) => roots.push((path, meta)),
            Err(fault) if pattern.is_none() || exists(control, &path) => {
                failures.push(failed(&path, &fault));
            }
            // A pattern stands for what is there: of "*/conf", not every directory has one.
            Err(_) => {}
        }
    }
    if let Some(pattern) = pattern.filter(|_| roots.len() == before && failures.is_empty()) {
        failures.push(failed(pattern, &Fault::Missing));
    }
    failures
}

/// Whether there is such a name, be it that of a link to nothing.
fn exists(control: &mut Control<'_>, path: &[u8]) -> bool {
    !matches!(control.call(At::Source, Ask::Lstat(path.to_vec())), Err(Fault::Missing))
}

/// Every name that a pattern stands for. F1: they are names of the directory that was asked for,
/// one component each.
fn expand(control: &mut Control<'_>, pattern: &[u8]) -> Result<Vec<Vec<u8>>, Fault> {
    let (base, parts) = glob::split(pattern);
    let mut found = vec![homed(control, At::Source, base).map_err(|(_, fault)| fault)?];
    for (at, part) in parts.iter().enumerate() {
        let mut next = Vec::new();
        for directory in found {
            match glob::is_pattern(part) {
                false => next.push(names::join(&directory, &glob::unescaped(part))),
                true => match control.list(At::Source, &directory, MANY) {
                    Ok(names) => {
                        let good = names.into_iter().filter(|name| glob::matches(part, name));
                        next.extend(good.map(|name| names::join(&directory, &name)));
                    }
                    Err(fault) if at == 0 => return Err(fault),
                    // Not everything that matched so far is a directory.
                    Err(_) => {}
                },
            }
        }
        found = next;
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_the_home_is_never_absolute() {
        for (path, want) in [
            (&b""[..], &b"."[..]),
            (b"~", b"."),
            (b"~/", b"."),
            (b"~//", b"."),
            (b"~/x", b"x"),
            (b"~//x/", b"x/"),
            (b"~user/x", b"~user/x"),
            (b"//x", b"//x"),
        ] {
            assert_eq!(remote_path(path), want, "{}", crate::shown(path));
        }
    }
}
