//! Commands of sftp(1), one row each, and what their words mean.

use crate::listing::{Order, View};
use crate::words::{self, Word};
use std::fmt::Write;

/// A path, as it is.
pub(crate) type Path = Vec<u8>;

/// A line of input.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Line<'a> {
    /// As it is echoed.
    pub(crate) text: &'a [u8],
    /// It began with `-`: a failure does not end the batch.
    pub(crate) may_fail: bool,
    /// It began with `@`: it is not echoed.
    pub(crate) silent: bool,
    /// The command; none on an empty line or a comment; or why there is none.
    pub(crate) command: Result<Option<Command>, String>,
}

/// How `get` and `put` go about it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Manner {
    /// Go on where the target ends (`-a`).
    pub(crate) resume: bool,
    /// Have the target on disk before it counts as done (`-f`).
    pub(crate) sync: bool,
    /// Keep times and mode (`-p`).
    pub(crate) preserve: bool,
    /// Directories too (`-R`).
    pub(crate) recursive: bool,
}

impl Manner {
    /// What either asks for.
    pub(crate) fn or(self, other: Self) -> Self {
        Self {
            resume: self.resume || other.resume,
            sync: self.sync || other.sync,
            preserve: self.preserve || other.preserve,
            recursive: self.recursive || other.recursive,
        }
    }
}

/// What `chmod`, `chown` and `chgrp` change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    Mode(u32),
    Owner(u32),
    Group(u32),
}

/// A command with its operands.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Command {
    Cd(Option<Path>),
    Change { what: Change, follow: bool, files: Word },
    Copy { from: Path, to: Path },
    Df { path: Option<Path>, human: bool, inodes: bool },
    Get { manner: Manner, source: Word, target: Option<Path> },
    HardLink { old: Path, new: Path },
    Help,
    LocalCd(Option<Path>),
    LocalList(Vec<u8>),
    LocalMkdir(Path),
    LocalPwd,
    Ls { view: View, files: Option<Word> },
    Mkdir(Path),
    Progress,
    Put { manner: Manner, source: Word, target: Option<Path> },
    Pwd,
    Quit,
    Remove(Word),
    Rename { old: Path, new: Path, plain: bool },
    Rmdir(Path),
    Shell(Vec<u8>),
    SymLink { target: Path, new: Path },
    Umask(u32),
    Version,
}

/// Where the paths of a command lie, for completion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Local,
    Remote,
    Neither,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verb {
    Cd,
    Chgrp,
    Chmod,
    Chown,
    Copy,
    Df,
    Get,
    Help,
    Lcd,
    Link,
    Lls,
    Lmkdir,
    Lpwd,
    Ls,
    Lumask,
    Mkdir,
    Progress,
    Put,
    Pwd,
    Quit,
    Reget,
    Rename,
    Reput,
    Rm,
    Rmdir,
    Symlink,
    Version,
}

struct Row {
    name: &'static str,
    verb: Verb,
    side: Side,
    usage: &'static str,
    help: &'static str,
}

const fn row(
    name: &'static str,
    verb: Verb,
    side: Side,
    usage: &'static str,
    help: &'static str,
) -> Row {
    Row { name, verb, side, usage, help }
}

