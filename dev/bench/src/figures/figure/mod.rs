//! Figure: from samples to a picture. One row per picture; what they share is here: which sample
//! belongs to which line, colours and signs that stay with a program through all pictures, and
//! the notes below.
//!
//! loopback  both ends on this machine: ciphers, CPU seconds, shares of a core
//! path      over an emulated link: buffers, round trips, start-up, memory

mod loopback;
mod path;
#[cfg(test)]
mod tests;

use super::draw::lines::{Line, Look};
use super::draw::scene::{Colour, Marker, Scene};
use super::samples::{Metric, Missing, Origin, Point, Record, Sample, points};
use std::collections::{BTreeMap, BTreeSet};

/// A picture and where its samples come from.
pub(crate) struct Figure {
    pub(crate) name: &'static str,
    pub(crate) experiment: &'static str,
    draw: fn(&Samples<'_>) -> Scene,
}

/// All pictures in the order of the page.
pub(crate) const FIGURES: &[Figure] = &[
    Figure { name: "ciphers", experiment: "ciphers", draw: loopback::ciphers },
    Figure { name: "cpu", experiment: "ciphers", draw: loopback::cpu },
    Figure { name: "cpu-share", experiment: "cpu-share", draw: loopback::cpu_share },
    Figure { name: "buffers", experiment: "buffers", draw: path::buffers },
    Figure { name: "rtt", experiment: "rtt", draw: path::rtt },
    Figure { name: "startup", experiment: "startup", draw: path::startup },
    Figure { name: "memory", experiment: "memory", draw: path::memory },
];

impl Figure {
    /// The picture, if there are samples for it.
    pub(crate) fn scene(&self, record: &Record) -> Option<Scene> {
        let own = |sample: &&Sample| sample.place.experiment == self.experiment;
        let all: Vec<_> = record.samples.iter().filter(own).collect();
        let origin = record.origins.get(self.experiment)?;
        (!all.is_empty()).then(|| (self.draw)(&Samples { origin, all }))
    }

    /// Its samples as a file of their own.
    pub(crate) fn csv(&self, record: &Record) -> String {
        record.only(self.experiment).text()
    }
}

/// The samples of one picture.
struct Samples<'a> {
    origin: &'a Origin,
    all: Vec<&'a Sample>,
}

/// A program with a cipher or setting.
type Who<'a> = (&'a str, &'a str);

