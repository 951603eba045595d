//! The operation table: what there is, what writes, what is announced, and what is allowed (F8).

use crate::codec::{Extended, OpenFlags, Request, name};

struct Row {
    /// As after `-p` and `-P`.
    name: &'static str,
    /// Whether it changes something, whatever its arguments.
    writes: bool,
    /// Its name and version in VERSION.
    announced: Option<(&'static [u8], &'static [u8])>,
    /// The operations whose work it does in one request: it is denied with any of them.
    does: &'static [Operation],
}

const fn plain(name: &'static str, writes: bool) -> Row {
    Row { name, writes, announced: None, does: &[] }
}

const fn extended(
    name: &'static str,
    writes: bool,
    wire: &'static [u8],
    version: &'static [u8],
    does: &'static [Operation],
) -> Row {
    Row { name, writes, announced: Some((wire, version)), does }
}

/// From one list: the operations, all of them in order, and what is known of each.
macro_rules! operations {
    ($($operation:ident: $row:expr,)*) => {
        /// An operation. Names and order are those of OpenSSH's server, then ours.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(super) enum Operation {
            $($operation,)*
        }

        impl Operation {
            const ALL: [Self; [$(Self::$operation),*].len()] = [$(Self::$operation),*];

            const fn row(self) -> Row {
                use Operation::*;
                match self {
                    $($operation => $row,)*
                }
            }
        }
    };
}

operations! {
    Open: plain("open", false), // Its flags say more.
    Close: plain("close", false),
    Read: plain("read", false),
    Write: plain("write", true),
    Lstat: plain("lstat", false),
    Fstat: plain("fstat", false),
    Setstat: plain("setstat", true),
    Fsetstat: plain("fsetstat", true),
    Opendir: plain("opendir", false),
    Readdir: plain("readdir", false),
    Remove: plain("remove", true),
    Mkdir: plain("mkdir", true),
    Rmdir: plain("rmdir", true),
    Realpath: plain("realpath", false),
    Stat: plain("stat", false),
    Rename: plain("rename", true),
    Readlink: plain("readlink", false),
    Symlink: plain("symlink", true),
    PosixRename: extended("posix-rename", true, name::POSIX_RENAME, b"1", &[]),
    Statvfs: extended("statvfs", false, name::STATVFS, b"2", &[]),
    Fstatvfs: extended("fstatvfs", false, name::FSTATVFS, b"2", &[]),
    Hardlink: extended("hardlink", true, name::HARDLINK, b"1", &[]),
    Fsync: extended("fsync", true, name::FSYNC, b"1", &[]),
    Lsetstat: extended("lsetstat", true, name::LSETSTAT, b"1", &[]),
    Limits: extended("limits", false, name::LIMITS, b"1", &[]),
    ExpandPath: extended("expand-path", false, name::EXPAND_PATH, b"1", &[]),
    CopyData: extended("copy-data", true, name::COPY_DATA, b"1", &[Read, Write]),
    HomeDirectory: extended("home-directory", false, name::HOME_DIRECTORY, b"1", &[]),
    UsersGroupsById: extended("users-groups-by-id", false, name::USERS_GROUPS, b"1", &[]),
    BlockHashes: extended("block-hashes", false, name::BLOCK_HASHES, b"1", &[Read]),
    PutFiles: extended(
        "put-files",
        true,
        name::PUT_FILES,
        b"1",
        &[Open, Write, Setstat, Fsetstat, PosixRename],
    ),
    GetFiles: extended("get-files", false, name::GET_FILES, b"1", &[Open, Read]),
    SparseMap: extended("sparse-map", false, name::SPARSE_MAP, b"1", &[]),
    GetXattrs: extended("get-xattrs", false, name::GET_XATTRS, b"1", &[]),
    SetXattrs: extended("set-xattrs", true, name::SET_XATTRS, b"1", &[Setstat, Fsetstat]),
}

/// The names of all operations, as `-Q requests` lists them.
pub fn requests() -> impl Iterator<Item = &'static str> {
    Operation::ALL.into_iter().map(Operation::name)
}

