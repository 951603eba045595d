//! What a keyword's value is made of: a field reads itself from arguments, shows itself in a dump
//! and names its syntax for the manual. Plain types stand here; composed ones in `value`.

use crate::algorithms::Supported;
use std::time::Duration;

/// The arguments of one setting, as a field reads them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Input<'a> {
    pub(crate) args: &'a [String],
    pub(crate) supported: &'a Supported,
}

impl<'a> Input<'a> {
    /// The only argument.
    pub(crate) fn one(&self) -> Result<&'a str, String> {
        match self.args {
            [arg] if arg.is_empty() => Err("empty value".to_owned()),
            [arg] => Ok(arg),
            [] => Err("missing value".to_owned()),
            [_, extra, ..] => Err(format!("extra value at end of line: '{extra}'")),
        }
    }

    /// All arguments, of which there must be one.
    pub(crate) fn some(&self) -> Result<&'a [String], String> {
        match self.args {
            [] => Err("missing value".to_owned()),
            args if args.iter().any(String::is_empty) => Err("empty value".to_owned()),
            args => Ok(args),
        }
    }
}

/// The value of a keyword.
pub(crate) trait Field {
    /// Takes the value of one line; for a list that grows, adds to it.
    fn set(&mut self, input: &Input<'_>) -> Result<(), String>;
    /// Called before the first line: a list that grows lets go of what it has.
    fn clear(&mut self) {}
    /// The value as a line of a configuration file would give it; one item per line.
    fn show(&self) -> Vec<String>;
    /// The same, so that it reads back as it was, whatever is in it.
    fn write(&self) -> Vec<String> {
        self.show()
    }
    /// Why what was written, though right, cannot be had here: nobody minds where it has no effect.
    fn refusal(&self) -> Option<String> {
        None
    }
    /// What may be written, for the manual.
    fn syntax(&self) -> &'static str;
}

/// A plain value: one argument, one line.
pub(crate) trait Scalar: Sized {
    const SYNTAX: &'static str;
    fn read(text: &str) -> Result<Self, String>;
    fn text(&self) -> String;
    /// As [`Field::refusal`].
    fn refusal(&self) -> Option<String> {
        None
    }
}

impl<S: Scalar> Field for S {
    fn set(&mut self, input: &Input<'_>) -> Result<(), String> {
        *self = S::read(input.one()?)?;
        Ok(())
    }

    fn show(&self) -> Vec<String> {
        vec![self.text()]
    }

    fn write(&self) -> Vec<String> {
        vec![as_argument(&self.text())]
    }

    fn refusal(&self) -> Option<String> {
        Scalar::refusal(self)
    }

    fn syntax(&self) -> &'static str {
        S::SYNTAX
    }
}

impl Scalar for bool {
    const SYNTAX: &'static str = "yes|no";

    fn read(text: &str) -> Result<Self, String> {
        match text.to_ascii_lowercase().as_str() {
            "yes" | "true" => Ok(true),
            "no" | "false" => Ok(false),
            _ => Err(format!("'{text}' is neither yes nor no")),
        }
    }

    fn text(&self) -> String {
        if *self { "yes" } else { "no" }.to_owned()
    }
}

impl Scalar for String {
    const SYNTAX: &'static str = "text";

    fn read(text: &str) -> Result<Self, String> {
        Ok(text.to_owned())
    }

    fn text(&self) -> String {
        self.clone()
    }
}

/// A TCP port.
impl Scalar for u16 {
    const SYNTAX: &'static str = "port";

    fn read(text: &str) -> Result<Self, String> {
        match decimal(text).and_then(|n| u16::try_from(n).ok()) {
            Some(port) if port > 0 => Ok(port),
            _ => Err(format!("'{text}' is not a port (1 to 65535)")),
        }
    }

    fn text(&self) -> String {
        self.to_string()
    }
}

/// A count.
impl Scalar for u32 {
    const SYNTAX: &'static str = "number";

