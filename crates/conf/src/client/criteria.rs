//! Criteria of Match lines (ssh_config(5), Match). A line is judged when it is reached, by what the
//! lines before it have said.
//!
//! What cannot be judged here (a command, the addresses of this host) is an error, but only on a line
//! that all before it leaves open: one that does not apply anyway hurts nobody.

use crate::error::Error;
use crate::line::Setting;
use crate::pattern::matches_list;

/// Where a connection leads, and who makes it.
pub(super) struct Target<'a> {
    /// HostName, as far as it is known.
    pub(super) host: &'a str,
    /// The host as typed.
    pub(super) original_host: &'a str,
    pub(super) user: &'a str,
    pub(super) local_user: &'a str,
    /// This is the second pass, which `Match final` asked for.
    pub(super) is_final: bool,
}

/// What a Match line says of a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Verdict {
    /// The lines after it count.
    pub(super) holds: bool,
    /// It wants the files to be walked once more.
    pub(super) wants_final: bool,
}

/// What a criterion looks at, with its patterns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Subject<'a> {
    All,
    Canonical,
    Final,
    Host(&'a str),
    OriginalHost(&'a str),
    User(&'a str),
    LocalUser(&'a str),
    /// OpenSSH has it.
    NotYet(&'static str),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Criterion<'a> {
    negated: bool,
    subject: Subject<'a>,
}

/// Criteria of OpenSSH that nothing is known about here.
const NOT_YET: &[&str] = &["exec", "localnetwork", "tagged", "version", "sessiontype", "command"];

impl Target<'_> {
    /// Judges a Match line in a file whose lines count only if `outer`.
    pub(super) fn judge(&self, line: &Setting, outer: bool) -> Result<Verdict, Error> {
        let criteria = read(&line.args);
        let criteria = criteria.map_err(|why| Error::Line(line.origin.clone(), why))?;
        let mut holds = outer;
        for criterion in &criteria {
            holds = holds && self.satisfies(criterion, line)?;
        }
        let wants_final = criteria.iter().any(|criterion| criterion.subject == Subject::Final);
        Ok(Verdict { holds, wants_final })
    }

    fn satisfies(&self, criterion: &Criterion<'_>, line: &Setting) -> Result<bool, Error> {
        let any_case = |host: &str, list: &str| {
            matches_list(&host.to_ascii_lowercase(), &list.to_ascii_lowercase())
        };
        let is_met = match criterion.subject {
            Subject::All => true,
            // Names are never canonicalized: OpenSSH says yes to both in its last pass then.
            Subject::Canonical | Subject::Final => self.is_final,
            Subject::Host(list) => any_case(self.host, list),
            Subject::OriginalHost(list) => any_case(self.original_host, list),
            Subject::User(list) => matches_list(self.user, list),
            Subject::LocalUser(list) => matches_list(self.local_user, list),
            Subject::NotYet(name) => {
                let why = "whether the lines after it count is not known";
                return Err(Error::NotYet(line.origin.clone(), format!("Match {name}"), why));
            }
        };
        Ok(is_met != criterion.negated)
    }
}

/// The criteria of one line, at least one.
fn read(args: &[String]) -> Result<Vec<Criterion<'_>>, String> {
    let mut words = args.iter().map(String::as_str);
    let mut criteria = Vec::new();
    while let Some(word) = words.next() {
        let (name, given) = word.split_once('=').map_or((word, None), |(n, v)| (n, Some(v)));
        let (name, negated) = name.strip_prefix('!').map_or((name, false), |name| (name, true));
        let subject = match flag(name) {
            Some(flag) if given.is_none() => flag,
            Some(_) => return Err(format!("Match {name}: it takes no value")),
            None => {
                let given = given.filter(|value| !value.is_empty());
                let value = given.or_else(|| value(&mut words)).filter(|value| !value.is_empty());
                with_value(name, value)?
            }
        };
        // As OpenSSH has it, which lets one criterion stand before it.
        if subject == Subject::All && (criteria.len() > 1 || words.len() > 0) {
            return Err("Match: 'all' does not go with other criteria".to_owned());
        }
        criteria.push(Criterion { negated, subject });
    }
    match criteria.is_empty() {
        true => Err("Match: one or more criteria required".to_owned()),
        false => Ok(criteria),
    }
}

fn flag(name: &str) -> Option<Subject<'static>> {
    let flags =
        [("all", Subject::All), ("canonical", Subject::Canonical), ("final", Subject::Final)];
    flags.into_iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, flag)| flag)
}

