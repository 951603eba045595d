//! Who is written before whom while the socket is slow: a wire that takes one write at a time,
//! when it is told to.

use super::{Flush, Tx, Wire};
use crate::fd::Fd;
use crate::figures::Clock;
use crate::line::is_bulk;
use crate::sync::{Arc, Lock, Signal};
use packet::Batch;
use packet::layout::DATA;
use std::io::{self, IoSlice, IoSliceMut};
use std::thread;
use std::time::{Duration, Instant};

/// Counts writes; each waits for a permit.
#[derive(Default)]
struct Gate {
    permits: Lock<usize>,
    more: Signal,
    /// How many writes began, and the bytes of each packet in them.
    writes: Lock<(usize, Vec<usize>)>,
}

impl Gate {
    fn permit(&self, writes: usize) {
        *self.permits.lock() += writes;
        self.more.notify_all();
    }

    fn writes(&self) -> usize {
        self.writes.lock().0
    }

    fn packets(&self) -> Vec<usize> {
        self.writes.lock().1.clone()
    }
}

impl Wire for Gate {
    fn write(&self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        let packets = slices.iter().map(|slice| slice.len());
        let bytes = packets.clone().sum();
        let mut writes = self.writes.lock();
        writes.0 += 1;
        writes.1.extend(packets);
        drop(writes);
        *self.more.wait_until(self.permits.lock(), |permits| *permits > 0) -= 1;
        Ok(bytes)
    }

    fn write_by(&self, slices: &[IoSlice<'_>], _: Instant) -> io::Result<usize> {
        self.write(slices)
    }

    fn write_now(&self, _: &[IoSlice<'_>]) -> io::Result<Option<usize>> {
        Ok(None)
    }

    fn pass(&self, _: &Fd, len: usize) -> io::Result<usize> {
        Ok(len)
    }
}

fn batch(tx: &Tx<Gate>, bytes: usize) -> Batch {
    let mut batch = tx.pool().bulk().unwrap();
    batch.areas(bytes, DATA, &mut std::array::from_fn(|_| IoSliceMut::new(&mut [])));
    batch.finish(bytes, DATA, 0, None);
    batch
}

/// What [`crate::session::Session::send`] does.
fn send(tx: &Tx<Gate>, bytes: usize) {
    let mut batch = batch(tx, bytes);
    let (ticket, _) = tx.stage(&mut batch, || true, &Clock::default()).unwrap().unwrap();
    let place = ticket.place();
    tx.seal(ticket, batch).unwrap();
    tx.flush_own(place).unwrap();
}

fn until(what: impl Fn() -> bool) {
    let began = Instant::now();
    while !what() {
        assert!(began.elapsed() < Duration::from_secs(30));
        thread::sleep(Duration::from_millis(1));
    }
}

/// On a slow path: what is being written and one batch are all that a keystroke waits for, however
/// many sources are at work.
#[test]
fn a_keystroke_overtakes_bulk_that_has_no_numbers() {
    const QUANTUM: usize = 2 * DATA;
    const SOURCES: usize = 4;
    let tx = Arc::new(Tx::new(Arc::new(Gate::default()), Arc::default()));
    tx.set_quantum(QUANTUM);
    let writer = Arc::clone(&tx);
    let writer = thread::spawn(move || writer.run());
    let sources: Vec<_> = (0..SOURCES)
        .map(|_| {
            let tx = Arc::clone(&tx);
            thread::spawn(move || (0..2).for_each(|_| send(&tx, QUANTUM)))
        })
        .collect();
    // One is being written, one is in the queue, and the others stand in line.
    until(|| tx.wire.writes() == 1 && tx.order.lock().ring.len() == 1);
    send(&tx, 1);
    assert_eq!(tx.order.lock().ring.len(), 2);
    tx.wire.permit(usize::MAX >> 1);
    sources.into_iter().for_each(|source| source.join().unwrap());
    until(|| tx.wire.packets().len() == 2 * SOURCES * 2 + 1);
    let packets = tx.wire.packets();
    let keystroke = packets.iter().position(|bytes| *bytes < DATA);
    assert_eq!(keystroke, Some(4), "behind two batches of two packets: {packets:?}");
    tx.shut(io::ErrorKind::NotConnected);
    writer.join().unwrap().unwrap();
}

/// A source does not go on writing for others, and nothing of theirs is left behind.
#[test]
fn a_source_writes_its_own_and_leaves_others_bulk_to_the_tx_thread() {
    let tx = Arc::new(Tx::new(Arc::new(Gate::default()), Arc::default()));
    let source = Arc::clone(&tx);
    let source = thread::spawn(move || send(&source, 2 * DATA));
    until(|| tx.wire.writes() == 1);
    send(&tx, 3 * DATA);
    send(&tx, 1);
    tx.wire.permit(1);
    source.join().unwrap();
    assert_eq!(tx.order.lock().ring.len(), 2, "nobody else writes yet");
    assert!(tx.order.lock().ring.iter().flatten().any(is_bulk));
    tx.wire.permit(10);
    let writer = Arc::clone(&tx);
    let writer = thread::spawn(move || writer.run());
    until(|| tx.order.lock().ring.is_empty());
    tx.shut(io::ErrorKind::NotConnected);
    writer.join().unwrap().unwrap();
}

/// What another thread is still sealing leaves first, and the last words are behind it.
#[test]
fn last_words_wait_for_what_is_sealed_ahead_of_them() {
    let tx = Arc::new(Tx::new(Arc::new(Gate::default()), Arc::default()));
    tx.wire.permit(10);
    let mut bulk = batch(&tx, DATA);
    let (ticket, _) = tx.stage(&mut bulk, || true, &Clock::default()).unwrap().unwrap();
    tx.message(&[::wire::msg::IGNORE; 10]).unwrap();
    let sealer = Arc::clone(&tx);
    let sealer = thread::spawn(move || {
        thread::sleep(Duration::from_millis(100));
        sealer.seal(ticket, bulk).unwrap();
    });
    tx.flush(Flush::Until(Instant::now() + Duration::from_secs(30))).unwrap();
    assert_eq!(tx.wire.packets().len(), 2);
    sealer.join().unwrap();
}
