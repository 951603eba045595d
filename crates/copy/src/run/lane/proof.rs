//! Proof: when all pieces of a span are there, both ends' hashes of them are compared, and only
//! pieces that differ are moved again (R3).

use super::super::job::{Stand, Way};
use super::super::ranges::Ranges;
use super::super::side::{Answered, Ask, Fault, Open, Side, Told};
use super::span::{Hash, LEAST_BLOCK, Piece};
use super::{At, Ends, File, FileId, Lane, Stage, What};
use sftp::client::{Check, Target};
use sftp::codec::{BlockHashes, Handle};
use std::fs::File as Disk;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::thread::sleep;
use std::time::Instant;

/// How often a piece is moved again before its file fails.
const TRIES: u32 = 3;

/// How a hash comes about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum By {
    /// From the bytes as they pass.
    Passing,
    /// The server computes it.
    Asking,
    /// The bytes are read once more.
    Reading,
}

/// How both ends are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Proof {
    pub(super) source: By,
    pub(super) target: By,
}

impl Proof {
    /// Servers of ours compute hashes, which costs no round trip of its own: always. Others are
    /// read back, with `--verify`.
    pub(super) fn of(ends: &Ends, verify: bool) -> Option<Self> {
        let Ends { source, target, .. } = ends;
        if ends.within {
            // Nothing passes here.
            let by = if source.has().hashes { By::Asking } else { By::Reading };
            return (verify || by == By::Asking).then_some(Self { source: by, target: by });
        }
        let reading = Self { source: By::Passing, target: By::Reading };
        if target.is_remote() && target.has().hashes {
            return Some(Self { source: By::Passing, target: By::Asking });
        }
        if source.is_remote() && source.has().hashes {
            let target = if verify { By::Reading } else { By::Passing };
            return Some(Self { source: By::Asking, target });
        }
        verify.then_some(reading)
    }

    /// Whether what an earlier run has moved can be compared without moving it again.
    pub(super) fn can_check_later(self, source: &Side) -> bool {
        self.later(source).is_some()
    }

    /// Without moving anything that is kept.
    fn afterwards(self, source: &Side) -> Self {
        let target = if self.target == By::Passing { By::Reading } else { self.target };
        self.later(source).unwrap_or(Self { source: By::Reading, target })
    }

    fn later(self, source: &Side) -> Option<Self> {
        let target = if self.target == By::Passing { By::Reading } else { self.target };
        match source {
            Side::Here => Some(Self { source: By::Reading, target }),
            Side::There(_) if source.has().hashes => Some(Self { source: By::Asking, target }),
            _ => None,
        }
    }
}

/// A piece that is to be read once more.
pub(super) struct Reading {
    id: FileId,
    piece: Piece,
    at: At,
    handle: Handle,
}

