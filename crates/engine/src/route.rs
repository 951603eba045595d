//! Routes: from a channel's number to its sinks and its receiving window. Owned by the receiving
//! thread alone.
//!
//! Data of one slab collects in each stream's run, ranges of the slab in order, and leaves in
//! one gathering write per stream and slab.

use crate::error::Error;
use crate::fd::Fd;
use crate::receiver::Receiver;
use crate::sink::{Keep, Sink};
use crate::slab::{Freed, Slab, keeps_slab};
use proto::channel::LocalId;
use proto::data;
use proto::window::{Recv, Rule};
use rustix::event::PollFd;
use std::io;
use std::ops::Range;
use std::time::{Duration, Instant};

/// Packets of one stream in a slab before the run grows.
const RUN: usize = 64;

/// The two streams of a channel (RFC 4254 section 5.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// CHANNEL_DATA.
    Data,
    /// CHANNEL_EXTENDED_DATA with code 1.
    Stderr,
}

/// A sink and what the current slab holds for it.
struct Flow {
    sink: Sink,
    run: Vec<Range<usize>>,
    /// Bytes of the run that the sink took at once.
    taken: usize,
}

impl Flow {
    fn new(sink: Sink) -> Self {
        Self { sink, run: Vec::with_capacity(RUN), taken: 0 }
    }

    fn run_len(&self) -> usize {
        self.run.iter().map(Range::len).sum()
    }

    fn offer(&mut self, slab: &Slab) -> usize {
        if !self.run.is_empty() {
            self.taken = self.sink.offer(slab, &self.run);
        }
        self.taken
    }

    fn left_over(&self) -> usize {
        self.run_len() - self.taken
    }

    fn hold(&mut self, slab: &Slab, keep: Keep, freed: &mut Freed) {
        if self.left_over() > 0 {
            self.sink.hold(slab, keep, &self.run, self.taken, freed);
        }
        self.run.clear();
        self.taken = 0;
    }
}

/// One channel.
struct Route {
    id: LocalId,
    remote: u32,
    window: Recv,
    data: Flow,
    stderr: Flow,
    /// The peer sent EOF: no more data may come (RFC 4254 section 5.3).
    ended: bool,
    /// The channel is closed; it goes once its sinks are empty.
    closed: bool,
}

impl Route {
    fn flows(&mut self) -> [&mut Flow; 2] {
        [&mut self.data, &mut self.stderr]
    }

    fn take_lost(&mut self) -> usize {
        self.data.sink.take_lost() + self.stderr.sink.take_lost()
    }

    fn consumed(&mut self, bytes: usize, now: Instant) {
        if bytes > 0 {
            self.window.consumed(u32::try_from(bytes).unwrap_or(u32::MAX), now);
        }
    }
}

/// Bytes of channel data on all channels of a connection.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    /// Received.
    pub received: u64,
    /// Of it, taken by sinks.
    pub written: u64,
}

impl Totals {
    /// Sinks took so many bytes, and of these or earlier ones some were lost.
    fn write(&mut self, taken: usize, lost: usize) {
        self.written = (self.written + taken as u64).saturating_sub(lost as u64);
    }
}

/// All channels of a connection.
pub struct Routes {
    list: Vec<Route>,
    rule: Rule,
    totals: Totals,
    freed: Freed,
}

impl Routes {
    /// No channels yet; `rule` is the window rule of those to come.
    pub(crate) fn new(rule: Rule) -> Self {
        Self { list: Vec::new(), rule, totals: Totals::default(), freed: Freed::default() }
    }

    /// The rule of receiving windows.
    pub(crate) fn rule(&self) -> Rule {
        self.rule
    }

    /// A channel is open; `window` is what the peer may send now.
    pub(crate) fn open(&mut self, id: LocalId, remote: u32, window: u32) {
        self.list.push(Route {
            id,
            remote,
            window: Recv::new(self.rule, window),
            data: Flow::new(Sink::pending()),
            stderr: Flow::new(Sink::pending()),
            ended: false,
            closed: false,
        });
    }

    fn find(&mut self, id: LocalId) -> Option<&mut Route> {
        self.list.iter_mut().find(|route| route.id == id)
    }

