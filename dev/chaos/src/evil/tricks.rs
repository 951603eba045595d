//! Tricks: what a server can try, one row each. Names that lead out of the destination (F1), links
//! that do (F2), replies that are short, oversized, doubled or of another kind (F5, F6), handles and
//! lists without end (F7), text that drives a terminal (E2).

use super::honest::{Node, attrs, named};
use super::{Asked, Said, Stage, encoded, raw};
use crate::copier::Way::{self, Down, Up};
use sftp::codec::{
    Attrs, BlockHashes, Extended, FileContent, FileStatus, Limits, Name, Reply, Request, SparseMap,
    Status, kind, name,
};

/// What a client must make of it; never an escape, a hang, raw text or much memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expect {
    /// An error.
    Refused,
    /// The right content and exit 0: it is odd, and allowed.
    Right,
    /// Either: there is no right or wrong in it.
    Either,
    /// No end, for there is none to what is sent; bounded memory and nothing outside.
    Endless,
}
use Expect::{Either, Endless, Refused, Right};

/// One trick.
pub struct Trick {
    /// As `chaos evil` calls it.
    pub name: &'static str,
    /// On clients that do this.
    pub way: Way,
    /// What they must make of it.
    pub expect: Expect,
    pub(crate) announces: &'static [&'static [u8]],
    pub(crate) greeting: Option<&'static [u8]>,
    pub(crate) play: fn(&mut Stage, Asked<'_>) -> Said,
}

type Play = fn(&mut Stage, Asked<'_>) -> Said;

const fn row(name: &'static str, way: Way, expect: Expect, play: Play) -> Trick {
    Trick { name, way, expect, announces: &[], greeting: None, play }
}

const fn with(announces: &'static [&'static [u8]], trick: Trick) -> Trick {
    Trick { announces, ..trick }
}

const fn hello(greeting: &'static [u8], trick: Trick) -> Trick {
    Trick { greeting: Some(greeting), ..trick }
}

