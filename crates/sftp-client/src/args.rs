//! The command line of lhsftp, that of sftp(1). Letters are rows of a table; those of the connection
//! stand for keywords of ssh_config(5), the rest for fields of [`Args`].

use crate::command::{Manner, Path};
use crate::transfer::Shape;
use conf::client::Files;
use conf::flags::Action::{Fixed, Keyword, Nothing, Own};
use conf::flags::{self, Flag, Given, Refused, text};
use conf::{Destination, Setting};
use lexopt::{Arg, Parser};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

const OPERANDS: &str = "destination";

#[rustfmt::skip] // a table
const FLAGS: &[Flag] = &[
    Flag::plain('4', Fixed("AddressFamily", "inet"), "use IPv4 only"),
    Flag::plain('6', Fixed("AddressFamily", "inet6"), "use IPv6 only"),
    Flag::plain('A', Fixed("ForwardAgent", "yes"), ""),
    Flag::plain('a', Own, "go on with interrupted transfers"),
    Flag::with('B', "buffer_size", Own, "bytes of a request; by itself what the server takes"),
    Flag::with('b', "batchfile", Own, "commands from this file; - is standard input"),
    Flag::plain('C', Fixed("Compression", "yes"), "compress what is sent and received"),
    Flag::with('c', "cipher", Keyword("Ciphers"), "ciphers, in order of preference"),
    Flag::with('D', "sftp_server_command", Own, "talk to this local server"),
    Flag::with('F', "ssh_config", Own, "read this file instead of the usual two; none reads none"),
    Flag::plain('f', Own, "have files on disk before they count as done"),
    Flag::plain('h', Own, ""),
    Flag::with('i', "identity_file", Keyword("IdentityFile"), "private key to log in with"),
    Flag::with('J', "destination", Keyword("ProxyJump"), "go through these hosts: [user@]host[:port],..."),
    Flag::with('l', "limit", Own, "bandwidth in Kbit/s"),
    Flag::plain('N', Own, "not quiet, -b notwithstanding"),
    Flag::with('o', "ssh_option", Own, "a setting as in ssh_config(5): -o Keyword=value"),
    Flag::with('P', "port", Own, "port of the server"),
    Flag::plain('p', Own, "keep times and modes"),
    Flag::plain('q', Own, "say nothing but results and errors"),
    Flag::with('R', "num_requests", Own, "requests under way; by itself what the path holds"),
    Flag::plain('r', Own, "directories too"),
    Flag::with('S', "program", Own, "connect by this program, which is called like ssh"),
    Flag::with('s', "subsystem", Own, "subsystem, or path of the server program"),
    Flag::plain('V', Own, ""),
    Flag::plain('v', Own, "say more; again for more still"),
    Flag::with('X', "sftp_option", Own, "nrequests=N or buffer=N, as -R and -B"),
    Flag::plain('x', Nothing, ""),
];

/// What the command line asks for.
#[derive(Debug)]
pub(crate) enum Invocation {
    /// `-V`.
    Version,
    /// `-h`: this text.
    Help(String),
    /// A session.
    Session(Box<Args>),
}

/// A session as the command line has it.
#[derive(Debug)]
pub(crate) struct Args {
    /// Where the server is.
    pub(crate) server: Server,
    /// `-b`.
    pub(crate) batch: Option<PathBuf>,
    /// Say only results and errors.
    pub(crate) quiet: bool,
    /// `-a`, `-f`, `-p`, `-r`.
    pub(crate) manner: Manner,
    /// `-B`, `-R`, `-l`.
    pub(crate) shape: Shape,
    /// What follows the host: a directory to change to, or a file to get.
    pub(crate) path: Option<Path>,
    /// Where that file goes.
    pub(crate) target: Option<Path>,
}

/// How to reach the server.
#[derive(Debug)]
pub(crate) enum Server {
    /// `-D`: this command.
    Local(OsString),
    /// A host.
    Remote(Box<Remote>),
}

