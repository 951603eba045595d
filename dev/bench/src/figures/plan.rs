//! Plan: the experiments, each a list of points: who does what where, and what is taken down.
//! All contenders of an experiment take turns, round after round, so a slow minute hits them all.

use super::program::{Kind, Program, Way};
use super::samples::{Metric, Place};
use super::turn::{Job, Load, Mode, Outcome};
use linkemu::Spec;
use std::time::Duration;

/// How much is measured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Effort {
    /// Fewer points.
    pub(crate) quick: bool,
    /// Seconds of a stream on loopback; over a link come those of the ramp on top.
    pub(crate) seconds: f64,
}

/// What of a turn becomes samples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Take {
    /// Bytes per second from so many seconds after the first byte on.
    Rate { from: f64 },
    /// The rate and the CPU seconds per GB of both ends.
    RateAndCpu,
    /// The rate of each tenth of a second since the client was started, for so many seconds.
    Timeline { seconds: f64 },
    /// The receiver's memory above a login's.
    Memory,
}

/// One point of a picture.
#[derive(Clone, Debug)]
pub(crate) struct Point<'a> {
    pub(crate) place: Place,
    pub(crate) job: Job<'a>,
    pub(crate) take: Take,
}

/// Every experiment and the pictures it feeds, in the order of the page.
pub(crate) const EXPERIMENTS: &[(&str, Plan)] = &[
    ("ciphers", ciphers),
    ("cpu-share", cpu_share),
    ("buffers", buffers),
    ("rtt", rtt),
    ("startup", startup),
    ("memory", memory),
];

pub(crate) type Plan = for<'a> fn(&'a [Program], Effort) -> Vec<Point<'a>>;

const GCM: &str = "aes128-gcm@openssh.com";
const ETM: &str = "hmac-sha2-256-etm@openssh.com";
/// 1 Gbit/s, as all links here.
pub(crate) const LINK_RATE: f64 = 1e9;
/// Buffers that are asked for, at both ends, beyond what autotuning may use.
pub(crate) const ASKED: &str = "RemoteRcvBuf=64M TcpSndBuf=64M";
const ASKING: &str = "-oRemoteRcvBuf=64M -oTcpSndBuf=64M";
/// How a line is called that has no cipher.
pub(crate) const CLEAR: &str = "no encryption";

fn mode(name: &str, cipher: &'static str, client: &str, server: &str) -> Mode {
    let [name, client, server] = [name, client, server].map(str::to_owned);
    Mode { name, cipher, mac: ETM, client, server }
}

/// The ciphers of the pictures, from the fastest on.
pub(crate) fn modes() -> Vec<Mode> {
    vec![
        mode("aes128-gcm", GCM, "", ""),
        mode("aes256-gcm", "aes256-gcm@openssh.com", "", ""),
        mode("chacha20-poly1305", "chacha20-poly1305@openssh.com", "", ""),
        mode("aes128-ctr + hmac-sha2-256-etm", "aes128-ctr", "", ""),
        mode(
            "NONE + hmac-sha2-256-etm",
            GCM,
            "-oNoneEnabled=yes -oNoneSwitch=yes",
            "-oNoneEnabled=yes",
        ),
        mode(
            "NONE + NONE MAC",
            GCM,
            "-oNoneEnabled=yes -oNoneSwitch=yes -oNoneMacEnabled=yes",
            "-oNoneEnabled=yes -oNoneMacEnabled=yes",
        ),
    ]
}

/// How a cipher is called that nobody can choose.
const OWN: &str = "cipher of its own choice";

/// The ciphers a program can be told to use.
fn modes_of(program: &Program) -> Vec<Mode> {
    match program.kind {
        Kind::Command if !program.takes("cipher") => vec![mode(OWN, GCM, "", "")],
        Kind::Command => {
            let all = modes().into_iter();
            all.filter(|mode| mode.client.is_empty() || program.takes_options()).collect()
        }
        Kind::Pipe | Kind::Copy => vec![usual(program)],
    }
}

/// What a program is measured with when the cipher is not the question.
fn usual(program: &Program) -> Mode {
    match program.kind {
        Kind::Pipe => mode(CLEAR, GCM, "", ""),
        // It has no AES-GCM.
        _ if program.name == "Dropbear" => mode("aes128-ctr", "aes128-ctr", "", ""),
        Kind::Command if !program.takes("cipher") => mode(OWN, GCM, "", ""),
        Kind::Command | Kind::Copy => mode("aes128-gcm", GCM, "", ""),
    }
}

fn place(experiment: &str, panel: &str, program: &Program, mode: &str, at: f64) -> Place {
    let [experiment, panel, mode] = [experiment, panel, mode].map(str::to_owned);
    Place { experiment, panel, program: program.name.clone(), mode, at }
}

fn named<'a>(programs: &'a [Program], names: &[&str]) -> Vec<&'a Program> {
    programs.iter().filter(|p| names.contains(&p.name.as_str()) || p.is_given()).collect()
}

