//! Checks: what a client and a server must do together, whoever they are.

use crate::client::Client;
use crate::lab::{Lab, program};
use crate::run::{Input, Outcome, Output, run};
use crate::server::{Kind, Server};
use anyhow::{Context, Result, bail, ensure};
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const SHORT: Duration = Duration::from_secs(30);

/// How long a transfer may take: nobody here is slower than 1 MB/s, however busy the machine.
fn patience(size: u64) -> Duration {
    Duration::from_secs(60 + size / 1_000_000)
}

/// A client and the server it talks to.
pub struct Pair {
    /// Keys and files.
    pub lab: Lab,
    /// The client's program.
    pub client: Client,
    /// The running server.
    pub server: Server,
    /// More words for the client.
    pub args: Vec<String>,
    /// The user key's type.
    pub key: &'static str,
}

impl Pair {
    /// Starts the server; nothing when one of the two cannot run here.
    pub fn start(client: Client, server: Kind) -> Option<Self> {
        Self::with(client, server, &[], &[])
    }

    /// The same with more words for the client and more lines for the server's configuration.
    pub fn with(client: Client, server: Kind, args: &[&str], config: &[&str]) -> Option<Self> {
        if !client.available() || !server.available() {
            return None;
        }
        let made = Lab::new().and_then(|lab| Ok((Server::start(&lab, server, config)?, lab)));
        match made {
            Ok((server, lab)) => {
                let args = args.iter().map(|word| (*word).to_owned()).collect();
                Some(Self { lab, client, server, args, key: "ed25519" })
            }
            Err(why) => panicked(&why),
        }
    }

    /// Runs a check and panics, with both ends' words, when it fails.
    pub fn must(&self, check: impl FnOnce(&Self) -> Result<()>) {
        if let Err(why) = check(self) {
            let (client, server) = (self.client, self.server.kind);
            panicked(&why.context(format!("{client:?} to {server:?}: {}", self.server.log())))
        }
    }

    /// The client's command for `remote`.
    pub fn command(&self, remote: &str) -> Result<Command> {
        let args: Vec<&str> = self.args.iter().map(String::as_str).collect();
        self.client.command(&self.lab, &self.server, self.key, &args, remote)
    }

    /// Runs `remote` to its end.
    pub fn run(&self, remote: &str, input: Input) -> Result<Outcome> {
        run(self.command(remote)?, input, Output::Keep, SHORT)
    }
}

#[expect(clippy::panic, reason = "tests fail by panicking")]
fn panicked(why: &anyhow::Error) -> ! {
    panic!("{why:#}")
}

fn done(outcome: &Outcome) -> Result<()> {
    ensure!(outcome.status == 0, "status {}: {}", outcome.status, outcome.stderr);
    Ok(())
}

/// A short transfer there and back: `cat` returns what it was sent and ends at end of file.
pub fn echo(pair: &Pair) -> Result<()> {
    const SIZE: u64 = 300_000;
    let outcome =
        run(pair.command("cat")?, Input::Stream(SIZE, 1), Output::Compare(SIZE, 1), SHORT)?;
    done(&outcome)
}

/// The command's exit status is the client's.
pub fn exit_status(pair: &Pair) -> Result<()> {
    for status in [0, 1, 127, 128, 254, 255] {
        let outcome = pair.run(&format!("exit {status}"), Input::Empty)?;
        ensure!(outcome.status == status, "{} instead of {status}", outcome.status);
    }
    Ok(())
}

/// A command that a signal ended is no success. ssh says 255, others 128 and the number.
pub fn killed_by_a_signal(pair: &Pair) -> Result<()> {
    let outcome = pair.run("kill -TERM $$", Input::Empty)?;
    ensure!([143, 255].contains(&outcome.status), "status {}", outcome.status);
    Ok(())
}

