//! Compressed payloads, one after the other of one stream (RFC 4253 section 6.2).

use crate::input::Input;
use packet::batch::SLOTS;
use packet::layout::MAX_PACKET;
use packet::{Batch, Deflate, Error, Inbound, Inflate, SealKey, Stamp};
use std::io::IoSlice;

/// Most payloads of an input: enough to lead the streams anywhere, little enough to be quick.
const MOST: usize = 64;

/// The first byte chooses the room for a payload, a power of two up to a packet's, and whether the
/// payloads are arbitrary or what the other end makes of messages.
pub fn inflate(data: &[u8]) {
    let mut input = Input(data);
    let how = input.byte_or_zero();
    let room = 1 << ((how >> 1) % (MAX_PACKET.ilog2() as u8 + 1));
    if how & 1 == 0 { arbitrary(&mut input, room) } else { there_and_back(&mut input, room) }
}

/// Two streams, of which one has little room. What goes into that is what the other makes of the
/// same; what does not is an error.
fn arbitrary(input: &mut Input<'_>, room: usize) {
    let (mut tight, mut wide) = (Stream::new(room), Stream::new(whole()));
    for _ in 0..MOST {
        if input.0.is_empty() {
            return;
        }
        let payload = input.piece();
        let expanded = tight.expand(payload);
        if expanded.is_ok() {
            assert_eq!(expanded, wide.expand(payload), "in another room");
        }
        // Nothing can follow an error, but it must do no harm either.
        if expanded.is_err() {
            let _ = tight.expand(input.piece());
            return;
        }
    }
}

/// Messages, each a piece some times over, come back; the first that has no room is refused. Then
/// one with a byte changed: an error, or something else.
fn there_and_back(input: &mut Input<'_>, room: usize) {
    let mut deflate = Deflate::default();
    let (mut stream, mut wide) = (Stream::new(room), Stream::new(whole()));
    for _ in 0..MOST {
        let (times, piece) = (input.byte_or_zero(), input.piece());
        if piece.is_empty() {
            break;
        }
        let message = piece.repeat(1 + usize::from(times));
        let packed = packed(&mut deflate, &message);
        assert_eq!(wide.expand(&packed).as_deref(), Ok(&message[..]));
        if message.len() >= room {
            assert_eq!(stream.expand(&packed), Err(Error::Compression), "in too little room");
            return;
        }
        assert_eq!(stream.expand(&packed).as_deref(), Ok(&message[..]));
    }
    let mut damaged = packed(&mut deflate, b"a message of several words, of several words");
    let at = usize::from(input.byte_or_zero()) % damaged.len();
    damaged[at] ^= input.byte_or_zero();
    let _ = stream.expand(&damaged);
}

/// Room for the largest payload, and the byte that tells it from a larger one.
fn whole() -> usize {
    MAX_PACKET as usize + 1
}

/// A receiving half with its room.
struct Stream {
    inflate: Inflate,
    room: Vec<u8>,
}

impl Stream {
    fn new(room: usize) -> Self {
        Self { inflate: Inflate::default(), room: vec![0; room] }
    }

    /// What a payload expands to: something, and less than there is room for.
    fn expand(&mut self, payload: &[u8]) -> Result<Vec<u8>, Error> {
        let len = self.inflate.expand(payload, &mut self.room)?;
        assert!((1..self.room.len()).contains(&len), "{len} bytes");
        Ok(self.room[..len].to_vec())
    }
}

/// A message's payload after compression.
pub(crate) fn packed(deflate: &mut Deflate, message: &[u8]) -> Vec<u8> {
    let mut batch = Batch::message(message);
    deflate.squeeze(&mut batch).expect("it has room");
    let key = SealKey::plain();
    batch.stamp(Stamp::default(), key.layout());
    key.seal(&mut batch).expect("a fresh stamp");
    let mut slices = [IoSlice::new(&[]); SLOTS];
    let count = batch.sealed(0, &mut slices).slices;
    let mut wire: Vec<u8> = slices[..count].iter().flat_map(|slice| slice.to_vec()).collect();
    let opened = Inbound::new(MAX_PACKET).open(&mut wire).expect("in the clear");
    wire[opened.expect("whole").payload].to_vec()
}
