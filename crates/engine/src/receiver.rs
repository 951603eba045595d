//! Receiver: bytes from the connection into a slab, packets out of it.
//!
//! ```text
//! fill    recv into the slab's room
//! frame   lengths in order -> spans, each with its numbers and key
//! open    every span in place: here, or on a worker that owns the slab meanwhile
//! ```
//! One packet at a time while a key exchange is running, as what follows NEWKEYS needs another
//! key; as many as there are otherwise (the peer's NEWKEYS cannot come before we sent our own
//! KEXINIT, so nothing framed before that can hold it).

use crate::error::Error;
use crate::fd::{Fd, Wait};
use crate::figures::Ledger;
use crate::meter::Meter;
use crate::slab::Slab;
use packet::layout::{HEAD, MAX_PACKET};
use packet::{Inbound, Inflate, OpenKey, Stamp};
use proto::{NewKeys, RekeyLimit, data};
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

/// Packets framed at once: a slab of 16 KiB packets; smaller ones take another turn.
const SPANS: usize = 32;

/// Unused slabs that are kept.
const SPARE: usize = 3;

/// Length field and the largest tag there is, rounded up: what a packet has beyond its length.
const PACKET_MARGIN: usize = 1024;

/// A packet of channel data up to its data.
const HEAD_AND_DATA_HEAD: usize = HEAD + data::DATA_HEAD;

/// RFC 4253 section 6.
const MIN_PADDING: usize = 4;

/// One packet in a slab: first all of it, then, opened, its payload.
#[derive(Debug, Clone)]
pub(crate) struct Span {
    pub(crate) stamp: Stamp,
    pub(crate) at: Range<usize>,
}

/// Packets of one slab that are opened together.
pub(crate) struct Spans {
    key: Arc<OpenKey>,
    list: Vec<Span>,
    failed: Option<packet::Error>,
}

impl Spans {
    /// Opens all in place. After a failure nothing of that packet or a later one is left to be
    /// seen (P5).
    pub(crate) fn open(&mut self, slab: &mut Slab) {
        for (index, span) in self.list.iter_mut().enumerate() {
            match self.key.open(span.stamp, slab.bytes_mut(&span.at)) {
                Ok(payload) => {
                    let start = span.at.start;
                    span.at = start + payload.start..start + payload.end;
                }
                Err(error) => {
                    self.failed = Some(error);
                    self.list.truncate(index);
                    return;
                }
            }
        }
    }

    pub(crate) fn list(&self) -> &[Span] {
        &self.list
    }

    /// The failure that ends the connection, once what came before it is dealt with.
    pub(crate) fn check(&self) -> Result<(), Error> {
        self.failed.map_or(Ok(()), |error| Err(Error::Packet(error)))
    }
}

/// What is still to come of a packet of channel data whose head was taken alone.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rest {
    pub(crate) recipient: u32,
    /// Bytes of data ...
    pub(crate) data: usize,
    /// ... and of padding after it.
    padding: usize,
}

/// The receiving half of a connection.
pub(crate) struct Receiver {
    fd: Arc<Fd>,
    slab: Slab,
    spare: Vec<Slab>,
    inbound: Inbound,
    inflate: Option<Box<Inflate>>,
    free: Vec<Vec<Span>>,
    meter: Meter,
    /// What comes is unencrypted.
    clear: bool,
    rest: Option<Rest>,
    ledger: Arc<Ledger>,
}

impl Receiver {
    /// A receiving half over `fd`; packets longer than `limit` are refused until
    /// [`Receiver::open_up`], and no more than one such packet is taken from the connection
    /// ahead of what is asked for (invariant B7).
    pub(crate) fn new(fd: Arc<Fd>, limit: u32, ledger: Arc<Ledger>) -> Self {
        Self {
            fd,
            slab: Slab::of(limit as usize + PACKET_MARGIN),
            spare: Vec::with_capacity(SPARE),
            inbound: Inbound::new(limit),
            inflate: None,
            free: Vec::with_capacity(SPARE),
            meter: Meter::new(),
            clear: false,
            rest: None,
            ledger,
        }
    }