/// In the order of the help; those without a text are other names of one that has one.
#[rustfmt::skip] // a table
const ROWS: &[Row] = &[
    row("bye", Verb::Quit, Side::Neither, "", "Quit sftp"),
    row("cd", Verb::Cd, Side::Remote, "path", "Change remote directory to 'path'"),
    row("chdir", Verb::Cd, Side::Remote, "", ""),
    row("chgrp", Verb::Chgrp, Side::Remote, "[-h] grp path", "Change group of file 'path' to 'grp'"),
    row("chmod", Verb::Chmod, Side::Remote, "[-h] mode path", "Change permissions of file 'path' to 'mode'"),
    row("chown", Verb::Chown, Side::Remote, "[-h] own path", "Change owner of file 'path' to 'own'"),
    row("copy", Verb::Copy, Side::Remote, "oldpath newpath", "Copy remote file"),
    row("cp", Verb::Copy, Side::Remote, "oldpath newpath", "Copy remote file"),
    row("df", Verb::Df, Side::Remote, "[-hi] [path]", "Display statistics for current directory or\nfilesystem containing 'path'"),
    row("dir", Verb::Ls, Side::Remote, "", ""),
    row("exit", Verb::Quit, Side::Neither, "", "Quit sftp"),
    row("get", Verb::Get, Side::Remote, "[-afpR] remote [local]", "Download file"),
    row("help", Verb::Help, Side::Neither, "", "Display this help text"),
    row("lcd", Verb::Lcd, Side::Local, "path", "Change local directory to 'path'"),
    row("lchdir", Verb::Lcd, Side::Local, "", ""),
    row("lls", Verb::Lls, Side::Local, "[ls-options [path]]", "Display local directory listing"),
    row("lmkdir", Verb::Lmkdir, Side::Local, "path", "Create local directory"),
    row("ln", Verb::Link, Side::Remote, "[-s] oldpath newpath", "Link remote file (-s for symlink)"),
    row("lpwd", Verb::Lpwd, Side::Neither, "", "Print local working directory"),
    row("ls", Verb::Ls, Side::Remote, "[-1afhlnrSt] [path]", "Display remote directory listing"),
    row("lumask", Verb::Lumask, Side::Neither, "umask", "Set local umask to 'umask'"),
    row("mget", Verb::Get, Side::Remote, "", ""),
    row("mkdir", Verb::Mkdir, Side::Remote, "path", "Create remote directory"),
    row("mput", Verb::Put, Side::Local, "", ""),
    row("progress", Verb::Progress, Side::Neither, "", "Toggle display of progress meter"),
    row("put", Verb::Put, Side::Local, "[-afpR] local [remote]", "Upload file"),
    row("pwd", Verb::Pwd, Side::Neither, "", "Display remote working directory"),
    row("quit", Verb::Quit, Side::Neither, "", "Quit sftp"),
    row("reget", Verb::Reget, Side::Remote, "[-fpR] remote [local]", "Resume download file"),
    row("rename", Verb::Rename, Side::Remote, "oldpath newpath", "Rename remote file"),
    row("reput", Verb::Reput, Side::Local, "[-fpR] local [remote]", "Resume upload file"),
    row("rm", Verb::Rm, Side::Remote, "path", "Delete remote file"),
    row("rmdir", Verb::Rmdir, Side::Remote, "path", "Remove remote directory"),
    row("symlink", Verb::Symlink, Side::Remote, "oldpath newpath", "Symlink remote file"),
    row("version", Verb::Version, Side::Neither, "", "Show SFTP version"),
    row("?", Verb::Help, Side::Neither, "", ""),
];

/// The names that begin with `start`, for completion.
pub(crate) fn names(start: &str) -> impl Iterator<Item = &'static str> {
    ROWS.iter().map(|row| row.name).filter(move |name| name.starts_with(start))
}

/// Where the paths of the command of this name lie.
pub(crate) fn side(name: &[u8]) -> Side {
    find(name).map_or(Side::Neither, |row| row.side)
}

/// What `help` prints.
pub(crate) fn help() -> String {
    let mut out = "Available commands:\n".to_owned();
    for row in ROWS.iter().filter(|row| !row.help.is_empty()) {
        let mut left = format!("{} {}", row.name, row.usage);
        for line in row.help.lines() {
            _ = writeln!(out, "{:<34} {line}", left.trim_end());
            left.clear();
        }
    }
    _ = writeln!(out, "{:<34} Execute 'command' in local shell", "!command");
    _ = writeln!(out, "{:<34} Escape to local shell", "!");
    _ = writeln!(out, "{:<34} Synonym for help", "?");
    out
}

