//! What comes before messages, and around them.

use crate::input::Input;
use crypt::{Cover, Direction, Hash, KeyMaterial};
use packet::batch::SLOTS;
use packet::layout::MAX_PACKET;
use packet::{Batch, Error, Inbound, Layout, SealKey, Stamp};
use proto::{Role, ident::find};
use std::io::IoSlice;

/// However the bytes of an identification arrive, the answer is the same.
pub fn ident(data: &[u8]) {
    let mut input = Input(data);
    let sender = if input.byte_or_zero() & 1 == 0 { Role::Client } else { Role::Server };
    let whole = find(sender, input.0);
    if let Ok(Some(found)) = &whole {
        assert!(found.consumed <= input.0.len() && found.ident.as_str().len() <= 253);
    }
    let step = 1 + input.0.len() / 300;
    for cut in (0..input.0.len()).step_by(step) {
        match find(sender, &input.0[..cut]) {
            Ok(None) => {}
            early => assert_eq!(early, whole, "after {cut} bytes"),
        }
    }
}

/// The body of channel data is what its length says.
pub fn data(data: &[u8]) {
    let Ok(header) = proto::data::split(data) else { return };
    let head = if header.code.is_none() { 9 } else { 13 };
    assert_eq!(header.body, head..data.len());
    let len = u32::try_from(header.body.len()).expect("a short input");
    assert_eq!(data[head - 4..head], len.to_be_bytes());
}

/// The first byte chooses the cover, the second how the bytes arrive and whether they are
/// arbitrary or a sealed stream with damage.
pub fn packet(data: &[u8]) {
    let mut input = Input(data);
    let all: Vec<Cover> = Cover::all().collect();
    let which = usize::from(input.byte_or_zero()) % (all.len() + 1);
    let how = input.byte_or_zero();
    let chunk = 1 + usize::from(how >> 1);
    match (all.get(which), how & 1) {
        (None, _) => arrive(&mut Inbound::new(MAX_PACKET), input.0, chunk).1.iter().for_each(drop),
        (Some(cover), 0) => {
            let (opened, payloads) = arrive(&mut inbound(*cover), input.0, chunk);
            let none = (opened, payloads) == (0, vec![]);
            assert!(none || !cover.is_authenticated(), "accepted what nobody sealed");
        }
        (Some(cover), _) => damaged(*cover, &mut input, chunk),
    }
}

fn material(cover: Cover) -> KeyMaterial {
    let direction = Direction::ServerToClient;
    KeyMaterial::derive(Hash::Sha256, b"\0\0\0\x01k", b"hash", b"id", direction, cover)
}

/// A sealed cover and this one: clear text follows sealed packets only (N8).
fn way_to(cover: Cover) -> [Cover; 2] {
    let sealed = Cover::all().find(|cover| !cover.is_clear()).expect("there are ciphers");
    [sealed, cover]
}

fn inbound(cover: Cover) -> Inbound {
    let mut inbound = Inbound::new(MAX_PACKET);
    for cover in way_to(cover) {
        let key = inbound.key().rekeyed(cover, &material(cover));
        inbound.rekey(key.expect("keys of the right length"), true);
    }
    inbound
}

fn seal_key(cover: Cover) -> SealKey {
    let next = |key: SealKey, cover| key.rekeyed(cover, &material(cover));
    let key = way_to(cover).into_iter().try_fold(SealKey::plain(), next);
    key.expect("keys of the right length")
}

/// Receives `wire` in pieces; bytes of the packets that opened, and their payloads.
fn arrive(inbound: &mut Inbound, wire: &[u8], chunk: usize) -> (usize, Vec<Vec<u8>>) {
    let (mut got, mut opened, mut payloads) = (Vec::new(), 0, Vec::new());
    for piece in wire.chunks(chunk) {
        got.extend_from_slice(piece);
        loop {
            match next(inbound, &mut got[opened..]) {
                Ok(Some((payload, total))) => {
                    payloads.push(payload);
                    opened += total;
                }
                Ok(None) => break,
                Err(_) => return (opened, payloads),
            }
        }
    }
    (opened, payloads)
}

/// Opens one packet, which lies where its extent said.
fn next(inbound: &mut Inbound, bytes: &mut [u8]) -> Result<Option<(Vec<u8>, usize)>, Error> {
    let extent = inbound.extent(bytes)?;
    assert!(extent.is_none_or(|extent| extent <= 4 + MAX_PACKET as usize + 64));
    let opened = inbound.open(bytes)?;
    Ok(opened.map(|opened| {
        assert_eq!(Some(opened.total), extent);
        assert!(!opened.payload.is_empty());
        (bytes[opened.payload].to_vec(), opened.total)
    }))
}

/// Seals messages, changes one byte, and receives: whole before the change, and nothing after it
/// where there is a MAC.
fn damaged(cover: Cover, input: &mut Input<'_>, chunk: usize) {
    let flip = input.byte_or_zero();
    let at = usize::from(u16::from_be_bytes([input.byte_or_zero(), input.byte_or_zero()]));
    let mut sent = Vec::new();
    while !input.0.is_empty() && sent.len() < 16 {
        let message = [&[msg_number(sent.len())], input.piece()].concat();
        sent.push(message);
    }
    let mut wire = sealed(cover, &sent);
    let at = at % wire.len().max(1);
    wire.iter_mut().skip(at).take(1).for_each(|byte| *byte ^= flip);
    let (opened, payloads) = arrive(&mut inbound(cover), &wire, chunk);
    let whole = if flip == 0 { sent.len() } else { whole_before(at, cover, &sent) };
    assert_eq!(payloads.get(..whole), sent.get(..whole));
    if flip == 0 {
        assert_eq!((opened, payloads.len()), (wire.len(), whole));
    } else if cover.is_authenticated() {
        assert_eq!(payloads.len(), whole, "accepted a changed byte");
    }
}

/// How many messages' packets end before the byte at `at`.
fn whole_before(at: usize, cover: Cover, messages: &[Vec<u8>]) -> usize {
    let sizes = messages.iter().map(|message| Layout::of(cover).packet(message.len()));
    let ends = sizes.scan(0, |end, size| {
        *end += size;
        Some(*end)
    });
    ends.take_while(|end| *end <= at).count()
}

fn msg_number(index: usize) -> u8 {
    u8::try_from(index).unwrap_or_default()
}

fn sealed(cover: Cover, messages: &[Vec<u8>]) -> Vec<u8> {
    let key = seal_key(cover);
    let mut at = Stamp::default();
    let mut wire = Vec::new();
    for message in messages {
        let mut batch = Batch::message(message);
        at = batch.stamp(at, key.layout());
        key.seal(&mut batch).expect("a fresh stamp");
        let mut slices = [IoSlice::new(&[]); SLOTS];
        let count = batch.sealed(0, &mut slices).slices;
        slices[..count].iter().for_each(|slice| wire.extend_from_slice(slice));
    }
    wire
}
