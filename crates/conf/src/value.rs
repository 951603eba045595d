//! Composed values: sizes, the rekey limit, workers, start-up limits, environment names,
//! subsystems, listen addresses.

use crate::field::{Field, Input, Scalar, as_argument, decimal, seconds};
use std::time::Duration;

/// A size in bytes, written with K, M or G (powers of 1024); `auto` leaves it to the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Size(pub Option<u64>);

impl Size {
    /// As memory is counted; what is larger than any memory is the largest.
    #[must_use]
    pub fn bytes(self) -> Option<usize> {
        self.0.map(|bytes| usize::try_from(bytes).unwrap_or(usize::MAX))
    }

    /// As windows are counted, which have 32 bits (RFC 4254 section 5.2).
    #[must_use]
    pub fn window(self) -> Option<u32> {
        self.0.map(|bytes| u32::try_from(bytes).unwrap_or(u32::MAX))
    }
}

impl Scalar for Size {
    const SYNTAX: &'static str = "size|auto";

    fn read(text: &str) -> Result<Self, String> {
        if text.eq_ignore_ascii_case("auto") {
            return Ok(Self(None));
        }
        match bytes(text) {
            Some(0) | None => Err(format!("'{text}' is not a size (a number with K, M or G)")),
            size => Ok(Self(size)),
        }
    }

    fn text(&self) -> String {
        self.0.map_or_else(|| "auto".to_owned(), |size| size.to_string())
    }
}

/// Bytes of a number with an optional K, M, G, T or P, as OpenSSH's `scan_scaled` has it.
fn bytes(text: &str) -> Option<u64> {
    let (digits, shift) = match text.char_indices().next_back()? {
        (at, unit) if !unit.is_ascii_digit() => {
            let unit = unit.to_ascii_uppercase();
            (text.get(..at)?, "BKMGTP".find(unit)? * 10)
        }
        _ => (text, 0),
    };
    let total = decimal(digits)?.checked_mul(1 << shift)?;
    i64::try_from(total).is_ok().then_some(total)
}

/// RekeyLimit: how much and how long one set of keys may serve.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RekeyLimit {
    /// Bytes; `None` is the cipher's own limit.
    pub bytes: Option<u64>,
    /// Time; `None` is no limit.
    pub time: Option<Duration>,
}

impl Field for RekeyLimit {
    fn set(&mut self, input: &Input<'_>) -> Result<(), String> {
        let (amount, time) = match input.some()? {
            [amount] => (amount, None),
            [amount, time] => (amount, Some(time)),
            _ => return Err("extra value at end of line".to_owned()),
        };
        *self = Self { bytes: rekey_bytes(amount)?, time: rekey_time(time)? };
        Ok(())
    }

    fn show(&self) -> Vec<String> {
        let time = self.time.map_or(0, |time| time.as_secs());
        vec![format!("{} {time}", self.bytes.unwrap_or(0))]
    }

    fn syntax(&self) -> &'static str {
        "size|default [time|none]"
    }
}

fn rekey_bytes(text: &str) -> Result<Option<u64>, String> {
    if text.eq_ignore_ascii_case("default") {
        return Ok(None);
    }
    match bytes(text) {
        None => Err(format!("'{text}' is not a size")),
        Some(0) => Ok(None),
        Some(1..16) => Err(format!("'{text}' is too small, 16 bytes are the least")),
        some => Ok(some),
    }
}

fn rekey_time(text: Option<&String>) -> Result<Option<Duration>, String> {
    match text.map(String::as_str) {
        None | Some("none") => Ok(None),
        Some(text) => match seconds(text) {
            None => Err(format!("'{text}' is not a time")),
            Some(0) => Ok(None),
            Some(time) => Ok(Some(Duration::from_secs(time))),
        },
    }
}

/// How many threads seal and open packets beside the ones that move them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Workers {
    /// As many as the cores and the cipher make worthwhile.
    #[default]
    Auto,
    /// This many.
    Count(u16),
}

impl Workers {
    /// The number, where one was given.
    #[must_use]
    pub fn count(self) -> Option<usize> {
        match self {
            Self::Auto => None,
            Self::Count(count) => Some(count.into()),
        }
    }
}

impl Scalar for Workers {
    const SYNTAX: &'static str = "auto|number";

