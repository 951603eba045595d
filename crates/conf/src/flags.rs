//! Option letters of the command lines, one row each: most only stand for a keyword. The programs
//! add the loop that reads arguments, and the few letters that are theirs alone.

use crate::Error;
use crate::line::Setting;
use std::ffi::{OsStr, OsString};
use std::fmt::Write;

/// What `-V` prints: the version of all programs, which are made together.
pub const VERSION: &str = concat!("longhaul_", env!("CARGO_PKG_VERSION"));

/// The setting of `-q` and of `-v`, given `verbose` times; none without them. It comes ahead of
/// `-o LogLevel`, as in OpenSSH's programs.
#[must_use]
pub fn log_level(quiet: bool, verbose: u8) -> Option<Setting> {
    let level = match (quiet, verbose) {
        (true, _) => "QUIET",
        (false, 0) => return None,
        (false, 1) => "DEBUG1",
        (false, 2) => "DEBUG2",
        (false, _) => "DEBUG3",
    };
    Some(Setting::given("LogLevel", level))
}

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
}

/// What a letter of a command line gave.
#[derive(Debug)]
pub enum Given {
    /// A setting.
    Setting(Setting),
    /// The program's own letter, with its value if it takes one.
    Own(OsString),
    /// Nothing.
    Nothing,
}

/// A command line that cannot be carried out.
#[derive(Debug)]
pub enum Refused {
    /// It is malformed; the usage helps.
    Usage(String),
    /// A value is wrong or not supported yet.
    Value(String),
}

impl Refused {
    /// All that is to be said on standard error.
    #[must_use]
    pub fn report(&self, program: &str, flags: &[Flag], operands: &str) -> String {
        match self {
            Self::Usage(why) => format!("{program}: {why}\n{}", usage(program, flags, operands)),
            Self::Value(why) => format!("{program}: {why}\n"),
        }
    }
}

impl From<lexopt::Error> for Refused {
    fn from(error: lexopt::Error) -> Self {
        Self::Usage(error.to_string())
    }
}

impl From<Error> for Refused {
    fn from(error: Error) -> Self {
        let hint = error.hint().map_or(String::new(), |hint| format!("\nhint: {hint}"));
        Self::Value(format!("{error}{hint}"))
    }
}

/// What `letter` asks for; its value, if it takes one, comes from `parser`.
///
/// # Errors
/// An unknown letter, a missing value, a letter that is refused.
pub fn read(flags: &[Flag], letter: char, parser: &mut lexopt::Parser) -> Result<Given, Refused> {
    let Some(flag) = flags.iter().find(|flag| flag.letter == letter) else {
        return Err(Refused::Usage(format!("unknown option -- {letter}")));
    };
    let missing = |_| Refused::Usage(format!("option requires an argument -- {letter}"));
    let value = flag.value.map(|_| parser.value()).transpose().map_err(missing)?;
    let value = value.unwrap_or_default();
    Ok(match flag.action {
        Action::Own => Given::Own(value),
        Action::Nothing => Given::Nothing,
        Action::Keyword(keyword) => Given::Setting(Setting::given(keyword, text(&value)?)),
        Action::Fixed(keyword, value) => Given::Setting(Setting::given(keyword, value)),
        Action::Refuse(why) => {
            return Err(Refused::Value(format!("-{letter} is not supported yet: {why}")));
        }
    })
}

/// A value that must be text.
///
/// # Errors
/// It is not UTF-8.
pub fn text(value: &OsStr) -> Result<&str, Refused> {
    value.to_str().ok_or_else(|| Refused::Usage(format!("{value:?} is not UTF-8")))
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
