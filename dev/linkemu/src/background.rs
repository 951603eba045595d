//! `linkemu up`, `exec` and `down`: a link that stays, held by a process of its own.
//!
//! up     starts `linkemu hold` with the same options, waits until it says `up`
//! hold   brings the link up, waits for SIGTERM, takes it down, leaves the report
//! exec   enters a namespace of the link and becomes the command
//! down   ends the holder, prints its report
//!
//! State: /run/linkemu/NAME/pid, link.json, stats.json.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use linkemu::up::{environment, namespace_name};
use linkemu::{Link, Side, Spec};
use rustix::process::{Pid, Signal, kill_process, setsid, test_kill_process};
use rustix::stdio::dup2_stderr;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use sys::ns::NetNs;

const STATE: &str = "/run/linkemu";
const DOWN_WAIT: Duration = Duration::from_secs(10);

fn state(name: &str) -> anyhow::Result<PathBuf> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    if name.is_empty() || name.len() > 32 || !name.chars().all(fits) {
        bail!("a link's name has up to 32 letters, digits, - and _");
    }
    Ok(Path::new(STATE).join(name))
}

pub(crate) fn up(name: &str) -> anyhow::Result<u8> {
    let dir = state(name)?;
    if let Some(pid) = holder(&dir) {
        bail!("{name} is up already (held by process {})", pid.as_raw_nonzero());
    }
    remove_leftovers(name, &dir);
    let options: Vec<_> = std::env::args_os().skip(2).collect();
    let mut child = Command::new(std::env::current_exe()?)
        .arg("hold")
        .args(options)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut line = String::new();
    if let Some(output) = child.stdout.take() {
        BufReader::new(output).read_line(&mut line)?;
    }
    if line.trim() == "up" {
        println!("{} {}", namespace_name(name, Side::A), namespace_name(name, Side::B));
        return Ok(0);
    }
    // It has said why on standard error, and its code may mean "skipped".
    let code = child.wait()?.code().unwrap_or(1);
    Ok(u8::try_from(code).unwrap_or(1).max(1))
}

pub(crate) fn hold(name: &str, spec: Spec) -> anyhow::Result<u8> {
    let dir = state(name)?;
    let mut signals = Signals::new([SIGHUP, SIGINT, SIGTERM])?;
    let _ = setsid();
    let link = Link::up_as(name, spec)?;
    fs::create_dir_all(&dir).with_context(|| format!("{}", dir.display()))?;
    fs::write(dir.join("link.json"), serde_json::to_string_pretty(link.spec())?)?;
    fs::write(dir.join("environment"), environment_lines(name, link.spec()))?;
    fs::write(dir.join("pid"), std::process::id().to_string())?;
    writeln!(std::io::stdout(), "up")?;
    // Whoever started us may wait for the end of our standard error.
    dup2_stderr(fs::File::open("/dev/null")?)?;
    signals.forever().find(|&signal| signal == SIGTERM || signal == SIGINT);
    let spec = link.spec().clone();
    let stats = link.down();
    fs::write(dir.join("report"), stats.report(&spec))?;
    let verdict = stats.verdict(&spec);
    let report = crate::Report { link: &spec, stats: &stats, verdict };
    fs::write(dir.join("stats.json"), serde_json::to_string_pretty(&report)?)?;
    Ok(0)
}

/// The environment of both ends, `a NAME=VALUE` a line.
fn environment_lines(name: &str, spec: &Spec) -> String {
    let lines = [("a", Side::A), ("b", Side::B)].into_iter().flat_map(|(end, side)| {
        environment(name, side, spec).map(|(key, value)| format!("{end} {key}={value}\n"))
    });
    lines.collect()
}

pub(crate) fn down(name: &str, json: Option<&Path>) -> anyhow::Result<u8> {
    let dir = state(name)?;
    let Some(pid) = holder(&dir) else {
        remove_leftovers(name, &dir);
        bail!("{name} is not up");
    };
    kill_process(pid, Signal::TERM)?;
    let deadline = Instant::now() + DOWN_WAIT;
    while test_kill_process(pid).is_ok() {
        if Instant::now() > deadline {
            bail!("process {} does not end", pid.as_raw_nonzero());
        }
        thread::sleep(Duration::from_millis(20));
    }
    let report = fs::read_to_string(dir.join("report")).context("no report was left")?;
    eprintln!("{report}");
    if let Some(path) = json {
        let text = fs::read(dir.join("stats.json"))?;
        match path.to_str() {
            Some("-") => std::io::stdout().write_all(&text)?,
            _ => fs::write(path, text)?,
        }
    }
    remove_leftovers(name, &dir);
    Ok(if report.contains("REFUSED") { crate::EXIT_REFUSED } else { 0 })
}

pub(crate) fn exec(name: &str, side: Side, command: &[String]) -> anyhow::Result<u8> {
    let dir = state(name)?;
    let lines = fs::read_to_string(dir.join("environment")).context(format!("{name} is not up"))?;
    let end = if side == Side::A { "a " } else { "b " };
    let variables = lines.lines().filter_map(|line| line.strip_prefix(end)?.split_once('='));
    NetNs::open(&namespace_name(name, side)).and_then(|ns| ns.enter())?;
    let [program, arguments @ ..] = command else { bail!("no command") };
    let error = Command::new(program).args(arguments).envs(variables).exec();
    Err(error).with_context(|| format!("cannot run {program}"))
}

/// The process that holds the link, if it is alive.
fn holder(dir: &Path) -> Option<Pid> {
    let pid = fs::read_to_string(dir.join("pid")).ok()?.trim().parse().ok()?;
    let pid = Pid::from_raw(pid)?;
    let name = fs::read_to_string(format!("/proc/{}/comm", pid.as_raw_nonzero())).ok()?;
    (name.trim() == "linkemu").then_some(pid)
}

fn remove_leftovers(name: &str, dir: &Path) {
    for side in [Side::A, Side::B] {
        let _ = sys::ns::delete(&namespace_name(name, side));
    }
    let _ = fs::remove_dir_all(dir);
}
