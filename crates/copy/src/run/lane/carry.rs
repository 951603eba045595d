//! Carry: pieces of a lane's spans under way: asked for, passed on, arrived, and a span that is there
//! for good.

use super::super::job::After;
use super::super::side::{Answered, Ask, Fault, Open, Side, Told};
use super::proof::{By, Proof};
use super::span::{Hash, Piece, Span};
use super::{At, File, FileId, Lane, Stage, What};
use sftp::client::{Check, Data, Target};
use std::fs::File as Disk;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::thread::sleep;
use std::time::Instant;

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
        let unknown = file.unknown;
        let compare = |span: &&mut Span| span.compare_only && span.waits == 0 && !unknown;
        if let Some(span) = file.spans.iter_mut().find(compare) {
            let span = span.id;
            self.prove(id, span);
            return true;
        }
        let cut = |span: &mut Span| Some(Piece { span: span.id, range: span.cut(block)? });
        let Some(piece) = file.spans.iter_mut().find_map(cut) else { return false };
        self.carry(id, piece);
        true
    }

    /// Moves a piece from one end to the other.
    fn carry(&mut self, id: FileId, piece: Piece) {
        let (start, len) = (piece.range.start, piece.len());
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
            return self.copy_within(id, piece);
        }
        let passes_on = self.ends.source.is_remote() && self.ends.target.is_remote();
        let range = piece.range.clone();
        let what = if passes_on { What::Passed(piece) } else { What::Moved(piece) };
        let token = self.token(id, what);
        let Some(file) = self.files.get(&id) else { return };
        match (&self.ends.source, &self.ends.target, &file.source, &file.target) {
            (Side::There(there), _, Some(Open::Remote(from)), to) => {
                let target = match to {
                    Some(Open::Local(file)) => {
                        Target::File { file: Arc::clone(file), offset: start }
                    }
                    Some(Open::Remote(_)) => Target::Bytes,
                    None => Target::Discard,
                };
                let len = u32::try_from(len).unwrap_or(u32::MAX);
                there.client.get(from, start, len, target, check, token);
            }
            (_, Side::There(there), from, Some(Open::Remote(to))) => {
                let data = match from {
                    Some(Open::Local(file)) => {
                        Data::File { file: Arc::clone(file), offset: start, len }
                    }
                    _ => Data::Zeros(len),
                };
                there.client.put(to, start, data, check, token);
            }
            (_, _, Some(Open::Local(from)), Some(Open::Local(to))) => {
                let answer = at_home(from, to, &range, check);
                self.answers.push_back((token, answer));
            }
            _ => self.answers.push_back((token, Err(Fault::internal("a file is not open")))),
        }
    }

    /// The server copies a piece by itself.
    fn copy_within(&mut self, id: FileId, piece: Piece) {
        let Some(file) = self.files.get(&id) else { return };
        let (Some(from), Some(to)) = (file.source.clone(), file.target.clone()) else { return };
        let ask = Ask::CopyData { from, range: piece.range.clone(), to };
        self.ask(At::Target, ask, id, What::Moved(piece));
    }

    /// A piece came from one server and goes on to the other.
    pub(super) fn passed(&mut self, id: FileId, piece: Piece, answer: Answered) {
        let (bytes, hash) = match answer {
            Ok(Told::Moved { len, bytes, hash }) if len == piece.len() => (bytes, hash),
            other => return self.moved(id, piece, other),
        };
        let (span, start) = (piece.span, piece.range.start);
        let token = self.token(id, What::Moved(piece));
        let to = self.files.get(&id).and_then(|file| file.target.clone());
        match (&self.ends.target, to) {
            (Side::There(there), Some(Open::Remote(to))) => {
                there.client.put(&to, start, Data::Bytes(bytes.into()), Check::None, token);
            }
            _ => self.answers.push_back((token, Err(Fault::internal("a file is not open")))),
        }
        self.note_passing(id, span, start, hash);
    }

    /// The hash of a piece as it passed: of the end that is not asked or read.
    fn note_passing(&mut self, id: FileId, span: u64, start: u64, hash: Option<Hash>) {
        let Some(proof) = self.proof else { return };
        let (Some(hash), Some(span)) = (hash, self.span(id, span)) else { return };
        let end = match proof.source {
            By::Passing => &mut span.source,
            _ => &mut span.target,
        };
        end.insert(start, hash);
    }

    pub(super) fn span(&mut self, id: FileId, span: u64) -> Option<&mut Span> {
        self.files.get_mut(&id)?.span(span)
    }

    /// A piece is at the target.
    pub(super) fn moved(&mut self, id: FileId, piece: Piece, answer: Answered) {
        let expected = piece.len();
        let Piece { span: span_id, range } = piece;
        self.flight.done(expected, Instant::now());
        let within = self.ends.within;
        let Some(span) = self.span(id, span_id) else { return self.pump() };
        span.flying -= 1;
        match answer {
            Ok(Told::Moved { len, hash, .. }) if len == expected => {
                span.done.add(range.clone());
                self.note_passing(id, span_id, range.start, hash);
            }
            Ok(Told::Done) if within => span.done.add(range.clone()),
            Ok(_) => {
                return self.fail(
                    id,
                    Fault::Changed(At::Source, "the source got shorter while it was copied"),
                );
            }
            Err(fault) => return self.fail(id, fault),
        }
        self.worked = true;
        self.arrived(id, &range);
        if self.span(id, span_id).is_some_and(|span| span.is_moved()) {
            self.prove(id, span_id);
        }
        self.pump();
    }

    pub(super) fn arrived(&mut self, id: FileId, piece: &Range<u64>) {
        self.copying.moved(self.id, piece.end - piece.start);
        self.note_done(id, piece);
    }

    pub(super) fn note_done(&self, id: FileId, piece: &Range<u64>) {
        let Some(File { stage: Stage::Job(job), .. }) = self.files.get(&id) else { return };
        if let Some(number) = job.number {
            self.copying.note(|journal| journal.done(number, piece));
        }
    }

    /// The span is there for good.
    pub(super) fn settle(&mut self, id: FileId, span_id: u64) {
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
            // A lane that is to end leaves what nobody has taken to others.
            After::Going if idle && (self.is_retired() || !self.take_share(id)) => {
                self.leave(id);
            }
            After::Going => {}
        }
    }
}

/// A piece between two files of this host.
fn at_home(from: &Disk, to: &Disk, piece: &Range<u64>, check: Check) -> Answered {
    let mut bytes = vec![0; usize::try_from(piece.end - piece.start).unwrap_or_default()];
    match from.read_exact_at(&mut bytes, piece.start) {
        Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => {
            return Err(Fault::Changed(At::Source, "the source got shorter while it was copied"));
        }
        other => other.map_err(|error| Fault::from(error).at(At::Source))?,
    }
    to.write_all_at(&bytes, piece.start)?;
    let hash = (check == Check::Blake3).then(|| *blake3::hash(&bytes).as_bytes());
    Ok(Told::Moved { len: bytes.len() as u64, hash, bytes: Vec::new() })
}
