//! Pictures of both ends on this machine: rate and CPU seconds by cipher, rate by share of the cores.

use super::super::draw::axis::{Axis, Scale};
use super::super::draw::bars::{Bars, Cell, Column, Group, Reference, Row};
use super::super::draw::frame::Heading;
use super::super::draw::lines::{Line, Lines, Look, Panel};
use super::super::draw::scene::{Colour, Marker, Scene};
use super::super::plan::{CLEAR, modes};
use super::super::samples::{Metric, Missing};
use super::{Samples, Who, greatest, style};
use crate::stats::{Spread, spread};

const GB: f64 = 1e9;
const WAYS: [(&str, &str); 2] = [("send", "Sending"), ("receive", "Receiving")];

/// Rate by cipher, sending and receiving.
pub(super) fn ciphers(samples: &Samples<'_>) -> Scene {
    let cell = |panel: &str, who: Who<'_>| {
        let spread = one(samples, panel, Metric::Rate, who, GB);
        Cell { parts: spread.iter().map(|spread| spread.median).collect(), spread }
    };
    bars(samples, &cell, &Bars {
        heading: Heading {
            title: "How fast one stream goes, by cipher".to_owned(),
            lead: "A file from memory, through one SSH session into a reader that throws it away; \
                   client and server on this machine, over loopback. Netcat, which encrypts \
                   nothing, is the control."
                .to_owned(),
            notes: samples.notes("the line over a bar's end reaches from"),
        },
        columns: WAYS.iter().map(|(panel, title)| column(samples, panel, title)).collect(),
        groups: Vec::new(),
    })
}

fn column(samples: &Samples<'_>, panel: &str, title: &str) -> Column {
    let max = samples.everyone(panel, Metric::Rate).into_iter();
    let max = max.filter_map(|who| one(samples, panel, Metric::Rate, who, GB));
    let max = max.map(|spread| spread.max).fold(0.1, f64::max);
    let netcat = one(samples, panel, Metric::Rate, ("netcat", CLEAR), GB);
    let label = samples.origin.label("netcat").to_owned();
    let reference = netcat.map(|spread| Reference { label, spread });
    Column { title: title.to_owned(), axis: Axis::linear("GB/s", max), reference }
}

/// CPU seconds per GB by cipher, both ends.
pub(super) fn cpu(samples: &Samples<'_>) -> Scene {
    let cell = |panel: &str, who: Who<'_>| cost(samples, panel, who);
    let all = WAYS.iter().flat_map(|(panel, _)| {
        let everyone = samples.everyone(panel, Metric::Rate).into_iter();
        everyone.filter_map(|who| cost(samples, panel, who).spread)
    });
    let all: Vec<Spread> = all.collect();
    // Whoever costs many times what others do would leave them no room.
    let middle = spread(all.iter().map(|one| one.median)).map_or(1.0, |all| all.median);
    let max = all.iter().map(|one| one.max).fold(0.1, f64::max);
    let (max, is_cut) = (max.min(5.0 * middle), max > 5.0 * middle);
    let column = |(panel, title): &(&str, &str)| Column {
        title: (*title).to_owned(),
        axis: Axis::linear("CPU-seconds per GB, both ends", max),
        reference: cost(samples, panel, ("netcat", CLEAR))
            .spread
            .map(|spread| Reference { label: samples.origin.label("netcat").to_owned(), spread }),
    };
    let mut notes = samples.notes("the line over a bar's end reaches from");
    if is_cut {
        notes.insert(
            1,
            "Bars that reach the right edge are cut; their numbers are whole.".to_owned(),
        );
    }
    bars(
        samples,
        &cell,
        &Bars {
            heading: Heading {
                title: "What a gigabyte costs, by program and cipher".to_owned(),
                lead: "CPU-seconds of all processes of both ends, reader and login included, per \
                       GB of 1,000,000,000 bytes; the same turns as in the picture of rates. \
                       Dark: the end that sends. Light: the end that receives."
                    .to_owned(),
                notes,
            },
            columns: WAYS.iter().map(column).collect(),
            groups: Vec::new(),
        },
    )
}

/// The costs of both ends, and the spread of their sum.
fn cost(samples: &Samples<'_>, panel: &str, who: Who<'_>) -> Cell {
    let of = |metric| one(samples, panel, metric, who, 1.0);
    let (Some(send), Some(receive)) = (of(Metric::CpuSend), of(Metric::CpuReceive)) else {
        return Cell::default();
    };
    // Of three figures, the sum's extremes are not known; the sums of the extremes contain them.
    let sum = |f: fn(Spread) -> f64| f(send) + f(receive);
    let spread = Spread { median: sum(|s| s.median), min: sum(|s| s.min), max: sum(|s| s.max) };
    Cell { parts: vec![send.median, receive.median], spread: Some(spread) }
}

fn one(
    samples: &Samples<'_>,
    panel: &str,
    metric: Metric,
    who: Who<'_>,
    unit: f64,
) -> Option<Spread> {
    samples.points(panel, metric, who, unit).first()?.spread
}

