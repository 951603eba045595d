//! Incoming: what the server sent, parsed where it lies, on the receiving thread.
//!
//! ```text
//! front   length and type                        gathered, 5 bytes; 13 with the head of DATA
//! DATA    payload                                written from the pieces straight to its file
//! others  at most 256 KiB                        gathered, parsed, answered
//! ```
//! A server that answers what nobody asked, twice, too much, nothing, or with the wrong kind of
//! answer broke the protocol, and the channel ends (F6).

use super::asked::{Arriving, Expect, Get, Item, Owed, Waiting};
use super::ledger::Shared;
use super::transfer::Target;
use super::{Error, ServerFacts, Sizes, calls, pieces::Pieces};
use crate::codec::{
    self, DATA_HEAD, DataHead, Extended, Hello, Limits, Reply, Request, Status, kind,
};
use std::io::{self, IoSlice};
use std::sync::Arc;
use wire::text::visible_within;

/// Length and type of a packet.
const FRONT: usize = 5;

/// Bytes of a text in place of an introduction that are looked at, and that are told.
const TEXT: usize = 1024;
const SHOWN: usize = 200;

/// Most crumbs in answer to one get.
const CRUMBS: u32 = 64;

/// A short answer of less is a crumb. Files that the kernel makes while they are read come a page at
/// a time, less the record that did not fit: /proc/cpuinfo of a large machine is hundreds of such
/// answers, and none to be refused.
const CRUMB: u32 = 1024;

/// Takes what the server sent; owned by the receiving thread. Whoever drives it calls
/// [`Incoming::end`] or [`Ender::end`](super::Ender::end) when nothing more comes.
pub struct Incoming {
    shared: Arc<Shared>,
    expects: Expects,
    /// What is being gathered.
    front: Vec<u8>,
    hello: Hi,
    /// The server broke the protocol: nothing it says counts any more.
    failed: Option<Error>,
}

/// What the next bytes are.
enum Expects {
    /// Length and type.
    Front,
    /// The rest of DATA's head.
    DataHead,
    /// So many more bytes of a packet that is gathered.
    Body(usize),
    /// So many more bytes of a READ's answer.
    Payload(u32, Box<Get>, usize),
}

/// How far the server's introduction is.
enum Hi {
    /// VERSION must come first.
    Version,
    /// It did; the limits are asked for.
    Sizes(ServerFacts),
    Done,
}

