//! Happy Eyeballs (RFC 8305 section 5): connection attempts against each other.
//!
//! An attempt starts when the one before it has failed, or has not answered for the delay; the
//! first that answers wins and the others are closed. One thread, no waiting but in `poll`.

use crate::call_off::Held;
use crate::{CallOff, Error};
use engine::fd::poll_until;
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use socket2::Socket;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

/// How long is waited.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Waits {
    /// Silence of an attempt after which the next one starts; `None`: not before it has failed.
    pub(crate) delay: Option<Duration>,
    /// The end of all attempts.
    pub(crate) deadline: Option<Instant>,
}

/// One attempt, which may be called off.
type Attempt = (SocketAddr, Socket, Held);

/// Connects to the first of `addresses` that answers. `open` makes a socket that does not wait,
/// `failed` is told of each attempt that fails; when all did, the last one's error is returned, and
/// one of `open` only if no address could be tried.
pub(crate) fn run(
    addresses: &[SocketAddr],
    (waits, off): (Waits, &CallOff),
    open: impl Fn(&SocketAddr) -> Result<Socket, Error>,
    failed: impl Fn(&SocketAddr, io::Error) -> Error,
) -> Result<(SocketAddr, Socket), Error> {
    let waiting = addresses.iter();
    let running = Vec::with_capacity(addresses.len());
    let mut race =
        Race { waits, off, open, failed, waiting, running, due: true, next: None, last: None };
    loop {
        race.start_due();
        if race.running.is_empty() {
            return Err(race.lost());
        }
        if let Some((at, socket, _)) = race.wait()? {
            let ready = socket.set_nonblocking(false);
            ready.map_err(|why| Error::Option { option: "socket", why })?;
            return Ok((at, socket));
        }
    }
}

struct Race<'a, O, F> {
    waits: Waits,
    off: &'a CallOff,
    open: O,
    failed: F,
    /// Addresses that were not tried yet.
    waiting: std::slice::Iter<'a, SocketAddr>,
    running: Vec<Attempt>,
    /// The next attempt may start now...
    due: bool,
    /// ... or will then.
    next: Option<Instant>,
    /// Why the last attempt failed, or why no address could be tried.
    last: Option<Error>,
}

impl<O, F> Race<'_, O, F>
where
    O: Fn(&SocketAddr) -> Result<Socket, Error>,
    F: Fn(&SocketAddr, io::Error) -> Error,
{
    fn start_due(&mut self) {
        while self.due
            && let Some(at) = self.waiting.next()
        {
            match (self.open)(at) {
                // Where another family's address was at least tried, its failure says more.
                Err(error) => _ = self.last.get_or_insert(error),
                Ok(socket) => match socket.connect(&(*at).into()) {
                    Err(why) if !is_under_way(&why) => self.last = Some((self.failed)(at, why)),
                    _ => self.started(*at, socket),
                },
            }
        }
    }

    fn started(&mut self, at: SocketAddr, socket: Socket) {
        let held = self.off.hold(&socket);
        self.running.push((at, socket, held));
        self.due = false;
        self.next = self.waits.delay.map(|delay| Instant::now() + delay);
    }

    /// Until an attempt ends, the next one is due or all time is over. The winner, if there is one.
    fn wait(&mut self) -> Result<Option<Attempt>, Error> {
        let next = self.next.filter(|_| !self.waiting.as_slice().is_empty());
        let until = [next, self.waits.deadline].into_iter().flatten().min();
        let left = until.map(|at| at.saturating_duration_since(Instant::now()));
        let mut polled: Vec<_> =
            self.running.iter().map(|(_, s, _)| PollFd::new(s, PollFlags::OUT)).collect();
        let any =
            poll_until(&mut polled, left).map_err(|why| Error::Option { option: "poll", why })?;
        let ended = polled.iter().position(|fd| !fd.revents().is_empty());
        drop(polled);
        if let Some(index) = ended.filter(|_| any) {
            return Ok(self.ended(index));
        }
        let now = Instant::now();
        if self.waits.deadline.is_some_and(|at| now >= at) {
            return Err(self.out_of_time());
        }
        self.due = next.is_some_and(|at| now >= at);
        Ok(None)
    }

    /// An attempt is connected, or failed and makes way for the next one.
    fn ended(&mut self, index: usize) -> Option<Attempt> {
        let (at, socket, held) = self.running.remove(index);
        match socket.take_error() {
            Ok(None) => Some((at, socket, held)),
            Ok(Some(why)) | Err(why) => {
                self.last = Some((self.failed)(&at, why));
                self.due = true;
                None
            }
        }
    }

    fn out_of_time(&mut self) -> Error {
        for (at, _, _) in self.running.drain(..) {
            self.last = Some((self.failed)(&at, io::ErrorKind::TimedOut.into()));
        }
        self.lost()
    }

    fn lost(&mut self) -> Error {
        let nowhere = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
        let none = || (self.failed)(&nowhere, io::ErrorKind::AddrNotAvailable.into());
        self.last.take().unwrap_or_else(none)
    }
}

fn is_under_way(why: &io::Error) -> bool {
    matches!(Errno::from_io_error(why), Some(Errno::INPROGRESS | Errno::INTR))
}

#[cfg(test)]
mod tests {
    use super::*;
    use socket2::{Domain, Type};
    use std::net::TcpListener;

    /// Longer than any of these may take, unless something waits that must not.
    const AGES: Duration = Duration::from_secs(20);

    fn socket(at: &SocketAddr) -> Result<Socket, Error> {
        let socket = Socket::new(Domain::for_address(*at), Type::STREAM, None).unwrap();
        socket.set_nonblocking(true).unwrap();
        Ok(socket)
    }