/// stdout and stderr arrive apart, whole, and in order each.
pub fn stderr_apart(pair: &Pair) -> Result<()> {
    let script = "i=0; while [ $i -lt 2000 ]; do echo out $i; echo err $i >&2; i=$((i+1)); done";
    let outcome = pair.run(script, Input::Empty)?;
    done(&outcome)?;
    let lines = |word: &str| (0..2000).map(|i| format!("{word} {i}\n")).collect::<String>();
    ensure!(outcome.stdout == lines("out").into_bytes(), "stdout is not what was written");
    // Some clients, dbclient for one, have a word of their own to say first.
    let exact = matches!(pair.client, Client::Ours | Client::OpenSsh);
    let whole = if exact {
        outcome.stderr == lines("err")
    } else {
        outcome.stderr.ends_with(&lines("err"))
    };
    ensure!(whole, "stderr is not what was written");
    Ok(())
}

/// End of file on stdin closes one direction only: the answer comes after it.
pub fn half_close(pair: &Pair) -> Result<()> {
    let outcome =
        pair.run("cat >/dev/null; sleep 0.3; echo after", Input::Bytes(vec![7; 100_000]))?;
    done(&outcome)?;
    ensure!(outcome.stdout == b"after\n", "{:?}", outcome.stdout);
    Ok(())
}

/// A command that ends while its stdin is open ends the client.
pub fn end_with_stdin_open(pair: &Pair) -> Result<()> {
    let outcome = pair.run("echo here; exit 3", Input::Held)?;
    ensure!(outcome.status == 3 && outcome.stdout == b"here\n", "{outcome:?}");
    Ok(())
}

/// A command that stops reading does not hang a client that has more to send.
pub fn reader_gone(pair: &Pair) -> Result<()> {
    let outcome = pair.run("head -c 100000 | wc -c; exit 4", Input::Stream(64 << 20, 1))?;
    ensure!(outcome.status == 4, "{} {}", outcome.status, outcome.stderr);
    ensure!(String::from_utf8_lossy(&outcome.stdout).trim() == "100000", "{:?}", outcome.stdout);
    Ok(())
}

/// Starts a client whose standard output nobody reads after two bytes of it.
fn unread(mut command: Command, stdin: Stdio, stderr: Stdio) -> Result<Child> {
    let (mut reader, writer) = std::io::pipe()?;
    let child = command.stdin(stdin).stdout(writer).stderr(stderr).spawn()?;
    drop(command); // holds the pipe's writing end too
    reader.read_exact(&mut [0; 2])?;
    Ok(child)
}

/// The client ends, and quietly, when nobody reads its stdout any more: `yes | head -1`. ssh does
/// so with servers that call themselves OpenSSH; from others it takes everything to the end.
pub fn consumer_gone(pair: &Pair) -> Result<()> {
    let mut child = unread(pair.command("yes")?, Stdio::null(), Stdio::piped())?;
    crate::run::wait(&mut child, SHORT)?;
    let mut said = String::new();
    child.stderr.take().context("stderr")?.read_to_string(&mut said)?;
    ensure!(said.is_empty(), "said {said:?}");
    Ok(())
}

