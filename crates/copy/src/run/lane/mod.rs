//! Lane: one thread per sftp channel. Takes work, keeps bytes under way, handles answers.
//!
//! ```text
//! (here)   the loop: take, pump, answer                  one token per question
//! start    a file from the queue: look, open, share      open     a share of another lane's file
//! span     a share, cut into pieces          carry    pieces under way
//! proof    both ends have the same           finish   attributes, fsync, rename
//! mend     attributes of a file whose content is there
//! sum      whole files by a stock server's sha256sum
//! link     symbolic links                                batch    small files to and from our server
//! ```
//! Nothing here waits but the loop itself, so one lane has hundreds of files under way. When its
//! channel breaks, everything it had goes back to the queue.

mod batch;
mod carry;
mod finish;
mod link;
mod mend;
mod open;
mod proof;
mod span;
mod start;
mod sum;

use super::copying::Copying;
use super::job::{After, Job, Stand};
use super::meta::{Identity, Meta};
use super::names;
use super::queue::{Entry, Left, Take, Work};
use super::ranges::Ranges;
use super::side::{Answered, Ask, Fault, Open, Side, Told, told};
use super::xattrs::Class;
use crate::observe::LaneId;
use batch::{Batch, Begun};
use mend::Mend;
use proof::Proof;
use sftp::client::{Error, Event, Flight};
use sftp::codec::Statvfs;
use span::Span;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender};
use std::time::Instant;

/// Files under way on one lane: enough for 4 KiB files over 50 ms, few enough for the 1019 handles
/// of a stock server's channel.
const FILES: usize = 256;

/// Bytes of files that may be begun though not all of it may be under way yet: opening them takes
/// round trips, and nothing of them is lost when the lane breaks.
const AHEAD: u64 = 1 << 20;

/// Less room than this, in bytes, is none: what was written last did not fit.
const FULL: u64 = 1 << 20;

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

/// Which end a question goes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum At {
    Source,
    Target,
}

/// What a question was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
enum What {
    Looked,
    SourceOpened,
    TargetOpened,
    /// The part file of a run that broke off is out of the way.
    Cleared,
    Mapped,
    /// Bytes from, or to: the piece of the span that starts at the first number.
    Moved {
        span: u64,
        piece: u64,
        len: u64,
    },
    /// A piece came and goes on to the other host.
    Passed {
        span: u64,
        piece: u64,
        len: u64,
    },
    SourceHashed {
        span: u64,
    },
    TargetHashed {
        span: u64,
    },
    ReadBack {
        span: u64,
        piece: u64,
        at: At,
    },
    SourceSeen,
    TargetSeen,
    /// Extended attributes of the source, ahead of time or when they are needed.
    XattrsTold,
    XattrsNeeded,
    XattrsSet(Class),
    /// For a file whose content is there.
    Mend(mend::Asked),
    /// The sums of both ends were compared.
    Summed,
    Set,
    Closed,
    Placed,
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

/// A number that a file under way on this lane has, never used again.
type FileId = u64;

/// A file under way on this lane.
struct File {
    stage: Stage,
    source: Option<Open>,
    target: Option<Open>,
    /// Answers that the current step waits for.
    waits: u32,
    /// The first that went wrong in it.
    fault: Option<Fault>,
    spans: Vec<Span>,
    next_span: u64,
    /// Of the target before: what scp(1) would write into, and whose mode stays.
    old: Option<Meta>,
    /// Of the source, or of the part file, as they were seen last.
    seen: (Option<Meta>, Option<Meta>),
    /// Parts with data, where the source may have holes.
    data: Option<Ranges>,
    /// The part file of a run that broke off was in the way once.
    cleared: bool,
    /// The part file is asked to take its name.
    placing: bool,
    /// What is at the target is compared first (`--verify`).
    compare: bool,
    /// Content was compared at both ends.
    verified: bool,
    mend: Mend,
}

/// How far a file is.
enum Stage {
    /// Not shared.
    New(Entry),
    Job(Arc<Job>),
}

impl File {
    fn new(stage: Stage) -> Self {
        Self {
            stage,
            source: None,
            target: None,
            waits: 0,
            fault: None,
            spans: Vec::new(),
            next_span: 0,
            old: None,
            seen: (None, None),
            data: None,
            cleared: false,
            placing: false,
            compare: false,
            verified: false,
            mend: Mend::default(),
        }
    }

    fn entry(&self) -> &Entry {
        match &self.stage {
            Stage::New(entry) => entry,
            Stage::Job(job) => &job.entry,
        }
    }

