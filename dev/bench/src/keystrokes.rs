//! Keystrokes: round trips of single bytes through `cat` beside channels that move data at full
//! speed, all on one connection. Ours in this process, stock ssh as a master and a second session.
//!
//! ```text
//! ours     this process logs in and opens the channels      (Typist is the engine's program)
//! stock    ssh -M ... 'cat >/dev/null' <zeros, ssh -S ... for more of it, then ssh -S ... cat
//! both     a byte there and back, a pause, and so on; then p50, p99, what each bulk channel got
//! ```

use anyhow::{Context, Result, ensure};
use conf::Setting;
use conf::client::Files;
use engine::{Consumer, Fd, Flow, Port, Producer, Program, Sink, Source, Stream};
use login::{Log, Started};
use proto::Event;
use proto::channel::{LocalId, Request};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut, PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// From the start of the bulk to the first keystroke that counts.
const WARM_UP: Duration = Duration::from_secs(2);
/// Between an echo and the next keystroke: no human types faster.
const PAUSE: Duration = Duration::from_millis(20);
/// The command line of `lhbench keystrokes`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// The bulk comes from the server
    #[arg(long)]
    pull: bool,
    /// Channels at full speed
    #[arg(long, default_value_t = 1)]
    bulk: usize,
    /// Keystrokes that count
    #[arg(long, default_value_t = 300)]
    strokes: usize,
    /// The words of a stock client up to the host, instead of ours
    #[arg(long)]
    stock: bool,
    /// Settings of our client and the host; or a stock client's words
    #[arg(last = true, required = true)]
    words: Vec<String>,
}

/// What came out, as JSON on standard output.
#[derive(Serialize, Deserialize)]
pub(crate) struct Findings {
    /// Round trips of keystrokes, in seconds: the median, and what one in a hundred exceeds.
    pub(crate) p50: f64,
    pub(crate) p99: f64,
    /// Bytes per second of each bulk channel meanwhile.
    pub(crate) bulk: Vec<f64>,
}

impl Findings {
    /// What the channel with the least got of what the one with the most did.
    pub(crate) fn share(&self) -> Option<f64> {
        let least = self.bulk.iter().copied().reduce(f64::min)?;
        let most = self.bulk.iter().copied().reduce(f64::max)?;
        Some(least / most)
    }
}

/// `lhbench keystrokes`.
pub(crate) fn main(options: &Options) -> Result<()> {
    let findings = if options.stock { stock(options) } else { ours(options) }?;
    println!("{}", serde_json::to_string(&findings)?);
    Ok(())
}

/// Bytes of a bulk channel so far.
type Count = Arc<AtomicU64>;

/// Types beside bulk that has reached its speed.
fn beside(bulk: &[Count], strokes: usize, keys: impl Write, echo: impl Read) -> Result<Findings> {
    sleep(WARM_UP);
    let moved = || bulk.iter().map(|count| count.load(Ordering::Relaxed)).collect::<Vec<_>>();
    let (before, began) = (moved(), Instant::now());
    let (p50, p99) = types(strokes, keys, echo)?;
    let seconds = began.elapsed().as_secs_f64();
    let rates =
        moved().iter().zip(before).map(|(now, then)| (now - then) as f64 / seconds).collect();
    Ok(Findings { p50, p99, bulk: rates })
}

/// Types, and takes the time of each echo.
fn types(strokes: usize, mut keys: impl Write, mut echo: impl Read) -> Result<(f64, f64)> {
    let mut trips = Vec::with_capacity(strokes);
    for _ in 0..strokes {
        let (began, mut byte) = (Instant::now(), [b'x']);
        keys.write_all(&byte)?;
        echo.read_exact(&mut byte)?;
        trips.push(began.elapsed().as_secs_f64());
        sleep(PAUSE);
    }
    trips.sort_by(f64::total_cmp);
    let at = |part: f64| trips.get((trips.len() as f64 * part) as usize).copied();
    at(0.5).zip(at(0.99)).context("no keystrokes")
}

/// Zero bytes, counted.
struct Zeros(Count);

impl Producer for Zeros {
    fn wait(&mut self) -> bool {
        true
    }

    fn fill(&mut self, areas: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        areas.iter_mut().for_each(|area| area.fill(0));
        let bytes = areas.iter().map(|area| area.len()).sum();
        self.0.fetch_add(bytes as u64, Ordering::Relaxed);
        Ok(bytes)
    }
}

/// Takes everything at once, counted.
struct Taken {
    bytes: Count,
    /// Never asked for, as nothing is left.
    room: Arc<File>,
}

impl Consumer for Taken {
    fn take(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        let bytes = pieces.iter().map(|piece| piece.len()).sum();
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        Ok(bytes)
    }

    fn room(&self) -> BorrowedFd<'_> {
        self.room.as_fd()
    }

    fn end(&mut self) {}
}

/// What happens on our channels: the bulk ones are opened first.
struct Typist {
    pull: bool,
    bulk: Vec<Count>,
    opened: usize,
    idle: Arc<File>,
    pipes: Option<(PipeReader, PipeWriter)>,
}