impl Operation {
    /// Of a name as after `-p`.
    pub(super) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|operation| operation.name() == name)
    }

    /// Of a request; `None` where it is not known.
    pub(super) fn of(request: &Request) -> Option<Self> {
        Some(match request {
            Request::Open { .. } => Self::Open,
            Request::Close(_) => Self::Close,
            Request::Read { .. } => Self::Read,
            Request::Write { .. } => Self::Write,
            Request::Lstat(_) => Self::Lstat,
            Request::Fstat(_) => Self::Fstat,
            Request::Setstat(..) => Self::Setstat,
            Request::Fsetstat(..) => Self::Fsetstat,
            Request::Opendir(_) => Self::Opendir,
            Request::Readdir(_) => Self::Readdir,
            Request::Remove(_) => Self::Remove,
            Request::Mkdir(..) => Self::Mkdir,
            Request::Rmdir(_) => Self::Rmdir,
            Request::Realpath(_) => Self::Realpath,
            Request::Stat(_) => Self::Stat,
            Request::Rename { .. } => Self::Rename,
            Request::Readlink(_) => Self::Readlink,
            Request::Symlink { .. } => Self::Symlink,
            Request::Extended(extended) => {
                let wire = extended.name();
                let is = |known: &Self| known.announced().is_some_and(|(name, _)| name == wire);
                Self::ALL.into_iter().find(is)?
            }
        })
    }

    pub(super) fn name(self) -> &'static str {
        self.row().name
    }

    fn writes(self) -> bool {
        self.row().writes
    }

    fn announced(self) -> Option<(&'static [u8], &'static [u8])> {
        self.row().announced
    }
}

/// A set of operations, by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Set(u64);

impl Set {
    fn has(self, operation: Operation) -> bool {
        self.0 & 1 << operation as u64 != 0
    }

    pub(super) fn add(&mut self, operation: Operation) {
        self.0 |= 1 << operation as u64;
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
    /// Whether an operation is allowed, whatever its arguments. What does the work of others is
    /// denied with each of them; `-p` has to name it all the same.
    pub(super) fn operation(self, operation: Operation) -> bool {
        let denied = |one: &Operation| self.without.has(*one) || (self.read_only && one.writes());
        let denied = denied(&operation) || operation.row().does.iter().any(denied);
        !denied && self.only.is_none_or(|only| only.has(operation))
    }

    /// Whether a file may be opened so. Only what can neither change nor make a file is reading.
    pub(super) fn open(self, flags: OpenFlags) -> bool {
        let changing = OpenFlags::WRITE.0 | OpenFlags::CREATE.0 | OpenFlags::TRUNCATE.0;
        !self.read_only || flags.0 & changing == 0
    }

    /// What VERSION announces: nothing that would be refused.
    pub(super) fn announced(self) -> impl Iterator<Item = (&'static [u8], &'static [u8])> {
        let allowed = Operation::ALL.into_iter().filter(move |one| self.operation(*one));
        allowed.filter_map(Operation::announced)
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
        assert_eq!(operations, Operation::ALL);
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
        for operation in Operation::ALL {
            let name = operation.name();
            assert_eq!(permit.operation(operation), reading.contains(&name), "{name}");
        }
        for flags in 0..128 {
            assert_eq!(permit.open(OpenFlags(flags)), flags & 0b1_1010 == 0, "open flags {flags}");
            assert!(Permit::default().open(OpenFlags(flags)));
        }
    }

    #[test]
    fn f8_what_is_denied_is_denied_in_every_request_that_does_it() {
        let cases: [(&str, &[&str]); 7] = [
            ("open", &["put-files", "get-files"]),
            ("read", &["copy-data", "block-hashes", "get-files"]),
            ("write", &["copy-data", "put-files"]),
            ("setstat", &["put-files", "set-xattrs"]),
            ("fsetstat", &["put-files", "set-xattrs"]),
            ("posix-rename", &["put-files"]),
            ("remove", &[]),
        ];
        for (denied, others) in cases {
            let mut permit = Permit::default();
            permit.without.add(Operation::named(denied).unwrap());
            let gone = |one: &Operation| !permit.operation(*one);
            let gone: Vec<_> =
                Operation::ALL.into_iter().filter(gone).map(Operation::name).collect();
            assert_eq!(gone, [&[denied], others].concat());
            assert_eq!(
                permit.announced().count() + gone.len(),
                17 + usize::from(denied != "posix-rename")
            );
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
