//! The command line of lhscp: scp(1)'s letters with their meaning, and options of our own.
//!
//! Both are rows of tables in `letters`. What is read here is checked as far as that needs no file
//! and no network; `plan` makes [`copy::Options`] of it.

use crate::letters::{FLAGS, LONGS, Long, help};
use crate::units;
use crate::uri::Operand;
use conf::flags::{self, Given, Refused};
use conf::{Setting, client::Files};
use copy::filter::{Filter, Pattern};
use copy::list::List;
use copy::options::{Amount, Lanes};
use copy::shard::Shard;
use lexopt::{Arg, Parser};
use std::ffi::{OsStr, OsString};
use std::num::{NonZeroU32, NonZeroU64};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What the command line asks for.
#[derive(Debug)]
pub(crate) enum Invocation {
    /// `-V`.
    Version,
    /// `--help`: this text.
    Help(String),
    /// `--self-test`, below this directory.
    SelfTest {
        dir: PathBuf,
        /// `--server`: instead of lhsshd.
        server: Option<PathBuf>,
    },
    /// A copy.
    Copy(Box<Args>),
}

/// A copy as the command line has it.
#[derive(Debug)]
pub(crate) struct Args {
    pub(crate) sources: Vec<Operand>,
    pub(crate) target: Operand,
    pub(crate) connect: Connect,
    pub(crate) what: What,
    pub(crate) show: Show,
}

/// How hosts are reached.
#[derive(Debug, Default)]
pub(crate) struct Connect {
    /// Settings in their order; the first of a keyword counts.
    pub(crate) settings: Vec<Setting>,
    /// Which files are read.
    pub(crate) files: Files,
    /// `-F` as given, for `-S`.
    pub(crate) config: Option<PathBuf>,
    /// `-D`.
    pub(crate) server: Option<PathBuf>,
    /// `-S`.
    pub(crate) program: Option<PathBuf>,
}

/// What is copied and how.
#[derive(Debug)]
pub(crate) struct What {
    pub(crate) recursive: bool,
    pub(crate) preserve: bool,
    pub(crate) lanes: Lanes,
    pub(crate) verify: bool,
    pub(crate) inplace: bool,
    pub(crate) fsync: bool,
    pub(crate) delay_updates: bool,
    pub(crate) dry_run: bool,
    pub(crate) bwlimit: Option<NonZeroU64>,
    pub(crate) filter: Filter,
    pub(crate) list: Option<List>,
    pub(crate) shard: Option<Shard>,
    pub(crate) test: Option<Test>,
}

/// `-t`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Test {
    pub(crate) amount: Amount,
    /// Then as much the other way.
    pub(crate) both: bool,
}

/// How long a test takes each way that was given no size.
const WHILE: Duration = Duration::from_secs(5);

/// What is shown meanwhile.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Show {
    pub(crate) quiet: bool,
    pub(crate) verbose: u8,
    pub(crate) json: bool,
}

/// Reads the arguments after the program's name; an error is one line.
pub(crate) fn parse(args: impl IntoIterator<Item = OsString>) -> Result<Invocation, String> {
    let mut parser = Parser::from_args(args);
    parser.set_short_equals(false);
    let mut line = Line::default();
    while let Some(arg) = parser.next().map_err(display)? {
        let stop = match arg {
            Arg::Short(letter) => line.letter(letter, &mut parser)?,
            Arg::Long(name) => {
                let name = name.to_owned();
                line.long(&name, &mut parser)?
            }
            Arg::Value(operand) => {
                line.operands.push(Operand::parse(&operand)?);
                None
            }
        };
        if let Some(stop) = stop {
            return Ok(stop);
        }
    }
    line.finish()
}

/// One line, without the usage.
fn why(refused: Refused) -> String {
    match refused {
        Refused::Usage(why) | Refused::Value(why) => why,
    }
}

/// What has been read so far.
struct Line {
    operands: Vec<Operand>,
    connect: Connect,
    what: What,
    show: Show,
    rules: Vec<Pattern>,
    files_from: Option<PathBuf>,
    nul: bool,
    test: bool,
    size: Option<NonZeroU64>,
    self_test: Option<PathBuf>,
    server: Option<PathBuf>,
}

impl Default for Line {
    fn default() -> Self {
        let what = What {
            recursive: false,
            preserve: false,
            lanes: Lanes::Auto,
            verify: false,
            inplace: false,
            fsync: true,
            delay_updates: false,
            dry_run: false,
            bwlimit: None,
            filter: Filter::default(),
            list: None,
            shard: None,
            test: None,
        };
        Self {
            operands: Vec::new(),
            connect: Connect::default(),
            what,
            show: Show::default(),
            rules: Vec::new(),
            files_from: None,
            nul: false,
            test: false,
            size: None,
            self_test: None,
            server: None,
        }
    }
}

