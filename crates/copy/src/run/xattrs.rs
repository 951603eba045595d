//! Xattrs: which extended attributes a copy with `-p` keeps (xattr(7)), access lists among them.
//!
//! | attribute | kept |
//! |---|---|
//! | `user.*`, `system.posix_acl_*` | always |
//! | `trusted.*`, `security.capability` | where the owner is: they are root's, and lend its rights (F3) |
//! | others | never: they say how one machine treats a file (security.selinux, .ima, .evm) |
//!
//! As with cp -a, what a file system or a server does not take is told of once for each kind, and
//! the file is good all the same.

use sftp::codec::{Pairs, Xattrs};
use std::fmt;
use std::fs::File;
use std::io;
use std::os::fd::AsFd;

/// Attributes that are kept or refused together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Class {
    User,
    AccessLists,
    Trusted,
    Capabilities,
}

const CLASSES: [Class; 4] = [Class::User, Class::AccessLists, Class::Trusted, Class::Capabilities];

impl Class {
    fn of(name: &[u8]) -> Option<Self> {
        match name {
            name if name.starts_with(b"user.") => Some(Self::User),
            b"system.posix_acl_access" | b"system.posix_acl_default" => Some(Self::AccessLists),
            name if name.starts_with(b"trusted.") => Some(Self::Trusted),
            b"security.capability" => Some(Self::Capabilities),
            _ => None,
        }
    }

    pub(super) fn is_kept(self, with_owner: bool) -> bool {
        with_owner || matches!(self, Self::User | Self::AccessLists)
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::User => "extended attributes user.*",
            Self::AccessLists => "access lists (ACLs)",
            Self::Trusted => "extended attributes trusted.*",
            Self::Capabilities => "file capabilities",
        })
    }
}

/// Attributes that are kept, by class.
pub(super) type Kept = Vec<(Class, Pairs)>;

/// Attributes of a file that are kept; `with_owner` where the owner is kept, too.
pub(super) fn kept(pairs: Pairs, with_owner: bool) -> Kept {
    let mut found: Vec<_> = CLASSES.map(|class| (class, Pairs::new())).into();
    for (name, value) in pairs {
        let class = Class::of(&name).filter(|class| class.is_kept(with_owner));
        if let Some((_, of_class)) = found.iter_mut().find(|(known, _)| Some(*known) == class) {
            of_class.push((name, value));
        }
    }
    found.retain(|(_, pairs)| !pairs.is_empty());
    found
}

/// Whether `found` has all of `wanted`, with the same values; it may have more.
pub(super) fn includes(found: &Kept, wanted: &Kept) -> bool {
    wanted.iter().all(|(class, pairs)| {
        let of_class = found.iter().find(|(known, _)| known == class);
        pairs.iter().all(|pair| of_class.is_some_and(|(_, found)| found.contains(pair)))
    })
}

/// As a server tells them.
pub(super) fn told(bytes: &[u8]) -> io::Result<Pairs> {
    let malformed = |error: sftp::codec::Malformed| io::Error::other(error.to_string());
    Xattrs::parse(bytes).map(|Xattrs(pairs)| pairs).map_err(malformed)
}

/// Of a file of this host, as far as they could be kept.
pub(super) fn of(file: &File) -> io::Result<Pairs> {
    Ok(sftp::xattrs::of(file.as_fd(), |name| Class::of(name).is_some())?)
}

pub(super) fn set(file: &File, pairs: &Pairs) -> io::Result<()> {
    Ok(sftp::xattrs::set(file.as_fd(), pairs)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_or_has_another_value_is_lacking() {
        let kept = |pairs: &[(&str, &str)]| {
            let bytes = |text: &str| text.as_bytes().to_vec();
            kept(pairs.iter().map(|(name, value)| (bytes(name), bytes(value))).collect(), true)
        };
        let wanted = kept(&[("user.a", "1"), ("trusted.b", "2")]);
        let more = kept(&[("user.c", "3"), ("trusted.b", "2"), ("user.a", "1")]);
        assert!(includes(&more, &wanted) && includes(&wanted, &kept(&[])));
        assert!(!includes(&wanted, &more));
        assert!(!includes(&kept(&[("user.a", "2"), ("trusted.b", "2")]), &wanted));
    }

    #[test]
    fn f3_what_lends_rights_is_kept_only_with_the_owner() {
        let names = [
            "trusted.a",
            "user.b",
            "security.capability",
            "security.selinux",
            "system.posix_acl_access",
            "user.a",
        ];
        let pairs: Pairs = names.map(|name| (name.into(), Vec::new())).to_vec();
        let count = |with_owner| {
            let kept = kept(pairs.clone(), with_owner);
            kept.into_iter().map(|(class, pairs)| (class, pairs.len())).collect::<Vec<_>>()
        };
        let everybodys = [(Class::User, 2), (Class::AccessLists, 1)];
        assert_eq!(count(false), everybodys);
        let roots = [(Class::Trusted, 1), (Class::Capabilities, 1)];
        assert_eq!(count(true), [everybodys, roots].concat());
    }
}
