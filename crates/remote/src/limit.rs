//! Limit: what limited several connections that did one thing together.
//!
//! Each connection's figures tell what limited it for how much of its time (`engine::figures`). What
//! did so for most of the time of all of them limited them together.

use engine::Figures;
use engine::figures::limits::{self, Cause, End, Verdict};
use std::time::Duration;

/// What limited connections.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limit(Verdict);

impl Limit {
    /// Of connections with these figures; `None` if they moved too little to tell.
    #[must_use]
    pub fn of(figures: &[Figures]) -> Option<Self> {
        let found = |figures: &Figures| Some((age(figures), limits::find(figures, None)?));
        Self::among(&figures.iter().filter_map(found).collect::<Vec<_>>())
    }

    /// Verdicts, each with the time that it is about.
    fn among(verdicts: &[(Duration, Verdict)]) -> Option<Self> {
        let time = |(age, verdict): &(Duration, Verdict)| age.as_secs_f64() * verdict.share;
        let same = |one: &Verdict, other: &Verdict| {
            (one.cause, one.end, one.sending) == (other.cause, other.end, other.sending)
        };
        let together = |of: &Verdict| -> f64 {
            verdicts.iter().filter(|(_, verdict)| same(verdict, of)).map(time).sum()
        };
        let order = |one: &&(Duration, Verdict), other: &&(Duration, Verdict)| {
            let key = |item: &(Duration, Verdict)| (together(&item.1), time(item));
            key(one).partial_cmp(&key(other)).unwrap_or(std::cmp::Ordering::Equal)
        };
        let (_, most) = verdicts.iter().max_by(order)?;
        let all: f64 = verdicts.iter().map(|(age, _)| age.as_secs_f64()).sum();
        let share = together(most) / all.max(f64::MIN_POSITIVE);
        let bytes = |(age, verdict): &(Duration, Verdict)| age.as_secs_f64() * verdict.rate as f64;
        let longest = verdicts.iter().map(|(age, _)| age.as_secs_f64()).fold(0.0, f64::max);
        // They were not all there all the time.
        let rate = verdicts.iter().map(bytes).sum::<f64>() / longest.max(f64::MIN_POSITIVE);
        let rate = rate.round() as u64;
        Some(Self(Verdict { share, rate, ..*most }))
    }

    /// As it stands behind `limited by: `. What feeds an SFTP channel is never slow, but may have
    /// nothing to send: `idle` says what it waits for then.
    #[must_use]
    pub fn said(&self, idle: &str) -> String {
        let said = self.0.to_string();
        match (self.0.cause, self.0.end) {
            (Cause::Producer, End::Here) => said.replacen("a slow producer here", idle, 1),
            _ => said,
        }
    }
}

/// Of the thread that moved the data.
fn age(figures: &Figures) -> Duration {
    let (sender, receiver) = (&figures.sender, &figures.receiver);
    if sender.bytes >= receiver.bytes { sender.age } else { receiver.age }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(cause: Cause, share: f64, rate: u64) -> Verdict {
        let (end, sending, rtt, size) = (End::Here, true, Duration::ZERO, 0);
        Verdict { cause, end, sending, share, rate, rtt, size }
    }

    fn among(verdicts: &[(u64, Verdict)]) -> Limit {
        let timed = |(seconds, verdict): &(u64, Verdict)| (Duration::from_secs(*seconds), *verdict);
        Limit::among(&verdicts.iter().map(timed).collect::<Vec<_>>()).unwrap()
    }

    #[test]
    fn what_limited_most_of_the_time_of_all_limited_them_together() {
        let (loss, core) = (verdict(Cause::Loss, 0.5, 10_000_000), verdict(Cause::Core, 0.9, 1));
        // Two for four seconds each, against one for four and a half.
        let limit = among(&[(8, loss), (5, core), (8, loss)]);
        assert_eq!(limit.0.cause, Cause::Loss);
        assert_eq!(limit.0.rate, 20_000_001, "the third one had five seconds of the eight");
        assert!((limit.0.share - 8.0 / 21.0).abs() < 1e-9, "{limit:?}");
        assert_eq!(among(&[(8, loss), (5, core)]).0.cause, Cause::Core);
    }

    #[test]
    fn who_has_nothing_to_send_is_not_called_slow() {
        let said = |verdict| among(&[(1, verdict)]).said("the server's answers");
        let idle = said(verdict(Cause::Producer, 0.63, 5_000_000));
        assert_eq!(idle, "the server's answers (63 % of the time; 5.0 MB/s)");
        assert!(said(verdict(Cause::Core, 0.63, 5)).starts_with("one core here ("));
    }

    #[test]
    fn connections_that_moved_nothing_say_nothing() {
        assert_eq!(Limit::of(&[Figures::default()]), None);
        assert_eq!(Limit::of(&[]), None);
    }
}
