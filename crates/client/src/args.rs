//! The command line of lhssh, that of ssh(1): which host, which command, which settings.
//! Letters are rows of a table; most of them only stand for a keyword of ssh_config(5).

use crate::query::Query;
use conf::flags::Action::{Fixed, Keyword, Nothing, Own, Refuse};
use conf::flags::{self, Flag, Given, Refused, text};
use conf::{Destination, Endpoint, Setting, client::Files};
use lexopt::{Arg, Parser};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

const OPERANDS: &str = "destination [command [argument ...]]";

/// A file may ask for shared connections all the same: one that is not does the same work.
const NOT_SHARED: &str = "connections are not shared, so there is none to control";

#[rustfmt::skip] // a table
const FLAGS: &[Flag] = &[
    Flag::plain('4', Fixed("AddressFamily", "inet"), "use IPv4 only"),
    Flag::plain('6', Fixed("AddressFamily", "inet6"), "use IPv6 only"),
    Flag::plain('A', Fixed("ForwardAgent", "yes"), ""),
    Flag::plain('a', Nothing, ""),
    Flag::with('B', "bind_interface", Keyword("BindInterface"), ""),
    Flag::with('b', "bind_address", Keyword("BindAddress"), "local address of the connection"),
    Flag::plain('C', Fixed("Compression", "yes"), "compress what is sent and received"),
    Flag::with('c', "cipher_spec", Keyword("Ciphers"), "ciphers, in order of preference"),
    Flag::with('D', "address", Keyword("DynamicForward"), ""),
    Flag::with('E', "log_file", Own, "append messages to this file"),
    Flag::with('e', "escape_char", Keyword("EscapeChar"), ""),
    Flag::with('F', "configfile", Own, "read this file instead of the usual two; none reads none"),
    Flag::plain('f', Fixed("ForkAfterAuthentication", "yes"), ""),
    Flag::plain('G', Own, "print the configuration for this host, and stop"),
    Flag::plain('g', Fixed("GatewayPorts", "yes"), ""),
    Flag::with('I', "pkcs11", Keyword("PKCS11Provider"), ""),
    Flag::with('i', "identity_file", Keyword("IdentityFile"), "private key to log in with"),
    Flag::with('J', "destination", Own, "go through these hosts: [user@]host[:port],..."),
    Flag::plain('K', Fixed("GSSAPIAuthentication", "yes"), ""),
    Flag::plain('k', Nothing, ""),
    Flag::with('L', "address", Keyword("LocalForward"), ""),
    Flag::with('l', "login_name", Keyword("User"), "name to log in as"),
    Flag::plain('M', Refuse(NOT_SHARED), ""),
    Flag::with('m', "mac_spec", Keyword("MACs"), "message authentication codes, in order of preference"),
    Flag::plain('N', Fixed("SessionType", "none"), ""),
    Flag::plain('n', Fixed("StdinNull", "yes"), "read nothing from standard input"),
    Flag::with('O', "ctl_cmd", Refuse(NOT_SHARED), ""),
    Flag::with('o', "option", Own, "a setting as in ssh_config(5): -o Keyword=value"),
    Flag::with('P', "tag", Keyword("Tag"), ""),
    Flag::with('p', "port", Keyword("Port"), "port of the server"),
    Flag::with('Q', "query_option", Own, "list what is supported: -Q help"),
    Flag::plain('q', Own, "say nothing but what stops the program"),
    Flag::with('R', "address", Keyword("RemoteForward"), ""),
    Flag::with('S', "ctl_path", Keyword("ControlPath"), ""),
    Flag::plain('s', Own, "the command is the name of a subsystem"),
    Flag::plain('T', Fixed("RequestTTY", "no"), "ask for no terminal"),
    Flag::plain('t', Fixed("RequestTTY", "yes"), ""),
    Flag::plain('V', Own, "print the version, and stop"),
    Flag::plain('v', Own, "say more; again for more still"),
    Flag::with('W', "host:port", Own, "run nothing: standard input and output go to this port"),
    Flag::with('w', "tunnel", Keyword("Tunnel"), ""),
    Flag::plain('X', Fixed("ForwardX11", "yes"), ""),
    Flag::plain('x', Nothing, ""),
    Flag::plain('Y', Fixed("ForwardX11", "yes"), ""),
    Flag::plain('y', Refuse("messages do not go to syslog(3); -E appends them to a file"), ""),
];

