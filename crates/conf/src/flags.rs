//! Option letters of the command lines, one row each: most only stand for a keyword. The programs
//! add the loop that reads arguments, and the few letters that are theirs alone.

use crate::line::Setting;
use std::fmt::Write;

/// What a letter does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Its value is that of this keyword.
    Keyword(&'static str),
    /// It stands for this keyword with this value.
    Fixed(&'static str, &'static str),
    /// Nothing: what it turns off, or asks for, is so anyway.
    Nothing,
    /// It is an error, for this reason.
    Refuse(&'static str),
    /// The program knows.
    Own,
}

/// One option letter.
#[derive(Debug, Clone, Copy)]
pub struct Flag {
    /// The letter.
    pub letter: char,
    /// Name of its value, where it takes one.
    pub value: Option<&'static str>,
    /// What it does.
    pub action: Action,
    /// A few words on it; none for letters that only mean something to OpenSSH.
    pub help: &'static str,
}

impl Flag {
    /// A letter without a value.
    #[must_use]
    pub const fn plain(letter: char, action: Action, help: &'static str) -> Self {
        Self { letter, value: None, action, help }
    }

    /// A letter with a value.
    #[must_use]
    pub const fn with(
        letter: char,
        value: &'static str,
        action: Action,
        help: &'static str,
    ) -> Self {
        Self { letter, value: Some(value), action, help }
    }

    /// The setting it stands for, if it stands for one.
    #[must_use]
    pub fn setting(&self, value: Option<&str>) -> Option<Setting> {
        match self.action {
            Action::Keyword(keyword) => Some(Setting::given(keyword, value.unwrap_or_default())),
            Action::Fixed(keyword, value) => Some(Setting::given(keyword, value)),
            _ => None,
        }
    }
}

/// The lines that a wrong command line is answered with.
#[must_use]
pub fn usage(program: &str, flags: &[Flag], operands: &str) -> String {
    let shown = || flags.iter().filter(|flag| !flag.help.is_empty());
    let letters: String = shown().filter(|f| f.value.is_none()).map(|f| f.letter).collect();
    let valued = shown().filter_map(|f| f.value.map(|value| format!("[-{} {value}]", f.letter)));
    let parts = std::iter::once(format!("[-{letters}]")).chain(valued);
    let mut out = format!("usage: {program}");
    let indent = out.len() + 1;
    let mut width = out.len();
    for part in parts.chain((!operands.is_empty()).then(|| operands.to_owned())) {
        if width + 1 + part.len() > 80 {
            _ = write!(out, "\n{:1$}", "", indent - 1);
            width = indent - 1;
        }
        _ = write!(out, " {part}");
        width += 1 + part.len();
    }
    out + "\n"
}

/// The usage, then a line per option.
#[must_use]
pub fn help(program: &str, flags: &[Flag], operands: &str) -> String {
    let mut out = usage(program, flags, operands);
    for flag in flags.iter().filter(|flag| !flag.help.is_empty()) {
        let left = format!("-{} {}", flag.letter, flag.value.unwrap_or_default());
        _ = writeln!(out, "  {left:<20} {}", flag.help);
    }
    out + "Letters of OpenSSH that are missing here are accepted where they change nothing.\n"
}
