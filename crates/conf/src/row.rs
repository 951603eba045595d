//! Rows: one per keyword. A table of them reads settings into a struct (first value wins), dumps it
//! and feeds the manual. Keywords that only OpenSSH has stand in a second table.

use crate::algorithms::Supported;
use crate::error::Error;
use crate::field::{Field, Input};
use crate::line::{Origin, Setting};
use crate::pattern::matches_list;

/// What happens when a keyword comes again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Merge {
    /// The first value stays.
    First,
    /// Every value is added.
    Add,
    /// Every value is added, but those of the command line end those of files.
    AddOrOverride,
}

/// The way from the struct to a keyword's value.
type Reach<T> = fn(&mut T) -> &mut dyn Field;

/// One supported keyword of `T`.
pub(crate) struct Row<T> {
    /// As the manual writes it.
    pub(crate) name: &'static str,
    pub(crate) merge: Merge,
    /// One sentence for the manual.
    pub(crate) help: &'static str,
    /// Files cannot give it.
    pub(crate) only_given: bool,
    pub(crate) field: Reach<T>,
}

impl<T> Row<T> {
    /// A keyword whose first value wins.
    pub(crate) const fn new(name: &'static str, field: Reach<T>, help: &'static str) -> Self {
        Self { name, merge: Merge::First, help, only_given: false, field }
    }

    /// A keyword that counts on the command line only; in a file it is passed over.
    pub(crate) const fn only_given(
        name: &'static str,
        field: Reach<T>,
        help: &'static str,
    ) -> Self {
        Self { name, merge: Merge::First, help, only_given: true, field }
    }

    /// A keyword whose values add up.
    pub(crate) const fn adding(name: &'static str, field: Reach<T>, help: &'static str) -> Self {
        Self { name, merge: Merge::Add, help, only_given: false, field }
    }

    /// A keyword whose values add up, those of the command line replacing those of files.
    pub(crate) const fn overriding(
        name: &'static str,
        field: Reach<T>,
        help: &'static str,
    ) -> Self {
        Self { name, merge: Merge::AddOrOverride, help, only_given: false, field }
    }
}

/// What becomes of a keyword that OpenSSH has and this suite has not (yet).
#[derive(Clone, Copy)]
pub(crate) enum Fate {
    /// Passing over it neither weakens nor changes what the user gets.
    PassOver,
    /// The user gets less than the line asks for, and is told, except with these values.
    WarnUnless(&'static [&'static str]),
    /// Fine with these values (lower case), refused with any other.
    Only(&'static [&'static str]),
    /// Fine where this holds, refused otherwise.
    If(fn(&[String]) -> bool, &'static str),
    /// Passing over it would change what the user gets, or grant more than the admin wrote.
    Refuse,
    /// The same, unless a line that [clears](Fate::Clears) it stands before it.
    UnlessCleared,
    /// With `yes`, lines that follow count for nothing; else nothing to do.
    Clears,
}

/// A keyword of OpenSSH without an effect here.
pub(crate) struct Missing {
    pub(crate) name: &'static str,
    pub(crate) fate: Fate,
    /// Why, for the manual and the message.
    pub(crate) why: &'static str,
}

/// Everything known about the keywords of `T`.
pub(crate) struct Table<T: 'static> {
    pub(crate) rows: &'static [Row<T>],
    pub(crate) missing: &'static [Missing],
    /// Older spellings, with today's.
    pub(crate) aliases: &'static [(&'static str, &'static str)],
    /// Pairs of which the first one given counts (ProxyJump, ProxyCommand).
    pub(crate) rivals: &'static [(&'static str, &'static str)],
    /// What may stand in a Match block, of both tables.
    pub(crate) in_match: &'static [&'static str],
}

/// How much a notice matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// Worth a line with -v.
    Debug,
    /// Worth a line always, except with -q.
    Warning,
}

/// Something passed over while reading.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// How much it matters.
    pub level: Level,
    /// One line, with its place.
    pub text: String,
}

/// A configuration and what was noticed while reading it.
#[derive(Debug, Clone)]
pub struct Loaded<T> {
    /// The result.
    pub config: T,
    /// In the order of the lines.
    pub notices: Vec<Notice>,
}