    /// Goes on with packets of up to `limit` and slabs of the full size.
    pub(crate) fn open_up(&mut self, limit: u32) {
        self.inbound.set_limit(limit);
        self.detach();
    }

    /// Receives what fits; false when the time was over.
    pub(crate) fn fill(&mut self, wait: Wait) -> Result<bool, Error> {
        let got = self.fd.receive(self.slab.room(), wait);
        self.filled(got)
    }

    /// Receives no more than the head of a packet of channel data, and the padding in front of it;
    /// false when the time was over.
    pub(crate) fn fill_head(&mut self, wait: Wait) -> Result<bool, Error> {
        let wanted = self.rest.map_or(0, |rest| rest.padding) + HEAD_AND_DATA_HEAD;
        let missing = wanted.saturating_sub(self.slab.left_after(0).len());
        if missing == 0 {
            return Ok(true);
        }
        let room = self.slab.room().get_mut(..missing).unwrap_or_default();
        let got = self.fd.receive(room, wait);
        self.filled(got)
    }

    fn filled(&mut self, got: io::Result<Option<usize>>) -> Result<bool, Error> {
        match got {
            Ok(Some(0)) => Err(Error::Closed),
            Ok(Some(n)) => {
                self.slab.filled(n);
                self.ledger.received.wire.add(n as u64);
                Ok(true)
            }
            Ok(None) => Ok(false),
            Err(e) => Err(Error::Local("read from the connection", e)),
        }
    }

    /// Whether the next packet's data may go past memory.
    pub(crate) fn is_bare(&self) -> bool {
        self.fd.is_socket() && self.inbound.key().is_bare() && self.inflate.is_none()
    }

    /// The channel and the bytes of the packet at the front, if its head is here and it is channel
    /// data.
    pub(crate) fn data_ahead(&self) -> Option<(u32, usize)> {
        data::front(self.slab.left_after(HEAD))
    }

    /// Whether too little is here to tell what the next packet is.
    pub(crate) fn lacks_head(&self) -> bool {
        self.slab.left_after(0).len() < HEAD_AND_DATA_HEAD
    }

    /// Takes the head of the packet at the front, which is channel data: the rest is for
    /// [`Receiver::take_rest`] and [`Receiver::passed`].
    pub(crate) fn take_head(&mut self) -> Result<(), Error> {
        let front = self.slab.left_after(0);
        let padding = usize::from(front.get(HEAD - 1).copied().unwrap_or(0));
        let Some((recipient, data)) = self.data_ahead() else { return Ok(()) };
        let Some(total) = self.inbound.pass(front)? else { return Ok(()) };
        if padding < MIN_PADDING || total != HEAD + data::DATA_HEAD + data + padding {
            return Err(Error::Packet(packet::Error::Padding));
        }
        self.slab.take(HEAD + data::DATA_HEAD);
        self.meter.count(total as u64, 1);
        self.ledger.received.packets.add(1);
        self.rest = Some(Rest { recipient, data, padding });
        Ok(())
    }

    /// What is still to come of a packet whose head was taken.
    pub(crate) fn rest(&self) -> Option<Rest> {
        self.rest
    }

    /// The data of it that is here, and passes over it and the padding behind it.
    pub(crate) fn take_rest(&mut self) -> Option<(u32, Range<usize>)> {
        let rest = self.rest.as_mut()?;
        let here = self.slab.left_after(0).len();
        let data = rest.data.min(here);
        let start = self.slab.position();
        rest.data -= data;
        let padding = rest.padding.min(here - data);
        rest.padding -= padding;
        self.slab.take(data + padding);
        let recipient = rest.recipient;
        if rest.data == 0 && rest.padding == 0 {
            self.rest = None;
        }
        Some((recipient, start..start + data))
    }

    /// So many bytes of its data went past memory.
    pub(crate) fn passed(&mut self, bytes: usize) {
        self.ledger.received.wire.add(bytes as u64);
        if let Some(rest) = &mut self.rest {
            rest.data = rest.data.saturating_sub(bytes);
        }
    }

