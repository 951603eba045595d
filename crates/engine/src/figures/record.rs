//! Records: a connection's figures as names and values for people and programs, in a log's line or
//! as JSON. `in` is what this end received.

use super::{Figures, limits};
use crypt::Cover;
use proto::{Negotiated, Role};
use std::fmt::Write as _;
use std::time::Duration;

/// What stands behind a name.
#[derive(Debug, Clone, PartialEq)]
enum Value {
    Text(String),
    Count(u64),
    /// With three digits behind the point.
    Fraction(f64),
}

/// Names and values, in order.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Record(Vec<(&'static str, Value)>);

impl Record {
    /// One more text, which may hold anything.
    pub fn text(&mut self, name: &'static str, value: impl Into<String>) {
        self.0.push((name, Value::Text(value.into())));
    }

    /// One more number.
    pub fn count(&mut self, name: &'static str, value: u64) {
        self.0.push((name, Value::Count(value)));
    }

    fn fraction(&mut self, name: &'static str, value: f64) {
        self.0.push((name, Value::Fraction(value)));
    }

    /// How packets are protected, as the side of `role` sees it. What protects nothing stands in
    /// capitals.
    pub fn algorithms(&mut self, negotiated: &Negotiated, role: Role) {
        let (inward, outward) = match role {
            Role::Client => (negotiated.s2c, negotiated.c2s),
            Role::Server => (negotiated.c2s, negotiated.s2c),
        };
        self.text("kex", negotiated.kex);
        for (cipher, mac, cover) in
            [("cipher_in", "mac_in", inward), ("cipher_out", "mac_out", outward)]
        {
            self.text(cipher, flagged(cover.cipher_name()));
            self.text(mac, mac_name(cover));
        }
    }

    /// What was moved in `duration`, over what path, and what limited it.
    pub fn figures(&mut self, figures: &Figures, duration: Duration) {
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
        self.path(figures);
        let limit = limits::find(figures, None).map(|verdict| verdict.to_string());
        self.text("limited_by", limit.unwrap_or_else(|| "-".to_owned()));
    }

    fn path(&mut self, figures: &Figures) {
        let Some(path) = &figures.path else { return };
        self.fraction("rtt_ms", path.tcp.rtt.as_secs_f64() * 1e3);
        self.fraction("rtt_min_ms", path.tcp.shortest_rtt.as_secs_f64() * 1e3);
        self.count("retransmits", path.tcp.retransmits.into());
        self.text("congestion", path.congestion.as_str());
    }

    /// `name=value` with blanks between; text that needs it in quotes, escaped as in JSON. Without
    /// the time, which a log has of its own.
    #[must_use]
    pub fn line(&self) -> String {
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

    /// One JSON object (RFC 8259).
    #[must_use]
    pub fn json(&self) -> String {
        let pairs: Vec<String> =
            self.0.iter().map(|(name, value)| format!("\"{name}\":{}", json(value))).collect();
        format!("{{{}}}", pairs.join(","))
    }
}

fn json(value: &Value) -> String {
    match value {
        Value::Text(text) => quoted(text),
        Value::Count(count) => count.to_string(),
        Value::Fraction(fraction) => format!("{fraction:.3}"),
    }
}

/// RFC 8259 section 7; control characters of any kind by their numbers, as terminals obey more of
/// them than JSON forbids.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c.is_control() => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_every_figure_and_no_text_can_add_one() {
        let mut figures = Figures::default();
        (figures.received.bytes, figures.written, figures.sent.clear) = (5_000_000, 4_999_000, 7);
        let mut record = Record::default();
        record.text("client", "x port=9\n\u{1b}\u{9b}\"\\ü");
        record.text("user", "u");
        record.figures(&figures, Duration::from_millis(2_500));
        let quoted = r#""x port=9\u000a\u001b\u009b\"\\ü""#;
        let line = record.line();
        for part in [
            &format!("client={quoted} "),
            "user=u ",
            "seconds=2.500 ",
            "bytes_in=5000000 ",
            "not_taken=1000 ",
            "clear_out=7 ",
            "mean_in=2000000 ",
            "limited_by=-",
        ] {
            assert!(line.contains(part), "{part} in {line}");
        }
        let json = record.json();
        assert!(json.starts_with(&format!("{{\"client\":{quoted},\"user\":\"u\",")), "{json}");
        assert!(json.contains("\"bytes_in\":5000000,") && json.ends_with("\"limited_by\":\"-\"}"));
    }

    #[test]
    fn what_protects_nothing_is_flagged() {
        assert_eq!(flagged("none"), "NONE");
        let names: Vec<_> = Cover::all().map(mac_name).collect();
        assert!(names.contains(&"aead".to_owned()), "{names:?}");
        assert!(names.contains(&"hmac-sha2-256-etm@openssh.com".to_owned()), "{names:?}");
    }
}
