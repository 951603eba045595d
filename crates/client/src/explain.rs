//! `--explain`: measures the path to a host for a few seconds each way, and says in words what
//! limits it and what would lift that.
//!
//! ```text
//! program   the receiving thread: passes on what happens, drops what comes
//! probe     this thread: a channel for each way, figures before and after
//! ```
//! Our own server sends zeros and takes anything by its test subsystems, where it is allowed to;
//! any other runs `cat`.

use crate::clear::{self, Purpose};
use crate::report;
use anyhow::{Context, Result, anyhow, bail};
use conf::Client;
use engine::figures::columns;
use engine::figures::limits::{self, Bytes, Rate, System, Verdict};
use engine::{Figures, Flow, Port, Program, Session, Sink, Source, Stream};
use login::{Log, Started};
use proto::Event;
use proto::channel::{LocalId, Request};
use proto::window::Rule;
use std::io::{self, Write};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

/// How long an answer may take beside the round trip.
const PATIENCE: Duration = Duration::from_secs(20);

/// Bytes after which a transfer has begun.
const STARTED: u64 = 256 << 10;

/// How long congestion control and windows grow before anything counts: at least, and in round
/// trips, and at most.
const RAMP: (Duration, u32, Duration) = (Duration::from_secs(1), 20, Duration::from_secs(5));

/// Which way the data goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Down,
    Up,
}

impl Way {
    /// What may do at the other end, the best first.
    fn requests(self) -> [Request; 2] {
        let (subsystem, command) = match self {
            Self::Down => ("zeros@longhaul", "exec cat /dev/zero"),
            Self::Up => ("discard@longhaul", "exec cat >/dev/null"),
        };
        [Request::Subsystem(subsystem.to_owned()), Request::Exec(command.into())]
    }
}

/// Connects, measures both ways for `seconds` each, and prints what there is to say.
pub(crate) fn explain(conf: &Client, log: &Log, seconds: Duration) -> Result<()> {
    let logged_in = login::log_in(conf, log, None)?;
    // Nothing is granted, and where something was asked for a line says so.
    clear::wish(conf, Purpose::Explain, log);
    let (told, happened) = channel();
    let Started { session, rx, rule, proxy: _proxy } = logged_in.start(conf, Teller(told))?;
    std::thread::scope(|scope| {
        let receiving = std::thread::Builder::new().name("receiver".to_owned());
        let receiving = receiving.spawn_scoped(scope, || rx.run().2).context("start a thread")?;
        let probe = Probe { session: &session, happened, rule, seconds };
        let said = probe.say(&conf.host_name, &mut io::stdout().lock());
        // Ends the receiving thread, whatever it waits for.
        let _ = session.call(|connection, out| {
            connection.disconnect(wire::msg::Disconnect::ByApplication, "measured", out);
            Ok(())
        });
        session.end();
        let end = receiving.join();
        match (said, end) {
            // What happened to the connection says more than that an answer did not come.
            (Err(_), Ok(Err(error))) if !matches!(error, engine::Error::Closed) => {
                Err(anyhow!("{}: {}", conf.host_name, login::escaped(&error.to_string())))
            }
            (said, _) => said,
        }
    })
}

/// The receiving thread's side: all that comes is dropped, all that happens told.
struct Teller(Sender<Event>);

impl Program for Teller {
    fn event(&mut self, port: &mut Port<'_>, event: Event) -> Result<Flow, engine::Error> {
        if let Event::Opened { id, .. } = event {
            port.attach(id, Stream::Data, Sink::discard());
            port.attach(id, Stream::Stderr, Sink::discard());
        }
        if let Event::Closed { id } = event {
            port.session().stop_sources(id);
            port.call(|connection, out| connection.close(id, out))?;
        }
        // Nobody may be waiting any more.
        let _ = self.0.send(event);
        Ok(Flow::On)
    }

    fn sink_broke(&mut self, _: &mut Port<'_>, _: LocalId, _: Stream, _: io::Error) -> Flow {
        Flow::On
    }
}

/// Figures of both ends at one moment.
struct Moment {
    here: Figures,
    there: Option<Figures>,
}

impl Moment {
    fn since(&self, earlier: &Self) -> Self {
        let there = match (&self.there, &earlier.there) {
            (Some(now), Some(then)) => Some(now.since(then)),
            _ => None,
        };
        Self { here: self.here.since(&earlier.here), there }
    }
}

/// The measuring side.
struct Probe<'a> {
    session: &'a Session,
    happened: Receiver<Event>,
    rule: Rule,
    seconds: Duration,
}