/// A link of 1 Gbit/s; `buffers` are the largest TCP buffers of its ends, else the kernel's.
fn link(rtt_ms: f64, buffers: Option<u64>) -> Spec {
    let rate = Some(LINK_RATE as u64);
    Spec {
        rtt: Duration::from_secs_f64(rtt_ms / 1e3),
        rate,
        rate_back: rate,
        queue: Some(32 << 20),
        rmem: buffers,
        wmem: buffers,
        cc: Some("cubic".to_owned()),
        ..Spec::default()
    }
}

fn ciphers(programs: &[Program], effort: Effort) -> Vec<Point<'_>> {
    let mut points = Vec::new();
    for program in programs.iter().filter(|program| program.kind != Kind::Copy) {
        for mode in modes_of(program) {
            for (panel, way) in [("send", Way::Send), ("receive", Way::Receive)] {
                let place = place("ciphers", panel, program, &mode.name, 0.0);
                let load = Load::Stream { seconds: effort.seconds };
                let job = Job { program, mode: mode.clone(), way, link: None, load, share: None };
                points.push(Point { place, job, take: Take::RateAndCpu });
            }
        }
    }
    points
}

fn cpu_share(programs: &[Program], effort: Effort) -> Vec<Point<'_>> {
    let shares: &[f64] = if effort.quick { &[0.25, 1.0] } else { &[0.1, 0.2, 0.4, 0.6, 0.8, 1.0] };
    let skip = |program: &Program, mode: &str| mode == "aes256-gcm" || program.kind == Kind::Copy;
    let mut points = Vec::new();
    for program in named(programs, &["longhaul", "OpenSSH", "HPN-SSH", "netcat"]) {
        for mode in modes_of(program).into_iter().filter(|mode| !skip(program, &mode.name)) {
            for &share in shares {
                let place = place("cpu-share", "send", program, &mode.name, share * 100.0);
                let load = Load::Stream { seconds: effort.seconds };
                let (way, share) = (Way::Send, Some(share));
                let job = Job { program, mode: mode.clone(), way, link: None, load, share };
                points.push(Point { place, job, take: Take::Rate { from: 0.5 } });
            }
        }
    }
    points
}

fn buffers(programs: &[Program], effort: Effort) -> Vec<Point<'_>> {
    let shifts = (16..=26).step_by(if effort.quick { 5 } else { 1 });
    let mut points = Vec::new();
    for buffer in shifts.map(|shift| 1_u64 << shift) {
        for rtt in [25.0, 100.0] {
            for program in named(programs, &["longhaul", "OpenSSH", "HPN-SSH", "netcat"]) {
                let mut variants = vec![usual(program)];
                if program.name == "longhaul" {
                    variants.push(mode(ASKED, GCM, ASKING, ""));
                }
                for mode in variants {
                    let place =
                        place("buffers", &format!("{rtt} ms"), program, &mode.name, buffer as f64);
                    let link = Some(link(rtt, Some(buffer)));
                    let from = ramp(rtt);
                    let load = Load::Stream { seconds: from + effort.seconds };
                    let job = Job { program, mode, way: Way::Send, link, load, share: None };
                    points.push(Point { place, job, take: Take::Rate { from } });
                }
            }
        }
    }
    points
}

/// Seconds after which a stream runs as fast as it will.
fn ramp(rtt_ms: f64) -> f64 {
    1.0 + rtt_ms * 0.02
}

fn rtt(programs: &[Program], effort: Effort) -> Vec<Point<'_>> {
    let rtts: &[f64] = match effort.quick {
        true => &[0.0, 50.0],
        false => &[0.0, 10.0, 25.0, 50.0, 100.0, 150.0, 200.0, 250.0],
    };
    let streams = [
        "longhaul",
        "lhssh → OpenSSH",
        "OpenSSH",
        "HPN-SSH",
        "Dropbear",
        "PuTTY → OpenSSH",
        "netcat",
    ];
    let mut points = Vec::new();
    for &rtt in rtts {
        for program in programs {
            let is_copy = program.kind == Kind::Copy;
            if !is_copy && !streams.contains(&program.name.as_str()) && !program.is_given() {
                continue;
            }
            let (mode, way) = (usual(program), Way::Send);
            let from = ramp(rtt);
            let (panel, load, take) = match is_copy {
                true => {
                    let load = Load::Copy { bytes: copied(program, rtt, effort) };
                    ("copies", load, Take::Rate { from: 0.0 })
                }
                false => (
                    "streams",
                    Load::Stream { seconds: from + effort.seconds },
                    Take::Rate { from },
                ),
            };
            let place = place("rtt", panel, program, &mode.name, rtt);
            let job = Job { program, mode, way, link: Some(link(rtt, None)), load, share: None };
            points.push(Point { place, job, take });
        }
    }
    points
}

/// Up to so many milliseconds scp copies what lhscp does.
pub(crate) const SCP_WHOLE: f64 = 25.0;

