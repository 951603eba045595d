//! Lines from a terminal: edited, completed, remembered for the session.
//!
//! Tab completes commands, then paths, of the side that the command's argument is on. What cannot
//! be typed or seen (control and invisible characters, no UTF-8) is not offered.

use crate::command::{self, Side};
use crate::escape::is_plain;
use crate::failure::{Failure, Result};
use crate::files::{Files, kind};
use crate::glob::Kind;
use crate::local;
use crate::paths::{absolute, join};
use crate::session::Session;
use rustyline::completion::{Candidate, Completer};
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::DefaultHistory;
use rustyline::validate::Validator;
use rustyline::{CompletionType, Config, Context, Editor, Helper};
use sftp::codec::Name;
use std::os::unix::ffi::OsStringExt;

/// Symbolic links of the server that a completion looks behind.
const MOST_LINKS: usize = 32;

/// A terminal that lines are read from.
pub(crate) struct Dialogue {
    editor: Editor<Paths, DefaultHistory>,
}

/// What completion looks things up in.
struct Paths {
    files: Files,
    directory: Vec<u8>,
}

/// What a word may become.
#[derive(Debug, PartialEq, Eq)]
struct Choice {
    display: String,
    text: String,
}

impl Dialogue {
    pub(crate) fn new(session: &Session) -> Result<Self> {
        let config = Config::builder()
            .completion_type(CompletionType::List)
            .auto_add_history(true)
            .max_history_size(800)
            .map_err(|error| failed(&error))?
            .build();
        let mut editor = Editor::with_config(config).map_err(|error| failed(&error))?;
        let directory = session.directory.clone();
        editor.set_helper(Some(Paths { files: session.files.clone(), directory }));
        Ok(Self { editor })
    }

    /// Completes from where the session is now.
    pub(crate) fn follow(&mut self, session: &Session) {
        if let Some(paths) = self.editor.helper_mut() {
            paths.directory.clone_from(&session.directory);
        }
    }

    /// The next line; none when the user is done.
    pub(crate) fn line(&mut self) -> Result<Option<Vec<u8>>> {
        loop {
            match self.editor.readline("sftp> ") {
                Ok(line) => return Ok(Some(line.into_bytes())),
                Err(ReadlineError::Eof) => return Ok(None),
                // The line is dropped, as in a shell.
                Err(ReadlineError::Interrupted | ReadlineError::Signal(_)) => {}
                Err(error) => return Err(failed(&error)),
            }
        }
    }
}

fn failed(error: &ReadlineError) -> Failure {
    Failure::Lost(format!("terminal: {error}"))
}

impl Candidate for Choice {
    fn display(&self) -> &str {
        &self.display
    }

    fn replacement(&self) -> &str {
        &self.text
    }
}

impl Helper for Paths {}
impl Highlighter for Paths {}
impl Validator for Paths {}
impl Hinter for Paths {
    type Hint = String;
}

impl Completer for Paths {
    type Candidate = Choice;

    fn complete(
        &self,
        line: &str,
        at: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<Choice>)> {
        let last = last_word(line.get(..at).unwrap_or_default());
        let choices = match &last.command {
            None => command::names(&last.text).map(plain_choice).collect(),
            Some(name) => self.paths(&last, side(name, last.count)),
        };
        Ok((last.start, choices))
    }
}

impl Paths {
    fn paths(&self, word: &LastWord, side: Side) -> Vec<Choice> {
        let text = word.text.as_bytes();
        let slash = text.iter().rposition(|&byte| byte == b'/').map_or(0, |at| at + 1);
        let (directory, start) = text.split_at(slash);
        let fits = |name: &str| {
            name.as_bytes().starts_with(start)
                && (!name.starts_with('.') || start.starts_with(b"."))
                && name != "."
                && name != ".."
                && can_be_typed(name)
        };
        let names = match side {
            Side::Remote => self.remote(directory, fits),
            Side::Local => here(directory, fits),
            Side::Neither => Vec::new(),
        };
        let mut choices: Vec<Choice> = names
            .into_iter()
            .map(|(name, is_directory)| {
                let directory = String::from_utf8_lossy(directory);
                path_choice(&directory, &name, is_directory, word.quote)
            })
            .collect();
        choices.sort_by(|a, b| a.display.cmp(&b.display));
        choices
    }

