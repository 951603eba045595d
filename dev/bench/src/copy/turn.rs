//! Turn: one server that listens, one copy, both measured, on a path of their own.

use super::Options;
use super::cases::{Case, Load};
use super::command::{self, Order, Who};
use super::load;
use crate::lab::Lab;
use crate::measured::{self, Report};
use crate::net::{Net, Place};
use crate::run::{end_within, listening};
use crate::stop;
use anyhow::{Context, Result, bail, ensure};
use serde::Serialize;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Nobody's turn takes longer.
const LONGEST: Duration = Duration::from_secs(900);

/// One turn of one contender.
#[derive(Debug, Serialize)]
pub(crate) struct Sample {
    /// Content.
    pub(crate) bytes: u64,
    pub(crate) files: u64,
    /// Which losses an emulated link has: those of its round, the same for all contenders.
    pub(crate) seed: u64,
    /// The client's whole life, logins included.
    pub(crate) seconds: f64,
    /// From the client's start to the first byte of content at the other end.
    pub(crate) first_byte: Option<f64>,
    pub(crate) client: Report,
    pub(crate) server: Report,
}

/// What the turns of one case share.
pub(crate) struct Bench<'a> {
    lab: &'a Lab,
    lhscp: Option<&'a Path>,
    case: &'a Case,
    load: Load,
}

impl<'a> Bench<'a> {
    pub(crate) fn new(
        lab: &'a Lab,
        lhscp: Option<&'a Path>,
        options: &Options,
        case: &'a Case,
    ) -> Result<Self> {
        let load = match case.load {
            Load::File(size) => Load::File(options.size.map_or(size, |size| size.0)),
            Load::Tree(files) => Load::Tree(options.files.unwrap_or(files)),
        };
        // Source and target.
        let load = load.within(lab.fitting(2 * load.bytes())? / 2);
        Ok(Self { lab, lhscp, case, load })
    }

    /// What this contender lacks.
    pub(crate) fn missing(&self, who: &Who<'_>) -> Option<String> {
        command::missing(self.lab, self.lhscp, who)
    }

    /// One turn with the losses of `seed`, and why its figures may not be used, if so.
    pub(crate) fn turn(
        &self,
        who: &Who<'_>,
        divide: u64,
        seed: u64,
    ) -> Result<(Sample, Option<String>)> {
        let load = self.load.divided(divide);
        let source = load.source(self.lab)?;
        let target = self.lab.data("target");
        remove(&target)?;
        let net = Net::up(self.case.path, seed)?;
        let order = Order {
            way: self.case.way,
            source: &source,
            target: &target,
            is_tree: matches!(load, Load::Tree(_)),
            server: net.free()?,
        };
        let ends = self.both(&net, who, &order);
        let refused = net.down();
        let (client, server, first_byte) = ends?;
        if !self.case.first_byte {
            load::same(&source, &target)?;
        }
        remove(&target)?;
        let (bytes, files, seconds) = (load.bytes(), load.files(), client.wall);
        Ok((Sample { bytes, files, seed, seconds, first_byte, client, server }, refused))
    }

    fn both(
        &self,
        net: &Net,
        who: &Who<'_>,
        order: &Order<'_>,
    ) -> Result<(Report, Report, Option<f64>)> {
        let words = command::server(self.lab, who.server(), order.server)?;
        let mut server = self.start(net, Place::Server, &words)?;
        let client =
            listening(&mut server, order.server).and_then(|()| self.client(net, who, order));
        drop(server.stdin.take()); // its sign to end
        let ended = end_within(&mut server, 10.0);
        let (client, first_byte) = client?;
        ended.context("the server did not end after the client")?;
        Ok((client, self.report("server")?, first_byte))
    }

    fn client(&self, net: &Net, who: &Who<'_>, order: &Order<'_>) -> Result<(Report, Option<f64>)> {
        let words = command::client(self.lab, self.lhscp, who, order)?;
        let started = Instant::now();
        let mut child = self.start(net, Place::Client, &words)?;
        let first_byte = self.case.first_byte.then(|| first_byte(order.target, started));
        if first_byte.is_some() {
            drop(child.stdin.take());
        }
        wait(&mut child)?;
        let report = self.report("client")?;
        ensure!(report.ok || self.case.first_byte, "the client failed: {}", self.said("client"));
        Ok((report, first_byte.transpose()?))
    }

    /// Starts one end under `lhbench measured`, which ends it when its own standard input ends.
    fn start(&self, net: &Net, place: Place, words: &[String]) -> Result<Child> {
        let name = match place {
            Place::Client => "client",
            Place::Server => "server",
        };
        let report = self.lab.path(&format!("{name}.json"));
        _ = fs::remove_file(&report);
        let mut command = measured::command(&self.lab.lhbench, &report);
        command.arg("--until-eof").arg("--").args(words);
        command.env_remove("SSH_AUTH_SOCK").stdin(Stdio::piped());
        command.stdout(File::create(self.lab.path(&format!("{name}.out")))?);
        command.stderr(File::create(self.lab.path(&format!("{name}.err")))?);
        net.spawn(place, &mut command)
    }

    fn report(&self, name: &str) -> Result<Report> {
        let text = fs::read(self.lab.path(&format!("{name}.json")))
            .with_context(|| format!("the {name} left no report: {}", self.said(name)))?;
        Ok(serde_json::from_slice(&text)?)
    }

    fn said(&self, name: &str) -> String {
        let text = fs::read_to_string(self.lab.path(&format!("{name}.err"))).unwrap_or_default();
        text.lines().rev().take(3).collect::<Vec<_>>().join(" / ")
    }
}

/// Waits for the end, its standard input kept open.
fn wait(child: &mut Child) -> Result<()> {
    let deadline = Instant::now() + LONGEST;
    while Instant::now() < deadline {
        if child.try_wait()?.is_some() {
            return Ok(());
        }
        sleep(Duration::from_millis(2));
    }
    drop(child.stdin.take());
    child.wait()?;
    bail!("not done after {} s", LONGEST.as_secs())
}

/// Waits until a file with content is below `target`: seconds since `started`.
fn first_byte(target: &Path, started: Instant) -> Result<f64> {
    let deadline = started + Duration::from_secs(30);
    while Instant::now() < deadline {
        stop::check()?;
        if has_content(target) {
            return Ok(started.elapsed().as_secs_f64());
        }
        sleep(Duration::from_millis(1));
    }
    bail!("nothing arrived for 30 s")
}

fn has_content(path: &Path) -> bool {
    match fs::symlink_metadata(path) {
        Ok(meta) if meta.is_dir() => {
            let entries = fs::read_dir(path).into_iter().flatten().flatten();
            entries.into_iter().any(|entry| has_content(&entry.path()))
        }
        Ok(meta) => meta.len() > 0,
        Err(_) => false,
    }
}

fn remove(path: &Path) -> Result<()> {
    let removed = match fs::symlink_metadata(path) {
        Ok(meta) if meta.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(_) => Ok(()),
    };
    removed.with_context(|| path.display().to_string())
}