/// The options that ssh has not, for `--help`.
const LONG: &str = "\
  --explain[=seconds]  measure the path to the host each way, and say what limits it
";

/// How long `--explain` measures each way unless it is told.
const EXPLAIN: Duration = Duration::from_secs(3);

/// The value of `--explain`.
fn seconds(value: Option<OsString>) -> Result<Duration, Refused> {
    let Some(value) = value else { return Ok(EXPLAIN) };
    let number = text(&value)?.parse().ok().filter(|seconds| (1..=3600).contains(seconds));
    let number = number
        .ok_or_else(|| Refused::Usage(format!("--explain takes 1 to 3600 seconds, not {value:?}")));
    number.map(Duration::from_secs)
}

/// What the command line asks for.
#[derive(Debug)]
pub(crate) enum Invocation {
    /// `-V`.
    Version,
    /// `--help`: this text.
    Help(String),
    /// `-Q`.
    Query(Query),
    /// A connection.
    Connect(Box<Args>),
}

/// A connection as the command line has it.
#[derive(Debug)]
pub(crate) struct Args {
    /// The host as the user named it; its user and port are among the settings.
    pub(crate) host: String,
    /// The command, its arguments joined by blanks, for the shell at the other end.
    pub(crate) command: Option<Vec<u8>>,
    /// The command is the name of a subsystem.
    pub(crate) subsystem: bool,
    /// Settings in their order; the first of a keyword counts.
    pub(crate) settings: Vec<Setting>,
    /// Which files are read.
    pub(crate) files: Files,
    /// `-E`.
    pub(crate) log_file: Option<PathBuf>,
    /// `-W`: standard input and output go there.
    pub(crate) forward: Option<Endpoint>,
    /// `-G`.
    pub(crate) print_config: bool,
    /// `--explain`: measure each way for so long, and say what limits.
    pub(crate) explain: Option<Duration>,
}

/// All that is to be said of a wrong command line on standard error.
pub(crate) fn report(refused: &Refused) -> String {
    refused.report("lhssh", FLAGS, OPERANDS)
}

/// Reads the arguments after the program's name.
///
/// As with ssh, options may stand before and after the host; the next operand begins the command.
pub(crate) fn parse(args: impl IntoIterator<Item = OsString>) -> Result<Invocation, Refused> {
    let mut parser = Parser::from_args(args);
    parser.set_short_equals(false);
    let mut line = Line::default();
    while let Some(arg) = parser.next()? {
        match arg {
            Arg::Short(letter) => {
                if let Some(stop) = line.option(letter, &mut parser)? {
                    return Ok(stop);
                }
            }
            Arg::Long("help") => {
                let help = flags::help("lhssh", FLAGS, OPERANDS);
                return Ok(Invocation::Help(help + LONG));
            }
            Arg::Long("explain") => line.explain = Some(seconds(parser.optional_value())?),
            Arg::Long("version") => return Ok(Invocation::Version),
            Arg::Value(host) if line.host.is_none() => line.destination(&host)?,
            Arg::Value(first) => {
                line.command = Some(joined(first, parser.raw_args()?));
                break;
            }
            Arg::Long(_) => return Err(arg.unexpected().into()),
        }
    }
    line.finish()
}

/// What has been read so far.
#[derive(Default)]
struct Line {
    host: Option<String>,
    command: Option<Vec<u8>>,
    subsystem: bool,
    settings: Vec<Setting>,
    files: Files,
    log_file: Option<PathBuf>,
    forward: Option<Endpoint>,
    print_config: bool,
    explain: Option<Duration>,
    quiet: bool,
    verbose: u8,
}

