//! Metrics: what the kernels of both ends say of the connection, every so often, as CSV. A file
//! for each end; the far one's figures come by `tcp-info@longhaul`, if it knows that.

use crate::report;
use anyhow::{Context, Result};
use conf::Client;
use engine::figures::words;
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
    pub(crate) fn run(mut self, session: &Session, replies: &Receiver<Figures>, log: &Log) {
        if let Err(error) = self.rows(session, replies) {
            log.error(format_args!("Metrics: {error:#}"));
        }
    }

    fn rows(&mut self, session: &Session, replies: &Receiver<Figures>) -> Result<()> {
        let knows = |t: &proto::Transport| t.peer().is_some_and(proto::Peer::is_longhaul);
        let asks = session.transport(knows);
        let mut remote = asks.then(|| Table::open(&self.remote)).transpose()?;
        let mut next = Instant::now();
        loop {
            match replies.recv_timeout(next.saturating_duration_since(Instant::now())) {
                Ok(figures) => {
                    if let Some(remote) = &mut remote {
                        remote.row(&figures)?;
                    }
                }
                Err(RecvTimeoutError::Timeout) => {
                    next += self.every;
                    self.local.row(&session.figures())?;
                    // A connection that is over says so where it is used.
                    if asks && report::ask(session).is_err() {
                        return Ok(());
                    }
                }
                Err(RecvTimeoutError::Disconnected) => return self.local.row(&session.figures()),
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
            table.write(&format!("time,{}", words::names().join(",")))?;
        }
        Ok(table)
    }

    /// Seconds since 1970, then the figures; those of a path that has none stay empty.
    fn row(&mut self, figures: &Figures) -> Result<()> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let values = words::all(figures);
        let mut row = format!("{:.3}", now.as_secs_f64());
        for name in words::names() {
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
