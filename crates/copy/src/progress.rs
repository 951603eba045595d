//! What a person sees meanwhile, on standard error: bars on a terminal, a line now and then
//! elsewhere, nothing with `-q`.

use crate::args::Show;
use crate::meter::{Counts, Lane};
use crate::outage::Outages;
use crate::units;
use copy::observe::LaneId;
use copy::{Event, Report, shown};
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::collections::BTreeMap;
use std::io::{IsTerminal, Write};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Between lines where there is no terminal.
const LINES_EVERY: Duration = Duration::from_secs(10);

/// How it stands, ten times a second.
#[derive(Debug)]
pub(crate) struct Now<'a> {
    pub(crate) counts: &'a Counts,
    /// Since the start.
    pub(crate) elapsed: Duration,
    /// Bytes per second over the last second.
    pub(crate) rate: f64,
    /// How long still, if that can be said.
    pub(crate) remaining: Option<Duration>,
}

/// The display.
pub(crate) struct Progress {
    show: Show,
    kind: Kind,
    outages: Outages,
}

enum Kind {
    Nothing,
    Lines(Mutex<Duration>),
    Bars(Box<Bars>),
}

impl Progress {
    pub(crate) fn new(show: Show) -> Self {
        let kind = match (show.quiet, std::io::stderr().is_terminal()) {
            (true, _) => Kind::Nothing,
            (false, true) => Kind::Bars(Box::new(Bars::new())),
            (false, false) => Kind::Lines(Mutex::new(Duration::ZERO)),
        };
        Self { show, kind, outages: Outages::default() }
    }

    /// Shows how it stands.
    pub(crate) fn tick(&self, now: &Now<'_>) {
        match &self.kind {
            Kind::Nothing => {}
            Kind::Lines(last) => {
                let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
                if now.elapsed.saturating_sub(*last) >= LINES_EVERY {
                    *last = now.elapsed;
                    self.say(&format!("lhscp: {}", standing(now)));
                }
            }
            Kind::Bars(bars) if is_due(now) => bars.draw(now, self.show.verbose > 0),
            Kind::Bars(_) => {}
        }
    }

    /// Takes the bars off the terminal.
    pub(crate) fn end(&self) {
        if let Kind::Bars(bars) = &self.kind {
            bars.clear();
        }
    }

    /// Tells what is worth a line of its own.
    pub(crate) fn tell(&self, event: &Event<'_>) {
        // What each lane did comes before what it means.
        let outage = self.outages.line(event).filter(|_| !self.show.quiet);
        let lines = [line_of(event, self.show), outage];
        lines.iter().flatten().for_each(|line| self.say(line));
    }

    /// A line above the bars.
    pub(crate) fn say(&self, line: &str) {
        // A terminal that is gone must not end the copy.
        let write = || _ = std::io::stderr().write_all(format!("{line}\n").as_bytes());
        match &self.kind {
            Kind::Bars(bars) => bars.all.suspend(write),
            _ => write(),
        }
    }
}

/// Whether bars may be drawn: there is something to show, the user is asked nothing, and the terminal
/// is ours, not that of a shell that runs us in the background.
fn is_due(now: &Now<'_>) -> bool {
    let counts = now.counts;
    let begun = counts.files_found > 0 || counts.moved > 0 || !counts.lanes.is_empty();
    begun && !login::is_asking() && is_in_foreground()
}

fn is_in_foreground() -> bool {
    // Where it controls nobody, nobody else draws on it.
    rustix::termios::tcgetpgrp(std::io::stderr())
        .map_or(true, |group| group == rustix::process::getpgrp())
}

/// The line an event is worth, if it is worth one: failures always, the rest unless `-q`.
fn line_of(event: &Event<'_>, show: Show) -> Option<String> {
    let loud = !show.quiet;
    match *event {
        Event::Failed(failure) => Some(format!("lhscp: {failure}")),
        Event::Warned { path, name, text } if loud => {
            let name = name.or(path).map(|name| shown(name) + ": ").unwrap_or_default();
            Some(format!("lhscp: warning: {name}{}", shown(text.as_bytes())))
        }
        Event::LaneFailed { lane, why, retry_in, .. } if show.verbose > 0 => {
            let next = retry_in.map_or("others go on".to_owned(), |wait| {
                format!("trying again in {}", units::time(wait))
            });
            Some(format!("lhscp: lane {}: {}; {next}", lane.0, shown(why.as_bytes())))
        }
        Event::LaneOpened { lane, host, connection, channel } if show.verbose > 0 => Some(format!(
            "lhscp: lane {}: {}, connection {connection}, channel {channel}",
            lane.0,
            shown(host.as_bytes())
        )),
        Event::LaneClosed { lane } if show.verbose > 0 => {
            Some(format!("lhscp: lane {}: closed", lane.0))
        }
        _ => None,
    }
}

