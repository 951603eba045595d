//! Span: a share of a file on this lane. Its pieces are under way together; when all are there,
//! both ends' hashes of them are compared, and only pieces that differ are moved again (R3).

use super::super::copying::Copying;
use super::super::job::{After, Rest, Share, Stand, Way};
use super::super::ranges::Ranges;
use super::super::side::{Answered, Ask, Fault, Open, Side, Told};
use super::{At, Ends, File, FileId, Lane, Stage, What};
use crate::options::Lanes;
use sftp::client::{Check, Data, Flight, Target};
use sftp::codec::BlockHashes;
use std::collections::BTreeMap;
use std::fs::File as Disk;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::thread::sleep;
use std::time::Instant;

/// Least that `block-hashes@longhaul` takes for a block.
const LEAST_BLOCK: u64 = 64 << 10;
/// A piece between two files of this host.
const HOME_BLOCK: u64 = 1 << 20;
/// How often a piece is moved again before its file fails.
const TRIES: u32 = 3;

type Hash = [u8; 32];

/// A share of a file, as far as it is.
pub(super) struct Span {
    id: u64,
    range: Range<u64>,
    /// How far its bytes were when it was taken.
    stand: Stand,
    /// They are to be compared before any is moved.
    compare_only: bool,
    /// Where the next piece starts.
    next: u64,
    /// Pieces that are moved once more, before others.
    again: Vec<u64>,
    flying: u64,
    done: Ranges,
    source: BTreeMap<u64, Hash>,
    target: BTreeMap<u64, Hash>,
    /// Answers that the proof waits for.
    waits: u32,
    tries: u32,
}

/// How a hash comes about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum By {
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
    source: By,
    target: By,
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

/// The size of a piece, in bytes: one READ or WRITE of the largest size the server takes, unless two
/// pieces on each of many lanes would be more than they are to have under way together.
pub(super) fn block(ends: &Ends, copying: &Copying<'_>, hashed: bool) -> u64 {
    let most = match (&ends.source, &ends.target) {
        (Side::There(from), _) => u64::from(from.client.sizes().read),
        (_, Side::There(to)) => u64::from(to.client.sizes().write),
        _ => HOME_BLOCK,
    };
    let lanes = match copying.options.lanes {
        Lanes::Fixed(lanes) => lanes.get().into(),
        Lanes::Auto => 1,
    };
    let share = Flight::TOGETHER / 2 / lanes;
    let most = most.min(share - share % LEAST_BLOCK).max(LEAST_BLOCK);
    let least = if hashed { LEAST_BLOCK } else { 4 << 10 };
    let limit = copying.limiter.as_ref().map_or(u64::MAX, |limiter| limiter.piece() as u64);
    most.min(limit.max(least))
}

impl Span {
    pub(super) fn new(id: u64, share: Share) -> Self {
        let Share { range, stand } = share;
        let there = stand != Stand::Unmoved;
        let done = if there { Ranges::of(range.clone()) } else { Ranges::default() };
        Self {
            id,
            next: if there { range.end } else { range.start },
            compare_only: there,
            stand,
            range,
            again: Vec::new(),
            flying: 0,
            done,
            source: BTreeMap::new(),
            target: BTreeMap::new(),
            waits: 0,
            tries: 0,
        }
    }

    /// Bytes that are still to be asked for.
    pub(super) fn promised(&self) -> u64 {
        self.range.end - self.next
    }

    fn piece(&self, start: u64, block: u64) -> Range<u64> {
        start..self.range.end.min(start.saturating_add(block))
    }

    fn pieces(&self, block: u64) -> impl Iterator<Item = Range<u64>> + use<> {
        let range = self.range.clone();
        let step = usize::try_from(block).unwrap_or(usize::MAX).max(1);
        range
            .clone()
            .step_by(step)
            .map(move |start| start..range.end.min(start.saturating_add(block)))
    }

    /// The next piece to move.
    fn cut(&mut self, block: u64) -> Option<Range<u64>> {
        let start = match self.again.pop() {
            Some(start) => start,
            None if self.next < self.range.end => {
                let start = self.next;
                self.next = self.piece(start, block).end;
                start
            }
            None => return None,
        };
        self.flying += 1;
        Some(self.piece(start, block))
    }

    fn is_cut(&self) -> bool {
        self.again.is_empty() && self.next >= self.range.end
    }

    fn is_moved(&self) -> bool {
        self.is_cut() && self.flying == 0
    }

    /// A piece that was cut never left.
    pub(super) fn recall(&mut self, start: u64) {
        self.flying = self.flying.saturating_sub(1);
        self.again.push(start);
    }