fn find(name: &[u8]) -> Option<&'static Row> {
    ROWS.iter().find(|row| row.name.as_bytes().eq_ignore_ascii_case(name))
}

/// Reads a line of input.
pub(crate) fn parse(text: &[u8]) -> Line<'_> {
    let text = text.trim_ascii_start();
    let marks = text.iter().take_while(|&&byte| byte == b'-' || byte == b'@').count();
    let (marks, rest) = text.split_at(marks);
    let command = command(rest.trim_ascii_start());
    Line { text, may_fail: marks.contains(&b'-'), silent: marks.contains(&b'@'), command }
}

fn command(text: &[u8]) -> Result<Option<Command>, String> {
    match text.first() {
        None | Some(b'#') => return Ok(None),
        Some(b'!') => return Ok(Some(Command::Shell(text.get(1..).unwrap_or_default().to_vec()))),
        _ => {}
    }
    let words = words::split(text).map_err(|_| "Unterminated quoted argument".to_owned())?;
    let invalid = || "Invalid command.".to_owned();
    let (name, words) = words.split_first().ok_or_else(invalid)?;
    let row = find(name.pattern()).ok_or_else(invalid)?;
    if row.verb == Verb::Lls {
        let rest = text.get(row.name.len()..).unwrap_or_default();
        return Ok(Some(Command::LocalList(rest.trim_ascii_start().to_vec())));
    }
    Operands { name: row.name, words }.command(row.verb).map(Some)
}

/// The words after a command's name.
struct Operands<'a> {
    name: &'static str,
    words: &'a [Word],
}

