//! Meta: what a file is, as either side tells it. Sizes in bytes, times since 1970.

use rustix::fs::Stat;
use sftp::codec::Attrs;

/// File types inside a mode (`S_IFMT`, sys/stat.h); the numbers are SFTP's, too.
const TYPE: u32 = 0o170_000;
const DIRECTORY: u32 = 0o040_000;
const REGULAR: u32 = 0o100_000;
const SYMLINK: u32 = 0o120_000;
/// Permissions, set-id bits included.
const PERMISSIONS: u32 = 0o7777;
/// Permissions without set-id bits.
const PLAIN: u32 = 0o0777;

/// What kind of file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    File,
    Directory,
    Symlink,
    /// A device, socket or pipe: reported, not copied.
    Special,
}

/// A point in time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Time {
    pub(super) seconds: i64,
    /// Zero where the server tells none.
    pub(super) nanos: u32,
}

/// What is known of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Meta {
    pub(super) kind: Kind,
    pub(super) size: u64,
    /// Permissions without the type.
    pub(super) mode: u32,
    pub(super) owner: Option<(u32, u32)>,
    pub(super) accessed: Time,
    pub(super) modified: Time,
    /// Zero where it is not known.
    pub(super) inode: u64,
    /// Device and inode of a file that has further names, where that is known.
    pub(super) linked: Option<(u64, u64)>,
    /// May have holes.
    pub(super) sparse: bool,
}

/// Which content a file has, as far as that can be told without reading it (R2): when it changes,
/// nothing that was noted about the file holds any more.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Identity {
    pub(super) size: u64,
    pub(super) modified: Time,
    /// Zero where it is not known.
    pub(super) inode: u64,
}

impl Meta {
    /// Of a file on this host.
    pub(super) fn local(stat: &Stat) -> Self {
        let mode = stat.st_mode;
        let size = u64::try_from(stat.st_size).unwrap_or_default();
        Self {
            kind: kind(mode),
            size,
            mode: mode & PERMISSIONS,
            owner: Some((stat.st_uid, stat.st_gid)),
            accessed: time(stat.st_atime, stat.st_atime_nsec),
            modified: time(stat.st_mtime, stat.st_mtime_nsec),
            inode: stat.st_ino,
            linked: (stat.st_nlink > 1).then_some((stat.st_dev, stat.st_ino)),
            sparse: u64::try_from(stat.st_blocks).unwrap_or_default().saturating_mul(512) < size,
        }
    }

    /// As [`Meta::remote`]; `None` of a plain file of which the server does not tell the size, which
    /// could only be guessed to be empty (R6).
    pub(super) fn told(attrs: &Attrs) -> Option<Self> {
        let meta = Self::remote(attrs);
        (meta.kind != Kind::File || attrs.size.is_some()).then_some(meta)
    }

    /// Of a file on another host. Without a mode it passes for a plain file, as with sftp(1).
    pub(super) fn remote(attrs: &Attrs) -> Self {
        let mode = attrs.mode.unwrap_or(REGULAR | 0o666);
        let (access, modification) = attrs.times.unwrap_or_default();
        let (access_ns, modification_ns) = attrs.nanoseconds().unwrap_or_default();
        Self {
            kind: kind(mode),
            size: attrs.size.unwrap_or_default(),
            mode: mode & PERMISSIONS,
            owner: attrs.owner.filter(|owner| somebody(*owner)),
            accessed: Time { seconds: access.into(), nanos: access_ns },
            modified: Time { seconds: modification.into(), nanos: modification_ns },
            inode: 0,
            linked: attrs.linked(),
            sparse: false,
        }
    }

    /// The mode that a file in its place keeps: set-id bits were meant for what was in it (F3).
    pub(super) fn plain_mode(&self) -> u32 {
        self.mode & PLAIN
    }

    pub(super) fn identity(&self) -> Identity {
        Identity { size: self.size, modified: self.modified, inode: self.inode }
    }

    /// Whether this target has the size and the time of `source`, as far as both ends tell times.
    pub(super) fn looks_like(&self, source: &Self) -> bool {
        let nanos = |time: Time| time.nanos == 0 || self.modified.nanos == 0;
        self.kind == source.kind
            && self.size == source.size
            && self.modified.seconds == source.modified.seconds
            && (nanos(source.modified) || self.modified.nanos == source.modified.nanos)
    }
}

/// A number of all ones is nobody's (chown(2)): such an owner is as good as not told.
fn somebody((user, group): (u32, u32)) -> bool {
    user != u32::MAX && group != u32::MAX
}

/// Whether a file of this mode lends its owner's or group's rights to whoever runs it.
pub(super) fn is_set_id(mode: u32) -> bool {
    mode & !PLAIN != 0
}