/// All of them.
#[rustfmt::skip] // a table
pub const TRICKS: &[Trick] = &[
    row("honest-down", Down, Right, |_, a| Said::Reply(a.right)),
    row("honest-up", Up, Right, |_, a| Said::Reply(a.right)),

    // F1: names
    row("name-dotdot", Down, Either, |_, a| a.names(&[b".."])),
    row("name-dotdot-path", Down, Refused, |_, a| a.names(&[b"../escape"])),
    row("name-deep-path", Down, Refused, |_, a| a.names(&[b"sub/../../escape"])),
    row("name-absolute", Down, Refused, |s, a| { let path = [&s.guard[..], b"/escape"].concat(); a.names(&[&path]) }),
    row("name-slash", Down, Refused, |_, a| a.names(&[b"sub/x"])),
    row("name-slash-alone", Down, Refused, |_, a| a.names(&[b"/"])),
    row("name-nul", Down, Refused, |_, a| a.names(&[b"a\0b"])),
    row("name-empty", Down, Refused, |_, a| a.names(&[b""])),
    row("name-dotdot-directory", Down, Refused, |_, a| a.listed(vec![named(b"../escape", attrs(&Node::Directory))])),
    row("name-dotdot-link", Down, Refused, |_, a| a.listed(vec![named(b"../escape", attrs(&Node::Link(b"/".to_vec())))])),
    row("name-twice", Down, Refused, |_, a| a.names(&[b"a"])),
    row("name-too-long", Down, Refused, |_, a| a.names(&[&[b'n'; 5000]])),
    row("name-control", Down, Either, |_, a| a.names(&[b"\x1b]0;pwned\x07\r\x9b2J"])),
    row("realpath-elsewhere", Down, Either, |s, a| match a.request {
        Request::Realpath(_) => Said::Reply(Reply::Names(vec![named(&s.guard, Attrs::default())])),
        _ => Said::Reply(a.right),
    }),
    row("realpath-none", Down, Either, |_, a| match a.request {
        Request::Realpath(_) => Said::Reply(Reply::Names(Vec::new())),
        _ => Said::Reply(a.right),
    }),

    // F2: a link, and then something to be written through it
    row("link-then-directory", Down, Refused, |_, a| a.listed(vec![
        named(b"x", attrs(&Node::Link(b"..".to_vec()))), named(b"x", attrs(&Node::Directory)),
    ])),
    row("link-then-file", Down, Refused, |_, a| a.listed(vec![
        named(b"x", attrs(&Node::Link(b"../../canary".to_vec()))), named(b"x", attrs(&Node::File(b"escaped".to_vec()))),
    ])),
    row("link-becomes-directory", Down, Either, |s, a| s.changing(a)),
    row("link-target-nul", Down, Refused, |_, a| a.link(vec![named(b"a\0b", Attrs::default())])),
    row("link-target-empty", Down, Refused, |_, a| a.link(vec![named(b"", Attrs::default())])),
    row("link-target-long", Down, Refused, |_, a| a.link(vec![named(&[b'l'; 70_000], Attrs::default())])),
    row("link-target-none", Down, Refused, |_, a| a.link(Vec::new())),
    row("link-targets-two", Down, Either, |_, a| a.link(vec![named(b"a", Attrs::default()), named(b"b", Attrs::default())])),

    // Lists without end
    row("listing-endless-same", Down, Refused, |_, a| match a.request {
        Request::Readdir(_) => Said::Reply(Reply::Names(vec![named(b"again", attrs(&Node::Directory)); 1000])),
        _ => Said::Reply(a.right),
    }),
    row("listing-endless-empty", Down, Either, |_, a| match a.request {
        Request::Readdir(_) => Said::Reply(Reply::Names(Vec::new())),
        _ => Said::Reply(a.right),
    }),
    row("listing-endless-new", Down, Endless, |s, a| s.ever_new(a)),
    row("directories-endless", Down, Endless, |s, a| match a.request {
        Request::Readdir(_) => {
            s.times += 1;
            let deeper = vec![named(b"deeper", attrs(&Node::Directory))];
            Said::Reply(if s.times % 2 == 1 { Reply::Names(deeper) } else { Reply::status(Status::Eof) })
        }
        Request::Opendir(_) => Said::Reply(Reply::Handle(handle(b"d"))),
        Request::Lstat(_) | Request::Stat(_) => Said::Reply(Reply::Attrs(attrs(&Node::Directory))),
        _ => Said::Reply(a.right),
    }),
    row("listing-count-huge", Down, Refused, |_, a| match a.request {
        Request::Readdir(_) => Said::Raw(raw(kind::NAME, &[&a.id.to_be_bytes(), &[255; 4], &[0; 12]])),
        _ => Said::Reply(a.right),
    }),

    // F6: replies
    row("data-short", Down, Right, |_, a| a.data(|bytes| bytes.truncate(30_000))),
    row("data-empty", Down, Refused, |_, a| a.data(Vec::clear)),
    row("data-longer", Down, Refused, |_, a| a.data(|bytes| bytes.extend([7; 100]))),
    row("data-too-much", Down, Refused, |_, a| match a.request {
        Request::Read { .. } => Said::Raw(raw(kind::DATA, &[&a.id.to_be_bytes(), &300_000u32.to_be_bytes(), &[7; 300_000]])),
        _ => Said::Reply(a.right),
    }),
    row("data-length-lies", Down, Refused, |_, a| match a.request {
        Request::Read { .. } => Said::Raw(raw(kind::DATA, &[&a.id.to_be_bytes(), &1000u32.to_be_bytes(), &[7; 10]])),
        _ => Said::Reply(a.right),
    }),
    row("data-ends-early", Down, Refused, |_, a| match a.request {
        Request::Read { offset: 1.., .. } => Said::Reply(Reply::status(Status::Eof)),
        Request::Read { .. } => Said::Reply(Reply::Data(vec![1])),
        _ => Said::Reply(a.right),
    }),
    row("reply-unknown-id", Down, Refused, |_, a| a.read_as(|a| Said::Raw(encoded(&a.right, a.id.wrapping_add(7777))))),
    row("reply-twice", Down, Refused, |_, a| a.read_as(|a| Said::Raw([encoded(&a.right, a.id), encoded(&a.right, a.id)].concat()))),
    row("reply-unasked", Down, Refused, |_, a| a.read_as(|a| Said::Raw([raw(kind::STATUS, &[&[9; 4], &[0; 12]]), encoded(&a.right, a.id)].concat()))),
    row("reply-handle-for-data", Down, Refused, |_, a| a.read_as(|_| Said::Reply(Reply::Handle(handle(b"x"))))),
    row("reply-ok-for-data", Down, Refused, |_, a| a.read_as(|_| Said::Reply(Reply::status(Status::Ok)))),
    row("reply-names-for-attrs", Down, Refused, |_, a| match a.request {
        Request::Lstat(_) | Request::Stat(_) | Request::Fstat(_) => Said::Reply(Reply::Names(Vec::new())),
        _ => Said::Reply(a.right),
    }),
    row("reply-ok-for-open", Down, Refused, |_, a| match a.request {
        Request::Open { .. } => Said::Reply(Reply::status(Status::Ok)),
        _ => Said::Reply(a.right),
    }),
    row("reply-ok-for-listing", Down, Refused, |_, a| match a.request {
        Request::Readdir(_) => Said::Reply(Reply::status(Status::Ok)),
        _ => Said::Reply(a.right),
    }),
    row("reply-of-no-kind", Down, Refused, |_, a| a.read_as(|a| Said::Raw(raw(77, &[&a.id.to_be_bytes()])))),
    row("reply-is-a-request", Down, Refused, |_, a| a.read_as(|a| Said::Raw(raw(kind::REMOVE, &[&a.id.to_be_bytes(), &[0, 0, 0, 1, b'x']])))),
    row("reply-too-short", Down, Refused, |_, a| a.read_as(|_| Said::Raw(raw(kind::STATUS, &[])))),
    row("packet-of-nothing", Down, Refused, |_, a| a.read_as(|_| Said::Raw(vec![0; 4]))),
    row("packet-of-4-gib", Down, Refused, |_, a| a.read_as(|_| Said::Raw(vec![255; 64]))),
    row("packet-of-1-gib", Down, Refused, |_, a| a.read_as(|_| Said::Raw([&[64, 0, 0, 0], &[103; 4096][..]].concat()))),
    row("packet-cut", Down, Refused, |s, a| a.read_as(|a| {
        s.times += 1;
        if s.times > 1 { return Said::Hang; }
        Said::Raw(encoded(&a.right, a.id)[..10].to_vec())
    })),
    row("goes-away", Down, Refused, |_, a| a.read_as(|_| Said::Hang)),
    row("status-unknown", Down, Refused, |_, a| a.read_as(|_| Said::Reply(Reply::Status { code: Status::Other(4711), text: Vec::new() }))),
    row("status-drives-the-terminal", Down, Refused, |_, a| a.read_as(|_| Said::Reply(Reply::Status { code: Status::Failure, text: b"\x1b[2J\x1b]0;pwned\x07\r\xff\xfe no".to_vec() }))),
    row("handle-of-300-bytes", Down, Refused, |_, a| match a.request {
        Request::Open { .. } => Said::Raw(raw(kind::HANDLE, &[&a.id.to_be_bytes(), &300u32.to_be_bytes(), &[b'h'; 300]])),
        _ => Said::Reply(a.right),
    }),
    row("attrs-flags-unknown", Down, Refused, |_, a| match a.request {
        Request::Lstat(_) | Request::Stat(_) | Request::Fstat(_) => Said::Raw(raw(kind::ATTRS, &[&a.id.to_be_bytes(), &0x0ff0_0000u32.to_be_bytes(), &[0; 64]])),
        _ => Said::Reply(a.right),
    }),
    row("attrs-pairs-huge", Down, Refused, |_, a| match a.request {
        Request::Lstat(_) | Request::Stat(_) | Request::Fstat(_) => Said::Raw(raw(kind::ATTRS, &[&a.id.to_be_bytes(), &0x8000_0000u32.to_be_bytes(), &[255; 64]])),
        _ => Said::Reply(a.right),
    }),
    row("attrs-none", Down, Either, |_, a| a.attrs(|attrs| *attrs = Attrs::default())),
    row("size-huge", Down, Refused, |_, a| a.attrs(|attrs| attrs.size = attrs.mode.filter(|mode| mode & 0o170_000 == 0o100_000).map(|_| u64::MAX))),
    row("size-of-8-eib", Down, Refused, |_, a| a.attrs(|attrs| attrs.size = attrs.mode.filter(|mode| mode & 0o170_000 == 0o100_000).map(|_| (1 << 63) - 1))),
    row("size-too-small", Down, Either, |_, a| a.attrs(|attrs| attrs.size = Some(3))),
    row("mode-of-a-device", Down, Refused, |_, a| a.attrs(|attrs| attrs.mode = attrs.mode.map(|mode| if mode & 0o170_000 == 0o100_000 { 0o020_666 } else { mode }))),
    row("mode-setuid", Down, Either, |_, a| a.attrs(|attrs| attrs.mode = attrs.mode.map(|mode| mode | 0o7777))),
    row("times-wild", Down, Either, |_, a| a.attrs(|attrs| { attrs.times = Some((u32::MAX, u32::MAX)); attrs.set_nanoseconds(u32::MAX, u32::MAX); })),

    // The first words
    hello(b"Welcome to this host!\r\n\0\0\0\0", row("greeting-of-a-shell", Down, Refused, |_, a| Said::Reply(a.right))),
    hello(&[0, 0, 0, 5, 2, 0, 0, 0, 0], row("version-0", Down, Refused, |_, a| Said::Reply(a.right))),
    hello(&[0, 0, 0, 5, 2, 255, 255, 255, 255], row("version-huge", Down, Either, |_, a| Said::Reply(a.right))),
    hello(&[0, 0, 0, 9, 2, 0, 0, 0, 3, 255, 255, 255, 255], row("extension-length-lies", Down, Refused, |_, a| Said::Reply(a.right))),
    hello(&[0, 0, 0, 5, 101, 0, 0, 0, 3], row("status-for-version", Down, Refused, |_, a| Said::Reply(a.right))),

    // Limits
    with(&[name::LIMITS], row("limits-zero", Down, Either, |_, a| a.limits(0))),
    with(&[name::LIMITS], row("limits-one", Down, Either, |_, a| a.limits(1))),
    with(&[name::LIMITS], row("limits-huge", Down, Right, |_, a| a.limits(u64::MAX))),
    with(&[name::LIMITS], row("limits-short", Down, Either, |_, a| match a.request {
        Request::Extended(Extended::Limits) => Said::Reply(Reply::Extended(vec![0; 7])),
        _ => Said::Reply(a.right),
    })),

    // Extensions of ours, by a server that lies about them
    with(&[name::GET_FILES], row("files-fewer", Down, Either, |_, a| a.files(|_| Vec::new()))),
    with(&[name::GET_FILES], row("files-more", Down, Either, |_, a| a.files(|count| vec![content(b"x"); count + 3]))),
    with(&[name::GET_FILES], row("files-longer", Down, Either, |_, a| a.files(|count| vec![content(&[7; 200_000]); count.min(1)]))),
    with(&[name::GET_FILES], row("files-garbage", Down, Either, |_, a| match a.request {
        Request::Extended(Extended::GetFiles(_)) => Said::Reply(Reply::Extended(vec![255; 99])),
        _ => Said::Reply(a.right),
    })),
    with(&[name::SPARSE_MAP], row("map-wild", Down, Either, |_, a| a.map(SparseMap { size: u64::MAX, data: vec![(u64::MAX, u64::MAX), (5, 5), (0, 1 << 60)] }))),
    with(&[name::SPARSE_MAP], row("map-beyond", Down, Either, |_, a| a.map(SparseMap { size: 1 << 50, data: vec![(1 << 40, 1 << 40)] }))),
    with(&[name::BLOCK_HASHES], row("hashes-wrong", Down, Refused, |_, a| a.hashes(|len| BlockHashes { hashed: len, hashes: vec![[7; 32]; 64] }))),
    with(&[name::BLOCK_HASHES], row("hashes-none", Down, Either, |_, a| a.hashes(|_| BlockHashes { hashed: 0, hashes: Vec::new() }))),
    with(&[name::BLOCK_HASHES], row("hashes-wrong-up", Up, Refused, |_, a| a.hashes(|len| BlockHashes { hashed: len, hashes: vec![[7; 32]; 64] }))),

    // Uploads
    row("write-fails-once", Up, Refused, |s, a| match a.request {
        Request::Write { .. } => {
            s.times += 1;
            Said::Reply(if s.times == 2 { Reply::status(Status::Failure) } else { a.right })
        }
        _ => Said::Reply(a.right),
    }),
    row("write-answered-by-data", Up, Refused, |_, a| match a.request {
        Request::Write { .. } => Said::Reply(Reply::Data(vec![7; 100])),
        _ => Said::Reply(a.right),
    }),
    row("write-answered-twice", Up, Refused, |_, a| match a.request {
        Request::Write { .. } => Said::Raw([encoded(&a.right, a.id), encoded(&a.right, a.id)].concat()),
        _ => Said::Reply(a.right),
    }),
    row("rename-fails", Up, Refused, |_, a| match a.request {
        Request::Rename { .. } | Request::Extended(Extended::PosixRename { .. }) => Said::Reply(Reply::status(Status::Failure)),
        _ => Said::Reply(a.right),
    }),
    row("close-fails", Up, Either, |_, a| match a.request {
        Request::Close(_) => Said::Reply(Reply::status(Status::Failure)),
        _ => Said::Reply(a.right),
    }),
    with(&[name::FSYNC], row("fsync-fails", Up, Refused, |_, a| match a.request {
        Request::Extended(Extended::Fsync(_)) => Said::Reply(Reply::status(Status::Failure)),
        _ => Said::Reply(a.right),
    })),
    with(&[name::PUT_FILES], row("put-fewer", Up, Either, |_, a| a.put(|_| Vec::new()))),
    with(&[name::PUT_FILES], row("put-more", Up, Either, |_, a| a.put(|count| vec![well(); count + 3]))),
    with(&[name::PUT_FILES], row("put-one-fails", Up, Refused, |_, a| a.put(|count| {
        let mut all = vec![well(); count];
        all[0] = FileStatus { code: Status::Failure, text: b"\x1b[2J".to_vec() };
        all
    }))),
];

