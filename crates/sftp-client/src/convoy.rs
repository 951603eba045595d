//! The small files of a tree, many under way at once on the one channel.
//!
//! ```text
//! begin     a file's first request leaves as soon as there is room for it
//! then      what is to be done when all that began before has ended: a line, a directory's times
//! drain     waits for all of it
//! ```
//! A small file costs three round trips and hardly any time on the path; one after the other they
//! would leave it idle. They begin in the order of the tree, and end in it: messages, meters and
//! directories come as if one file went after the other.

use crate::failure::{Failure, Result};
use crate::session::Session;
use crate::transfer::Mover;
use sftp::client::{Answer, Error, Event};
use std::collections::{HashMap, VecDeque};

/// Most files under way.
const MOST_FILES: usize = 64;

/// Most bytes of files under way: the window of a path of 1 Gbit/s and 64 ms.
const MOST_BYTES: u64 = 8 << 20;

/// Most that waits for its turn, files or not: two steps for each directory, which keeps a
/// descriptor until the last of them.
const LONGEST: usize = 256;

/// The largest file that travels in company; a larger one fills the path by itself.
pub(crate) const SMALL: u64 = 256 << 10;

/// A file on its way, as the answers to its requests move it on.
pub(crate) trait Journey {
    /// An answer to a request of its own; the tokens of those that follow from it.
    fn answered(
        &mut self,
        mover: &mut Mover,
        token: u64,
        answer: std::result::Result<Answer, Error>,
    ) -> Vec<u64>;

    /// Nothing of it is under way any more.
    fn has_ended(&self) -> bool;

    /// Bytes that it moves.
    fn size(&self) -> u64;

    /// What is left to be done here, and what it came to.
    fn finish(self: Box<Self>, session: &Session) -> Result<()>;
}

/// What is to be done in its turn.
type Step = Box<dyn FnOnce(&Session) -> Result<()>>;

enum Item {
    File(Box<dyn Journey>),
    Then(Step),
}

/// What began, in order.
#[derive(Default)]
pub(crate) struct Convoy {
    line: VecDeque<Item>,
    /// The number of the first in `line`.
    first: u64,
    /// Whose tokens these are, by number.
    owners: HashMap<u64, u64>,
    files: usize,
    bytes: u64,
    failed: bool,
}

impl Convoy {
    /// Waits until there is room for a file of `size` bytes, which leaves now.
    pub(crate) fn make_room(&mut self, session: &mut Session, size: u64) -> Result<()> {
        while self.files >= MOST_FILES
            || (self.files > 0 && self.bytes + size > MOST_BYTES)
            || self.line.len() >= LONGEST
        {
            self.advance(session)?;
        }
        while let Some(pause) = session.mover.pause() {
            if let Some(event) = session.mover.event_within(pause) {
                self.happened(session, event)?;
            }
        }
        session.mover.charge(size);
        Ok(())
    }

    /// A file has begun: `token` is that of its first request.
    pub(crate) fn begin(&mut self, journey: Box<dyn Journey>, token: u64) {
        self.owners.insert(token, self.first + self.line.len() as u64);
        self.files += 1;
        self.bytes += journey.size();
        self.line.push_back(Item::File(journey));
    }

    /// To be done in its turn.
    pub(crate) fn then(
        &mut self,
        session: &mut Session,
        what: impl FnOnce(&Session) -> Result<()> + 'static,
    ) -> Result<()> {
        self.line.push_back(Item::Then(Box::new(what)));
        self.settle(session)?;
        while self.line.len() >= LONGEST {
            self.advance(session)?;
        }
        Ok(())
    }

    /// A step's failure, told in its turn. Only the loss of the server is handed on.
    pub(crate) fn note(&mut self, session: &mut Session, step: Result<()>) -> Result<()> {
        match step {
            Ok(()) => Ok(()),
            Err(lost @ Failure::Lost(_)) => Err(lost),
            Err(failure) => self.then(session, |_| Err(failure)),
        }
    }

    /// Waits for all that began; whether anything failed.
    pub(crate) fn drain(&mut self, session: &mut Session) -> Result<bool> {
        while !self.line.is_empty() {
            self.advance(session)?;
        }
        Ok(self.failed)
    }

    /// Waits for all of a tree that was walked; the outcome of both.
    pub(crate) fn end(mut self, session: &mut Session, walked: Result<()>) -> Result<()> {
        self.note(session, walked)?;
        if self.drain(session)? { Err(Failure::Told) } else { Ok(()) }
    }

    /// Waits for something to happen.
    fn advance(&mut self, session: &mut Session) -> Result<()> {
        self.settle(session)?;
        if self.owners.is_empty() {
            return Ok(());
        }
        let event = session.mover.event();
        self.happened(session, event)
    }

    fn happened(&mut self, session: &mut Session, event: Event) -> Result<()> {
        match event {
            Event::Answer { token, answer } => self.answered(session, token, answer),
            Event::Room | Event::Unsent { .. } => {}
            // Every token had its answer before.
            Event::Ended(error) => return Err(Failure::asked("transfer", &error)),
        }
        self.settle(session)
    }

    fn answered(
        &mut self,
        session: &mut Session,
        token: u64,
        answer: std::result::Result<Answer, Error>,
    ) {
        let Some(owner) = self.owners.remove(&token) else { return };
        let place = usize::try_from(owner.saturating_sub(self.first)).unwrap_or(usize::MAX);
        if let Some(Item::File(journey)) = self.line.get_mut(place) {
            let next = journey.answered(&mut session.mover, token, answer);
            self.owners.extend(next.into_iter().map(|token| (token, owner)));
        }
    }

    /// Takes from the front what has ended.
    fn settle(&mut self, session: &mut Session) -> Result<()> {
        loop {
            match self.line.front() {
                None => return Ok(()),
                Some(Item::File(journey)) if !journey.has_ended() => return Ok(()),
                Some(_) => {}
            }
            let Some(item) = self.line.pop_front() else { return Ok(()) };
            self.first += 1;
            let outcome = match item {
                Item::Then(what) => what(session),
                Item::File(journey) => {
                    self.files -= 1;
                    self.bytes -= journey.size();
                    journey.finish(session)
                }
            };
            if let Err(failure) = outcome {
                self.failed = true;
                failure.tell()?;
            }
        }
    }
}
