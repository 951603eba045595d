//! The command line of lhsshd, that of sshd(8). Letters are rows of a table; some of them only
//! stand for a keyword of sshd_config(5).

use conf::Setting;
use conf::flags::Action::{Fixed, Keyword, Nothing, Own};
use conf::flags::{self, Flag, Given, Refused, text};
use conf::server::{ConfigFile, Visitor};
use lexopt::{Arg, Parser};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

#[rustfmt::skip] // a table
const FLAGS: &[Flag] = &[
    Flag::plain('4', Fixed("AddressFamily", "inet"), "use IPv4 only"),
    Flag::plain('6', Fixed("AddressFamily", "inet6"), "use IPv6 only"),
    Flag::with('C', "connection_spec", Own, "for -T: the connection that Match blocks are asked of"),
    Flag::with('c', "host_cert_file", Keyword("HostCertificate"), ""),
    Flag::plain('D', Own, "stay in the foreground"),
    Flag::plain('d', Own, "foreground, log to standard error, serve one connection; again for more"),
    Flag::with('E', "log_file", Own, "append messages to this file"),
    Flag::plain('e', Own, "log to standard error"),
    Flag::with('f', "config_file", Own, "configuration file; none reads none"),
    Flag::plain('G', Own, "as -T"),
    Flag::with('g', "login_grace_time", Keyword("LoginGraceTime"), "time to log in"),
    Flag::with('h', "host_key_file", Keyword("HostKey"), "private key of the host"),
    Flag::plain('i', Own, "serve one connection on standard input and output"),
    Flag::with('o', "option", Own, "a setting as in sshd_config(5): -o Keyword=value"),
    Flag::with('p', "port", Keyword("Port"), "port to listen on, instead of the file's"),
    Flag::plain('q', Fixed("LogLevel", "QUIET"), "log nothing"),
    Flag::plain('r', Nothing, ""),
    Flag::plain('T', Own, "check the configuration, print it, and stop"),
    Flag::plain('t', Own, "check the configuration and the host keys, and stop"),
    Flag::with('u', "len", Nothing, ""),
    Flag::plain('V', Own, "print the version, and stop"),
];

/// What the command line asks for.
#[derive(Debug)]
pub(crate) enum Invocation {
    /// `-V`.
    Version,
    /// `--help`: this text.
    Help(String),
    /// Anything that needs the configuration.
    Serve(Box<Args>),
}

/// What to do with the configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Mode {
    /// Listen.
    #[default]
    Listen,
    /// `-i`: serve the connection on standard input and output.
    Inetd,
    /// `-t`: check it.
    Test,
    /// `-T`: check and print it.
    Dump,
}

/// Where messages go.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) enum LogTo {
    /// The system's log.
    #[default]
    System,
    /// Standard error.
    Stderr,
    /// The end of this file.
    File(PathBuf),
}

/// The command line of a server.
#[derive(Debug, Default)]
pub(crate) struct Args {
    /// What to do.
    pub(crate) mode: Mode,
    /// Settings in their order; the first of a keyword counts.
    pub(crate) settings: Vec<Setting>,
    /// Which file is read.
    pub(crate) file: ConfigFile,
    /// `-C`: the connection that `-T` speaks of.
    pub(crate) visitor: Option<Visitor>,
    /// `-D`, `-d`: do not detach.
    pub(crate) foreground: bool,
    /// How often `-d` was given; the server ends after one connection if at all.
    pub(crate) debug: u8,
    /// Where messages go.
    pub(crate) log_to: LogTo,
}

/// All that is to be said of a wrong command line on standard error.
pub(crate) fn report(refused: &Refused) -> String {
    refused.report("lhsshd", FLAGS, "")
}

/// Reads the arguments after the program's name.
pub(crate) fn parse(args: impl IntoIterator<Item = OsString>) -> Result<Invocation, Refused> {
    let mut parser = Parser::from_args(args);
    parser.set_short_equals(false);
    let mut line = Args::default();
    while let Some(arg) = parser.next()? {
        match arg {
            Arg::Short('V') | Arg::Long("version") => return Ok(Invocation::Version),
            Arg::Long("help") => return Ok(Invocation::Help(flags::help("lhsshd", FLAGS, ""))),
            Arg::Short(letter) => line.option(letter, &mut parser)?,
            Arg::Value(extra) => return Err(Refused::Usage(format!("extra argument {extra:?}"))),
            Arg::Long(_) => return Err(arg.unexpected().into()),
        }
    }
    line.finish()
}

