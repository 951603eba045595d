//! ProxyJump: an lhssh of its own leads through the hosts on the way, with `-W` to the server. Its
//! standard streams are the connection, as those of a ProxyCommand are (proxy).
//!
//! It gets its arguments as they are, without a shell that could read them. It stays in our process
//! group, so that it can ask the user; once it is logged in it does not hear Ctrl-C any more, which is
//! for us: it ends with the connection.

use crate::proxy::{KEEP_INTERRUPTS, Proxy, interrupts_are_ours};
use crate::{Error, Log};
use conf::Jump;
use engine::Fd;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;

/// What lhssh ends with after it has said why there is no connection (ssh(1), EXIT STATUS).
pub(crate) const FAILED: i32 = 255;

/// The program that leads through hosts.
const PROGRAM: &str = "lhssh";

/// Jumps that led here, for the calls to count: two hosts that each lead through the other would
/// start programs without end.
const DEPTH: &str = "LONGHAUL_JUMPS";

/// Most of them.
const DEEPEST: u32 = 16;

/// Starts the call.
pub(crate) fn start(jump: Jump, log: &Log) -> Result<(Fd, Proxy), Error> {
    let depth = std::env::var(DEPTH).ok().and_then(|text| text.parse().ok()).unwrap_or(0);
    if depth >= DEEPEST {
        return Err(Error::Jump("too many hosts on the way: is one reached through itself?"));
    }
    let program = program(log.name()).ok_or(Error::Jump("lhssh is needed and was not found"))?;
    let Jump { via, args } = jump;
    let line = args.join(OsString::from(" ").as_os_str());
    log.debug(1, format_args!("jumping through {via}: {PROGRAM} {}", line.display()));
    let mut call = Command::new(program);
    call.args(args).env(DEPTH, (depth + 1).to_string());
    if interrupts_are_ours() {
        call.env(KEEP_INTERRUPTS, "1");
    }
    let started = log.for_child().and_then(|stderr| {
        call.stderr(stderr);
        Proxy::jump(call, via)
    });
    started.map_err(Error::Proxy)
}

/// Whether this process leads another one through a host.
pub fn is_jump() -> bool {
    std::env::var_os(DEPTH).is_some()
}

/// Ourselves if we are `name`d so, else the one beside us, else that of `PATH`.
fn program(name: &str) -> Option<PathBuf> {
    let own = std::env::current_exe().ok();
    let own = own.map(|exe| if name == PROGRAM { exe } else { exe.with_file_name(PROGRAM) });
    let path = std::env::var_os("PATH").unwrap_or_default();
    let in_path = std::env::split_paths(&path).map(|dir| dir.join(PROGRAM)).collect::<Vec<_>>();
    own.into_iter().chain(in_path).find(is_program)
}

fn is_program(path: &PathBuf) -> bool {
    use rustix::fs::{Access, access};
    path.is_file() && access(path, Access::EXEC_OK).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lhssh_calls_itself_whatever_else_there_is() {
        assert_eq!(program(PROGRAM), std::env::current_exe().ok());
    }

    #[test]
    fn a_directory_is_no_program_and_neither_is_a_file_that_may_not_run() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("lhssh");
        std::fs::write(&file, "").unwrap();
        assert!(!is_program(&dir.path().to_owned()) && !is_program(&file));
        assert!(is_program(&std::env::current_exe().unwrap()));
    }
}