impl Line {
    fn option(&mut self, letter: char, parser: &mut Parser) -> Result<Option<Invocation>, Refused> {
        match flags::read(FLAGS, letter, parser)? {
            Given::Own(value) => return self.own(letter, &value),
            Given::Setting(setting) => self.settings.push(setting),
            Given::Nothing => {}
        }
        Ok(None)
    }

    fn own(&mut self, letter: char, value: &OsStr) -> Result<Option<Invocation>, Refused> {
        match letter {
            'E' => self.log_file = Some(PathBuf::from(value)),
            'F' => self.files = Files::from_option(Path::new(value)),
            'G' => self.print_config = true,
            'J' => self.jump(text(value)?)?,
            'o' => self.settings.push(Setting::option(text(value)?)?),
            'Q' => return Query::parse(text(value)?).map(|query| Some(Invocation::Query(query))),
            'q' => (self.quiet, self.verbose) = (true, 0),
            's' => self.subsystem = true,
            'V' => return Ok(Some(Invocation::Version)),
            'W' => self.forward(text(value)?)?,
            _ => (self.quiet, self.verbose) = (false, self.verbose.saturating_add(1)),
        }
        Ok(None)
    }

    /// Once, and not after a ProxyCommand: of several only one could count.
    fn jump(&mut self, hosts: &str) -> Result<(), Refused> {
        let given = |keyword: &str| self.settings.iter().any(|setting| setting.is(keyword));
        let why = match () {
            () if given("ProxyJump") => "-J may stand once; commas separate several hosts",
            () if given("ProxyCommand") => "-J does not go with a ProxyCommand",
            () => {
                self.settings.push(Setting::given("ProxyJump", hosts));
                return Ok(());
            }
        };
        Err(Refused::Usage(why.to_owned()))
    }

    /// The host's own command and forwards are not wanted then (ssh(1)).
    fn forward(&mut self, to: &str) -> Result<(), Refused> {
        if self.forward.is_some() {
            return Err(Refused::Usage("-W may stand once".to_owned()));
        }
        self.forward = Some(Endpoint::parse(to)?);
        let implied =
            [("ClearAllForwardings", "yes"), ("RemoteCommand", "none"), ("RequestTTY", "no")];
        self.settings.splice(0..0, implied.map(|(keyword, value)| Setting::given(keyword, value)));
        Ok(())
    }

    fn destination(&mut self, value: &OsStr) -> Result<(), Refused> {
        let Destination { host, user, port } = Destination::parse(text(value)?)?;
        self.host = Some(host);
        self.settings.extend(user.map(|user| Setting::given("User", &user)));
        self.settings.extend(port.map(|port| Setting::given("Port", &port.to_string())));
        Ok(())
    }

    fn finish(mut self) -> Result<Invocation, Refused> {
        let host = self.host.ok_or_else(|| Refused::Usage("no destination".to_owned()))?;
        if self.subsystem && self.command.is_none() {
            return Err(Refused::Usage("-s needs the name of a subsystem".to_owned()));
        }
        let alone = [("--explain", self.explain.is_some()), ("-W", self.forward.is_some())];
        if let Some((option, _)) = alone.iter().find(|(_, given)| *given && self.command.is_some())
        {
            return Err(Refused::Usage(format!("{option} runs no command")));
        }
        if alone.iter().all(|(_, given)| *given) {
            return Err(Refused::Usage("--explain does not go with -W".to_owned()));
        }
        self.settings.splice(0..0, flags::log_level(self.quiet, self.verbose));
        Ok(Invocation::Connect(Box::new(Args {
            host,
            command: self.command,
            subsystem: self.subsystem,
            settings: self.settings,
            files: self.files,
            log_file: self.log_file,
            forward: self.forward,
            print_config: self.print_config,
            explain: self.explain,
        })))
    }
}