    fn read(text: &str) -> Result<Self, String> {
        match decimal(text) {
            _ if text.eq_ignore_ascii_case("auto") => Ok(Self::Auto),
            Some(count @ 0..=256) => Ok(Self::Count(count as u16)),
            _ => Err(format!("'{text}' is neither auto nor a number up to 256")),
        }
    }

    fn text(&self) -> String {
        match self {
            Self::Auto => "auto".to_owned(),
            Self::Count(count) => count.to_string(),
        }
    }
}

/// MaxStartups: from `start` connections that have not logged in on, `rate` per cent of the new
/// ones are dropped, more as they grow in number, and all of them at `full`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MaxStartups {
    /// Connections before any is dropped.
    pub start: u32,
    /// Per cent dropped from then on.
    pub rate: u32,
    /// Connections at which all are dropped.
    pub full: u32,
}

impl Scalar for MaxStartups {
    const SYNTAX: &'static str = "start[:rate:full]";

    fn read(text: &str) -> Result<Self, String> {
        let numbers: Option<Vec<u32>> = text.split(':').map(|part| u32::read(part).ok()).collect();
        let parts = match numbers.as_deref() {
            // As sshd: all are dropped from there on, so the default rate never counts.
            Some(&[start]) => Self { start, rate: 30, full: start },
            Some(&[start, rate, full]) => Self { start, rate, full },
            _ => return Err(format!("'{text}' is not start or start:rate:full")),
        };
        let valid = parts.start > 0 && parts.start <= parts.full && (1..=100).contains(&parts.rate);
        valid.then_some(parts).ok_or_else(|| format!("'{text}' is out of order or range"))
    }

    fn text(&self) -> String {
        format!("{}:{}:{}", self.start, self.rate, self.full)
    }
}

/// Patterns of environment names to send or accept; lines add up, `-pattern` takes some away.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EnvPatterns(Vec<String>);

impl EnvPatterns {
    /// Whether the variable of this name is meant.
    #[must_use]
    pub fn matches(&self, name: &str) -> bool {
        self.0.iter().any(|pattern| crate::pattern::matches_pattern(name, pattern))
    }
}

impl Field for EnvPatterns {
    fn clear(&mut self) {
        self.0.clear();
    }

    fn set(&mut self, input: &Input<'_>) -> Result<(), String> {
        for arg in input.some()? {
            match arg.strip_prefix('-') {
                _ if arg.contains('=') => return Err(format!("'{arg}' is not a variable's name")),
                Some(gone) => self.0.retain(|have| !crate::pattern::matches_pattern(have, gone)),
                None => self.0.push(arg.clone()),
            }
        }
        Ok(())
    }

    fn show(&self) -> Vec<String> {
        self.0.clone()
    }

    fn syntax(&self) -> &'static str {
        "pattern ..."
    }
}

/// SetEnv: variables with their values; of two with one name the first counts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Variables(Vec<(String, String)>);

impl Variables {
    /// Names and values.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }
}

impl Field for Variables {
    fn clear(&mut self) {
        self.0.clear();
    }

    fn set(&mut self, input: &Input<'_>) -> Result<(), String> {
        for arg in input.some()? {
            match arg.split_once('=') {
                None | Some(("", _)) => return Err(format!("'{arg}' is not NAME=value")),
                Some((name, _)) if self.0.iter().any(|(have, _)| have == name) => {}
                Some((name, value)) => self.0.push((name.to_owned(), value.to_owned())),
            }
        }
        Ok(())
    }

    fn show(&self) -> Vec<String> {
        self.iter().map(|(name, value)| format!("{name}={value}")).collect()
    }

    fn write(&self) -> Vec<String> {
        // On one line: the first one wins.
        let all: Vec<String> = self.show().iter().map(|variable| as_argument(variable)).collect();
        if all.is_empty() { all } else { vec![all.join(" ")] }
    }

    fn syntax(&self) -> &'static str {
        "NAME=value ..."
    }
}

/// Subsystems by name, each with the arguments of the command that serves it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Subsystems(Vec<(String, Vec<String>)>);

impl Subsystems {
    /// The command of this subsystem, for a shell.
    #[must_use]
    pub fn command(&self, name: &str) -> Option<String> {
        let (_, command) = self.0.iter().find(|(have, _)| have == name)?;
        Some(joined(command, quoted))
    }
}