/// Reads settings, in their order, into a struct.
pub(crate) struct Resolver<'a, T: 'static> {
    table: &'static Table<T>,
    supported: &'a Supported,
    /// Keywords that have their value, with whether it came from the command line.
    given: Vec<(&'static str, bool)>,
    ignored: Option<String>,
    /// ClearAllForwardings was given.
    cleared: bool,
    pub(crate) config: T,
    /// Lines of blocks that do not apply are read into this, to find their errors.
    scratch: T,
    pub(crate) notices: Vec<Notice>,
}

impl<'a, T: Clone> Resolver<'a, T> {
    pub(crate) fn new(table: &'static Table<T>, supported: &'a Supported, default: T) -> Self {
        let (scratch, config) = (default.clone(), default);
        let (given, notices) = (Vec::new(), Vec::new());
        let (ignored, cleared) = (None, false);
        Self { table, supported, given, ignored, cleared, config, scratch, notices }
    }

    /// Checks one setting of a block that may apply to some connections: as if it counted, and
    /// apart from what was given before.
    pub(crate) fn check(&mut self, setting: &Setting) -> Result<(), Error> {
        let mut apart = Self::new(self.table, self.supported, self.scratch.clone());
        apart.ignored.clone_from(&self.ignored);
        apart.apply(setting, true)?;
        self.notices.append(&mut apart.notices);
        Ok(())
    }

    /// Applies one setting; `active` says whether the block around it applies.
    pub(crate) fn apply(&mut self, setting: &Setting, active: bool) -> Result<(), Error> {
        if setting.is("IgnoreUnknown") {
            return self.ignore_unknown(setting, active);
        }
        if let Some(row) = self.table.row(&setting.keyword) {
            return self.set(row, setting, active);
        }
        match self.table.missing(&setting.keyword) {
            Some(missing) => self.miss(missing, setting, active),
            None => self.unknown(setting),
        }
    }

    fn set(&mut self, row: &Row<T>, setting: &Setting, active: bool) -> Result<(), Error> {
        let wrong = |why| Error::Line(setting.origin.clone(), format!("{}: {why}", row.name));
        let foreign = row.only_given && setting.origin != Origin::CommandLine;
        if foreign && active {
            let Setting { origin, keyword, .. } = setting;
            let text = format!("{origin}: {keyword} counts on the command line only, ignored");
            let notice = Notice { level: Level::Warning, text };
            // The files may be walked twice.
            if !self.notices.contains(&notice) {
                self.notices.push(notice);
            }
        }
        let counts = active && !foreign && !self.is_taken(row.name, row.merge, &setting.origin);
        let target = if counts { &mut self.config } else { &mut self.scratch };
        let input = Input { args: &setting.args, supported: self.supported };
        let field = (row.field)(target);
        if counts && !self.given.iter().any(|(name, _)| *name == row.name) {
            field.clear();
        }
        let result = field.set(&input);
        if counts {
            let refusal = result.is_ok().then(|| field.refusal()).flatten();
            self.take(row.name, &setting.origin);
            return result.and(refusal.map_or(Ok(()), Err)).map_err(wrong);
        }
        // A scratch list may already have the item; only the real one complains of that.
        match row.merge {
            Merge::First => result.map_err(wrong),
            _ => Ok(()),
        }
    }

    fn miss(&mut self, missing: &Missing, setting: &Setting, active: bool) -> Result<(), Error> {
        if !active || self.is_taken(missing.name, Merge::First, &setting.origin) {
            return Ok(());
        }
        self.take(missing.name, &setting.origin);
        let not_yet =
            |why| Err(Error::NotYet(setting.origin.clone(), setting.keyword.clone(), why));
        let clears = matches!(missing.fate, Fate::Clears);
        self.cleared |= clears && is_one_of(&setting.args, &["yes", "true"]);
        let level = match missing.fate {
            Fate::PassOver | Fate::Clears => Level::Debug,
            Fate::UnlessCleared if self.cleared => Level::Debug,
            Fate::Only(words) | Fate::WarnUnless(words) if is_one_of(&setting.args, words) => {
                Level::Debug
            }
            Fate::WarnUnless(_) => Level::Warning,
            Fate::If(holds, _) if holds(&setting.args) => Level::Debug,
            Fate::Only(_) | Fate::If(..) | Fate::Refuse | Fate::UnlessCleared => {
                return not_yet(missing.why);
            }
        };
        self.note(level, setting, missing.why);
        Ok(())
    }