impl Probe<'_> {
    fn say(&self, host: &str, out: &mut impl Write) -> Result<()> {
        self.introduce(host, out)?;
        for (way, title) in [(Way::Down, "from"), (Way::Up, "to")] {
            let moved = self.measure(way)?;
            writeln!(out, "{title} {host}:")?;
            self.judge(&moved, way, out)?;
        }
        Ok(())
    }

    fn introduce(&self, host: &str, out: &mut impl Write) -> Result<()> {
        let (server, cipher) = self.session.transport(|transport| {
            let server = transport.peer().map(|peer| login::escaped(peer.ident().software()));
            let cipher = transport.negotiated().map(|n| n.c2s.cipher_name());
            (server.unwrap_or_default(), cipher.unwrap_or_default())
        });
        write!(out, "{host}: {server}, {cipher}")?;
        if let Some(path) = self.session.figures().path {
            let rtt = path.tcp.shortest_rtt.as_secs_f64() * 1e3;
            write!(out, ", round trip {rtt:.1} ms, congestion control {}", path.congestion)?;
        }
        writeln!(out)?;
        Ok(())
    }

    /// One way: what happened in the time that counts.
    fn measure(&self, way: Way) -> Result<Moment> {
        let id = self.open(way)?;
        if way == Way::Up {
            self.session.start_source(id, Source::Zeros, None, |_, _| ())?;
        }
        self.wait_for_data()?;
        let rtt = self.session.figures().path.map_or(Duration::ZERO, |path| path.tcp.rtt);
        let (least, trips, most) = RAMP;
        std::thread::sleep((rtt * trips).clamp(least, most));
        let before = self.moment()?;
        std::thread::sleep(self.seconds);
        let after = self.moment()?;
        self.session.stop_sources(id);
        self.session.call(|connection, out| connection.close(id, out))?;
        self.wait(|event| matches!(event, Event::Closed { id: closed } if *closed == id))?;
        Ok(after.since(&before))
    }

    /// Until something moves: a command may take its time to start.
    fn wait_for_data(&self) -> Result<()> {
        let moved = || {
            let figures = self.session.figures();
            figures.sent.bytes + figures.received.bytes
        };
        let (before, deadline) = (moved(), Instant::now() + PATIENCE);
        while moved() < before + STARTED {
            if Instant::now() >= deadline {
                bail!("nothing moves: is the server's command there?");
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(())
    }

    /// A channel whose other end gives or takes as much as it can.
    fn open(&self, way: Way) -> Result<LocalId> {
        for request in way.requests() {
            let id = self.session.open_session(self.rule)?;
            let opened = self
                .wait(|event| matches!(event, Event::Opened { .. } | Event::OpenFailed { .. }))?;
            if let Event::OpenFailed { text, .. } = opened {
                bail!("the server opens no session: {}", login::escaped(&text));
            }
            self.session.call(|connection, out| connection.request(id, &request, true, out))?;
            let reply =
                self.wait(|event| matches!(event, Event::Reply { .. } | Event::Closed { .. }))?;
            match reply {
                Event::Reply { ok: true, .. } => return Ok(id),
                Event::Reply { .. } => {
                    self.session.call(|connection, out| connection.close(id, out))?;
                    self.wait(|event| matches!(event, Event::Closed { .. }))?;
                }
                _ => {}
            }
        }
        bail!("the server runs neither its test subsystems (TestSubsystems) nor cat")
    }

    /// The next event of a kind; others are passed over.
    fn wait(&self, wanted: impl Fn(&Event) -> bool) -> Result<Event> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            match self.happened.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(event) if wanted(&event) => return Ok(event),
                Ok(_) => {}
                Err(RecvTimeoutError::Timeout) => bail!("no answer for {} s", PATIENCE.as_secs()),
                Err(RecvTimeoutError::Disconnected) => bail!("the connection is over"),
            }
        }
    }

    fn moment(&self) -> Result<Moment> {
        let knows = |t: &proto::Transport| t.peer().is_some_and(proto::Peer::is_longhaul);
        let mut there = None;
        if self.session.transport(knows) {
            report::ask(self.session)?;
            let is_answer = |event: &Event| matches!(event, Event::GlobalReply { name, .. } if name == report::TCP_INFO);
            if let Event::GlobalReply { ok: true, data, .. } = self.wait(is_answer)? {
                there = columns::read(&data).ok();
            }
        }
        Ok(Moment { here: self.session.figures(), there })
    }

    /// The rate, what limits it, and what would lift that.
    fn judge(&self, moved: &Moment, way: Way, out: &mut impl Write) -> Result<()> {
        let here = &moved.here;
        let bytes = match way {
            Way::Down => here.received.bytes,
            Way::Up => here.sent.bytes,
        };
        let rate = bytes as f64 / here.age.as_secs_f64().max(f64::MIN_POSITIVE);
        writeln!(out, "  {} ({:.0} Mbit/s)", Rate(rate as u64), rate * 8.0 / 1e6)?;
        match limits::find(here, moved.there.as_ref()) {
            None => writeln!(out, "  too little was moved in {:.0} s", here.age.as_secs_f64())?,
            Some(verdict) => self.advise(&verdict, out)?,
        }
        Ok(())
    }

    fn advise(&self, verdict: &Verdict, out: &mut impl Write) -> Result<()> {
        let ours = self.session.transport(|t| t.peer().is_some_and(proto::Peer::is_longhaul));
        writeln!(out, "  limited by: {verdict}")?;
        for line in limits::advice(verdict, &System::here(), ours) {
            writeln!(out, "    {line}")?;
        }
        let product = verdict.rtt.as_secs_f64() * verdict.rate as f64;
        if product >= 1.0 {
            writeln!(out, "    On their way at this rate: {}.", Bytes(product as u64))?;
        }
        Ok(())
    }
}