impl Line {
    fn letter(&mut self, letter: char, parser: &mut Parser) -> Result<Option<Invocation>, String> {
        match flags::read(FLAGS, letter, parser).map_err(why)? {
            Given::Own(value) => {
                return self.own(letter, &value).map_err(|why| format!("-{letter}: {why}"));
            }
            Given::Setting(setting) => self.connect.settings.push(setting),
            Given::Nothing => {}
        }
        Ok(None)
    }

    fn own(&mut self, letter: char, value: &OsStr) -> Result<Option<Invocation>, String> {
        match letter {
            '0' => self.nul = true,
            'D' => self.connect.server = Some(program(value)?),
            'F' => {
                self.connect.files = Files::from_option(Path::new(value));
                self.connect.config = Some(PathBuf::from(value));
            }
            'l' => self.what.bwlimit = Some(units::kbit(text(value)?)?),
            'n' => self.what.lanes = lanes(text(value)?)?,
            'o' => self.connect.settings.push(Setting::option(text(value)?).map_err(display)?),
            'p' => self.what.preserve = true,
            'q' => (self.show.quiet, self.show.verbose) = (true, 0),
            'r' => self.what.recursive = true,
            'S' => self.connect.program = Some(program(value)?),
            't' => self.test = true,
            'V' => return Ok(Some(Invocation::Version)),
            'X' => sftp_option(text(value)?)?,
            _ => {
                self.show.quiet = false;
                self.show.verbose = self.show.verbose.saturating_add(1);
            }
        }
        Ok(None)
    }

    fn long(&mut self, name: &str, parser: &mut Parser) -> Result<Option<Invocation>, String> {
        let option = LONGS.iter().find(|Long(known, ..)| *known == name);
        let unknown = || format!("unknown option --{name} (--help lists them)");
        let Long(_, value, _) = option.ok_or_else(unknown)?;
        let missing = |_| format!("--{name} needs a value");
        let value = value.map(|_| parser.value()).transpose().map_err(missing)?;
        self.own_long(name, &value.unwrap_or_default()).map_err(|why| format!("--{name}: {why}"))
    }

    fn own_long(&mut self, name: &str, value: &OsStr) -> Result<Option<Invocation>, String> {
        match name {
            "verify" => self.what.verify = true,
            "inplace" => self.what.inplace = true,
            "no-fsync" => self.what.fsync = false,
            "delay-updates" => self.what.delay_updates = true,
            "dry-run" => self.what.dry_run = true,
            "bwlimit" => self.what.bwlimit = Some(units::rate(text(value)?)?),
            "include" | "exclude" => self.rule(name == "include", text(value)?)?,
            "files-from" => self.files_from = Some(PathBuf::from(value)),
            "from0" => self.nul = true,
            "json" => self.show.json = true,
            "shard" => self.what.shard = Some(Shard::parse(text(value)?)?),
            "size" => {
                let size = NonZeroU64::new(units::size(text(value)?)?);
                self.size = Some(size.ok_or("nothing would be moved")?);
            }
            "self-test" => self.self_test = Some(PathBuf::from(value)),
            "server" => self.server = Some(PathBuf::from(value)),
            "help" => return Ok(Some(Invocation::Help(help()))),
            "version" => return Ok(Some(Invocation::Version)),
            _ => {}
        }
        Ok(None)
    }

    /// A rule is compiled on its own as well, so that an error names its option.
    fn rule(&mut self, include: bool, text: &str) -> Result<(), String> {
        let rule = Pattern { include, text: text.to_owned() };
        Filter::new(std::slice::from_ref(&rule))?;
        self.rules.push(rule);
        Ok(())
    }

    fn finish(mut self) -> Result<Invocation, String> {
        let missing = || "give a source and a target (--help shows how)".to_owned();
        if let Some(dir) = self.self_test {
            let alone = self.operands.is_empty();
            let alone = alone.then_some(Invocation::SelfTest { dir, server: self.server });
            return alone.ok_or_else(|| "--self-test takes no source and no target".to_owned());
        }
        if self.server.is_some() {
            return Err("--server belongs to --self-test".to_owned());
        }
        let target = self.operands.pop().ok_or_else(missing)?;
        self.take_test(&target)?;
        if self.operands.is_empty() {
            return Err(format!("no target: {}", missing()));
        }
        self.what.filter = Filter::new(&self.rules)?;
        self.take_list()?;
        self.check()?;
        let level = flags::log_level(self.show.quiet, self.show.verbose);
        self.connect.settings.splice(0..0, level);
        let Self { operands: sources, connect, what, show, .. } = self;
        Ok(Invocation::Copy(Box::new(Args { sources, target, connect, what, show })))
    }