/// A host and how to log in there.
#[derive(Debug)]
pub(crate) struct Remote {
    /// As the user named it; its user and port are among the settings.
    pub(crate) host: String,
    /// Settings in their order; the first of a keyword counts.
    pub(crate) settings: Vec<Setting>,
    /// Which files are read.
    pub(crate) files: Files,
    /// `-s`: a subsystem, or the path of a program.
    pub(crate) subsystem: String,
    /// `-S`, and what it is to be called with.
    pub(crate) program: Option<(OsString, Vec<OsString>)>,
}

/// All that is to be said of a wrong command line on standard error.
pub(crate) fn report(refused: &Refused) -> String {
    refused.report("lhsftp", FLAGS, OPERANDS)
}

/// What sftp(1) ends with after a wrong command line.
pub(crate) fn exit_code(refused: &Refused) -> u8 {
    match refused {
        Refused::Usage(_) => 1,
        Refused::Value(_) => 255,
    }
}

/// Reads the arguments after the program's name.
pub(crate) fn parse(args: impl IntoIterator<Item = OsString>) -> Result<Invocation, Refused> {
    let mut parser = Parser::from_args(args);
    parser.set_short_equals(false);
    let mut line = Line::default();
    while let Some(arg) = parser.next()? {
        match arg {
            Arg::Short('h') | Arg::Long("help") => {
                return Ok(Invocation::Help(flags::help("lhsftp", FLAGS, OPERANDS)));
            }
            Arg::Short('V') | Arg::Long("version") => return Ok(Invocation::Version),
            Arg::Short(letter) => line.option(letter, &mut parser)?,
            Arg::Value(operand) => line.operands.push(operand),
            Arg::Long(_) => return Err(arg.unexpected().into()),
        }
    }
    line.finish()
}

/// What has been read so far.
#[derive(Default)]
struct Line {
    operands: Vec<OsString>,
    settings: Vec<Setting>,
    /// The same, for a program that is called like ssh.
    passed: Vec<OsString>,
    files: Files,
    local: Option<OsString>,
    program: Option<OsString>,
    subsystem: Option<String>,
    batch: Option<PathBuf>,
    manner: Manner,
    shape: Shape,
    quiet: bool,
    noisy: bool,
    verbose: u8,
}

impl Line {
    fn option(&mut self, letter: char, parser: &mut Parser) -> Result<(), Refused> {
        match flags::read(FLAGS, letter, parser)? {
            Given::Own(value) => return self.own(letter, value),
            Given::Setting(setting) => {
                self.pass(letter, &setting.rest);
                self.settings.push(setting);
            }
            Given::Nothing => {}
        }
        Ok(())
    }

    fn own(&mut self, letter: char, value: OsString) -> Result<(), Refused> {
        match letter {
            'a' => self.manner.resume = true,
            'f' => self.manner.sync = true,
            'p' => self.manner.preserve = true,
            'r' => self.manner.recursive = true,
            'B' => self.shape.buffer = Some(number(&value, "buffer size")?),
            'R' => self.requests(&value)?,
            'X' => self.sftp_option(text(&value)?)?,
            'l' => self.shape.rate = Some(rate(&value)?),
            'b' if self.batch.is_some() => {
                return Err(Refused::Value("Batch file already specified.".to_owned()));
            }
            'b' => self.batch = Some(value.into()),
            'D' => self.local = Some(value),
            'F' => {
                self.files = Files::from_option(value.as_ref());
                self.passed.extend(["-F".into(), value]);
            }
            'o' => {
                let option = text(&value)?;
                self.settings.push(Setting::option(option)?);
                self.pass('o', option);
            }
            'P' => self.port(text(&value)?)?,
            'S' => self.program = Some(value),
            's' => self.subsystem = Some(text(&value)?.to_owned()),
            'N' => self.noisy = true,
            'q' => self.quiet = true,
            _ => self.verbose = self.verbose.saturating_add(1),
        }
        Ok(())
    }

    /// As it was given: ssh takes quotes apart itself, and its `-A` undoes the `ForwardAgent no`
    /// that it is called with.
    fn pass(&mut self, letter: char, value: &str) {
        self.passed.push(format!("-{letter}").into());
        let takes = FLAGS.iter().any(|flag| flag.letter == letter && flag.value.is_some());
        self.passed.extend(takes.then(|| value.into()));
    }