    /// The whole packets at the front, at most `limit`; none if the next is not whole.
    pub(crate) fn frame(&mut self, limit: usize) -> Result<Option<Spans>, Error> {
        let mut list = self.free.pop().unwrap_or_else(|| Vec::with_capacity(SPANS));
        list.clear();
        let mut bytes = 0;
        while list.len() < limit.min(SPANS) {
            let (stamp, total) = match self.inbound.frame(self.slab.left_after(0)) {
                Ok(Some(packet)) => packet,
                // The next call meets it again, once those before it are dealt with.
                Err(error) if list.is_empty() => return Err(error.into()),
                Ok(None) | Err(_) => break,
            };
            let start = self.slab.position();
            list.push(Span { stamp, at: start..start + total });
            self.slab.take(total);
            bytes += total as u64;
        }
        self.meter.count(bytes, list.len() as u64);
        self.ledger.received.packets.add(list.len() as u64);
        if list.is_empty() {
            self.free.push(list);
            return Ok(None);
        }
        Ok(Some(Spans { key: Arc::clone(self.inbound.key()), list, failed: None }))
    }

    /// The slab that was just framed.
    pub(crate) fn slab(&self) -> &Slab {
        &self.slab
    }

    /// The same, to open spans in.
    pub(crate) fn slab_mut(&mut self) -> &mut Slab {
        &mut self.slab
    }

    /// Gives the slab away and goes on with another one, which starts with what was not framed.
    pub(crate) fn detach(&mut self) -> Slab {
        let mut next = self.spare.pop().unwrap_or_else(Slab::new);
        next.carry_from(&mut self.slab);
        std::mem::replace(&mut self.slab, next)
    }

    /// Takes a slab back.
    pub(crate) fn give_back(&mut self, slab: Slab) {
        if self.spare.len() < SPARE {
            self.spare.push(slab);
        }
    }

    /// Takes a list of spans back.
    pub(crate) fn recycle(&mut self, spans: Spans) {
        if self.free.len() < SPARE {
            self.free.push(spans.list);
        }
    }

    /// Directly after the peer's NEWKEYS.
    pub(crate) fn rekey(&mut self, new: &NewKeys) -> Result<(), Error> {
        let key = self.inbound.key().rekeyed(new.cover, &new.material)?;
        self.inbound.rekey(key, new.reset_seq);
        self.meter.renew(new.cover);
        self.inflate = new.compress.then(Box::default);
        self.clear = new.cover.is_clear();
        self.ledger.exchanges.add(1);
        Ok(())
    }

    /// What comes from here on is compressed.
    pub(crate) fn inflate(&mut self) {
        self.inflate = Some(Box::default());
    }

    /// Whether payloads are compressed, once opened.
    pub(crate) fn is_compressed(&self) -> bool {
        self.inflate.is_some()
    }

    /// Puts what is behind a compressed payload, at `at` of `packed` or of the receiver's own slab,
    /// to the end of `slab`; where it is there. `None` if that might not have room.
    pub(crate) fn expand(
        &mut self,
        at: &Range<usize>,
        packed: Option<&Slab>,
        slab: &mut Slab,
    ) -> Result<Option<Range<usize>>, Error> {
        let Some(inflate) = &mut self.inflate else { return Ok(None) };
        let start = slab.end();
        let Some(room) = slab.room().get_mut(..=MAX_PACKET as usize) else { return Ok(None) };
        let length = inflate.expand(packed.unwrap_or(&self.slab).bytes(at), room)?;
        slab.filled(length);
        Ok(Some(start..start + length))
    }

    /// An empty slab, to be given back.
    pub(crate) fn empty(&mut self) -> Slab {
        self.spare.pop().map_or_else(Slab::new, Slab::emptied)
    }

    /// Whether what was framed last came unencrypted.
    pub(crate) fn is_clear(&self) -> bool {
        self.clear
    }

    pub(crate) fn set_rekey_limit(&mut self, limit: RekeyLimit) {
        self.meter.set_limit(limit);
    }

    /// The key the peer seals with has served its time: true once.
    pub(crate) fn rekey_due(&mut self) -> bool {
        self.meter.is_due()
    }

