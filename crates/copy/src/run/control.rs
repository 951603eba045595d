//! Control: a channel of its own for what is not a file: the scan, and what is done at the end.
//! Questions are under way together; when the channel breaks, those without an answer are asked
//! again on a new one.

use super::copying::Copying;
use super::lane::{At, Ends};
use super::names::Listing;
use super::retry::{Backoff, chance};
use super::route::{Route, Slot, Trouble};
use super::side::{Answered, Ask, Fault, Open, Side, Told, told};
use sftp::client::Event;
use std::collections::{BTreeMap, VecDeque};

/// Questions under way.
pub(super) const UNDER_WAY: usize = 64;

pub(super) struct Control<'a> {
    route: &'a Route,
    slot: &'a Slot,
    pub(super) ends: Ends,
    answers: VecDeque<(u64, Answered)>,
    asked: BTreeMap<u64, (At, Ask)>,
    next: u64,
    backoff: Backoff,
    /// It has had an answer: what breaks now was good before, and may be again (R4).
    answered: bool,
    /// There will be none any more, for this reason.
    over: Option<String>,
    /// Handles of before it broke are no handles any more.
    pub(super) broke: u32,
}

impl<'a> Control<'a> {
    pub(super) fn open(route: &'a Route, slot: &'a Slot) -> Result<Self, Trouble> {
        Ok(Self { answered: false, ..Self::with(slot.open(route)?, route, slot) })
    }

    /// On a channel that was good for something before.
    pub(super) fn with(ends: Ends, route: &'a Route, slot: &'a Slot) -> Self {
        Self {
            route,
            slot,
            ends,
            answers: VecDeque::new(),
            asked: BTreeMap::new(),
            next: 0,
            backoff: Backoff::default(),
            answered: true,
            over: None,
            broke: 0,
        }
    }

    /// Whether more should be asked before answers are read.
    pub(super) fn has_room(&self) -> bool {
        self.answers.is_empty() && self.asked.len() < UNDER_WAY
    }

    /// Asks; the answer comes from [`Control::answer`] with the token.
    pub(super) fn ask(&mut self, at: At, ask: Ask) -> u64 {
        self.next += 1;
        let token = self.next;
        match self.ends.side(at).ask(ask.clone(), token) {
            Some(answer) => self.answers.push_back((token, answer)),
            None => drop(self.asked.insert(token, (at, ask))),
        }
        token
    }

    /// The next answer; `None` if nothing was asked.
    pub(super) fn answer(&mut self) -> Option<(u64, Answered)> {
        loop {
            if let Some(answer) = self.answers.pop_front() {
                return Some(answer);
            }
            if self.asked.is_empty() {
                return None;
            }
            match self.ends.event() {
                Event::Answer { token, answer } => match told(answer) {
                    Err(Fault::Lost(why)) => self.again(why),
                    Err(Fault::Broken(why)) => self.give_up(&why),
                    answer => {
                        if self.asked.remove(&token).is_some() {
                            self.backoff.succeeded();
                            self.answered = true;
                            return Some((token, answer));
                        }
                    }
                },
                Event::Room | Event::Unsent { .. } => {}
                Event::Ended(error) => self.again(error.to_string()),
            }
        }
    }

    /// Asks and waits for this one answer; nothing else may be under way.
    pub(super) fn call(&mut self, at: At, ask: Ask) -> Answered {
        let token = self.ask(at, ask);
        match self.answer() {
            Some((same, answer)) if same == token => answer,
            _ => Err(Fault::internal("an answer to no question")),
        }
    }

    /// Names in a directory of another host, `most` at most. F1: each is one component and comes once.
    /// F6: an answer without names is none, and the end of the listing.
    pub(super) fn list(
        &mut self,
        at: At,
        directory: &[u8],
        most: usize,
    ) -> Result<Vec<Vec<u8>>, Fault> {
        let Told::Open(open) = self.call(at, Ask::Opendir(directory.to_vec()))? else {
            return Err(Fault::Missing);
        };
        let found = self.names(at, &open, most);
        if self.over.is_none() {
            let _ = self.call(at, Ask::Close(open));
        }
        found
    }

    fn names(&mut self, at: At, open: &Open, most: usize) -> Result<Vec<Vec<u8>>, Fault> {
        let (mut listing, mut found) = (Listing::default(), Vec::new());
        loop {
            let names = match self.call(at, Ask::Readdir(open.clone())) {
                Ok(Told::Names(names)) if !names.is_empty() => names,
                Ok(_) | Err(Fault::End) => return Ok(found),
                Err(fault) => return Err(fault),
            };
            for name in names {
                let admit = listing.admit(&name.name);
                if admit.map_err(|bad| Fault::other(bad.to_string()))? {
                    found.push(name.name);
                }
            }
            if found.len() > most {
                return Err(Fault::other(format!("more than {most} names in one directory")));
            }
        }
    }

    /// Commands of the target's host begin elsewhere than its sftp, perhaps: where that begins.
    pub(super) fn tell_start(&mut self, copying: &Copying<'_>) {
        let Some(sums) = copying.sums.as_ref().filter(|_| !self.ends.target.has().hashes) else {
            return;
        };
        if let Ok(Told::Names(names)) = self.call(At::Target, Ask::Realpath(b".".to_vec())) {
            names.into_iter().take(1).for_each(|start| sums.starts_in(start.name));
        }
    }

    /// Why there are no answers any more, if there are none.
    pub(super) fn over(&self) -> Option<&str> {
        self.over.as_deref()
    }

    /// A new channel, and every question once more. A server that never answered at all is told of
    /// at once.
    fn again(&mut self, mut why: String) {
        while self.answered
            && let Some(wait) = self.backoff.next(chance())
        {
            std::thread::sleep(wait);
            match self.slot.open(self.route) {
                Ok(mut ends) => {
                    if let Side::Below(_) = self.ends.target {
                        // What this host has to bring to its disk did not break.
                        std::mem::swap(&mut ends.target, &mut self.ends.target);
                    }
                    self.ends = ends;
                    self.broke += 1;
                    for (token, (at, ask)) in std::mem::take(&mut self.asked) {
                        match ask.names_a_handle() {
                            true => {
                                let lost = Fault::Lost("the connection broke".to_owned());
                                self.answers.push_back((token, Err(lost)));
                            }
                            false => {
                                self.ends.side(at).ask(ask.clone(), token);
                                self.asked.insert(token, (at, ask));
                            }
                        }
                    }
                    return;
                }
                Err(trouble @ (Trouble::Never(_) | Trouble::Directory(..))) => {
                    why = trouble.words();
                    break;
                }
                Err(trouble) => why = trouble.words(),
            }
        }
        self.give_up(&why);
    }

    /// There will be no answers.
    fn give_up(&mut self, why: &str) {
        self.over.get_or_insert_with(|| why.to_owned());
        let none = |(token, _)| (token, Err(Fault::Broken(why.to_owned())));
        self.answers.extend(std::mem::take(&mut self.asked).into_iter().map(none));
    }
}