    /// A plain word that needs no quotes.
    fn set(&mut self, setting: Setting) {
        self.passed.push(format!("-o{} {}", setting.keyword, setting.rest).into());
        self.settings.push(setting);
    }

    fn port(&mut self, text: &str) -> Result<(), Refused> {
        match text.parse::<u16>() {
            Ok(port) if port > 0 => self.set(Setting::given("Port", text)),
            _ => return Err(Refused::Value(format!("Bad port \"{text}\""))),
        }
        Ok(())
    }

    fn requests(&mut self, value: &OsStr) -> Result<(), Refused> {
        let count: u32 = number(value, "number of requests")?;
        self.shape.requests = usize::try_from(count).ok();
        Ok(())
    }

    fn sftp_option(&mut self, text: &str) -> Result<(), Refused> {
        match text.split_once('=') {
            Some(("nrequests", value)) => self.requests(value.as_ref()),
            Some(("buffer", value)) => {
                self.shape.buffer = Some(number(value.as_ref(), "buffer size")?);
                Ok(())
            }
            _ => Err(Refused::Value("Invalid -X option".to_owned())),
        }
    }

    fn finish(mut self) -> Result<Invocation, Refused> {
        let (server, path, target) = match self.local.take() {
            Some(command) if self.operands.is_empty() => (Server::Local(command), None, None),
            Some(_) => return Err(Refused::Usage("-D takes no destination".to_owned())),
            None => self.remote()?,
        };
        let quiet = (self.quiet || self.batch.is_some()) && !self.noisy;
        Ok(Invocation::Session(Box::new(Args {
            server,
            batch: self.batch,
            quiet,
            manner: self.manner,
            shape: self.shape,
            path,
            target,
        })))
    }

    fn remote(&mut self) -> Result<(Server, Option<Path>, Option<Path>), Refused> {
        let mut operands = std::mem::take(&mut self.operands).into_iter();
        let (host, target) = (operands.next(), operands.next());
        let host = host.ok_or_else(|| Refused::Usage("no destination".to_owned()))?;
        if operands.next().is_some() {
            return Err(Refused::Usage("too many operands".to_owned()));
        }
        let (destination, path) = destination(host.as_bytes())?;
        let Destination { host, user, port } = destination;
        if let Some(level) = flags::log_level(self.quiet && !self.noisy, self.verbose) {
            self.passed.insert(0, format!("-oLogLevel {}", level.args.join(" ")).into());
            self.settings.insert(0, level);
        }
        if self.batch.is_some() {
            self.set(Setting::given("BatchMode", "yes"));
        }
        user.iter().for_each(|user| self.set(Setting::given("User", user)));
        port.iter().for_each(|port| self.set(Setting::given("Port", &port.to_string())));
        let subsystem = self.subsystem.take().unwrap_or_else(|| "sftp".to_owned());
        let program = self.program.take().map(|program| {
            let arguments = ssh_arguments(std::mem::take(&mut self.passed), &host, &subsystem);
            (program, arguments)
        });
        let (settings, files) = (std::mem::take(&mut self.settings), self.files.clone());
        let remote = Remote { host, settings, files, subsystem, program };
        Ok((Server::Remote(Box::new(remote)), path, target.map(OsStringExt::into_vec)))
    }
}

/// What sftp(1) calls ssh with, `-S` or not.
fn ssh_arguments(settings: Vec<OsString>, host: &str, subsystem: &str) -> Vec<OsString> {
    let fixed = [
        "-oForwardX11 no",
        "-oPermitLocalCommand no",
        "-oClearAllForwardings yes",
        "-oForwardAgent no",
    ];
    let mut arguments: Vec<OsString> = fixed.map(OsString::from).into();
    arguments.extend(settings);
    if is_program(subsystem) {
        arguments.extend(["--".into(), host.into(), subsystem.into()]);
    } else {
        arguments.extend(["-s".into(), "--".into(), host.into(), subsystem.into()]);
    }
    arguments
}

/// `-s` names a program, not a subsystem.
pub(crate) fn is_program(subsystem: &str) -> bool {
    subsystem.contains('/')
}

