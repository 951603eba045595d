//! Tx under shuttle: every run is one schedule of sources, workers, receiver and tx thread, picked
//! and replayable by the scheduler. What reached the wire is then opened as a peer would.
//!
//! `cargo test -p engine --features shuttle --lib schedules`

use super::{Flush, Ticket, Tx, Wire};
use crate::fd::Fd;
use crate::figures::Clock;
use crate::sync::{Arc, Lock, Signal};
use crypt::{Cipher, Cover, Direction, Hash, KeyMaterial, Mac, Protection};
use packet::layout::MAX_PACKET;
use packet::{Batch, Inbound, OpenKey};
use proto::NewKeys;
use shuttle::rand::{Rng, thread_rng};
use shuttle::scheduler::{PctScheduler, RandomScheduler, Scheduler};
use shuttle::sync::mpsc::{Receiver, channel};
use shuttle::thread;
use std::io::{self, IoSlice, IoSliceMut};
use std::time::Instant;
use wire::msg;

const SOURCES: u8 = 3;
const BATCHES: u8 = 3;
const PACKETS: u8 = 2;
/// Source, batch and packet number: the data of every packet.
const DATA: usize = 3;
const MESSAGES: u8 = 4;
/// Any number of the key exchange's own (RFC 4250 section 4.1.2).
const KEX: u8 = 30;

/// A socket that takes as much as it likes, and nothing when asked not to wait and in the mood.
#[derive(Default)]
struct Moody {
    bytes: Lock<Vec<u8>>,
    more: Signal,
}

impl Moody {
    fn wait_for(&self, count: usize) -> Vec<u8> {
        self.more.wait_until(self.bytes.lock(), |bytes| bytes.len() >= count).clone()
    }
}

impl Wire for Moody {
    fn write(&self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        let all: usize = slices.iter().map(|slice| slice.len()).sum();
        let taken = if thread_rng().gen_bool(0.5) { all } else { thread_rng().gen_range(1..=all) };
        let flat = slices.iter().flat_map(|slice| slice.iter().copied());
        self.bytes.lock().extend(flat.take(taken));
        self.more.notify_all();
        Ok(taken)
    }

