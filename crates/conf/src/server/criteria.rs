//! Criteria of Match lines (sshd_config(5), Match): read once, asked for every connection.

use crate::address;
use crate::error::Error;
use crate::field::{Scalar, as_argument};
use crate::line::{Origin, Setting};
use crate::pattern::matches_list;
use std::net::IpAddr;

/// A connection as Match lines see it. What is not known satisfies no criterion that asks for it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Visitor {
    /// Name to log in as.
    pub user: Option<String>,
    /// Names of the groups that this user is in.
    pub groups: Vec<String>,
    /// The client's name, or its address where names are not looked up.
    pub host: Option<String>,
    /// The client's address.
    pub address: Option<IpAddr>,
    /// The address it connected to.
    pub local_address: Option<IpAddr>,
    /// The port it connected to.
    pub local_port: Option<u16>,
}

impl Visitor {
    /// Takes the argument of `-C`: `user=a,host=b,addr=c,laddr=d,lport=e`, all of them optional.
    ///
    /// # Errors
    /// Another name, a value that is no address or no port.
    pub fn read(&mut self, spec: &str) -> Result<(), String> {
        spec.split(',').filter(|part| !part.is_empty()).try_for_each(|part| self.read_part(part))
    }

    fn read_part(&mut self, part: &str) -> Result<(), String> {
        let wrong = || format!("invalid test mode specification '{part}'");
        let (name, value) = part.split_once('=').ok_or_else(wrong)?;
        let address = || value.parse().map_err(|_| format!("'{value}' is not an address"));
        match name {
            "user" => self.user = Some(value.to_owned()),
            "host" => self.host = Some(value.to_ascii_lowercase()),
            "addr" => self.address = Some(address()?),
            "laddr" => self.local_address = Some(address()?),
            "lport" => self.local_port = Some(u16::read(value)?),
            _ => return Err(wrong()),
        }
        Ok(())
    }
}

/// What a criterion looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Subject {
    User,
    Group,
    Host,
    Address,
    LocalAddress,
    LocalPort,
}

const SUBJECTS: &[(&str, Subject)] = &[
    ("User", Subject::User),
    ("Group", Subject::Group),
    ("Host", Subject::Host),
    ("Address", Subject::Address),
    ("LocalAddress", Subject::LocalAddress),
    ("LocalPort", Subject::LocalPort),
];

/// One criterion with its patterns, which were checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Criterion {
    pub(super) subject: Subject,
    list: String,
}

impl Criterion {
    /// The criteria of one Match line; `Match all` has none.
    pub(super) fn read(line: &Setting) -> Result<Vec<Self>, Error> {
        let wrong = |why| Error::Line(line.origin.clone(), why);
        if line.origin == Origin::CommandLine {
            return Err(wrong("Match: not for the command line".to_owned()));
        }
        let words = words(&line.args);
        match words.as_slice() {
            [] => Err(wrong("Match: one or more criteria required".to_owned())),
            [all] if all.eq_ignore_ascii_case("all") => Ok(Vec::new()),
            words => words.chunks(2).map(Self::pair).collect::<Result<_, _>>().map_err(wrong),
        }
    }

    fn pair(words: &[&str]) -> Result<Self, String> {
        let (name, list) = match words {
            [name, ..] if name.eq_ignore_ascii_case("all") => {
                return Err("Match: 'all' does not go with other criteria".to_owned());
            }
            [name, list] => (name, *list),
            [name, ..] => return Err(format!("Match {name}: missing value")),
            [] => return Err("Match: missing value".to_owned()),
        };
        let known = SUBJECTS.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        let (name, subject) =
            *known.ok_or_else(|| format!("Match: unsupported criterion {name}"))?;
        let checked = match subject {
            Subject::Address | Subject::LocalAddress => address::check(list),
            Subject::LocalPort => u16::read(list).map(drop),
            Subject::User | Subject::Group | Subject::Host => Ok(()),
        };
        checked.map_err(|why| format!("Match {name}: {why}"))?;
        Ok(Self { subject, list: list.to_owned() })
    }

    /// Whether this connection satisfies it.
    pub(super) fn holds(&self, visitor: &Visitor) -> bool {
        let list = self.list.as_str();
        let address = |ip: Option<IpAddr>| ip.is_some_and(|ip| address::matches(ip, list));
        match self.subject {
            Subject::User => visitor.user.as_deref().is_some_and(|user| matches_list(user, list)),
            Subject::Group => any_group(&visitor.groups, list),
            Subject::Host => visitor.host.as_deref().is_some_and(|host| {
                matches_list(&host.to_ascii_lowercase(), &list.to_ascii_lowercase())
            }),
            Subject::Address => address(visitor.address),
            Subject::LocalAddress => address(visitor.local_address),
            Subject::LocalPort => u16::read(list).ok() == visitor.local_port,
        }
    }

