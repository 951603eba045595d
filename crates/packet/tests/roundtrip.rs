//! Every cover: what is sealed opens again, byte for byte; parallel equals serial; damage
//! is never accepted.

#![allow(clippy::unwrap_used, reason = "what panics here fails its test")]

use crypt::{Cover, Direction, Hash, KeyMaterial};
use packet::batch::SLOTS;
use packet::layout::{DATA, MAX_PACKET};
use packet::{Batch, Inbound, Layout, OpenKey, SealKey, Stamp};
use std::io::{IoSlice, IoSliceMut};

fn material(cover: Cover) -> KeyMaterial {
    let direction = Direction::ClientToServer;
    KeyMaterial::derive(Hash::Sha256, b"\0\0\0\x01k", b"hash", b"session", direction, cover)
}

/// Keys that seal and open under any cover: clear text follows sealed packets only (N8).
fn pair(cover: Cover, keys: &KeyMaterial) -> (SealKey, OpenKey) {
    let before = Cover::all().find_map(Cover::protection).unwrap();
    let first = material(before.into());
    let (seal, open) = (SealKey::new(before, &first), OpenKey::new(before, &first));
    (seal.unwrap().rekeyed(cover, keys).unwrap(), open.unwrap().rekeyed(cover, keys).unwrap())
}

fn seal_key(cover: Cover, keys: &KeyMaterial) -> SealKey {
    pair(cover, keys).0
}

fn open_key(cover: Cover, keys: &KeyMaterial) -> OpenKey {
    pair(cover, keys).1
}

fn noise(seed: u8) -> impl Iterator<Item = u8> {
    std::iter::successors(Some(seed), |v| Some(v.wrapping_mul(31).wrapping_add(7)))
}

/// A batch of channel data with `len` bytes of noise.
fn bulk(len: usize, seed: u8) -> Batch {
    let mut batch = Batch::bulk();
    let mut areas = std::array::from_fn(|_| IoSliceMut::new(&mut []));
    let count = batch.areas(len, DATA, &mut areas);
    let mut bytes = noise(seed);
    areas[..count].iter_mut().flat_map(|a| a.iter_mut()).for_each(|b| *b = bytes.next().unwrap());
    batch.finish(len, DATA, 7, None);
    batch
}

fn wire_bytes(batch: &Batch) -> Vec<u8> {
    let mut slices = [IoSlice::new(&[]); SLOTS];
    let count = batch.sealed(0, &mut slices).slices;
    let bytes: Vec<u8> = slices[..count].iter().flat_map(|s| s.iter()).copied().collect();
    assert_eq!(bytes.len(), batch.sealed_len());
    bytes
}

/// The same in several pieces, with the data put into the gaps.
#[cfg(feature = "none")]
fn wire_bytes_around(batch: &Batch, mut data: impl Iterator<Item = u8>) -> Vec<u8> {
    let mut bytes = Vec::new();
    while bytes.len() < batch.sealed_len() {
        let mut slices = [IoSlice::new(&[]); SLOTS];
        let piece = batch.sealed(bytes.len(), &mut slices);
        bytes.extend(slices[..piece.slices].iter().flat_map(|s| s.iter().copied()));
        // Half of it now, as a full socket would.
        bytes.extend(data.by_ref().take(piece.gap.div_ceil(2)));
    }
    assert_eq!(batch.sealed(bytes.len(), &mut [IoSlice::new(&[]); SLOTS]).gap, 0);
    bytes
}

/// Batches of `lens` bytes each, stamped one after the other.
fn stamped(key: &SealKey, lens: &[usize]) -> Vec<Batch> {
    let mut at = Stamp::default();
    let mut stamp = |(index, len): (usize, &usize)| {
        let mut batch = bulk(*len, index as u8);
        at = batch.stamp(at, key.layout());
        batch
    };
    lens.iter().enumerate().map(&mut stamp).collect()
}

fn stream(key: &SealKey, lens: &[usize]) -> Vec<u8> {
    let mut batches = stamped(key, lens);
    batches.iter_mut().for_each(|batch| key.seal(batch).unwrap());
    batches.iter().flat_map(wire_bytes).collect()
}

