//! Kill: 512 MiB over eight lanes through SSH, and at five moments by chance something dies: the
//! copier, the server's processes, connections, the link. The same command is run again until it
//! ends with 0: the file is identical, little was sent twice, nothing is left over.
//!
//! All of it lives in a network of its own, whose loopback is taken down and whose connections
//! `ss -K` ends. Where none can be made (without root, or in a container) that is said, a relay
//! cuts the connections, and the link stays up.

use crate::copier::{Copier, PATIENCE, Way, Whose};
use crate::dice::Dice;
use crate::forest::write;
use crate::journal::reported;
use crate::process::{Running, call, descendants, kill};
use crate::relay::Relay;
use crate::snapshot::Snapshot;
use crate::tally::{Plan, Tally};
use crate::world::World;
use anyhow::{Result, ensure};
use interop::{Kind, Lab, Server, need};
use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};
use sys::ns::NetNs;

/// How much is copied.
#[derive(Debug, Clone, Copy)]
pub struct Load {
    /// Bytes of the file.
    pub size: u64,
    /// Things that die.
    pub deaths: u64,
    /// Most that may be sent twice, in percent of the file.
    pub twice: f64,
}

impl Load {
    /// Long enough that what is under way when something dies is little beside it: 2 MiB five times
    /// are 2 percent.
    pub const FULL: Self = Self { size: 512 << 20, deaths: 5, twice: 2.0 };
    /// For a test, where a death weighs eight times as much: all lanes together have 2 MiB under way
    /// where the path is short, and up to twice that while they start or the machine stutters. Three
    /// deaths that take it all are 18.8 percent of 64 MiB.
    pub const SHORT: Self = Self { size: 64 << 20, deaths: 3, twice: 20.0 };
}

/// What dies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Death {
    Client,
    Server,
    SomeConnections,
    AllConnections,
    /// By the kernel, at both ends.
    Sockets,
    /// For a second.
    Link,
}

impl Death {
    /// What needs no network of its own.
    const BY_RELAY: &[Self] =
        &[Self::Client, Self::Server, Self::SomeConnections, Self::AllConnections];
    const ALL: &[Self] = &[
        Self::Client,
        Self::Server,
        Self::SomeConnections,
        Self::AllConnections,
        Self::Sockets,
        Self::Link,
    ];
}

/// Runs as planned.
pub fn run(plan: Plan, whose: Whose) -> Result<Tally> {
    run_with(plan, whose, Load::FULL)
}

/// Runs as planned with another load. One at a time: they would share the cores, and the link.
pub fn run_with(plan: Plan, whose: Whose, load: Load) -> Result<Tally> {
    ensure!(whose == Whose::Ours, "scp knows no lanes and no resuming");
    let one = |deaths| move |run, tally: &mut Tally| one(run, plan.seed, load, deaths, tally);
    let plan = Plan { jobs: 1, ..plan };
    let Some(network) = network() else { return plan.carry_out(one(Death::BY_RELAY)) };
    let done = network.with(|| {
        sys::tun::set_up("lo")?;
        Ok(plan.carry_out(one(Death::ALL)))
    });
    network.delete()?;
    done?
}

/// A network of its own, if this user may have one and the programs that break it are there.
fn network() -> Option<NetNs> {
    if !need::require(&["ip", "ss"]) {
        return None;
    }
    let made = NetNs::create(&format!("chaos-{}", std::process::id()));
    let why = made.as_ref().err().map(ToString::to_string).unwrap_or_default();
    need::have(made.is_ok(), &format!("link down and ss -K: no network namespace: {why}"));
    made.ok()
}

fn one(run: u64, seed: u64, load: Load, deaths: &[Death], tally: &mut Tally) -> Result<()> {
    let mut dice = Dice::of_run(seed, run);
    let kind = if run.is_multiple_of(2) { Kind::OpenSsh } else { Kind::Ours };
    let way = if (run / 2).is_multiple_of(2) { Way::Up } else { Way::Down };
    let game = Game::new(kind, way, load)?;
    let clean = game.measure()?;
    let mut running = game.start()?;
    let (mut story, mut wasted, mut runs) = (Vec::new(), 0, 1);
    let start = Instant::now();
    // All moments lie within the time that a copy without deaths takes.
    let mut moments: Vec<u64> = (0..load.deaths).map(|_| dice.below(clean.millis)).collect();
    moments.sort_unstable();
    for moment in moments {
        running.pass(Duration::from_millis(moment).saturating_sub(start.elapsed()))?;
        let death = dice.pick(deaths);
        story.push(format!("{death:?} at {} ms", start.elapsed().as_millis()));
        tally.count(&format!("killed: {death:?}"));
        game.strike(death, &mut running, &mut dice)?;
        if !running.runs()? {
            let ended = running.end(PATIENCE)?;
            tally.crash(run, &ended);
            wasted += reported(&ended.stdout, "wasted");
            running = game.start()?;
            runs += 1;
        }
    }
    let mut ended = running.end(PATIENCE * 4)?;
    tally.crash(run, &ended);
    while !ended.well() {
        wasted += reported(&ended.stdout, "wasted");
        runs += 1;
        story.push(ended.words());
        if runs > 20 || ended.late {
            tally.violation(run, &format!("{kind:?}, {way:?}: no end: {story:?}"));
            return Ok(());
        }
        ended = game.start()?.end(PATIENCE * 4)?;
        tally.crash(run, &ended);
    }
    wasted += reported(&ended.stdout, "wasted");
    story.push(ended.words());
    game.judge(run, clean.bytes, wasted, &story, tally)?;
    tally.count("copies ended with 0");
    tally.add("commands run", runs);
    Ok(())
}

