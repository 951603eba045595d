//! Run: the contenders of a case take turns; each turn is one server and one client.

use crate::cases::{Case, Entrant, Tool, Work};
use crate::command::{self, End, Order};
use crate::lab::Lab;
use crate::measured::Report;
use crate::net::Net;
use crate::{Options, chart, quiet};
use anyhow::{Context, Result, bail, ensure};
use serde::Serialize;
use std::collections::HashSet;
use std::fs::{self, File};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How long a slow consumer is watched.
const WATCH: f64 = 10.0;
/// What a link case moves by default: so many seconds at the link's rate.
const LINK_SECONDS: u64 = 20;

/// One turn of one contender.
#[derive(Debug, Serialize)]
pub(crate) struct Sample {
    /// Bytes moved; 0 for logins.
    pub(crate) bytes: u64,
    /// Seconds the bytes took: the client's whole life, login included, except for iperf3,
    /// whose own figure is taken.
    pub(crate) seconds: f64,
    pub(crate) client: Report,
    pub(crate) server: Report,
    /// MiB that the receiver needed above an idle session, in slow-consumer cases.
    pub(crate) over_idle_mib: Option<f64>,
}

/// All turns of one contender in one case.
#[derive(Debug, Serialize)]
pub(crate) struct Series {
    pub(crate) case: &'static str,
    pub(crate) contender: &'static str,
    pub(crate) samples: Vec<Sample>,
}

/// Runs the chosen cases, prints a table for each, writes the JSON.
pub(crate) fn suite(options: &Options, cases: &'static [Case]) -> Result<()> {
    for warning in quiet::warnings() {
        eprintln!("lhbench: warning: {warning}");
    }
    let wanted = |case: &&Case| chosen(&options.cases, case.name);
    ensure!(cases.iter().any(|case| wanted(&case)), "no such case: see lhbench cases");
    let mut lab = Lab::new(options)?;
    let (mut all, mut out) = (Vec::new(), HashSet::new());
    let mut missed = 0;
    for case in cases.iter().filter(wanted) {
        let series = turns(&mut lab, options, case, &mut out).with_context(|| case.name)?;
        missed += chart::print(case, &series);
        all.extend(series);
    }
    if let Some(path) = &options.json {
        fs::write(path, serde_json::to_vec_pretty(&all)?)?;
    }
    ensure!(!options.strict || missed == 0, "{missed} bar(s) missed");
    Ok(())
}

fn chosen(filters: &[String], name: &str) -> bool {
    filters.is_empty() || filters.iter().any(|part| name.contains(part.as_str()))
}

/// The turns of one case. Who cannot take part is remembered in `out` and asked no more.
fn turns(
    lab: &mut Lab,
    options: &Options,
    case: &Case,
    out: &mut HashSet<&'static str>,
) -> Result<Vec<Series>> {
    let bench = Bench::new(lab, options, case)?;
    let mut series = Vec::new();
    for entrant in case.entrants.iter().filter(|e| chosen(&options.contenders, e.name)) {
        if out.contains(entrant.name) {
            continue;
        }
        if bench.ready(entrant) {
            let (case, contender) = (case.name, entrant.name);
            series.push((entrant, Series { case, contender, samples: Vec::new() }));
        } else {
            out.insert(entrant.name);
        }
    }
    for _ in 0..options.runs {
        for (entrant, series) in &mut series {
            let sample = bench.turn(entrant).with_context(|| entrant.name)?;
            series.samples.push(sample);
        }
    }
    Ok(series.into_iter().map(|(_, series)| series).collect())
}

/// What the turns of one case share.
struct Bench<'a> {
    lab: &'a Lab,
    net: Net,
    case: &'a Case,
    cipher: &'a str,
    user: String,
    size: u64,
    source: PathBuf,
}