/// Host and path of `[user@]host[:path]` or `sftp://[user@]host[:port][/path]`.
fn destination(operand: &[u8]) -> Result<(Destination, Option<Path>), Refused> {
    let (authority, path) = match operand.strip_prefix(b"sftp://") {
        Some(uri) => {
            let (authority, path) = split(uri, |byte| byte == b'/');
            let path = path.map(decoded).transpose()?;
            ([b"ssh://", authority].concat(), path)
        }
        None => {
            let mut bracketed = false;
            let (host, path) = split(operand, |byte| {
                bracketed = (bracketed || byte == b'[') && byte != b']';
                byte == b':' && !bracketed
            });
            (unbracketed(host), path.map(<[u8]>::to_vec))
        }
    };
    let authority = OsString::from_vec(authority);
    Ok((Destination::parse(text(&authority)?)?, path.filter(|path| !path.is_empty())))
}

/// `user@[::1]` without the brackets.
fn unbracketed(host: &[u8]) -> Vec<u8> {
    let at = host.iter().rposition(|&byte| byte == b'@').map_or(0, |at| at + 1);
    let (user, host) = host.split_at(at);
    let inner = host.strip_prefix(b"[").and_then(|host| host.strip_suffix(b"]"));
    [user, inner.unwrap_or(host)].concat()
}

fn split(text: &[u8], mut at: impl FnMut(u8) -> bool) -> (&[u8], Option<&[u8]>) {
    match text.iter().position(|&byte| at(byte)) {
        Some(end) => {
            let (before, after) = text.split_at(end);
            (before, after.get(1..))
        }
        None => (text, None),
    }
}

/// Percent-decoding (RFC 3986 section 2.1).
fn decoded(path: &[u8]) -> Result<Path, Refused> {
    let mut out = Path::new();
    let mut bytes = path.iter().copied();
    let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
    while let Some(byte) = bytes.next() {
        out.push(match byte {
            b'%' => {
                let value = digit(bytes.next()).zip(digit(bytes.next())).map(|(h, l)| h * 16 + l);
                let value = value.and_then(|value| u8::try_from(value).ok()).filter(|&b| b != 0);
                value.ok_or_else(|| Refused::Value("the URI has a bad %-escape".to_owned()))?
            }
            byte => byte,
        });
    }
    Ok(out)
}

fn number(value: &OsStr, what: &str) -> Result<u32, Refused> {
    let number = value.to_str().and_then(|text| text.parse::<u32>().ok()).filter(|&n| n > 0);
    let invalid = || Refused::Value(format!("Invalid {what} \"{}\"", value.to_string_lossy()));
    number.filter(|&number| i32::try_from(number).is_ok()).ok_or_else(invalid)
}

