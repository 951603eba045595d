//! lhsftp on a terminal: a pty with a session of its own, keys typed into it, and what a screen
//! would show. The server is OpenSSH's, on pipes (`-D`).

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::process::{Child, Command};
use std::sync::mpsc::{Receiver, channel};
use std::thread::sleep;
use std::time::{Duration, Instant};

const OURS: &str = env!("CARGO_BIN_EXE_lhsftp");
const SERVER: &str = "/usr/lib/openssh/sftp-server";

/// What takes longer than this does not come at all.
const LIMIT: Duration = Duration::from_secs(60);

const UP: &str = "\x1b[A";
const DOWN: &str = "\x1b[B";
const INTERRUPT: &str = "\x03";
const END: &str = "\x04";
const TAB: &str = "\t";
const ENTER: &str = "\r";

/// What a terminal shows: as much of one as a line editor and a progress line need.
#[derive(Default)]
struct Screen {
    lines: Vec<Vec<char>>,
    column: usize,
    line: usize,
    bells: usize,
    /// The start of a sequence that has not come whole.
    pending: Vec<u8>,
}

impl Screen {
    fn show(&mut self, bytes: &[u8]) {
        self.pending.extend_from_slice(bytes);
        let bytes = std::mem::take(&mut self.pending);
        let whole = match std::str::from_utf8(&bytes) {
            Ok(text) => text,
            Err(error) => std::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap(),
        };
        let mut rest = whole;
        while let Some(char) = rest.chars().next() {
            let length = match char {
                '\x1b' => match self.sequence(rest) {
                    Some(length) => length,
                    None => break,
                },
                char => {
                    self.character(char);
                    char.len_utf8()
                }
            };
            rest = &rest[length..];
        }
        self.pending = bytes[whole.len() - rest.len()..].to_vec();
    }

    fn character(&mut self, char: char) {
        match char {
            '\r' => self.column = 0,
            '\n' => self.line += 1,
            '\x07' => self.bells += 1,
            '\x08' => self.column = self.column.saturating_sub(1),
            char => {
                let column = self.column;
                let line = self.current();
                if line.len() <= column {
                    line.resize(column + 1, ' ');
                }
                line[column] = char;
                self.column += 1;
            }
        }
    }

    fn current(&mut self) -> &mut Vec<char> {
        if self.lines.len() <= self.line {
            self.lines.resize(self.line + 1, Vec::new());
        }
        &mut self.lines[self.line]
    }

    /// `ESC [ parameters letter`: its length, if it is all there.
    fn sequence(&mut self, text: &str) -> Option<usize> {
        let body = text.strip_prefix("\x1b")?;
        let Some(body) = body.strip_prefix('[') else {
            return (!body.is_empty()).then_some(2);
        };
        let end = body.find(|char: char| char.is_ascii_alphabetic())?;
        let count = body[..end].parse().unwrap_or(0_usize);
        let (column, line) = (self.column, self.line);
        match &body[end..=end] {
            "A" => self.line = line.saturating_sub(count.max(1)),
            "B" => self.line += count.max(1),
            "C" => self.column += count.max(1),
            "D" => self.column = column.saturating_sub(count.max(1)),
            "G" => self.column = count.saturating_sub(1),
            "K" => self.current().truncate(column),
            "J" => {
                self.current().truncate(column);
                self.lines.truncate(line + 1);
            }
            _ => {} // colours and modes
        }
        Some(2 + end + 1)
    }

    fn text(&self) -> String {
        let line = |line: &Vec<char>| line.iter().collect::<String>().trim_end().to_owned() + "\n";
        self.lines.iter().map(line).collect()
    }

    /// The last line that is not empty.
    fn last(&self) -> String {
        self.text().trim_end().lines().next_back().unwrap_or_default().to_owned()
    }
}

/// lhsftp on a terminal.
struct Terminal {
    child: Child,
    keys: File,
    output: Receiver<Vec<u8>>,
    screen: Screen,
    dir: tempfile::TempDir,
}