/// `3/10 files, 1.50 GiB of 4.00 GiB, 362 MB/s, 7.2 s left`.
fn standing(now: &Now<'_>) -> String {
    let counts = now.counts;
    if counts.files_found == 0 && counts.moved > 0 {
        // A test that takes its time has no end in bytes.
        return format!("{}, {}", units::bytes(counts.moved), units::per_second(now.rate));
    }
    let more = if counts.scanned { "" } else { "+" };
    let left = now.remaining.map_or(String::new(), |left| format!(", {} left", units::time(left)));
    format!(
        "{}/{}{more} files, {} of {}{more}, {}{left}",
        units::count(counts.files),
        units::count(counts.files_found),
        units::bytes(counts.bytes()),
        units::bytes(counts.bytes_found),
        units::per_second(now.rate),
    )
}

/// Bars on a terminal: one for all, and with `-v` a line per lane.
struct Bars {
    all: MultiProgress,
    total: ProgressBar,
    lanes: Mutex<BTreeMap<LaneId, LaneBar>>,
}

struct LaneBar {
    bar: ProgressBar,
    /// When and how much, at the last look.
    last: (Duration, u64),
}

impl Bars {
    fn new() -> Self {
        let all = MultiProgress::with_draw_target(ProgressDrawTarget::stderr());
        let total = all.add(ProgressBar::new(0).with_style(style("{bar:24} {wide_msg}")));
        Self { all, total, lanes: Mutex::default() }
    }

    fn draw(&self, now: &Now<'_>, each: bool) {
        self.total.set_length(now.counts.bytes_found.max(1));
        self.total.set_position(now.counts.bytes());
        self.total.set_message(standing(now));
        if each {
            self.draw_lanes(now);
        }
    }

    fn draw_lanes(&self, now: &Now<'_>) {
        let mut bars = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        let open = &now.counts.lanes;
        bars.retain(|id, lane| {
            let stays = open.contains_key(id);
            if !stays {
                lane.bar.finish_and_clear();
            }
            stays
        });
        for (id, lane) in open {
            let add = || LaneBar { bar: self.lane_bar(), last: (now.elapsed, lane.moved) };
            bars.entry(*id).or_insert_with(add).draw(*id, lane, now.elapsed);
        }
    }

    fn lane_bar(&self) -> ProgressBar {
        self.all.add(ProgressBar::new(0).with_style(style("{wide_msg}")))
    }

    fn clear(&self) {
        let mut lanes = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        lanes.values().for_each(|lane| lane.bar.finish_and_clear());
        lanes.clear();
        self.total.finish_and_clear();
    }
}

impl LaneBar {
    /// Renewed once a second.
    fn draw(&mut self, id: LaneId, lane: &Lane, elapsed: Duration) {
        let time = elapsed.saturating_sub(self.last.0);
        if time < Duration::from_secs(1) && !self.bar.message().is_empty() {
            return;
        }
        let moved = lane.moved.saturating_sub(self.last.1) as f64;
        let rate = if time.is_zero() { 0.0 } else { moved / time.as_secs_f64() };
        self.last = (elapsed, lane.moved);
        self.bar.set_message(format!(
            "  lane {}: {} connection {} channel {}, {}, {}",
            id.0,
            shown(lane.host.as_bytes()),
            lane.connection,
            lane.channel,
            units::bytes(lane.moved),
            units::per_second(rate)
        ));
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

/// The last line of a copy.
pub(crate) fn summary(report: &Report, peak: f64) -> String {
    let mut out = match (report.copied == 0 && report.bytes == 0, report.through) {
        (_, Some(through)) => format!("lhscp: {through}: {}", rates(report, peak)),
        (true, _) => format!("lhscp: nothing copied in {}", units::time(report.elapsed)),
        (false, _) => {
            let (copied, plural) = (units::count(report.copied), plural(report.copied));
            format!("lhscp: {copied} file{plural}, {}", rates(report, peak))
        }
    };
    let counts = [
        (report.skipped, "already there"),
        (report.attributes, "given attributes"),
        (report.verified, "verified"),
        (report.retries, "tried again"),
        (report.failures.len() as u64, "failed"),
    ];
    for (count, what) in counts.iter().filter(|(count, _)| *count > 0) {
        out += &format!("; {} {what}", units::count(*count));
    }
    if report.wasted > 0 {
        out += &format!("; {} sent again", units::bytes(report.wasted));
    }
    out
}

/// `1.00 GiB in 2.0 s: 537 MB/s mean, 600 MB/s peak, 4 lanes`.
fn rates(report: &Report, peak: f64) -> String {
    format!(
        "{} in {}: {} mean, {} peak, {} lane{}",
        units::bytes(report.bytes),
        units::time(report.elapsed),
        units::per_second(report.mean()),
        units::per_second(peak),
        report.lanes,
        plural(report.lanes.into()),
    )
}

fn plural(count: u64) -> &'static str {
    if count == 1 { "" } else { "s" }
}

#[cfg(test)]
mod tests {
    use super::*;
    use copy::report::{Failure, Through, What};