    pub(crate) fn attach(&mut self, id: LocalId, stream: Stream, sink: Sink) {
        if let Some(route) = self.find(id) {
            match stream {
                Stream::Data => route.data.sink.attach(sink),
                Stream::Stderr => route.stderr.sink.attach(sink),
            }
        }
    }

    /// One packet of channel data, whose payload lies at `start` of the slab. Data for a channel
    /// that is not open, after its EOF or close, or beyond its window ends the connection (C1, C3).
    pub(crate) fn data(&mut self, payload: &[u8], start: usize) -> Result<(), Error> {
        let head = data::split(payload).map_err(proto::Error::from)?;
        let len = head.body.len();
        let route = self.debit(head.recipient, len)?;
        let range = start + head.body.start..start + head.body.end;
        match head.code {
            None => route.data.run.push(range),
            Some(data::STDERR) => route.stderr.run.push(range),
            // A kind of data we do not know is dropped, and credited all the same (C7).
            Some(_) => route.consumed(len, Instant::now()),
        }
        self.totals.received += len as u64;
        Ok(())
    }

    /// So much data comes for this channel: who gets it.
    fn debit(&mut self, recipient: u32, len: usize) -> Result<&mut Route, Error> {
        let route = self.list.iter_mut().find(|route| route.id.0 == recipient && !route.ended);
        let route = route.ok_or(Error::Stray(recipient))?;
        route.window.debit(u32::try_from(len).unwrap_or(u32::MAX)).map_err(proto::Error::from)?;
        Ok(route)
    }

    /// The pipe that takes data of this channel now.
    pub(crate) fn pipe(&self, recipient: u32) -> Option<&Fd> {
        self.list.iter().find(|route| route.id.0 == recipient)?.data.sink.pipe()
    }

    /// Whether data of this channel can go to its sink past memory now.
    pub(crate) fn passes(&self, recipient: u32) -> bool {
        self.pipe(recipient).is_some()
    }

    /// Whether there is a channel whose data can.
    pub(crate) fn any_passes(&self) -> bool {
        self.list.iter().any(|route| route.data.sink.pipe().is_some())
    }

    /// The head of a packet of channel data was taken: its data follows.
    pub(crate) fn expect(&mut self, recipient: u32, len: usize) -> Result<(), Error> {
        self.debit(recipient, len).map(drop)
    }

    /// Some of the data that [`Routes::expect`] was told of, in the slab.
    pub(crate) fn expected(&mut self, recipient: u32, range: Range<usize>) {
        self.totals.received += range.len() as u64;
        if let Some(route) = self.find(LocalId(recipient)) {
            route.data.run.push(range);
        }
    }

    /// Moves up to `len` bytes of it from the connection to the sink past memory; `None` while one
    /// of them is not ready.
    pub(crate) fn pass(
        &mut self,
        recipient: u32,
        connection: &Fd,
        len: usize,
        now: Instant,
    ) -> io::Result<Option<usize>> {
        let Some(route) = self.list.iter_mut().find(|route| route.id.0 == recipient) else {
            return Ok(None);
        };
        let moved = route.data.sink.take_from(connection, len)?;
        route.consumed(moved.unwrap_or(0), now);
        self.totals.received += moved.unwrap_or(0) as u64;
        self.totals.written += moved.unwrap_or(0) as u64;
        Ok(moved)
    }

    /// Writes what the slab held so far; leftovers are copied. Between packets of one slab only.
    pub(crate) fn write_runs(&mut self, slab: &Slab, now: Instant) {
        self.offer_runs(slab, now);
        self.copy_runs(slab);
    }

    /// One gathering write per stream that has data in the slab.
    pub(crate) fn offer_runs(&mut self, slab: &Slab, now: Instant) {
        for route in &mut self.list {
            let taken = route.data.offer(slab) + route.stderr.offer(slab);
            route.consumed(taken, now);
            self.totals.write(taken, route.take_lost());
        }
    }

    /// Whether a sink left so much over that it keeps the slab.
    pub(crate) fn runs_need_slab(&self) -> bool {
        let mut flows = self.list.iter().flat_map(|route| [&route.data, &route.stderr]);
        flows.any(|flow| keeps_slab(flow.left_over()))
    }

