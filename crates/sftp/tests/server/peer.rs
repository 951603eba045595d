//! A client of a server in this process, which says in how many pieces its bytes arrive and in
//! how large ones replies leave.

use sftp::codec::{
    Attrs, Extended, Handle, Hello, LinkOrder, NANOSECONDS_WANTED, OpenFlags, Reply, Request,
    Status, VERSION,
};
use sftp::server::{Account, Action, Input, Level, Log, Options, Output, Session, Setup, start};
use std::collections::HashMap;
use std::ffi::OsString;
use std::fmt::Arguments;
use std::io::{IoSlice, IoSliceMut};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;
use tempfile::TempDir;

/// How long anything may take; nothing here is measured.
const PATIENCE: Duration = Duration::from_secs(60);

/// What a log was told.
#[derive(Clone, Default)]
pub(crate) struct Lines(Arc<Mutex<Vec<String>>>);

impl Lines {
    pub(crate) fn all(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

impl Log for Lines {
    fn line(&self, _: Level, line: Arguments<'_>) {
        self.0.lock().unwrap().push(line.to_string());
    }
}

/// A session and its one client.
pub(crate) struct Peer {
    pub(crate) dir: TempDir,
    pub(crate) input: Input,
    pub(crate) session: Session,
    pub(crate) version: Hello,
    pub(crate) log: Lines,
    /// Bytes of one piece.
    pub(crate) piece: usize,
    replies: Receiver<(u32, Reply)>,
    early: HashMap<u32, Reply>,
    sender: Option<JoinHandle<Output>>,
    next: u32,
}

/// A session in a directory of its own with these words on its command line: not yet greeted.
pub(crate) fn open(words: &str) -> (TempDir, Input, Output, Session, Lines) {
    let dir = tempfile::tempdir().unwrap();
    let words = format!("-l INFO {words}");
    let words = words.split_whitespace().map(OsString::from);
    let Ok(Action::Serve(options)) = Options::parse(words) else { panic!("options") };
    let log = Lines::default();
    let setup = Setup {
        options: *options,
        account: Account { name: b"somebody".to_vec(), home: "/home/somebody".into() },
        start: dir.path().to_owned(),
        peer: "192.0.2.7".to_owned(),
        links: LinkOrder::default(),
        log: Arc::new(log.clone()),
    };
    let (input, output, session) = start(setup).unwrap();
    (dir, input, output, session, log)
}

impl Peer {
    pub(crate) fn new(words: &str) -> Self {
        Self::shaped(words, 32 * 1024, 16)
    }

    /// Bytes go in pieces and come out in `areas` areas of `piece` bytes at most.
    pub(crate) fn shaped(words: &str, piece: usize, areas: usize) -> Self {
        let (dir, input, output, session, log) = open(words);
        let (told, replies) = channel();
        let (versions, version) = channel();
        let sender = std::thread::spawn(move || {
            let mut output = output;
            let mut memory = vec![0; piece * areas];
            let mut bytes = Vec::new();
            let mut greeted = false;
            while output.wait() {
                let mut list: Vec<_> = memory.chunks_mut(piece).map(IoSliceMut::new).collect();
                let filled = output.fill(&mut list);
                bytes.extend_from_slice(&memory[..filled]);
                while let Some(packet) = packet(&mut bytes) {
                    if greeted {
                        let _ = told.send(Reply::parse(&packet).unwrap());
                    } else {
                        versions.send(Hello::parse_version(&packet).unwrap()).unwrap();
                        greeted = true;
                    }
                }
            }
            assert!(bytes.is_empty(), "half a packet at the end");
            output
        });
        let mut peer = Self {
            dir,
            input,
            session,
            version: Hello::default(),
            log,
            piece,
            replies,
            early: HashMap::new(),
            sender: Some(sender),
            next: 0,
        };
        let mut init = Vec::new();
        let wanted = vec![(NANOSECONDS_WANTED.to_vec(), b"1".to_vec())];
        Hello { version: VERSION, extensions: wanted }.encode_init(&mut init);
        peer.send(&init);
        peer.version = version.recv_timeout(PATIENCE).unwrap();
        peer
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Sends bytes, waiting for room as the engine does.
    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.try_send(bytes).unwrap();
    }

    pub(crate) fn try_send(&mut self, mut bytes: &[u8]) -> std::io::Result<()> {
        while !bytes.is_empty() {
            let pieces: Vec<_> = bytes.chunks(self.piece).take(16).map(IoSlice::new).collect();
            let offered: usize = pieces.iter().map(|piece| piece.len()).sum();
            let taken = self.input.take(&pieces)?;
            bytes = &bytes[taken..];
            if taken < offered {
                wait_for_room(&self.input);
            }
        }
        Ok(())
    }

    /// Sends a request without waiting; its id.
    pub(crate) fn ask(&mut self, request: &Request) -> u32 {
        let mut bytes = Vec::new();
        let id = self.encode(request, &mut bytes);
        self.send(&bytes);
        id
    }

    /// Appends a request; its id.
    pub(crate) fn encode(&mut self, request: &Request, bytes: &mut Vec<u8>) -> u32 {
        self.next += 1;
        request.encode(self.next, bytes);
        self.next
    }

    /// The reply to a request.
    pub(crate) fn reply(&mut self, id: u32) -> Reply {
        loop {
            if let Some(reply) = self.early.remove(&id) {
                return reply;
            }
            let (id, reply) = self.replies.recv_timeout(PATIENCE).unwrap();
            assert!(self.early.insert(id, reply).is_none(), "two replies to {id}");
        }
    }

    /// Ids in the order of their replies.
    pub(crate) fn order(&self, count: usize) -> Vec<u32> {
        (0..count).map(|_| self.replies.recv_timeout(PATIENCE).unwrap().0).collect()
    }

    pub(crate) fn call(&mut self, request: Request) -> Reply {
        let id = self.ask(&request);
        self.reply(id)
    }

    pub(crate) fn extended(&mut self, request: Extended) -> Reply {
        self.call(Request::Extended(request))
    }

    /// The content of an extended reply.
    pub(crate) fn content(&mut self, request: Extended) -> Vec<u8> {
        match self.extended(request) {
            Reply::Extended(content) => content,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn open(&mut self, path: &str, flags: OpenFlags) -> Handle {
        self.open_with(path, flags, Attrs::default())
    }

    pub(crate) fn open_with(&mut self, path: &str, flags: OpenFlags, attrs: Attrs) -> Handle {
        match self.call(Request::Open { path: path.into(), flags, attrs }) {
            Reply::Handle(handle) => handle,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn create(&mut self, path: &str) -> Handle {
        self.open(path, OpenFlags::READ | OpenFlags::WRITE | OpenFlags::CREATE)
    }

    /// Reads as a client does, until the end.
    pub(crate) fn read_all(&mut self, handle: &Handle, step: u32) -> Vec<u8> {
        let mut content = Vec::new();
        loop {
            let offset = content.len() as u64;
            match self.call(Request::Read { handle: handle.clone(), offset, len: step }) {
                Reply::Data(data) => {
                    assert!(!data.is_empty() && data.len() <= step as usize);
                    content.extend(data);
                }
                reply => {
                    assert_eq!(code(&reply), Status::Eof);
                    return content;
                }
            }
        }
    }

    /// The client's EOF; what the server still had to say was said.
    pub(crate) fn finish(mut self) -> Output {
        self.input.end();
        self.sender.take().unwrap().join().unwrap()
    }

    /// Waits until the sending end has nothing to wait for any more.
    pub(crate) fn sender_ends(&mut self) {
        self.sender.take().unwrap().join().unwrap();
    }

    /// Nothing comes for a moment.
    pub(crate) fn silence(&self) {
        let nothing = self.replies.recv_timeout(Duration::from_millis(50));
        assert_eq!(nothing, Err(RecvTimeoutError::Timeout));
    }
}

pub(crate) fn wait_for_room(input: &Input) {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let mut fds = [PollFd::from_borrowed_fd(input.room(), PollFlags::IN)];
    let patience = Timespec::try_from(PATIENCE).unwrap();
    assert_eq!(poll(&mut fds, Some(&patience)), Ok(1), "no room is ever made");
}

/// The next whole packet off the front, without its length.
fn packet(bytes: &mut Vec<u8>) -> Option<Vec<u8>> {
    let (length, rest) = bytes.split_first_chunk()?;
    let length = sftp::codec::packet_length(*length).unwrap();
    let packet = rest.get(..length)?.to_vec();
    bytes.drain(..4 + length);
    Some(packet)
}

/// The status of a reply that must be one.
pub(crate) fn code(reply: &Reply) -> Status {
    match reply {
        Reply::Status { code, .. } => *code,
        other => panic!("{other:?}"),
    }
}

pub(crate) fn text(reply: &Reply) -> String {
    match reply {
        Reply::Status { text, .. } => String::from_utf8(text.clone()).unwrap(),
        other => panic!("{other:?}"),
    }
}

pub(crate) fn ok(reply: &Reply) {
    assert_eq!(code(reply), Status::Ok, "{reply:?}");
}

pub(crate) fn write(handle: &Handle, offset: u64, data: &[u8]) -> Request {
    Request::Write { handle: handle.clone(), offset, data: data.to_vec() }
}

pub(crate) fn read(handle: &Handle, offset: u64, len: u32) -> Request {
    Request::Read { handle: handle.clone(), offset, len }
}

pub(crate) fn mode(path: &Path) -> u32 {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

/// All names in a directory, sorted.
pub(crate) fn names(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}
