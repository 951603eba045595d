//! Syntax of a configuration line (ssh_config(5), sshd_config(5)): a keyword, then arguments in
//! shell-like quotes. Knows no keyword. Called by `file` for files and by the programs for `-o`.

use crate::error::Error;
use std::fmt;
use std::sync::Arc;

/// Where a setting stood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// An option of the command line.
    CommandLine,
    /// A line of a file, counted from one.
    File(Arc<str>, usize),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CommandLine => f.write_str("command line"),
            Self::File(name, line) => write!(f, "{name} line {line}"),
        }
    }
}

/// One line, taken apart but not yet understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    /// The keyword as it was written.
    pub keyword: String,
    /// The arguments, quotes resolved, a trailing comment removed.
    pub args: Vec<String>,
    /// Everything after the keyword as it was written, for commands that a shell will read.
    pub rest: String,
    /// Where it stood.
    pub origin: Origin,
}

impl Setting {
    /// Takes one line apart; `None` for an empty line or a comment.
    ///
    /// # Errors
    /// An unbalanced quote.
    pub fn parse(line: &str, origin: &Origin) -> Result<Option<Self>, Error> {
        let line = line.trim_matches(is_blank);
        if line.is_empty() || line.starts_with('#') {
            return Ok(None);
        }
        let (keyword, rest) = keyword(line);
        if keyword.is_empty() {
            return Err(Error::Line(origin.clone(), "no keyword before the value".to_owned()));
        }
        let args = match is_raw(keyword) {
            true => vec![rest.to_owned()],
            false => split(rest).map_err(|why| Error::Line(origin.clone(), why.to_owned()))?,
        };
        let (keyword, rest, origin) = (keyword.to_owned(), rest.to_owned(), origin.clone());
        Ok(Some(Self { keyword, args, rest, origin }))
    }

    /// The argument of `-o`: `Keyword=value` or `Keyword value`.
    ///
    /// # Errors
    /// No keyword, or an unbalanced quote.
    pub fn option(text: &str) -> Result<Self, Error> {
        let missing = || Error::Line(Origin::CommandLine, "-o needs Keyword=value".to_owned());
        match text.contains(['\n', '\r']) {
            true => Err(Error::Line(Origin::CommandLine, "-o takes a single line".to_owned())),
            false => Self::parse(text, &Origin::CommandLine)?.ok_or_else(missing),
        }
    }

    /// A setting that an option letter stands for; nothing in `value` is interpreted.
    #[must_use]
    pub fn given(keyword: &str, value: &str) -> Self {
        Self {
            keyword: keyword.to_owned(),
            args: vec![value.to_owned()],
            rest: value.to_owned(),
            origin: Origin::CommandLine,
        }
    }

    /// Whether the value is everything after the keyword, quotes and all.
    pub(crate) fn is_raw(&self) -> bool {
        is_raw(&self.keyword)
    }

    /// Whether this is the keyword `name`; case does not matter.
    #[must_use]
    pub fn is(&self, name: &str) -> bool {
        self.keyword.eq_ignore_ascii_case(name)
    }
}

/// As in OpenSSH, text for a shell is left as it is; its quotes are its own.
fn is_raw(keyword: &str) -> bool {
    ["ProxyCommand", "ForceCommand"].iter().any(|raw| raw.eq_ignore_ascii_case(keyword))
}

fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\r' | '\n' | '\x0c')
}

/// Splits off the keyword: up to blanks, one `=`, or both; it may stand in double quotes.
fn keyword(line: &str) -> (&str, &str) {
    if let Some(quoted) = line.strip_prefix('"')
        && let Some((keyword, rest)) = quoted.split_once('"')
    {
        return (keyword, after_equals(rest));
    }
    let end = line.find(|c| is_blank(c) || c == '=').unwrap_or(line.len());
    let (keyword, rest) = line.split_at(end);
    (keyword, after_equals(rest))
}