fn handle(bytes: &[u8]) -> sftp::codec::Handle {
    sftp::codec::Handle::new(bytes).unwrap_or_else(|_| unreachable!("short"))
}

fn content(bytes: &[u8]) -> FileContent {
    let attrs = attrs(&Node::File(bytes.to_vec()));
    FileContent { code: Status::Ok, attrs, content: bytes.to_vec() }
}

fn well() -> FileStatus {
    FileStatus { code: Status::Ok, text: Vec::new() }
}

impl Asked<'_> {
    /// A listing with these names beside the right ones, as files.
    fn names(self, more: &[&[u8]]) -> Said {
        let file = attrs(&Node::File(b"escaped".to_vec()));
        self.listed(more.iter().map(|name| named(name, file.clone())).collect())
    }

    /// A listing with more in it.
    fn listed(self, more: Vec<Name>) -> Said {
        match (self.request, self.right) {
            // Of /tree alone.
            (Request::Readdir(_), Reply::Names(names))
                if names.iter().any(|n| n.name == b"big") =>
            {
                Said::Reply(Reply::Names([names, more].concat()))
            }
            (_, right) => Said::Reply(right),
        }
    }

    fn link(self, names: Vec<Name>) -> Said {
        match self.request {
            Request::Readlink(_) => Said::Reply(Reply::Names(names)),
            _ => Said::Reply(self.right),
        }
    }

    fn data(self, change: impl FnOnce(&mut Vec<u8>)) -> Said {
        match self.right {
            Reply::Data(mut bytes) => {
                change(&mut bytes);
                Said::Reply(Reply::Data(bytes))
            }
            right => Said::Reply(right),
        }
    }

    fn read_as(self, play: impl FnOnce(Self) -> Said) -> Said {
        match self.request {
            Request::Read { .. } => play(self),
            _ => Said::Reply(self.right),
        }
    }

    /// Attributes of names and of files are changed alike.
    fn attrs(self, change: impl Fn(&mut Attrs)) -> Said {
        Said::Reply(match self.right {
            Reply::Attrs(mut attrs) => {
                change(&mut attrs);
                Reply::Attrs(attrs)
            }
            Reply::Names(mut names) => {
                names.iter_mut().for_each(|name| change(&mut name.attrs));
                Reply::Names(names)
            }
            right => right,
        })
    }

    fn limits(self, each: u64) -> Said {
        let limits = Limits { packet: each, read: each, write: each, handles: each };
        match self.request {
            Request::Extended(Extended::Limits) => Said::Reply(Reply::Extended(limits.encode())),
            _ => Said::Reply(self.right),
        }
    }

    fn files(self, answer: impl FnOnce(usize) -> Vec<FileContent>) -> Said {
        match self.request {
            Request::Extended(Extended::GetFiles(files)) => {
                Said::Reply(Reply::Extended(FileContent::encode_list(&answer(files.len()))))
            }
            _ => Said::Reply(self.right),
        }
    }

    fn put(self, answer: impl FnOnce(usize) -> Vec<FileStatus>) -> Said {
        match self.request {
            Request::Extended(Extended::PutFiles { files, .. }) => {
                Said::Reply(Reply::Extended(FileStatus::encode_list(&answer(files.len()))))
            }
            _ => Said::Reply(self.right),
        }
    }

    fn map(self, map: SparseMap) -> Said {
        match self.request {
            Request::Extended(Extended::SparseMap { .. }) => {
                Said::Reply(Reply::Extended(map.encode()))
            }
            _ => Said::Reply(self.right),
        }
    }

    fn hashes(self, answer: impl FnOnce(u64) -> BlockHashes) -> Said {
        match self.request {
            Request::Extended(Extended::BlockHashes { len, .. }) => {
                Said::Reply(Reply::Extended(answer(*len).encode()))
            }
            _ => Said::Reply(self.right),
        }
    }
}

