//! Pictures over an emulated link: rate by socket buffer and by round trip, rate over time, and
//! memory by window.

use super::super::draw::axis::{Axis, Scale, size};
use super::super::draw::frame::Heading;
use super::super::draw::lines::{Guide, Line, Lines, Look, Panel};
use super::super::draw::scene::{Anchor, Colour, Marker, Scene};
use super::super::plan::{LINK_RATE, SCP_WHOLE};
use super::super::samples::{Metric, Point};
use super::{Samples, Who, greatest};

/// Bytes per second in a Mbit/s.
const MBIT: f64 = 125_000.0;
const MIB: f64 = 1_048_576.0;
const LINK: f64 = LINK_RATE / 1e6;

/// Rate by socket buffer: two round trips, linear and logarithmic.
pub(super) fn buffers(samples: &Samples<'_>) -> Scene {
    let panels = [25.0, 100.0]
        .into_iter()
        .flat_map(|rtt| [Scale::Linear, Scale::Log].map(|scale| buffer_panel(samples, rtt, scale)));
    Lines {
        heading: Heading {
            title: "How fast one stream goes, by socket buffer".to_owned(),
            lead: "Sending over an emulated link of 1 Gbit/s. The buffer is the most that the \
                   kernel's autotuning may use at either end (tcp_rmem, tcp_wmem). The dashed line \
                   is the buffer per round trip; Linux keeps up to half of a receive buffer for \
                   its own bookkeeping. RemoteRcvBuf and TcpSndBuf set both ends' buffers beyond \
                   that most. Left linear, right logarithmic."
                .to_owned(),
            notes: samples.notes("bars from"),
        },
        columns: 2,
        height: 250.0,
        panels: panels.collect(),
    }
    .draw()
}

fn buffer_panel(samples: &Samples<'_>, rtt: f64, scale: Scale) -> Panel {
    let name = format!("{rtt} ms");
    let (least, most) = (65536.0, 67_108_864.0);
    let x = match scale {
        Scale::Linear => Axis::sizes("largest socket buffer", scale, 0.0, most),
        Scale::Log => Axis::sizes("largest socket buffer", scale, least, most),
    };
    let y = match scale {
        Scale::Linear => Axis::linear("Mbit/s", LINK),
        Scale::Log => Axis::log("Mbit/s", 1.0, LINK),
    };
    // Buffer per round trip, up to the link's rate.
    let product = LINK * 1e6 / 8.0 * rtt / 1e3;
    let start = if scale == Scale::Log { least } else { 0.0 };
    let rise = (0..=8).map(|n| start + (product - start) * f64::from(n) / 8.0);
    let rise = rise.map(|bytes| [bytes, bytes * 8.0 / rtt / 1e3]);
    let points: Vec<_> = rise.chain([[most, LINK]]).collect();
    let label_at = (points.len() - 1, Anchor::End);
    let guides = vec![Guide {
        label: format!("buffer / {rtt} ms, up to the link's rate"),
        points,
        label_at,
    }];
    let line = |who: Who<'_>| {
        let points = samples.points(&name, Metric::Rate, who, MBIT);
        path_line(samples, who, Look::Points, points)
    };
    let lines = samples.everyone(&name, Metric::Rate).into_iter().map(line).collect();
    Panel { title: format!("{rtt} ms round trip"), x, y, lines, guides }
}

/// Rate by round trip: streams and copies.
pub(super) fn rtt(samples: &Samples<'_>) -> Scene {
    let panel = |(panel, title): (&str, &str)| Panel {
        title: title.to_owned(),
        x: Axis::marked(
            "round trip, ms",
            Scale::Linear,
            [0, 50, 100, 150, 200, 250].map(|n| (f64::from(n), n.to_string())).to_vec(),
        ),
        y: Axis::linear("Mbit/s", LINK),
        lines: plain_lines(samples, panel, Look::Points),
        guides: vec![link_guide(250.0)],
    };
    Lines {
        heading: Heading {
            title: "How fast data goes, by distance".to_owned(),
            lead: format!(
                "Sending over an emulated link of 1 Gbit/s between hosts with this kernel's \
                 default buffers, beyond which longhaul's sender goes where it runs as root \
                 (SO_SNDBUFFORCE). Left: one stream, once it is up to speed. Right: one file \
                 copied, from the command's start to its end, logins included. Beyond {SCP_WHOLE} \
                 ms scp's file is smaller by as much as the round trip is longer: the same size \
                 would take it minutes."
            ),
            notes: samples.notes("bars from"),
        },
        columns: 2,
        height: 320.0,
        panels: [("streams", "One stream"), ("copies", "One file")].map(panel).to_vec(),
    }
    .draw()
}

fn link_guide(to: f64) -> Guide {
    Guide {
        label: "the link's rate".to_owned(),
        points: vec![[0.0, LINK], [to, LINK]],
        label_at: (1, Anchor::End),
    }
}