    const LOUD: Show = Show { quiet: false, verbose: 0, json: false };
    const QUIET: Show = Show { quiet: true, verbose: 0, json: false };
    const VERBOSE: Show = Show { quiet: false, verbose: 1, json: false };

    #[test]
    fn e2_lines_are_escaped() {
        let failure = Failure {
            what: What::Path(b"a".to_vec()),
            name: Some(b"h:/x/a\x1b[2J".to_vec()),
            why: "b\nc".to_owned(),
        };
        let line = line_of(&Event::Failed(&failure), QUIET).unwrap();
        assert_eq!(line, "lhscp: h:/x/a\\x1b[2J: b\\nc");
        let warned = Event::Warned { path: Some(b"p"), name: Some(b"h:p\xff"), text: "t\x07" };
        assert_eq!(line_of(&warned, LOUD).unwrap(), "lhscp: warning: h:p\\xff: t\\x07");
    }

    #[test]
    fn quiet_leaves_failures_and_verbose_adds_lanes() {
        let lane = LaneId(2);
        let opened = Event::LaneOpened { lane, host: "h", connection: 1, channel: 0 };
        let failed = Event::LaneFailed { lane, host: "h", why: "reset", retry_in: None };
        assert!(line_of(&opened, LOUD).is_none());
        let line = line_of(&opened, VERBOSE).unwrap();
        assert_eq!(line, "lhscp: lane 2: h, connection 1, channel 0");
        assert!(line_of(&failed, LOUD).is_none());
        assert_eq!(line_of(&failed, VERBOSE).unwrap(), "lhscp: lane 2: reset; others go on");
    }

    #[test]
    fn the_standing_says_whether_the_scan_goes_on() {
        let mut counts =
            Counts { files_found: 1200, bytes_found: 2 << 30, files: 3, ..Counts::default() };
        let show = |counts: &Counts, remaining| {
            let elapsed = Duration::from_secs(1);
            standing(&Now { counts, elapsed, rate: 1e6, remaining })
        };
        assert_eq!(show(&counts, None), "3/1,200+ files, 0 B of 2.00 GiB+, 1.00 MB/s");
        counts.scanned = true;
        assert_eq!(
            show(&counts, Some(Duration::from_secs(65))),
            "3/1,200 files, 0 B of 2.00 GiB, 1.00 MB/s, 1:05 left"
        );
    }

    #[test]
    fn a_test_says_which_way_was_measured_and_through_what() {
        let report = Report {
            bytes: 1 << 30,
            lanes: 1,
            elapsed: Duration::from_secs(2),
            through: Some(Through::Zero),
            ..Report::default()
        };
        assert_eq!(
            summary(&report, 6e8),
            "lhscp: received from /dev/zero by SFTP: 1.00 GiB in 2.0 s: 537 MB/s mean, \
             600 MB/s peak, 1 lane"
        );
        let line = summary(&Report { through: Some(Through::Discard), ..report }, 6e8);
        assert!(line.starts_with("lhscp: sent to discard@longhaul: 1.00 GiB in"), "{line}");
    }

    #[test]
    fn the_summary_names_what_there_was() {
        let mut report = Report {
            copied: 1,
            bytes: 1 << 30,
            lanes: 4,
            elapsed: Duration::from_secs(2),
            ..Report::default()
        };
        assert_eq!(
            summary(&report, 6e8),
            "lhscp: 1 file, 1.00 GiB in 2.0 s: 537 MB/s mean, 600 MB/s peak, 4 lanes"
        );
        (report.skipped, report.wasted) = (7, 4096);
        let line = summary(&report, 6e8);
        assert!(line.ends_with("; 7 already there; 4.00 KiB sent again"), "{line}");
        let report =
            Report { skipped: 2, elapsed: Duration::from_millis(234), ..Report::default() };
        assert_eq!(summary(&report, 0.0), "lhscp: nothing copied in 0.2 s; 2 already there");
    }
}
