//! Ledger: what is queued, what the server owes answers to, and why the channel ended. Shared by
//! the clients, the sending and the receiving thread; the lock is held for a few moves of memory,
//! never for I/O.

use super::asked::{Arriving, Expect, Get, Item, Owed, Waiting};
use super::facts::{Known, ServerFacts, Sizes};
use super::transfer::Sent;
use super::{Answer, Error, Event};
use crate::codec::{LinkOrder, Reply};
use std::collections::{HashMap, VecDeque};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Below so many unsent bytes there is room again, once there were twice as many.
const ROOM: u64 = 512 * 1024;

/// A put of which WRITEs are under way.
struct Writing {
    token: u64,
    under_way: u32,
    /// All WRITEs were sent that will be.
    cut: bool,
    sent: Sent,
    failed: Option<Error>,
}

struct State {
    queue: VecDeque<Item>,
    unsent: u64,
    crowded: bool,
    owed: HashMap<u32, Owed>,
    last_id: u32,
    puts: HashMap<u64, Writing>,
    last_put: u64,
    /// The sending thread waits for something to send.
    asleep: bool,
    /// Nobody can ask for more.
    abandoned: bool,
    ended: Option<Error>,
    /// The server has begun.
    greeted: bool,
}

/// What the three hands share.
pub(super) struct Shared {
    state: Mutex<State>,
    /// There is something to send, or will never be.
    more: Condvar,
    /// The facts are known, or will never be.
    told: Condvar,
    known: Known,
    events: Sender<Event>,
}

