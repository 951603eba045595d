//! Run: one turn of a case is one server and one client, both measured, on a path of their own.

use crate::cases::{Case, Entrant, Tool, Work};
use crate::command::{self, End, Order};
use crate::keystrokes::Findings;
use crate::lab::Lab;
use crate::measured::{self, Report};
use crate::net::{Net, Place};
use crate::{Options, stream};
use anyhow::{Context, Result, bail, ensure};
use serde::Serialize;
use std::collections::HashMap;
use std::fs::{self, File};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How long a slow consumer is watched.
const WATCH: f64 = 10.0;
/// Logins on a sound link of which the fastest is subtracted in link cases.
const KNOCKS: usize = 3;
/// What a link case moves by default: so many seconds at the link's rate.
const LINK_SECONDS: u64 = 20;

/// One turn of one contender.
#[derive(Debug, Serialize)]
pub(crate) struct Sample {
    /// Bytes moved; 0 for logins.
    pub(crate) bytes: u64,
    /// Which losses an emulated link has: those of its round, the same for all contenders.
    pub(crate) seed: u64,
    /// Seconds the bytes took: the client's whole life, login included; over a link without the
    /// login. For iperf3 by its own figure.
    pub(crate) seconds: f64,
    pub(crate) client: Report,
    pub(crate) server: Report,
    /// MiB that the receiver needed above an idle session, in slow-consumer cases.
    pub(crate) over_idle_mib: Option<f64>,
    /// What the slower of two channels got of what the faster one did, in fairness cases.
    pub(crate) share: Option<f64>,
}

/// The least time of the first `wanted` sound turns.
fn least(turns: impl Iterator<Item = Result<Turn>>, wanted: usize) -> Result<f64> {
    let (mut sound, mut refused) = (Vec::new(), String::new());
    for turn in turns {
        let turn = turn?;
        match turn.refused {
            None => sound.push(turn.sample.seconds),
            Some(why) => refused = why,
        }
        if sound.len() == wanted {
            break;
        }
    }
    ensure!(sound.len() == wanted, "{} of {wanted} sound logins: {refused}", sound.len());
    sound.into_iter().reduce(f64::min).context("no login was asked for")
}

/// A sample, and why it may not be used, if so.
pub(crate) struct Turn {
    pub(crate) sample: Sample,
    pub(crate) refused: Option<String>,
}

/// What the turns of one case share.
pub(crate) struct Bench<'a> {
    lab: &'a Lab,
    case: &'a Case,
    cipher: &'a str,
    /// Who logs in.
    user: String,
    /// Who logs in when an entrant runs without privilege.
    plain: String,
    size: u64,
    sources: HashMap<u64, PathBuf>,
}

impl<'a> Bench<'a> {
    pub(crate) fn new(lab: &'a mut Lab, options: &'a Options, case: &'a Case) -> Result<Self> {
        let plain = case.work == Work::Login || case.entrants.iter().any(|entrant| entrant.plain);
        let plain = if plain { lab.login_user()? } else { lab.user.clone() };
        let user = if case.work == Work::Login { plain.clone() } else { lab.user.clone() };
        let size = lab.fitting(size(options, case))?;
        let lab: &Lab = lab;
        let mut sources = HashMap::new();
        for size in case.entrants.iter().map(|entrant| size / entrant.divide) {
            sources.insert(size, lab.source(size)?);
        }
        let cipher = options.cipher.as_deref().unwrap_or(case.cipher);
        Ok(Self { lab, case, cipher, user, plain, size, sources })
    }

    /// What this contender lacks.
    pub(crate) fn missing(&self, entrant: &Entrant) -> Option<String> {
        command::missing(self.lab, entrant)
    }

    /// The seconds of a login by an SSH contender, which also warms its caches. Where it is going to
    /// be subtracted, the least of several on a link that kept up.
    pub(crate) fn knock(&self, entrant: &Entrant) -> Result<f64> {
        let Tool::Ssh { .. } = entrant.tool else { return Ok(0.0) };
        let login = |_| self.once(entrant, Work::Login, None, 1);
        if self.subtracts_login() {
            return least((0..3 * KNOCKS).map(login), KNOCKS);
        }
        Ok(login(0)?.sample.seconds)
    }

    /// iperf3's figure has no connection set-up in it either.
    fn subtracts_login(&self) -> bool {
        let work = self.case.work;
        let is_timed = work.is_early() || work.is_typing() || work.is_slow();
        self.case.path.is_some() && work != Work::Login && !is_timed
    }

    /// One turn, of which `login` seconds were the login, with the losses of `seed`.
    pub(crate) fn turn(&self, entrant: &Entrant, login: f64, seed: u64) -> Result<Turn> {
        if self.case.work.is_slow() {
            return self.slow(entrant, seed);
        }
        let mut turn = self.once(entrant, self.case.work, None, seed)?;
        let bytes = turn.sample.bytes as f64;
        if self.case.work.is_early() {
            let said = fs::read_to_string(self.lab.path("client.out"))?;
            turn.sample.bytes = said.trim().parse().context("what came in the first second")?;
            turn.sample.seconds = stream::SECOND.as_secs_f64();
        } else if self.case.work.is_typing() {
            let said = fs::read_to_string(self.lab.path("client.out"))?;
            let findings: Findings = serde_json::from_str(&said)?;
            turn.sample.seconds = findings.p99;
            turn.sample.share = findings.share();
        } else if entrant.tool == Tool::Iperf {
            turn.sample.seconds = bytes / self.iperf_rate()?;
        } else if self.subtracts_login() {
            turn.sample.seconds -= login;
            ensure!(turn.sample.seconds > 0.0, "it took no longer than a login: too little moved");
        }
        Ok(turn)
    }