/// Kbit/s as bytes per second.
fn rate(value: &OsStr) -> Result<u64, Refused> {
    let limit: Option<u64> = value.to_str().and_then(|text| text.parse().ok());
    let limit = limit.filter(|limit| (1..=100 * 1024 * 1024).contains(limit));
    limit.map(|limit| limit * 1024 / 8).ok_or_else(|| Refused::Usage("bad -l limit".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<Invocation, Refused> {
        parse(line.split_whitespace().map(OsString::from))
    }

    fn session(line: &str) -> Args {
        match read(line) {
            Ok(Invocation::Session(args)) => *args,
            other => panic!("{line}: {other:?}"),
        }
    }

    fn remote(line: &str) -> Remote {
        match session(line).server {
            Server::Remote(remote) => *remote,
            Server::Local(_) => panic!("{line}"),
        }
    }

    fn settings(line: &str) -> String {
        let show = |s: &Setting| format!("{}={}", s.keyword, s.args.join(" "));
        remote(line).settings.iter().map(show).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn letters_stand_for_keywords_in_their_order() {
        for (line, want) in [
            ("-P22 host", "Port=22"),
            ("-4 -i k -oUser=a b@host", "AddressFamily=inet IdentityFile=k User=a User=b"),
            ("-b - host", "BatchMode=yes"),
            ("-vv -oLogLevel=INFO host", "LogLevel=DEBUG2 LogLevel=INFO"),
            ("-q host", "LogLevel=QUIET"),
            ("sftp://me@host:2222/x", "User=me Port=2222"),
        ] {
            assert_eq!(settings(line), want, "{line}");
        }
    }

    #[test]
    fn own_letters_shape_transfers() {
        let args = session("-aprf -B 1000 -R5 -l 8 host:dir file");
        assert_eq!(
            args.manner,
            Manner { resume: true, sync: true, preserve: true, recursive: true }
        );
        let Shape { requests, buffer, rate } = args.shape;
        assert_eq!((requests, buffer, rate), (Some(5), Some(1000), Some(1024)));
        assert_eq!((args.path, args.target), (Some(b"dir".to_vec()), Some(b"file".to_vec())));
        let shape = session("-X nrequests=3 -X buffer=9 host").shape;
        assert_eq!((shape.requests, shape.buffer), (Some(3), Some(9)));
    }

    #[test]
    fn destinations_are_taken_apart() {
        for (operand, host, path) in [
            ("host", "host", None),
            ("host:", "host", None),
            ("me@host:a:b", "host", Some("a:b")),
            ("[::1]:x", "::1", Some("x")),
            ("me@[::1]", "::1", None),
            ("sftp://host//etc/x%20y", "host", Some("/etc/x y")),
            ("sftp://host/", "host", None),
            ("sftp://[::1]:22/d", "::1", Some("d")),
        ] {
            let args = session(operand);
            let Server::Remote(remote) = args.server else { panic!() };
            assert_eq!(remote.host, host, "{operand}");
            assert_eq!(args.path.as_deref(), path.map(str::as_bytes), "{operand}");
        }
    }

    #[test]
    fn a_batch_is_quiet_unless_told_otherwise() {
        assert!(session("-b x host").quiet);
        assert!(!session("-N -b x host").quiet);
        assert!(!session("host").quiet);
    }

    #[test]
    fn another_program_is_called_like_ssh() {
        let (program, arguments) = remote("-S prog -F cf -P 22 -oUser=me host").program.unwrap();
        let arguments: Vec<_> = arguments.iter().map(|arg| arg.to_str().unwrap()).collect();
        assert_eq!(program, "prog");
        assert_eq!(
            arguments[4..],
            ["-F", "cf", "-oPort 22", "-o", "User=me", "-s", "--", "host", "sftp"]
        );
        let words = ["-S", "prog", "-i", "\"/a b\"", "-o", "IdentityFile=\"/c d\"", "-AC", "host"];
        let Invocation::Session(args) = parse(words.map(OsString::from)).unwrap() else { panic!() };
        let Server::Remote(quoted) = args.server else { panic!() };
        let (_, arguments) = quoted.program.unwrap();
        let passed = ["-i", "\"/a b\"", "-o", "IdentityFile=\"/c d\"", "-A", "-C"];
        assert_eq!(arguments[4..10], passed.map(OsString::from));
        let (_, arguments) = remote("-S prog -s /usr/lib/server host").program.unwrap();
        assert!(arguments.ends_with(&["--".into(), "host".into(), "/usr/lib/server".into()]));
    }

    #[test]
    fn wrong_lines_have_sftps_exit_codes() {
        for (line, code, want) in [
            ("", 1, "no destination"),
            ("a b c", 1, "too many operands"),
            ("-Z h", 1, "unknown option -- Z"),
            ("-D", 1, "option requires an argument -- D"),
            ("-l 0 h", 1, "bad -l limit"),
            ("-P x h", 255, "Bad port \"x\""),
            ("-B 0 h", 255, "Invalid buffer size \"0\""),
            ("-R x h", 255, "Invalid number of requests \"x\""),
            ("-X foo=1 h", 255, "Invalid -X option"),
            ("-b x -b y h", 255, "Batch file already specified."),
            ("sftp://h/%zz", 255, "the URI has a bad %-escape"),
            ("sftp://-oProxyCommand=x/", 255, "host \"-oProxyCommand=x\" is refused"),
        ] {
            let refused = read(line).unwrap_err();
            assert_eq!(exit_code(&refused), code, "{line}");
            assert!(report(&refused).starts_with(&format!("lhsftp: {want}")), "{line}");
        }
        assert!(report(&Refused::Usage(String::new())).lines().all(|line| line.len() <= 80));
    }
}
