//! Tally: what runs came to, counted by words, and every violation with the seed that shows it.

use crate::process::Ended;
use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// How many runs, from which seed, how many of them at a time.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// Runs at a time.
    pub jobs: usize,
    /// Runs.
    pub runs: u64,
    /// The first seed; run N has its own dice, made from both.
    pub seed: u64,
}

impl Plan {
    /// Runs as planned; what all of them came to.
    pub fn carry_out(self, one: impl Fn(u64, &mut Tally) -> Result<()> + Sync) -> Result<Tally> {
        let (next, total) = (AtomicU64::new(0), Mutex::new(Tally::default()));
        let work = || -> Result<()> {
            loop {
                let run = next.fetch_add(1, Ordering::Relaxed);
                if run >= self.runs {
                    return Ok(());
                }
                let mut tally = Tally::default();
                one(run, &mut tally).with_context(|| format!("run {run}"))?;
                tally.count("runs");
                total.lock().unwrap_or_else(PoisonError::into_inner).merge(tally);
            }
        };
        thread::scope(|scope| {
            let workers: Vec<_> = (0..self.jobs.max(1)).map(|_| scope.spawn(work)).collect();
            let mut ended = workers.into_iter().map(|worker| worker.join());
            ended.try_for_each(|end| end.unwrap_or_else(|_| Err(anyhow::anyhow!("a run panicked"))))
        })?;
        Ok(total.into_inner().unwrap_or_else(PoisonError::into_inner))
    }
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

    fn merge(&mut self, other: Self) {
        other.counts.iter().for_each(|(what, many)| self.add(what, *many));
        self.violations.extend(other.violations);
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

    /// A violation if a program panicked or died of a signal not sent from here.
    pub fn crash(&mut self, run: u64, ended: &Ended) {
        ended.crash().iter().for_each(|what| self.violation(run, what));
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