/// The next word, where one `=` may stand before it.
fn value<'a>(words: &mut impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let word = words.next()?;
    match word.strip_prefix('=') {
        Some("") => words.next(),
        Some(value) => Some(value),
        None => Some(word),
    }
}

fn with_value<'a>(name: &str, value: Option<&'a str>) -> Result<Subject<'a>, String> {
    let list = value.ok_or_else(|| format!("Match {name}: missing value"));
    match name.to_ascii_lowercase().as_str() {
        "host" => list.map(Subject::Host),
        "originalhost" => list.map(Subject::OriginalHost),
        "user" => list.map(Subject::User),
        "localuser" => list.map(Subject::LocalUser),
        other => match NOT_YET.iter().find(|known| **known == other) {
            Some(known) => list.map(|_| Subject::NotYet(known)),
            None => Err(format!("Match: unsupported criterion {name}")),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::line::Origin;
    use proptest::prelude::*;

    const TARGET: Target<'_> = Target {
        host: "h.example",
        original_host: "h",
        user: "ann",
        local_user: "me",
        is_final: false,
    };

    fn judge(target: &Target<'_>, text: &str) -> Result<Verdict, Error> {
        let origin = Origin::File("f".into(), 1);
        let line = Setting::parse(&format!("Match {text}"), &origin).unwrap().unwrap();
        target.judge(&line, true)
    }

    #[test]
    fn every_criterion_of_a_line_must_hold() {
        let cases = [
            ("all", true),
            ("!all", false),
            ("host h.example", true),
            ("HOST *.EXAMPLE", true),
            ("host h", false),
            ("host *.example,!h.*", false),
            ("!host h", true),
            ("originalhost h", true),
            ("originalhost h.example", false),
            ("user ann", true),
            ("user Ann", false),
            ("user bob,a*", true),
            ("!user bob", true),
            ("localuser me", true),
            ("localuser you", false),
            ("host h.example user bob", false),
            ("user ann localuser \"me\" # both", true),
            ("host=h.example user =ann localuser= me", true),
            ("host = h.example", true),
            ("canonical", false),
            ("!canonical", true),
            ("final", false),
            ("!final", true),
            ("final all", false),
            ("host h.example all", true),
        ];
        for (text, want) in cases {
            assert_eq!(judge(&TARGET, text).unwrap().holds, want, "{text}");
        }
    }

    #[test]
    fn final_asks_for_a_pass_of_its_own() {
        for text in ["final", "!final", "host x final", "final all"] {
            assert!(judge(&TARGET, text).unwrap().wants_final, "{text}");
        }
        assert!(!judge(&TARGET, "canonical host h").unwrap().wants_final);
        let last = Target { is_final: true, ..TARGET };
        for (text, want) in [("final", true), ("!final", false), ("canonical all", true)] {
            assert_eq!(judge(&last, text).unwrap().holds, want, "{text}");
        }
    }

    #[test]
    fn what_is_not_known_is_an_error_only_where_it_decides() {
        for name in NOT_YET {
            let error = judge(&TARGET, &format!("user ann {name} x")).unwrap_err().to_string();
            assert!(error.starts_with(&format!("f line 1: Match {name} is not sup")), "{error}");
            assert!(!judge(&TARGET, &format!("user bob {name} x")).unwrap().holds);
            assert!(judge(&TARGET, &format!("{name} x user bob")).is_err());
        }
        let line = Setting::parse("Match exec true", &Origin::CommandLine).unwrap().unwrap();
        assert!(!TARGET.judge(&line, false).unwrap().holds);
    }

    #[test]
    fn lines_that_cannot_be_meant_are_errors() {
        let bad = [
            ("", "one or more criteria"),
            ("host", "Match host: missing value"),
            ("host \"\"", "Match host: missing value"),
            ("user bob exec", "Match exec: missing value"),
            ("all host h", "'all' does not go with other criteria"),
            ("final canonical all", "'all' does not go with other criteria"),
            ("final=yes", "Match final: it takes no value"),
            ("! host h", "unsupported criterion"),
            ("user bob nope x", "unsupported criterion nope"),
        ];
        for (text, want) in bad {
            let error = judge(&TARGET, text).unwrap_err().to_string();
            assert!(error.contains(want), "{text}: {error}");
        }
    }

    proptest! {
        #[test]
        fn no_line_panics(text in "\\PC{0,60}") {
            let origin = Origin::CommandLine;
            if let Ok(Some(line)) = Setting::parse(&format!("Match {text}"), &origin) {
                let _ = TARGET.judge(&line, true);
            }
        }
    }
}