    fn note(&mut self, level: Level, setting: &Setting, why: &str) {
        let Setting { origin, keyword, .. } = setting;
        let text = format!("{origin}: {keyword} is not supported yet, ignored: {why}");
        self.notices.push(Notice { level, text });
    }

    fn unknown(&mut self, setting: &Setting) -> Result<(), Error> {
        let keyword = setting.keyword.to_ascii_lowercase();
        match &self.ignored {
            Some(list) if matches_list(&keyword, list) => Ok(()),
            _ => Err(Error::Unknown(setting.origin.clone(), setting.keyword.clone())),
        }
    }

    fn ignore_unknown(&mut self, setting: &Setting, active: bool) -> Result<(), Error> {
        let input = Input { args: &setting.args, supported: self.supported };
        let wrong = |why| Error::Line(setting.origin.clone(), format!("IgnoreUnknown: {why}"));
        let list = input.one().map_err(wrong)?.to_ascii_lowercase();
        if active && self.ignored.is_none() {
            self.ignored = Some(list);
        }
        Ok(())
    }

    fn is_taken(&self, name: &str, merge: Merge, origin: &Origin) -> bool {
        let rival = self.table.rival(name);
        let mut same = self.given.iter().filter(|(n, _)| *n == name || Some(*n) == rival);
        match merge {
            Merge::First => same.next().is_some(),
            Merge::Add => false,
            Merge::AddOrOverride => {
                *origin != Origin::CommandLine && same.any(|&(_, command_line)| command_line)
            }
        }
    }

    fn take(&mut self, name: &'static str, origin: &Origin) {
        self.given.push((name, *origin == Origin::CommandLine));
    }
}

fn is_one_of(args: &[String], words: &[&str]) -> bool {
    match args {
        [arg] => words.iter().any(|word| word.eq_ignore_ascii_case(arg)),
        _ => false,
    }
}

impl<T: Clone> Table<T> {
    fn row(&self, keyword: &str) -> Option<&'static Row<T>> {
        let alias = self.aliases.iter().find(|(old, _)| old.eq_ignore_ascii_case(keyword));
        let name = alias.map_or(keyword, |(_, name)| name);
        self.rows.iter().find(|row| row.name.eq_ignore_ascii_case(name))
    }

    /// Whether the keyword may stand in a Match block; what is in neither table may not.
    pub(crate) fn is_for_match(&self, keyword: &str) -> bool {
        let name = self.row(keyword).map_or(keyword, |row| row.name);
        self.in_match.iter().any(|known| known.eq_ignore_ascii_case(name))
    }

    /// Whether the keyword has an effect.
    pub(crate) fn has_row(&self, keyword: &str) -> bool {
        self.row(keyword).is_some()
    }

    fn missing(&self, keyword: &str) -> Option<&'static Missing> {
        self.missing.iter().find(|missing| missing.name.eq_ignore_ascii_case(keyword))
    }

    fn rival(&self, name: &str) -> Option<&'static str> {
        self.rivals.iter().find_map(|&(a, b)| match name {
            _ if name == a => Some(b),
            _ if name == b => Some(a),
            _ => None,
        })
    }

    /// The effective configuration, `keyword value` per line, keywords in lower case.
    pub(crate) fn dump(&self, config: &T) -> String {
        self.lines(config, |field| field.show())
    }

    /// The same as a file that reads back as it was.
    pub(crate) fn write(&self, config: &T) -> String {
        self.lines(config, |field| field.write())
    }

    fn lines(&self, config: &T, values: impl Fn(&dyn Field) -> Vec<String>) -> String {
        let mut config = config.clone();
        let mut out = String::new();
        for row in self.rows {
            let keyword = row.name.to_ascii_lowercase();
            for value in values((row.field)(&mut config)) {
                out.push_str(&format!("{keyword} {value}\n"));
            }
        }
        out
    }
}
