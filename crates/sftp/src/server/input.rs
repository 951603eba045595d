//! Input: the bytes of a client, as they lie where they were received.
//!
//! A request that is all in one piece is parsed there; one that is not is gathered first. Of a
//! WRITE only the head is: its data goes to the file from the pieces it lies in, one pwritev for
//! all of them. Called on the receiving thread, which must not wait for anything but a file.

use super::attributes::Wanted;
use super::fault::Fault;
use super::handles::Open;
use super::log::Level;
use super::permit::Operation;
use super::queue::Shared;
use crate::codec::{
    Hello, MAX_PACKET, Malformed, NANOSECONDS_WANTED, OpenFlags, Reply, Request, Status, VERSION,
    WRITE_HEAD, WriteHead, kind, packet_length,
};
use rustix::io::Errno;
use std::io::{self, IoSlice};
use std::os::fd::BorrowedFd;
use std::sync::Arc;

/// Pieces in one pwritev. A WRITE of 255 KiB lies in nine packets of 32 KiB.
const PIECES: usize = 16;

/// A WRITE whose data is on its way.
struct Writing {
    id: u32,
    offset: u64,
    left: usize,
    /// Bytes behind the data that are skipped.
    surplus: usize,
    /// Where to, or why not: then what is left is dropped.
    to: Result<Arc<Open>, Fault>,
}

/// The receiving end of a session.
pub struct Input {
    shared: Arc<Shared>,
    /// The front of a packet that is not all there.
    partial: Vec<u8>,
    writing: Option<Writing>,
    /// Bytes to skip before the next packet.
    surplus: usize,
    /// To what was done at once.
    replies: Vec<u8>,
    greeted: bool,
    ended: bool,
}

