//! The transfer log: what a session moved, over what, how fast, and why it ended. A line of
//! `name=value` in the log and, with TransferLog, the same as a line of JSON in a file.

use crate::endpoint::Endpoints;
use engine::Figures;
use engine::figures::Record;
use proto::{Negotiated, Role};
use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Who was there and how it ended.
pub(crate) struct Guest<'a> {
    pub(crate) ends: Endpoints,
    pub(crate) user: &'a str,
    /// The client's software version; it may hold anything.
    pub(crate) client: &'a str,
    /// Of the last key exchange.
    pub(crate) negotiated: Option<Negotiated>,
    /// From the first byte to the last.
    pub(crate) duration: Duration,
    pub(crate) end: &'a str,
}

/// Everything there is to say of a session that ended at `now`.
pub(crate) fn record(guest: &Guest<'_>, figures: &Figures, now: SystemTime) -> Record {
    let mut record = Record::default();
    let (address, port) = guest.ends.peer();
    record.text("time", utc(now));
    record.text("address", address);
    record.count("port", port.into());
    record.text("user", guest.user);
    record.text("client", guest.client);
    if let Some(negotiated) = &guest.negotiated {
        record.algorithms(negotiated, Role::Server);
    }
    record.figures(figures, guest.duration);
    record.text("end", guest.end);
    record
}

/// Appends the record as JSON to the file at `path`, which is made for its owner alone. One write,
/// so that lines of sessions that end together do not mix.
pub(crate) fn append(record: &Record, path: &Path) -> io::Result<()> {
    let mut file = OpenOptions::new().append(true).create(true).mode(0o600).open(path)?;
    file.write_all(format!("{}\n", record.json()).as_bytes())
}

/// RFC 3339, in UTC and whole seconds.
fn utc(time: SystemTime) -> String {
    let seconds = time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    // Years that begin in March: the leap day is the last of one. 719,468 days from March of
    // year 0 to 1970; an era is 400 years.
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    let (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60);
    let year = era * 400 + year + next;
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_date() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (951_868_800, "2000-03-01T00:00:00Z"),
            (1_798_761_599, "2026-12-31T23:59:59Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(utc(UNIX_EPOCH + Duration::from_secs(seconds)), text);
        }
    }
}