impl<'a> Samples<'a> {
    /// Everyone with a sample, refused ones too, in the order of the run.
    fn everyone(&self, panel: &str, metric: Metric) -> Vec<Who<'a>> {
        let mut found = Vec::new();
        for sample in self.of_panel(panel, metric) {
            let who = (sample.place.program.as_str(), sample.place.mode.as_str());
            let is_absent = matches!(sample.value, Err(Missing::Absent(_)));
            if !is_absent && !found.contains(&who) {
                found.push(who);
            }
        }
        found
    }

    fn of_panel(&self, panel: &str, metric: Metric) -> impl Iterator<Item = &'a Sample> {
        let wanted = move |s: &&Sample| s.place.panel == panel && s.metric == metric;
        self.all.iter().copied().filter(wanted)
    }

    /// The points of one line, values divided by `unit`.
    fn points(&self, panel: &str, metric: Metric, who: Who<'_>, unit: f64) -> Vec<Point> {
        let own = |s: &&Sample| (s.place.program.as_str(), s.place.mode.as_str()) == who;
        let mut points = points(self.of_panel(panel, metric).filter(own));
        for spread in points.iter_mut().filter_map(|point| point.spread.as_mut()) {
            for value in [&mut spread.median, &mut spread.min, &mut spread.max] {
                *value /= unit;
            }
        }
        points
    }

    /// A line with its program's colour.
    fn line(&self, who: Who<'_>, label: String, look: Look, points: Vec<Point>) -> Line {
        let (colour, marker) = style(who.0);
        let dashed = who.0 == "netcat";
        Line { label, colour, marker, dashed, look, points }
    }

    /// How many turns a point has, who was refused, who is missing and why, where and when.
    fn notes(&self, spread: &str) -> Vec<String> {
        let runs = self.all.iter().map(|sample| sample.run).max().unwrap_or(1);
        let mut notes = vec![match runs {
            1 => "One turn of each point: no spread is known.".to_owned(),
            _ => {
                format!("Median of {runs} turns of each point; {spread} the least to the greatest.")
            }
        }];
        notes.extend(self.refused());
        notes.extend(self.absent());
        notes.push(self.source());
        notes
    }

    fn refused(&self) -> Option<String> {
        let turn = |sample: &&Sample| {
            let place = &sample.place;
            let at = if place.experiment == "startup" { 0 } else { place.at as u64 };
            (place.panel.clone(), place.program.clone(), place.mode.clone(), at, sample.run)
        };
        let all: BTreeSet<_> = self.all.iter().map(turn).collect();
        let refused = self.all.iter().filter(|s| matches!(s.value, Err(Missing::Refused(_))));
        let refused: BTreeSet<_> = refused.map(turn).collect();
        (!refused.is_empty()).then(|| {
            format!(
                "{} of {} turns are left out, because the link emulator was late in them (× where \
                 no turn is left).",
                refused.len(),
                all.len()
            )
        })
    }

    /// Who could not, by reason; ciphers have a line of their own in the picture.
    fn absent(&self) -> Option<String> {
        let mut reasons: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
        for sample in &self.all {
            let Err(Missing::Absent(why)) = &sample.value else { continue };
            let place = &sample.place;
            if place.experiment != "ciphers" {
                let who = format!("{} ({})", place.program, place.mode);
                reasons.entry(why).or_default().insert(who);
            }
        }
        let who = |names: BTreeSet<String>| names.into_iter().collect::<Vec<_>>().join(", ");
        let reasons: Vec<_> = reasons
            .into_iter()
            .map(|(why, names)| format!("{}: {}", who(names), short(why)))
            .collect();
        (!reasons.is_empty()).then(|| format!("Not measured: {}.", reasons.join("; ")))
    }

    fn source(&self) -> String {
        let days: BTreeSet<_> =
            self.all.iter().filter_map(|sample| sample.when.split(' ').next()).collect();
        let days: Vec<_> = days.into_iter().collect();
        let remarks = self.origin.remarks.iter().map(|remark| format!(" · {remark}"));
        format!(
            "lhbench figures · {} · {}{}",
            days.join(", "),
            self.origin.machine,
            remarks.collect::<String>()
        )
    }
}

/// The first sentence's worth of a reason.
fn short(why: &str) -> String {
    const MOST: usize = 90;
    match why.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", why.get(..end).unwrap_or(why)),
        None => why.to_owned(),
    }
}

/// Colours that stay apart for colour-blind readers (Okabe and Ito), with a sign of their own.
const STYLES: &[(&str, u32, Marker)] = &[
    ("longhaul", 0x00_72_b2, Marker::Circle),
    ("lhscp → lhsshd", 0x00_72_b2, Marker::Circle),
    ("lhssh → OpenSSH", 0x3f_a5_dd, Marker::Ring),
    ("lhscp → OpenSSH", 0x3f_a5_dd, Marker::Ring),
    ("OpenSSH → lhsshd", 0x00_9e_73, Marker::Triangle),
    ("OpenSSH", 0xd5_5e_00, Marker::Square),
    ("scp", 0xd5_5e_00, Marker::Square),
    ("HPN-SSH", 0x8a_5a_9e, Marker::Diamond),
    ("Dropbear", 0xc4_6a_9c, Marker::Down),
    ("PuTTY → OpenSSH", 0xb8_86_0b, Marker::Box),
    ("netcat", 0x5f_6b_7a, Marker::Diamond),
];

fn style(program: &str) -> (Colour, Marker) {
    let found = STYLES.iter().find(|(name, ..)| *name == program);
    found.map_or((Colour(0x1f_29_33), Marker::Down), |(_, colour, marker)| {
        (Colour(*colour), *marker)
    })
}

/// The greatest value of some points, spread included.
fn greatest<'a>(points: impl Iterator<Item = &'a Point>) -> f64 {
    points.filter_map(|point| point.spread).map(|spread| spread.max).fold(0.0, f64::max)
}
