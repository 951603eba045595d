//! Tally: what runs came to, counted by words, and every violation with the seed that shows it.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

/// How many runs, from which seed.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// Runs.
    pub runs: u64,
    /// The first seed; run N has its own dice, made from both.
    pub seed: u64,
}

/// What a scenario's runs came to.
#[derive(Debug, Default)]
pub struct Tally {
    counts: BTreeMap<String, u64>,
    /// What must not be, in the order it was found.
    pub violations: Vec<String>,
    /// How long it took.
    pub took: Duration,
}

impl Tally {
    /// One more of `what`.
    pub fn count(&mut self, what: &str) {
        self.add(what, 1);
    }

    /// So many more of `what`.
    pub fn add(&mut self, what: &str, many: u64) {
        *self.counts.entry(what.to_owned()).or_default() += many;
    }

    /// How many of `what`.
    #[must_use]
    pub fn of(&self, what: &str) -> u64 {
        self.counts.get(what).copied().unwrap_or(0)
    }

    /// Something that must not be. Said at once: a long series need not end first.
    pub fn violation(&mut self, run: u64, what: &str) {
        let line = format!("run {run}: {what}");
        eprintln!("VIOLATION {line}");
        self.violations.push(line);
    }

    /// The rows of a Markdown table.
    #[must_use]
    pub fn rows(&self, scenario: &str) -> String {
        let mut out = String::new();
        let mut row = |what: &str, many: u64| _ = writeln!(out, "| {scenario} | {what} | {many} |");
        self.counts.iter().for_each(|(what, many)| row(what, *many));
        row("**violations**", self.violations.len() as u64);
        row("seconds", self.took.as_secs());
        out
    }
}

/// Head of the table that [`Tally::rows`] belong to.
pub const HEAD: &str = "| scenario | what | times |\n|---|---|---|\n";