    /// Bytes that it will want to have under way and has not yet.
    fn promised(&self) -> u64 {
        match self.stage {
            Stage::New(_) => self.entry().meta.size,
            Stage::Job(_) => self.spans.iter().map(Span::promised).fold(0, u64::saturating_add),
        }
    }
}

/// What a lane is made of.
pub(super) struct Ends {
    pub(super) source: Side,
    pub(super) target: Side,
    pub(super) events: Receiver<Event>,
    /// Where answers of others than the channels come from.
    pub(super) tell: Sender<Event>,
    /// Its servers have begun to speak SFTP.
    begun: bool,
    /// Both ends are one channel to one server; a lane's copies by itself (`copy-data`).
    pub(super) within: bool,
}

impl Ends {
    pub(super) fn new(
        source: Side,
        target: Side,
        (tell, events): (Sender<Event>, Receiver<Event>),
        within: bool,
    ) -> Self {
        Self { source, target, events, tell, begun: false, within }
    }

    /// The next event. A server that is there but does not begin to speak SFTP is not waited for:
    /// once it does, whether it lives is the connection's to find out.
    pub(super) fn event(&mut self) -> Event {
        if !std::mem::replace(&mut self.begun, true) {
            self.source.wait_for_its_word();
            self.target.wait_for_its_word();
        }
        let gone = |_| Event::Ended(Error::ended("the channel ended"));
        self.events.recv().unwrap_or_else(gone)
    }

    /// The same channels, to another target.
    pub(super) fn aimed(self, target: Side) -> Self {
        Self { target, ..self }
    }