    /// Keeps leftovers: much where it is, little copied.
    pub(crate) fn hold_runs(&mut self, slab: &Slab) {
        self.hold(slab, Keep::InPlace);
    }

    /// Copies leftovers, if any.
    pub(crate) fn copy_runs(&mut self, slab: &Slab) {
        self.hold(slab, Keep::Copied);
    }

    fn hold(&mut self, slab: &Slab, keep: Keep) {
        let flows = self.list.iter_mut().flat_map(Route::flows);
        flows.for_each(|flow| flow.hold(slab, keep, &mut self.freed));
    }

    /// Writes what waits, returns slabs to the receiver, forgets channels that are over. One whose
    /// sink broke stays until that was told ([`Routes::take_broken`]).
    pub(crate) fn drain(&mut self, receiver: &mut Receiver, now: Instant) {
        for route in &mut self.list {
            let mut taken = 0;
            for flow in [&mut route.data, &mut route.stderr] {
                taken += flow.sink.drain(&mut self.freed);
            }
            route.consumed(taken, now);
            self.totals.write(taken, route.take_lost());
        }
        self.freed.slabs.drain(..).for_each(|slab| receiver.give_back(slab));
        self.list.retain(|route| {
            !route.closed || [&route.data.sink, &route.stderr.sink].into_iter().any(Sink::is_needed)
        });
    }

    /// The shortest time that a sink which holds something may take nothing.
    pub(crate) fn lingers(&self) -> Option<Duration> {
        let sinks = self.list.iter().flat_map(|route| [&route.data.sink, &route.stderr.sink]);
        sinks.filter_map(Sink::lingers).min()
    }

    /// Drops what sinks hold that may not wait longer than `waited`.
    pub(crate) fn drop_after(&mut self, waited: Duration) {
        for route in &mut self.list {
            route.flows().into_iter().for_each(|flow| flow.sink.drop_after(waited));
            self.totals.write(0, route.take_lost());
        }
    }

    /// Bytes on their way to readers.
    pub(crate) fn unread(&self) -> usize {
        let flows = self.list.iter().flat_map(|route| [&route.data, &route.stderr]);
        flows.map(|flow| flow.sink.unread()).sum()
    }

    /// The next sink that broke, told once.
    pub(crate) fn take_broken(&mut self) -> Option<(LocalId, Stream, io::Error)> {
        self.list.iter_mut().find_map(|route| {
            let data = route.data.sink.take_error().map(|e| (route.id, Stream::Data, e));
            data.or_else(|| route.stderr.sink.take_error().map(|e| (route.id, Stream::Stderr, e)))
        })
    }

    /// The next WINDOW_ADJUST that is due: our id, the peer's id, bytes.
    pub(crate) fn next_adjust(&mut self, now: Instant) -> Option<(LocalId, u32, u32)> {
        self.list
            .iter_mut()
            .filter(|route| !route.closed)
            .find_map(|route| route.window.adjust(now).map(|bytes| (route.id, route.remote, bytes)))
    }

    /// The peer sent EOF: sinks close after their last byte.
    pub(crate) fn end(&mut self, id: LocalId) {
        if let Some(route) = self.find(id) {
            route.ended = true;
            route.flows().into_iter().for_each(|flow| flow.sink.end());
        }
    }

    /// The channel is closed: what sinks still hold is written, then it goes.
    pub(crate) fn close(&mut self, id: LocalId) {
        self.end(id);
        if let Some(route) = self.find(id) {
            route.closed = true;
            route.flows().into_iter().for_each(|flow| flow.sink.want_no_more());
        }
    }

    /// What the kernel says of the path, for every window.
    pub(crate) fn note(&mut self, rtt: Duration, rcvbuf: u32) {
        for route in &mut self.list {
            route.window.note_rtt(rtt);
            route.window.note_rcvbuf(rcvbuf);
        }
    }

    /// Whether any sink holds data.
    pub(crate) fn is_waiting(&self) -> bool {
        self.list.iter().any(|r| r.data.sink.is_waiting() || r.stderr.sink.is_waiting())
    }