    fn read(text: &str) -> Result<Self, String> {
        decimal(text)
            .and_then(|n| i32::try_from(n).ok())
            .and_then(|n| Self::try_from(n).ok())
            .ok_or_else(|| format!("'{text}' is not a number"))
    }

    fn text(&self) -> String {
        self.to_string()
    }
}

/// A time as in sshd_config(5), TIME FORMATS: seconds, or numbers with s, m, h, d, w.
impl Scalar for Duration {
    const SYNTAX: &'static str = "time";

    fn read(text: &str) -> Result<Self, String> {
        seconds(text).map(Self::from_secs).ok_or_else(|| format!("'{text}' is not a time"))
    }

    fn text(&self) -> String {
        self.as_secs().to_string()
    }
}

/// An argument as a line must have it: in quotes where something in it would end or change it.
pub(crate) fn as_argument(arg: &str) -> String {
    let special = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '\\' | '#');
    if !arg.is_empty() && !arg.contains(special) {
        return arg.to_owned();
    }
    format!("\"{}\"", arg.replace('\\', r"\\").replace('"', "\\\""))
}

/// Digits only: no sign, no blanks.
pub(crate) fn decimal(text: &str) -> Option<u64> {
    let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    digits.then(|| text.parse().ok()).flatten()
}

/// Seconds of a time like `90`, `1h30m`, `2d`; at most what an `int` holds, as in OpenSSH.
pub(crate) fn seconds(text: &str) -> Option<u64> {
    let mut total: u64 = 0;
    let mut rest = text;
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let (digits, tail) = rest.split_at(end);
        let mut unit = tail.chars();
        let scale = match unit.next().map(|c| c.to_ascii_lowercase()) {
            None | Some('s') => 1,
            Some('m') => 60,
            Some('h') => 3600,
            Some('d') => 86_400,
            Some('w') => 604_800,
            Some(_) => return None,
        };
        total = total.checked_add(decimal(digits)?.checked_mul(scale)?)?;
        rest = unit.as_str();
    }
    i32::try_from(total).is_ok().then_some(total)
}

/// A text that need not be there; it has no line in the dump then.
impl Field for Option<String> {
    fn set(&mut self, input: &Input<'_>) -> Result<(), String> {
        *self = Some(input.one()?.to_owned());
        Ok(())
    }

    fn show(&self) -> Vec<String> {
        self.iter().cloned().collect()
    }

    fn write(&self) -> Vec<String> {
        self.iter().map(|text| as_argument(text)).collect()
    }

    fn syntax(&self) -> &'static str {
        "text"
    }
}

/// A value that the word `none` takes away.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OrNone<T>(pub Option<T>);

impl Scalar for OrNone<String> {
    const SYNTAX: &'static str = "text|none";

    fn read(text: &str) -> Result<Self, String> {
        let none = text.eq_ignore_ascii_case("none");
        Ok(Self((!none).then(|| text.to_owned())))
    }

    fn text(&self) -> String {
        self.0.clone().unwrap_or_else(|| "none".to_owned())
    }
}

impl Scalar for OrNone<Duration> {
    const SYNTAX: &'static str = "time|none";

    fn read(text: &str) -> Result<Self, String> {
        match text.eq_ignore_ascii_case("none") {
            true => Ok(Self(None)),
            false => Duration::read(text).map(|time| Self(Some(time))),
        }
    }

    fn text(&self) -> String {
        self.0.map_or_else(|| "none".to_owned(), |time| time.text())
    }
}

/// All of a line after its keyword, for a shell; the word `none` takes it away.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RestOfLine(pub Option<String>);

impl Field for RestOfLine {
    fn set(&mut self, input: &Input<'_>) -> Result<(), String> {
        let text = input.one()?;
        self.0 = (!text.eq_ignore_ascii_case("none")).then(|| text.to_owned());
        Ok(())
    }