    fn write_by(&self, slices: &[IoSlice<'_>], _: Instant) -> io::Result<usize> {
        self.write(slices)
    }

    fn write_now(&self, slices: &[IoSlice<'_>]) -> io::Result<Option<usize>> {
        if thread_rng().gen_bool(0.4) { Ok(None) } else { self.write(slices).map(Some) }
    }

    fn pass(&self, _: &Fd, len: usize) -> io::Result<usize> {
        Ok(len)
    }
}

type Sending = Arc<Tx<Moody>>;

fn material(cover: Cover, exchange: u8) -> KeyMaterial {
    let direction = Direction::ClientToServer;
    KeyMaterial::derive(Hash::Sha256, b"\0\0\0\x01k", &[exchange], b"id", direction, cover)
}

fn new_keys(cover: Cover, exchange: u8) -> NewKeys {
    NewKeys { cover, material: material(cover, exchange), reset_seq: true, compress: false }
}

/// A connection whose first key exchange is over, as sources find it.
fn connected(cover: Cover) -> Sending {
    let tx = Arc::new(Tx::new(Arc::new(Moody::default()), Default::default()));
    tx.message(&[msg::KEXINIT]).unwrap();
    tx.message(&[msg::NEWKEYS]).unwrap();
    // Clear text follows sealed packets only (N8).
    tx.rekey(&new_keys(covers()[0], 1)).unwrap();
    tx.rekey(&new_keys(cover, 1)).unwrap();
    tx
}

/// The peer's, which followed a sealed one, too.
fn open_key(cover: Cover, keys: &KeyMaterial) -> OpenKey {
    let before = new_keys(covers()[0], 1);
    let sealed = OpenKey::plain().rekeyed(before.cover, &before.material).unwrap();
    sealed.rekeyed(cover, keys).unwrap()
}

fn bulk(tx: &Sending, source: u8, number: u8) -> Option<Batch> {
    let mut batch = tx.pool().bulk()?;
    let total = DATA * usize::from(PACKETS);
    let mut areas = std::array::from_fn(|_| IoSliceMut::new(&mut []));
    let count = batch.areas(total, DATA, &mut areas);
    for (packet, area) in (0..).zip(&mut areas[..count]) {
        area.copy_from_slice(&[source, number, packet]);
    }
    batch.finish(total, DATA, 0, None);
    Some(batch)
}

/// What [`crate::session::Session::send`] does, sealing here or handing over.
fn source(tx: &Sending, source: u8, seal: impl Fn(Ticket, Batch)) -> Option<()> {
    for number in 0..BATCHES {
        let mut batch = bulk(tx, source, number)?;
        let (ticket, _) = tx.stage(&mut batch, || true, &Clock::default()).ok()??;
        seal(ticket, batch);
    }
    Some(())
}

/// What [`crate::workers`] does.
fn worker(tx: &Sending, jobs: &Lock<Receiver<(Ticket, Batch)>>) {
    loop {
        let job = jobs.lock().recv();
        let Ok((ticket, batch)) = job else { return };
        tx.seal(ticket, batch).unwrap();
        tx.wake();
    }
}

/// The receiver, answering: it never waits for the socket. Window adjusts it must hold back
/// during an exchange come again later.
fn answers(tx: &Sending) {
    for number in 0..MESSAGES {
        while !tx.message_unless_fenced(&[msg::CHANNEL_WINDOW_ADJUST, number], || true).unwrap() {
            thread::yield_now();
        }
        tx.flush(Flush::Now).unwrap();
    }
}

/// The second key exchange, as the state machine's effects have it.
fn exchange(tx: &Sending, cover: Cover) {
    tx.fence();
    tx.message(&[msg::KEXINIT]).unwrap();
    tx.flush(Flush::Now).unwrap();
    tx.message(&[KEX]).unwrap();
    tx.flush(Flush::Now).unwrap();
    tx.message(&[msg::NEWKEYS]).unwrap();
    tx.rekey(&new_keys(cover, 2)).unwrap();
    tx.flush(Flush::Now).unwrap();
}

/// What a peer gets out of `wire`: every packet opens under the number that follows, and under
/// the key that NEWKEYS says.
fn received(cover: Cover, mut wire: &mut [u8]) -> Vec<Vec<u8>> {
    let mut inbound = Inbound::new(MAX_PACKET);
    let mut exchanges = 0;
    let mut messages = Vec::new();
    while let Some(opened) = inbound.open(wire).expect("the next number and key") {
        let message = wire[opened.payload].to_vec();
        if message == [msg::NEWKEYS] {
            exchanges += 1;
            let keys = material(cover, exchanges);
            inbound.rekey(open_key(cover, &keys), true);
        }
        messages.push(message);
        wire = &mut wire[opened.total..];
    }
    assert!(wire.is_empty(), "{} bytes too many", wire.len());
    messages
}

/// Bytes of all messages of a run on the wire, in whatever order.
fn expected_bytes(cover: Cover) -> usize {
    let plain = packet::Layout::PLAIN;
    let layout = packet::Layout::of(cover);
    let bulk = usize::from(SOURCES * BATCHES * PACKETS) * layout.packet(9 + DATA);
    let answers = usize::from(MESSAGES) * layout.packet(2);
    2 * plain.packet(1) + bulk + answers + 3 * layout.packet(1)
}

fn check(messages: &[Vec<u8>]) {
    let numbers: Vec<u8> = messages.iter().map(|message| message[0]).collect();
    let at = |number| numbers.iter().rposition(|n| *n == number).unwrap();
    let fenced = &numbers[at(msg::KEXINIT)..=at(msg::NEWKEYS)];
    assert_eq!(fenced, [msg::KEXINIT, KEX, msg::NEWKEYS], "B2: only the exchange's own");
    let bulk: Vec<_> = messages.iter().filter(|m| m[0] == msg::CHANNEL_DATA).collect();
    for source in 0..SOURCES {
        let sent = (0..BATCHES).flat_map(|batch| (0..PACKETS).map(move |p| [source, batch, p]));
        let got = bulk.iter().filter(|m| m[9] == source).map(|m| [m[9], m[10], m[11]]);
        assert!(got.eq(sent), "a source's packets, once and in its order: {bulk:?}");
    }
    let adjusts = messages.iter().filter(|m| m[0] == msg::CHANNEL_WINDOW_ADJUST);
    assert!(adjusts.map(|m| m[1]).eq(0..MESSAGES));
}

/// One connection under one schedule. Shuttle itself fails the run when nobody can go on.
fn run(cover: Cover, workers: usize) {
    let tx = connected(cover);
    if thread_rng().gen_bool(0.5) {
        // As on a slow path that channels share: one batch is in the queue, the others in line.
        tx.set_quantum(1);
    }
    let writer = {
        let tx = Arc::clone(&tx);
        thread::spawn(move || tx.run().unwrap())
    };
    let mut threads = Vec::new();
    let mut start = |f: Box<dyn FnOnce(&Sending) + Send>| {
        let tx = Arc::clone(&tx);
        threads.push(thread::spawn(move || f(&tx)));
    };
    let (jobs, queue) = channel();
    let queue = Arc::new(Lock::new(queue));
    for _ in 0..workers {
        let queue = Arc::clone(&queue);
        start(Box::new(move |tx| worker(tx, &queue)));
    }
    for id in 0..SOURCES {
        let jobs = jobs.clone();
        start(Box::new(move |tx| {
            let folded = |ticket: Ticket, batch| {
                let place = ticket.place();
                tx.seal(ticket, batch).unwrap();
                tx.flush_own(place).unwrap();
            };
            let handed = |ticket, batch| jobs.send((ticket, batch)).unwrap();
            if workers == 0 { source(tx, id, folded) } else { source(tx, id, handed) }.unwrap();
        }));
    }
    drop(jobs);
    start(Box::new(answers));
    start(Box::new(move |tx| exchange(tx, cover)));
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    // Nobody will flush any more: what has not arrived by itself never does.
    let mut bytes = tx.wire.wait_for(expected_bytes(cover));
    check(&received(cover, &mut bytes));
    tx.shut(io::ErrorKind::NotConnected);
    writer.join().unwrap();
}

fn explore(scheduler: impl Scheduler + 'static, f: impl Fn() + Send + Sync + 'static) {
    let mut config = shuttle::Config::new();
    config.stack_size = 256 * 1024;
    shuttle::Runner::new(scheduler, config).run(f);
}

/// Both kinds of schedules: any, and those with few but well-placed preemptions.
fn explore_all(schedules: usize, f: impl Fn() + Send + Sync + Clone + 'static) {
    explore(RandomScheduler::new(schedules), f.clone());
    explore(PctScheduler::new(3, schedules), f);
}

/// One whose numbers are the sequence and the blocks, one whose number is the packets', and one
/// without a cipher.
fn covers() -> Vec<Cover> {
    let ctr = Protection::new(Cipher::Aes128Ctr, Some(Mac::HmacSha256));
    let sealed = [ctr, Protection::new(Cipher::Aes128Gcm, None)].into_iter().flatten();
    let clear = Cover::all().filter(|cover| cover.is_clear() && cover.is_authenticated());
    sealed.map(Cover::Sealed).chain(clear.take(1)).collect()
}

fn any_cover() -> Cover {
    let covers = covers();
    covers[thread_rng().gen_range(0..covers.len())]
}

/// P1, P3, P4: whatever the schedule, numbers on the wire have no gap, and the change of keys
/// stands exactly at NEWKEYS. No wake-up is lost: everything arrives.
#[test]
fn p1_p3_p4_folded_sources_keep_order_and_keys_under_any_schedule() {
    explore_all(1000, || run(any_cover(), 0));
}

/// The same with workers that finish in any order.
#[test]
fn p1_p3_p4_workers_keep_order_and_keys_under_any_schedule() {
    explore_all(1000, || run(any_cover(), 2));
}

/// Sources that wait at a fence or for a batch return when the connection ends.
#[test]
fn whoever_waits_returns_when_the_connection_ends() {
    explore_all(500, || {
        let tx = connected(covers()[1]);
        tx.fence();
        let mut threads = Vec::new();
        for id in 0..SOURCES {
            let tx = Arc::clone(&tx);
            threads.push(thread::spawn(move || {
                let mut kept: Vec<_> = (0..4).map_while(|number| bulk(&tx, id, number)).collect();
                let Some(mut batch) = kept.pop() else { return };
                assert!(
                    tx.stage(&mut batch, || true, &Clock::default()).is_err(),
                    "{} batches",
                    kept.len()
                );
            }));
        }
        let writer = Arc::clone(&tx);
        threads.push(thread::spawn(move || writer.run().unwrap()));
        tx.shut(io::ErrorKind::NotConnected);
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    });
}