    /// The names that fit, and whether they are directories. Each link among them costs a round
    /// trip: past the first few they count as files.
    fn remote(&self, directory: &[u8], fits: impl Fn(&str) -> bool) -> Vec<(String, bool)> {
        let directory = absolute(directory, &self.directory);
        let entries = self.files.list(&directory).unwrap_or_default();
        let mut looks = 0..MOST_LINKS;
        let mut is_directory = |name: &str, kind: Kind| match kind {
            Kind::Directory => true,
            Kind::Link => {
                looks.next().is_some()
                    && self.files.is_directory(&join(&directory, name.as_bytes()))
            }
            Kind::Other => false,
        };
        let named = entries.into_iter().filter_map(|Name { name, attrs, .. }| {
            let name = String::from_utf8(name).ok().filter(|name| fits(name))?;
            let is_directory = is_directory(&name, kind(&attrs));
            Some((name, is_directory))
        });
        named.collect()
    }
}

fn here(directory: &[u8], fits: impl Fn(&str) -> bool) -> Vec<(String, bool)> {
    let directory: &[u8] = if directory.is_empty() { b"." } else { directory };
    let entries = std::fs::read_dir(local::path(directory)).into_iter().flatten().flatten();
    let named = entries.filter_map(|entry| {
        let name =
            String::from_utf8(entry.file_name().into_vec()).ok().filter(|name| fits(name))?;
        Some((name, entry.path().is_dir()))
    });
    named.collect()
}

/// What would drive the terminal, or look like something else on it, is not offered (E2).
fn can_be_typed(name: &str) -> bool {
    name.chars().all(|char| is_plain(char, true) && !char.is_control())
}

/// The second path of `get` is on this side, and that of `put` on the other.
fn side(name: &str, count: usize) -> Side {
    let (get, put) = (["get", "reget", "mget"], ["put", "reput", "mput"]);
    let is = |names: [&str; 3]| names.iter().any(|known| name.eq_ignore_ascii_case(known));
    match count {
        2.. if is(get) => Side::Local,
        2.. if is(put) => Side::Remote,
        _ => command::side(name.as_bytes()),
    }
}

fn plain_choice(name: &'static str) -> Choice {
    Choice { display: name.to_owned(), text: format!("{name} ") }
}

fn path_choice(directory: &str, name: &str, is_directory: bool, quote: Option<char>) -> Choice {
    let mut text: String = quote.into_iter().collect();
    for char in directory.chars().chain(name.chars()) {
        let special = match quote {
            Some(quote) => char == quote || char == '\\',
            None => matches!(char, ' ' | '"' | '\'' | '\\' | '#' | '*' | '?' | '['),
        };
        text.extend(special.then_some('\\'));
        text.push(char);
    }
    match is_directory {
        true => text.push('/'),
        false => text.extend(quote.into_iter().chain([' '])),
    }
    Choice { display: format!("{name}{}", if is_directory { "/" } else { "" }), text }
}

/// The word that the cursor is in or behind.
#[derive(Debug, PartialEq, Eq)]
struct LastWord {
    /// The line's first word, unless that is the one.
    command: Option<String>,
    /// Which of the command's paths it is, from 1; flags do not count.
    count: usize,
    /// Where it begins in the line.
    start: usize,
    /// Without its quotes.
    text: String,
    /// The quote it stands in.
    quote: Option<char>,
}