impl<'a> Bench<'a> {
    fn new(lab: &'a mut Lab, options: &'a Options, case: &'a Case) -> Result<Self> {
        let user = if case.work == Work::Login { lab.login_user()? } else { lab.user.clone() };
        let default = match case.path {
            Some(path) => u64::from(path.mbit) * 125_000 * LINK_SECONDS,
            None => 8 << 30,
        };
        let size = options.size.map_or(default, |size| size.0);
        let size = if case.work == Work::Login { 0 } else { size };
        let lab: &Lab = lab;
        let source = lab.source(size)?;
        let net = Net::up(options, case.path)?;
        let cipher = options.cipher.as_deref().unwrap_or(case.cipher);
        Ok(Self { lab, net, case, cipher, user, size, source })
    }

    /// Whether the contender is installed and can log in; says why when not.
    fn ready(&self, entrant: &Entrant) -> bool {
        let why = match command::missing(self.lab, entrant) {
            Some(what) => Some(format!("{what} is not there")),
            None => self.knock(entrant).err().map(|why| format!("{why:#}")),
        };
        if let Some(why) = &why {
            eprintln!("lhbench: {} is left out: {why}", entrant.name);
        }
        why.is_none()
    }

    /// One login by an SSH contender, which also warms its caches.
    fn knock(&self, entrant: &Entrant) -> Result<()> {
        if let Tool::Ssh { .. } = entrant.tool {
            self.once(entrant, Work::Login, None)?;
        }
        Ok(())
    }

    fn turn(&self, entrant: &Entrant) -> Result<Sample> {
        if self.case.work.is_slow() {
            return self.slow(entrant);
        }
        let mut sample = self.once(entrant, self.case.work, None)?;
        if entrant.tool == Tool::Iperf {
            sample.seconds = self.bytes() as f64 / self.iperf_rate()?;
        }
        Ok(sample)
    }

    /// Peak memory with a consumer of 1 MB/s, less the peak of a session that only logs in.
    fn slow(&self, entrant: &Entrant) -> Result<Sample> {
        let idle = self.once(entrant, Work::Login, None)?;
        let mut sample = self.once(entrant, self.case.work, Some(WATCH))?;
        let receiver = |s: &Sample| match self.case.work.is_push() {
            true => s.server.peak_kib,
            false => s.client.peak_kib,
        };
        sample.over_idle_mib = Some((receiver(&sample) - receiver(&idle)) as f64 / 1024.0);
        sample.bytes = 0;
        Ok(sample)
    }

    fn bytes(&self) -> u64 {
        self.size
    }

    fn iperf_rate(&self) -> Result<f64> {
        let text = fs::read(self.lab.path("client.out"))?;
        let json: serde_json::Value = serde_json::from_slice(&text)?;
        let rate = json.pointer("/end/sum_received/bits_per_second");
        Ok(rate.and_then(serde_json::Value::as_f64).context("iperf3 gave no rate")? / 8.0)
    }

    /// One server, one client, both measured.
    fn once(&self, entrant: &Entrant, work: Work, seconds: Option<f64>) -> Result<Sample> {
        let order = Order {
            work,
            cipher: self.cipher,
            source: &self.source,
            size: self.size,
            user: &self.user,
            server: self.net.free()?,
            congestion: self.case.path.map(|path| path.congestion),
        };
        let server_end = command::server(self.lab, entrant, &order)?;
        let mut server = self.start("server", &self.net.server, &server_end, order.server, None)?;
        let outcome = listening(&mut server, order.server).and_then(|()| {
            let end = command::client(self.lab, entrant, &order)?;
            let mut client = self.start("client", &self.net.client, &end, order.server, seconds)?;
            client.wait()?;
            self.report("client")
        });
        // A client that never came leaves a server that waits for ever.
        let patience = if outcome.is_ok() { 10.0 } else { 0.5 };
        let ended = end_within(&mut server, patience);
        let client = outcome?;
        ended.context("the server did not end after the client")?;
        let server = self.report("server")?;
        Ok(Sample {
            bytes: self.bytes(),
            seconds: client.wall,
            client,
            server,
            over_idle_mib: None,
        })
    }

