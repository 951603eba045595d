//! A case's directory, and runs of this program in it.

use super::server::Server;
use anyhow::{Context, Error, Result, bail, ensure};
use serde_json::Value;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// No case takes longer on a machine that works.
const LONGEST: Duration = Duration::from_secs(120);

/// Where a case works.
pub(crate) struct Bench {
    dir: PathBuf,
    program: PathBuf,
    options: Vec<String>,
    ours: bool,
}

/// What a run gave.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Bench {
    pub(crate) fn new(below: &Path, case: &str, server: &Server) -> Result<Self> {
        let dir = below.join(case.replace(' ', "-"));
        fs::create_dir(&dir).with_context(|| dir.display().to_string())?;
        let (program, options) = (std::env::current_exe()?, server.options());
        Ok(Self { dir, program, options, ours: server.is_ours() })
    }

    /// A path in the case's directory.
    pub(crate) fn path(&self, name: impl AsRef<OsStr>) -> PathBuf {
        self.dir.join(name.as_ref())
    }

    /// The same path as the server's.
    pub(crate) fn far(&self, name: impl AsRef<OsStr>) -> OsString {
        self.far_on("127.0.0.1", name)
    }

    /// The same by another of the server's names, so that it is another host to the program.
    pub(crate) fn far_on(&self, host: &str, name: impl AsRef<OsStr>) -> OsString {
        let mut place = OsString::from(format!("{host}:"));
        place.push(self.path(name));
        place
    }

    /// A run that is not waited for.
    pub(crate) fn start<S: AsRef<OsStr>>(&self, args: &[S]) -> Result<Child> {
        let mut command = self.command(args);
        command.stdout(File::create(self.path("stdout"))?).stderr(Stdio::null());
        command.spawn().context("lhscp")
    }

    /// Waits until a run with `--json` has moved so many bytes; says how many they are.
    pub(crate) fn wait_for_progress(&self, bytes: u64) -> Result<u64> {
        let deadline = Instant::now() + LONGEST;
        while Instant::now() < deadline {
            let text = fs::read_to_string(self.path("stdout"))?;
            let events = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
            let moved = events.filter_map(|event| event.get("bytes")?.as_u64()).max();
            if let Some(moved) = moved.filter(|moved| *moved >= bytes) {
                return Ok(moved);
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        bail!("no progress in {} s", LONGEST.as_secs())
    }

    /// Whether the server is lhsshd.
    pub(crate) fn server_is_ours(&self) -> bool {
        self.ours
    }

    fn command<S: AsRef<OsStr>>(&self, args: &[S]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.options).args(args).current_dir(&self.dir).stdin(Stdio::null());
        // Journals of its own: neither ours for the user, nor the user's for us.
        command.env("XDG_STATE_HOME", self.dir.join("state"));
        command
    }

    /// A run, whatever becomes of it.
    pub(crate) fn run<S: AsRef<OsStr>>(&self, args: &[S], stdin: &[u8]) -> Result<Ran> {
        let [input, out, err] = ["stdin", "stdout", "stderr"].map(|name| self.path(name));
        fs::write(&input, stdin)?;
        let mut command = self.command(args);
        command.stdin(File::open(&input)?).stdout(File::create(&out)?).stderr(File::create(&err)?);
        let status = wait(&mut command.spawn().context("lhscp")?)?;
        let text = |file| Ok::<_, Error>(String::from_utf8_lossy(&fs::read(file)?).into_owned());
        Ok(Ran { status, stdout: text(out)?, stderr: text(err)? })
    }

    /// A run that must succeed.
    pub(crate) fn ok<S: AsRef<OsStr>>(&self, args: &[S]) -> Result<Ran> {
        self.ok_with(args, b"")
    }

    /// The same with something on its standard input.
    pub(crate) fn ok_with<S: AsRef<OsStr>>(&self, args: &[S], stdin: &[u8]) -> Result<Ran> {
        let ran = self.run(args, stdin)?;
        ensure!(ran.status.success(), "{}: {}", ran.status, ran.complaint());
        Ok(ran)
    }

    /// A run that must fail with this exit code and these words, in lines of the program's own.
    pub(crate) fn fails<S: AsRef<OsStr>>(&self, args: &[S], code: i32, words: &str) -> Result<Ran> {
        let ran = self.run(args, b"")?;
        let said = ran.complaint();
        ensure!(ran.status.code() == Some(code), "{} and not {code}: {said}", ran.status);
        ensure!(ran.stderr.starts_with("lhscp: "), "not a line of lhscp's: {said}");
        ensure!(ran.stderr.contains(words), "'{words}' is not in: {said}");
        Ok(ran)
    }

    /// A run with `--json` that must succeed: its report.
    pub(crate) fn report<S: AsRef<OsStr>>(&self, args: &[S]) -> Result<Value> {
        let args: Vec<&OsStr> = args.iter().map(AsRef::as_ref).collect();
        let ran = self.ok(&[&["--json".as_ref()], args.as_slice()].concat())?;
        let last = ran.stdout.lines().last().unwrap_or_default();
        let report: Value = serde_json::from_str(last).with_context(|| last.to_owned())?;
        let event = report.get("event").and_then(Value::as_str);
        ensure!(event == Some("report"), "the last event is not the report: {last}");
        Ok(report)
    }
}

impl Ran {
    /// The end of what it said.
    pub(crate) fn complaint(&self) -> String {
        let lines: Vec<_> = self.stderr.trim_end().lines().rev().take(3).collect();
        lines
            .into_iter()
            .rev()
            .map(|line| copy::shown(line.as_bytes()))
            .collect::<Vec<_>>()
            .join("; ")
    }
}

/// Waits for the end; a run that hangs is killed, and an error.
pub(crate) fn wait(child: &mut Child) -> Result<ExitStatus> {
    let deadline = Instant::now() + LONGEST;
    while Instant::now() < deadline {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    child.kill()?;
    child.wait()?;
    bail!("not done after {} s", LONGEST.as_secs())
}
