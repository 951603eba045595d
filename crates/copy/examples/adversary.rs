//! A malicious SFTP server on standard input and output, for `tests/malicious.rs`: an honest little
//! tree, but for the one lie that its argument names.

use sftp::codec::{Attrs, Handle, Hello, Name, Reply, Request, Status, VERSION, kind};
use std::io::{self, Read, Write};

/// Content of every file.
const CONTENT: &[u8] = b"from the adversary";

fn main() -> io::Result<()> {
    let lie = std::env::args().nth(1).unwrap_or_default();
    let (mut input, mut output) = (io::stdin().lock(), io::stdout().lock());
    let mut server = Server { lie, listed: 0 };
    loop {
        let mut length = [0; 4];
        if input.read_exact(&mut length).is_err() {
            return Ok(());
        }
        let mut packet = vec![0; u32::from_be_bytes(length) as usize];
        input.read_exact(&mut packet)?;
        let mut reply = Vec::new();
        if packet.first() == Some(&kind::INIT) {
            Hello { version: VERSION, extensions: Vec::new() }.encode_version(&mut reply);
        } else if let Ok((id, request)) = Request::parse(&packet) {
            server.answer(&request, id, &mut reply);
        }
        output.write_all(&reply)?;
        output.flush()?;
    }
}

struct Server {
    lie: String,
    /// Listings that were read.
    listed: u64,
}

impl Server {
    fn answer(&mut self, request: &Request, id: u32, out: &mut Vec<u8>) {
        let reply = match request {
            Request::Stat(path) | Request::Lstat(path) => Reply::Attrs(self.attrs(path)),
            Request::Fstat(handle) => Reply::Attrs(self.attrs(handle.as_bytes())),
            Request::Open { path, .. } | Request::Opendir(path) => {
                self.listed = 0;
                let last = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
                Handle::new(last).map_or(Reply::status(Status::Failure), Reply::Handle)
            }
            Request::Readdir(_) => self.list(),
            Request::Read { offset, len, .. } => return self.read(id, *offset, *len, out),
            Request::Readlink(_) => {
                let name = b"/etc".to_vec();
                Reply::Names(vec![Name { name, ..Name::default() }])
            }
            _ => Reply::status(Status::Ok),
        };
        reply.encode(id, out);
    }

    /// What ends in `tree` or `dir` is a directory, what ends in `link` a link, all else a file.
    fn attrs(&self, path: &[u8]) -> Attrs {
        let (mode, size) = if path.ends_with(b"tree") || path.ends_with(b"dir") {
            (0o040_755, 0)
        } else if path.ends_with(b"link") {
            (0o120_777, 4)
        } else {
            (0o100_644, CONTENT.len() as u64)
        };
        let size = if self.lie == "size" { 1 << 40 } else { size };
        Attrs { size: Some(size), mode: Some(mode), times: Some((1, 1)), ..Attrs::default() }
    }

    fn list(&mut self) -> Reply {
        self.listed += 1;
        let names: &[&[u8]] = match (self.lie.as_str(), self.listed) {
            ("endless", round) => {
                let name = format!("file{round}").into_bytes();
                return Reply::Names(vec![self.name(&name)]);
            }
            // Neither names nor an end.
            ("hollow", _) => &[],
            ("deep", 1) => &[b"dir"],
            (_, 2..) => return Reply::status(Status::Eof),
            ("dotdot", _) => &[b"good", b"..", b"../escaped", b"later"],
            ("slash", _) => &[b"good", b"a/b"],
            ("absolute", _) => &[b"good", b"/tmp/lhscp-escaped"],
            ("empty", _) => &[b"good", b""],
            ("nul", _) => &[b"good", b"a\0b"],
            ("twice", _) => &[b"good", b"good"],
            ("link", _) => &[b"link"],
            _ => &[b".", b"..", b"good"],
        };
        Reply::Names(names.iter().map(|name| self.name(name)).collect())
    }

    fn name(&self, name: &[u8]) -> Name {
        Name { name: name.to_vec(), longname: Vec::new(), attrs: self.attrs(name) }
    }

    fn read(&self, id: u32, offset: u64, len: u32, out: &mut Vec<u8>) {
        let rest =
            usize::try_from(offset).ok().and_then(|at| CONTENT.get(at..)).unwrap_or_default();
        let wanted = rest.get(..len as usize).unwrap_or(rest);
        let (id, wanted) = match self.lie.as_str() {
            "oversized" => (id, &[7; 1 << 17][..]),
            "zero" => (id, &[][..]),
            "short" => (id, wanted.get(..1).unwrap_or_default()),
            "strangers" => (id.wrapping_add(77), wanted),
            _ => (id, wanted),
        };
        if wanted.is_empty() && self.lie != "zero" {
            return Reply::status(Status::Eof).encode(id, out);
        }
        Reply::Data(wanted.to_vec()).encode(id, out);
    }
}