    /// Starts one end under `lhbench measured`.
    fn start(
        &self,
        name: &str,
        place: &[String],
        end: &End,
        address: SocketAddr,
        seconds: Option<f64>,
    ) -> Result<Child> {
        let _ = fs::remove_file(self.lab.path(&format!("{name}.json")));
        let lhbench = self.lab.lhbench.display().to_string();
        let report = self.lab.path(&format!("{name}.json")).display().to_string();
        let mut words = [place, &[lhbench, "measured".into(), "--report".into(), report]].concat();
        if end.inetd {
            words.extend(["--accept".into(), address.to_string()]);
        }
        if let Some(seconds) = seconds {
            words.extend(["--seconds".into(), seconds.to_string()]);
        }
        words.push("--".into());
        words.extend(end.words.iter().cloned());
        let (program, args) = words.split_first().context("no command")?;
        let mut command = Command::new(program);
        command.args(args).env_remove("SSH_AUTH_SOCK");
        command.stdin(input(end)?).stdout(self.output(name, seconds)?);
        command.stderr(File::create(self.lab.path(&format!("{name}.err")))?);
        command.spawn().with_context(|| words.join(" "))
    }

    /// A file, or, for a consumer that is slow, a pipe to one.
    fn output(&self, name: &str, seconds: Option<f64>) -> Result<Stdio> {
        if seconds.is_none() || self.case.work != Work::SlowPull {
            return Ok(File::create(self.lab.path(&format!("{name}.out")))?.into());
        }
        let mut consumer = Command::new(&self.lab.lhbench);
        consumer.args(["throttle", "1M"]).stdin(Stdio::piped());
        let mut child = consumer.spawn()?;
        let pipe = child.stdin.take().context("no pipe")?;
        // It ends by itself when the pipe is closed and drained.
        std::thread::spawn(move || child.wait());
        Ok(pipe.into())
    }

    fn report(&self, name: &str) -> Result<Report> {
        let said = || self.said(name);
        let text = fs::read(self.lab.path(&format!("{name}.json")))
            .with_context(|| format!("the {name} left no report: {}", said()))?;
        let report: Report = serde_json::from_slice(&text)?;
        // A server may end with any status once its client has gone: sshd -i says 255.
        ensure!(report.ok || name == "server", "the {name} failed: {}", said());
        Ok(report)
    }

    fn said(&self, name: &str) -> String {
        let text = fs::read_to_string(self.lab.path(&format!("{name}.err"))).unwrap_or_default();
        text.lines().rev().take(3).collect::<Vec<_>>().join(" / ")
    }
}

fn input(end: &End) -> Result<Stdio> {
    match &end.stdin {
        Some(path) => Ok(File::open(path)?.into()),
        None => Ok(Stdio::null()),
    }
}

/// Waits until `server` listens: seen in its network namespace's table, because connecting would
/// use up a server that takes one connection.
fn listening(server: &mut Child, address: SocketAddr) -> Result<()> {
    let deadline = Instant::now() + Duration::from_secs(5);
    let port = format!(":{:04X} ", address.port());
    while Instant::now() < deadline {
        let table = |kind| fs::read_to_string(format!("/proc/{}/net/{kind}", server.id()));
        let text = table("tcp").unwrap_or_default() + &table("tcp6").unwrap_or_default();
        if text.lines().any(|line| line.contains(&port) && line.contains(" 0A ")) {
            return Ok(());
        }
        ensure!(server.try_wait()?.is_none(), "the server ended before the client came");
        sleep(Duration::from_millis(2));
    }
    bail!("the server does not listen");
}

fn end_within(server: &mut Child, seconds: f64) -> Result<()> {
    let deadline = Instant::now() + Duration::from_secs_f64(seconds);
    while Instant::now() < deadline {
        if server.try_wait()?.is_some() {
            return Ok(());
        }
        sleep(Duration::from_millis(2));
    }
    server.kill()?;
    server.wait()?;
    bail!("killed after {seconds} s")
}