/// What a copy without deaths takes.
struct Clean {
    millis: u64,
    bytes: u64,
}

/// A server, a way to it that can be cut, and a file.
struct Game {
    lab: Lab,
    server: Server,
    relay: Relay,
    world: World,
    copier: Copier,
    way: Way,
    load: Load,
}

impl Game {
    fn new(kind: Kind, way: Way, load: Load) -> Result<Self> {
        let (lab, world) = (Lab::new()?, World::new()?);
        let sftp = match kind {
            Kind::Ours => "Subsystem sftp internal-sftp".to_owned(),
            _ => "Subsystem sftp /usr/lib/openssh/sftp-server".to_owned(),
        };
        let server = Server::start(&lab, kind, &[&sftp, "MaxSessions 64"])?;
        let relay = Relay::to(server.port)?;
        lab.know_host(relay.port)?;
        write(&world.from, load.size, 1)?;
        let copier = Copier::with(Whose::Ours, &world.path("home"), None)?;
        Ok(Self { lab, server, relay, world, copier, way, load })
    }

    fn start(&self) -> Result<Running> {
        let known = self.lab.path(&format!("known_hosts.{}", self.relay.port));
        let key = self.lab.key("user_ed25519").display().to_string();
        let (known, port) =
            (format!("-oUserKnownHostsFile={}", known.display()), self.relay.port.to_string());
        let words = [
            "-F",
            "none",
            "-oBatchMode=yes",
            "-oStrictHostKeyChecking=yes",
            "-oGlobalKnownHostsFile=none",
            "-oHostName=127.0.0.1",
            &known,
            "-i",
            &key,
            "-P",
            &port,
            "-n",
            "8",
            "--json",
        ];
        let (from, to) = (&self.world.from, self.world.arrived());
        self.copier.start(self.way, from, &to, &words)
    }

    /// A copy without deaths: how long, how many bytes with SSH's share; and it is removed.
    fn measure(&self) -> Result<Clean> {
        let (start, before) = (Instant::now(), self.sent());
        let ended = self.start()?.end(PATIENCE * 4)?;
        ensure!(ended.well(), "without deaths: {}; {}", ended.words(), self.server.log());
        let (millis, bytes) = (u64::try_from(start.elapsed().as_millis())?, self.sent() - before);
        std::fs::remove_file(self.world.arrived())?;
        Ok(Clean { millis, bytes })
    }

    fn sent(&self) -> u64 {
        let [up, down] = self.relay.passed();
        if self.way == Way::Up { up } else { down }
    }

    fn strike(&self, death: Death, running: &mut Running, dice: &mut Dice) -> Result<()> {
        match death {
            Death::Client => running.kill()?,
            Death::Server => descendants(self.server.pid()).into_iter().for_each(kill),
            Death::SomeConnections => self.relay.cut(|| dice.percent(40)),
            Death::AllConnections => self.relay.cut(|| true),
            Death::Sockets => {
                call("ss", &["-K", "dport", "=", &self.relay.port.to_string()].map(OsStr::new))?
            }
            Death::Link => {
                call("ip", &["link", "set", "lo", "down"].map(OsStr::new))?;
                sleep(Duration::from_secs(1));
                call("ip", &["link", "set", "lo", "up"].map(OsStr::new))?;
            }
        }
        running.pass(Duration::from_millis(20))?;
        Ok(())
    }

    fn judge(
        &self,
        run: u64,
        clean: u64,
        wasted: u64,
        story: &[String],
        tally: &mut Tally,
    ) -> Result<()> {
        let size = self.load.size as f64;
        // Of both copies, less the one that was measured first.
        let twice = (self.sent() - clean).saturating_sub(clean);
        let percent = |bytes: u64| bytes as f64 / size * 100.0;
        let (way, kind) = (self.way, self.server.kind);
        println!(
            "run {run}: {kind:?}, {way:?}: {:.2} % sent twice by the relay's count, {:.2} % by the copier's; {}",
            percent(twice),
            percent(wasted),
            story.join(", ")
        );
        if percent(twice) > self.load.twice {
            tally.violation(
                run,
                &format!("{kind:?}, {way:?}: {:.2} % sent twice: {story:?}", percent(twice)),
            );
        }
        tally.add("KiB sent twice", twice >> 10);
        if !identical(&self.world.from, &self.world.arrived())? {
            tally.violation(run, &format!("{kind:?}, {way:?}: not identical: {story:?}"));
        }
        let parts = Snapshot::of(&self.world.to)?.parts();
        if !parts.is_empty() {
            tally.violation(run, &format!("{kind:?}, {way:?}: left over: {parts:?}"));
        }
        Ok(())
    }
}

fn identical(one: &Path, other: &Path) -> Result<bool> {
    let (mut one, mut other) = (File::open(one)?, File::open(other)?);
    if one.metadata()?.len() != other.metadata()?.len() {
        return Ok(false);
    }
    let mut blocks = [vec![0; 1 << 20], vec![0; 1 << 20]];
    loop {
        let [a, b] = &mut blocks;
        let n = one.read(a)?;
        if n == 0 {
            return Ok(true);
        }
        other.read_exact(&mut b[..n])?;
        if a[..n] != b[..n] {
            return Ok(false);
        }
    }
}
