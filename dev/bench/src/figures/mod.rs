//! `lhbench figures`: what work on fast SSH is measured by (docs/perf.md names it), measured on
//! this machine with whatever is installed, drawn as SVG and PNG, with the samples as CSV and one page
//! that holds it all.
//!
//! program, peer  who takes part
//! plan           the experiments and their points
//! turn, meter    one turn of one contender
//! quota          a share of the cores, in place of a slower processor
//! samples, csv   what was measured, kept and read again
//! figure         from samples to pictures
//! draw           from pictures to files
//! page           all of them in HTML

mod csv;
mod draw;
mod figure;
mod machine;
pub(crate) mod meter;
mod page;
mod peer;
mod plan;
mod program;
mod quota;
mod samples;
mod turn;

use crate::lab::{self, Lab};
use crate::loopback::Loopback;
use crate::size::Size;
use crate::stop;
use anyhow::{Context, Result, ensure};
use figure::FIGURES;
use peer::Peer;
use plan::{EXPERIMENTS, Effort, Point, Take};
use samples::{Missing, Origin, Record, Sample};
use std::collections::HashMap;
use std::fs;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use turn::{Bench, Job, Load};

/// What `figures` takes.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Where pictures, samples and page go; samples of other figures there are kept
    #[arg(long)]
    out: PathBuf,
    /// Only this figure (may be given several times): ciphers, cpu, cpu-share, buffers, rtt,
    /// startup, memory
    #[arg(long)]
    only: Vec<String>,
    /// Fewer points, one short run each
    #[arg(long)]
    quick: bool,
    /// Draws the samples that are in DIR; measures nothing
    #[arg(long)]
    redraw: bool,
    /// One more program: 'name=client command;server command' with {host} {port} {user} {key}
    /// {known_hosts} {config} {cipher} {mac} {client_options}, {sshd_config} {host_key}
    /// {server_options}, and {command} if the client runs one; without {command} the two are ends
    /// of a pipe, without a server command the server is the stock sshd
    #[arg(long = "peer")]
    peers: Vec<Peer>,
    /// Only programs whose name contains this
    #[arg(long = "program")]
    programs: Vec<String>,
    /// Turns of each point [default: 3, quick 1]
    #[arg(long)]
    runs: Option<usize>,
    /// Seconds of each stream, the ramp apart [default: 4, quick 1]
    #[arg(long)]
    seconds: Option<f64>,
    /// Bytes of the file that streams are read from; less where they do not fit
    #[arg(long, default_value = "4G")]
    size: Size,
    /// Where files are put: a tmpfs
    #[arg(long, default_value = "/dev/shm")]
    data: PathBuf,
    #[command(flatten)]
    pub(crate) loopback: Loopback,
    /// Our client [default: lhssh beside this program]
    #[arg(long)]
    lhssh: Option<PathBuf>,
    /// Our server [default: lhsshd beside this program]
    #[arg(long)]
    lhsshd: Option<PathBuf>,
    /// Our copier [default: lhscp beside this program]
    #[arg(long)]
    lhscp: Option<PathBuf>,
}

/// Measures, unless told not to, and draws.
pub(crate) fn main(options: &Options) -> Result<()> {
    let wanted = wanted(&options.only)?;
    let mut record = match options.redraw || options.out.join(samples::FILE).exists() {
        true => Record::read(&options.out)?,
        false => Record::default(),
    };
    fs::create_dir_all(&options.out).with_context(|| options.out.display().to_string())?;
    if !options.redraw {
        measure(options, &wanted, &mut record)?;
    }
    draw_all(&record, &wanted, &options.out)
}

/// The figures of `--only`, or all.
fn wanted(only: &[String]) -> Result<Vec<&'static figure::Figure>> {
    for name in only {
        let names: Vec<_> = FIGURES.iter().map(|figure| figure.name).collect();
        ensure!(
            names.contains(&name.as_str()),
            "no figure '{name}': there are {}",
            names.join(", ")
        );
    }
    let is_wanted = |name: &str| only.is_empty() || only.iter().any(|wanted| wanted == name);
    Ok(FIGURES.iter().filter(|figure| is_wanted(figure.name)).collect())
}

fn draw_all(record: &Record, wanted: &[&figure::Figure], out: &Path) -> Result<()> {
    for figure in wanted {
        let Some(scene) = figure.scene(record) else {
            eprintln!("lhbench: {}: no samples, not drawn", figure.name);
            continue;
        };
        let file = |kind: &str| out.join(format!("{}.{kind}", figure.name));
        fs::write(file("svg"), draw::svg::svg(&scene))?;
        fs::write(file("png"), draw::png::png(&scene)?)?;
        fs::write(file("csv"), figure.csv(record))?;
        println!("{}", file("svg").display());
    }
    Ok(fs::write(out.join("index.html"), page::page(record))?)
}