impl Stage {
    /// `/tree/x` is a link out of the destination at first, and a directory when it is looked at
    /// again.
    fn changing(&mut self, asked: Asked<'_>) -> Said {
        let is_x = |path: &[u8]| path.ends_with(b"/x");
        match asked.request {
            Request::Readdir(_) => {
                asked.listed(vec![named(b"x", attrs(&Node::Link(b"../..".to_vec())))])
            }
            Request::Readlink(path) if is_x(path) => {
                Said::Reply(Reply::Names(vec![named(b"../..", Attrs::default())]))
            }
            Request::Lstat(path) | Request::Stat(path) if is_x(path) => {
                self.times += 1;
                self.honest.nodes.insert(b"/tree/x".to_vec(), Node::Directory);
                let node = match self.times {
                    1 => Node::Link(b"../..".to_vec()),
                    _ => Node::Directory,
                };
                Said::Reply(Reply::Attrs(attrs(&node)))
            }
            _ => Said::Reply(asked.right),
        }
    }

    /// A directory of which every reply has a thousand names more.
    fn ever_new(&mut self, asked: Asked<'_>) -> Said {
        match asked.request {
            Request::Readdir(_) => {
                self.times += 1000;
                let name =
                    |n: u64| named(format!("n{n}").as_bytes(), attrs(&Node::File(Vec::new())));
                Said::Reply(Reply::Names((self.times - 1000..self.times).map(name).collect()))
            }
            Request::Lstat(_) | Request::Stat(_) | Request::Fstat(_) => match asked.right {
                Reply::Status { .. } => Said::Reply(Reply::Attrs(attrs(&Node::File(Vec::new())))),
                right => Said::Reply(right),
            },
            Request::Open { .. } => Said::Reply(Reply::Handle(handle(b"empty"))),
            Request::Read { .. } => Said::Reply(Reply::status(Status::Eof)),
            _ => Said::Reply(asked.right),
        }
    }
}
