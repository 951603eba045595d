//! Honest: a small SFTP server in memory, the straight face behind which a trick is played.

use sftp::codec::{Attrs, Extended, Handle, Name, OpenFlags, Reply, Request, Status};
use std::collections::BTreeMap;

/// A path on the server, absolute.
pub(crate) type Path = Vec<u8>;

/// What stands under a path.
#[derive(Debug, Clone)]
pub(crate) enum Node {
    /// A directory.
    Directory,
    /// A file with its content.
    File(Vec<u8>),
    /// A link to there.
    Link(Vec<u8>),
}

/// What a handle is for.
#[derive(Debug, Clone)]
struct Open {
    path: Path,
    /// Names of a directory that are still to be told.
    listing: Option<Vec<Name>>,
}

/// The server's files and handles.
#[derive(Debug)]
pub(crate) struct Honest {
    pub(crate) nodes: BTreeMap<Path, Node>,
    opened: BTreeMap<Vec<u8>, Open>,
    next: u64,
    bait: Node,
}

/// Content of `/tree/big`: several requests long.
pub(crate) fn big() -> Vec<u8> {
    (0..700_000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect()
}

impl Honest {
    /// `/tree` with files, a directory and maybe a link; `/up` is empty.
    pub(crate) fn new(link: bool) -> Self {
        let file = |bytes: &[u8]| Node::File(bytes.to_vec());
        let nodes = [
            ("/", Node::Directory),
            ("/up", Node::Directory),
            ("/tree", Node::Directory),
            ("/tree/a", file(b"alpha")),
            ("/tree/big", Node::File(big())),
            ("/tree/link", Node::Link(b"a".to_vec())),
            ("/tree/sub", Node::Directory),
            ("/tree/sub/b", file(b"beta")),
            // Not in a listing, since there is no /tree/x.
            ("/tree/x/canary", file(b"escaped")),
        ];
        let nodes = nodes.map(|(path, node)| (path.as_bytes().to_vec(), node));
        let mut nodes = BTreeMap::from(nodes);
        nodes.retain(|_, node| link || !matches!(node, Node::Link(_)));
        Self { nodes, opened: BTreeMap::new(), next: 0, bait: file(b"escaped") }
    }

    /// The honest answer.
    pub(crate) fn answer(&mut self, request: &Request) -> Reply {
        self.try_answer(request).unwrap_or_else(Reply::status)
    }

    fn try_answer(&mut self, request: &Request) -> Result<Reply, Status> {
        Ok(match request {
            Request::Open { path, flags, .. } => self.open(path, *flags)?,
            Request::Opendir(path) => self.list(path)?,
            Request::Readdir(handle) => {
                let open = self.opened.get_mut(handle.as_bytes()).ok_or(Status::Failure)?;
                let names = open.listing.take().ok_or(Status::Eof)?;
                Reply::Names(names)
            }
            Request::Read { handle, offset, len } => self.read(handle, *offset, *len)?,
            Request::Write { handle, offset, data } => self.write(handle, *offset, data)?,
            Request::Lstat(path) => Reply::Attrs(attrs(self.node(path)?)),
            Request::Stat(path) => Reply::Attrs(attrs(self.follow(path)?)),
            Request::Fstat(handle) => {
                let path = &self.opened.get(handle.as_bytes()).ok_or(Status::Failure)?.path;
                Reply::Attrs(attrs(self.node(path)?))
            }
            Request::Readlink(path) => match self.node(path)? {
                Node::Link(target) => Reply::Names(vec![named(target, Attrs::default())]),
                _ => return Err(Status::Failure),
            },
            Request::Realpath(path) => Reply::Names(vec![named(&absolute(path), Attrs::default())]),
            Request::Extended(extended) => self.extended(extended)?,
            other => self.change(other)?,
        })
    }

    fn change(&mut self, request: &Request) -> Result<Reply, Status> {
        match request {
            Request::Mkdir(path, _) => drop(self.nodes.insert(absolute(path), Node::Directory)),
            Request::Remove(path) | Request::Rmdir(path) => {
                self.nodes.remove(&absolute(path)).ok_or(Status::NoSuchFile)?;
            }
            Request::Symlink { target, link } => {
                self.nodes.insert(absolute(link), Node::Link(target.clone()));
            }
            Request::Rename { from, to } => self.rename(from, to)?,
            _ => {}
        }
        Ok(Reply::status(Status::Ok))
    }

    fn extended(&mut self, extended: &Extended) -> Result<Reply, Status> {
        match extended {
            Extended::PosixRename { from, to } => self.rename(from, to)?,
            Extended::Fsync(_) | Extended::Lsetstat(..) => {}
            _ => return Err(Status::Unsupported),
        }
        Ok(Reply::status(Status::Ok))
    }

    fn rename(&mut self, from: &[u8], to: &[u8]) -> Result<(), Status> {
        let node = self.nodes.remove(&absolute(from)).ok_or(Status::NoSuchFile)?;
        self.nodes.insert(absolute(to), node);
        Ok(())
    }

    fn open(&mut self, path: &[u8], flags: OpenFlags) -> Result<Reply, Status> {
        let path = absolute(path);
        if flags.has(OpenFlags::CREATE) && !self.nodes.contains_key(&path) {
            self.nodes.insert(path.clone(), Node::File(Vec::new()));
        }
        self.follow(&path)?;
        Ok(self.hand(Open { path, listing: None }))
    }

    fn list(&mut self, path: &[u8]) -> Result<Reply, Status> {
        let path = absolute(path);
        self.node(&path)?;
        let below = if path == b"/" { path.clone() } else { [&path[..], b"/"].concat() };
        let names = self.nodes.iter().filter_map(|(full, node)| {
            let name = full.strip_prefix(below.as_slice())?;
            (!name.is_empty() && !name.contains(&b'/')).then(|| named(name, attrs(node)))
        });
        let listing = Some(names.collect());
        Ok(self.hand(Open { path, listing }))
    }

    fn hand(&mut self, open: Open) -> Reply {
        self.next += 1;
        let handle = self.next.to_be_bytes().to_vec();
        self.opened.insert(handle.clone(), open);
        Handle::new(handle).map_or(Reply::status(Status::Failure), Reply::Handle)
    }

    fn read(&self, handle: &Handle, offset: u64, len: u32) -> Result<Reply, Status> {
        let open = self.opened.get(handle.as_bytes()).ok_or(Status::Failure)?;
        let Node::File(bytes) = self.follow(&open.path)? else { return Err(Status::Failure) };
        let rest = usize::try_from(offset).ok().and_then(|at| bytes.get(at..)).unwrap_or_default();
        match rest.get(..len as usize).unwrap_or(rest) {
            [] => Err(Status::Eof),
            some => Ok(Reply::Data(some.to_vec())),
        }
    }

    fn write(&mut self, handle: &Handle, offset: u64, data: &[u8]) -> Result<Reply, Status> {
        let open = self.opened.get(handle.as_bytes()).ok_or(Status::Failure)?;
        let node = self.nodes.get_mut(&open.path).ok_or(Status::Failure)?;
        let (Node::File(bytes), Ok(at)) = (node, usize::try_from(offset)) else {
            return Err(Status::Failure);
        };
        bytes.resize(bytes.len().max(at + data.len()), 0);
        bytes[at..at + data.len()].copy_from_slice(data);
        Ok(Reply::status(Status::Ok))
    }

    fn node(&self, path: &[u8]) -> Result<&Node, Status> {
        let path = absolute(path);
        self.nodes.get(&path).or_else(|| self.bait(&path)).ok_or(Status::NoSuchFile)
    }

    /// Whoever follows a bad name finds what it hopes for, so that an escape leaves a trace.
    fn bait(&self, path: &[u8]) -> Option<&Node> {
        let last = path.rsplit(|&byte| byte == b'/').next()?;
        match last {
            b"escape" | b"canary" => Some(&self.bait),
            b"x" => self.nodes.get(&b"/"[..]),
            _ => None,
        }
    }

    fn follow(&self, path: &[u8]) -> Result<&Node, Status> {
        match self.node(path)? {
            Node::Link(_) => self.node(b"/tree/a"),
            node => Ok(node),
        }
    }
}

/// Relative to `/`, without slashes and dots that mean nothing.
pub(crate) fn absolute(path: &[u8]) -> Path {
    let parts = path.split(|&byte| byte == b'/').filter(|part| !matches!(*part, b"" | b"."));
    let joined: Vec<u8> = parts.flat_map(|part| [b"/", part].concat()).collect();
    if joined.is_empty() { b"/".to_vec() } else { joined }
}

pub(crate) fn attrs(node: &Node) -> Attrs {
    let (mode, size) = match node {
        Node::Directory => (0o040_755, 4096),
        Node::File(bytes) => (0o100_644, bytes.len() as u64),
        Node::Link(target) => (0o120_777, target.len() as u64),
    };
    let (mode, size) = (Some(mode), Some(size));
    Attrs { size, owner: Some((0, 0)), mode, times: Some((1, 1)), ..Attrs::default() }
}

pub(crate) fn named(name: &[u8], attrs: Attrs) -> Name {
    Name { name: name.to_vec(), longname: name.to_vec(), attrs }
}