/// Carries out the experiments behind the wanted figures, and keeps the samples of each as soon
/// as it is done.
fn measure(options: &Options, wanted: &[&figure::Figure], record: &mut Record) -> Result<()> {
    let remarks = machine::remarks();
    for remark in &remarks {
        eprintln!("lhbench: warning: {remark}");
    }
    let lab = Lab::new(&options.data, options.lhssh.as_deref(), options.lhsshd.as_deref())?;
    let lhscp = lab::program(options.lhscp.as_deref(), "lhscp", &lab.path(""))?;
    let (mut programs, paths) = program::installed(&lab, lhscp.as_deref(), &options.peers);
    let part = |name: &str| options.programs.iter().any(|part| name.contains(part.as_str()));
    programs.retain(|program| options.programs.is_empty() || part(&program.name));
    ensure!(!programs.is_empty(), "nobody is left to measure");
    let size = lab.fitting(options.size.0)?;
    let bench = Bench::new(lab, paths, size)?;
    let seconds = options.seconds.unwrap_or(if options.quick { 1.0 } else { 4.0 });
    let effort = Effort { quick: options.quick, seconds };
    let runs = options.runs.unwrap_or(if options.quick { 1 } else { 3 });
    for (experiment, plan) in EXPERIMENTS {
        if !wanted.iter().any(|figure| figure.experiment == *experiment) {
            continue;
        }
        let points = plan(&programs, effort);
        let labels = programs.iter().map(|p| (p.name.clone(), p.label.clone())).collect();
        let (machine, remarks) = (machine::line(), remarks.clone());
        let origin = Origin { machine, remarks, programs: labels };
        let origins = [((*experiment).to_owned(), origin)].into();
        let mut later = Record { origins, samples: Vec::new() };
        let mut idle = Idle::new();
        for run in 1..=runs {
            later.samples.extend(round(&bench, &points, &mut idle, [run, runs])?);
            record.take(later.clone());
            record.write(&options.out)?;
        }
    }
    Ok(())
}

/// Whether a program can do something, by what it is asked; its memory when it only logs in.
type Idle = HashMap<(String, String, String), Result<i64, String>>;

/// One turn of each point of an experiment. Who cannot do something is asked once.
fn round(
    bench: &Bench,
    points: &[Point<'_>],
    idle: &mut Idle,
    [run, runs]: [usize; 2],
) -> Result<Vec<Sample>> {
    let mut samples = Vec::new();
    let terminal = std::io::stderr().is_terminal();
    for (index, point) in points.iter().enumerate() {
        let experiment = &point.place.experiment;
        if terminal {
            let (point, all) = (index + 1, points.len());
            eprint!("\r{experiment}: run {run} of {runs}, point {point} of {all}   ");
        }
        let knocked = idle.entry(knock_key(&point.job)).or_insert_with(|| knock(bench, &point.job));
        samples.extend(match knocked {
            Ok(idle) => take(bench, point, *idle, run),
            Err(why) if run == 1 => absent(point, run, why),
            Err(_) => Vec::new(),
        });
        stop::check()?;
    }
    match (terminal, points.first()) {
        (true, _) => eprintln!(),
        (false, Some(point)) => eprintln!("{}: run {run} of {runs}", point.place.experiment),
        (false, None) => {}
    }
    Ok(samples)
}

/// Who has the same key needs no login of their own.
fn knock_key(job: &Job<'_>) -> (String, String, String) {
    (job.program.name.clone(), job.mode.name.clone(), job.mode.client.clone())
}

/// One login, which also warms caches: the client's memory, or why it cannot be.
fn knock(bench: &Bench, job: &Job<'_>) -> Result<i64, String> {
    if job.program.kind != program::Kind::Command {
        return Ok(0);
    }
    let login = Job { load: Load::Login, link: None, share: None, ..job.clone() };
    let said = |why: anyhow::Error| {
        let why = format!("{why:#}");
        stop::complain(&format!("{} cannot do {}: {why}", job.program.name, job.mode.name));
        why
    };
    Ok(bench.turn(&login).map_err(said)?.client.peak_kib)
}

fn take(bench: &Bench, point: &Point<'_>, idle: i64, run: usize) -> Vec<Sample> {
    let when = machine::now();
    let outcome = match bench.turn(&point.job) {
        Ok(outcome) => outcome,
        Err(why) => {
            let why = format!("{why:#}");
            stop::complain(&format!("{}, {}: {why}", point.place.program, point.place.mode));
            return absent(point, run, &why);
        }
    };
    let taken = point.take.of(&point.job, &outcome, idle);
    let sample = |(metric, at, value): (_, Option<f64>, _)| {
        let place = samples::Place { at: at.unwrap_or(point.place.at), ..point.place.clone() };
        let value = match &outcome.refused {
            None => Ok(value),
            Some(why) => Err(Missing::Refused(why.clone())),
        };
        Sample { place, run, metric, value, when: when.clone() }
    };
    taken.into_iter().map(sample).collect()
}

fn absent(point: &Point<'_>, run: usize, why: &str) -> Vec<Sample> {
    let metric = match point.take {
        Take::Memory => samples::Metric::Memory,
        _ => samples::Metric::Rate,
    };
    let value = Err(Missing::Absent(why.replace('\n', " ")));
    vec![Sample { place: point.place.clone(), run, metric, value, when: machine::now() }]
}
