//! The operation table: what there is, what writes, what is announced, and what is allowed (F8).

use crate::codec::{Extended, OpenFlags, Request, name};

/// An operation: its row in the table is at its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Operation(usize);

struct Row {
    /// As after `-p` and `-P`.
    name: &'static str,
    /// Whether it changes something, whatever its arguments.
    writes: bool,
    /// Its name and version in VERSION.
    announced: Option<(&'static [u8], &'static [u8])>,
}

const fn plain(name: &'static str, writes: bool) -> Row {
    Row { name, writes, announced: None }
}

const fn extended(
    name: &'static str,
    writes: bool,
    wire: &'static [u8],
    version: &'static [u8],
) -> Row {
    Row { name, writes, announced: Some((wire, version)) }
}

/// Names and order of OpenSSH's server, then ours.
const TABLE: &[Row] = &[
    plain("open", false), // Its flags say more.
    plain("close", false),
    plain("read", false),
    plain("write", true),
    plain("lstat", false),
    plain("fstat", false),
    plain("setstat", true),
    plain("fsetstat", true),
    plain("opendir", false),
    plain("readdir", false),
    plain("remove", true),
    plain("mkdir", true),
    plain("rmdir", true),
    plain("realpath", false),
    plain("stat", false),
    plain("rename", true),
    plain("readlink", false),
    plain("symlink", true),
    extended("posix-rename", true, name::POSIX_RENAME, b"1"),
    extended("statvfs", false, name::STATVFS, b"2"),
    extended("fstatvfs", false, name::FSTATVFS, b"2"),
    extended("hardlink", true, name::HARDLINK, b"1"),
    extended("fsync", true, name::FSYNC, b"1"),
    extended("lsetstat", true, name::LSETSTAT, b"1"),
    extended("limits", false, name::LIMITS, b"1"),
    extended("expand-path", false, name::EXPAND_PATH, b"1"),
    extended("copy-data", true, name::COPY_DATA, b"1"),
    extended("home-directory", false, name::HOME_DIRECTORY, b"1"),
    extended("users-groups-by-id", false, name::USERS_GROUPS, b"1"),
    extended("block-hashes", false, name::BLOCK_HASHES, b"1"),
    extended("put-files", true, name::PUT_FILES, b"1"),
    extended("get-files", false, name::GET_FILES, b"1"),
    extended("sparse-map", false, name::SPARSE_MAP, b"1"),
    extended("get-xattrs", false, name::GET_XATTRS, b"1"),
    extended("set-xattrs", true, name::SET_XATTRS, b"1"),
];

/// The names of all operations, as `-Q requests` lists them.
pub fn requests() -> impl Iterator<Item = &'static str> {
    TABLE.iter().map(|row| row.name)
}

impl Operation {
    pub(super) const READ: Self = Self(2);
    pub(super) const WRITE: Self = Self(3);

    /// Of a name as after `-p`.
    pub(super) fn named(name: &str) -> Option<Self> {
        TABLE.iter().position(|row| row.name == name).map(Self)
    }

    /// Of a request; `None` where it is not known.
    pub(super) fn of(request: &Request) -> Option<Self> {
        Some(Self(match request {
            Request::Open { .. } => 0,
            Request::Close(_) => 1,
            Request::Read { .. } => 2,
            Request::Write { .. } => 3,
            Request::Lstat(_) => 4,
            Request::Fstat(_) => 5,
            Request::Setstat(..) => 6,
            Request::Fsetstat(..) => 7,
            Request::Opendir(_) => 8,
            Request::Readdir(_) => 9,
            Request::Remove(_) => 10,
            Request::Mkdir(..) => 11,
            Request::Rmdir(_) => 12,
            Request::Realpath(_) => 13,
            Request::Stat(_) => 14,
            Request::Rename { .. } => 15,
            Request::Readlink(_) => 16,
            Request::Symlink { .. } => 17,
            Request::Extended(extended) => {
                let wire = extended.name();
                let is = |row: &Row| row.announced.is_some_and(|(name, _)| name == wire);
                TABLE.iter().position(is)?
            }
        }))
    }

    pub(super) fn name(self) -> &'static str {
        TABLE.get(self.0).map_or("unknown", |row| row.name)
    }

    fn writes(self) -> bool {
        TABLE.get(self.0).is_none_or(|row| row.writes)
    }
}

/// A set of operations, by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Set(u64);

impl Set {
    fn has(self, operation: Operation) -> bool {
        self.0 & 1 << operation.0 != 0
    }

    pub(super) fn add(&mut self, operation: Operation) {
        self.0 |= 1 << operation.0;
    }
}

/// What a session may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Permit {
    /// `-R`.
    pub(super) read_only: bool,
    /// `-p`: nothing else.
    pub(super) only: Option<Set>,
    /// `-P`: not these.
    pub(super) without: Set,
}

impl Permit {
    /// Whether an operation is allowed, whatever its arguments.
    pub(super) fn operation(self, operation: Operation) -> bool {
        let denied = self.without.has(operation) || (self.read_only && operation.writes());
        !denied && self.only.is_none_or(|only| only.has(operation))
    }

    /// Whether a file may be opened so. Only what can neither change nor make a file is reading.
    pub(super) fn open(self, flags: OpenFlags) -> bool {
        !self.read_only || flags == OpenFlags::READ
    }

    /// What VERSION announces: nothing that would be refused.
    pub(super) fn announced(self) -> impl Iterator<Item = (&'static [u8], &'static [u8])> {
        let rows = TABLE.iter().enumerate();
        rows.filter(move |(n, _)| self.operation(Operation(*n))).filter_map(|(_, r)| r.announced)
    }
}