    /// As a Match line has it.
    pub(super) fn text(&self) -> String {
        let name = SUBJECTS.iter().find(|(_, subject)| *subject == self.subject);
        format!("{} {}", name.map_or("", |(name, _)| name), as_argument(&self.list))
    }
}

/// A group that a negated pattern names turns the whole list off.
fn any_group(groups: &[String], list: &str) -> bool {
    let negated = |group: &String| {
        list.split(',').filter_map(|p| p.strip_prefix('!')).any(|p| matches_list(group, p))
    };
    groups.iter().any(|group| matches_list(group, list)) && !groups.iter().any(negated)
}

/// The words of a Match line, where `=` may stand between a criterion and its value.
fn words(args: &[String]) -> Vec<&str> {
    let mut words: Vec<&str> = Vec::new();
    for arg in args {
        let value_is_due = words.len() % 2 == 1;
        match arg.split_once('=') {
            Some((name, value)) if !value_is_due => words.extend([name, value]),
            Some(("", value)) => words.push(value),
            _ => words.push(arg),
        }
        if words.last() == Some(&"") {
            words.pop(); // a lone `=`, or one at the end of a word: the value follows
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<Criterion>, String> {
        let origin = Origin::File("f".into(), 1);
        let line = Setting::parse(&format!("Match {text}"), &origin).map_err(|e| e.to_string())?;
        Criterion::read(&line.unwrap()).map_err(|e| e.to_string())
    }

    fn visitor() -> Visitor {
        let mut visitor =
            Visitor { groups: vec!["staff".into(), "wheel".into()], ..<_>::default() };
        visitor.read("user=ann,host=A.Example,addr=192.0.2.7").unwrap();
        visitor.read("laddr=::1,lport=2222").unwrap();
        visitor
    }

    #[test]
    fn every_criterion_of_a_line_must_hold() {
        let cases = [
            ("all", true),
            ("User ann", true),
            ("user=ann", true),
            ("User = ann", true),
            ("User bob,ann", true),
            ("User a*,!ann", false),
            ("User Ann", false),
            ("Group staff", true),
            ("Group staff,!wheel", false),
            ("Group users,!nobody", false),
            ("Host *.example", true),
            ("Host *.EXAMPLE", true),
            ("Host *.example,!a.*", false),
            ("Address 192.0.2.0/24", true),
            ("Address 192.0.2.0/24,!192.0.2.7", false),
            ("LocalAddress ::1", true),
            ("LocalPort 2222", true),
            ("LocalPort 22", false),
            ("User ann Address 10.0.0.0/8", false),
            ("User \"ann\" Group wheel # staff", true),
        ];
        for (line, want) in cases {
            let all = read(line).unwrap();
            assert_eq!(all.iter().all(|c| c.holds(&visitor())), want, "{line}");
            let text = all.iter().map(Criterion::text).collect::<Vec<_>>().join(" ");
            assert_eq!(read(if text.is_empty() { "all" } else { &text }), Ok(all), "{line}");
        }
    }

    #[test]
    fn what_is_not_known_satisfies_nothing_that_asks_for_it() {
        for line in ["User *", "Group *", "Host *", "Address *", "LocalAddress *", "LocalPort 22"] {
            assert!(!read(line).unwrap()[0].holds(&Visitor::default()), "{line}");
        }
    }

    #[test]
    fn lines_that_cannot_be_meant_are_errors() {
        let bad = [
            ("", "one or more criteria"),
            ("user", "Match user: missing value"),
            ("user a group", "Match group: missing value"),
            ("all user a", "'all' does not go with other criteria"),
            ("user a all", "'all' does not go with other criteria"),
            ("RDomain x", "unsupported criterion RDomain"),
            ("exec true", "unsupported criterion exec"),
            ("Address 10.0.0.1/8", "Match Address: '10.0.0.1/8' has bits beyond its mask"),
            ("LocalPort 22,23", "Match LocalPort: '22,23' is not a port"),
        ];
        for (line, want) in bad {
            let error = read(line).unwrap_err();
            assert!(error.contains(want), "{line}: {error}");
        }
        for bad in ["user", "x=y", "addr=host", "lport=0", "rdomain=x"] {
            assert!(Visitor::default().read(bad).is_err(), "{bad}");
        }
    }
}