/// A command as ssh sends it: its arguments with a blank between them. Options are text; only the
/// command may be any bytes.
fn joined(first: OsString, rest: impl Iterator<Item = OsString>) -> Vec<u8> {
    let mut command = first.into_vec();
    for arg in rest {
        command.push(b' ');
        command.extend_from_slice(arg.as_bytes());
    }
    command
}

#[cfg(test)]
mod tests {
    use super::*;
    use conf::Supported;

    fn read(line: &str) -> Result<Invocation, Refused> {
        parse(line.split_whitespace().map(OsString::from))
    }

    fn connect(line: &str) -> Args {
        match read(line) {
            Ok(Invocation::Connect(args)) => *args,
            other => panic!("{line}: {other:?}"),
        }
    }

    fn refused(line: &str) -> String {
        report(&read(line).unwrap_err())
    }

    /// The settings as `Keyword=value`, in order.
    fn settings(args: &Args) -> String {
        let show = |s: &Setting| format!("{}={}", s.keyword, s.args.join(" "));
        args.settings.iter().map(show).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn letters_stand_for_keywords_in_their_order() {
        let cases = [
            ("-p 22 host", "Port=22"),
            ("-p22 host", "Port=22"),
            ("-4Tn -lme host", "AddressFamily=inet RequestTTY=no StdinNull=yes User=me"),
            ("-l a b@host", "User=a User=b"),
            ("-i k1 -i k2 host", "IdentityFile=k1 IdentityFile=k2"),
            ("-oPort=1 -l user host cmd arg", "Port=1 User=user"),
            ("ssh://me@host:2222", "User=me Port=2222"),
            ("ssh://[::1]/", ""),
            ("-vvv host", "LogLevel=DEBUG3"),
            ("-v -q host", "LogLevel=QUIET"),
            ("-oLogLevel=ERROR -v host", "LogLevel=DEBUG1 LogLevel=ERROR"),
            ("-axk host", ""),
            ("-J a@b:1,c host", "ProxyJump=a@b:1,c"),
            ("-p 2 -W h:1 host", "ClearAllForwardings=yes RemoteCommand=none RequestTTY=no Port=2"),
        ];
        for (line, want) in cases {
            assert_eq!(settings(&connect(line)), want, "{line}");
        }
    }

    #[test]
    fn options_stand_before_and_after_the_host_but_not_in_the_command() {
        let cases = [
            ("host", None, ""),
            ("host cmd arg", Some("cmd arg"), ""),
            ("host -p 2 cmd -p 3", Some("cmd -p 3"), "Port=2"),
            ("host -- -p 2", Some("-p 2"), ""),
            ("-- host -p 2", Some("-p 2"), ""),
            ("host cmd -- x", Some("cmd -- x"), ""),
            (
                "-l user host rsync --server -vlogDtpre.iLsfxCIvu . /x",
                Some("rsync --server -vlogDtpre.iLsfxCIvu . /x"),
                "User=user",
            ),
        ];
        for (line, command, want) in cases {
            let args = connect(line);
            assert_eq!(args.host, "host");
            assert_eq!(args.command.as_deref(), command.map(str::as_bytes), "{line}");
            assert_eq!(settings(&args), want, "{line}");
        }
    }

    #[test]
    fn explaining_takes_seconds_and_no_command() {
        assert_eq!(connect("host").explain, None);
        assert_eq!(connect("--explain host -p 2").explain, Some(EXPLAIN));
        assert_eq!(connect("host --explain=10").explain, Some(Duration::from_secs(10)));
        assert!(refused("--explain=0 host").contains("1 to 3600 seconds"));
        assert!(refused("--explain host true").contains("runs no command"));
    }

    #[test]
    fn a_command_may_hold_any_bytes() {
        let bytes = OsString::from_vec(vec![0xff, b'x']);
        let args = parse([OsString::from("host"), bytes, OsString::from("y")]).unwrap();
        let Invocation::Connect(args) = args else { panic!() };
        assert_eq!(args.command.unwrap(), b"\xffx y");
    }

    #[test]
    fn scp_and_sftp_start_it_as_they_start_ssh() {
        let args = connect(
            "-x -oPermitLocalCommand=no -oClearAllForwardings=yes -oRemoteCommand=none \
             -oRequestTTY=no -oForwardAgent=no -l me -s -- host sftp",
        );
        assert!(args.subsystem);
        assert_eq!(args.command.as_deref(), Some(b"sftp".as_slice()));
        let local = conf::Local { home: "/nowhere".into(), user: "me".into(), uid: 0 };
        let supported = Supported::default();
        conf::client::load(&args.host, &args.settings, &Files::None, &supported, &local).unwrap();
    }

    #[test]
    fn wrong_lines_get_one_line_and_the_usage() {
        let cases = [
            ("", "lhssh: no destination\nusage:"),
            ("-Z host", "lhssh: unknown option -- Z\nusage:"),
            ("--zap host", "lhssh: invalid option '--zap'\nusage:"),
            ("host -p", "lhssh: option requires an argument -- p\nusage:"),
            ("-s host", "lhssh: -s needs the name of a subsystem\nusage:"),
            ("-Q nothing", "lhssh: unsupported query 'nothing'"),
            ("-y host", "lhssh: -y is not supported yet: messages do not go to syslog(3)"),
            ("-W a host", "lhssh: command line: 'a': no port\n"),
            ("-W a:1 -W b:2 host", "lhssh: -W may stand once\nusage:"),
            ("-W a:1 host true", "lhssh: -W runs no command\nusage:"),
            ("-W a:1 --explain host", "lhssh: --explain does not go with -W\nusage:"),
            ("-J a -J b host", "lhssh: -J may stand once; commas separate several hosts\nusage:"),
            ("-oProxyCommand=x -J a host", "lhssh: -J does not go with a ProxyCommand\nusage:"),
            ("-oPort host", ""),
            (
                "-- -oProxyCommand=x",
                "lhssh: host \"-oProxyCommand=x\" is refused: it starts with '-'",
            ),
            ("ssh://-x", "lhssh: host \"-x\" is refused"),
            ("ssh://h:0", "lhssh: command line: 'ssh://h:0': '0' is not a port"),
            ("a`b`@host", "lhssh: user \"a`b`\" is refused"),
        ];
        for (line, want) in cases.iter().filter(|(_, want)| !want.is_empty()) {
            assert!(refused(line).starts_with(want), "{line}: {}", refused(line));
        }
    }

    #[test]
    fn letters_of_features_that_do_not_exist_are_refused_by_the_configuration() {
        let local = conf::Local { home: "/nowhere".into(), user: "me".into(), uid: 0 };
        let load = |line: &str| {
            let args = connect(line);
            let supported = Supported::default();
            conf::client::load(&args.host, &args.settings, &Files::None, &supported, &local)
        };
        for line in [
            "-t host",
            "-N host",
            "-f host",
            "-L 1:a:2 host",
            "-R 1:a:2 host",
            "-D 1 host",
            "-w 0 host",
            "-I lib host",
            "-B eth0 host",
        ] {
            let error = load(line).unwrap_err().to_string();
            assert!(error.contains("not supported yet"), "{line}: {error}");
        }
        for line in ["-M host", "-O check host"] {
            assert!(refused(line).contains("not supported yet: connections are not shared"));
        }
        for line in ["-X host", "-A host"] {
            let notices = load(line).unwrap().notices;
            assert!(notices.iter().any(|n| n.level == conf::Level::Warning), "{line}");
        }
    }

    #[test]
    fn questions_about_the_program_need_no_host() {
        assert!(matches!(read("-V"), Ok(Invocation::Version)));
        assert!(matches!(read("-Q mac"), Ok(Invocation::Query(Query::Mac))));
    }

    #[test]
    fn the_usage_fits_a_terminal() {
        let usage = flags::usage("lhssh", FLAGS, OPERANDS);
        assert!(usage.lines().all(|line| line.len() <= 80), "{usage}");
        assert!(usage.starts_with("usage: lhssh [-46") && usage.ends_with("argument ...]]\n"));
    }
}