impl Incoming {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        let front = Vec::with_capacity(1024);
        Self { shared, expects: Expects::Front, front, hello: Hi::Version, failed: None }
    }

    /// Takes all of `pieces`, and waits for nothing but the disk. An error ends the channel: its
    /// tokens were answered.
    pub fn take(&mut self, pieces: &[IoSlice<'_>]) -> Result<usize, Error> {
        if let Some(why) = &self.failed {
            return Err(why.clone());
        }
        let mut pieces = Pieces::new(pieces);
        let all = pieces.left();
        while pieces.left() > 0 {
            if let Err(why) = self.step(&mut pieces) {
                self.shared.end(why.clone());
                self.failed = Some(why.clone());
                return Err(why);
            }
        }
        Ok(all)
    }

    /// Nothing more comes.
    pub fn end(&mut self) {
        self.shared.end(Error::ended(match self.expects {
            Expects::Front if self.front.is_empty() => "the server ended the channel",
            _ => "the server ended the channel in the middle of an answer",
        }));
    }

    /// Ends the channel from outside.
    pub fn ender(&self) -> super::Ender {
        super::Ender(Arc::clone(&self.shared))
    }

    fn step(&mut self, pieces: &mut Pieces<'_, '_>) -> Result<(), Error> {
        match std::mem::replace(&mut self.expects, Expects::Front) {
            Expects::Front if pieces.gather(&mut self.front, FRONT) => {
                self.no_text(pieces)?;
                self.front()
            }
            Expects::Front => Ok(()),
            Expects::DataHead if pieces.gather(&mut self.front, DATA_HEAD) => self.data_head(),
            Expects::DataHead => self.go_on(Expects::DataHead),
            Expects::Body(whole) if pieces.gather(&mut self.front, whole) => self.body(),
            Expects::Body(whole) => self.go_on(Expects::Body(whole)),
            Expects::Payload(id, get, left) => self.payload(id, get, left, pieces),
        }
    }

    fn go_on(&mut self, expects: Expects) -> Result<(), Error> {
        self.expects = expects;
        Ok(())
    }

    /// The login scripts of some accounts print something in every session, where the server's
    /// introduction should be: the user knows best by its words whose they are.
    fn no_text(&mut self, pieces: &mut Pieces<'_, '_>) -> Result<(), Error> {
        let begins = matches!(self.hello, Hi::Version);
        let length = self.front.first_chunk::<4>().map(|length| codec::packet_length(*length));
        if !begins || !matches!(length, Some(Err(_))) || text(&self.front).is_empty() {
            return Ok(());
        }
        pieces.gather(&mut self.front, TEXT);
        let said = text(&self.front);
        let line = said.lines().map(str::trim).find(|line| !line.is_empty());
        let line = visible_within(line.unwrap_or_default(), SHOWN);
        Err(Error::Server(format!(
            "it begins with text, \"{line}\"; login scripts there, such as ~/.bashrc, must print \
             nothing in sessions without a terminal"
        )))
    }

    /// Length and type are there.
    fn front(&mut self) -> Result<(), Error> {
        let Some((length, [kind, ..])) = self.front.split_first_chunk::<4>() else { return Ok(()) };
        let len = codec::packet_length(*length).map_err(malformed)?;
        if *kind == kind::DATA && matches!(self.hello, Hi::Done | Hi::Sizes(_)) {
            return self.go_on(Expects::DataHead);
        }
        match len {
            1 => self.body(),
            len => self.go_on(Expects::Body(4 + len)),
        }
    }

    fn data_head(&mut self) -> Result<(), Error> {
        let Some(head) = self.front.first_chunk::<DATA_HEAD>() else { return Ok(()) };
        let head = DataHead::parse(head).map_err(malformed)?;
        match self.shared.arriving(head.id) {
            None => Err(unasked(head.id)),
            Some(Arriving::Reply) => self.go_on(Expects::Body(DATA_HEAD + len(head.len))),
            Some(Arriving::Bulk(get)) => {
                self.front.clear();
                let get = checked(get, head.len)?;
                self.go_on(Expects::Payload(head.id, get, len(head.len)))
            }
        }
    }

    /// Some of a READ's answer, into its target.
    fn payload(
        &mut self,
        id: u32,
        mut get: Box<Get>,
        left: usize,
        pieces: &mut Pieces<'_, '_>,
    ) -> Result<(), Error> {
        let now = left.min(pieces.left());
        get.take(pieces, now);
        if now < left {
            return self.go_on(Expects::Payload(id, get, left - now));
        }
        self.shared.arrived(id, get);
        Ok(())
    }

    /// A packet is gathered.
    fn body(&mut self) -> Result<(), Error> {
        let packet = self.front.get(4..).unwrap_or_default();
        let parsed = match self.hello {
            Hi::Version => Hello::parse_version(packet).map(Err),
            _ => Reply::parse(packet).map(Ok),
        };
        self.front.clear();
        self.front.shrink_to(64 * 1024);
        match parsed.map_err(malformed)? {
            Err(hello) => self.greet(hello),
            Ok((id, reply)) => self.reply(id, reply),
        }
    }

    /// The server's VERSION (draft section 4).
    fn greet(&mut self, hello: Hello) -> Result<(), Error> {
        if hello.version != codec::VERSION {
            return Err(Error::Server(format!("it speaks version {}", hello.version)));
        }
        self.shared.greet();
        let asks = hello.has(codec::name::LIMITS) && !self.shared.is_known();
        let facts = ServerFacts { extensions: hello.extensions, sizes: Sizes::default() };
        if asks {
            self.hello = Hi::Sizes(facts);
            let limits = Request::Extended(Extended::Limits);
            self.shared.ask_first(Item::Message(calls::message(&limits, Waiting::Sizes)));
        } else {
            self.hello = Hi::Done;
            self.shared.know(facts);
        }
        Ok(())
    }

    fn reply(&mut self, id: u32, reply: Reply) -> Result<(), Error> {
        match self.shared.settle(id) {
            None => Err(unasked(id)),
            Some(Owed::Request(expect, Waiting::Sizes)) => self.sizes(expect, reply),
            Some(Owed::Request(expect, waiting)) => {
                let reply = answer(expect, reply);
                let broken = reply.as_ref().err().filter(|why| why.is_channels()).cloned();
                self.shared.replied(waiting, reply);
                broken.map_or(Ok(()), Err)
            }
            Some(Owed::Write(put)) => {
                let done = answer(Expect::Status, reply).map(drop);
                let broken = done.as_ref().err().filter(|why| why.is_channels()).cloned();
                self.shared.written(put, done);
                broken.map_or(Ok(()), Err)
            }
            Some(Owed::Read(get)) => self.no_data(*get, reply),
            // Its data is still coming: nothing else can come before it ends.
            Some(Owed::Arriving(_)) => Err(unasked(id)),
        }
    }

    /// A READ that brought no data: the end of the file, or an error.
    fn no_data(&mut self, mut get: Get, reply: Reply) -> Result<(), Error> {
        let why = match answer(Expect::Data, reply) {
            Err(why) => why,
            Ok(_) => wrong_kind(),
        };
        let broken = why.is_channels().then(|| why.clone());
        match why.status() {
            Some(Status::Eof) => get.got.eof = true,
            _ => get.failed = Some(why),
        }
        self.shared.got(get);
        broken.map_or(Ok(()), Err)
    }

    fn sizes(&mut self, expect: Expect, reply: Reply) -> Result<(), Error> {
        let Hi::Sizes(mut facts) = std::mem::replace(&mut self.hello, Hi::Done) else {
            return Ok(());
        };
        match answer(expect, reply) {
            Ok(Reply::Extended(body)) => {
                facts.sizes = Sizes::said(&Limits::parse(&body).map_err(malformed)?);
            }
            Err(why) if why.is_channels() => return Err(why),
            _ => {}
        }
        self.shared.know(facts);
        Ok(())
    }
}

