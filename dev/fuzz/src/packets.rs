//! What comes before messages, and around them.

use crate::input::Input;
use crypt::{Direction, Hash, KeyMaterial, Protection};
use packet::batch::SLOTS;
use packet::layout::MAX_PACKET;
use packet::{Batch, Error, Inbound, OpenKey, SealKey, Stamp};
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

/// The first byte chooses the protection, the second how the bytes arrive and whether they are
/// arbitrary or a sealed stream with damage.
pub fn packet(data: &[u8]) {
    let mut input = Input(data);
    let all: Vec<Protection> = Protection::all().collect();
    let which = usize::from(input.byte_or_zero()) % (all.len() + 1);
    let how = input.byte_or_zero();
    let chunk = 1 + usize::from(how >> 1);
    match (all.get(which), how & 1) {
        (None, _) => arrive(&mut Inbound::new(MAX_PACKET), input.0, chunk).1.iter().for_each(drop),
        (Some(protection), 0) => {
            let (opened, payloads) = arrive(&mut inbound(*protection), input.0, chunk);
            assert_eq!((opened, payloads), (0, vec![]), "accepted what nobody sealed");
        }
        (Some(protection), _) => damaged(*protection, &mut input, chunk),
    }
}

fn material(protection: Protection) -> KeyMaterial {
    let direction = Direction::ServerToClient;
    KeyMaterial::derive(Hash::Sha256, b"\0\0\0\x01k", b"hash", b"id", direction, protection)
}

fn inbound(protection: Protection) -> Inbound {
    let key = OpenKey::new(protection, &material(protection)).expect("keys of the right length");
    let mut inbound = Inbound::new(MAX_PACKET);
    inbound.rekey(key, true);
    inbound
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

/// Seals messages, changes one byte, and receives: whole before the change, nothing after it.
fn damaged(protection: Protection, input: &mut Input<'_>, chunk: usize) {
    let flip = input.byte_or_zero();
    let at = usize::from(u16::from_be_bytes([input.byte_or_zero(), input.byte_or_zero()]));
    let mut sent = Vec::new();
    while !input.0.is_empty() && sent.len() < 16 {
        let message = [&[msg_number(sent.len())], input.piece()].concat();
        sent.push(message);
    }
    let mut wire = sealed(protection, &sent);
    let at = at % wire.len().max(1);
    wire.iter_mut().skip(at).take(1).for_each(|byte| *byte ^= flip);
    let (opened, payloads) = arrive(&mut inbound(protection), &wire, chunk);
    assert!(payloads.iter().zip(&sent).all(|(got, sent)| got == sent));
    if flip == 0 {
        assert_eq!((opened, payloads.len()), (wire.len(), sent.len()));
    } else {
        assert!(opened <= at, "accepted a changed byte");
    }
}

fn msg_number(index: usize) -> u8 {
    u8::try_from(index).unwrap_or_default()
}

fn sealed(protection: Protection, messages: &[Vec<u8>]) -> Vec<u8> {
    let key = SealKey::new(protection, &material(protection)).expect("keys of the right length");
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