impl Operands<'_> {
    fn command(mut self, verb: Verb) -> Result<Command, String> {
        Ok(match verb {
            Verb::Get => self.transfer(Manner::default(), |manner, source, target| {
                Command::Get { manner, source, target }
            })?,
            Verb::Reget => self.transfer(RESUME, |manner, source, target| Command::Get {
                manner,
                source,
                target,
            })?,
            Verb::Put => self.transfer(Manner::default(), |manner, source, target| {
                Command::Put { manner, source, target }
            })?,
            Verb::Reput => self.transfer(RESUME, |manner, source, target| Command::Put {
                manner,
                source,
                target,
            })?,
            Verb::Link => self.link()?,
            Verb::Rename => self.rename()?,
            Verb::Ls => self.ls()?,
            Verb::Df => self.df()?,
            Verb::Chmod => self.change(8, Change::Mode)?,
            Verb::Chown => self.change(10, Change::Owner)?,
            Verb::Chgrp => self.change(10, Change::Group)?,
            _ => {
                self.flags("", |_| {})?;
                self.plain(verb)?
            }
        })
    }

    /// Commands that take no flags.
    fn plain(&mut self, verb: Verb) -> Result<Command, String> {
        Ok(match verb {
            Verb::Cd => Command::Cd(self.path()),
            Verb::Lcd => Command::LocalCd(self.path()),
            Verb::Lmkdir => Command::LocalMkdir(self.one_path()?),
            Verb::Mkdir => Command::Mkdir(self.one_path()?),
            Verb::Rmdir => Command::Rmdir(self.one_path()?),
            Verb::Rm => Command::Remove(self.word().ok_or_else(|| self.need("a path"))?),
            Verb::Copy => {
                let (from, to) = self.two_paths()?;
                Command::Copy { from, to }
            }
            Verb::Symlink => {
                let (target, new) = self.two_paths()?;
                Command::SymLink { target, new }
            }
            Verb::Lumask => Command::Umask(self.number(8)?),
            Verb::Progress => Command::Progress,
            Verb::Pwd => Command::Pwd,
            Verb::Lpwd => Command::LocalPwd,
            Verb::Version => Command::Version,
            Verb::Quit => Command::Quit,
            _ => Command::Help,
        })
    }

    fn transfer(
        &mut self,
        mut manner: Manner,
        make: impl FnOnce(Manner, Word, Option<Path>) -> Command,
    ) -> Result<Command, String> {
        self.flags("afPpRr", |flag| match flag {
            b'a' => manner.resume = true,
            b'f' => manner.sync = true,
            b'p' | b'P' => manner.preserve = true,
            _ => manner.recursive = true,
        })?;
        let source = self.word().ok_or_else(|| self.need("at least one path"))?;
        let target = self.path();
        Ok(make(manner, source, target))
    }

    fn link(&mut self) -> Result<Command, String> {
        let mut symbolic = false;
        self.flags("s", |_| symbolic = true)?;
        let (old, new) = self.two_paths()?;
        Ok(match symbolic {
            true => Command::SymLink { target: old, new },
            false => Command::HardLink { old, new },
        })
    }

    fn rename(&mut self) -> Result<Command, String> {
        let mut plain = false;
        self.flags("l", |_| plain = true)?;
        let (old, new) = self.two_paths()?;
        Ok(Command::Rename { old, new, plain })
    }

    fn df(&mut self) -> Result<Command, String> {
        let (mut human, mut inodes) = (false, false);
        self.flags("hi", |flag| match flag {
            b'h' => human = true,
            _ => inodes = true,
        })?;
        Ok(Command::Df { path: self.path(), human, inodes })
    }

    fn ls(&mut self) -> Result<Command, String> {
        let mut view = View::default();
        self.flags("1Safhlnrt", |flag| match flag {
            b'1' => (view.single, view.long) = (true, false),
            b'l' => (view.single, view.long, view.numeric) = (false, true, false),
            b'n' => (view.single, view.long, view.numeric) = (false, true, true),
            b'a' => view.all = true,
            b'f' => view.order = Order::AsListed,
            b'S' => view.order = Order::Size,
            b't' => view.order = Order::Time,
            b'h' => view.human = true,
            _ => view.reverse = true,
        })?;
        Ok(Command::Ls { view, files: self.word() })
    }

    fn change(&mut self, base: u32, what: fn(u32) -> Change) -> Result<Command, String> {
        let mut follow = true;
        self.flags("h", |_| follow = false)?;
        let what = what(self.number(base)?);
        let files = self.word().ok_or_else(|| self.need("a path"))?;
        Ok(Command::Change { what, follow, files })
    }

    /// Takes the flags before the first operand, as getopt(3) does.
    fn flags(&mut self, known: &str, mut seen: impl FnMut(u8)) -> Result<(), String> {
        while let Some((word, rest)) = self.words.split_first()
            && let [b'-', letters @ ..] = word.pattern()
            && !letters.is_empty()
        {
            self.words = rest;
            if letters == b"-" {
                break;
            }
            for &letter in letters {
                if !known.as_bytes().contains(&letter) {
                    let letter = crate::escape::shown(&[letter]);
                    return Err(format!("{}: Invalid flag -{letter}", self.name));
                }
                seen(letter);
            }
        }
        Ok(())
    }

    fn word(&mut self) -> Option<Word> {
        let (word, rest) = self.words.split_first()?;
        self.words = rest;
        Some(word.clone())
    }

    fn path(&mut self) -> Option<Path> {
        self.word().map(|word| word.literal())
    }

    fn one_path(&mut self) -> Result<Path, String> {
        self.path().ok_or_else(|| self.need("a path"))
    }

    fn two_paths(&mut self) -> Result<(Path, Path), String> {
        let paths = self.path().zip(self.path());
        paths.ok_or_else(|| self.need("two paths"))
    }

    fn number(&mut self, base: u32) -> Result<u32, String> {
        let word = self.word();
        let text = word.as_ref().and_then(|word| std::str::from_utf8(word.pattern()).ok());
        text.and_then(|text| u32::from_str_radix(text, base).ok()).ok_or_else(|| {
            format!("You must supply a numeric argument to the {} command.", self.name)
        })
    }

    fn need(&self, what: &str) -> String {
        format!("You must specify {what} after a {} command.", self.name)
    }
}