/// Bytes of a copied file: what takes about ten seconds. scp is as slow as its window and the round
/// trip make it, and gets as much less to do.
fn copied(program: &Program, rtt: f64, effort: Effort) -> u64 {
    let whole = if effort.quick { 1 << 26 } else { 1 << 30 };
    match program.name.as_str() {
        "scp" => (whole as f64 / (rtt / SCP_WHOLE).max(1.0)) as u64,
        _ => whole,
    }
}

fn startup(programs: &[Program], effort: Effort) -> Vec<Point<'_>> {
    let seconds = if effort.quick { 3.0 } else { 6.0 };
    let mut points = Vec::new();
    for (panel, way) in [("receive", Way::Receive), ("send", Way::Send)] {
        for program in named(programs, &["longhaul", "OpenSSH", "HPN-SSH", "netcat"]) {
            let mut variants = vec![usual(program)];
            if program.name == "longhaul" {
                variants.push(match way {
                    Way::Receive => mode("TcpRcvBuf=64M", GCM, "-oTcpRcvBuf=64M", ""),
                    Way::Send => mode(ASKED, GCM, ASKING, ""),
                });
            }
            for mode in variants {
                let place = place("startup", panel, program, &mode.name, 0.0);
                let link = Some(link(100.0, Some(256 << 20)));
                let load = Load::Stream { seconds };
                let job = Job { program, mode, way, link, load, share: None };
                points.push(Point { place, job, take: Take::Timeline { seconds } });
            }
        }
    }
    points
}

fn memory(programs: &[Program], effort: Effort) -> Vec<Point<'_>> {
    let shifts = (18..=27).step_by(if effort.quick { 4 } else { 1 });
    let shifts: Vec<u32> = shifts.collect();
    let seconds = if effort.quick { 3.0 } else { 8.0 };
    let loads = [("fast", Load::Stream { seconds }), ("slow", Load::Slow { seconds })];
    let mut points = Vec::new();
    for program in named(programs, &["longhaul", "OpenSSH", "HPN-SSH"]) {
        // Only ours lets its user set the window; stock is 2 MiB, whatever one asks for.
        let windows: Vec<u64> = match program.name.as_str() {
            "longhaul" => shifts.iter().map(|shift| 1 << shift).collect(),
            _ => vec![2 << 20],
        };
        for window in windows {
            for (panel, load) in loads {
                let mut mode = usual(program);
                if program.name == "longhaul" {
                    mode.client = format!("-oMaxWindow={window}");
                }
                let place = place("memory", panel, program, &mode.name, window as f64);
                let link = Some(link(100.0, Some(256 << 20)));
                let job = Job { program, mode, way: Way::Receive, link, load, share: None };
                points.push(Point { place, job, take: Take::Memory });
            }
        }
    }
    points.into_iter().filter(|point| point.job.program.kind == Kind::Command).collect()
}

impl Take {
    /// The samples of a turn: what, where along the axis if that is not the point's, how much.
    pub(crate) fn of(
        self,
        job: &Job<'_>,
        outcome: &Outcome,
        idle_kib: i64,
    ) -> Vec<(Metric, Option<f64>, f64)> {
        let [sender, receiver] = match job.way {
            Way::Send => [&outcome.client, &outcome.server],
            Way::Receive => [&outcome.server, &outcome.client],
        };
        let gigabytes = outcome.bytes as f64 / 1e9;
        match self {
            Self::Rate { from } => vec![(Metric::Rate, None, outcome.meter.rate(from))],
            Self::RateAndCpu => vec![
                (Metric::Rate, None, outcome.meter.rate(0.0)),
                (Metric::CpuSend, None, sender.cpu() / gigabytes),
                (Metric::CpuReceive, None, receiver.cpu() / gigabytes),
            ],
            Self::Timeline { seconds } => timeline(outcome, seconds),
            Self::Memory => {
                let over = (receiver.peak_kib - idle_kib).max(0) as f64 / 1024.0;
                vec![(Metric::Memory, None, over), (Metric::Rate, None, outcome.meter.rate(0.0))]
            }
        }
    }
}

/// The rate of each tenth of a second since the client was started.
fn timeline(outcome: &Outcome, seconds: f64) -> Vec<(Metric, Option<f64>, f64)> {
    const WIDTH: f64 = 0.1;
    let mut bins = vec![0.0; (seconds / WIDTH) as usize];
    for (index, bytes) in outcome.meter.steps.iter().enumerate() {
        let at = outcome.meter.first - outcome.started + index as f64 * super::meter::STEP;
        if let Some(bin) = bins.get_mut((at.max(0.0) / WIDTH) as usize) {
            *bin += *bytes as f64;
        }
    }
    // In whole hundredths, as they are compared and written.
    let middle = |index: usize| (index * 10 + 5) as f64 / 100.0;
    let rate = |(index, bytes)| (Metric::Rate, Some(middle(index)), bytes / WIDTH);
    bins.into_iter().enumerate().map(rate).collect()
}
