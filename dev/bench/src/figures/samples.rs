//! Samples: everything a run of `lhbench figures` measured, one line each, with what a reader of
//! a picture needs to know: who took part in which version, on which machine, when.
//!
//! The file is CSV: lines about the run of each experiment start with `#`, then a heading, then the
//! samples. All pictures can be drawn from it again (`--redraw`), and a later run of one experiment
//! replaces what there is about it and leaves the others.

use super::csv;
use crate::stats::{Spread, spread};
use anyhow::{Context, Result, bail, ensure};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Its name in the directory of a run.
pub(crate) const FILE: &str = "samples.csv";

/// What a sample's value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Metric {
    /// Bytes per second at the receiver.
    Rate,
    /// CPU seconds per 10^9 bytes at the end that sends.
    CpuSend,
    /// The same at the end that receives.
    CpuReceive,
    /// MiB of the receiving end's largest process, above an idle session's.
    Memory,
}

const METRICS: &[(Metric, &str)] = &[
    (Metric::Rate, "bytes/s"),
    (Metric::CpuSend, "sender CPU-s/GB"),
    (Metric::CpuReceive, "receiver CPU-s/GB"),
    (Metric::Memory, "MiB over idle"),
];

/// Where in its experiment a sample belongs.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Place {
    pub(crate) experiment: String,
    /// Direction, round trip, or consumer: what one panel of a picture shows.
    pub(crate) panel: String,
    pub(crate) program: String,
    /// Cipher or setting.
    pub(crate) mode: String,
    /// Share, buffer, round trip or time, in the experiment's own unit.
    pub(crate) at: f64,
}

/// One figure of one turn, or why there is none.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Sample {
    pub(crate) place: Place,
    pub(crate) run: usize,
    pub(crate) metric: Metric,
    pub(crate) value: Result<f64, Missing>,
    /// Day and minute, UTC.
    pub(crate) when: String,
}

/// Why a value is not there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Missing {
    /// The link emulator was late: the figure would not be the program's.
    Refused(String),
    /// The program cannot do this, or failed.
    Absent(String),
}

/// All samples, and where those of each experiment come from.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Record {
    /// By experiment.
    pub(crate) origins: BTreeMap<String, Origin>,
    pub(crate) samples: Vec<Sample>,
}

/// What the samples of one experiment have in common.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Origin {
    /// Processor, cores, kernel.
    pub(crate) machine: String,
    /// What the run was like that a reader should know of: a debug build, a busy machine.
    pub(crate) remarks: Vec<String>,
    /// Each program's name and version as a picture shows it.
    pub(crate) programs: BTreeMap<String, String>,
}

impl Origin {
    /// The name and version of `program`.
    pub(crate) fn label<'a>(&'a self, program: &'a str) -> &'a str {
        self.programs.get(program).map_or(program, String::as_str)
    }

    fn text(&self, experiment: &str) -> String {
        let mut text = csv::line(&["# machine", experiment, &self.machine]);
        for remark in &self.remarks {
            text += &csv::line(&["# remark", experiment, remark]);
        }
        for (name, label) in &self.programs {
            text += &csv::line(&["# program", experiment, name, label]);
        }
        text
    }
}

const HEADING: &[&str] =
    &["experiment", "panel", "program", "mode", "at", "run", "metric", "value", "missing", "when"];

impl Record {
    /// Takes in a later record: its experiments replace the same ones of this.
    pub(crate) fn take(&mut self, later: Self) {
        self.samples.retain(|old| !later.origins.contains_key(&old.place.experiment));
        self.samples.extend(later.samples);
        self.origins.extend(later.origins);
    }

    /// The part about one experiment.
    pub(crate) fn only(&self, experiment: &str) -> Self {
        let own = |sample: &&Sample| sample.place.experiment == experiment;
        let samples = self.samples.iter().filter(own).cloned().collect();
        let origin = self.origins.get_key_value(experiment);
        let origins = origin.map(|(name, origin)| (name.clone(), origin.clone()));
        Self { origins: origins.into_iter().collect(), samples }
    }

    /// The file of a directory.
    pub(crate) fn read(dir: &Path) -> Result<Self> {
        let path = dir.join(FILE);
        let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        Self::parse(&text).with_context(|| path.display().to_string())
    }

    pub(crate) fn write(&self, dir: &Path) -> Result<()> {
        let path = dir.join(FILE);
        fs::write(&path, self.text()).with_context(|| path.display().to_string())
    }

    pub(crate) fn text(&self) -> String {
        let origins = self.origins.iter().map(|(experiment, origin)| origin.text(experiment));
        let mut text: String = origins.collect();
        text += &csv::line(HEADING);
        text.extend(self.samples.iter().map(Sample::line));
        text
    }

