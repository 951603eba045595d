//! The command line of sftp-server(8), which `internal-sftp` has too.

use super::log::Level;
use super::permit::{Operation, Permit, Set};
use rustix::fs::Mode;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

/// For `-h` and for a command line that is none.
pub const USAGE: &str = "\
usage: lhsftp-server [-ehR] [-d start_directory] [-f log_facility] [-l log_level]
                     [-P denied_requests] [-p allowed_requests] [-u umask]
       lhsftp-server -Q protocol_feature
-P also denies the extensions that do what it denies: with write, copy-data and put-files.
-p allows what it names and nothing else.";

/// Facilities of syslog(3), by number.
const FACILITIES: &[(&str, u8)] = &[
    ("DAEMON", 3),
    ("USER", 1),
    ("AUTH", 4),
    ("AUTHPRIV", 10),
    ("LOCAL0", 16),
    ("LOCAL1", 17),
    ("LOCAL2", 18),
    ("LOCAL3", 19),
    ("LOCAL4", 20),
    ("LOCAL5", 21),
    ("LOCAL6", 22),
    ("LOCAL7", 23),
];

/// Where in the system's log lines go: a number of syslog(3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Facility(pub u8);

/// What a command line says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// `-e`: the log goes to standard error.
    pub log_to_stderr: bool,
    /// `-f`.
    pub facility: Facility,
    /// `-l`.
    pub level: Level,
    /// `-d`, with `%d`, `%u` and `%%` still in it.
    pub(super) start: Option<Vec<u8>>,
    /// `-u`.
    pub(super) umask: Option<u32>,
    /// It is the umask of the whole process.
    pub(super) umask_is_set: bool,
    /// `-R`, `-p`, `-P`.
    pub(super) permit: Permit,
    /// Names after `-p` and `-P` that are none of ours, for the log.
    pub(super) strangers: Vec<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            log_to_stderr: false,
            facility: Facility(4),
            level: Level::Error,
            start: None,
            umask: None,
            umask_is_set: false,
            permit: Permit::default(),
            strangers: Vec::new(),
        }
    }
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Serve.
    Serve(Box<Options>),
    /// `-h`.
    Help,
    /// `-Q requests`.
    ListRequests,
}

impl Options {
    /// Of the words after the program's name; an error is one line.
    pub fn parse(words: impl IntoIterator<Item = OsString>) -> Result<Action, String> {
        use lexopt::Arg::{Long, Short, Value};
        let mut parser = lexopt::Parser::from_args(words);
        let mut options = Self::default();
        while let Some(arg) = parser.next().map_err(|e| e.to_string())? {
            match arg {
                // What stands between it and the next word is ours, whatever it looks like.
                Short(letter @ ('d' | 'f' | 'l' | 'P' | 'p' | 'u' | 'Q')) => {
                    let value = parser.value().map_err(|e| e.to_string())?;
                    if letter == 'Q' {
                        return list(&value);
                    }
                    options.set(letter, value)?;
                }
                Short('e') => options.log_to_stderr = true,
                Short('R') => options.permit.read_only = true,
                Short('h') => return Ok(Action::Help),
                // As a login shell it is called with `-c command`, and serves whatever that is.
                Short('c') => break,
                Short(_) | Long(_) => return Err(arg.unexpected().to_string()),
                // As in sftp-server(8): scp's -D gives it the host and the subsystem.
                Value(_) => {}
            }
        }
        Ok(Action::Serve(Box::new(options)))
    }

    /// Makes `-u` the umask of the process: for a program that serves one session and has no other
    /// threads yet. Elsewhere each thread of a session gets a umask of its own, or serves nothing.
    pub fn set_umask(&mut self) {
        if let Some(mask) = self.umask {
            rustix::process::umask(Mode::from_raw_mode(mask));
            self.umask_is_set = true;
        }
    }

    fn set(&mut self, letter: char, value: OsString) -> Result<(), String> {
        let text = value.to_string_lossy().into_owned();
        match letter {
            'd' => self.start = Some(value.into_vec()),
            'f' => self.facility = facility(&text)?,
            'l' => self.level = Level::of(&text).ok_or(format!("Invalid log level \"{text}\""))?,
            'u' => self.umask = Some(umask(&text)?),
            'p' if self.permit.only.is_some() => {
                return Err("Permitted requests already set".into());
            }
            'p' => self.permit.only = Some(self.operations(&text)),
            _ if self.permit.without != Set::default() => {
                return Err("Refused requests already set".into());
            }
            _ => self.permit.without = self.operations(&text),
        }
        Ok(())
    }

    fn operations(&mut self, list: &str) -> Set {
        let mut set = Set::default();
        for name in list.split(',').filter(|name| !name.is_empty()) {
            match Operation::named(name) {
                Some(operation) => set.add(operation),
                None => self.strangers.push(name.to_owned()),
            }
        }
        set
    }
}

fn list(feature: &OsString) -> Result<Action, String> {
    if feature == "requests" {
        Ok(Action::ListRequests)
    } else {
        Err(format!("Invalid query type \"{}\"", feature.display()))
    }
}

fn facility(name: &str) -> Result<Facility, String> {
    let known = FACILITIES.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
    known.map(|(_, n)| Facility(*n)).ok_or(format!("Invalid log facility \"{name}\""))
}

fn umask(text: &str) -> Result<u32, String> {
    match u32::from_str_radix(text, 8) {
        Ok(mask) if mask <= 0o777 => Ok(mask),
        _ => Err(format!("Invalid umask \"{text}\"")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &str) -> Result<Action, String> {
        Options::parse(words.split_whitespace().map(OsString::from))
    }

    fn options(words: &str) -> Options {
        let Ok(Action::Serve(options)) = parse(words) else { panic!("{words}") };
        *options
    }

    #[test]
    fn options_are_those_of_sftp_server() {
        assert_eq!(options(""), Options::default());
        let all = options("-eR -f local3 -l verbose -d /srv/%u -u 027 -P remove,setstat");
        assert!(all.log_to_stderr && all.permit.read_only);
        assert_eq!((all.facility, all.level), (Facility(19), Level::Verbose));
        assert_eq!((all.start.as_deref(), all.umask), (Some(&b"/srv/%u"[..]), Some(0o27)));
        let denied = Operation::named("remove").unwrap();
        assert!(!Permit { read_only: false, ..all.permit }.operation(denied));
        assert_eq!(parse("-h"), Ok(Action::Help));
        assert_eq!(parse("-Q requests"), Ok(Action::ListRequests));
    }

    /// `lhsftp-server -c command`, as login(1) and sshd call it where it is somebody's shell.
    #[test]
    fn a_login_shell_serves_whatever_its_command_is() {
        assert_eq!(options("-c /usr/lib/openssh/sftp-server -x"), Options::default());
        let before = options("-R -c -d /elsewhere");
        assert!(before.permit.read_only && before.start.is_none());
        assert_eq!(options("-Rcx"), options("-R"));
    }

    #[test]
    fn what_is_no_option_is_an_error() {
        for bad in ["-x", "word -x", "-l loud", "-f LOCAL8", "-u 8", "-u 7777", "-p a -p b", "-Q x"]
        {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn unknown_names_are_kept_for_the_log_and_deny_nothing_else() {
        let options = options("-p read,future-request");
        assert_eq!(options.strangers, ["future-request"]);
        assert!(options.permit.operation(Operation::named("read").unwrap()));
        assert!(!options.permit.operation(Operation::Write));
    }
}
