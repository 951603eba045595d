//! Outages: a host that breaks takes all its lanes with it, and each of them comes back by itself.
//! One line says what happened, and one that it goes on.

use crate::units;
use copy::observe::LaneId;
use copy::{Event, RETRIES, shown};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// The outages of each host.
#[derive(Debug, Default)]
pub(crate) struct Outages(Mutex<BTreeMap<String, Outage>>);

/// What is known of a host of which a lane broke.
#[derive(Debug, Default)]
struct Outage {
    /// When it began; none where it is over.
    since: Option<Instant>,
    /// Lanes that broke and have moved nothing since.
    away: BTreeSet<LaneId>,
    /// Those of them that are open again.
    open: BTreeSet<LaneId>,
    /// Why lanes were given up that broke for the first time.
    given_up: BTreeSet<String>,
}

impl Outages {
    /// The line that an event is worth, if it begins an outage or ends one.
    pub(crate) fn line(&self, event: &Event<'_>) -> Option<String> {
        let mut hosts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match *event {
            Event::LaneFailed { lane, host, why, retry_in } => {
                let outage = hosts.entry(host.to_owned()).or_default();
                let next = match retry_in {
                    Some(_) => outage.breaks(lane).then(retries),
                    None => outage.loses(lane, why).then(|| "other lanes go on".to_owned()),
                }?;
                let (host, why) = (shown(host.as_bytes()), shown(why.as_bytes()));
                Some(format!("lhscp: {host}: {why}; {next}"))
            }
            Event::LaneOpened { lane, host, .. } => {
                let outage = hosts.get_mut(host).filter(|outage| outage.away.contains(&lane))?;
                outage.open.insert(lane);
                None
            }
            Event::Moved { lane, .. } => {
                let has = |(_, outage): &(&String, &mut Outage)| outage.open.contains(&lane);
                let (host, outage) = hosts.iter_mut().find(has)?;
                outage.forgets(lane);
                let time = units::time(outage.since.take()?.elapsed());
                Some(format!("lhscp: {}: going on after {time}", shown(host.as_bytes())))
            }
            Event::LaneClosed { lane } => {
                let open = hosts.values_mut().filter(|outage| outage.open.contains(&lane));
                open.for_each(|outage| outage.forgets(lane));
                None
            }
            _ => None,
        }
    }
}

impl Outage {
    /// A lane broke and is tried again; whether that is news.
    fn breaks(&mut self, lane: LaneId) -> bool {
        self.open.remove(&lane);
        let all_were_there = self.away.is_empty();
        let was_there = self.away.insert(lane);
        let is_new = was_there && (all_were_there || self.since.is_none());
        if is_new {
            self.since = Some(Instant::now());
        }
        is_new
    }

    /// A lane broke and is given up; whether that is news.
    fn loses(&mut self, lane: LaneId, why: &str) -> bool {
        let was_there = !self.away.contains(&lane);
        self.forgets(lane);
        was_there && self.given_up.insert(why.to_owned())
    }

    fn forgets(&mut self, lane: LaneId) {
        self.open.remove(&lane);
        self.away.remove(&lane);
    }
}

fn retries() -> String {
    let (first, longest) = (units::time(RETRIES.first), units::time(RETRIES.longest));
    format!("trying again up to {} times, {first} to {longest} apart", RETRIES.attempts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn failed(lane: u32, why: &'static str) -> Event<'static> {
        let retry_in = Some(Duration::from_secs(1));
        Event::LaneFailed { lane: LaneId(lane), host: "h", why, retry_in }
    }

    fn given_up(lane: u32, why: &'static str) -> Event<'static> {
        Event::LaneFailed { lane: LaneId(lane), host: "h", why, retry_in: None }
    }

    fn opened(lane: u32) -> Event<'static> {
        Event::LaneOpened { lane: LaneId(lane), host: "h", connection: 0, channel: 0 }
    }

    fn moved(lane: u32) -> Event<'static> {
        Event::Moved { lane: LaneId(lane), bytes: 1 }
    }

    /// What is said at each event.
    fn said(outages: &Outages, events: &[Event<'_>]) -> Vec<String> {
        events.iter().filter_map(|event| outages.line(event)).collect()
    }

    const AGAIN: &str = "trying again up to 8 times, 0.5 s to 30.0 s apart";

    #[test]
    fn an_outage_of_all_lanes_is_two_lines() {
        let outages = Outages::default();
        let lines = said(&outages, &[opened(0), opened(1), moved(0), failed(0, "reset")]);
        assert_eq!(lines, [format!("lhscp: h: reset; {AGAIN}")]);
        let down = [failed(1, "reset"), failed(0, "refused"), failed(1, "refused"), moved(2)];
        assert_eq!(said(&outages, &down), [""; 0]);
        let lines = said(&outages, &[opened(1), moved(1), opened(0), moved(0), moved(1)]);
        assert_eq!(lines, ["lhscp: h: going on after 0.0 s"]);
        assert_eq!(said(&outages, &[failed(1, "reset")]).len(), 1);
    }

    /// A server that lets everybody in and breaks at once.
    #[test]
    fn an_outage_lasts_until_something_moves() {
        let outages = Outages::default();
        let round = [failed(0, "reset"), failed(1, "reset"), opened(0), opened(1)];
        assert_eq!(said(&outages, &round.repeat(8)).len(), 1);
    }

    #[test]
    fn a_lane_that_comes_late_is_no_new_outage_and_one_that_breaks_again_is() {
        let outages = Outages::default();
        let late = [failed(0, "a"), failed(1, "a"), opened(0), moved(0), failed(1, "b")];
        assert_eq!(said(&outages, &late).len(), 2);
        assert_eq!(said(&outages, &[failed(0, "c"), failed(1, "c")]).len(), 1);
        // A lane that is not needed any more has been away for the last time.
        let lines = [opened(0), moved(0), opened(1), Event::LaneClosed { lane: LaneId(1) }];
        assert_eq!(said(&outages, &lines).len(), 1);
        assert_eq!(said(&outages, &[failed(1, "d")]).len(), 1);
    }

    #[test]
    fn lanes_that_are_given_up_are_told_once_for_each_reason_unless_they_were_away() {
        let outages = Outages::default();
        let broken = [given_up(0, "nonsense"), given_up(1, "nonsense")];
        assert_eq!(said(&outages, &broken), ["lhscp: h: nonsense; other lanes go on"]);
        let outages = Outages::default();
        let dead = [failed(0, "reset"), given_up(0, "refused")];
        assert_eq!(said(&outages, &dead).len(), 1);
    }

    #[test]
    fn e2_a_servers_words_are_escaped() {
        let lines = said(&Outages::default(), &[failed(0, "a\x1b[2J")]);
        assert!(lines[0].starts_with("lhscp: h: a\\x1b[2J; "), "{lines:?}");
    }
}