fn last_word(line: &str) -> LastWord {
    let mut words: Vec<String> = Vec::new();
    let mut last = LastWord { command: None, count: 0, start: 0, text: String::new(), quote: None };
    let mut inside = false;
    let mut chars = line.char_indices();
    while let Some((at, char)) = chars.next() {
        match (last.quote, char) {
            (None, ' ' | '\t') => {
                if inside {
                    words.push(std::mem::take(&mut last.text));
                }
                inside = false;
                last.start = at + 1;
                continue;
            }
            (None, '"' | '\'') => last.quote = Some(char),
            (Some(quote), char) if char == quote => last.quote = None,
            (_, '\\') => last.text.extend(chars.next().map(|(_, char)| char)),
            (_, char) => last.text.push(char),
        }
        inside = true;
    }
    // The marks in front of a command are not part of its name.
    let marks = line.len() - line.trim_start_matches(['-', '@', ' ']).len();
    if words.is_empty() {
        last.start = last.start.max(marks);
        last.text = last.text.trim_start_matches(['-', '@']).to_owned();
    }
    let mut words = words.into_iter();
    last.command = words.next().map(|name| name.trim_start_matches(['-', '@']).to_owned());
    last.count = 1 + words.filter(|word| !word.starts_with('-')).count();
    last
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_word_at_the_cursor_is_found() {
        for (line, command, count, start, text, quote) in [
            ("", None, 1, 0, "", None),
            ("ge", None, 1, 0, "ge", None),
            ("-@ge", None, 1, 2, "ge", None),
            ("get ", Some("get"), 1, 4, "", None),
            ("get a\\ b", Some("get"), 1, 4, "a b", None),
            ("get -r x \"y z", Some("get"), 2, 9, "y z", Some('"')),
        ] {
            let command = command.map(str::to_owned);
            let want = LastWord { command, count, start, text: text.to_owned(), quote };
            assert_eq!(last_word(line), want, "{line}");
        }
    }

    #[test]
    fn paths_are_completed_so_that_they_can_be_read_again() {
        let text = |name, is_directory, quote| path_choice("d/", name, is_directory, quote).text;
        assert_eq!(text("a b*", false, None), "d/a\\ b\\* ");
        assert_eq!(text("a b", true, Some('"')), "\"d/a b/");
        assert_eq!(text("a\"b", false, Some('"')), "\"d/a\\\"b\" ");
        for (name, quote) in [("a b*'\"", None), ("x \"y\\z", Some('"'))] {
            let line = text(name, false, quote);
            let words = crate::words::split(line.as_bytes()).unwrap();
            assert_eq!(words[0].literal(), format!("d/{name}").into_bytes());
        }
    }

    #[test]
    fn e2_completion_offers_what_can_be_seen_and_looks_behind_few_links() {
        use crate::hostile::{LINK, name, with_answers};
        use sftp::codec::{Reply, Request, Status};
        use std::sync::Arc;
        use std::sync::atomic::{AtomicUsize, Ordering};
        let links = (0..500)
            .map(|n| name(format!("{}{n:03}", if n < 400 { "a" } else { "b" }).as_bytes(), LINK));
        let mut names: Vec<Name> = links.collect();
        let hidden = ["a\u{202e}gpj", "a\u{200b}", "a\tb", "a\u{1b}[1m"];
        names.extend(hidden.map(|bytes| name(bytes.as_bytes(), LINK)));
        let looks = Arc::new(AtomicUsize::new(0));
        let seen = Arc::clone(&looks);
        let session = with_answers(names, move |request| match request {
            Request::Stat(_) => {
                seen.fetch_add(1, Ordering::Relaxed);
                Some(Reply::status(Status::NoSuchFile))
            }
            _ => None,
        });
        let paths = Paths { files: session.files.clone(), directory: b"/".to_vec() };
        let offered = |text: &str| {
            let before = looks.load(Ordering::Relaxed);
            let choices = paths.paths(&last_word(&format!("get {text}")), Side::Remote);
            (choices.len(), looks.load(Ordering::Relaxed) - before)
        };
        assert_eq!(offered("b49"), (10, 10));
        assert_eq!(offered("a"), (400, MOST_LINKS));
    }

    #[test]
    fn arguments_are_on_their_side() {
        assert_eq!(side("get", 1), Side::Remote);
        assert_eq!(side("get", 2), Side::Local);
        assert_eq!(side("PUT", 1), Side::Local);
        assert_eq!(side("put", 2), Side::Remote);
        assert_eq!(side("rename", 2), Side::Remote);
        assert_eq!(side("lcd", 1), Side::Local);
    }
}
