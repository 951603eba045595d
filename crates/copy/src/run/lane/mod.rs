//! Lane: one thread per sftp channel. Takes work, keeps bytes under way, handles answers.
//!
//! ```text
//! (here)   the loop: take, pump, answer; one token per question
//! ends     its channels                               file     a file under way, how far it is
//! start    a file from the queue: look, open, share   open     a share of another lane's file
//! span     a share, cut into pieces                   carry    pieces under way
//! proof    both ends have the same                    sum      the same by a server's sha256sum
//! finish   attributes, fsync, rename                  mend     attributes of what is there already
//! link     symbolic links                             batch    small files, to and from our server
//! fail     a file that cannot be copied               give_back   the channel broke
//! untold   what a source has that says it is empty
//! ```
//! Nothing here waits but the loop itself, so one lane has hundreds of files under way. When its
//! channel breaks, everything it had goes back to the queue.

mod batch;
mod carry;
mod ends;
mod fail;
mod file;
mod finish;
mod give_back;
mod link;
mod mend;
mod open;
mod proof;
mod span;
mod start;
mod sum;
#[cfg(test)]
mod tests;
mod untold;

pub(super) use ends::{At, Ends};

use super::copying::Copying;
use super::queue::{Take, Work};
use super::side::{Answered, Ask, Fault, internal, told};
use super::xattrs::Class;
use crate::observe::LaneId;
use batch::{Batch, Begun};
use file::{File, FileId, Stage};
use proof::{Proof, Reading};
use sftp::client::{Error, Event, Flight};
use span::Piece;
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// Files under way on one lane: enough for 4 KiB files over 50 ms, few enough for the 1019 handles
/// of a stock server's channel.
const FILES: usize = 256;

/// Bytes of files that may be begun though not all of it may be under way yet: opening them takes
/// round trips, and nothing of them is lost when the lane breaks.
const AHEAD: u64 = 1 << 20;

/// How a lane ended.
#[derive(Debug)]
pub(super) enum End {
    /// There is nothing left to do.
    Over,
    /// Somebody wanted fewer lanes.
    Retired,
    /// Its channel broke; whether it got anything done.
    Lost { why: String, worked: bool },
    /// Its server broke the protocol, and would again.
    Broken(String),
}

/// What a question was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
enum What {
    Looked,
    /// The part of a file that may be in place.
    PartLooked,
    SourceOpened,
    TargetOpened,
    /// The part file of a run that broke off is out of the way.
    Cleared,
    Mapped,
    /// A source that says it is empty.
    UntoldRead,
    UntoldWritten,
    /// Bytes from, or to.
    Moved(Piece),
    /// A piece came and goes on to the other host.
    Passed(Piece),
    SourceHashed {
        span: u64,
    },
    TargetHashed {
        span: u64,
    },
    ReadBack(Piece, At),
    /// What another lane has begun is what this one has opened.
    SourceKnown,
    SourceSeen,
    TargetSeen,
    /// Extended attributes of the source, ahead of time or when they are needed.
    XattrsTold,
    XattrsNeeded,
    XattrsSet(Class),
    /// For a file whose content is there.
    Mend(mend::Asked),
    /// The size, before the sums.
    Sized,
    /// The sums of both ends were compared.
    Summed,
    Set,
    /// The owner, before or with the rest.
    OwnerFirst,
    Owner,
    Closed,
    Placed,
    /// The part of a source that changed is gone.
    PartRemoved,
    Restated,
    Measured,
    LinkRead,
    Linked,
    LinkSet,
    /// The answer changes nothing.
    Whatever,
    BatchLooked,
    BatchPut,
    BatchSeen,
    BatchGot,
}

impl What {
    /// Which end is asked.
    fn end(&self) -> At {
        match self {
            Self::SourceOpened
            | Self::Mapped
            | Self::UntoldRead
            | Self::Passed(_)
            | Self::SourceHashed { .. }
            | Self::SourceKnown
            | Self::SourceSeen
            | Self::XattrsTold
            | Self::XattrsNeeded
            | Self::Restated
            | Self::LinkRead
            | Self::BatchGot => At::Source,
            Self::ReadBack(_, at) | Self::Mend(mend::Asked::Open(at) | mend::Asked::Xattrs(at)) => {
                *at
            }
            _ => At::Target,
        }
    }
}

pub(super) struct Lane<'a> {
    copying: &'a Copying<'a>,
    id: LaneId,
    ends: Ends,
    /// An event that has come and is not looked at yet.
    heard: Option<Event>,
    /// Answers of this host.
    answers: VecDeque<(u64, Answered)>,
    asked: HashMap<u64, (FileId, What)>,
    next_token: u64,
    files: HashMap<FileId, File>,
    batches: HashMap<FileId, Batch>,
    next_file: FileId,
    /// Files with pieces that are not asked for yet.
    moving: VecDeque<FileId>,
    /// Pieces that are to be read back.
    reading: VecDeque<Reading>,
    flight: Flight,
    /// Size of a piece: what is asked for at once, hashed, and noted in the journal.
    block: u64,
    proof: Option<Proof>,
    retire: &'a AtomicBool,
    worked: bool,
    lost: Option<Fault>,
}