impl Terminal {
    /// Starts in a directory with some files, and waits for the prompt. None without OpenSSH.
    fn start(options: &[&str]) -> Option<Self> {
        if !need::require(&[SERVER]) {
            return None;
        }
        let dir = tempfile::tempdir().unwrap();
        for name in ["alpha", "alpine", "b c", "down"] {
            fs::write(dir.path().join(name), name).unwrap();
        }
        fs::create_dir(dir.path().join("box")).unwrap();
        let controller = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&controller).unwrap();
        unlockpt(&controller).unwrap();
        let size = Winsize { ws_row: 50, ws_col: 160, ws_xpixel: 0, ws_ypixel: 0 };
        let name = ptsname(&controller, Vec::new()).unwrap();
        let user = File::options().read(true).write(true).open(OsStr::from_bytes(name.to_bytes()));
        let user = user.unwrap();
        tcsetwinsize(&user, size).unwrap();
        // A session whose terminal this is: its keys become signals.
        let mut command = Command::new("setsid");
        command.args(["--ctty", "--wait", OURS]).args(options).args(["-D", SERVER]);
        command.current_dir(dir.path()).env("TERM", "xterm").env("LC_ALL", "C.UTF-8");
        command.stdin(user.try_clone().unwrap()).stdout(user.try_clone().unwrap()).stderr(user);
        let child = command.spawn().unwrap();
        drop(command); // and with it our copies of the terminal's end
        let keys = File::from(controller);
        let output = watch(keys.try_clone().unwrap());
        let mut terminal = Self { child, keys, output, screen: Screen::default(), dir };
        terminal.prompt();
        Some(terminal)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    /// Waits until the screen is as wanted.
    fn until(&mut self, what: &str, wanted: impl Fn(&Screen) -> bool) {
        let deadline = Instant::now() + LIMIT;
        while !wanted(&self.screen) {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.output.recv_timeout(left) {
                Ok(bytes) => self.screen.show(&bytes),
                Err(_) => panic!("no {what}; the screen is\n{}", self.screen.text()),
            }
        }
    }

    /// Waits until the line that is edited is this.
    fn line(&mut self, line: &str) {
        let wanted = format!("sftp> {line}");
        self.until(&wanted, |screen| screen.last() == wanted.trim_end());
    }

    /// Waits for an empty prompt.
    fn prompt(&mut self) {
        self.line("");
    }

    /// Types a line; what was shown until the next prompt.
    fn command(&mut self, line: &str) -> String {
        self.press(line);
        self.line(line);
        self.enter()
    }

    /// Ends the line; what was shown until the next prompt.
    fn enter(&mut self) -> String {
        let before = self.screen.text().lines().count();
        self.press(ENTER);
        self.until("next prompt", |screen| {
            screen.text().lines().count() > before && screen.last() == "sftp>"
        });
        let text = self.screen.text();
        let lines: Vec<&str> = text.trim_end().lines().skip(before).collect();
        lines[..lines.len() - 1].join("\n")
    }