/// The same, with the client's standard input open as at a terminal; and nothing is left running.
pub fn consumer_gone_and_command(pair: &Pair) -> Result<()> {
    let pid = pair.lab.path("pid");
    let remote = format!("echo $$ >{}; exec yes", pid.display());
    let mut child = unread(pair.command(&remote)?, Stdio::piped(), Stdio::null())?;
    let stdin = child.stdin.take();
    crate::run::wait(&mut child, SHORT)?;
    drop(stdin);
    let process = Path::new("/proc").join(std::fs::read_to_string(&pid)?.trim());
    let deadline = Instant::now() + SHORT;
    while process.exists() {
        ensure!(Instant::now() < deadline, "the command goes on");
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

/// What a command says of its standard output that nobody reads any more still comes.
pub fn consumer_gone_and_stderr(pair: &Pair) -> Result<()> {
    let command = pair.command("yes; echo after >&2")?;
    let mut child = unread(command, Stdio::null(), Stdio::piped())?;
    let status = crate::run::wait(&mut child, SHORT)?;
    let mut said = String::new();
    child.stderr.take().context("stderr")?.read_to_string(&mut said)?;
    ensure!(status.success() && said == "after\n", "{status}: {said:?}");
    Ok(())
}

/// A command line longer than a packet of 32 KiB.
pub fn long_command(pair: &Pair) -> Result<()> {
    let word = "x".repeat(100_000);
    let outcome = pair.run(&format!("printf %s {word} | wc -c"), Input::Empty)?;
    done(&outcome)?;
    ensure!(String::from_utf8_lossy(&outcome.stdout).trim() == "100000", "{:?}", outcome.stdout);
    Ok(())
}

/// `size` bytes to the server, compared there.
pub fn upload(pair: &Pair, size: u64) -> Result<()> {
    let check = format!("{} check {size} 2", program("lhgen")?.display());
    let outcome = run(pair.command(&check)?, Input::Stream(size, 2), Output::Keep, patience(size))?;
    done(&outcome).context("upload")?;
    let said = String::from_utf8_lossy(&outcome.stdout).into_owned();
    ensure!(said == format!("ok {size}\n"), "upload: {said} {}", outcome.stderr);
    Ok(())
}

/// `size` bytes from the server, compared here.
pub fn download(pair: &Pair, size: u64) -> Result<()> {
    let make = format!("{} make {size} 3", program("lhgen")?.display());
    let outcome =
        run(pair.command(&make)?, Input::Empty, Output::Compare(size, 3), patience(size))?;
    done(&outcome).context("download")
}

/// `size` bytes each way at once, compared here.
pub fn both_ways(pair: &Pair, size: u64) -> Result<()> {
    let (input, output) = (Input::Stream(size, 4), Output::Compare(size, 4));
    let outcome = run(pair.command("cat")?, input, output, patience(size))?;
    done(&outcome).context("both ways")
}

/// Data for the command flows while nobody takes what it writes. It leaves its answer in a file:
/// stderr shares stdout's window, which is used up.
pub fn stdin_flows_while_stdout_is_full(pair: &Pair) -> Result<()> {
    const SIZE: u64 = 32 << 20;
    let (lhgen, answer) = (program("lhgen")?, pair.lab.path("answer"));
    let (lhgen, file) = (lhgen.display(), answer.display());
    let remote = format!("yes & {lhgen} check {SIZE} 5 >{file}; kill $!; wait");
    let mut command = pair.command(&remote)?;
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn()?;
    let mut stdin = child.stdin.take().context("stdin")?;
    let feeder = std::thread::spawn(move || crate::stream::make(&mut stdin, SIZE, 5));
    let deadline = Instant::now() + SHORT;
    let answered = || std::fs::read(&answer).is_ok_and(|text| text.starts_with(b"ok "));
    while !answered() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(20));
    }
    let in_time = answered();
    let mut stdout = child.stdout.take().context("stdout")?;
    let taking = std::thread::spawn(move || std::io::copy(&mut stdout, &mut std::io::sink()));
    let ended = crate::run::wait(&mut child, SHORT);
    let taken = taking.join().map_err(|_| anyhow::anyhow!("the reader"))??;
    feeder.join().map_err(|_| anyhow::anyhow!("the feeder"))??;
    ensure!(in_time && taken > 0, "in time: {in_time}; {taken} bytes came");
    ended.map(drop)
}

/// Several sessions at once do not disturb each other.
pub fn side_by_side(pair: &Pair) -> Result<()> {
    std::thread::scope(|scope| {
        let sessions: Vec<_> = (0..8).map(|_| scope.spawn(|| both_ways(pair, 4 << 20))).collect();
        let mut ended = sessions.into_iter().map(|one| one.join());
        ended.try_for_each(|one| one.unwrap_or_else(|_| Err(anyhow::anyhow!("panicked"))))
    })
}

/// The command's whole output is `want`.
pub fn says(pair: &Pair, remote: &str, want: &str) -> Result<()> {
    let outcome = pair.run(remote, Input::Empty)?;
    done(&outcome)?;
    let said = String::from_utf8_lossy(&outcome.stdout).trim().to_owned();
    ensure!(said == want, "said {said:?}, not {want:?}: {}", outcome.stderr);
    Ok(())
}