/// The payloads of `wire`, and how many bytes were accepted before the first that was not.
fn open_all(cover: Cover, keys: &KeyMaterial, wire: &mut [u8]) -> (Vec<Vec<u8>>, usize) {
    let mut inbound = Inbound::new(MAX_PACKET);
    inbound.rekey(open_key(cover, keys), true);
    let (mut payloads, mut accepted) = (Vec::new(), 0);
    while let Ok(Some(opened)) = inbound.open(&mut wire[accepted..]) {
        payloads.push(wire[accepted..][opened.payload.clone()].to_vec());
        accepted += opened.total;
    }
    (payloads, accepted)
}

#[test]
fn what_is_sealed_opens_again() {
    let lens = [1, 15, 16, 17, DATA, DATA + 1, SLOTS * DATA, 5 * DATA + 3];
    for cover in Cover::all() {
        let keys = material(cover);
        let mut wire = stream(&seal_key(cover, &keys), &lens);
        let (payloads, accepted) = open_all(cover, &keys, &mut wire);
        assert_eq!(accepted, wire.len(), "{cover:?}");
        assert!(payloads.iter().all(|p| p[..5] == [94, 0, 0, 0, 7]));
        let data: Vec<u8> = payloads.iter().flat_map(|p| &p[9..]).copied().collect();
        let sent: Vec<u8> =
            lens.iter().enumerate().flat_map(|(i, len)| noise(i as u8).take(*len)).collect();
        assert!(data == sent, "{cover:?}");
    }
}

/// Numbers below `below` that look random, the same for the same seed.
fn dice(seed: u64, below: usize) -> impl Iterator<Item = usize> {
    let step = |v: &u64| Some(v.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695));
    std::iter::successors(Some(seed + 1), step).skip(3).map(move |v| (v >> 33) as usize % below)
}

/// Some jobs on `workers` threads: each on any of them, in any order.
fn on_workers<J: Send>(jobs: Vec<J>, workers: usize, seed: u64, work: impl Fn(J) + Sync) {
    let mut hands: Vec<Vec<J>> = (0..workers).map(|_| Vec::new()).collect();
    let whose = dice(seed, workers);
    jobs.into_iter().zip(whose).for_each(|(job, whose)| hands[whose].push(job));
    std::thread::scope(|scope| {
        for (worker, mut hand) in hands.into_iter().enumerate() {
            if dice(seed, 2).nth(worker) == Some(1) {
                hand.reverse();
            }
            let work = &work;
            scope.spawn(move || hand.into_iter().for_each(work));
        }
    });
}

/// Batches of any length, full and short packets mixed.
fn plan(seed: u64) -> Vec<usize> {
    dice(seed, DATA / 4).take(8).map(|len| 1 + len / 2).chain([1, DATA + 1]).collect()
}

/// P6, P2: batches sealed on 1-16 threads in any order give the bytes of sealing serially.
#[test]
fn p6_parallel_output_is_byte_identical_to_serial() {
    for cover in Cover::all() {
        let key = seal_key(cover, &material(cover));
        for workers in 1..=16 {
            let lens = plan(workers as u64);
            let mut batches = stamped(&key, &lens);
            let jobs = batches.iter_mut().collect();
            on_workers(jobs, workers, workers as u64, |batch: &mut Batch| {
                key.seal(batch).unwrap();
            });
            let parallel: Vec<u8> = batches.iter().flat_map(wire_bytes).collect();
            assert!(parallel == stream(&key, &lens), "{cover:?} with {workers} workers");
        }
    }
}

/// P6, receiving: packets framed in order and opened on 1-16 threads in any order are those of
/// opening serially.
#[test]
fn p6_packets_opened_in_parallel_are_those_opened_serially() {
    for cover in Cover::all() {
        let keys = material(cover);
        let (seal, open) = pair(cover, &keys);
        for workers in 1..=16 {
            let wire = stream(&seal, &plan(workers as u64));
            let (serial, _) = open_all(cover, &keys, &mut wire.clone());
            let mut inbound = Inbound::new(MAX_PACKET);
            inbound.rekey(open_key(cover, &keys), true);
            let (mut wire, mut jobs) = (wire.clone(), Vec::new());
            let mut rest = wire.as_mut_slice();
            while let Some((stamp, total)) = inbound.frame(rest).unwrap() {
                let (packet, after) = rest.split_at_mut(total);
                jobs.push((jobs.len(), stamp, packet));
                rest = after;
            }
            let payloads = std::sync::Mutex::new(vec![Vec::new(); jobs.len()]);
            on_workers(jobs, workers, workers as u64, |(index, stamp, packet)| {
                let at = open.open(stamp, packet).unwrap();
                payloads.lock().unwrap()[index] = packet[at].to_vec();
            });
            let payloads = payloads.into_inner().unwrap();
            assert!(payloads == serial, "{cover:?} with {workers} workers");
        }
    }
}