/// Whether a request's effects can be seen by other requests: those keep their place in the order.
/// What is not known counts as one.
pub(super) fn changes(request: &Request) -> bool {
    match request {
        Request::Open { flags, .. } => *flags != OpenFlags::READ,
        Request::Close(_) => true,
        Request::Extended(Extended::Fsync(_)) => false,
        other => Operation::of(other).is_none_or(Operation::writes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::{Attrs, Handle};

    fn one_of_each() -> Vec<Request> {
        let handle = || Handle::new(*b"h").unwrap();
        let path = || b"p".to_vec();
        let extended = [
            Extended::PosixRename { from: path(), to: path() },
            Extended::Statvfs(path()),
            Extended::Fstatvfs(handle()),
            Extended::Hardlink { from: path(), to: path() },
            Extended::Fsync(handle()),
            Extended::Lsetstat(path(), Attrs::default()),
            Extended::Limits,
            Extended::ExpandPath(path()),
            Extended::CopyData {
                from: handle(),
                from_offset: 0,
                len: 0,
                to: handle(),
                to_offset: 0,
            },
            Extended::HomeDirectory(path()),
            Extended::UsersGroupsById { users: vec![], groups: vec![] },
            Extended::BlockHashes { handle: handle(), offset: 0, len: 0, block: 0 },
            Extended::PutFiles { flags: Default::default(), files: vec![] },
            Extended::GetFiles(vec![]),
            Extended::SparseMap { handle: handle(), offset: 0 },
            Extended::GetXattrs(handle()),
            Extended::SetXattrs(handle(), vec![]),
        ];
        let mut all = vec![
            Request::Open { path: path(), flags: OpenFlags::READ, attrs: Attrs::default() },
            Request::Close(handle()),
            Request::Read { handle: handle(), offset: 0, len: 1 },
            Request::Write { handle: handle(), offset: 0, data: vec![] },
            Request::Lstat(path()),
            Request::Fstat(handle()),
            Request::Setstat(path(), Attrs::default()),
            Request::Fsetstat(handle(), Attrs::default()),
            Request::Opendir(path()),
            Request::Readdir(handle()),
            Request::Remove(path()),
            Request::Mkdir(path(), Attrs::default()),
            Request::Rmdir(path()),
            Request::Realpath(path()),
            Request::Stat(path()),
            Request::Rename { from: path(), to: path() },
            Request::Readlink(path()),
            Request::Symlink { target: path(), link: path() },
        ];
        all.extend(extended.map(Request::Extended));
        all
    }

    /// Every request has its own row, and the row its name.
    #[test]
    fn the_table_is_in_the_order_of_the_requests() {
        let operations: Vec<_> =
            one_of_each().iter().map(|request| Operation::of(request).unwrap()).collect();
        assert_eq!(operations, (0..TABLE.len()).map(Operation).collect::<Vec<_>>());
        assert_eq!(Operation::WRITE.name(), "write");
        for (request, operation) in one_of_each().iter().zip(operations) {
            if let Request::Extended(extended) = request {
                let name = String::from_utf8_lossy(extended.name()).into_owned();
                assert_eq!(name.split('@').next(), Some(operation.name()));
            }
        }
    }

    /// Whatever can change the file system is refused, by the table alone.
    #[test]
    fn f8_read_only_denies_by_operation_and_open_flags() {
        let permit = Permit { read_only: true, ..Permit::default() };
        let reading = [
            "open",
            "close",
            "read",
            "lstat",
            "fstat",
            "opendir",
            "readdir",
            "realpath",
            "stat",
            "readlink",
            "statvfs",
            "fstatvfs",
            "limits",
            "expand-path",
            "home-directory",
            "users-groups-by-id",
            "block-hashes",
            "get-files",
            "sparse-map",
            "get-xattrs",
        ];
        for (n, row) in TABLE.iter().enumerate() {
            assert_eq!(permit.operation(Operation(n)), reading.contains(&row.name), "{}", row.name);
        }
        for flags in 0..128 {
            assert_eq!(permit.open(OpenFlags(flags)), flags == 1, "open flags {flags}");
            assert!(Permit::default().open(OpenFlags(flags)));
        }
    }

    #[test]
    fn what_is_refused_is_not_announced() {
        let mut permit = Permit { read_only: true, ..Permit::default() };
        let names = |permit: Permit| permit.announced().map(|(name, _)| name).collect::<Vec<_>>();
        assert!(!names(permit).contains(&name::POSIX_RENAME));
        assert!(names(permit).contains(&name::LIMITS));
        permit.without.add(Operation::named("limits").unwrap());
        assert!(!names(permit).contains(&name::LIMITS));
        let mut only = Set::default();
        only.add(Operation::named("statvfs").unwrap());
        let permit = Permit { only: Some(only), ..Permit::default() };
        assert_eq!(names(permit), [name::STATVFS]);
    }

    #[test]
    fn what_only_looks_changes_nothing() {
        let looking: Vec<_> = one_of_each()
            .iter()
            .filter(|request| !changes(request))
            .filter_map(|request| Operation::of(request).map(Operation::name))
            .collect();
        let expected = [
            "open",
            "read",
            "lstat",
            "fstat",
            "opendir",
            "readdir",
            "realpath",
            "stat",
            "readlink",
            "statvfs",
            "fstatvfs",
            "fsync",
            "limits",
            "expand-path",
            "home-directory",
            "users-groups-by-id",
            "block-hashes",
            "get-files",
            "sparse-map",
            "get-xattrs",
        ];
        assert_eq!(looking, expected);
    }
}