    /// For others, when the lane breaks. What was under way may have arrived, or not.
    pub(super) fn rest(&self, block: u64) -> Rest {
        let mut rest = Rest::default();
        if matches!(self.stand, Stand::Sent | Stand::Found) {
            // Not compared yet.
            rest.of(self.stand).add(self.range.clone());
            return rest;
        }
        rest.unmoved.add(self.next..self.range.end);
        self.again.iter().for_each(|start| rest.unmoved.add(self.piece(*start, block)));
        let cut = Ranges::of(self.range.start..self.next).without(&rest.unmoved);
        Rest { sent: cut.without(&self.done), moved: self.done.clone(), ..rest }
    }
}

impl File {
    pub(super) fn span(&mut self, id: u64) -> Option<&mut Span> {
        self.spans.iter_mut().find(|span| span.id == id)
    }
}

impl Lane<'_> {
    /// Asks for pieces while there is room for more under way.
    pub(super) fn pump(&mut self) {
        while self.flight.room() > 0 && self.lost.is_none() && !self.has_news() {
            let Some(&id) = self.moving.front() else { return };
            if !self.pump_one(id) {
                self.moving.pop_front();
            }
        }
    }

    /// One piece of a file; false if it has none to ask for now.
    fn pump_one(&mut self, id: FileId) -> bool {
        let Some(file) = self.files.get_mut(&id).filter(|file| file.waits == 0) else {
            return false;
        };
        let Stage::Job(job) = &file.stage else { return false };
        let block = job.block;
        if let Some(span) = file.spans.iter_mut().find(|span| span.compare_only && span.waits == 0)
        {
            let span = span.id;
            self.prove(id, span);
            return true;
        }
        let cut = file.spans.iter_mut().find_map(|span| Some((span.id, span.cut(block)?)));
        let Some((span, piece)) = cut else { return false };
        self.carry(id, span, piece);
        true
    }

    /// Moves a piece from one end to the other.
    fn carry(&mut self, id: FileId, span: u64, piece: Range<u64>) {
        let len = piece.end - piece.start;
        if let Some(limiter) = &self.copying.limiter {
            sleep(limiter.take(usize::try_from(len).unwrap_or(usize::MAX)));
        }
        self.flight.sent(len, Instant::now());
        let summed = matches!(&self.files.get(&id).map(|file| &file.stage),
            Some(Stage::Job(job)) if job.summed);
        let check = match self.proof.filter(|_| !summed) {
            Some(Proof { source: By::Passing, .. } | Proof { target: By::Passing, .. }) => {
                Check::Blake3
            }
            _ => Check::None,
        };
        if self.ends.within {
            return self.copy_within(id, span, piece);
        }
        let passes_on = self.ends.source.is_remote() && self.ends.target.is_remote();
        let what = match passes_on {
            true => What::Passed { span, piece: piece.start, len },
            false => What::Moved { span, piece: piece.start, len },
        };
        let token = self.token(id, what);
        let Some(file) = self.files.get(&id) else { return };
        match (&self.ends.source, &self.ends.target, &file.source, &file.target) {
            (Side::There(there), _, Some(Open::Remote(from)), to) => {
                let target = match to {
                    Some(Open::Local(file)) => {
                        Target::File { file: Arc::clone(file), offset: piece.start }
                    }
                    Some(Open::Remote(_)) => Target::Bytes,
                    None => Target::Discard,
                };
                let len = u32::try_from(len).unwrap_or(u32::MAX);
                there.client.get(from, piece.start, len, target, check, token);
            }
            (_, Side::There(there), from, Some(Open::Remote(to))) => {
                let data = match from {
                    Some(Open::Local(file)) => {
                        Data::File { file: Arc::clone(file), offset: piece.start, len }
                    }
                    _ => Data::Zeros(len),
                };
                there.client.put(to, piece.start, data, check, token);
            }
            (_, _, Some(Open::Local(from)), Some(Open::Local(to))) => {
                let answer = at_home(from, to, &piece, check);
                self.answers.push_back((token, answer));
            }
            _ => self.answers.push_back((token, Err(Fault::other("a file is not open")))),
        }
    }

    /// The server copies a piece by itself.
    fn copy_within(&mut self, id: FileId, span: u64, piece: Range<u64>) {
        let Some(file) = self.files.get(&id) else { return };
        let what = What::Moved { span, piece: piece.start, len: piece.end - piece.start };
        let (Some(from), Some(to)) = (file.source.clone(), file.target.clone()) else { return };
        self.ask(At::Target, Ask::CopyData { from, range: piece, to }, id, what);
    }

    /// A piece came from one server and goes on to the other.
    pub(super) fn passed(&mut self, id: FileId, at: (u64, u64, u64), answer: Answered) {
        let (span, piece, len) = at;
        let (bytes, hash) = match answer {
            Ok(Told::Moved { len: came, bytes, hash }) if came == len => (bytes, hash),
            other => return self.moved(id, at, other),
        };
        let token = self.token(id, What::Moved { span, piece, len });
        let to = self.files.get(&id).and_then(|file| file.target.clone());
        match (&self.ends.target, to) {
            (Side::There(there), Some(Open::Remote(to))) => {
                there.client.put(&to, piece, Data::Bytes(bytes.into()), Check::None, token);
            }
            _ => self.answers.push_back((token, Err(Fault::other("a file is not open")))),
        }
        if let (Some(hash), Some(span)) = (hash, self.span(id, span)) {
            span.source.insert(piece, hash);
        }
    }

    fn span(&mut self, id: FileId, span: u64) -> Option<&mut Span> {
        self.files.get_mut(&id)?.span(span)
    }

    /// A piece is at the target.
    pub(super) fn moved(&mut self, id: FileId, at: (u64, u64, u64), answer: Answered) {
        let (span_id, start, len) = at;
        self.flight.done(len, Instant::now());
        let (passing, within) = (self.proof, self.ends.within);
        let Some(span) = self.span(id, span_id) else { return self.pump() };
        span.flying -= 1;
        match answer {
            Ok(Told::Moved { len: came, hash, .. }) if came == len => {
                span.done.add(start..start + len);
                if let (Some(hash), Some(proof)) = (hash, passing) {
                    let end = if proof.source == By::Passing {
                        &mut span.source
                    } else {
                        &mut span.target
                    };
                    end.insert(start, hash);
                }
            }
            Ok(Told::Done) if within => span.done.add(start..start + len),
            Ok(_) => {
                return self.fail(id, Fault::Changed("the source got shorter while it was copied"));
            }
            Err(fault) => return self.fail(id, fault),
        }
        self.worked = true;
        self.arrived(id, &(start..start + len));
        if self.span(id, span_id).is_some_and(|span| span.is_moved()) {
            self.prove(id, span_id);
        }
        self.pump();
    }

    fn arrived(&mut self, id: FileId, piece: &Range<u64>) {
        self.copying.moved(self.id, piece.end - piece.start);
        self.note_done(id, piece);
    }

    fn note_done(&self, id: FileId, piece: &Range<u64>) {
        let Some(File { stage: Stage::Job(job), .. }) = self.files.get(&id) else { return };
        if let Some(number) = job.number {
            self.copying.note(|journal| journal.done(number, piece));
        }
    }

    /// All pieces are there: are they what they were?
    fn prove(&mut self, id: FileId, span_id: u64) {
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
                for piece in pieces {
                    self.wait_for(id, span);
                    let token = self.token(id, What::ReadBack { span, piece: piece.start, at });
                    let len = u32::try_from(piece.end - piece.start).unwrap_or(u32::MAX);
                    if let Side::There(there) = self.ends.side(at) {
                        let (to, check) = (Target::Discard, Check::Blake3);
                        there.client.get(handle, piece.start, len, to, check, token);
                    }
                }
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
            (Err(fault), _) => self.fail(id, fault),
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
            Ok(_) => Err(Fault::other("an answer of another kind")),
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
    pub(super) fn read_back(&mut self, id: FileId, of: (u64, u64, At), answer: Answered) {
        let (span, piece, at) = of;
        let hashes = match answer {
            Ok(Told::Moved { hash: Some(hash), .. }) => Ok(vec![(piece, hash)]),
            Ok(_) => Ok(Vec::new()),
            Err(fault) => Err(fault),
        };
        self.note_hashes(id, span, at, hashes);
        self.hashed_one(id, span);
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
                let fault = Fault::Changed("the target's content differs from the source's");
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

    /// The span is there for good.
    fn settle(&mut self, id: FileId, span_id: u64) {
        let Some(file) = self.files.get_mut(&id) else { return };
        let Stage::Job(job) = &file.stage else { return };
        let job = Arc::clone(job);
        file.spans.retain(|span| span.id != span_id);
        let idle = file.spans.is_empty();
        match job.settle() {
            After::Whole => self.finish(id),
            After::Failed => {
                let fault = job.fault().unwrap_or(Fault::Missing);
                self.failed(id, fault);
            }
            After::Going if idle && !self.take_share(id) => drop(self.leave(id)),
            After::Going => {}
        }
    }
}

/// A piece between two files of this host.
fn at_home(from: &Disk, to: &Disk, piece: &Range<u64>, check: Check) -> Answered {
    let mut bytes = vec![0; usize::try_from(piece.end - piece.start).unwrap_or_default()];
    match from.read_exact_at(&mut bytes, piece.start) {
        Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => {
            return Err(Fault::Changed("the source got shorter while it was copied"));
        }
        other => other?,
    }
    to.write_all_at(&bytes, piece.start)?;
    let hash = (check == Check::Blake3).then(|| *blake3::hash(&bytes).as_bytes());
    Ok(Told::Moved { len: bytes.len() as u64, hash, bytes: Vec::new() })
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