impl Args {
    fn option(&mut self, letter: char, parser: &mut Parser) -> Result<(), Refused> {
        match flags::read(FLAGS, letter, parser)? {
            Given::Own(value) => self.own(letter, &value)?,
            Given::Setting(setting) => self.settings.push(setting),
            Given::Nothing => {}
        }
        Ok(())
    }

    fn own(&mut self, letter: char, value: &OsStr) -> Result<(), Refused> {
        match letter {
            'C' => {
                let visitor = self.visitor.get_or_insert_default();
                visitor.read(text(value)?).map_err(Refused::Value)?;
            }
            'D' => self.foreground = true,
            'd' => self.debug = self.debug.saturating_add(1),
            'E' => self.log_to = LogTo::File(PathBuf::from(value)),
            'e' => self.log_to = LogTo::Stderr,
            'f' => self.file = ConfigFile::from_option(Path::new(value)),
            'i' => self.mode = Mode::Inetd,
            'o' => self.settings.push(Setting::option(text(value)?)?),
            'T' | 'G' => self.mode = Mode::Dump,
            't' => self.mode = Mode::Test,
            _ => {}
        }
        Ok(())
    }

    /// `-d` implies the foreground, standard error and a level, ahead of what the file says.
    fn finish(mut self) -> Result<Invocation, Refused> {
        if self.visitor.is_some() && self.mode != Mode::Dump {
            return Err(Refused::Value("-C goes with -T only".to_owned()));
        }
        if let Some(level) = flags::log_level(false, self.debug) {
            self.settings.insert(0, level);
            self.foreground = true;
            if self.log_to == LogTo::System {
                self.log_to = LogTo::Stderr;
            }
        }
        Ok(Invocation::Serve(Box::new(self)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<Invocation, Refused> {
        parse(line.split_whitespace().map(OsString::from))
    }

    fn serve(line: &str) -> Args {
        match read(line) {
            Ok(Invocation::Serve(args)) => *args,
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn letters_stand_for_keywords_in_their_order() {
        let cases = [
            ("-p 22 -p 23", "Port=22 Port=23"),
            (
                "-4 -g 10 -h key -q",
                "AddressFamily=inet LoginGraceTime=10 HostKey=key LogLevel=QUIET",
            ),
            ("-oPort=1 -u0", "Port=1"),
            ("-ddd -q", "LogLevel=DEBUG3 LogLevel=QUIET"),
        ];
        for (line, want) in cases {
            let show = |s: &Setting| format!("{}={}", s.keyword, s.args.join(" "));
            let settings: Vec<_> = serve(line).settings.iter().map(show).collect();
            assert_eq!(settings.join(" "), want, "{line}");
        }
    }

    #[test]
    fn modes_and_places_are_taken_from_their_letters() {
        let modes = [
            ("", Mode::Listen),
            ("-i", Mode::Inetd),
            ("-t", Mode::Test),
            ("-T -C user=x", Mode::Dump),
            ("-De", Mode::Listen),
        ];
        modes.iter().for_each(|(line, mode)| assert_eq!(serve(line).mode, *mode, "{line}"));
        assert_eq!(serve("-T -C user=x -C lport=7").visitor.unwrap().local_port, Some(7));
        assert_eq!(serve("-E log -d").log_to, LogTo::File("log".into()));
        assert_eq!(serve("-d").log_to, LogTo::Stderr);
        assert!(serve("-d").foreground && !serve("-e").foreground);
        assert_eq!(serve("-f none").file, ConfigFile::None);
        assert_eq!(serve("-f x").file, ConfigFile::Only("x".into()));
        assert!(matches!(read("-V"), Ok(Invocation::Version)));
    }

    #[test]
    fn wrong_lines_get_one_line_and_the_usage() {
        let cases = [
            ("-Z", "lhsshd: unknown option -- Z\nusage: lhsshd [-46"),
            ("-f", "lhsshd: option requires an argument -- f\nusage:"),
            ("host", "lhsshd: extra argument \"host\"\nusage:"),
            ("--zap", "lhsshd: invalid option '--zap'\nusage:"),
            ("-o =x", "lhsshd: command line: no keyword"),
            ("-C user=x", "lhsshd: -C goes with -T only"),
            ("-T -C usr=x", "lhsshd: invalid test mode specification 'usr=x'"),
        ];
        for (line, want) in cases {
            let report = report(&read(line).unwrap_err());
            assert!(report.starts_with(want), "{line}: {report}");
        }
    }
}