const RESUME: Manner = Manner { resume: true, sync: false, preserve: false, recursive: false };

#[cfg(test)]
mod tests {
    use super::*;

    fn command(text: &str) -> Command {
        parse(text.as_bytes()).command.unwrap().unwrap()
    }

    fn refused(text: &str) -> String {
        parse(text.as_bytes()).command.unwrap_err()
    }

    #[test]
    fn marks_are_read_in_any_order() {
        for (text, may_fail, silent) in [
            ("ls", false, false),
            ("-ls", true, false),
            ("@ls", false, true),
            ("-@ ls", true, true),
            ("  @-ls", true, true),
        ] {
            let line = parse(text.as_bytes());
            assert_eq!((line.may_fail, line.silent), (may_fail, silent), "{text}");
            assert_eq!(line.command, Ok(Some(Command::Ls { view: View::default(), files: None })));
        }
        assert_eq!(parse(b" \t# get x").command, Ok(None));
        assert_eq!(parse(b"").command, Ok(None));
    }

    #[test]
    fn paths_and_patterns_are_told_apart() {
        let Command::Get { manner, source, target } = command("get -aPf 'x*' \"a?\" ") else {
            panic!()
        };
        assert_eq!(manner, Manner { resume: true, sync: true, preserve: true, recursive: false });
        assert_eq!((source.pattern(), target), (&b"x\\*"[..], Some(b"a?".to_vec())));
        assert_eq!(command("MKDIR a\\*"), Command::Mkdir(b"a*".to_vec()));
        let Command::Remove(word) = command("rm a*") else { panic!() };
        assert_eq!(word.pattern(), b"a*");
        assert_eq!(command("cd"), Command::Cd(None));
        assert_eq!(command("mkdir -- -x"), Command::Mkdir(b"-x".to_vec()));
    }

    #[test]
    fn numbers_have_their_base() {
        let mode = command("chmod -h 0644 x");
        assert!(matches!(mode, Command::Change { what: Change::Mode(0o644), follow: false, .. }));
        let owner = command("chown 10 x");
        assert!(matches!(owner, Command::Change { what: Change::Owner(10), follow: true, .. }));
        assert_eq!(command("lumask 77"), Command::Umask(0o77));
        for text in ["chmod 888 x", "chown root x", "chown -- -1 x", "lumask", "chgrp 4294967296 x"]
        {
            assert!(refused(text).starts_with("You must supply a numeric argument"), "{text}");
        }
    }

    #[test]
    fn the_rest_of_the_line_goes_to_the_shell_as_it_is() {
        assert_eq!(command("!echo 'a  b' #c"), Command::Shell(b"echo 'a  b' #c".to_vec()));
        assert_eq!(command("! "), Command::Shell(b" ".to_vec()));
        assert_eq!(command("lls  -l 'x y'"), Command::LocalList(b"-l 'x y'".to_vec()));
    }

    #[test]
    fn wrong_lines_are_answered_as_sftp_does() {
        for (text, want) in [
            ("jajaja", "Invalid command."),
            ("get", "You must specify at least one path after a get command."),
            ("mput -R", "You must specify at least one path after a mput command."),
            ("rename a", "You must specify two paths after a rename command."),
            ("rmdir", "You must specify a path after a rmdir command."),
            ("chmod 644", "You must specify a path after a chmod command."),
            ("get -z x", "get: Invalid flag -z"),
            ("ls -lz", "ls: Invalid flag -z"),
            ("mkdir -p x", "mkdir: Invalid flag -p"),
            ("get \"x", "Unterminated quoted argument"),
        ] {
            assert_eq!(refused(text), want, "{text}");
        }
    }

    #[test]
    fn names_are_completed() {
        assert_eq!(names("lm").collect::<Vec<_>>(), ["lmkdir"]);
        assert_eq!(side(b"put"), Side::Local);
        assert_eq!(side(b"GET"), Side::Remote);
        assert_eq!(side(b"nothing"), Side::Neither);
    }
}