impl<'a> Lane<'a> {
    pub(super) fn new(
        copying: &'a Copying<'a>,
        id: LaneId,
        mut ends: Ends,
        retire: &'a AtomicBool,
    ) -> Self {
        ends.within &= ends.target.has().copy_data;
        let proof = Proof::of(&ends, copying.options.verify);
        let stock = ends.source.is_remote() && !ends.source.has().hashes;
        let most = if stock { Flight::MOST_FROM_STOCK } else { Flight::MOST };
        let now = Instant::now();
        let mut lane = Self {
            copying,
            id,
            block: span::block(&ends, copying, proof.is_some()),
            ends,
            heard: None,
            answers: VecDeque::new(),
            asked: HashMap::new(),
            next_token: 0,
            files: HashMap::new(),
            batches: HashMap::new(),
            next_file: 0,
            moving: VecDeque::new(),
            reading: VecDeque::new(),
            flight: Flight::within(most, now).in_step_since(copying.started, now),
            proof,
            retire,
            worked: false,
            lost: None,
        };
        lane.proof = lane.proof.filter(|_| !lane.is_test());
        lane
    }

    fn is_test(&self) -> bool {
        self.copying.options.test.is_some()
    }

    /// Whether somebody wants fewer lanes.
    fn is_retired(&self) -> bool {
        self.retire.load(Ordering::Relaxed)
    }

    /// Works until there is nothing left, or the channel breaks.
    pub(super) fn work(mut self) -> End {
        loop {
            if self.copying.is_late() {
                self.copying.queue.stop();
                return End::Over;
            }
            if let Some(fault) = self.lost.take() {
                self.give_everything_back();
                self.copying.sync(&mut self.ends.target);
                return match fault {
                    Fault::Broken(why) => End::Broken(why),
                    fault => End::Lost { why: fault.to_string(), worked: self.worked },
                };
            }
            if let Some((token, answer)) = self.answers.pop_front() {
                self.answered(token, answer);
                continue;
            }
            if let Some(end) = self.fill() {
                return end;
            }
            if self.answers.is_empty() {
                match self.asked.is_empty() {
                    false => self.wait(),
                    true if self.is_idle() => {}
                    // It has files and waits for nothing: that must not spin.
                    true => self.lost = Some(Fault::Broken(internal("a lane waits for nothing"))),
                }
            }
        }
    }

    /// Takes what there is room for; waits for work only if it has none.
    fn fill(&mut self) -> Option<End> {
        let retire = self.is_retired();
        self.flight.beside(self.copying.lanes(), self.block);
        self.read_on();
        self.pump();
        while !retire && self.has_room() {
            match self.begin_batch() {
                Begun::Yes => continue,
                Begun::Later => break,
                Begun::Unfit => {}
            }
            match self.copying.queue.take(self.copying.lanes(), false) {
                Take::Work(work) => self.begin(work),
                Take::Nothing | Take::Over => break,
            }
            self.pump();
        }
        if !self.is_idle() {
            return None;
        }
        if retire {
            return Some(self.close(End::Retired));
        }
        match self.copying.queue.take(self.copying.lanes(), true) {
            Take::Work(work) => self.begin(work),
            Take::Nothing | Take::Over => return Some(self.close(End::Over)),
        }
        None
    }

    fn is_idle(&self) -> bool {
        self.files.is_empty()
            && self.batches.is_empty()
            && self.answers.is_empty()
            && self.asked.is_empty()
    }

    /// What this host changed in directories is on its disk.
    fn close(&mut self, end: End) -> End {
        self.copying.sync(&mut self.ends.target);
        end
    }

    fn has_room(&self) -> bool {
        // A server may say any size.
        let promised = self.files.values().map(File::promised).fold(0, u64::saturating_add);
        self.answers.is_empty()
            && self.reading.is_empty()
            && self.files.len() < FILES
            && promised.saturating_add(self.flight.under_way()) <= self.flight.bound().max(AHEAD)
            && self.flight.room() > 0
    }

    fn wait(&mut self) {
        let event = match self.heard.take() {
            Some(event) => event,
            None => self.ends.event(),
        };
        match event {
            Event::Answer { token, answer } => {
                let here = matches!(answer, Err(Error::Local(..)));
                let answer = told(answer).map_err(|fault| fault.at(self.end_of(token, here)));
                self.answered(token, answer);
            }
            Event::Unsent { token } => self.recall(token),
            Event::Room => {}
            Event::Ended(error) => self.lost = Some(Fault::from(error)),
        }
        if self.copying.limiter.is_some() {
            self.pump();
        }
    }