    fn error(at: &SocketAddr, why: io::Error) -> Error {
        Error::Connect { host: at.to_string(), port: at.port(), why }
    }

    /// Who won; addresses that failed are put into `failed`.
    fn race(
        addresses: &[SocketAddr],
        waits: Waits,
    ) -> (Result<SocketAddr, Error>, Vec<SocketAddr>) {
        let failures = std::cell::RefCell::new(Vec::new());
        let won = run(addresses, (waits, &CallOff::default()), socket, |at, why| {
            failures.borrow_mut().push(*at);
            error(at, why)
        });
        (won.map(|(_, socket)| socket.peer_addr().unwrap().as_socket().unwrap()), failures.take())
    }

    fn listener() -> (TcpListener, SocketAddr) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = listener.local_addr().unwrap();
        (listener, at)
    }

    /// An address where SYNs are dropped: its queue of one is full.
    fn mute() -> (Socket, Socket, SocketAddr) {
        let listener = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        listener.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into()).unwrap();
        listener.listen(0).unwrap();
        let at = listener.local_addr().unwrap().as_socket().unwrap();
        let filler = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        filler.connect(&at.into()).unwrap();
        (listener, filler, at)
    }

    /// An address that refuses.
    fn refused() -> SocketAddr {
        listener().1
    }

    fn waits(delay: Option<Duration>, end: Duration) -> Waits {
        Waits { delay, deadline: Some(Instant::now() + end) }
    }

    const DELAY: Option<Duration> = Some(Duration::from_millis(250));

    #[test]
    fn a_mute_address_costs_one_delay() {
        let ((_listener, at), (_queue, _filler, mute)) = (listener(), mute());
        let began = Instant::now();
        let (won, failed) = race(&[mute, at], waits(DELAY, AGES));
        assert_eq!(won.unwrap(), at);
        assert!(began.elapsed() >= Duration::from_millis(250), "{:?}", began.elapsed());
        assert!(failed.is_empty());
    }

    #[test]
    fn a_refused_address_costs_nothing() {
        let ((_listener, at), refused) = (listener(), refused());
        let (won, failed) = race(&[refused, at], waits(Some(2 * AGES), AGES));
        assert_eq!(won.unwrap(), at);
        assert_eq!(failed, [refused]);
    }

    /// This host may have no sockets of a family, or BindAddress be of the other one.
    #[test]
    fn an_address_without_a_socket_does_not_hide_why_others_failed() {
        let (without, refused) = (SocketAddr::from(([127, 0, 0, 2], 1)), refused());
        let off = CallOff::default();
        let open = |at: &SocketAddr| {
            if *at != without {
                return socket(at);
            }
            let why = io::ErrorKind::Unsupported.into();
            Err(Error::Option { option: "socket", why })
        };
        for addresses in [[without, refused], [refused, without]] {
            let lost = run(&addresses, (waits(DELAY, AGES), &off), open, error).unwrap_err();
            assert!(
                matches!(lost, Error::Connect { port, .. } if port == refused.port()),
                "{lost}"
            );
        }
        let lost = run(&[without], (waits(DELAY, AGES), &off), open, error).unwrap_err();
        assert!(matches!(lost, Error::Option { .. }), "{lost}");
    }

    /// The first attempt goes on while others run.
    #[test]
    fn an_address_that_answers_late_still_wins() {
        let ((queue, _filler, late), (_queue, _other, mute)) = (mute(), mute());
        let accepting = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(600));
            queue.accept().map(|filler| (queue, filler)).unwrap()
        });
        // The kernel sends the SYN again after a second, and there is room then.
        let (won, _) = race(&[late, mute], waits(DELAY, AGES));
        assert_eq!(won.unwrap(), late);
        drop(accepting.join());
    }

    #[test]
    fn without_a_delay_the_next_address_waits_for_a_failure() {
        let ((_listener, at), (_queue, _filler, mute)) = (listener(), mute());
        let (won, failed) = race(&[mute, at], waits(None, Duration::from_millis(700)));
        let Error::Connect { why, .. } = won.unwrap_err() else { panic!("another error") };
        assert_eq!(why.kind(), io::ErrorKind::TimedOut);
        assert_eq!(failed, [mute]);
        let refused = refused();
        let (won, failed) = race(&[refused, at], waits(None, AGES));
        assert_eq!((won.unwrap(), failed), (at, vec![refused]));
    }

    #[test]
    fn the_deadline_ends_attempts_that_nobody_answers() {
        let ((_a, _b, one), (_c, _d, two)) = (mute(), mute());
        let began = Instant::now();
        let (won, failed) = race(&[one, two], waits(DELAY, Duration::from_millis(600)));
        let Error::Connect { why, .. } = won.unwrap_err() else { panic!("another error") };
        assert_eq!(why.kind(), io::ErrorKind::TimedOut);
        assert_eq!(failed, [one, two]);
        assert!(began.elapsed() < AGES);
    }

    #[test]
    fn attempts_that_nobody_answers_are_called_off() {
        let ((_a, _b, one), (_c, _d, two)) = (mute(), mute());
        let (off, began) = (CallOff::default(), Instant::now());
        let lost = std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(400));
                off.call();
            });
            run(&[one, two], (waits(DELAY, 2 * AGES), &off), socket, error)
        });
        assert!(lost.is_err() && began.elapsed() < AGES, "{lost:?}");
    }

    #[test]
    fn when_all_are_refused_the_last_one_says_so() {
        let (one, two) = (refused(), refused());
        let (won, failed) = race(&[one, two], waits(DELAY, AGES));
        let Error::Connect { host, why, .. } = won.unwrap_err() else { panic!("another error") };
        assert_eq!((host, why.kind()), (two.to_string(), io::ErrorKind::ConnectionRefused));
        assert_eq!(failed, [one, two]);
    }
}