    /// Nothing in it is quoted when it is read, so nothing may be when it is written.
    fn show(&self) -> Vec<String> {
        vec![self.0.clone().unwrap_or_else(|| "none".to_owned())]
    }

    fn syntax(&self) -> &'static str {
        "text|none"
    }
}

/// Several words on one line; the first line wins. `none` makes it empty.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Words(pub Vec<String>);

impl Words {
    pub(crate) fn of(words: &[&str]) -> Self {
        Self(words.iter().map(|&word| word.to_owned()).collect())
    }
}

impl Field for Words {
    fn set(&mut self, input: &Input<'_>) -> Result<(), String> {
        self.0 = match input.some()? {
            [word] if word.eq_ignore_ascii_case("none") => Vec::new(),
            words if words.iter().any(|word| word.eq_ignore_ascii_case("none")) => {
                return Err("'none' does not go with other values".to_owned());
            }
            words => words.to_vec(),
        };
        Ok(())
    }

    fn show(&self) -> Vec<String> {
        vec![if self.0.is_empty() { "none".to_owned() } else { self.0.join(" ") }]
    }

    fn write(&self) -> Vec<String> {
        let words: Vec<String> = self.0.iter().map(|word| as_argument(word)).collect();
        if words.is_empty() { self.show() } else { vec![words.join(" ")] }
    }

    fn syntax(&self) -> &'static str {
        "text ...|none"
    }
}

/// One value per line; every line adds one, and the first replaces the default.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lines<T> {
    items: Vec<T>,
    given: bool,
}

impl<T> Lines<T> {
    pub(crate) fn of(items: impl IntoIterator<Item = T>) -> Self {
        Self { items: items.into_iter().collect(), given: false }
    }

    /// The values in the order given.
    #[must_use]
    pub fn items(&self) -> &[T] {
        &self.items
    }

    pub(crate) fn retain(&mut self, keep: impl FnMut(&T) -> bool) {
        self.items.retain(keep);
    }

    /// Whether these were asked for, so that a missing file among them is worth a message.
    #[must_use]
    pub fn is_given(&self) -> bool {
        self.given
    }
}

impl<T: Scalar + PartialEq> Field for Lines<T> {
    fn set(&mut self, input: &Input<'_>) -> Result<(), String> {
        let item = T::read(input.one()?)?;
        if !self.given {
            self.items.clear();
            self.given = true;
        }
        if !self.items.contains(&item) {
            self.items.push(item);
        }
        Ok(())
    }

    fn show(&self) -> Vec<String> {
        self.items.iter().map(T::text).collect()
    }

    fn write(&self) -> Vec<String> {
        self.items.iter().map(|item| as_argument(&item.text())).collect()
    }

    fn syntax(&self) -> &'static str {
        T::SYNTAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_of_sshd_config() {
        let good = [("0", 0), ("600", 600), ("10m", 600), ("1h30m", 5400), ("1W", 604_800)];
        good.iter().for_each(|&(text, want)| assert_eq!(seconds(text), Some(want), "{text}"));
        for bad in ["", "m", "1x", "-1", "1 m", "9999999999", "1h-", "99999999999999999999w"] {
            assert_eq!(seconds(bad), None, "{bad}");
        }
    }

    #[test]
    fn ports_and_counts_take_digits_only() {
        assert_eq!(u16::read("65535"), Ok(65535));
        for bad in ["0", "65536", "+22", " 22", "", "ssh", "-1"] {
            assert!(u16::read(bad).is_err(), "{bad}");
        }
        assert!(u32::read("4294967296").is_err());
    }

    #[test]
    fn a_list_that_grows_drops_its_default_first() {
        let supported = Supported::default();
        let mut lines = Lines::of(["default".to_owned()]);
        for arg in ["a", "b", "a"] {
            lines.set(&Input { args: &[arg.to_owned()], supported: &supported }).unwrap();
        }
        assert_eq!(lines.items(), ["a", "b"]);
    }
}
