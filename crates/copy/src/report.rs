//! What became of a copy: counted by the core, printed by the program, and the exit code's reason.

use crate::escape::shown;
use std::fmt;
use std::time::Duration;

/// The end of a copy. Sizes are bytes of file content, without SFTP's and SSH's share.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Report {
    /// Files whose content was copied.
    pub copied: u64,
    /// Files that were there already and identical.
    pub skipped: u64,
    /// Of those, files that were given attributes which they lacked.
    pub attributes: u64,
    /// Files whose content was compared at both ends.
    pub verified: u64,
    /// Directories that were made.
    pub directories: u64,
    /// Content that was moved and is in place, by whatever run of the command: bytes moved now.
    pub bytes: u64,
    /// Content that was moved but had to be moved again.
    pub wasted: u64,
    /// Content that did not have to move: holes, and what a stopped run had left.
    pub spared: u64,
    /// Connections and requests that were tried again.
    pub retries: u64,
    /// Most lanes at one time.
    pub lanes: u32,
    /// Connections that were made.
    pub connections: u32,
    /// From the start to the last file in place; of a test (`-t`) from the first lane's opening on.
    pub elapsed: Duration,
    /// What took or gave the made-up data of a test.
    pub through: Option<Through>,
    /// What limited the connections for most of their time, in words; of several hosts those to the
    /// last.
    pub limited_by: Option<String>,
    /// What could not be copied, in the order it happened.
    pub failures: Vec<Failure>,
}

impl Report {
    /// R6: everything that was asked for is there and identical.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.failures.is_empty()
    }

    /// Bytes per second over the whole time.
    #[must_use]
    pub fn mean(&self) -> f64 {
        let seconds = self.elapsed.as_secs_f64();
        if seconds > 0.0 { self.bytes as f64 / seconds } else { 0.0 }
    }

    /// 0 if all is there (R6), 255 if a host could not be reached or was lost, else 1.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        let lost = |failure: &Failure| matches!(failure.what, What::Host(_));
        match self.failures.iter().any(lost) {
            true => 255,
            false => u8::from(!self.is_complete()),
        }
    }
}

/// What takes or gives made-up data (`-t`) at the other end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Through {
    /// Our server's subsystem, which takes and drops it.
    Discard,
    /// Our server's subsystem, which makes it.
    Zeros,
    /// Any SFTP server, which writes it to /dev/null.
    Null,
    /// Any SFTP server, which reads it from /dev/zero.
    Zero,
}

impl Through {
    /// What it is called.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Discard => "discard@longhaul",
            Self::Zeros => "zeros@longhaul",
            Self::Null => "/dev/null",
            Self::Zero => "/dev/zero",
        }
    }
}

/// `sent to discard@longhaul`, `received from /dev/zero by SFTP`.
impl fmt::Display for Through {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (way, by) = match self {
            Self::Discard => ("sent to", ""),
            Self::Zeros => ("received from", ""),
            Self::Null => ("sent to", " by SFTP"),
            Self::Zero => ("received from", " by SFTP"),
        };
        write!(f, "{way} {}{by}", self.name())
    }
}

/// Something that could not be copied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// What it is.
    pub what: What,
    /// A path as the user would write it, with its host and directory, any bytes; `None` where `what`
    /// is that already.
    pub name: Option<Vec<u8>>,
    /// The cause in one line; it may hold the server's text, so it is escaped before it is printed.
    pub why: String,
}

impl Failure {
    /// A host that cannot be reached, or was lost: one of `hosts`, the first unless the cause tells.
    /// Its name is said once, though the cause may begin with it; then with the user, if that is told.
    pub(crate) fn of_host(hosts: &[&str], why: String) -> Self {
        let bare = |name: &str| name.rsplit('@').next().unwrap_or_default().to_owned();
        let (about, rest) = why.split_once(": ").unwrap_or_default();
        let is_told = |host: &&&str| about.split(' ').any(|word| bare(word) == bare(host));
        let host = hosts.iter().find(is_told).or(hosts.first()).copied().unwrap_or_default();
        let what = What::Host(host.to_owned());
        match !about.is_empty() && bare(about) == bare(host) {
            true => {
                let name = about.contains('@').then(|| about.into());
                Self { what, name, why: rest.to_owned() }
            }
            false => Self { what, name: None, why },
        }
    }

    /// What it is about, in the user's words.
    #[must_use]
    pub fn name(&self) -> &[u8] {
        match (&self.name, &self.what) {
            (Some(name), _) => name,
            (None, What::Path(path)) => path,
            (None, What::Host(host)) => host.as_bytes(),
        }
    }
}

/// `name: why` in one line, both escaped (invariant E2).
impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", shown(self.name()), shown(self.why.as_bytes()))
    }
}

/// What a failure is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    /// A path, any bytes: of a file below the target, as in other events; of what never became one
    /// as it was given or found.
    Path(Vec<u8>),
    /// A host that could not be reached, or was lost for good.
    Host(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(failures: &[What]) -> Report {
        let failure = |what: &What| Failure { what: what.clone(), name: None, why: "x".to_owned() };
        Report { failures: failures.iter().map(failure).collect(), ..Report::default() }
    }

    #[test]
    fn r6_any_failure_is_an_exit_code() {
        let (path, host) = (What::Path(b"a".to_vec()), What::Host("h".to_owned()));
        assert_eq!(ended(&[]).exit_code(), 0);
        assert_eq!(ended(std::slice::from_ref(&path)).exit_code(), 1);
        assert_eq!(ended(&[path, host]).exit_code(), 255);
    }

    #[test]
    fn a_host_is_named_once() {
        for (host, why, want) in [
            ("h", "h: host key: no", "h: host key: no"),
            ("me@h", "h: host key: no", "me@h: host key: no"),
            ("h", "me@h: permission denied", "me@h: permission denied"),
            ("me@::1", "::1: host key: no", "me@::1: host key: no"),
            ("h", "connect to host h port 1: no", "h: connect to host h port 1: no"),
            ("h", "gone", "h: gone"),
        ] {
            assert_eq!(Failure::of_host(&[host], why.to_owned()).to_string(), want);
        }
        for (why, want) in [
            ("two: host key: no", "two: host key: no"),
            ("connect to host two port 1: no", "two: connect to host two port 1: no"),
            ("one: host key: no", "me@one: host key: no"),
            ("gone", "me@one: gone"),
        ] {
            assert_eq!(Failure::of_host(&["me@one", "two"], why.to_owned()).to_string(), want);
        }
        assert_eq!(Failure::of_host(&[], "gone".to_owned()).why, "gone");
    }

    #[test]
    fn a_copy_of_no_time_has_no_rate() {
        assert_eq!(ended(&[]).mean().to_bits(), 0f64.to_bits());
        let report = Report { bytes: 10, elapsed: Duration::from_secs(2), ..Report::default() };
        assert!((report.mean() - 5.0).abs() < 1e-9);
    }
}