    fn take_list(&mut self) -> Result<(), String> {
        match self.files_from.take() {
            None if self.nul => {
                Err("--from0 says how to read --files-from, which is missing".into())
            }
            Some(_) if self.operands.len() > 1 => {
                Err("--files-from names files below one source; give one source".into())
            }
            file => {
                let file = file.map(|file| Some(file).filter(|file| file != Path::new("-")));
                self.what.list = file.map(|file| List { file, nul: self.nul });
                Ok(())
            }
        }
    }

    /// `-t host:` is both ways; with a second operand, which stands for this host, one.
    fn take_test(&mut self, target: &Operand) -> Result<(), String> {
        if !self.test {
            return match self.size {
                Some(_) => Err("--size belongs to -t".into()),
                None => Ok(()),
            };
        }
        let remote = |operand: &Operand| matches!(operand, Operand::Remote { .. });
        let both = self.operands.is_empty();
        let far = self.operands.iter().chain([target]).filter(|o| remote(o)).count();
        if self.operands.len() > 1 || far != 1 {
            let how = "'-t host:' both ways, '-t . host:' sends, '-t host: .' receives";
            return Err(format!("-t tests the way to one host: {how}"));
        }
        if both {
            self.operands.push(Operand::Local(PathBuf::from(".")));
        }
        let amount = self.size.map_or(Amount::Time(WHILE), Amount::Bytes);
        self.what.test = Some(Test { amount, both });
        match self.means_files() {
            Some(option) => Err(format!("-t copies no file: {option} means nothing with it")),
            None => Ok(()),
        }
    }

    /// An option that was given and is about files.
    fn means_files(&self) -> Option<&'static str> {
        let What { verify, inplace, delay_updates, dry_run, shard, .. } = &self.what;
        let given = [
            ("--verify", *verify),
            ("--inplace", *inplace),
            ("--delay-updates", *delay_updates),
            ("--dry-run", *dry_run),
            ("--shard", shard.is_some()),
            ("--files-from", self.files_from.is_some()),
            ("--include or --exclude", !self.rules.is_empty()),
        ];
        given.into_iter().find(|(_, given)| *given).map(|(option, _)| option)
    }

    fn check(&self) -> Result<(), String> {
        match self.what {
            What { inplace: true, delay_updates: true, .. } => {
                Err("--inplace and --delay-updates exclude each other".into())
            }
            _ => Ok(()),
        }
    }
}

fn display(error: impl std::fmt::Display) -> String {
    error.to_string()
}

/// Options are text; only operands may be any bytes.
fn text(value: &OsStr) -> Result<&str, String> {
    flags::text(value).map_err(why)
}

fn program(value: &OsStr) -> Result<PathBuf, String> {
    match value.is_empty() {
        true => Err("the name of the program is empty".to_owned()),
        false => Ok(PathBuf::from(value)),
    }
}

/// More lanes than a server would take sessions and logins only fail slowly.
const MOST_LANES: u32 = 256;

fn lanes(text: &str) -> Result<Lanes, String> {
    let wrong = || format!("'{text}' is neither auto nor a number from 1 to {MOST_LANES}");
    match text {
        "auto" => Ok(Lanes::Auto),
        text => {
            let number = text.parse::<NonZeroU32>().ok().filter(|n| n.get() <= MOST_LANES);
            number.map(Lanes::Fixed).ok_or_else(wrong)
        }
    }
}

