//! Writer: what is ready, in order, by gathering writes; one thread at a time.

use super::{Broken, Flush, Tx, Wire};
use crate::error::Error;
use packet::{Batch, batch::SLOTS};
use std::collections::VecDeque;
use std::io::{self, IoSlice};

/// What is being written.
pub(super) struct Writer {
    pub(super) batches: VecDeque<Batch>,
    /// Bytes of the first batch that are already out.
    pub(super) skip: usize,
}

impl<W: Wire> Tx<W> {
    /// Writes in order until nothing is ready; whether something is left because the socket is
    /// full and we may not wait, or because it is not `own`.
    pub(super) fn write_ready(
        &self,
        writer: &mut Writer,
        flush: Flush,
        own: Option<u64>,
    ) -> Result<bool, Error> {
        loop {
            let others = self.take_ready(writer, own);
            if writer.batches.is_empty() {
                return Ok(others);
            }
            match self.write_some(writer, flush) {
                Ok(true) => {}
                Ok(false) => return Ok(true),
                Err(e) if e.kind() == io::ErrorKind::TimedOut && flush != Flush::Wait => {
                    return Err(Error::Local("write to the connection", e));
                }
                Err(e) => {
                    writer.batches.clear();
                    self.end(Broken::Unwritable(e.kind()));
                    // The receiving thread goes on: what came before is still to be heard.
                    return if flush == Flush::Now {
                        Ok(false)
                    } else {
                        Err(Broken::Unwritable(e.kind()).error())
                    };
                }
            }
        }
    }

    /// Takes as much as one write should have; whether bulk that is not `own` was left.
    fn take_ready(&self, writer: &mut Writer, own: Option<u64>) -> bool {
        // One bulk batch fills a write; small ones leave together.
        let mut packets: usize = writer.batches.iter().map(Batch::len).sum();
        if packets >= SLOTS {
            return false;
        }
        let mut order = self.order.lock();
        let most = order.line.packets_per_write();
        let mut others = false;
        while packets < most {
            others = own.is_some_and(|own| order.head > own) && order.bulk_is_ready();
            if others {
                break;
            }
            let Some(batch) = order.pop_ready() else { break };
            packets += batch.len();
            writer.batches.push_back(batch);
        }
        let room = !order.full();
        drop(order);
        if room {
            self.moved.notify_all();
        }
        others
    }

    /// One gathering write, or what lies outside our memory; false when the socket is full and we
    /// may not wait.
    fn write_some(&self, writer: &mut Writer, flush: Flush) -> io::Result<bool> {
        let written = {
            let mut slices = [IoSlice::new(&[]); SLOTS];
            let (mut count, mut gap) = (0, 0);
            let mut skip = writer.skip;
            for batch in &writer.batches {
                let piece = batch.sealed(skip, slices.get_mut(count..).unwrap_or_default());
                (count, gap) = (count + piece.slices, piece.gap);
                skip = 0;
                if gap > 0 {
                    break;
                }
            }
            let slices = slices.get(..count).unwrap_or_default();
            match flush {
                Flush::Wait if slices.is_empty() && gap > 0 => Some(self.pass(gap)?),
                // Nobody knows how long that takes: the tx thread's.
                _ if slices.is_empty() && gap > 0 => None,
                Flush::Wait if gap > 0 => Some(self.wire.write_more(slices)?),
                Flush::Wait => Some(self.wire.write(slices)?),
                Flush::Until(deadline) => Some(self.wire.write_by(slices, deadline)?),
                Flush::Now => self.wire.write_now(slices)?,
            }
        };
        let Some(written) = written else { return Ok(false) };
        self.retire(writer, written);
        Ok(true)
    }

    /// Passes on what lies outside our memory. If that fails on the input's side, nobody else would
    /// notice: the connection is whole, and the peer waits for the rest of a packet.
    pub(super) fn pass(&self, bytes: usize) -> io::Result<usize> {
        let fd = self.passing.lock().clone();
        let passed = match fd {
            Some(fd) => self.wire.pass(&fd, bytes),
            None => Err(io::ErrorKind::UnexpectedEof.into()),
        };
        passed.inspect_err(|error| {
            if !is_of_connection(error.kind()) {
                self.cut.lock().get_or_insert(io::Error::new(error.kind(), error.to_string()));
                self.wire.end();
            }
        })
    }

    /// Returns written batches to the pool.
    fn retire(&self, writer: &mut Writer, written: usize) {
        writer.skip += written;
        self.ledger.sent.wire.add(written as u64);
        while let Some(first) = writer.batches.front() {
            let len = first.sealed_len();
            if writer.skip < len {
                break;
            }
            writer.skip -= len;
            if let Some(batch) = writer.batches.pop_front() {
                self.ledger.sent.packets.add(batch.len() as u64);
                self.give_back(batch);
            }
        }
    }
}

/// Whether an error of passing data on is the socket's, which the receiving thread hears, too.
fn is_of_connection(kind: io::ErrorKind) -> bool {
    use io::ErrorKind as Kind;
    matches!(
        kind,
        Kind::BrokenPipe
            | Kind::ConnectionReset
            | Kind::ConnectionAborted
            | Kind::NotConnected
            | Kind::TimedOut
            // What TCP gives up with where a host or a route is gone.
            | Kind::HostUnreachable
            | Kind::NetworkUnreachable
            | Kind::NetworkDown
    )
}
