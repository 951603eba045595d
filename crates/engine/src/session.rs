//! Session: what the threads of a logged-in connection share, and how they are started.
//!
//! ```text
//! rx        one   receives, opens, writes to sinks, drives the state machine     (rx)
//! source    each  reads, stages, seals, writes                                   (source)
//! tx        one   writes what others may not wait for; asleep otherwise          (tx)
//! workers   0..N  seal and open, where cores are idle                            (workers)
//! ```
//! Shared state is touched once per batch, never per packet.

use crate::error::Error;
use crate::fd::Fd;
use crate::figures::{Figures, Hand, Ledger};
use crate::line::{self, BATCH};
use crate::link::Link;
use crate::pace::Pace;
use crate::receiver::Receiver;
use crate::source::{self, Sender, Source, SourceEnd};
use crate::sync::{Arc, Lock};
use crate::tune::SendBuffer;
use crate::tx::{Flush, Tx};
use crate::workers::Workers;
use packet::Batch;
use proto::channel::{Grant, LocalId};
use proto::window::Rule;
use proto::{Connection, Effect, Event, Outbox, RekeyLimit};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;
use wire::msg;

/// Most data the peer may put into one message: larger than the 32 KiB most send costs nothing.
pub const MAX_DATA: u32 = 128 * 1024;

/// When the key exchange that is running began, by our KEXINIT; it ends with the peer's NEWKEYS.
/// Meanwhile packets are opened one by one.
#[derive(Debug, Default)]
struct Exchange(Lock<Option<Instant>>);

impl Exchange {
    /// To be told in the machine's order, so under its lock: another thread may start the next
    /// exchange as soon as this one is over.
    fn follow(&self, effect: &Effect) {
        match effect {
            Effect::Fence => *self.0.lock() = Some(Instant::now()),
            Effect::OpenWith(_) => *self.0.lock() = None,
            Effect::Send(_) | Effect::SealWith(_) | Effect::Deflate | Effect::Inflate => {}
        }
    }

    fn began(&self) -> Option<Instant> {
        *self.0.lock()
    }
}

pub(crate) struct Shared {
    tx: Arc<Tx>,
    fd: Arc<Fd>,
    connection: Lock<Connection>,
    senders: Lock<Vec<Arc<Sender>>>,
    /// Events of calls made outside the receiving thread.
    pub(crate) late: Lock<Vec<Event>>,
    exchange: Exchange,
    workers: Option<Workers>,
    send_buffer: Lock<SendBuffer>,
    pace: Lock<Pace>,
    /// Bytes of a batch, as `pace` found them.
    quantum: AtomicUsize,
    /// There is more than one channel, and a command or a user has one.
    company: AtomicBool,
    /// Data goes to the socket without coming by.
    passes: AtomicBool,
}

/// A logged-in connection; clones are the same one.
#[derive(Clone)]
pub struct Session(pub(crate) Arc<Shared>);

/// How a session's pipeline is laid out.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// Threads that only seal and open; 0 folds everything into sources and receiver.
    pub workers: usize,
    /// How much and how long a key may serve.
    pub rekey: RekeyLimit,
}

impl Session {
    /// Takes over a logged-in link; the receiving half is for [`crate::rx::Rx`].
    pub(crate) fn start(
        link: Link,
        connection: Connection,
        plan: Plan,
        send_buffer: SendBuffer,
    ) -> Result<(Self, Receiver), Error> {
        let (tx, mut receiver) = link.into_halves();
        tx.set_rekey_limit(plan.rekey);
        receiver.set_rekey_limit(plan.rekey);
        let workers = (plan.workers > 0)
            .then(|| Workers::start(plan.workers, &tx))
            .transpose()
            .map_err(|e| Error::Local("start a thread", e))?;
        tx.ledger().workers.set(plan.workers as u64);
        let shared = Shared {
            fd: Arc::clone(receiver.fd()),
            tx,
            connection: Lock::new(connection),
            senders: Lock::new(Vec::new()),
            late: Lock::new(Vec::new()),
            exchange: Exchange::default(),
            workers,
            send_buffer: Lock::new(send_buffer),
            pace: Lock::new(Pace::new()),
            quantum: AtomicUsize::new(BATCH),
            company: AtomicBool::new(false),
            passes: AtomicBool::new(false),
        };
        let session = Self(Arc::new(shared));
        let tx = Arc::clone(&session.0.tx);
        spawn("tx", move || {
            // The receiver meets the same failure and reports it.
            let _ = tx.run();
        })?;
        Ok((session, receiver))
    }