fn after_equals(rest: &str) -> &str {
    let rest = rest.trim_start_matches(is_blank);
    rest.strip_prefix('=').unwrap_or(rest).trim_start_matches(is_blank)
}

/// Splits arguments at blanks as OpenSSH does: both kinds of quotes, a backslash before a quote,
/// a backslash or (outside quotes) a space; `#` at the start of an argument ends the line.
pub(crate) fn split(text: &str) -> Result<Vec<String>, &'static str> {
    let mut args = Vec::new();
    let mut chars = text.chars().peekable();
    while let Some(&first) = chars.peek() {
        match first {
            '#' => break,
            c if is_blank(c) => _ = chars.next(),
            _ => args.push(argument(&mut chars)?),
        }
    }
    Ok(args)
}

fn argument(chars: &mut std::iter::Peekable<std::str::Chars<'_>>) -> Result<String, &'static str> {
    let mut arg = String::new();
    let mut quote = None;
    while let Some(c) = chars.next_if(|&c| quote.is_some() || !is_blank(c)) {
        match (c, quote) {
            ('\\', _) => arg.push(chars.next_if(|&n| is_escaped(n, quote)).unwrap_or(c)),
            ('"' | '\'', None) => quote = Some(c),
            (_, Some(open)) if c == open => quote = None,
            _ => arg.push(c),
        }
    }
    quote.map_or(Ok(arg), |_| Err("unbalanced quotes"))
}

fn is_escaped(next: char, quote: Option<char>) -> bool {
    matches!(next, '"' | '\'' | '\\') || (next == ' ' && quote.is_none())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parsed(line: &str) -> (String, Vec<String>) {
        let setting = Setting::parse(line, &Origin::CommandLine).unwrap().unwrap();
        (setting.keyword, setting.args)
    }

    #[test]
    fn keyword_and_value_part_at_blanks_or_one_equals_sign() {
        for line in ["Port 22", "Port=22", " Port =\t22 ", "\"Port\" 22", "Port  =  22\r\n"] {
            assert_eq!(parsed(line), ("Port".into(), vec!["22".into()]), "{line:?}");
        }
        assert_eq!(parsed("SetEnv A==b").1, ["A==b"]);
    }

    #[test]
    fn quotes_escapes_and_comments_are_those_of_openssh() {
        let cases: [(&str, &[&str]); 9] = [
            ("a b", &["a", "b"]),
            ("\"a b\" c", &["a b", "c"]),
            ("x'a b'y", &["xa by"]),
            (r#"a\ b \"q\""#, &["a b", "\"q\""]),
            (r#""a\ b""#, &[r"a\ b"]),
            (r"a\nb", &[r"a\nb"]),
            ("a # b", &["a"]),
            ("a#b", &["a#b"]),
            ("\"\"", &[""]),
        ];
        for (text, want) in cases {
            assert_eq!(split(text).unwrap(), want, "{text}");
        }
        assert!(split("'a").is_err());
    }

    #[test]
    fn comments_and_blank_lines_say_nothing() {
        for line in ["", "   ", "# Port 22", "\t#"] {
            assert_eq!(Setting::parse(line, &Origin::CommandLine).unwrap(), None);
        }
        assert!(Setting::option("").is_err());
        assert!(Setting::option("=x").is_err());
        assert!(Setting::option("Port=1\nHost *").is_err());
    }

    #[test]
    fn commands_for_a_shell_keep_their_quotes_and_hashes() {
        for keyword in ["ProxyCommand", "ForceCommand"] {
            let (_, args) = parsed(&format!("{keyword} = sh -c 'nc \"%h\" %p' # to the gate"));
            assert_eq!(args, ["sh -c 'nc \"%h\" %p' # to the gate"]);
        }
    }

    proptest! {
        #[test]
        fn no_line_panics(line in "\\PC*") {
            let _ = Setting::parse(&line, &Origin::CommandLine);
        }
    }
}