impl Input {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        let (partial, replies) = (Vec::with_capacity(WRITE_HEAD), Vec::new());
        Self { shared, partial, writing: None, surplus: 0, replies, greeted: false, ended: false }
    }

    /// Takes from the front of `pieces`, in order; the bytes taken. What is left is to be offered
    /// again when [`Input::room`] is readable. An error ends the session: the client broke the
    /// protocol.
    pub fn take(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        if self.shared.is_closed() {
            // Nobody is left to answer: what still comes is dropped, or it would wait for ever.
            return Ok(pieces.iter().map(|piece| piece.len()).sum());
        }
        let mut cursor = Cursor { pieces, at: 0, taken: 0 };
        let outcome = self.take_all(&mut cursor);
        self.shared.flush(&mut self.replies);
        if let Err(malformed) = outcome {
            self.shared.log(Level::Error, format_args!("bad message: {malformed}"));
            self.shared.break_off();
            return Err(io::Error::new(io::ErrorKind::InvalidData, malformed));
        }
        Ok(cursor.taken)
    }

    /// Readable while more can be taken, after less than all was.
    pub fn room(&self) -> BorrowedFd<'_> {
        self.shared.room()
    }

    /// Nothing more will come.
    pub fn end(&mut self) {
        if !std::mem::replace(&mut self.ended, true) {
            self.shared.end();
        }
    }

    fn take_all(&mut self, cursor: &mut Cursor<'_, '_>) -> Result<(), Malformed> {
        loop {
            let more = !cursor.front().is_empty();
            let goes_on = if self.writing.is_some() {
                if more {
                    self.write(cursor);
                }
                more
            } else if self.surplus > 0 {
                let skipped = cursor.front().len().min(self.surplus);
                self.surplus -= skipped;
                cursor.advance(skipped);
                more
            } else if self.partial.is_empty() {
                more && self.shared.has_room() && self.in_place(cursor)?
            } else {
                self.gathered(cursor)?
            };
            if !goes_on {
                return Ok(());
            }
        }
    }

    /// A packet that begins in the first piece; `false` where it has to wait.
    fn in_place(&mut self, cursor: &mut Cursor<'_, '_>) -> Result<bool, Malformed> {
        let front = cursor.front();
        let needed = needed(front)?;
        let Some(packet) = front.get(..needed) else {
            self.gather(cursor, needed);
            return Ok(true);
        };
        let taken = self.whole(packet)?;
        cursor.advance(if taken { needed } else { 0 });
        Ok(taken)
    }

    /// A packet whose front was gathered; `false` where it, or we, have to wait.
    fn gathered(&mut self, cursor: &mut Cursor<'_, '_>) -> Result<bool, Malformed> {
        let needed = needed(&self.partial)?;
        if self.partial.len() < needed {
            return Ok(self.gather(cursor, needed));
        }
        let packet = std::mem::take(&mut self.partial);
        let taken = self.whole(&packet)?;
        self.partial = packet;
        if taken {
            self.partial.clear();
            self.partial.shrink_to(WRITE_HEAD);
        }
        Ok(taken)
    }

    /// Copies what is there of the front `needed` bytes; whether there was anything.
    fn gather(&mut self, cursor: &mut Cursor<'_, '_>, needed: usize) -> bool {
        let piece = cursor.front();
        let piece = piece.get(..needed - self.partial.len()).unwrap_or(piece);
        self.partial.extend_from_slice(piece);
        cursor.advance(piece.len());
        !piece.is_empty()
    }

    /// A packet, or the head of a WRITE, with its length; `false` where it has to wait.
    fn whole(&mut self, packet: &[u8]) -> Result<bool, Malformed> {
        let (_, body) = packet.split_at_checked(4).ok_or(Malformed("length"))?;
        if !self.greeted {
            return self.greet(body).map(|()| true);
        }
        if body.first() == Some(&kind::WRITE) {
            let head = WriteHead::parse(packet)?.ok_or(Malformed("WRITE"))?.0;
            let surplus = head.surplus(packet);
            return Ok(self.begin_write(head, surplus));
        }
        match Request::parse(body) {
            Ok((id, request)) => self.shared.push(id, request, packet.len()),
            Err(malformed) => self.refuse(body, malformed)?,
        }
        Ok(true)
    }

    /// The first packet (section 4 of the draft).
    fn greet(&mut self, body: &[u8]) -> Result<(), Malformed> {
        let hello = Hello::parse_init(body)?;
        self.greeted = true;
        let permit = self.shared.setup.options.permit;
        let mut wanted = Wanted::of(&hello);
        wanted.xattrs &= permit.operation(Operation::GetXattrs);
        self.shared.want(wanted);
        let version = hello.version;
        self.shared.log(Level::Verbose, format_args!("received client version {version}"));
        let announced = permit.announced().chain([(NANOSECONDS_WANTED, b"1".as_slice())]);
        let extensions = announced.map(|(name, version)| (name.to_vec(), version.to_vec()));
        Hello { version: VERSION, extensions: extensions.collect() }
            .encode_version(&mut self.replies);
        Ok(())
    }

    /// A packet that is no request we know: it is answered if it says whom, and the next one may
    /// be better. What only a server may say, or has no id, is the end.
    fn refuse(&mut self, body: &[u8], malformed: Malformed) -> Result<(), Malformed> {
        let mut r = wire::Reader::new(body);
        let (number, id) = (r.u8("type")?, r.u32("id")?);
        let code = match number {
            kind::OPEN..=kind::SYMLINK | kind::EXTENDED => Status::BadMessage,
            kind::INIT | kind::VERSION | kind::STATUS..=kind::ATTRS | kind::EXTENDED_REPLY => {
                return Err(malformed);
            }
            _ => Status::Unsupported,
        };
        self.shared.log(Level::Error, format_args!("request {id}: {malformed}"));
        Reply::status(code).encode(id, &mut self.replies);
        Ok(())
    }

    /// Looks up where data is to go; `false` while something else still needs the file as it is.
    fn begin_write(&mut self, head: WriteHead, surplus: usize) -> bool {
        let WriteHead { id, handle, offset, len } = head;
        let to = self.shared.handles.get(&handle).and_then(|open| {
            self.shared.permit(Operation::Write)?;
            let writes = open.file()?.has(OpenFlags::WRITE);
            if writes { Ok(open) } else { Err(Fault::handle()) }
        });
        if len > 0 && to.as_ref().is_ok_and(|open| !self.shared.may_write(open)) {
            return false;
        }
        // A CLOSE that came before may have been done since the look above.
        let to = to.and_then(|_| self.shared.handles.get(&handle));
        let left = usize::try_from(len).unwrap_or(MAX_PACKET);
        let writing = Writing { id, offset, left, surplus, to };
        if left == 0 {
            self.written(writing);
        } else {
            self.writing = Some(writing);
        }
        true
    }

    /// Writes what is there of a WRITE's data.
    fn write(&mut self, cursor: &mut Cursor<'_, '_>) {
        let Some(mut writing) = self.writing.take() else { return };
        while writing.left > 0 && !cursor.front().is_empty() {
            let mut slices = [IoSlice::new(&[]); PIECES];
            let (count, bytes) = cursor.gather(writing.left, &mut slices);
            let slices = slices.get(..count).unwrap_or_default();
            let done = writing.write(slices, bytes);
            cursor.advance(done);
        }
        if writing.left == 0 {
            self.written(writing);
        } else {
            self.writing = Some(writing);
        }
    }

    fn written(&mut self, writing: Writing) {
        self.surplus = writing.surplus;
        let reply = match &writing.to {
            Ok(_) => Reply::status(Status::Ok),
            Err(fault) => fault.reply(),
        };
        self.shared.log_status(&reply);
        reply.encode(writing.id, &mut self.replies);
    }
}

impl Drop for Input {
    fn drop(&mut self) {
        self.end();
    }
}