    /// How long until it has.
    pub(crate) fn rekey_in(&self) -> Option<Duration> {
        self.meter.time_left()
    }

    pub(crate) fn fd(&self) -> &Arc<Fd> {
        &self.fd
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crypt::{Cover, Direction, Hash, KeyMaterial};
    use packet::{Batch, SealKey, batch::SLOTS};
    use std::io::{IoSlice, Write};
    use std::os::fd::OwnedFd;
    use std::os::unix::net::UnixStream;

    fn material(cover: Cover) -> KeyMaterial {
        let direction = Direction::ClientToServer;
        KeyMaterial::derive(Hash::Sha256, b"\0\0\0\x01k", b"hash", b"id", direction, cover)
    }

    /// A sealed cover and this one: clear text follows sealed packets only (N8).
    fn way_to(cover: Cover) -> [Cover; 2] {
        [Cover::all().next().unwrap(), cover]
    }

    fn seal_key(cover: Cover) -> SealKey {
        let next = |key: SealKey, cover| key.rekeyed(cover, &material(cover)).unwrap();
        way_to(cover).into_iter().fold(SealKey::plain(), next)
    }

    /// Packets of one message each, sealed one after the other.
    fn sealed(cover: Cover, messages: &[&[u8]]) -> Vec<Vec<u8>> {
        let key = seal_key(cover);
        let mut at = Stamp::default();
        let mut seal = |message: &&[u8]| {
            let mut batch = Batch::message(message);
            at = batch.stamp(at, key.layout());
            key.seal(&mut batch).unwrap();
            let mut slices = [IoSlice::new(&[]); SLOTS];
            let count = batch.sealed(0, &mut slices).slices;
            slices[..count].iter().flat_map(|slice| slice.iter().copied()).collect()
        };
        messages.iter().map(&mut seal).collect()
    }

    /// P5: after a failure at n nothing of n or later comes out; what came before does.
    #[test]
    fn p5_nothing_of_a_damaged_packet_or_a_later_one_is_left() {
        for cover in Cover::all().filter(|cover| cover.is_authenticated()) {
            let mut packets = sealed(cover, &[b"one", b"two", b"three", b"four"]);
            *packets[2].last_mut().unwrap() ^= 1;
            let (mut receiver, mut peer) = receiver(cover);
            peer.write_all(&packets.concat()).unwrap();
            receiver.fill(Wait::Forever).unwrap();
            let mut spans = receiver.frame(SPANS).unwrap().unwrap();
            assert_eq!(spans.list().len(), 4, "{cover:?}");
            spans.open(receiver.slab_mut());
            let seen: Vec<&[u8]> =
                spans.list().iter().map(|span| receiver.slab().bytes(&span.at)).collect();
            assert_eq!(seen, [b"one", b"two"], "{cover:?}");
            assert!(spans.check().is_err());
        }
    }

    /// Ours under a cover, and the peer's socket.
    fn receiver(cover: Cover) -> (Receiver, UnixStream) {
        let (peer, ours) = UnixStream::pair().unwrap();
        let fd = Arc::new(Fd::from(OwnedFd::from(ours)));
        let mut receiver = Receiver::new(fd, MAX_PACKET, Arc::default());
        for cover in way_to(cover) {
            let material = material(cover);
            receiver.rekey(&NewKeys { cover, material, reset_seq: true, compress: false }).unwrap();
        }
        (receiver, peer)
    }

    /// B9: what was compressed takes no more room than the largest packet, however small it came.
    #[test]
    fn b9_compressed_packets_expand_into_bounded_memory() {
        let expand = |lengths: &[usize]| {
            let mut deflate = packet::Deflate::default();
            let packed = lengths.iter().map(|length| {
                let mut batch = Batch::message(&vec![7; *length]);
                deflate.squeeze(&mut batch).unwrap();
                payload_of(&mut batch)
            });
            let packed: Vec<Vec<u8>> = packed.collect();
            let cover = Cover::all().next().unwrap();
            let packed: Vec<&[u8]> = packed.iter().map(Vec::as_slice).collect();
            let (mut receiver, mut peer) = receiver(cover);
            peer.write_all(&sealed(cover, &packed).concat()).unwrap();
            receiver.fill(Wait::Forever).unwrap();
            let mut spans = receiver.frame(SPANS).unwrap().unwrap();
            spans.open(receiver.slab_mut());
            receiver.inflate();
            let mut target = receiver.empty();
            let one = |span: &Span| receiver.expand(&span.at, None, &mut target);
            spans.list().iter().map(one).collect::<Result<Vec<_>, _>>()
        };
        let most = MAX_PACKET as usize;
        assert_eq!(expand(&[100, 1000]).unwrap(), [Some(0..100), Some(100..1100)]);
        // The slab is full: the caller takes another one, and nothing of the packet is lost.
        let full = expand(&[most - 1, 10, 1]).unwrap();
        assert_eq!(full, [Some(0..most - 1), Some(most - 1..most + 9), None]);
        assert!(expand(&[most + 1]).is_err());
    }

    /// The payload of a batch of one message.
    fn payload_of(batch: &mut Batch) -> Vec<u8> {
        batch.stamp(Stamp::default(), packet::Layout::PLAIN);
        SealKey::plain().seal(batch).unwrap();
        let mut slices = [IoSlice::new(&[]); SLOTS];
        assert_eq!(batch.sealed(0, &mut slices).slices, 1);
        let [first, ..] = slices;
        let padding = usize::from(first[HEAD - 1]);
        first[HEAD..first.len() - padding].to_vec()
    }

    /// Some of it past memory, the rest in a slab, the padding before what follows.
    #[cfg(feature = "none")]
    #[test]
    fn a_packet_whose_head_was_taken_is_whole_however_its_data_goes() {
        let data: Vec<u8> = (0..3000).map(|n| n as u8).collect();
        let message = wire::Writer::message(wire::msg::CHANNEL_DATA).u32(7).string(&data).take();
        for past in [0, 1, 2999, 3000] {
            let (mut receiver, mut peer) = receiver(Cover::Bare);
            peer.write_all(&sealed(Cover::Bare, &[&message, b"next"]).concat()).unwrap();
            assert!(receiver.is_bare() && receiver.lacks_head());
            assert!(receiver.fill_head(Wait::Forever).unwrap());
            assert_eq!(receiver.data_ahead(), Some((7, data.len())));
            receiver.take_head().unwrap();
            let mut seen = vec![0; past];
            receiver.fd().receive(&mut seen, Wait::No).unwrap();
            receiver.passed(past);
            receiver.fill(Wait::Forever).unwrap();
            let (recipient, rest) = receiver.take_rest().unwrap();
            seen.extend_from_slice(receiver.slab().bytes(&rest));
            assert_eq!((recipient, &seen), (7, &data), "{past}");
            assert!(receiver.rest().is_none());
            let mut spans = receiver.frame(SPANS).unwrap().unwrap();
            spans.open(receiver.slab_mut());
            let next: Vec<&[u8]> =
                spans.list().iter().map(|span| receiver.slab().bytes(&span.at)).collect();
            assert_eq!(next, [b"next"]);
        }
    }

    /// B7, P5: what the head says of lengths must agree, as for a packet that is looked at whole.
    #[cfg(feature = "none")]
    #[test]
    fn b7_a_head_whose_lengths_disagree_is_refused() {
        let message =
            wire::Writer::message(wire::msg::CHANNEL_DATA).u32(7).string([1; 3000]).take();
        let packet = sealed(Cover::Bare, &[&message]).concat();
        let longer_data = HEAD + data::DATA_HEAD - 1;
        for (at, what) in [(HEAD - 1, "padding"), (longer_data, "data"), (3, "packet")] {
            let mut packet = packet.clone();
            packet[at] ^= 8;
            let (mut receiver, mut peer) = receiver(Cover::Bare);
            peer.write_all(&packet).unwrap();
            receiver.fill_head(Wait::Forever).unwrap();
            assert!(receiver.take_head().is_err(), "{what}");
        }
    }
}