/// There is no session: status 255, nothing on stdout, a reason on stderr.
pub fn refused(pair: &Pair) -> Result<()> {
    let outcome = pair.run("echo in", Input::Empty)?;
    let quiet = outcome.stdout.is_empty() && !outcome.stderr.is_empty();
    ensure!(outcome.status == 255 && quiet, "{outcome:?}");
    Ok(())
}

/// The server's processes are killed in mid-stream: status 255 and a reason, no hang.
pub fn server_killed(pair: &Pair) -> Result<()> {
    // The session kills its parent, the server's process for this connection, and goes on.
    let remote = "(sleep 1; kill -KILL $PPID) & exec yes";
    let (reader, writer) = std::io::pipe()?;
    let mut command = pair.command(remote)?;
    let drain = std::thread::spawn(move || std::io::copy(&mut &reader, &mut std::io::sink()));
    let mut child = command.stdin(Stdio::null()).stdout(writer).stderr(Stdio::piped()).spawn()?;
    drop(command);
    let status = crate::run::wait(&mut child, SHORT)?;
    let taken = drain.join().map_err(|_| anyhow::anyhow!("the reader"))??;
    let mut said = String::new();
    child.stderr.take().context("stderr")?.read_to_string(&mut said)?;
    ensure!(taken > 0, "nothing arrived before: {said}");
    ensure!(status.code() == Some(255) && !said.is_empty(), "{status}: {said:?}");
    Ok(())
}

/// Status 255 and one line that begins `lhssh: ` and has all of `words`; a hint may follow it.
pub fn one_line(outcome: &Outcome, words: &[&str]) -> Result<()> {
    let said = &outcome.stderr;
    ensure!(outcome.status == 255, "status {}: {said}", outcome.status);
    let lines: Vec<&str> = said.lines().filter(|line| !line.starts_with("hint: ")).collect();
    let [line] = lines.as_slice() else { bail!("{} lines: {said}", lines.len()) };
    let right = line.starts_with("lhssh: ") && words.iter().all(|word| line.contains(word));
    ensure!(right, "not {words:?}: {line}");
    Ok(())
}

/// One way to behave, by name.
pub type Check = (&'static str, fn(&Pair) -> Result<()>);

/// What every pair must do.
pub const BASICS: &[Check] = &[
    ("echo", echo),
    ("exit status", exit_status),
    ("stderr apart", stderr_apart),
    ("half close", half_close),
    ("end with stdin open", end_with_stdin_open),
];

/// What ssh does and lhssh must do too, with any of the two servers.
pub const LIKE_SSH: &[Check] = &[
    ("killed by a signal", killed_by_a_signal),
    ("reader gone", reader_gone),
    ("long command", long_command),
    ("stdin flows while stdout is full", stdin_flows_while_stdout_is_full),
    ("side by side", side_by_side),
];

impl Pair {
    /// Runs all of `checks`, so that one failure does not hide another.
    pub fn must_all(&self, checks: &[Check]) {
        let failed = |(name, check): &Check| match check(self) {
            Ok(()) => None,
            Err(why) => Some(format!("{name}: {why:#}")),
        };
        let failures: Vec<String> = checks.iter().filter_map(failed).collect();
        self.must(|_| {
            ensure!(failures.is_empty(), "{}", failures.join("\n"));
            Ok(())
        });
    }
}

/// Every file below `dir` by its relative path, with its content's length and hash.
pub fn tree(dir: &Path) -> Result<BTreeMap<PathBuf, (usize, u64)>> {
    let mut found = BTreeMap::new();
    let mut todo = vec![dir.to_path_buf()];
    while let Some(at) = todo.pop() {
        for entry in std::fs::read_dir(&at).with_context(|| at.display().to_string())? {
            let path = entry?.path();
            if path.is_dir() {
                todo.push(path);
                continue;
            }
            let bytes = std::fs::read(&path)?;
            let mut hasher = DefaultHasher::new();
            bytes.hash(&mut hasher);
            found.insert(path.strip_prefix(dir)?.to_path_buf(), (bytes.len(), hasher.finish()));
        }
    }
    Ok(found)
}