    pub(crate) fn tx(&self) -> &Tx {
        &self.0.tx
    }

    pub(crate) fn fd(&self) -> &Fd {
        &self.0.fd
    }

    pub(crate) fn workers(&self) -> Option<&Workers> {
        self.0.workers.as_ref()
    }

    /// Calls into the connection's state machine and carries out what it asks for. Events go to
    /// the receiving thread. Not for the receiving thread itself, which must not wait.
    pub fn call<T>(
        &self,
        f: impl FnOnce(&mut Connection, &mut Outbox) -> Result<T, proto::Error>,
    ) -> Result<T, Error> {
        let mut outbox = Outbox::new();
        let value = self.stage_call(&mut outbox, f)?;
        self.0.late.lock().append(&mut outbox.events);
        self.tx().flush(Flush::Wait)?;
        Ok(value)
    }

    /// The same without writing; new opening keys, if any, stay in the outbox.
    pub(crate) fn stage_call<T>(
        &self,
        outbox: &mut Outbox,
        f: impl FnOnce(&mut Connection, &mut Outbox) -> Result<T, proto::Error>,
    ) -> Result<T, Error> {
        // The lock is held while staging, so that messages leave in the machine's order.
        let mut connection = self.0.connection.lock();
        let value = f(&mut connection, outbox);
        for effect in std::mem::take(&mut outbox.effects) {
            if let Some(kept) = self.carry_out(effect)? {
                outbox.effects.push(kept);
            }
        }
        Ok(value?)
    }

    fn carry_out(&self, effect: Effect) -> Result<Option<Effect>, Error> {
        self.0.exchange.follow(&effect);
        match effect {
            Effect::Fence => self.tx().fence(),
            Effect::Send(payload) => {
                if payload.first() == Some(&msg::CHANNEL_CLOSE) {
                    // Before it is staged: what asks now is staged before it, or not at all.
                    let senders = self.0.senders.lock();
                    senders.iter().filter(|s| s.is_closed_by(&payload)).for_each(|s| s.finish());
                }
                self.tx().message(&payload)?;
            }
            Effect::SealWith(new) => {
                self.tx().rekey(&new)?;
            }
            Effect::Deflate => self.tx().deflate(),
            begin @ Effect::Inflate => return Ok(Some(begin)),
            keys @ Effect::OpenWith(_) => {
                // What became due while the exchange ran was not started: ask again.
                self.tx().exchanged();
                return Ok(Some(keys));
            }
        }
        Ok(None)
    }

    /// Whether a key exchange is running: what comes may need a key that is not there yet.
    pub(crate) fn is_exchanging(&self) -> bool {
        self.exchanging_since().is_some()
    }

    /// When our KEXINIT of the running key exchange was staged.
    pub(crate) fn exchanging_since(&self) -> Option<Instant> {
        self.0.exchange.began()
    }

    /// A larger receive buffer for the connection, as far as the kernel or a privilege allows; how
    /// large TCP's window can be now, in bytes. `None` where there is no TCP.
    pub fn grow_receive_buffer(&self, bytes: u64) -> Option<u64> {
        sys::grow_receive_buffer(self.fd(), usize::try_from(bytes).unwrap_or(usize::MAX))
    }

    /// Bytes of channel data that sources have handed over so far.
    pub fn sent(&self) -> u64 {
        self.ledger().sent.bytes.get()
    }

    /// What the connection did so far, and what it waited for. Asks the kernel: not for loops.
    pub fn figures(&self) -> Figures {
        self.ledger().figures(self.fd())
    }

