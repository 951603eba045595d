//! Metrics: what the kernels of both ends say of the connection, every so often, as CSV. A file
//! for each end; the far one's figures come by `tcp-info@longhaul`, if it knows that.

use crate::report::{self, Answer};
use anyhow::{Context, Result};
use conf::Client;
use engine::figures::columns;
use engine::{Figures, Session};
use login::Log;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The shortest time between two rows: each costs a few system calls and a packet each way.
const LEAST: Duration = Duration::from_secs(1);

/// The files, and how often there is something for them.
pub(crate) struct Metrics {
    local: Table,
    remote: PathBuf,
    every: Duration,
}

impl Metrics {
    /// As configured; `None` without Metrics.
    pub(crate) fn open(conf: &Client) -> Result<Option<Self>> {
        if !conf.metrics {
            return Ok(None);
        }
        let path = conf.metrics_path()?;
        let local = Table::open(&with_ending(&path, ".local.csv"))?;
        let remote = with_ending(&path, ".remote.csv");
        Ok(Some(Self { local, remote, every: conf.metrics_interval.max(LEAST) }))
    }

    /// Writes rows until `replies` can bring no more; a last one then.
    pub(crate) fn run(mut self, session: &Session, replies: &Receiver<Answer>, log: &Log) {
        let knows = |t: &proto::Transport| t.peer().is_some_and(proto::Peer::is_longhaul);
        let ask = session.transport(knows).then_some(|| report::ask(session));
        if let Err(error) = self.rows(|| session.figures(), ask, replies) {
            log.error(format_args!("Metrics: {error:#}"));
        }
    }

    /// `here` tells our figures, `ask` asks for the other end's, which come by `replies`. One
    /// question is under way at a time: an end that does not answer is not asked again.
    fn rows(
        &mut self,
        here: impl Fn() -> Figures,
        mut ask: Option<impl FnMut() -> Result<(), engine::Error>>,
        replies: &Receiver<Answer>,
    ) -> Result<()> {
        let mut remote = ask.as_ref().map(|_| Table::open(&self.remote)).transpose()?;
        let (mut next, mut waits) = (Instant::now(), false);
        loop {
            match replies.recv_timeout(next.saturating_duration_since(Instant::now())) {
                Ok(answer) => {
                    waits = false;
                    if let (Some(remote), Some(figures)) = (&mut remote, answer) {
                        remote.row(&figures)?;
                    }
                }
                Err(RecvTimeoutError::Timeout) => {
                    next += self.every;
                    self.local.row(&here())?;
                    // A connection that is over says so where it is used.
                    match ask.as_mut().filter(|_| !waits).map(|ask| ask()) {
                        Some(Err(_)) => return Ok(()),
                        Some(Ok(())) => waits = true,
                        None => {}
                    }
                }
                Err(RecvTimeoutError::Disconnected) => return self.local.row(&here()),
            }
        }
    }
}

fn with_ending(path: &Path, ending: &str) -> PathBuf {
    let mut path = path.as_os_str().to_owned();
    path.push(ending);
    path.into()
}

/// A CSV file (RFC 4180) with a row of names at its top.
struct Table {
    file: File,
    path: PathBuf,
}

impl Table {
    /// Appends to the file at `path`.
    fn open(path: &Path) -> Result<Self> {
        let file = OpenOptions::new().append(true).create(true).open(path);
        let mut table = Self {
            file: file.with_context(|| format!("MetricsPath {}", path.display()))?,
            path: path.to_owned(),
        };
        if table.file.metadata().is_ok_and(|meta| meta.len() == 0) {
            table.write(&format!("time,{}", columns::names().join(",")))?;
        }
        Ok(table)
    }

    /// Seconds since 1970, then the figures; those of a path that has none stay empty.
    fn row(&mut self, figures: &Figures) -> Result<()> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let values = columns::all(figures);
        let mut row = format!("{:.3}", now.as_secs_f64());
        for name in columns::names() {
            let value = values.iter().find(|(known, _)| *known == name);
            row.push(',');
            row.push_str(value.map_or("", |(_, value)| value));
        }
        self.write(&row)
    }

    /// One write per row, so that a reader never sees half of one.
    fn write(&mut self, row: &str) -> Result<()> {
        let written: io::Result<()> = self.file.write_all(format!("{row}\n").as_bytes());
        written.with_context(|| self.path.display().to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::sync::mpsc::channel;

    /// Rows are written as time goes by; the other end is asked again when it has answered, though
    /// it were with a refusal, and not before.
    #[test]
    fn an_end_that_does_not_answer_is_not_asked_again() {
        const ROWS: usize = 60;
        let dir = tempfile::tempdir().unwrap();
        let path = |ending| with_ending(&dir.path().join("m"), ending);
        let local = Table::open(&path(".local.csv")).unwrap();
        let every = Duration::from_millis(1);
        let mut metrics = Metrics { local, remote: path(".remote.csv"), every };
        let (rows, asked) = (Cell::new(0), Cell::new(0));
        let (sender, replies) = channel();
        let sender = Cell::new(Some(sender));
        let here = || {
            rows.set(rows.get() + 1);
            let kept = sender.take().filter(|_| rows.get() < ROWS);
            match (&kept, rows.get()) {
                (Some(sender), 20) => sender.send(None).unwrap(),
                (Some(sender), 40) => sender.send(Some(Figures::default())).unwrap(),
                _ => {}
            }
            sender.set(kept);
            Figures::default()
        };
        let ask = || {
            asked.set(asked.get() + 1);
            Ok(())
        };
        metrics.rows(here, Some(ask), &replies).unwrap();
        assert_eq!(asked.get(), 3, "at first, and after each answer");
        let lines = |ending| std::fs::read_to_string(path(ending)).unwrap().lines().count();
        // Each file begins with the names; the last row is that of the end.
        assert_eq!(lines(".local.csv"), 1 + ROWS + 1);
        assert_eq!(lines(".remote.csv"), 1 + 1);
    }
}