impl Lane<'_> {
    /// All pieces are there: are they what they were?
    pub(super) fn prove(&mut self, id: FileId, span_id: u64) {
        if self.files.get(&id).is_some_and(|file| file.unknown) {
            return;
        }
        let Some(proof) = self.proof else { return self.settle(id, span_id) };
        let Some(file) = self.files.get_mut(&id) else { return };
        let Stage::Job(job) = &file.stage else { return };
        if job.way == Way::Device || job.summed {
            return self.settle(id, span_id);
        }
        let block = job.block;
        let Some(span) = file.spans.iter_mut().find(|span| span.id == span_id) else { return };
        let later = match (span.compare_only, job.way) {
            (false, _) => Some(proof),
            (true, Way::Compare) => Some(proof.afterwards(&self.ends.source)),
            (true, _) => proof.later(&self.ends.source),
        };
        span.compare_only = false;
        let (range, pieces) = (span.range.clone(), span.pieces(block).collect::<Vec<_>>());
        let Some(Proof { source, target }) = later else { return self.settle(id, span_id) };
        let (from, to) = (file.source.clone(), file.target.clone());
        // The proof's own: no answer of it may end it before all were asked for.
        span.waits += 1;
        self.hash_end(id, span_id, At::Source, source, from, (&range, &pieces));
        self.hash_end(id, span_id, At::Target, target, to, (&range, &pieces));
        self.hashed_one(id, span_id);
    }

    /// Gets the hashes of one end.
    fn hash_end(
        &mut self,
        id: FileId,
        span: u64,
        at: At,
        by: By,
        open: Option<Open>,
        (range, pieces): (&Range<u64>, &[Range<u64>]),
    ) {
        let Some(open) = open else { return };
        match (by, &open) {
            (By::Passing, _) => {}
            (By::Asking, _) => {
                let block = pieces.first().map_or(0, |piece| piece.end - piece.start);
                let block = u32::try_from(block.max(LEAST_BLOCK)).unwrap_or(u32::MAX);
                let what = match at {
                    At::Source => What::SourceHashed { span },
                    At::Target => What::TargetHashed { span },
                };
                self.wait_for(id, span);
                self.ask(at, Ask::Hashes { open, range: range.clone(), block }, id, what);
            }
            (By::Reading, Open::Local(file)) => {
                let hashes: Result<Vec<_>, _> =
                    pieces.iter().map(|piece| Ok((piece.start, hash_of(file, piece)?))).collect();
                self.note_hashes(
                    id,
                    span,
                    at,
                    hashes.map_err(|error: std::io::Error| error.into()),
                );
            }
            (By::Reading, Open::Remote(handle)) => {
                for range in pieces {
                    self.wait_for(id, span);
                    let (piece, handle) = (Piece { span, range: range.clone() }, handle.clone());
                    self.reading.push_back(Reading { id, piece, at, handle });
                }
                self.read_on();
            }
        }
    }

    /// Asks for what is read back while there is room for more under way: it takes as much of the
    /// path as what is copied, and of the limit.
    pub(super) fn read_on(&mut self) {
        while self.flight.room() > 0 && self.lost.is_none() && !self.has_news() {
            let Some(Reading { id, piece, at, handle }) = self.reading.pop_front() else { return };
            if self.span(id, piece.span).is_none() {
                // Its file has failed.
                continue;
            }
            let (start, len) = (piece.range.start, piece.len());
            if let Some(limiter) = &self.copying.limiter {
                sleep(limiter.take(usize::try_from(len).unwrap_or(usize::MAX)));
            }
            self.flight.sent(len, Instant::now());
            let token = self.token(id, What::ReadBack(piece, at));
            if let Side::There(there) = self.ends.side(at) {
                let len = u32::try_from(len).unwrap_or(u32::MAX);
                let (to, check) = (Target::Discard, Check::Blake3);
                there.client.get(&handle, start, len, to, check, token);
            }
        }
    }

    fn wait_for(&mut self, id: FileId, span: u64) {
        if let Some(span) = self.span(id, span) {
            span.waits += 1;
        }
    }

    fn note_hashes(
        &mut self,
        id: FileId,
        span: u64,
        at: At,
        hashes: Result<Vec<(u64, Hash)>, Fault>,
    ) {
        match (hashes, self.span(id, span)) {
            (Err(fault), _) => self.fail(id, fault.at(at)),
            (Ok(hashes), Some(span)) => match at {
                At::Source => span.source.extend(hashes),
                At::Target => span.target.extend(hashes),
            },
            (Ok(_), None) => {}
        }
    }

    /// A server told its hashes.
    pub(super) fn hashed(&mut self, id: FileId, span_id: u64, at: At, answer: Answered) {
        let Some(File { stage: Stage::Job(job), .. }) = self.files.get(&id) else { return };
        let block = job.block;
        let told = match answer {
            Ok(Told::Extended(bytes)) => BlockHashes::parse(&bytes)
                .map_err(|error| Fault::other(format!("hashes of the server: {error}"))),
            Ok(_) => Err(Fault::unfit()),
            Err(fault) => Err(fault),
        };
        let starts: Vec<_> = match self.span(id, span_id) {
            Some(span) => span.pieces(block).map(|piece| piece.start).collect(),
            None => return,
        };
        let hashes = told.map(|told| starts.into_iter().zip(told.hashes).collect());
        self.note_hashes(id, span_id, at, hashes);
        self.hashed_one(id, span_id);
    }

    /// A piece was read once more.
    pub(super) fn read_back(&mut self, id: FileId, piece: &Piece, at: At, answer: Answered) {
        self.flight.done(piece.len(), Instant::now());
        let hashes = match answer {
            Ok(Told::Moved { hash: Some(hash), .. }) => Ok(vec![(piece.range.start, hash)]),
            Ok(_) => Ok(Vec::new()),
            Err(fault) => Err(fault),
        };
        self.note_hashes(id, piece.span, at, hashes);
        self.hashed_one(id, piece.span);
    }

    fn hashed_one(&mut self, id: FileId, span_id: u64) {
        let Some(span) = self.span(id, span_id) else { return };
        span.waits = span.waits.saturating_sub(1);
        if span.waits == 0 {
            self.compare(id, span_id);
        }
    }

    /// R3: what differs is moved again, and nothing else.
    fn compare(&mut self, id: FileId, span_id: u64) {
        let Some(file) = self.files.get_mut(&id) else { return };
        let Stage::Job(job) = &file.stage else { return };
        let block = job.block;
        file.verified = true;
        let Some(span) = file.spans.iter_mut().find(|span| span.id == span_id) else { return };
        let differs = |piece: &Range<u64>| {
            let ends = (span.source.get(&piece.start), span.target.get(&piece.start));
            !matches!(ends, (Some(source), Some(target)) if source == target)
        };
        let again: Vec<_> = span.pieces(block).filter(differs).collect();
        if job.way == Way::Compare {
            return match again.is_empty() {
                true => self.settle(id, span_id),
                false => self.fail(id, Fault::Differs),
            };
        }
        if job.read_only && !again.is_empty() {
            // It was whole, and is not: it is made anew.
            return self
                .fail(id, Fault::Changed(At::Target, "the part file is not what was written"));
        }
        again.iter().for_each(|piece| span.done.remove(piece));
        span.again = again.iter().map(|piece| piece.start).collect();
        let stand = std::mem::replace(&mut span.stand, Stand::Moved);
        let anew = matches!(stand, Stand::Unmoved | Stand::Moved);
        span.tries += u32::from(anew && !again.is_empty());
        let (tries, done) = (span.tries, span.done.clone());
        self.count(id, stand, &done, &again);
        match again.is_empty() {
            true => self.settle(id, span_id),
            false if tries > TRIES => {
                let fault =
                    Fault::Changed(At::Target, "the target's content differs from the source's");
                self.fail(id, fault);
            }
            false => self.moving.push_back(id),
        }
    }

    /// Bytes that stand so have left this host. How much of what we asked another one for has left
    /// that one, nobody knows here.
    pub(super) fn sends(&self, stand: Stand) -> bool {
        stand == Stand::Sent && !self.ends.source.is_remote()
    }

    /// What a comparison has brought: `done` is at the target, `again` has to be moved.
    fn count(&mut self, id: FileId, stand: Stand, done: &Ranges, again: &[Range<u64>]) {
        let bytes: u64 = again.iter().map(|piece| piece.end - piece.start).sum();
        match stand {
            Stand::Sent => done.iter().for_each(|range| self.arrived(id, range)),
            Stand::Found => {
                self.copying.spared(done.total());
                done.iter().for_each(|range| self.note_done(id, range));
            }
            Stand::Unmoved | Stand::Moved => {
                self.copying.report().retries += again.len() as u64;
            }
        }
        if matches!(stand, Stand::Unmoved | Stand::Moved) || self.sends(stand) {
            self.copying.report().wasted += bytes;
        }
    }
}

fn hash_of(file: &Disk, piece: &Range<u64>) -> std::io::Result<Hash> {
    let mut bytes = vec![0; usize::try_from(piece.end - piece.start).unwrap_or_default()];
    let mut filled = 0;
    while let Some(rest) = bytes.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match file.read_at(rest, piece.start + filled as u64)? {
            0 => break,
            n => filled += n,
        }
    }
    bytes.truncate(filled);
    Ok(*blake3::hash(&bytes).as_bytes())
}
