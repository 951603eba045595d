//! Bars: what a contender's figure must reach, what it should, and the verdict on it.

/// What a bar's figure is relative to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Against {
    Contender(&'static str),
    Absolute,
}

/// What a contender's figure must reach, and what it should.
#[derive(Debug)]
pub(crate) struct Bar<M> {
    pub(crate) of: &'static str,
    pub(crate) measure: M,
    pub(crate) against: Against,
    /// Nothing, if there is only a goal.
    pub(crate) bar: Option<f64>,
    pub(crate) goal: f64,
}

pub(crate) const fn bar<M: Copy>(
    of: &'static str,
    measure: M,
    against: Against,
    bar: f64,
    goal: f64,
) -> Bar<M> {
    Bar { of, measure, against, bar: Some(bar), goal }
}

/// A goal without a bar: it is shown, and nobody fails for it.
pub(crate) const fn goal<M: Copy>(
    of: &'static str,
    measure: M,
    against: Against,
    goal: f64,
) -> Bar<M> {
    Bar { of, measure, against, bar: None, goal }
}

impl<M> Bar<M> {
    /// Whom it speaks of.
    pub(crate) fn contenders(&self) -> impl Iterator<Item = &'static str> {
        let other = match self.against {
            Against::Contender(other) => Some(other),
            Against::Absolute => None,
        };
        [Some(self.of), other].into_iter().flatten()
    }

    /// Prints the verdict; false when the bar was missed or nothing was measured. `what` names the
    /// figure, `figure` gives a contender's median.
    pub(crate) fn judge(
        &self,
        what: &str,
        more_is_better: bool,
        figure: &dyn Fn(&str) -> Option<f64>,
    ) -> bool {
        let (name, reached) = match self.against {
            Against::Absolute => (format!("{} {what}", self.of), figure(self.of)),
            Against::Contender(other) => {
                let ratio = figure(self.of).zip(figure(other)).map(|(own, other)| own / other);
                (format!("{}/{other} {what}", self.of), ratio)
            }
        };
        let verdict = verdict(reached, self.bar, self.goal, more_is_better);
        let reached = reached.map_or("-".to_owned(), |figure| format!("{figure:.2}"));
        let limit = self.bar.map_or("-".to_owned(), |bar| bar.to_string());
        println!("  {name:40} {reached:>7}   bar {limit}  goal {}   {}", self.goal, verdict.text());
        verdict.is_good()
    }
}

/// What a bar says of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    GoalReached,
    Pass,
    /// There is no bar, and the goal is not reached.
    BelowGoal,
    Miss,
    NotMeasured,
}

impl Verdict {
    fn text(self) -> &'static str {
        match self {
            Self::GoalReached => "goal reached",
            Self::Pass => "pass",
            Self::BelowGoal => "below the goal",
            Self::Miss => "MISS",
            Self::NotMeasured => "not measured",
        }
    }

    fn is_good(self) -> bool {
        !matches!(self, Self::Miss | Self::NotMeasured)
    }
}

fn verdict(figure: Option<f64>, bar: Option<f64>, goal: f64, more_is_better: bool) -> Verdict {
    let Some(figure) = figure else { return Verdict::NotMeasured };
    let holds = |limit: f64| match more_is_better {
        true => figure >= limit,
        false => figure <= limit,
    };
    match (holds(goal), bar.map(holds)) {
        (true, _) => Verdict::GoalReached,
        (false, Some(true)) => Verdict::Pass,
        (false, Some(false)) => Verdict::Miss,
        (false, None) => Verdict::BelowGoal,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_is_held_against_bar_and_goal() {
        let more = |figure| verdict(Some(figure), Some(2.0), 3.0, true);
        assert_eq!([3.0, 2.0, 1.9].map(more), [Verdict::GoalReached, Verdict::Pass, Verdict::Miss]);
        let less = |figure| verdict(Some(figure), Some(3.0), 2.0, false);
        assert_eq!([2.0, 3.0, 3.1].map(less), [Verdict::GoalReached, Verdict::Pass, Verdict::Miss]);
        assert_eq!(verdict(Some(f64::NAN), Some(2.0), 3.0, true), Verdict::Miss);
    }

    #[test]
    fn who_has_only_a_goal_never_passes_and_never_fails() {
        let below = verdict(Some(0.5), None, 1.0, true);
        assert_eq!((below, below.is_good()), (Verdict::BelowGoal, true));
    }

    #[test]
    fn what_was_not_measured_is_no_pass() {
        let ours: Bar<()> = bar("ours", (), Against::Contender("openssh"), 2.0, 3.0);
        let only_ours = |name: &str| (name == "ours").then_some(9.0);
        assert!(!ours.judge("throughput", true, &only_ours));
        assert!(!ours.judge("throughput", true, &|_| None));
        assert!(ours.judge("throughput", true, &|name| Some(if name == "ours" {
            9.0
        } else {
            3.0
        })));
    }
}