    /// The exit code.
    fn ended(&mut self) -> Option<i32> {
        let deadline = Instant::now() + LIMIT;
        while Instant::now() < deadline {
            // A terminal nobody reads from would hold its program.
            while let Ok(bytes) = self.output.try_recv() {
                self.screen.show(&bytes);
            }
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code();
            }
            sleep(Duration::from_millis(10));
        }
        panic!("it goes on; the screen is\n{}", self.screen.text());
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn watch(mut controller: File) -> Receiver<Vec<u8>> {
    let (tell, output) = channel();
    std::thread::spawn(move || {
        let mut bytes = vec![0; 4096];
        // An error is the end: nobody has the terminal any more.
        while let Ok(count @ 1..) = controller.read(&mut bytes) {
            if tell.send(bytes[..count].to_vec()).is_err() {
                return;
            }
        }
    });
    output
}

#[test]
fn it_greets_and_prompts_and_says_what_is_no_command() {
    let Some(mut terminal) = Terminal::start(&[]) else { return };
    let text = terminal.screen.text();
    assert!(text.starts_with(&format!("Attached to {SERVER}.\nsftp>")), "{text}");
    let top = terminal.dir.path().canonicalize().unwrap().display().to_string();
    assert_eq!(terminal.command("pwd"), format!("Remote working directory: {top}"));
    assert_eq!(terminal.command("bogus"), "Invalid command.");
    assert_eq!(terminal.command("get \"x"), "Unterminated quoted argument");
    assert_eq!(terminal.command(""), "");
    assert_eq!(terminal.command("get nothing"), format!("File \"{top}/nothing\" not found."));
    terminal.press("bye\r");
    assert_eq!(terminal.ended(), Some(0), "no failure of a line is one of the dialogue");
}

#[test]
fn names_are_in_as_many_columns_as_fit() {
    let Some(mut terminal) = Terminal::start(&[]) else { return };
    let shown = terminal.command("ls");
    let names: Vec<&str> = shown.split_whitespace().collect();
    assert_eq!(shown.lines().count(), 1, "{shown}");
    assert_eq!(names, ["alpha", "alpine", "b", "c", "box", "down"]);
}

#[test]
fn tab_completes_commands_and_paths_of_either_side() {
    let Some(mut terminal) = Terminal::start(&[]) else { return };
    terminal.press("pw\t");
    terminal.line("pwd");
    assert!(terminal.enter().starts_with("Remote working directory: "));
    // Of several, what they have in common, then all of them.
    terminal.press("get al\t");
    terminal.line("get alp");
    terminal.press("\t\t");
    terminal.until("the choices", |screen| screen.text().contains("alpha   alpine"));
    terminal.press("h\t");
    terminal.line("get alpha");
    terminal.press("bo\t");
    terminal.line("get alpha box/");
    terminal.enter();
    assert_eq!(fs::read(terminal.path("box/alpha")).unwrap(), b"alpha");
    terminal.press("rm b\\ \t");
    terminal.line("rm b\\ c");
    terminal.enter();
    assert!(!terminal.path("b c").exists());
}

#[test]
fn tab_completes_nothing_that_is_not_there() {
    let Some(mut terminal) = Terminal::start(&[]) else { return };
    for line in ["zzz", "get zzz", "get nowhere/x"] {
        let bells = terminal.screen.bells;
        terminal.press(line);
        terminal.press(TAB);
        terminal.until("a bell", |screen| screen.bells > bells);
        terminal.line(line);
        terminal.press(INTERRUPT);
        terminal.prompt();
    }
    assert_eq!(terminal.command("version"), "SFTP protocol version 3");
}

#[test]
fn lines_are_remembered() {
    let Some(mut terminal) = Terminal::start(&[]) else { return };
    terminal.command("version");
    terminal.command("bogus");
    terminal.press(UP);
    terminal.line("bogus");
    terminal.press(UP);
    terminal.line("version");
    // There is nothing before the first and nothing after the last.
    terminal.press(UP);
    terminal.press(DOWN);
    terminal.line("bogus");
    terminal.press(DOWN);
    terminal.press(DOWN);
    terminal.prompt();
    terminal.press(UP);
    terminal.press(UP);
    terminal.line("version");
    assert_eq!(terminal.enter(), "SFTP protocol version 3");
}

#[test]
fn at_the_prompt_an_interrupt_drops_the_line_and_the_end_ends() {
    let Some(mut terminal) = Terminal::start(&[]) else { return };
    terminal.press("rm alpha");
    terminal.line("rm alpha");
    terminal.press(INTERRUPT);
    terminal.prompt();
    assert_eq!(terminal.command("version"), "SFTP protocol version 3");
    assert!(terminal.path("alpha").exists());
    terminal.press("pw");
    terminal.line("pw");
    terminal.press(INTERRUPT);
    terminal.prompt();
    terminal.press(END);
    assert_eq!(terminal.ended(), Some(0));
}

/// Bytes of a file that 1 MB/s takes too long for.
const LARGE: usize = 200 << 20;

#[test]
fn an_interrupt_stops_a_transfer_and_leaves_what_can_be_resumed() {
    let Some(mut terminal) = Terminal::start(&["-l", "8000"]) else { return };
    let large = File::create(terminal.path("large")).unwrap();
    large.set_len(LARGE as u64).unwrap();
    terminal.press("get large copy\r");
    // The line is written over as the file grows.
    terminal.until("progress", |screen| {
        let line = screen.last();
        line.contains("/large") && line.ends_with("ETA") && !line.contains("--:--")
    });
    terminal.press(INTERRUPT);
    terminal.until("the end of it", |screen| screen.text().contains("Interrupt"));
    terminal.prompt();
    let part = fs::metadata(terminal.path("copy")).unwrap().len() as usize;
    assert!(0 < part && part < LARGE, "{part}");
    // Nothing of what follows is interrupted, and the part is whole.
    assert_eq!(terminal.command("version"), "SFTP protocol version 3");
    File::options().write(true).open(terminal.path("large")).unwrap().set_len(1 << 20).unwrap();
    let text = terminal.command("reget large copy");
    match part.cmp(&(1 << 20)) {
        std::cmp::Ordering::Greater => assert!(text.contains("Unable to resume"), "{text}"),
        _ => assert_eq!(fs::metadata(terminal.path("copy")).unwrap().len(), 1 << 20),
    }
    terminal.press("bye\r");
    assert_eq!(terminal.ended(), Some(0));
}

#[test]
fn the_progress_line_ends_whole_and_can_be_switched_off() {
    let Some(mut terminal) = Terminal::start(&[]) else { return };
    let shown = terminal.command("get alpha copy");
    let lines: Vec<&str> = shown.lines().collect();
    assert!(lines[0].starts_with("Fetching ") && lines.len() == 2, "{shown}");
    assert!(lines[1].contains("/alpha") && lines[1].contains("100%"), "{shown}");
    assert!(lines[1].contains("peak") && lines[1].len() < 160, "{shown}");
    assert_eq!(terminal.command("progress"), "Progress meter disabled");
    assert_eq!(terminal.command("get alpha copy").lines().count(), 1);
    assert_eq!(terminal.command("progres"), "Invalid command.");
}