impl Writing {
    /// Writes some of `slices`, or drops all of them after a failure (F5); the bytes dealt with.
    fn write(&mut self, slices: &[IoSlice<'_>], bytes: usize) -> usize {
        let done = match &self.to {
            Err(_) => bytes,
            Ok(open) => match rustix::io::pwritev(open, slices, self.offset) {
                Ok(0) => self.fail(Errno::IO, bytes),
                Ok(written) => {
                    open.count_written(written as u64);
                    written
                }
                Err(Errno::INTR) => 0,
                Err(errno) => self.fail(errno, bytes),
            },
        };
        self.left -= done;
        self.offset = self.offset.saturating_add(done as u64);
        done
    }

    fn fail(&mut self, errno: Errno, bytes: usize) -> usize {
        self.to = Err(errno.into());
        bytes
    }
}

/// How long the packet, or of a WRITE its head, is whose front this is; as much as can be said.
fn needed(front: &[u8]) -> Result<usize, Malformed> {
    let Some((length, rest)) = front.split_first_chunk() else { return Ok(5) };
    let length = packet_length(*length)?;
    match rest.first() {
        None => return Ok(5),
        Some(&kind::WRITE) => {}
        Some(_) => return Ok(4 + length),
    }
    // Type, id and the length of the handle; then the handle, offset and length of the data.
    let Some(field) = rest.get(5..).and_then(|rest| rest.first_chunk()) else { return Ok(13) };
    let handle = usize::try_from(u32::from_be_bytes(*field)).unwrap_or(usize::MAX);
    let head = handle.saturating_add(13 + 12);
    if head > WRITE_HEAD || head > 4 + length { Err(Malformed("WRITE")) } else { Ok(head) }
}

/// Takes bytes off the front of pieces.
struct Cursor<'a, 'b> {
    pieces: &'a [IoSlice<'b>],
    /// In the first of them.
    at: usize,
    taken: usize,
}

impl<'a> Cursor<'a, '_> {
    /// What is left of the first piece that is not empty.
    fn front(&mut self) -> &'a [u8] {
        while let Some((first, rest)) = self.pieces.split_first() {
            match first.get(self.at..) {
                Some(front) if !front.is_empty() => return front,
                _ => (self.pieces, self.at) = (rest, 0),
            }
        }
        &[]
    }

    fn advance(&mut self, mut bytes: usize) {
        self.taken += bytes;
        while bytes > 0 {
            let front = self.front().len();
            if front == 0 {
                return;
            }
            let step = bytes.min(front);
            self.at += step;
            bytes -= step;
        }
    }

    /// At most `most` bytes as slices; how many slices and how many bytes.
    fn gather(&mut self, most: usize, slices: &mut [IoSlice<'a>]) -> (usize, usize) {
        let (mut count, mut bytes, mut skip) = (0, 0, self.at);
        for (slice, piece) in slices.iter_mut().zip(self.pieces) {
            let piece = piece.get(skip..).unwrap_or_default();
            let piece = piece.get(..most - bytes).unwrap_or(piece);
            *slice = IoSlice::new(piece);
            (count, bytes, skip) = (count + 1, bytes + piece.len(), 0);
            if bytes == most {
                break;
            }
        }
        (count, bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_needed_is_known_as_early_as_can_be() {
        let handle = crate::codec::Handle::new(*b"12345678").unwrap();
        let mut packet = Vec::new();
        Request::Write { handle, offset: 1, data: vec![0; 100] }.encode(7, &mut packet);
        let head = 13 + 8 + 12;
        for cut in 0..packet.len() {
            let expected = match cut {
                0..5 => 5,
                5..13 => 13,
                _ => head,
            };
            assert_eq!(needed(&packet[..cut]), Ok(expected), "{cut}");
        }
        let mut packet = Vec::new();
        Request::Remove(b"x".to_vec()).encode(7, &mut packet);
        assert_eq!(needed(&packet[..5]), Ok(packet.len()));
    }

    #[test]
    fn f7_a_head_longer_than_any_is_refused_before_it_is_gathered() {
        let mut head = vec![0, 0, 4, 0, kind::WRITE, 0, 0, 0, 1];
        head.extend(257u32.to_be_bytes());
        assert!(needed(&head).is_err());
        head[9..].copy_from_slice(&u32::MAX.to_be_bytes());
        assert!(needed(&head).is_err());
    }

    #[test]
    fn pieces_are_gathered_up_to_what_is_wanted() {
        let pieces = [IoSlice::new(b"ab"), IoSlice::new(b""), IoSlice::new(b"cdef")];
        let mut cursor = Cursor { pieces: &pieces, at: 0, taken: 0 };
        cursor.advance(1);
        let mut slices = [IoSlice::new(&[]); 4];
        let (count, bytes) = cursor.gather(3, &mut slices);
        let text: Vec<u8> = slices[..count].iter().flat_map(|s| s.to_vec()).collect();
        assert_eq!((text.as_slice(), bytes), (&b"bcd"[..], 3));
        cursor.advance(3);
        assert_eq!((cursor.front(), cursor.taken), (&b"ef"[..], 4));
        cursor.advance(2);
        assert!(cursor.front().is_empty());
    }
}
