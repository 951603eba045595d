//! `cargo xtask test [CARGO-OPTION...]`: every test of the workspace, two test programs at a time.
//!
//! Tests with real servers and clients wait half of the time: one program after the other, as
//! `cargo test` runs them, leaves half of two cores idle. Programs that take times or count what
//! limits run alone, at the end.
//!
//! Hundreds of processes share the machine, and now and then one of them waits longer than a test
//! allows. Two tests at most that failed run once more, with nothing beside them, and a second
//! failure is final. The last line names every test that needed it. In the engine and in chaos a
//! failure that comes and goes is what the tests look for: theirs are never run again. Nor is a test
//! that waits for ever: it is killed after a time, and named ([`deadline`]).

mod deadline;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::collections::VecDeque;
use std::ffi::OsStr;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// Programs at a time.
const BESIDE: usize = 2;

/// Test programs whose results depend on having the machine to themselves.
const ALONE: &[&str] = &["figures", "limited", "limits", "link", "oracle", "steady_state"];

/// Most tests that get another run.
const AGAIN: usize = 2;

/// Packages, by directory, of which none gets one.
const FINAL: &[&str] = &["engine", "chaos"];

/// A test program, as cargo built it.
#[derive(Debug, PartialEq, Eq)]
struct Program {
    name: String,
    exe: PathBuf,
    /// Cargo runs it where its package is.
    directory: PathBuf,
}

/// A test that failed.
struct Failed<'a> {
    program: &'a Program,
    test: String,
    /// It did not end.
    hung: bool,
}

/// Runs all; false when one failed twice.
pub(crate) fn run(root: &Path, options: &[String]) -> Result<bool> {
    let programs = build(root, options)?;
    let (alone, beside): (Vec<&Program>, Vec<&Program>) =
        programs.iter().partition(|program| ALONE.contains(&program.name.as_str()));
    let mut failed = together(&beside, BESIDE)?;
    failed.append(&mut together(&alone, 1)?);
    let documented = cargo(root, options).arg("--doc").status().context("cargo test --doc")?;
    Ok(passes_again(&failed)? && documented.success())
}

fn cargo(root: &Path, options: &[String]) -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.arg("test").args(options).arg("--workspace").current_dir(root).stdin(Stdio::null());
    cargo
}

fn build(root: &Path, options: &[String]) -> Result<Vec<Program>> {
    let mut build = cargo(root, options);
    build.args(["--no-run", "--message-format=json-render-diagnostics"]);
    let built = build.stderr(Stdio::inherit()).output().context("cargo test --no-run")?;
    ensure!(built.status.success(), "the tests do not build");
    let messages = String::from_utf8_lossy(&built.stdout);
    let messages = messages.lines().filter_map(|line| serde_json::from_str(line).ok());
    let mut programs: Vec<Program> = messages.filter_map(|message| program(&message)).collect();
    ensure!(!programs.is_empty(), "cargo built no tests");
    // Under dev/ are those that take longest: what is short fills the end.
    programs.sort_by(|a, b| (&b.directory, &b.name).cmp(&(&a.directory, &a.name)));
    Ok(programs)
}

/// Of a line of cargo's, if it tells of a test program.
fn program(message: &Value) -> Option<Program> {
    let is_test = message.get("profile")?.get("test")?.as_bool()?;
    let directory = Path::new(message.get("manifest_path")?.as_str()?).parent()?;
    is_test.then_some(())?;
    Some(Program {
        name: message.get("target")?.get("name")?.as_str()?.to_owned(),
        exe: message.get("executable")?.as_str()?.into(),
        directory: directory.to_owned(),
    })
}

/// Runs them, so many at a time; the tests that failed.
fn together<'a>(programs: &[&'a Program], most: usize) -> Result<Vec<Failed<'a>>> {
    let queue: Mutex<VecDeque<&Program>> = Mutex::new(programs.iter().copied().collect());
    let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
    let work = || -> Result<Vec<Failed<'a>>> {
        let mut failed = Vec::new();
        while let Some(program) = next() {
            failed.append(&mut failures(program)?);
        }
        Ok(failed)
    };
    let work = &work;
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..most).map(|_| scope.spawn(work)).collect();
        let results = workers.into_iter().map(|worker| worker.join());
        let results = results.map(|result| result.unwrap_or_else(|e| std::panic::resume_unwind(e)));
        results.collect::<Result<Vec<_>>>().map(|failed| failed.into_iter().flatten().collect())
    })
}

/// Runs all tests of a program and prints what it says.
fn failures(program: &Program) -> Result<Vec<Failed<'_>>> {
    let began = Instant::now();
    let ended = deadline::run(program, &[], deadline::LIMIT)?;
    let (name, seconds) = (&program.name, began.elapsed().as_secs_f64());
    let place = program.directory.file_name().unwrap_or_default().to_string_lossy();
    println!("== {place} {name}: {seconds:.1} s\n{}{}", ended.stdout, ended.stderr);
    let mut tests = names_of_failed(&ended.stdout);
    if !ended.passed && tests.is_empty() && ended.hung.is_empty() {
        // It died, and cannot say which one killed it.
        tests = vec![String::new()];
    }
    let failed = |hung| move |test| Failed { program, test, hung };
    Ok(tests
        .into_iter()
        .map(failed(false))
        .chain(ended.hung.into_iter().map(failed(true)))
        .collect())
}