/// P7, P5: of 2,000 bit flips anywhere, per cover that notices them, none is accepted, and nothing
/// of the damaged packet or a later one comes out.
#[test]
fn p7_no_flipped_bit_is_accepted() {
    let mut random = 88_172_645_463_325_252_u64;
    let mut next = move || {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        usize::try_from(random >> 1).unwrap()
    };
    for cover in Cover::all().filter(|cover| cover.is_authenticated()) {
        let keys = material(cover);
        let clean = stream(&seal_key(cover, &keys), &[40, 700, 33, 1, 5000]);
        let (whole, _) = open_all(cover, &keys, &mut clean.clone());
        for _ in 0..2000 {
            let mut wire = clean.clone();
            let at = next() % wire.len();
            wire[at] ^= 1 << (next() % 8);
            let (payloads, accepted) = open_all(cover, &keys, &mut wire);
            assert!(accepted <= at, "{cover:?} accepted a flip at {at}");
            assert!(payloads.iter().zip(&whole).all(|(a, b)| a == b));
        }
    }
}

/// B7: whatever stands in the length field, a packet is refused or unfinished, and never more
/// than the limit is waited for.
#[test]
fn b7_any_length_field_is_refused_or_bounded() {
    for cover in Cover::all() {
        let keys = material(cover);
        for length in [0u32, 1, 4, 5, 6, 12, 16, 35000, MAX_PACKET + 1, u32::MAX - 3, u32::MAX] {
            let mut inbound = Inbound::new(MAX_PACKET);
            inbound.rekey(open_key(cover, &keys), true);
            let mut bytes = vec![0u8; 64];
            bytes[..4].copy_from_slice(&length.to_be_bytes());
            if let Ok(Some(extent)) = inbound.extent(&bytes) {
                assert!(extent <= 4 + MAX_PACKET as usize + 64);
            }
            assert!(!matches!(inbound.open(&mut bytes), Ok(Some(_))));
        }
    }
}

#[test]
fn a_raw_line_leaves_as_it_is() {
    assert_eq!(wire_bytes(&Batch::raw(b"SSH-2.0-x\r\n")), b"SSH-2.0-x\r\n");
}

#[test]
fn a_used_batch_seals_a_message_like_a_new_one() {
    let mut fresh = Batch::message(b"\x02abc");
    let mut used = Batch::message(&[7; 300]);
    assert!(used.set_message(b"\x02abc"));
    assert!(!used.set_message(&[0; 5000]));
    for batch in [&mut fresh, &mut used] {
        batch.stamp(Stamp::default(), Layout::PLAIN);
        SealKey::plain().seal(batch).unwrap();
    }
    assert_eq!(wire_bytes(&fresh), wire_bytes(&used));
}

/// P5 for data that goes from its descriptor to the socket: nobody can tell.
#[test]
#[cfg(feature = "none")]
fn heads_with_the_data_between_them_are_the_same_packets() {
    let key = seal_key(Cover::Bare, &material(Cover::Bare));
    for len in [1, 7, 8, DATA, DATA + 1, SLOTS * DATA] {
        let mut whole = bulk(len, 5);
        let mut heads = Batch::heads();
        heads.finish(len, DATA, 7, None);
        for batch in [&mut whole, &mut heads] {
            batch.stamp(Stamp::default(), key.layout());
            key.seal(batch).unwrap();
        }
        assert_eq!(heads.sealed_len(), whole.sealed_len());
        assert!(wire_bytes_around(&heads, noise(5)) == wire_bytes(&whole), "{len}");
    }
}

/// N8: whatever wants to see the data has to.
#[test]
fn n8_only_bare_packets_leave_without_their_data_being_seen() {
    for cover in Cover::all() {
        let key = seal_key(cover, &material(cover));
        let mut heads = Batch::heads();
        heads.finish(1000, DATA, 7, None);
        heads.stamp(Stamp::default(), key.layout());
        assert_eq!(key.seal(&mut heads).is_ok(), !cover.is_authenticated(), "{cover:?}");
    }
}