impl Shared {
    pub(super) fn new(events: Sender<Event>, known: Known) -> Self {
        let state = State {
            queue: VecDeque::new(),
            unsent: 0,
            crowded: false,
            owed: HashMap::new(),
            last_id: 0,
            puts: HashMap::new(),
            last_put: 0,
            asleep: false,
            abandoned: false,
            ended: None,
            greeted: false,
        };
        Self { state: Mutex::new(state), more: Condvar::new(), told: Condvar::new(), known, events }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Answers a token.
    fn answer(&self, token: u64, answer: Result<Answer, Error>) {
        // Nobody may be listening any more.
        let _ = self.events.send(Event::Answer { token, answer });
    }

    /// Answers a request.
    fn reply(&self, waiting: Waiting, reply: Result<Reply, Error>) {
        match waiting {
            Waiting::Token(token) => self.answer(token, reply.map(Answer::Reply)),
            Waiting::Caller(caller) => drop(caller.send(reply)),
            Waiting::Sizes => {}
        }
    }

    /// Says that bulk never left; its answer follows.
    fn tell_unsent(&self, item: &Item) {
        let token = match item {
            Item::Put(put) => put.token,
            Item::Get(get) => get.token,
            Item::Message(_) => return,
        };
        let _ = self.events.send(Event::Unsent { token });
    }

    /// Answers what never left.
    fn refuse(&self, item: Item, why: &Error) {
        match item {
            Item::Message(message) => self.reply(message.waiting, Err(why.clone())),
            Item::Put(put) => self.answer(put.token, Err(why.clone())),
            Item::Get(get) => self.answer(get.token, Err(why.clone())),
        }
    }

    /// How the server wants the arguments of SYMLINK.
    pub(super) fn links(&self) -> LinkOrder {
        self.known.links()
    }

    // ---- asking: any thread

    /// Queues at the end; after the channel's end the answer comes at once.
    pub(super) fn ask(&self, item: Item) {
        let mut state = self.lock();
        if let Some(why) = &state.ended {
            self.tell_unsent(&item);
            return self.refuse(item, why);
        }
        state.add(item, false);
        self.wake(state);
    }

    /// Queues ahead of everything else.
    pub(super) fn ask_first(&self, item: Item) {
        let mut state = self.lock();
        if let Some(why) = &state.ended {
            return self.refuse(item, why);
        }
        state.add(item, true);
        self.wake(state);
    }

    fn wake(&self, mut state: MutexGuard<'_, State>) {
        if std::mem::take(&mut state.asleep) {
            drop(state);
            self.more.notify_all();
        }
    }

    pub(super) fn unsent(&self) -> u64 {
        self.lock().unsent
    }

    pub(super) fn sizes(&self) -> Sizes {
        self.known.get().map_or_else(Sizes::default, |facts| facts.sizes)
    }

    /// What the server can do, once it said so.
    pub(super) fn facts(&self, patience: Duration) -> Result<&ServerFacts, Error> {
        self.wait_until(patience, |_| self.known.get().is_some())?;
        self.known.get().ok_or_else(|| Error::silent(patience))
    }

    /// Waits until the server has begun.
    pub(super) fn greeted(&self, patience: Duration) -> Result<(), Error> {
        self.wait_until(patience, |state| state.greeted)
    }

    /// A server that takes longer than `patience` for it has ended the channel.
    fn wait_until(&self, patience: Duration, what: impl Fn(&State) -> bool) -> Result<(), Error> {
        let not_yet = |state: &mut State| !what(state) && state.ended.is_none();
        let waited = self.told.wait_timeout_while(self.lock(), patience, not_yet);
        let state = waited.unwrap_or_else(PoisonError::into_inner).0;
        if what(&state) {
            return Ok(());
        }
        let why = state.ended.clone().unwrap_or_else(|| Error::silent(patience));
        drop(state);
        self.end(why.clone());
        Err(why)
    }

    /// The server's VERSION came.
    pub(super) fn greet(&self) {
        self.lock().greeted = true;
        self.told.notify_all();
    }

    /// The last client is gone: what is queued is still sent.
    pub(super) fn abandon(&self) {
        let mut state = self.lock();
        state.abandoned = true;
        self.wake(state);
    }

    // ---- sending: one thread

    /// Waits until there is something to send; false is the end.
    pub(super) fn wait(&self) -> bool {
        let mut state = self.lock();
        loop {
            if state.ended.is_some() {
                return false;
            }
            if !state.queue.is_empty() {
                return true;
            }
            if state.abandoned && state.owed.is_empty() {
                return false;
            }
            state.asleep = true;
            state = self.more.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.asleep = false;
        }
    }

    pub(super) fn is_ended(&self) -> bool {
        self.lock().ended.is_some()
    }

    /// The next thing to send.
    pub(super) fn take(&self) -> Option<Item> {
        let mut state = self.lock();
        let item = state.queue.pop_front()?;
        state.unsent = state.unsent.saturating_sub(match &item {
            // Counted while it is cut.
            Item::Put(_) => 0,
            item => item.unsent(),
        });
        self.tell_room(&mut state);
        Some(item)
    }

    fn tell_room(&self, state: &mut State) {
        if state.crowded && state.unsent < ROOM {
            state.crowded = false;
            let _ = self.events.send(Event::Room);
        }
    }

    /// An id for something that leaves now; none after the end, when it was answered already.
    pub(super) fn owe(&self, owed: Owed) -> Option<u32> {
        let mut state = self.lock();
        if let Some(why) = state.ended.clone() {
            drop(state);
            self.fail(owed, &why);
            return None;
        }
        let id = state.free_id();
        state.owed.insert(id, owed);
        Some(id)
    }

    /// A put begins: its number. None after the end, when it was answered.
    pub(super) fn begin_put(&self, token: u64, len: u64) -> Option<u64> {
        let mut state = self.lock();
        if let Some(why) = state.ended.clone() {
            self.answer(token, Err(why));
            return None;
        }
        state.last_put += 1;
        let number = state.last_put;
        let sent = Sent { len, hash: None };
        state.puts.insert(number, Writing { token, under_way: 0, cut: false, sent, failed: None });
        Some(number)
    }

    /// A WRITE of `len` bytes leaves: its id. None if the put has failed or the channel ended, so
    /// that the rest need not be sent.
    pub(super) fn owe_write(&self, put: u64, len: u64) -> Option<u32> {
        let mut state = self.lock();
        let id = state.free_id();
        let writing = state.puts.get_mut(&put).filter(|writing| writing.failed.is_none())?;
        writing.under_way += 1;
        state.owed.insert(id, Owed::Write(put));
        state.unsent = state.unsent.saturating_sub(len);
        self.tell_room(&mut state);
        Some(id)
    }

    /// No more WRITEs follow: all of it left, or why it did not. `left` bytes were not sent.
    pub(super) fn end_put(&self, put: u64, left: u64, result: Result<Option<[u8; 32]>, Error>) {
        let mut state = self.lock();
        state.unsent = state.unsent.saturating_sub(left);
        self.tell_room(&mut state);
        let Some(writing) = state.puts.get_mut(&put) else { return };
        writing.cut = true;
        match result {
            Ok(hash) => writing.sent.hash = hash,
            Err(why) => {
                writing.failed.get_or_insert(why);
            }
        }
        self.settle_put(&mut state, put);
    }

    fn settle_put(&self, state: &mut State, put: u64) {
        let over = |writing: &Writing| writing.cut && writing.under_way == 0;
        if !state.puts.get(&put).is_some_and(over) {
            return;
        }
        if let Some(Writing { token, sent, failed, .. }) = state.puts.remove(&put) {
            self.answer(token, failed.map_or(Ok(Answer::Sent(sent)), Err));
        }
    }

    // ---- receiving: one thread

    /// What an answer with this id is the answer to.
    pub(super) fn settle(&self, id: u32) -> Option<Owed> {
        self.lock().owed.remove(&id)
    }

    /// DATA with this id begins to arrive; what it is for is owed until all of it is there.
    pub(super) fn arriving(&self, id: u32) -> Option<Arriving> {
        let mut state = self.lock();
        let owed = state.owed.get_mut(&id)?;
        match owed {
            Owed::Request(Expect::Data, _) => Some(Arriving::Reply),
            Owed::Read(get) => {
                let token = get.token;
                match std::mem::replace(owed, Owed::Arriving(token)) {
                    Owed::Read(get) => Some(Arriving::Bulk(get)),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// All data of a READ is in: done, or the rest is asked for.
    pub(super) fn arrived(&self, id: u32, get: Box<Get>) {
        if self.settle(id).is_none() {
            return;
        }
        if get.got.len < get.len && get.failed.is_none() {
            self.ask_first(Item::Get(get));
        } else {
            self.got(*get);
        }
    }

    /// A get is over.
    pub(super) fn got(&self, get: Get) {
        let Get { token, mut got, hasher, failed, .. } = get;
        got.hash = hasher.map(|hasher| hasher.finalize().into());
        self.answer(token, failed.map_or(Ok(Answer::Got(got)), Err));
        self.rest();
    }

    /// The answer to a WRITE.
    pub(super) fn written(&self, put: u64, result: Result<(), Error>) {
        let mut state = self.lock();
        let Some(writing) = state.puts.get_mut(&put) else { return };
        writing.under_way = writing.under_way.saturating_sub(1);
        if let Err(why) = result {
            writing.failed.get_or_insert(why);
        }
        self.settle_put(&mut state, put);
        drop(state);
        self.rest();
    }

    /// The answer to a request.
    pub(super) fn replied(&self, waiting: Waiting, reply: Result<Reply, Error>) {
        self.reply(waiting, reply);
        self.rest();
    }

    /// The sending thread ends with the last answer once nobody can ask for more.
    fn rest(&self) {
        let state = self.lock();
        if state.abandoned && state.owed.is_empty() {
            self.wake(state);
        }
    }

    /// Whether another channel heard what the server can do.
    pub(super) fn is_known(&self) -> bool {
        self.known.get().is_some()
    }

    /// Everything about the server is known.
    pub(super) fn know(&self, facts: ServerFacts) {
        let state = self.lock();
        self.known.set(facts);
        drop(state);
        self.told.notify_all();
    }

    /// The channel is over: everything that waits gets its answer. The first reason counts.
    pub(super) fn end(&self, why: Error) {
        let mut state = self.lock();
        if state.ended.is_some() {
            return;
        }
        state.ended = Some(why.clone());
        let queue = std::mem::take(&mut state.queue);
        let owed = std::mem::take(&mut state.owed);
        let puts = std::mem::take(&mut state.puts);
        state.unsent = 0;
        // All of them before the first answer, which may be the last that anybody reads.
        queue.iter().for_each(|item| self.tell_unsent(item));
        queue.into_iter().for_each(|item| self.refuse(item, &why));
        owed.into_values().for_each(|owed| self.fail(owed, &why));
        puts.into_values().for_each(|put| {
            self.answer(put.token, Err(put.failed.unwrap_or_else(|| why.clone())));
        });
        let _ = self.events.send(Event::Ended(why));
        drop(state);
        self.more.notify_all();
        self.told.notify_all();
    }

    fn fail(&self, owed: Owed, why: &Error) {
        match owed {
            Owed::Request(_, waiting) => self.reply(waiting, Err(why.clone())),
            // Its put is answered as a whole.
            Owed::Write(_) => {}
            Owed::Read(get) => self.answer(get.token, Err(why.clone())),
            Owed::Arriving(token) => self.answer(token, Err(why.clone())),
        }
    }
}

impl State {
    fn add(&mut self, item: Item, first: bool) {
        self.unsent += item.unsent();
        self.crowded |= self.unsent >= 2 * ROOM;
        if first { self.queue.push_front(item) } else { self.queue.push_back(item) }
    }

    fn free_id(&mut self) -> u32 {
        loop {
            self.last_id = self.last_id.wrapping_add(1);
            if !self.owed.contains_key(&self.last_id) {
                return self.last_id;
            }
        }
    }
}

/// Ends a channel from outside of it, for whoever drives it and knows why it ended. Not a client:
/// holding one does not keep a channel open.
#[derive(Clone)]
pub struct Ender(pub(super) Arc<Shared>);

impl Ender {
    /// The channel is over: every token that waits is answered with `why`, once; the first reason
    /// counts.
    pub fn end(&self, why: Error) {
        self.0.end(why);
    }
}