/// What to set on a finished file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Setting {
    pub(super) size: Option<u64>,
    pub(super) mode: Option<u32>,
    pub(super) owner: Option<(u32, u32)>,
    /// Access and modification.
    pub(super) times: Option<(Time, Time)>,
}

impl Setting {
    /// What a copy of `source` gets: with `preserve` all there is, else its mode less `umask`.
    /// Set-id bits survive only where the owner does (F3).
    pub(super) fn of(source: &Meta, preserve: bool, privileged: bool, umask: u32) -> Self {
        let owner = source.owner.filter(|_| preserve && privileged);
        let bits = if owner.is_some() { PERMISSIONS } else { PLAIN };
        Self {
            size: None,
            mode: Some(if preserve { source.mode & bits } else { source.mode & PLAIN & !umask }),
            owner,
            times: preserve.then_some((source.accessed, source.modified)),
        }
    }

    /// The owner, and the rest: what is set in between is taken away by a change of the owner, and
    /// refused by a file that is read-only.
    pub(super) fn apart(self) -> (Self, Self) {
        (Self { owner: self.owner, ..Self::default() }, Self { owner: None, ..self })
    }

    /// Where the owner is not kept, set-id bits are not, either (F3).
    pub(super) fn without_owner(self) -> Self {
        Self { owner: None, mode: self.mode.map(|mode| mode & PLAIN), ..self }
    }

    /// As SFTP has it. Times beyond its 32 bits are left out rather than wrapped.
    pub(super) fn attrs(&self, nanoseconds: bool) -> Attrs {
        let mut attrs =
            Attrs { size: self.size, owner: self.owner, mode: self.mode, ..Attrs::default() };
        if let Some((access, modification)) = self.times {
            let seconds = |time: Time| u32::try_from(time.seconds).ok();
            attrs.times = seconds(access).zip(seconds(modification));
            if nanoseconds && attrs.times.is_some() {
                attrs.set_nanoseconds(access.nanos, modification.nanos);
            }
        }
        attrs
    }

    pub(super) fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

fn kind(mode: u32) -> Kind {
    match mode & TYPE {
        DIRECTORY => Kind::Directory,
        SYMLINK => Kind::Symlink,
        // Servers that tell no type have files.
        REGULAR | 0 => Kind::File,
        _ => Kind::Special,
    }
}

fn time(seconds: i64, nanos: impl TryInto<u32>) -> Time {
    Time { seconds, nanos: nanos.try_into().unwrap_or_default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source() -> Meta {
        let modified = Time { seconds: 1_700_000_000, nanos: 123_456_789 };
        let attrs = Attrs { size: Some(7), mode: Some(0o104_755), ..Attrs::default() };
        Meta { modified, owner: Some((5, 6)), ..Meta::remote(&attrs) }
    }

    #[test]
    fn f3_an_owner_that_nobody_is_keeps_no_set_id_bits() {
        for owner in [(u32::MAX, 5), (5, u32::MAX)] {
            let attrs = Attrs { mode: Some(0o104_755), owner: Some(owner), ..Attrs::default() };
            let setting = Setting::of(&Meta::remote(&attrs), true, true, 0);
            assert_eq!((setting.owner, setting.mode), (None, Some(0o755)), "{owner:?}");
        }
    }

    #[test]
    fn f3_set_id_bits_survive_only_with_the_owner() {
        assert_eq!(Setting::of(&source(), true, true, 0o22).mode, Some(0o4755));
        assert_eq!(Setting::of(&source(), true, false, 0o22).mode, Some(0o755));
        assert_eq!(Setting::of(&source(), false, true, 0o77).mode, Some(0o700));
    }

    #[test]
    fn times_keep_nanoseconds_where_the_server_takes_them() {
        let setting = Setting::of(&source(), true, false, 0);
        assert_eq!(setting.attrs(true).nanoseconds(), Some((0, 123_456_789)));
        assert_eq!(setting.attrs(false).nanoseconds(), None);
        assert_eq!(setting.attrs(false).times, Some((0, 1_700_000_000)));
        let late = Time { seconds: 1 << 33, nanos: 0 };
        let setting = Setting { times: Some((late, late)), ..Setting::default() };
        assert_eq!(setting.attrs(true), Attrs::default());
    }

    #[test]
    fn looks_are_compared_as_precisely_as_both_sides_tell() {
        let coarse = Time { nanos: 0, ..source().modified };
        let other = Time { nanos: 1, ..source().modified };
        assert!(source().looks_like(&source()));
        assert!(Meta { modified: coarse, ..source() }.looks_like(&source()));
        assert!(!Meta { modified: other, ..source() }.looks_like(&source()));
        assert!(!Meta { size: 8, ..source() }.looks_like(&source()));
    }
}