    /// Peak memory with a consumer of 1 MB/s, less the peak of a session that only logs in.
    fn slow(&self, entrant: &Entrant, seed: u64) -> Result<Turn> {
        let idle = self.once(entrant, Work::Login, None, seed)?.sample;
        let mut turn = self.once(entrant, self.case.work, Some(WATCH), seed)?;
        let receiver = |s: &Sample| match self.case.work.is_push() {
            true => s.server.peak_kib,
            false => s.client.peak_kib,
        };
        let over = receiver(&turn.sample) - receiver(&idle);
        turn.sample.over_idle_mib = Some(over as f64 / 1024.0);
        turn.sample.bytes = 0;
        Ok(turn)
    }

    fn iperf_rate(&self) -> Result<f64> {
        let text = fs::read(self.lab.path("client.out"))?;
        let json: serde_json::Value = serde_json::from_slice(&text)?;
        let rate = json.pointer("/end/sum_received/bits_per_second");
        Ok(rate.and_then(serde_json::Value::as_f64).context("iperf3 gave no rate")? / 8.0)
    }

    /// One server, one client, both measured, on a link of their own.
    fn once(&self, entrant: &Entrant, work: Work, seconds: Option<f64>, seed: u64) -> Result<Turn> {
        let net = Net::up(self.case.path, seed)?;
        let size = self.size / entrant.divide;
        let order = Order {
            work,
            cipher: self.cipher,
            source: self.sources.get(&size).context("no source")?,
            size,
            user: if entrant.plain { &self.plain } else { &self.user },
            server: net.free()?,
            congestion: self.case.path.map(|path| path.congestion),
        };
        let ends = self.both(&net, entrant, &order, seconds);
        let refused = net.down();
        let (client, server) = ends?;
        let seconds = client.wall;
        let (bytes, over_idle_mib, share) = (size, None, None);
        let sample = Sample { bytes, seed, seconds, client, server, over_idle_mib, share };
        Ok(Turn { sample, refused })
    }

    fn both(
        &self,
        net: &Net,
        entrant: &Entrant,
        order: &Order<'_>,
        seconds: Option<f64>,
    ) -> Result<(Report, Report)> {
        let end = command::server(self.lab, entrant, order)?;
        let mut server = self.start(net, Place::Server, &end, order.server, None)?;
        let client = listening(&mut server, order.server).and_then(|()| {
            let end = command::client(self.lab, entrant, order)?;
            self.start(net, Place::Client, &end, order.server, seconds)?.wait()?;
            self.report("client")
        });
        // A client that never came leaves a server that waits for ever.
        let ended = end_within(&mut server, if client.is_ok() { 10.0 } else { 0.5 });
        let client = client?;
        ended.context("the server did not end after the client")?;
        Ok((client, self.report("server")?))
    }

    /// Starts one end under `lhbench measured`.
    fn start(
        &self,
        net: &Net,
        place: Place,
        end: &End,
        address: SocketAddr,
        seconds: Option<f64>,
    ) -> Result<Child> {
        let name = match place {
            Place::Client => "client",
            Place::Server => "server",
        };
        let report = self.lab.path(&format!("{name}.json"));
        let _ = fs::remove_file(&report);
        let mut command = measured::command(&self.lab.lhbench, &report);
        if end.inetd {
            command.args(["--accept", &address.to_string()]);
        }
        if let Some(seconds) = seconds {
            command.args(["--seconds", &seconds.to_string()]);
        }
        command.arg("--").args(&end.words).env_remove("SSH_AUTH_SOCK");
        command.stdin(input(end)?).stdout(self.output(name, seconds)?);
        command.stderr(File::create(self.lab.path(&format!("{name}.err")))?);
        net.spawn(place, &mut command)
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

/// Bytes per turn.
fn size(options: &Options, case: &Case) -> u64 {
    let default = match case.path {
        Some(path) => u64::from(path.mbit) * 125_000 * LINK_SECONDS,
        None => 8 << 30,
    };
    if case.work == Work::Login || case.work.is_typing() {
        0
    } else {
        options.size.map_or(default, |size| size.0)
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
pub(crate) fn listening(server: &mut Child, address: SocketAddr) -> Result<()> {
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

pub(crate) fn end_within(server: &mut Child, seconds: f64) -> Result<()> {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn login(seconds: f64, refused: Option<&str>) -> Result<Turn> {
        let zero = Report { wall: 0.0, user: 0.0, system: 0.0, peak_kib: 0, ok: true };
        let (client, server) = (zero.clone(), zero);
        let (over_idle_mib, share) = (None, None);
        let sample = Sample { bytes: 0, seed: 1, seconds, client, server, over_idle_mib, share };
        Ok(Turn { sample, refused: refused.map(str::to_owned) })
    }

    #[test]
    fn the_login_that_is_subtracted_is_the_least_of_sound_ones() {
        let turns = || {
            [login(0.5, None), login(0.1, Some("late")), login(0.4, None), login(0.6, None)]
                .into_iter()
        };
        assert_eq!(least(turns(), 3).unwrap(), 0.4);
        assert_eq!(least(turns(), 1).unwrap(), 0.5, "no more than needed");
        let why = least(turns(), 4).unwrap_err().to_string();
        assert_eq!(why, "3 of 4 sound logins: late");
    }
}