/// Fills in the groups: ciphers, in each of them the programs.
fn bars(samples: &Samples<'_>, cell: &dyn Fn(&str, Who<'_>) -> Cell, picture: &Bars) -> Scene {
    let everyone = samples.everyone("send", Metric::Rate);
    let group = |mode: String| {
        let own = everyone.iter().filter(|(program, own)| *own == mode && *program != "netcat");
        let rows = own.map(|&(program, own)| Row {
            label: samples.origin.label(program).to_owned(),
            colour: style(program).0,
            cells: WAYS.iter().map(|(panel, _)| cell(panel, (program, own))).collect(),
        });
        let rows = rows.collect();
        let absent = without(samples, &mode);
        Group { title: mode, rows, absent }
    };
    let mut names: Vec<String> = modes().into_iter().map(|mode| mode.name).collect();
    for (_, mode) in everyone.iter().filter(|(program, _)| *program != "netcat") {
        if !names.iter().any(|name| name == mode) {
            names.push((*mode).to_owned());
        }
    }
    let groups = names.into_iter().map(group);
    let groups = groups.filter(|group| !group.rows.is_empty() || !group.absent.is_empty());
    Bars { groups: groups.collect(), ..picture.clone() }.draw()
}

/// Who cannot use a cipher.
fn without(samples: &Samples<'_>, mode: &str) -> String {
    let mut names: Vec<&str> = Vec::new();
    for sample in samples.all.iter().filter(|sample| sample.place.mode == mode) {
        let is_absent = matches!(sample.value, Err(Missing::Absent(_)));
        if is_absent && !names.contains(&sample.place.program.as_str()) {
            names.push(&sample.place.program);
        }
    }
    match names.as_slice() {
        [] => String::new(),
        names => format!("not with {}", names.join(", ")),
    }
}

/// A cipher's colour where each line is one.
const CIPHERS: &[(&str, u32, Marker)] = &[
    ("aes128-gcm", 0x00_72_b2, Marker::Circle),
    ("chacha20-poly1305", 0xd5_5e_00, Marker::Square),
    ("aes128-ctr + hmac-sha2-256-etm", 0x00_9e_73, Marker::Triangle),
    ("NONE + hmac-sha2-256-etm", 0xc4_6a_9c, Marker::Down),
    ("NONE + NONE MAC", 0xb8_86_0b, Marker::Diamond),
    (CLEAR, 0x5f_6b_7a, Marker::Ring),
];

/// Rate by share of the cores: a panel for each program.
pub(super) fn cpu_share(samples: &Samples<'_>) -> Scene {
    let everyone = samples.everyone("send", Metric::Rate);
    let mut programs: Vec<&str> = Vec::new();
    for (program, _) in everyone.iter().filter(|(program, _)| *program != "netcat") {
        if !programs.contains(program) {
            programs.push(program);
        }
    }
    let lines = |program: &str| -> Vec<Line> {
        let own = everyone.iter().filter(|(name, _)| *name == program || *name == "netcat");
        own.map(|who| cipher_line(samples, *who)).collect()
    };
    let all = programs.iter().flat_map(|program| lines(program));
    let max = all.map(|line| greatest(line.points.iter())).fold(0.1, f64::max);
    let percent = |n: u32| (f64::from(n), n.to_string());
    let panel = |program: &&str| Panel {
        title: samples.origin.label(program).to_owned(),
        x: Axis::marked(
            "share of the cores, %",
            Scale::Linear,
            [0, 20, 40, 60, 80, 100].map(percent).to_vec(),
        ),
        y: Axis::linear("GB/s", max),
        lines: lines(program),
        guides: Vec::new(),
    };
    Lines {
        heading: Heading {
            title: "How fast one stream goes, by processor speed".to_owned(),
            lead: "Sending, as in the picture of ciphers; client and server, with the processes \
                   they feed, get a share of this machine's cores, by a CPU quota of a control \
                   group: it stands in for a slower clock."
                .to_owned(),
            notes: samples.notes("bars from"),
        },
        columns: 2,
        height: 300.0,
        panels: programs.iter().map(panel).collect(),
    }
    .draw()
}

fn cipher_line(samples: &Samples<'_>, who: Who<'_>) -> Line {
    let points = samples.points("send", Metric::Rate, who, GB);
    let found = CIPHERS.iter().find(|(name, ..)| *name == who.1);
    let (colour, marker) = found.map_or((Colour::INK, Marker::Box), |(_, c, m)| (Colour(*c), *m));
    let label = if who.1 == CLEAR { samples.origin.label(who.0) } else { short_cipher(who.1) };
    let line = samples.line(who, label.to_owned(), Look::Points, points);
    Line { colour, marker, ..line }
}

/// Enough of a cipher's name for the end of a line.
fn short_cipher(name: &str) -> &str {
    match name {
        "aes128-ctr + hmac-sha2-256-etm" => "aes128-ctr + hmac",
        "NONE + hmac-sha2-256-etm" => "NONE + hmac",
        name => name,
    }
}
