//! What the sending half refuses, whatever its wire does.

use super::*;
use std::io::IoSlice;

/// Takes nothing until it is told to.
struct Stuck(std::sync::atomic::AtomicBool);

impl Wire for Stuck {
    fn write(&self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        Ok(slices.iter().map(|slice| slice.len()).sum())
    }

    fn write_by(&self, slices: &[IoSlice<'_>], _: Instant) -> io::Result<usize> {
        self.write(slices)
    }

    fn write_now(&self, slices: &[IoSlice<'_>]) -> io::Result<Option<usize>> {
        let stuck = self.0.load(std::sync::atomic::Ordering::SeqCst);
        if stuck { Ok(None) } else { self.write(slices).map(Some) }
    }

    fn pass(&self, _: &Fd, len: usize) -> io::Result<usize> {
        Ok(len)
    }
}

/// P2: a key is never used up to where numbers repeat, whatever the peer does.
#[test]
fn p2_nothing_is_sealed_under_a_key_that_is_worn_out() {
    let tx = Tx::new(Arc::new(Stuck(false.into())), Default::default());
    tx.order.lock().next.packets = NO_MORE_PACKETS - 1;
    tx.message(b"the last").unwrap();
    let message = tx.message(b"one more").unwrap_err();
    let bulk = tx.stage(&mut Batch::message(b"bulk"), || true, &Clock::default()).err().unwrap();
    for error in [message, bulk] {
        assert!(matches!(error, Error::WornOut), "the peer is not to blame: {error}");
        assert!(error.disconnect_code().is_none(), "nothing can be sealed to say it with");
    }
    let next = tx.order.lock().next;
    tx.order.lock().next = next.rekeyed(true);
    tx.message(b"under the next").unwrap();
}

/// Its input fails in the middle of a packet.
#[derive(Default)]
struct Cut {
    why: Option<io::ErrorKind>,
    ended: std::sync::atomic::AtomicBool,
}

impl Wire for Cut {
    fn write(&self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        Ok(slices.iter().map(|slice| slice.len()).sum())
    }

    fn write_by(&self, slices: &[IoSlice<'_>], _: Instant) -> io::Result<usize> {
        self.write(slices)
    }

    fn write_now(&self, slices: &[IoSlice<'_>]) -> io::Result<Option<usize>> {
        self.write(slices).map(Some)
    }

    fn pass(&self, _: &Fd, len: usize) -> io::Result<usize> {
        self.why.map_or(Ok(len), |why| Err(why.into()))
    }

    fn end(&self) {
        self.ended.store(true, std::sync::atomic::Ordering::SeqCst);
    }
}

/// The socket is whole then, and the receiving thread would wait for ever.
#[test]
fn input_that_fails_in_the_middle_of_a_packet_ends_the_connection() {
    use io::ErrorKind::{BrokenPipe, Other, UnexpectedEof};
    let (read, _write) = io::pipe().unwrap();
    let from = Arc::new(Fd::from(std::os::fd::OwnedFd::from(read)));
    for (why, is_ours) in [(UnexpectedEof, true), (Other, true), (BrokenPipe, false)] {
        let wire = Arc::new(Cut { why: Some(why), ..Cut::default() });
        let tx = Tx::new(Arc::clone(&wire), Default::default());
        tx.pass_from(Arc::clone(&from));
        assert_eq!(tx.pass(10).unwrap_err().kind(), why);
        assert_eq!(tx.take_cut().is_some(), is_ours, "{why}");
        assert_eq!(wire.ended.load(std::sync::atomic::Ordering::SeqCst), is_ours);
    }
}

/// B7 after login: a peer that asks and does not read the answers.
#[test]
fn b7_answers_that_nobody_reads_are_bounded() {
    let wire = Arc::new(Stuck(true.into()));
    let tx = Tx::new(Arc::clone(&wire), Default::default());
    let answer = [::wire::msg::PONG; 1000];
    let sent = (0..).take_while(|_| {
        let staged = tx.message(&answer);
        tx.flush(Flush::Now).unwrap();
        staged.is_ok()
    });
    assert!((BACKLOG / 2000..BACKLOG / 1000).contains(&sent.count()));
    wire.0.store(false, std::sync::atomic::Ordering::SeqCst);
    tx.flush(Flush::Now).unwrap();
    assert_eq!(tx.order.lock().backlog, 0);
    tx.message(&answer).unwrap();
}
