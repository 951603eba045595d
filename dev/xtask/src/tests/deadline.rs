//! One test program, with a deadline: a test that waits for ever is named, and the others still run.

use super::Program;
use anyhow::{Context, Result};
use std::fs::File;
use std::io::{Read, Seek};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How long a program may take. The longest takes seven minutes on two cores, beside others.
pub(super) const LIMIT: Duration = Duration::from_secs(900);

/// How a program ended.
pub(super) struct Ended {
    pub(super) stdout: String,
    pub(super) stderr: String,
    pub(super) passed: bool,
    /// Tests that were still running when it was killed.
    pub(super) hung: Vec<String>,
}

/// Runs `program`, and kills it after `limit`. Its output goes to files, which nobody whom it leaves
/// behind can keep from ending.
pub(super) fn run(program: &Program, arguments: &[&str], limit: Duration) -> Result<Ended> {
    let (mut stdout, mut stderr) = (tempfile::tempfile()?, tempfile::tempfile()?);
    let mut command = Command::new(&program.exe);
    command.args(arguments).current_dir(&program.directory).stdin(Stdio::null());
    command.stdout(stdout.try_clone()?).stderr(stderr.try_clone()?);
    let child = command.spawn().with_context(|| program.exe.display().to_string())?;
    let passed = wait(child, limit)?;
    let (stdout, stderr) = (text(&mut stdout)?, text(&mut stderr)?);
    let hung = if passed.is_none() { unfinished(program, arguments, &stdout) } else { Vec::new() };
    Ok(Ended { stdout, stderr, passed: passed == Some(true), hung })
}

/// Whether it passed; nothing when it had to be killed, after showing what runs here.
fn wait(mut child: Child, limit: Duration) -> Result<Option<bool>> {
    let began = Instant::now();
    while began.elapsed() < limit {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status.success()));
        }
        sleep(Duration::from_millis(20));
    }
    // All but the kernel's own.
    let which = ["-N", "--ppid", "2", "-p", "2", "--forest", "--cols", "160"];
    let _ =
        Command::new("ps").args(which).args(["-o", "pid,ppid,stat,wchan:20,etimes,args"]).status();
    child.kill()?;
    child.wait()?;
    Ok(None)
}

/// Tests of `program` that its output does not tell the end of.
fn unfinished(program: &Program, arguments: &[&str], said: &str) -> Vec<String> {
    let mut list = Command::new(&program.exe);
    list.args(arguments).args(["--list", "--format", "terse"]).current_dir(&program.directory);
    let list = list.stdin(Stdio::null()).output().map(|listed| listed.stdout).unwrap_or_default();
    let list = String::from_utf8_lossy(&list).into_owned();
    let all = list.lines().filter_map(|line| line.strip_suffix(": test"));
    // With one thread a test's name is there before its end is.
    let ended = |name: &str| {
        let start = format!("test {name} ... ");
        said.lines().any(|line| line.strip_prefix(&start).is_some_and(|end| !end.is_empty()))
    };
    all.filter(|name| !ended(name)).map(str::to_owned).collect()
}

fn text(file: &mut File) -> Result<String> {
    let mut bytes = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod self_tests {
    use super::*;

    /// Speaks as test programs do; of its two tests one waits for ever.
    const WAITS: &str = "case $1 in
--list) printf 'a: test\nb: test\n' ;;
*) echo 'test a ... ok'; printf 'test b ... '; exec sleep 1000 ;;
esac
";

    #[test]
    fn a_test_that_waits_for_ever_is_killed_and_named() {
        let dir = tempfile::tempdir().unwrap();
        let program = |script: &str| {
            std::fs::write(dir.path().join("program"), script).unwrap();
            Program { name: "it".into(), exe: "sh".into(), directory: dir.path().to_owned() }
        };
        let arguments = ["program"];
        let ended = run(&program(WAITS), &arguments, Duration::from_millis(300)).unwrap();
        assert!(!ended.passed && ended.stdout.starts_with("test a ... ok\n"), "{}", ended.stdout);
        assert_eq!(ended.hung, ["b"]);
        let ended = run(&program("exit 0"), &arguments, LIMIT).unwrap();
        assert!(ended.passed && ended.hung.is_empty());
    }
}