    pub(super) fn side(&mut self, at: At) -> &mut Side {
        match at {
            At::Source => &mut self.source,
            At::Target => &mut self.target,
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
                    true => self.lost = Some(Fault::Broken("a lane waits for nothing".to_owned())),
                }
            }
        }
    }

    /// Takes what there is room for; waits for work only if it has none.
    fn fill(&mut self) -> Option<End> {
        let retire = self.retire.load(Ordering::Relaxed);
        self.flight.beside(self.copying.lanes(), self.block);
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
            Event::Answer { token, answer } => self.answered(token, told(answer)),
            Event::Unsent { token } => self.recall(token),
            Event::Room => {}
            Event::Ended(error) => self.lost = Some(Fault::from(error)),
        }
        if self.copying.limiter.is_some() {
            self.pump();
        }
    }

    /// The piece that this asked for never left: it is not among what may have arrived.
    fn recall(&mut self, token: u64) {
        if let Some(&(id, What::Moved { span, piece, .. } | What::Passed { span, piece, .. })) =
            self.asked.get(&token)
            && let Some(span) = self.files.get_mut(&id).and_then(|file| file.span(span))
        {
            span.recall(piece);
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
            self.answers.push_back((token, answer));
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
            What::Moved { span, piece, len } => self.moved(id, (span, piece, len), answer),
            What::Passed { span, piece, len } => self.passed(id, (span, piece, len), answer),
            What::SourceHashed { span } => self.hashed(id, span, At::Source, answer),
            What::TargetHashed { span } => self.hashed(id, span, At::Target, answer),
            What::XattrsTold => self.note_xattrs(id, answer),
            What::ReadBack { span, piece, at } => self.read_back(id, (span, piece, at), answer),
            what => self.stepped(id, &what, answer),
        }
    }

    /// An answer that the file's step waits for.
    fn stepped(&mut self, id: FileId, what: &What, answer: Answered) {
        let Some(file) = self.files.get_mut(&id) else { return };
        file.waits = file.waits.saturating_sub(1);
        match what {
            What::Looked => self.looked(id, answer),
            What::SourceOpened | What::TargetOpened | What::Cleared | What::Mapped => {
                self.opened(id, what, answer);
            }
            What::LinkRead | What::Linked | What::LinkSet => self.linked(id, what, answer),
            What::Placed => self.placed(id, answer),
            What::Restated => self.restated(id, answer),
            What::Measured => self.measured(id, answer),
            What::Mend(asked) => self.mending(id, *asked, answer),
            What::Summed => self.finish(id),
            What::XattrsNeeded => {
                self.note_xattrs(id, answer);
                self.finish(id);
            }
            _ => self.finishing(id, what, answer),
        }
    }

    /// The file cannot be copied: the only one who works on it tells.
    fn fail(&mut self, id: FileId, fault: Fault) {
        let Some(file) = self.files.get(&id) else { return };
        match &file.stage {
            Stage::New(_) => self.failed(id, fault),
            // Whole already: it is this lane's alone.
            Stage::Job(_) if file.spans.is_empty() => self.failed(id, fault),
            Stage::Job(job) => {
                let job = Arc::clone(job);
                let ends = file.spans.iter().map(|_| job.fail(fault.clone()));
                match ends.filter(|after| *after == After::Failed).count() {
                    0 => drop(self.leave(id)),
                    _ => self.failed(id, job.fault().unwrap_or(fault)),
                }
            }
        }
    }

    /// Closes what the lane has open of a file and forgets it.
    fn leave(&mut self, id: FileId) -> Option<File> {
        let mut file = self.files.remove(&id)?;
        for (at, open) in [(At::Source, file.source.take()), (At::Target, file.target.take())] {
            if let Some(open) = open {
                self.ask(at, Ask::Close(open), id, What::Whatever);
            }
        }
        Some(file)
    }

    /// The file has failed, and nobody else works on it. One that changed is read once more (F9).
    fn failed(&mut self, id: FileId, fault: Fault) {
        let Some(file) = self.leave(id) else { return };
        let entry = file.entry();
        let part = self.part_of(&file);
        if let Fault::Differs = fault {
            let again = Entry { differs: true, ..entry.clone() };
            return self.copying.queue.back(again);
        }
        if let (Fault::Changed(_), false) = (&fault, entry.reread) {
            let mut again = File::new(Stage::New(entry.clone()));
            again.old = file.old;
            let path = entry.from.clone();
            let id = self.add(again);
            self.remove_part(id, part);
            return self.ask_for(At::Source, Ask::Stat(path), id, What::Restated);
        }
        let changed = matches!(fault, Fault::Changed(_));
        if self.may_be_full(&fault) {
            let mut full = File::new(Stage::New(entry.clone()));
            full.fault = Some(fault);
            let directory = names::split(&entry.to).0.to_vec();
            let id = self.add(full);
            self.ask_for(At::Target, Ask::Statvfs(directory), id, What::Measured);
        } else {
            self.copying.failed(entry, &fault);
        }
        // Large parts are kept: once the cause is gone, the next run goes on with them.
        let kept = matches!(&file.stage, Stage::Job(job) if job.number.is_some());
        if !kept || changed {
            self.remove_part(id, part);
        }
    }

    /// Servers that say no more than "Failure" are asked whether there is room.
    fn may_be_full(&self, fault: &Fault) -> bool {
        matches!(fault, Fault::Other(_)) && self.ends.target.has().statvfs
    }

    /// How much room there is where a file failed.
    fn measured(&mut self, id: FileId, answer: Answered) {
        let Some(file) = self.files.remove(&id) else { return };
        let fault = file.fault.clone().unwrap_or(Fault::Missing);
        let room = match answer {
            Ok(Told::Extended(bytes)) => Statvfs::parse(&bytes).ok(),
            _ => None,
        };
        let full = room.is_some_and(|room| room.bavail.saturating_mul(room.frsize) < FULL);
        let fault = if full { Fault::Full("No space left on device".to_owned()) } else { fault };
        self.copying.failed(file.entry(), &fault);
    }

    fn remove_part(&mut self, id: FileId, part: Option<Vec<u8>>) {
        if let Some(part) = part {
            self.ask(At::Target, Ask::Remove(part), id, What::Whatever);
        }
    }

    /// The channel is gone: others do what this lane could not.
    fn give_everything_back(&mut self) {
        self.copying.report().retries += 1;
        for (_, batch) in std::mem::take(&mut self.batches) {
            for entry in batch.into_entries() {
                if self.ends.target.is_remote() {
                    self.copying.late().orphaned.push(entry.to.clone());
                }
                self.copying.queue.back(entry);
            }
        }
        for (_, file) in std::mem::take(&mut self.files) {
            self.give_back(file);
        }
    }

    fn give_back(&self, file: File) {
        if self.ends.target.is_remote() && !self.is_in_place(&file) {
            self.copying.late().orphaned.push(file.entry().to.clone());
        }
        match file.stage {
            Stage::New(entry) => self.copying.queue.back(entry),
            Stage::Job(job) if file.spans.is_empty() => {
                // Whole, and about to be put in place.
                if job.is_over() {
                    let placed = file.seen.1.filter(|_| file.placing).map(|meta| meta.identity());
                    self.back_whole(&job, placed);
                }
            }
            Stage::Job(job) => {
                let checks = self.proof.is_some_and(|p| p.can_check_later(&self.ends.source));
                for span in &file.spans {
                    let mut rest = span.rest(job.block);
                    if !checks {
                        let sent = if self.sends(Stand::Sent) { rest.sent.total() } else { 0 };
                        self.copying.report().wasted += sent;
                        rest.send_again();
                    }
                    match job.give_back(&rest) {
                        After::Going => self.copying.queue.share(&job),
                        After::Whole => self.back_whole(&job, None),
                        After::Failed => {
                            let fault = job.fault().unwrap_or(Fault::Missing);
                            self.copying.failed(&job.entry, &fault);
                        }
                    }
                }
            }
        }
    }

    /// A file of which every byte is there, for somebody else to put in place.
    fn back_whole(&self, job: &Job, placed: Option<Identity>) {
        let done = Ranges::of(0..job.entry.meta.size);
        let left = Some(Box::new(Left { done, placed }));
        self.copying.queue.back(Entry { left, ..job.entry.clone() });
    }
}
