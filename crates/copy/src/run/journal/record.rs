//! Record: the lines of a journal as bytes, each with a checksum over itself and its place.
//!
//! ```text
//! record   uint32 length of payload | uint8 kind | payload | 8 bytes checksum
//! kinds    0 begin: boot    1 part: number, identity, path hash, source's path, path,
//!                   boolean: written under its own name
//!          2 done: number, start, end    3 ready: number
//!          4 finished: path hash, identity of source, identity of target
//!          5 made: the target did not exist, and became a copy of the one source
//!          6 cleared: path hash of a part that was removed, as its source is gone, or that is made
//!                   anew
//! ```
//! Numbers are little-endian.

use super::super::meta::{Identity, Time};
use super::known::Part;
use std::io::{self, Read};
use std::ops::Range;
use wire::{Malformed, Reader, Writer};

pub(super) const BEGIN: u8 = 0;
pub(super) const PART: u8 = 1;
pub(super) const DONE: u8 = 2;
pub(super) const READY: u8 = 3;
pub(super) const FINISHED: u8 = 4;
pub(super) const MADE: u8 = 5;
pub(super) const CLEARED: u8 = 6;
pub(super) const SUM: usize = 8;
/// No record is longer: two paths, a hash and some numbers.
const LONGEST: usize = 10 << 10;

/// 128 bits of a path's hash: a hundred thousand of them must fit into memory.
pub(super) type PathHash = [u8; 16];

/// Number of a part within a journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) struct Number(pub(super) u32);

/// The next record; `None` where there is none or a damaged one.
pub(super) fn next(
    input: &mut impl Read,
    key: &[u8; 32],
    at: u64,
) -> io::Result<Option<(u8, Vec<u8>, u64)>> {
    let mut head = [0; 5];
    if !filled(input, &mut head)? {
        return Ok(None);
    }
    let [a, b, c, d, kind] = head;
    let len = u32::from_le_bytes([a, b, c, d]) as usize;
    if len > LONGEST {
        return Ok(None);
    }
    let mut payload = vec![0; len];
    let mut sum = [0; SUM];
    if !filled(input, &mut payload)? || !filled(input, &mut sum)? {
        return Ok(None);
    }
    let good = sum == checksum(key, at, kind, &payload);
    Ok(good.then_some((kind, payload, (head.len() + len + SUM) as u64)))
}

fn filled(input: &mut impl Read, bytes: &mut [u8]) -> io::Result<bool> {
    match input.read_exact(bytes) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

pub(super) fn record(key: &[u8; 32], at: u64, kind: u8, payload: &[u8]) -> Vec<u8> {
    let len = u32::try_from(payload.len()).unwrap_or(u32::MAX).to_le_bytes();
    [&len, &[kind][..], payload, &checksum(key, at, kind, payload)].concat()
}

pub(super) fn checksum(key: &[u8; 32], at: u64, kind: u8, payload: &[u8]) -> [u8; SUM] {
    let mut hasher = blake3::Hasher::new_keyed(key);
    hasher.update(&at.to_le_bytes()).update(&[kind]).update(payload);
    let mut sum = [0; SUM];
    hasher.finalize_xof().fill(&mut sum);
    sum
}

pub(super) fn hash(path: &[u8]) -> PathHash {
    let mut hash = PathHash::default();
    blake3::Hasher::new().update(path).finalize_xof().fill(&mut hash);
    hash
}

pub(super) fn part_record(number: Number, hash: &PathHash, part: &Part) -> Vec<u8> {
    let mut w = Writer::new();
    write_identity(w.u32(number.0), &part.source);
    w.raw(hash).string(&part.paths.0).string(&part.paths.1).bool(part.in_place).take()
}

pub(super) fn done_record(number: Number, range: &Range<u64>) -> Vec<u8> {
    Writer::new().u32(number.0).u64(range.start).u64(range.end).take()
}

pub(super) fn finished_record(hash: &PathHash, source: &Identity, target: &Identity) -> Vec<u8> {
    let mut w = Writer::new();
    write_identity(w.raw(hash), source);
    write_identity(&mut w, target);
    w.take()
}

fn write_identity(w: &mut Writer, identity: &Identity) {
    let Time { seconds, nanos } = identity.modified;
    w.u64(identity.size).u64(seconds.cast_unsigned()).u32(nanos).u64(identity.inode);
}

pub(super) fn read_identity(r: &mut Reader<'_>) -> Result<Identity, Malformed> {
    let size = r.u64("size")?;
    let modified = Time { seconds: r.u64("seconds")?.cast_signed(), nanos: r.u32("nanoseconds")? };
    Ok(Identity { size, modified, inode: r.u64("inode")? })
}