/// scp's `-X`: how much its one channel keeps in flight. Here that is measured, so a well-formed
/// one changes nothing.
fn sftp_option(text: &str) -> Result<(), String> {
    let known = text.split_once('=').is_some_and(|(name, value)| {
        matches!(name, "nrequests" | "buffer") && value.bytes().all(|b| b.is_ascii_alphanumeric())
    });
    known.then_some(()).ok_or_else(|| format!("'{text}' is neither nrequests=N nor buffer=SIZE"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<Invocation, String> {
        parse(line.split_whitespace().map(OsString::from))
    }

    fn args(line: &str) -> Args {
        match read(line) {
            Ok(Invocation::Copy(args)) => *args,
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn letters_combine_and_stand_anywhere() {
        let args = args("-rp a -qP22 h:b -vv h:");
        assert!(args.what.recursive && args.what.preserve);
        assert_eq!((args.show.quiet, args.show.verbose), (false, 2));
        assert_eq!(args.sources.len(), 2);
        let settings = args.connect.settings.iter().map(|s| format!("{}={}", s.keyword, s.rest));
        assert_eq!(settings.collect::<Vec<_>>(), ["LogLevel=DEBUG2", "Port=22"]);
    }

    #[test]
    fn letters_that_change_nothing_are_accepted() {
        let args = args("-3ATs -X nrequests=64 -X buffer=32k a h:");
        assert!(args.connect.settings.is_empty());
    }

    #[test]
    fn long_options_take_their_value_either_way() {
        let args = args("--bwlimit=10M --exclude *.o --shard 2/4 --no-fsync a h:");
        assert_eq!(args.what.bwlimit.unwrap().get(), 10 << 20);
        assert!(!args.what.filter.allows(b"d/x.o", false));
        assert_eq!(args.what.shard.unwrap().to_string(), "2/4");
        assert!(!args.what.fsync);
    }

    #[test]
    fn what_follows_two_dashes_is_an_operand() {
        let args = args("-- -x h:");
        assert_eq!(args.sources, [Operand::Local("-x".into())]);
    }

    #[test]
    fn a_list_is_a_file_or_standard_input() {
        let list = |line| args(line).what.list.unwrap();
        assert_eq!(list("--files-from - -0 a h:"), List { file: None, nul: true });
        assert_eq!(list("--files-from f a h:"), List { file: Some("f".into()), nul: false });
    }

    #[test]
    fn test_mode_is_for_a_size_or_a_while_one_way_or_both() {
        let test = |line: &str| args(line).what.test.unwrap();
        let size = NonZeroU64::new(64 << 20).unwrap();
        assert_eq!(test("-t . h:"), Test { amount: Amount::Time(WHILE), both: false });
        assert_eq!(test("-t --size 64M h: ."), Test { amount: Amount::Bytes(size), both: false });
        assert_eq!(test("-t h:"), Test { amount: Amount::Time(WHILE), both: true });
        assert_eq!(args("-t h:").sources, [Operand::Local(".".into())]);
        assert_eq!(args("a h:").what.test, None);
    }

    #[test]
    fn wrong_lines_say_what_and_why() {
        let cases = [
            ("", "give a source and a target (--help shows how)"),
            ("a", "no target: give a source and a target (--help shows how)"),
            ("-Z a b", "unknown option -- Z"),
            ("--zap a b", "unknown option --zap (--help lists them)"),
            ("a b -P", "option requires an argument -- P"),
            ("a b --shard", "--shard needs a value"),
            ("--verify=x a h:", "unexpected argument for option '--verify': \"x\""),
            ("--shard 5/4 a h:", "--shard: '5/4': the part is from 1 to 4"),
            ("--bwlimit 100 a h:", "--bwlimit: '100' is not a rate, such as"),
            ("--exclude [a a h:", "--exclude: pattern '[a': "),
            ("-l x a h:", "-l: 'x' is not a number of Kbit/s"),
            ("-n 0 a h:", "-n: '0' is neither auto nor a number from 1 to 256"),
            ("-n 257 a h:", "-n: '257' is neither"),
            ("-O a h:", "-O is not supported yet: it asks for scp's old protocol"),
            ("-R a:x b:", "-R is not supported yet: "),
            ("-X window=1 a h:", "-X: 'window=1' is neither"),
            ("--inplace --delay-updates a h:", "--inplace and --delay-updates exclude"),
            ("-0 a h:", "--from0 says how to read --files-from"),
            ("--files-from f a b h:", "--files-from names files below one source"),
            ("--size 1G a h:", "--size belongs to -t"),
            ("-t", "give a source and a target (--help shows how)"),
            ("-t a", "-t tests the way to one host: '-t host:' both ways"),
            ("-t a b", "-t tests the way to one host"),
            ("-t a:x b:y", "-t tests the way to one host"),
            ("-t a b h:", "-t tests the way to one host"),
            ("-t --size 0 h:", "--size: nothing would be moved"),
            ("-t --size 1x h:", "--size: '1x' is not a size, such as 64K or 4G"),
            ("-t --dry-run h:", "-t copies no file: --dry-run means nothing with it"),
            ("-t --exclude x . h:", "-t copies no file: --include or --exclude means"),
            ("-- -oProxyCommand=x:a b", "host \"-oProxyCommand=x\" is refused: it starts with '-'"),
        ];
        for (line, want) in cases {
            let why = read(line).map(|_| ()).expect_err(line);
            assert!(why.starts_with(want), "{line}: {why}");
            assert!(!why.contains('\n'), "{line}: {why}");
        }
    }
}