    /// Which end an error is of. A move has both: what is not of a file `here` is the server's.
    fn end_of(&self, token: u64, here: bool) -> At {
        let down = self.ends.source.is_remote() && !self.ends.target.is_remote();
        match self.asked.get(&token) {
            Some((_, What::Moved(_))) if here == down => At::Target,
            Some((_, What::Moved(_))) => At::Source,
            Some((_, what)) => what.end(),
            None => At::Target,
        }
    }

    /// The piece that this asked for never left: it is not among what may have arrived.
    fn recall(&mut self, token: u64) {
        if let Some((id, What::Moved(piece) | What::Passed(piece))) = self.asked.get(&token)
            && let Some(span) = self.files.get_mut(id).and_then(|file| file.span(piece.span))
        {
            span.recall(piece.range.start);
        }
    }

    /// With a limit pieces take their time: what was answered meanwhile comes first, so that it is
    /// told and noted when it is there, not when all is asked for.
    fn has_news(&mut self) -> bool {
        if self.copying.limiter.is_none() || self.asked.is_empty() {
            return false;
        }
        if self.heard.is_none() {
            self.heard = self.ends.events.try_recv().ok();
        }
        self.heard.is_some()
    }

    fn begin(&mut self, work: Work) {
        match work {
            Work::Entry(entry) => self.start(*entry),
            Work::Share(job, share) => self.join(&job, share),
        }
    }

    fn add(&mut self, file: File) -> FileId {
        self.next_file += 1;
        self.files.insert(self.next_file, file);
        self.next_file
    }

    fn token(&mut self, file: FileId, what: What) -> u64 {
        self.next_token += 1;
        self.asked.insert(self.next_token, (file, what));
        self.next_token
    }

    /// Asks one end for something on behalf of a file.
    fn ask(&mut self, at: At, ask: Ask, file: FileId, what: What) {
        let token = self.token(file, what);
        if let Some(answer) = self.ends.side(at).ask(ask, token) {
            self.answers.push_back((token, answer.map_err(|fault| fault.at(at))));
        }
    }

    /// As [`Lane::ask`]; the step that the file is in waits for the answer.
    fn ask_for(&mut self, at: At, ask: Ask, file: FileId, what: What) {
        if let Some(file) = self.files.get_mut(&file) {
            file.waits += 1;
        }
        self.ask(at, ask, file, what);
    }

    fn answered(&mut self, token: u64, answer: Answered) {
        let Some((id, what)) = self.asked.remove(&token) else { return };
        if let Err(fault @ (Fault::Lost(_) | Fault::Broken(_))) = answer {
            self.asked.insert(token, (id, what));
            self.lost.get_or_insert(fault);
            return;
        }
        match what {
            What::Whatever => {}
            What::BatchLooked | What::BatchPut | What::BatchSeen | What::BatchGot => {
                self.batch_answered(id, &what, answer);
            }
            What::Moved(piece) => self.moved(id, piece, answer),
            What::Passed(piece) => self.passed(id, piece, answer),
            What::SourceHashed { span } => self.hashed(id, span, At::Source, answer),
            What::TargetHashed { span } => self.hashed(id, span, At::Target, answer),
            What::XattrsTold => self.note_xattrs(id, answer),
            What::SourceKnown => self.known(id, answer),
            What::ReadBack(piece, at) => self.read_back(id, &piece, at, answer),
            what => self.stepped(id, &what, answer),
        }
    }

    /// An answer that the file's step waits for.
    fn stepped(&mut self, id: FileId, what: &What, answer: Answered) {
        let Some(file) = self.files.get_mut(&id) else { return };
        file.waits = file.waits.saturating_sub(1);
        match what {
            What::Looked => self.looked(id, answer),
            What::PartLooked => self.placed_before(id, answer),
            What::SourceOpened | What::TargetOpened | What::Cleared | What::Mapped => {
                self.opened(id, what, answer);
            }
            What::UntoldRead => self.untold_read(id, answer),
            What::UntoldWritten => self.untold_written(id, answer),
            What::LinkRead | What::Linked | What::LinkSet => self.linked(id, what, answer),
            What::Placed => self.placed(id, answer),
            What::PartRemoved => self.restate(id),
            What::Restated => self.restated(id, answer),
            What::Measured => self.measured(id, answer),
            What::Mend(asked) => self.mending(id, *asked, answer),
            What::Sized => self.sized(id, answer),
            What::Summed => self.finish(id),
            What::OwnerFirst => self.owned(id, answer),
            What::XattrsNeeded => {
                self.note_xattrs(id, answer);
                self.finish(id);
            }
            _ => self.finishing(id, what, answer),
        }
    }
}
