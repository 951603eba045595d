//! The program as its users start it. Needs root, as `link.rs` does.

use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

const SKIP: i32 = 77;
const REFUSED: i32 = 3;

fn linkemu(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_linkemu"));
    command.args(arguments);
    command
}

/// The output, or `None` when this user cannot make a link.
#[allow(clippy::unwrap_used, reason = "a helper of tests")]
fn run_or_skip(arguments: &[&str]) -> Option<Output> {
    let output = linkemu(arguments).output().unwrap();
    if output.status.code() != Some(SKIP) {
        return Some(output);
    }
    let why = String::from_utf8_lossy(&output.stderr).into_owned();
    need::have(false, &why);
    None
}

fn namespaces_of(id: &str) -> usize {
    let Ok(names) = std::fs::read_dir("/run/netns") else { return 0 };
    let prefix = format!("lhe-{id}");
    names.flatten().filter(|e| e.file_name().to_string_lossy().starts_with(&prefix)).count()
}

#[test]
fn run_passes_the_commands_exit_code_on() {
    let Some(output) = run_or_skip(&["run", "--", "sh", "-c", "exit 42"]) else {
        return;
    };
    assert_eq!(output.status.code(), Some(42));
}

#[test]
fn run_reports_both_directions_as_json() {
    let arguments = ["run", "--rtt", "4ms", "--json", "-", "--", "sh", "-c"];
    let script = "timeout 1 bash -c 'exec 3<>/dev/tcp/$LINKEMU_REMOTE/9' 2>/dev/null; true";
    let Some(output) = run_or_skip(&[&arguments[..], &[script]].concat()) else { return };
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    // Whether the emulator kept up is the machine's affair; program and report must agree on it.
    match output.status.code() {
        Some(0) => assert_eq!(report["verdict"], "Sound"),
        Some(REFUSED) => assert!(report["verdict"]["Refused"][0].is_string(), "{report}"),
        other => panic!("{other:?}: {report}"),
    }
    assert!(report["stats"]["a_to_b"]["packets_out"].as_u64() > Some(0));
    assert!(report["stats"]["b_to_a"]["packets_out"].as_u64() > Some(0));
}

#[test]
fn a_termination_signal_still_cleans_up() {
    ends_cleanly_by("-TERM", 15);
}

#[test]
fn an_interrupt_that_comes_from_no_terminal_reaches_the_command() {
    ends_cleanly_by("-INT", 2);
}

/// Sends a signal to linkemu alone; its command has to end by it, and the link has to be gone.
#[allow(clippy::unwrap_used, reason = "a helper of tests")]
#[track_caller]
fn ends_cleanly_by(signal: &str, number: i32) {
    let Some(_) = run_or_skip(&["run", "--", "true"]) else { return };
    let mut run = linkemu(&["run", "--", "sleep", "30"]);
    let mut child = Running(run.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    let id = format!("{}.", child.0.id());
    while namespaces_of(&id) < 2 {
        assert!(child.0.try_wait().unwrap().is_none(), "it ended before its link was up");
        std::thread::sleep(Duration::from_millis(5));
    }
    // Until the command runs there is nobody to forward the signal to, so it is repeated.
    while child.0.try_wait().unwrap().is_none() {
        Command::new("kill").args([signal, &child.0.id().to_string()]).status().unwrap();
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(child.0.wait().unwrap().code(), Some(128 + number));
    assert_eq!(namespaces_of(&id), 0);
}

/// A child that does not outlive a failed test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_link_that_was_brought_up_stays_until_it_is_taken_down() {
    let name = format!("test{}", std::process::id());
    let Some(up) = run_or_skip(&["up", &name, "--rtt", "1ms"]) else { return };
    assert!(up.status.success(), "{up:?}");
    assert_eq!(namespaces_of(&name), 2);
    let twice = linkemu(&["up", &name]).output().unwrap();
    assert_eq!(twice.status.code(), Some(1));
    let echo = ["exec", &name, "b", "--", "sh", "-c", "echo $LINKEMU_LOCAL"];
    assert_eq!(linkemu(&echo).output().unwrap().stdout, b"10.99.0.2\n");
    let down = linkemu(&["down", &name]).output().unwrap();
    assert!(down.status.success(), "{down:?}");
    assert!(String::from_utf8_lossy(&down.stderr).contains("a to b"));
    assert_eq!(namespaces_of(&name), 0);
}