impl Get {
    /// Moves `len` bytes from the front of `pieces` to where they belong.
    fn take(&mut self, pieces: &mut Pieces<'_, '_>, len: usize) {
        let mut left = len;
        while left > 0 {
            let mut slices = [IoSlice::new(&[]); super::areas::PIECES];
            let (count, bytes) = pieces.front(left, &mut slices);
            let slices = slices.get_mut(..count).unwrap_or_default();
            if let Some(hasher) = &mut self.hasher {
                slices.iter().for_each(|slice| {
                    hasher.update(slice);
                });
            }
            self.write(slices);
            pieces.advance(bytes);
            self.got.len = self.got.len.saturating_add(u32::try_from(bytes).unwrap_or(u32::MAX));
            left -= bytes;
        }
    }

    fn write(&mut self, mut slices: &mut [IoSlice<'_>]) {
        match &self.target {
            Target::Discard => {}
            Target::Bytes => {
                slices.iter().for_each(|slice| self.got.bytes.extend_from_slice(slice))
            }
            Target::File { .. } if self.failed.is_some() => {}
            Target::File { file, offset } => {
                let at = offset.saturating_add(self.got.len.into());
                if let Err(why) = write_at(file, at, &mut slices) {
                    self.failed = Some(Error::local("write", why));
                }
            }
        }
    }
}

/// All of `slices` into `file`, from `at` on.
fn write_at(file: &std::fs::File, mut at: u64, slices: &mut &mut [IoSlice<'_>]) -> io::Result<()> {
    while !slices.is_empty() {
        match rustix::io::pwritev(file, slices, at) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(n) => {
                at = at.saturating_add(n as u64);
                IoSlice::advance_slices(slices, n);
            }
            Err(rustix::io::Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(())
}

/// A get whose READ is answered by `len` bytes, which must be some, and not too many (F6).
fn checked(mut get: Box<Get>, len: u32) -> Result<Box<Get>, Error> {
    if len == 0 || len > get.asked {
        return Err(Error::Server(format!("{len} bytes in answer to a READ of {}", get.asked)));
    }
    get.crumbs += u32::from(len < get.asked && len < CRUMB);
    if get.crumbs > CRUMBS {
        return Err(Error::Server(format!("more than {CRUMBS} crumbs in answer to one READ")));
    }
    Ok(get)
}

/// What `bytes` begin with that people could read.
fn text(bytes: &[u8]) -> &str {
    let text = bytes.utf8_chunks().next().map_or("", |chunk| chunk.valid());
    let is_control = |c: char| c.is_control() && !matches!(c, '\t' | '\n' | '\r' | '\x1b');
    text.split(is_control).next().unwrap_or_default()
}

/// The reply if it may answer; a status that says no is an error.
fn answer(expect: Expect, reply: Reply) -> Result<Reply, Error> {
    match reply {
        Reply::Status { code, text } if code != Status::Ok => {
            Err(Error::Status { code, text: String::from_utf8_lossy(&text).into_owned() })
        }
        reply if expect.takes(&reply) => Ok(reply),
        _ => Err(wrong_kind()),
    }
}

fn wrong_kind() -> Error {
    Error::Server("an answer of the wrong kind".to_owned())
}

fn unasked(id: u32) -> Error {
    Error::Server(format!("an answer with the id {id}, which nothing was asked with"))
}

fn malformed(why: codec::Malformed) -> Error {
    Error::Server(why.to_string())
}

fn len(len: u32) -> usize {
    usize::try_from(len).unwrap_or(usize::MAX)
}