fn plain_lines(samples: &Samples<'_>, panel: &str, look: Look) -> Vec<Line> {
    let line = |who: Who<'_>| {
        let points = samples.points(panel, Metric::Rate, who, MBIT);
        samples.line(who, samples.origin.label(who.0).to_owned(), look, points)
    };
    samples.everyone(panel, Metric::Rate).into_iter().map(line).collect()
}

/// Rate over time from the client's start on.
pub(super) fn startup(samples: &Samples<'_>) -> Scene {
    let panel = |(panel, title): (&str, &str)| {
        let lines: Vec<_> = samples
            .everyone(panel, Metric::Rate)
            .into_iter()
            .map(|who| start_line(samples, panel, who))
            .collect();
        let last = lines.iter().flat_map(|line| line.points.last()).map(|point| point.at);
        let last = last.fold(1.0, f64::max).ceil();
        let seconds = (0..=last as u32).map(|n| (f64::from(n), n.to_string()));
        Panel {
            title: title.to_owned(),
            x: Axis::marked(
                "seconds since the command was started",
                Scale::Linear,
                seconds.collect(),
            ),
            y: Axis::linear(
                "Mbit/s",
                greatest(lines.iter().flat_map(|line| &line.points)).max(LINK),
            ),
            lines,
            guides: vec![link_guide(last)],
        }
    };
    Lines {
        heading: Heading {
            title: "How a stream starts".to_owned(),
            lead: "What arrives, by tenths of a second, over an emulated link of 1 Gbit/s and 100 \
                   ms; login included; autotuning may use buffers of 256 MiB."
                .to_owned(),
            notes: samples.notes("bands from"),
        },
        columns: 1,
        height: 220.0,
        panels: [("receive", "Receiving"), ("send", "Sending")].map(panel).to_vec(),
    }
    .draw()
}

fn start_line(samples: &Samples<'_>, panel: &str, who: Who<'_>) -> Line {
    let points = samples.points(panel, Metric::Rate, who, MBIT);
    path_line(samples, who, Look::Band, points)
}

/// A line of a program, or of ours with buffers that were asked for, in a colour of its own.
fn path_line(samples: &Samples<'_>, who: Who<'_>, look: Look, points: Vec<Point>) -> Line {
    let setting = who.1.split(' ').next().filter(|word| word.contains("Buf="));
    let name = samples.origin.label(who.0).to_owned();
    let label = setting.map_or(name, |setting| format!("{}, {setting}", who.0));
    let line = samples.line(who, label, look, points);
    match setting {
        Some(_) => Line { colour: Colour(0x00_9e_73), marker: Marker::Triangle, ..line },
        None => line,
    }
}

/// Memory by window: a consumer that keeps up, and one that does not.
pub(super) fn memory(samples: &Samples<'_>) -> Scene {
    let (least, most) = (262_144.0_f64, 134_217_728.0_f64);
    let panel = |(panel, title): (&str, &str)| {
        let everyone = samples.everyone(panel, Metric::Memory).into_iter();
        let lines: Vec<_> = everyone.map(|who| memory_line(samples, panel, who)).collect();
        let max = greatest(lines.iter().flat_map(|line| &line.points));
        let y = Axis::linear("MiB over an idle session", max.max(8.0));
        // Doubling, up to where the axis ends.
        let whole = (0..40).map(|n| least * 2_f64.powf(f64::from(n) / 4.0));
        let mut whole: Vec<_> = whole.take_while(|bytes| bytes / MIB < y.max).collect();
        whole.push(y.max * MIB);
        let x = Axis::sizes("largest window of the channel", Scale::Log, least, most);
        Panel {
            title: title.to_owned(),
            x: Axis { ticks: window_ticks(), ..x },
            guides: vec![Guide {
                label: "a whole window".to_owned(),
                label_at: (whole.len() - 1, Anchor::End),
                points: whole.into_iter().map(|bytes| [bytes, bytes / MIB]).collect(),
            }],
            y,
            lines,
        }
    };
    let panels = [("fast", "A reader that keeps up"), ("slow", "A reader of 1 MB/s")];
    Lines {
        heading: Heading {
            title: "What memory a stream takes, by window".to_owned(),
            lead: "Largest resident set of the receiving client above that of a login, over an \
                   emulated link of 1 Gbit/s and 100 ms. Stock programs have one window, whatever \
                   is asked for."
                .to_owned(),
            notes: samples.notes("bars from"),
        },
        columns: 2,
        height: 280.0,
        panels: panels.map(panel).to_vec(),
    }
    .draw()
}

fn window_ticks() -> Vec<(f64, String)> {
    [20, 22, 24, 26].map(|shift| f64::from(1 << shift)).map(|bytes| (bytes, size(bytes))).to_vec()
}

fn memory_line(samples: &Samples<'_>, panel: &str, who: Who<'_>) -> Line {
    let points = samples.points(panel, Metric::Memory, who, 1.0);
    samples.line(who, samples.origin.label(who.0).to_owned(), Look::Points, points)
}