fn joined(arguments: &[String], each: fn(&str) -> String) -> String {
    arguments.iter().map(|argument| each(argument)).collect::<Vec<_>>().join(" ")
}

impl Field for Subsystems {
    fn set(&mut self, input: &Input<'_>) -> Result<(), String> {
        let [name, command @ ..] = input.some()? else { return Err("missing value".to_owned()) };
        if command.is_empty() {
            return Err(format!("subsystem '{name}' has no command"));
        }
        if self.command(name).is_some() {
            return Err(format!("subsystem '{name}' is already defined"));
        }
        self.0.push((name.clone(), command.to_vec()));
        Ok(())
    }

    fn show(&self) -> Vec<String> {
        self.0.iter().map(|(name, command)| format!("{name} {}", joined(command, quoted))).collect()
    }

    fn write(&self) -> Vec<String> {
        let lines = self.0.iter().map(|(name, command)| {
            format!("{} {}", as_argument(name), joined(command, as_argument))
        });
        lines.collect()
    }

    fn syntax(&self) -> &'static str {
        "name command"
    }
}

/// Puts an argument that has blanks back into quotes, for the shell that reads the command.
fn quoted(arg: &str) -> String {
    match arg.contains([' ', '\t']) {
        true => format!("'{}'", arg.replace('\'', r"'\''")),
        false => arg.to_owned(),
    }
}

/// Where to listen; empty is every address.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ListenAddresses(pub(crate) Vec<(String, Option<u16>)>);

impl Field for ListenAddresses {
    fn set(&mut self, input: &Input<'_>) -> Result<(), String> {
        let address = input.one()?;
        let parsed = listen_address(address);
        self.0.push(parsed.ok_or_else(|| format!("'{address}' is not an address"))?);
        Ok(())
    }

    fn show(&self) -> Vec<String> {
        let show = |(host, port): &(String, Option<u16>)| match port {
            Some(port) => crate::expand::with_port(host, *port),
            None => host.clone(),
        };
        self.0.iter().map(show).collect()
    }

    fn syntax(&self) -> &'static str {
        "host[:port]"
    }
}

/// `host`, `host:port`, `[v6]`, `[v6]:port`, or a bare IPv6 address.
fn listen_address(text: &str) -> Option<(String, Option<u16>)> {
    let (host, port) = if let Some(bracketed) = text.strip_prefix('[') {
        let (host, tail) = bracketed.split_once(']')?;
        match tail {
            "" => (host, None),
            tail => (host, Some(tail.strip_prefix(':')?)),
        }
    } else {
        match text.split_once(':') {
            Some((_, tail)) if tail.contains(':') => (text, None),
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        }
    };
    let port = port.map(u16::read).transpose().ok()?;
    (!host.is_empty()).then(|| (host.to_owned(), port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_scale_by_1024() {
        let good = [("64K", 65536), ("2m", 2 << 20), ("1G", 1 << 30), ("123", 123)];
        good.iter().for_each(|&(text, want)| assert_eq!(bytes(text), Some(want), "{text}"));
        for bad in ["", "K", "1X", "-1", "1KK", "99999999999G", "1é"] {
            assert_eq!(bytes(bad), None, "{bad}");
        }
    }

    #[test]
    fn start_up_limits_are_checked_against_each_other() {
        assert_eq!(MaxStartups::read("10").unwrap().text(), "10:30:10");
        for bad in ["0", "10:30", "10:0:100", "10:101:100", "10:30:9", "a:b:c", "10:30:100:1"] {
            assert!(MaxStartups::read(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn addresses_may_carry_a_port() {
        let cases = [
            ("::1", "::1", None),
            ("[::1]:2222", "::1", Some(2222)),
            ("[::]", "::", None),
            ("10.0.0.1", "10.0.0.1", None),
            ("localhost:22", "localhost", Some(22)),
        ];
        for (text, host, port) in cases {
            assert_eq!(listen_address(text), Some((host.to_owned(), port)), "{text}");
        }
        for bad in [":22", "[::1", "[::1]x", "a:0", "a:b", "[]:1"] {
            assert_eq!(listen_address(bad), None, "{bad}");
        }
    }
}