/// The list at the end of what a test program prints.
fn names_of_failed(said: &str) -> Vec<String> {
    let Some((_, list)) = said.rsplit_once("\nfailures:\n") else { return Vec::new() };
    let names = list.lines().take_while(|line| line.starts_with("    "));
    names.map(|line| line.trim().to_owned()).collect()
}

/// Whether all that failed pass with nothing beside them, if they may be tried again.
fn passes_again(failed: &[Failed<'_>]) -> Result<bool> {
    for failure in failed {
        println!("failed beside others: {failure}");
    }
    let again = failed.len() <= AGAIN && failed.iter().all(Failed::may_run_again);
    let mut all = again || failed.is_empty();
    for failure in failed.iter().filter(|_| again) {
        all &= failure.passes_alone()?;
    }
    println!("{}", summary(failed, again));
    Ok(all)
}

/// The last line: which tests did not pass at once, however it ended.
fn summary(failed: &[Failed<'_>], again: bool) -> String {
    let names: Vec<String> = failed.iter().map(ToString::to_string).collect();
    match (names.len(), again) {
        (0, _) => "xtask test: no test needed a second run".to_owned(),
        (many, true) => format!("xtask test: {many} NEEDED A SECOND RUN: {}", names.join(", ")),
        (many, false) => format!("xtask test: {many} FAILED, none run again: {}", names.join(", ")),
    }
}

impl Failed<'_> {
    /// Not where it did not end, nor where it died without saying which test it was.
    fn may_run_again(&self) -> bool {
        let package = self.program.directory.file_name();
        !self.hung
            && !self.test.is_empty()
            && !FINAL.iter().any(|name| package == Some(OsStr::new(name)))
    }

    fn passes_alone(&self) -> Result<bool> {
        let ended = deadline::run(self.program, &["--exact", &self.test], deadline::LIMIT)?;
        println!("{} alone: {self}", if ended.passed { "passed" } else { "FAILED" });
        if !ended.passed {
            println!("{}\n{}", ended.stdout, ended.stderr);
        }
        Ok(ended.passed)
    }
}

impl fmt::Display for Failed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let package = self.program.directory.file_name().unwrap_or_default().display();
        let test = if self.test.is_empty() { "(died)" } else { &self.test };
        let hung = if self.hung { " (did not end)" } else { "" };
        write!(f, "{package} {} {test}{hung}", self.program.name)
    }
}

#[cfg(test)]
mod self_tests {
    use super::*;

    #[test]
    fn test_programs_are_told_from_others() {
        let message = |test: bool, exe: Value| {
            serde_json::json!({
                "reason": "compiler-artifact", "manifest_path": "/x/crates/a/Cargo.toml",
                "target": {"name": "a"}, "profile": {"test": test}, "executable": exe,
            })
        };
        let expected = Program {
            name: "a".to_owned(),
            exe: "/x/target/a-1".into(),
            directory: "/x/crates/a".into(),
        };
        assert_eq!(program(&message(true, "/x/target/a-1".into())), Some(expected));
        assert_eq!(program(&message(false, "/x/target/a".into())), None);
        assert_eq!(program(&message(true, Value::Null)), None);
    }

    #[test]
    fn failed_tests_are_found_behind_what_they_said() {
        let said = "test a ... FAILED\n\nfailures:\n\n---- a stdout ----\nboom\n    not a name\n\n\
                    failures:\n    a\n    tests::b\n\ntest result: FAILED. 3 passed; 2 failed\n";
        assert_eq!(names_of_failed(said), ["a", "tests::b"]);
        assert!(names_of_failed("test result: ok. 3 passed; 0 failed\n").is_empty());
    }

    #[test]
    fn only_few_tests_and_none_of_engine_and_chaos_run_again() {
        let program = |package: &str, exe: &str| Program {
            name: "short".to_owned(),
            exe: exe.into(),
            directory: Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name(package),
        };
        let (other, chaos) = (program("bench", "true"), program("chaos", "true"));
        let of = |program, test: &str| Failed { program, test: test.to_owned(), hung: false };
        assert!(passes_again(&[]).unwrap() && passes_again(&[of(&other, "a")]).unwrap());
        assert!(!passes_again(&[of(&other, "a"), of(&chaos, "b")]).unwrap());
        assert!(!passes_again(&[of(&other, "")]).unwrap());
        assert!(!passes_again(&[Failed { hung: true, ..of(&other, "a") }]).unwrap());
        assert!(!passes_again(&["a", "b", "c"].map(|test| of(&other, test))).unwrap());
        assert!(!passes_again(&[of(&program("bench", "false"), "a")]).unwrap());
    }

    #[test]
    fn the_last_line_names_every_test_that_did_not_pass_at_once() {
        let copy = Program { name: "t".into(), exe: "true".into(), directory: "/x/copy".into() };
        let failed = [("a::b", false), ("c", true)];
        let failed = failed.map(|(t, hung)| Failed { program: &copy, test: t.to_owned(), hung });
        let line = summary(&failed, true);
        assert!(
            line.contains("2 NEEDED A SECOND RUN: copy t a::b, copy t c (did not end)"),
            "{line}"
        );
        assert!(summary(&failed, false).contains("none run again"));
        assert!(summary(&[], false).contains("no test needed"));
    }
}
