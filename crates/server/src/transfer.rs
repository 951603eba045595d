//! The transfer log: what a session moved, over what, how fast, and why it ended. A line of
//! `name=value` in the log and, with TransferLog, the same as a line of JSON in a file.

use crate::endpoint::Endpoints;
use crypt::Cover;
use engine::Figures;
use engine::figures::limits;
use proto::negotiate::Negotiated;
use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Who was there and how it ended.
pub(crate) struct Guest<'a> {
    pub(crate) ends: Endpoints,
    pub(crate) user: &'a str,
    /// The client's identification without `SSH-2.0-`; it may hold anything.
    pub(crate) client: &'a str,
    /// Of the last key exchange.
    pub(crate) negotiated: Option<Negotiated>,
    /// From the first byte to the last.
    pub(crate) duration: Duration,
    pub(crate) end: &'a str,
}

/// What stands behind a name.
#[derive(Debug, Clone, PartialEq)]
enum Value {
    Text(String),
    Count(u64),
    /// With three digits behind the point.
    Fraction(f64),
}

/// One session's line.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Record(Vec<(&'static str, Value)>);

impl Record {
    /// Everything there is to say, at `now`.
    pub(crate) fn new(guest: &Guest<'_>, figures: &Figures, now: SystemTime) -> Self {
        let mut record = Self(vec![("time", Value::Text(utc(now)))]);
        record.guest(guest);
        record.traffic(figures, guest.duration);
        record.path(figures);
        let limit = limits::find(figures, None).map(|verdict| verdict.to_string());
        record.text("limited_by", limit.unwrap_or_else(|| "-".to_owned()));
        record.text("end", guest.end);
        record
    }

    fn guest(&mut self, guest: &Guest<'_>) {
        let (address, port) = guest.ends.peer();
        self.text("address", address);
        self.count("port", port.into());
        self.text("user", guest.user);
        self.text("client", guest.client);
        let Some(negotiated) = &guest.negotiated else { return };
        self.text("kex", negotiated.kex);
        for (cipher, mac, cover) in
            [("cipher_in", "mac_in", negotiated.c2s), ("cipher_out", "mac_out", negotiated.s2c)]
        {
            self.text(cipher, flagged(cover.cipher_name()));
            self.text(mac, mac_name(cover));
        }
    }

    fn traffic(&mut self, figures: &Figures, duration: Duration) {
        let Figures { sent, received, .. } = figures;
        self.fraction("seconds", duration.as_secs_f64());
        self.count("bytes_in", received.bytes);
        self.count("bytes_out", sent.bytes);
        self.count("clear_in", received.clear);
        self.count("clear_out", sent.clear);
        self.count("not_taken", received.bytes.saturating_sub(figures.written));
        self.count("mean_in", received.mean(duration));
        self.count("mean_out", sent.mean(duration));
        self.count("peak_in", received.peak);
        self.count("peak_out", sent.peak);
        self.count("wire_in", received.wire);
        self.count("wire_out", sent.wire);
        self.count("window_in", received.window);
        self.count("window_out", sent.window);
        self.count("rekeys", figures.rekeys);
    }

    fn path(&mut self, figures: &Figures) {
        let Some(path) = &figures.path else { return };
        self.fraction("rtt_ms", path.tcp.rtt.as_secs_f64() * 1e3);
        self.fraction("rtt_min_ms", path.tcp.shortest_rtt.as_secs_f64() * 1e3);
        self.count("retransmits", path.tcp.retransmits.into());
        self.text("congestion", path.congestion.as_str());
    }

    fn text(&mut self, name: &'static str, value: impl Into<String>) {
        self.0.push((name, Value::Text(value.into())));
    }

    fn count(&mut self, name: &'static str, value: u64) {
        self.0.push((name, Value::Count(value)));
    }

    fn fraction(&mut self, name: &'static str, value: f64) {
        self.0.push((name, Value::Fraction(value)));
    }

    /// `name=value` with blanks between; text that needs it in quotes, escaped as in JSON.
    pub(crate) fn line(&self) -> String {
        let mut out = String::new();
        for (name, value) in self.0.iter().filter(|(name, _)| *name != "time") {
            let blank = if out.is_empty() { "" } else { " " };
            let _ = match value {
                Value::Text(text) if is_plain(text) => write!(out, "{blank}{name}={text}"),
                value => write!(out, "{blank}{name}={}", json(value)),
            };
        }
        out
    }

    /// One JSON object on a line of its own.
    pub(crate) fn json(&self) -> String {
        let pairs: Vec<String> =
            self.0.iter().map(|(name, value)| format!("\"{name}\":{}", json(value))).collect();
        format!("{{{}}}\n", pairs.join(","))
    }

    /// Appends the JSON line to the file at `path`, which is made for its owner alone. One write,
    /// so that lines of sessions that end together do not mix.
    pub(crate) fn append(&self, path: &Path) -> io::Result<()> {
        let mut file = OpenOptions::new().append(true).create(true).mode(0o600).open(path)?;
        file.write_all(self.json().as_bytes())
    }
}

fn json(value: &Value) -> String {
    match value {
        Value::Text(text) => serde_json::Value::from(text.as_str()).to_string(),
        Value::Count(count) => count.to_string(),
        Value::Fraction(fraction) => format!("{fraction:.3}"),
    }
}

fn is_plain(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_graphic() && !"\"\\=".contains(c))
}

/// What protects nothing is not to be overlooked.
fn flagged(name: &str) -> String {
    if name == "none" { "NONE".to_owned() } else { name.to_owned() }
}

/// AEAD ciphers have no MAC beside them.
fn mac_name(cover: Cover) -> String {
    cover.mac_name().map_or_else(|| "aead".to_owned(), flagged)
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

    fn guest(client: &str) -> Guest<'_> {
        Guest {
            ends: Endpoints::default(),
            user: "u",
            client,
            negotiated: None,
            duration: Duration::from_millis(2_500),
            end: "disconnected by user",
        }
    }

    #[test]
    fn a_line_has_every_figure_and_nothing_of_the_client_can_add_one() {
        let mut figures = Figures::default();
        (figures.received.bytes, figures.written, figures.sent.clear) = (5_000_000, 4_999_000, 7);
        let record = Record::new(&guest("x port=9\n\u{1b}\""), &figures, UNIX_EPOCH);
        let line = record.line();
        for part in [
            r#"client="x port=9\n\u001b\"" "#,
            "user=u ",
            "seconds=2.500 ",
            "bytes_in=5000000 ",
            "not_taken=1000 ",
            "clear_out=7 ",
            "mean_in=2000000 ",
            "end=\"disconnected by user\"",
        ] {
            assert!(line.contains(part), "{part} in {line}");
        }
        let json: serde_json::Value = serde_json::from_str(&record.json()).unwrap();
        assert_eq!(json["time"], "1970-01-01T00:00:00Z");
        assert_eq!(json["client"], "x port=9\n\u{1b}\"");
        assert_eq!(json["bytes_in"], 5_000_000);
        assert!(record.json().ends_with("}\n") && !record.json().trim_end().contains('\n'));
    }

    #[test]
    fn what_protects_nothing_is_flagged() {
        assert_eq!(flagged("none"), "NONE");
        let names: Vec<_> = Cover::all().map(mac_name).collect();
        assert!(names.contains(&"aead".to_owned()), "{names:?}");
        assert!(names.contains(&"hmac-sha2-256-etm@openssh.com".to_owned()), "{names:?}");
    }

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