    /// The transport, to look at.
    pub fn transport<T>(&self, look: impl FnOnce(&proto::Transport) -> T) -> T {
        look(self.0.connection.lock().transport())
    }

    pub(crate) fn ledger(&self) -> &std::sync::Arc<Ledger> {
        self.tx().ledger()
    }

    /// Sends one bulk batch with so many bytes of data, sealed here or by a worker, unless nobody
    /// wants data with this code any more; whether it was sent.
    pub(crate) fn send(
        &self,
        sender: &Sender,
        code: Option<u32>,
        mut batch: Batch,
        data: usize,
        hand: &Hand,
    ) -> Result<bool, Error> {
        let bulk = line::is_bulk(&batch);
        let staged = self.tx().stage(&mut batch, || !sender.refuses(code), &hand.queue)?;
        let Some((ticket, rekey_due)) = staged else {
            self.tx().give_back(batch);
            return Ok(false);
        };
        let clear = if ticket.is_clear() { data as u64 } else { 0 };
        match self.workers() {
            Some(workers) => hand.queue.time(|| workers.seal(ticket, batch)),
            None => {
                let place = ticket.place();
                hand.crypto.time(|| self.tx().seal(ticket, batch))?;
                hand.socket.time(|| self.tx().flush_own(place))?;
            }
        }
        hand.bytes.add(data as u64);
        self.ledger().sent.clear.add(clear);
        self.ledger().sent.moved(data as u64, Instant::now());
        // Another source that is looking already does it for all.
        if let Some(mut buffer) = self.0.send_buffer.try_lock() {
            buffer.look(self.fd());
        }
        self.keep_pace(bulk);
        if rekey_due {
            self.call(|connection, out| connection.rekey(out))?;
        }
        Ok(true)
    }

    /// Whether data may go from its descriptor to the socket without coming by.
    pub(crate) fn passes(&self) -> bool {
        let passes = self.fd().is_socket() && self.tx().is_bare();
        if passes {
            self.never_wait();
        }
        passes
    }

    /// Before data goes between the socket and a pipe within the kernel.
    pub(crate) fn never_wait(&self) {
        // Whoever sees the mark finds it done; twice does no harm.
        if !self.0.passes.load(Ordering::Acquire) {
            self.fd().never_wait();
            self.0.passes.store(true, Ordering::Release);
        }
    }

    /// Batches of the size, and a rate, that this path and its channels call for. What was just
    /// sent is `bulk`, or somebody types.
    fn keep_pace(&self, bulk: bool) {
        let company = self.0.company.load(Ordering::Relaxed);
        let Some(mut pace) = self.0.pace.try_lock() else { return };
        if company {
            pace.sent(bulk);
        }
        if let Some(quantum) = pace.look(self.fd(), company) {
            self.0.quantum.store(quantum, Ordering::Relaxed);
            self.tx().set_quantum(quantum);
        }
    }

    /// Most bytes that a source should put into a batch now.
    pub(crate) fn quantum(&self) -> usize {
        self.0.quantum.load(Ordering::Relaxed)
    }

    /// Starts sending `source` on channel `id`, as extended data if there is a `code`; `ended`
    /// runs on the source's thread. EOF is not sent: other streams may still run.
    pub fn start_source(
        &self,
        id: LocalId,
        mut source: Source,
        code: Option<u32>,
        ended: impl FnOnce(&Session, SourceEnd) + Send + 'static,
    ) -> Result<(), Error> {
        let Some(sender) = self.sender(id) else { return Ok(()) };
        if let Source::Fd(_) = source {
            sender.set_outside();
            self.look_for_company();
        }
        let session = self.clone();
        spawn("source", move || {
            let end = source::run(&session, &sender, &mut source, code);
            drop(source);
            ended(&session, end);
        })
    }

    /// Asks for a session channel; `Event::Opened` or `OpenFailed` answers.
    pub fn open_session(&self, rule: Rule) -> Result<LocalId, Error> {
        self.call(|connection, out| connection.open_session(rule.initial(), MAX_DATA, out))
    }