impl Typist {
    fn start(&mut self, port: &mut Port<'_>, id: LocalId) -> Result<(), engine::Error> {
        let bulk = self.bulk.get(self.opened).map(Arc::clone);
        self.opened += 1;
        let command = match bulk {
            None => "cat",
            Some(_) if self.pull => "cat /dev/zero",
            Some(_) => "cat >/dev/null",
        };
        let exec = Request::Exec(command.into());
        port.call(|connection, out| connection.request(id, &exec, true, out))?;
        let source = match bulk {
            Some(bytes) if self.pull => {
                let taken = Taken { bytes, room: Arc::clone(&self.idle) };
                port.attach(id, Stream::Data, Sink::consumer(Box::new(taken)));
                return Ok(());
            }
            Some(sent) => Source::Producer(Box::new(Zeros(sent))),
            None => {
                let Some((keys, echo)) = self.pipes.take() else { return Ok(()) };
                port.attach(id, Stream::Data, Sink::fd(OwnedFd::from(echo).into()));
                Source::Fd(Fd::from(OwnedFd::from(keys)))
            }
        };
        port.session().start_source(id, source, None, |_, _| {})
    }
}

impl Program for Typist {
    fn event(&mut self, port: &mut Port<'_>, event: Event) -> Result<Flow, engine::Error> {
        match event {
            Event::Opened { id, .. } => self.start(port, id)?,
            Event::OpenFailed { .. } | Event::Closed { .. } => return Ok(Flow::Finish),
            _ => {}
        }
        Ok(Flow::On)
    }

    fn sink_broke(&mut self, _: &mut Port<'_>, _: LocalId, _: Stream, _: io::Error) -> Flow {
        Flow::Finish
    }
}

fn ours(options: &Options) -> Result<Findings> {
    let (host, settings) = options.words.split_last().context("no host")?;
    let given: Vec<_> =
        settings.iter().map(|text| Setting::option(text)).collect::<Result<_, _>>()?;
    let local = login::local_user()?;
    let conf = conf::client::load(host, &given, &Files::None, &login::supported(), &local)?.config;
    let log = Log::new("lhbench", conf.log_level, None)?;
    let (keys_out, keys) = io::pipe()?;
    let (echo, echo_in) = io::pipe()?;
    let bulk: Vec<_> = (0..options.bulk).map(|_| Count::default()).collect();
    let typist = Typist {
        pull: options.pull,
        bulk: bulk.clone(),
        opened: 0,
        idle: Arc::new(File::open("/dev/null")?),
        pipes: Some((keys_out, echo_in)),
    };
    let logged_in = login::log_in(&conf, &log, None)?;
    let Started { session, rx, rule, proxy: _proxy } = logged_in.start(&conf, typist)?;
    for _ in 0..=options.bulk {
        session.open_session(rule)?;
    }
    // The process ends with the findings, and the connection with the process.
    std::thread::spawn(move || rx.run().2.inspect_err(|error| eprintln!("lhbench: {error}")));
    beside(&bulk, options.strokes, keys, echo)
}

/// A stock client, which ends with its owner.
struct Ssh(Child);

impl Drop for Ssh {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn stock(options: &Options) -> Result<Findings> {
    let (program, args) = options.words.split_first().context("no client")?;
    // The lab's, which goes away even if this process is killed.
    let lab = std::env::current_exe()?;
    let dir = tempfile::tempdir_in(lab.parent().context("no directory")?)?;
    let socket = dir.path().join("master");
    let ssh = |control: &str, remote: &str| {
        let mut command = Command::new(program);
        command.arg(control).arg("-S").arg(&socket).args(args).arg(remote);
        command
    };
    let (mut clients, mut bulk) = (Vec::new(), Vec::new());
    for control in std::iter::once("-M").chain(std::iter::repeat("-T")).take(options.bulk) {
        let mut client = if options.pull {
            ssh(control, "cat /dev/zero").stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?
        } else {
            ssh(control, "cat >/dev/null").stdin(Stdio::piped()).stdout(Stdio::null()).spawn()?
        };
        bulk.push(counted(&mut client));
        clients.push(Ssh(client));
        wait_for(&socket)?;
    }
    let mut echo = ssh("-T", "cat").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let (keys, back) = (echo.stdin.take(), echo.stdout.take());
    clients.push(Ssh(echo));
    beside(&bulk, options.strokes, keys.context("stdin")?, back.context("stdout")?)
}

/// Feeds a stock client, or drains it, on a thread that ends with it; the bytes so far.
fn counted(client: &mut Child) -> Count {
    let count = Count::default();
    let moved = |count: &Count, bytes: usize| count.fetch_add(bytes as u64, Ordering::Relaxed);
    let mut block = vec![0; 64 << 10];
    if let Some(mut stdin) = client.stdin.take() {
        let count = Arc::clone(&count);
        std::thread::spawn(move || {
            while let Ok(bytes) = stdin.write(&block) {
                moved(&count, bytes);
            }
        });
    } else if let Some(mut stdout) = client.stdout.take() {
        let count = Arc::clone(&count);
        std::thread::spawn(move || {
            while let Ok(bytes @ 1..) = stdout.read(&mut block) {
                moved(&count, bytes);
            }
        });
    }
    count
}

fn wait_for(socket: &Path) -> Result<()> {
    let began = Instant::now();
    while !socket.exists() {
        ensure!(began.elapsed() < Duration::from_secs(20), "the stock client does not log in");
        sleep(Duration::from_millis(10));
    }
    Ok(())
}