    /// The descriptors to poll for room.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = PollFd<'_>> {
        self.list.iter().flat_map(|r| [&r.data, &r.stderr]).filter_map(|f| f.sink.waits_for())
    }

    /// The largest window that the peer has now.
    pub(crate) fn largest_window(&self) -> u32 {
        self.list.iter().map(|route| route.window.target()).max().unwrap_or(0)
    }

    pub(crate) fn totals(&self) -> Totals {
        self.totals
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slab::SLAB;
    use std::os::fd::OwnedFd;
    use std::os::unix::net::UnixStream;
    use wire::Writer;

    /// A slab of one packet for each channel, of this many bytes.
    fn arrive(routes: &mut Routes, parts: &[(u32, usize)]) -> Slab {
        let mut slab = Slab::new();
        let mut at = 0;
        for (id, len) in parts {
            let data = vec![7; *len];
            let message = Writer::message(wire::msg::CHANNEL_DATA).u32(*id).string(data).take();
            slab.room()[at..][..message.len()].copy_from_slice(&message);
            routes.data(&message, at).unwrap();
            at += message.len();
        }
        slab
    }

    /// Memory that sinks hold, and the bytes that wait in it.
    fn held(routes: &Routes) -> (usize, usize) {
        let sinks = routes.list.iter().flat_map(|r| [&r.data.sink, &r.stderr.sink]);
        sinks.map(Sink::held).fold((0, 0), |all, one| (all.0 + one.0, all.1 + one.1))
    }

    /// However much of each slab a consumer leaves: its memory is twice that at most, and a slab.
    #[test]
    fn what_a_trickling_consumer_pins_is_at_most_twice_its_bytes() {
        for left in [1, 1000, 63 << 10, 64 << 10, 100 << 10, 255 << 10, 256 << 10, 511 << 10] {
            let mut routes = Routes::new(Rule::bulk(64 << 20));
            routes.open(LocalId(7), 0, 64 << 20);
            for _ in 0..10 {
                let slab = arrive(&mut routes, &[(7, left)]);
                routes.offer_runs(&slab, Instant::now());
                routes.hold_runs(&slab);
            }
            let (pinned, waiting) = held(&routes);
            assert_eq!(waiting, 10 * left);
            assert!(pinned <= 2 * waiting + SLAB, "{left}: {pinned} for {waiting}");
        }
    }

    /// A channel that leaves much and takes it later does not leave its slabs to one that left
    /// little.
    #[test]
    fn a_consumer_does_not_pin_what_was_another_ones() {
        let mut routes = Routes::new(Rule::bulk(64 << 20));
        for id in [7, 8] {
            routes.open(LocalId(id), 0, 64 << 20);
        }
        for _ in 0..10 {
            let slab = arrive(&mut routes, &[(8, 1000), (7, 300 << 10)]);
            routes.offer_runs(&slab, Instant::now());
            assert!(routes.runs_need_slab());
            routes.hold_runs(&slab);
        }
        routes.attach(LocalId(7), Stream::Data, Sink::discard());
        let (_peer, ours) = UnixStream::pair().unwrap();
        let mut receiver = receiver(ours);
        routes.drain(&mut receiver, Instant::now());
        let (pinned, waiting) = held(&routes);
        assert_eq!(waiting, 10 * 1000);
        assert!(pinned <= 2 * waiting, "{pinned} for {waiting}");
    }

    fn receiver(ours: UnixStream) -> Receiver {
        let fd = std::sync::Arc::new(Fd::from(OwnedFd::from(ours)));
        Receiver::new(fd, 1000, std::sync::Arc::default())
    }

    /// C4: data may come before anything runs that could take it.
    #[test]
    fn c4_a_channel_that_closes_before_anything_runs_leaves_no_memory() {
        let message = Writer::message(wire::msg::CHANNEL_DATA).u32(7).string([1; 1000]).take();
        let mut slab = Slab::new();
        slab.room()[..message.len()].copy_from_slice(&message);
        let mut routes = Routes::new(Rule::bulk(1 << 20));
        routes.open(LocalId(7), 0, 1 << 20);
        routes.data(&message, 0).unwrap();
        routes.write_runs(&slab, Instant::now());
        assert!(routes.is_waiting());
        routes.close(LocalId(7));
        let (_peer, ours) = UnixStream::pair().unwrap();
        let mut receiver = receiver(ours);
        routes.drain(&mut receiver, Instant::now());
        assert!(!routes.is_waiting());
        assert!(routes.list.is_empty());
    }
}