    /// Asks the peer for a connection to `host` and `port`, as it reaches them; answered in the same
    /// way.
    pub fn open_direct_tcpip(&self, rule: Rule, host: &str, port: u16) -> Result<LocalId, Error> {
        self.call(|connection, out| {
            connection.open_direct_tcpip(host, port, rule.initial(), MAX_DATA, out)
        })
    }

    /// From now on the receiving thread keeps this channel's window; what is left of it.
    pub(crate) fn route(&self, id: LocalId) -> u32 {
        self.0.connection.lock().route(id).unwrap_or(0)
    }

    pub(crate) fn opened(&self, id: LocalId, grant: Grant) {
        self.ledger().sent.window.raise(grant.window.into());
        self.0.senders.lock().push(Arc::new(Sender::new(id, grant)));
        self.look_for_company();
    }

    pub(crate) fn sender(&self, id: LocalId) -> Option<Arc<Sender>> {
        self.0.senders.lock().iter().find(|s| s.id == id).map(Arc::clone)
    }

    /// The channel's sources stop before their next batch.
    pub fn stop_sources(&self, id: LocalId) {
        if let Some(sender) = self.sender(id) {
            sender.close();
        }
    }

    /// The same, for the source without a code alone: what the peer says when nobody reads standard
    /// output any more (`eow@openssh.com`). That of standard error goes on.
    pub fn stop_output(&self, id: LocalId) {
        if let Some(sender) = self.sender(id) {
            sender.close_output();
        }
    }

    pub(crate) fn closed(&self, id: LocalId) {
        self.stop_sources(id);
        self.0.senders.lock().retain(|s| s.id != id);
        self.look_for_company();
    }

    /// Whether somebody may be typing beside bulk: channels made in this process are a copy's, for
    /// which a full path is worth more than a short queue.
    fn look_for_company(&self) {
        let senders = self.0.senders.lock();
        let company = senders.len() > 1 && senders.iter().any(|sender| sender.is_outside());
        self.0.company.store(company, Ordering::Relaxed);
    }

    /// Ends the connection: the receiving thread returns as if the peer had left.
    pub fn end(&self) {
        self.shut();
    }

    /// What a source met: the receiving thread is to say so if the connection did not tell it, too.
    pub(crate) fn blame(&self, error: Error) -> Error {
        match error {
            Error::Closed | Error::Local(..) => error,
            fault => {
                self.tx().fail(fault);
                Error::Closed
            }
        }
    }

    /// Everything ends: threads that wait for the connection return.
    pub(crate) fn shut(&self) {
        self.0.senders.lock().iter().for_each(|s| s.close());
        self.tx().shut(std::io::ErrorKind::NotConnected);
        self.0.fd.shutdown();
    }
}

/// A named thread with a small stack.
pub(crate) fn spawn(name: &str, f: impl FnOnce() + Send + 'static) -> Result<(), Error> {
    const STACK: usize = 256 * 1024;
    std::thread::Builder::new()
        .name(name.to_owned())
        .stack_size(STACK)
        .spawn(f)
        .map(drop)
        .map_err(|e| Error::Local("start a thread", e))
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use super::*;
    use crypt::{Cipher, Direction, Hash, KeyMaterial, Protection};
    use proto::NewKeys;

    /// A source may ask for the next rekey between the peer's NEWKEYS and the receiving thread's
    /// next packet; packets after that one's NEWKEYS must not be framed under the keys before.
    #[test]
    fn an_exchange_that_starts_as_the_last_one_ends_is_running() {
        let protection = Protection::new(Cipher::Aes128Gcm, None).unwrap();
        let direction = Direction::ClientToServer;
        let material =
            KeyMaterial::derive(Hash::Sha256, b"k", b"hash", b"id", direction, protection);
        let new = Box::new(NewKeys {
            cover: protection.into(),
            material,
            reset_seq: true,
            compress: false,
        });
        let exchange = Exchange::default();
        for effect in [Effect::Fence, Effect::Send(vec![21]), Effect::OpenWith(new)] {
            exchange.follow(&effect);
        }
        assert_eq!(exchange.began(), None);
        exchange.follow(&Effect::Fence);
        assert!(exchange.began().is_some());
    }
}