    pub(crate) fn parse(text: &str) -> Result<Self> {
        let (mut record, mut common) = (Self::default(), Origin::default());
        for (number, fields) in csv::records(text).iter().enumerate() {
            let fields: Vec<_> = fields.iter().map(String::as_str).collect();
            match *fields.as_slice() {
                ["# machine", experiment, machine] => {
                    record.origin(experiment).machine = machine.to_owned();
                }
                ["# remark", experiment, remark] => {
                    record.origin(experiment).remarks.push(remark.to_owned());
                }
                ["# program", experiment, name, label] => {
                    let programs = &mut record.origin(experiment).programs;
                    programs.insert(name.to_owned(), label.to_owned());
                }
                // Files were once of one run alone.
                ["# machine", machine] => common.machine = machine.to_owned(),
                ["# remark", remark] => common.remarks.push(remark.to_owned()),
                ["# program", name, label] => {
                    common.programs.insert(name.to_owned(), label.to_owned());
                }
                _ if fields == HEADING => {}
                _ => {
                    let sample = Sample::parse(&fields);
                    record.samples.push(sample.with_context(|| format!("record {}", number + 1))?);
                }
            }
        }
        for sample in &record.samples {
            let experiment = sample.place.experiment.clone();
            record.origins.entry(experiment).or_insert_with(|| common.clone());
        }
        Ok(record)
    }

    fn origin(&mut self, experiment: &str) -> &mut Origin {
        self.origins.entry(experiment.to_owned()).or_default()
    }
}

impl Sample {
    fn line(&self) -> String {
        let (value, missing) = match &self.value {
            Ok(value) => (format!("{value}"), String::new()),
            Err(Missing::Refused(why)) => (String::new(), format!("refused: {why}")),
            Err(Missing::Absent(why)) => (String::new(), format!("absent: {why}")),
        };
        let Place { experiment, panel, program, mode, at } = &self.place;
        let metric = METRICS.iter().find(|(metric, _)| *metric == self.metric);
        csv::line(&[
            experiment,
            panel,
            program,
            mode,
            &at.to_string(),
            &self.run.to_string(),
            metric.map_or("", |(_, name)| name),
            &value,
            &missing,
            &self.when,
        ])
    }

    fn parse(fields: &[&str]) -> Result<Self> {
        let [experiment, panel, program, mode, at, run, metric, value, missing, when] = *fields
        else {
            bail!("{} fields instead of {}", fields.len(), HEADING.len());
        };
        let [experiment, panel, program, mode] =
            [experiment, panel, program, mode].map(str::to_owned);
        let found = METRICS.iter().find(|(_, name)| *name == metric);
        let (metric, _) = *found.with_context(|| format!("'{metric}' is no metric"))?;
        let number = |text: &str| text.parse().with_context(|| format!("'{text}' is no number"));
        let value = match (missing.strip_prefix("refused: "), missing.strip_prefix("absent: ")) {
            (Some(why), _) => Err(Missing::Refused(why.to_owned())),
            (_, Some(why)) => Err(Missing::Absent(why.to_owned())),
            _ => Ok(number(value)?),
        };
        ensure!(value.as_ref().map_or(true, |value: &f64| value.is_finite()), "not finite");
        let place = Place { experiment, panel, program, mode, at: number(at)? };
        Ok(Self { place, run: run.parse()?, metric, value, when: when.to_owned() })
    }
}

/// What the turns at one place say.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Point {
    pub(crate) at: f64,
    pub(crate) spread: Option<Spread>,
    /// Turns that were refused.
    pub(crate) refused: usize,
}

/// The points of a line, from least to greatest.
pub(crate) fn points<'a>(samples: impl Iterator<Item = &'a Sample>) -> Vec<Point> {
    let mut groups: Vec<(f64, Vec<f64>, usize)> = Vec::new();
    for sample in samples {
        let at = sample.place.at;
        let index = groups.iter().position(|(other, ..)| *other == at).unwrap_or(groups.len());
        if index == groups.len() {
            groups.push((at, Vec::new(), 0));
        }
        let Some((_, values, refused)) = groups.get_mut(index) else { continue };
        match &sample.value {
            Ok(value) => values.push(*value),
            Err(Missing::Refused(_)) => *refused += 1,
            Err(Missing::Absent(_)) => {}
        }
    }
    groups.sort_by(|a, b| a.0.total_cmp(&b.0));
    let point = |(at, values, refused)| Point { at, spread: spread(values), refused };
    groups.into_iter().map(point).collect()
}
